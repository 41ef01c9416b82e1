"""Shingle sets -> signatures -> bands -> candidate pairs: arrays only, no file, no text, no store."""
