"""Compiled loops over arrays, one file a stage.

Only this package imports numba and LLVM, in native/. Kernels know no documents, names or
parameters, and check nothing: the stage that calls a kernel has checked shapes and domains.
"""
