"""Names of documents and of answers, and what they are as files, rows or folders of Spark."""
