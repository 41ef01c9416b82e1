"""A collection (documents, sets, signatures), and the one pass over documents that makes it."""
