"""What Spark's workers do with Arrow record batches: nothing here knows Spark."""
