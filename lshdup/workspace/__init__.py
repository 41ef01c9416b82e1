"""Incremental runs over a store."""
