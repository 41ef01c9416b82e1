"""A collection (documents, sets, signatures), the one pass that makes it, and which documents are kept."""
