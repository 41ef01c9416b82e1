"""Building blocks: parameters, the run, arrays, atomic files, compression, parts of messages."""
