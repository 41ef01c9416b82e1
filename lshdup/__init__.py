"""lshdup finds near-duplicate documents: shingles, MinHash signatures, banded LSH, verified pairs."""

__version__ = "0.1.0"
