"""Candidate pairs -> verified pairs -> clusters, and the exact joins: arrays only, no file, no text, no store."""
