"""A collection (documents, sets, signatures), the pass that makes it, what is kept of it."""
