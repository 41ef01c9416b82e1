"""Shingle sets -> signatures -> bands -> candidate pairs. Arrays only: no file, text or store."""
