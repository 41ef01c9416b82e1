"""Readers of files that hold many documents: where the documents are, and their bytes or texts."""
