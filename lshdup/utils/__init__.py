"""Building blocks without a place in the data flow: ragged arrays, threads, atomic and temporary files, compression, messages."""
