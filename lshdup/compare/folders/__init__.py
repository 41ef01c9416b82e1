"""Folders as sets of groups of documents: their tree, their contents, and their pairs."""
