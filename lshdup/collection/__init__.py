"""A collection (documents, shingle sets, signatures) and the one pass over the documents that makes it."""
