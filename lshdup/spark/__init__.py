"""The same answers from Apache Spark: `--engine spark`."""
