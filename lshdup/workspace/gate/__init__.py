"""Which pairs a gate lets through: known ones, and ones of documents that have not changed."""
