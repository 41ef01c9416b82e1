"""Building blocks: ragged arrays, threads, atomic and temporary files, compression, messages."""
