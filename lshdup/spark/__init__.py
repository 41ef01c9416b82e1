"""The same answers from Apache Spark: `lshdup spark`."""
