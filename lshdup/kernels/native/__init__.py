"""From a kernel to machine code: numba's IR, its pack, LLVM, the cache on disk."""
