"""Candidate pairs -> verified pairs -> clusters, and the exact join. Arrays only: no file, text."""
