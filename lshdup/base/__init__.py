"""Building blocks: parameters, the run, arrays, atomic and temporary files, compression, messages."""
