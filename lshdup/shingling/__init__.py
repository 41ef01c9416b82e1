"""Text -> shingle sets."""
