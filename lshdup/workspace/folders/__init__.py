"""Folders: which hold nearly the same documents, and what two of them have in common."""
