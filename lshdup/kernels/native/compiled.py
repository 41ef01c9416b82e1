"""Machine code of kernels: from the cache on disk, or compiled and stored there."""

import contextlib
import functools
import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from lshdup.kernels.native import cache, llvm, pack

#: Processes that compile at the same time. One kernel takes half the time of all that `pairs`
#: needs, so more of them would wait for that one.
_MOST_PROCESSES = 3

_PROGRAM = """import json, sys
sys.path[:], sys.dont_write_bytecode, sys.pycache_prefix = json.loads(sys.argv[1])
from lshdup.kernels.native import compiled
compiled.store(sys.argv[2:])"""


def read(symbol: str, compiler: str) -> bytes | None:
    """Return the machine code of a kernel from the cache, or None."""
    return cache.read(symbol, _version(compiler))


def compile_ir(symbol: str, compiler: str, ir: str) -> tuple[bytes, bool]:
    """Return the machine code of a kernel, and whether it could be stored."""
    code = llvm.object_code(ir, llvm.this_machine())
    return code, cache.write(symbol, _version(compiler), code)


def store(symbols: Iterable[str]) -> None:
    """Compile and store packed kernels."""
    for symbol in symbols:
        compile_ir(symbol, pack.pack_compiler() or "", pack.packed_kernels()[symbol])


def store_together(symbols: Iterable[str], processes: int) -> None:
    """Compile and store the packed kernels that the cache lacks, in several processes.

    Threads would wait for each other: llvmlite lets one at a time into LLVM. A process that fails
    leaves its share to the call that needs it.
    """
    if not cache.can_write():
        return
    kernels, compiler = pack.packed_kernels(), pack.pack_compiler() or ""
    missing = [each for each in symbols if each in kernels and read(each, compiler) is None]
    shares: list[list[str]] = [[] for _ in range(min(processes, _MOST_PROCESSES))]
    for symbol in sorted(missing, key=lambda each: -len(kernels[each])):
        min(shares, key=lambda share: sum(len(kernels[each]) for each in share)).append(symbol)
    # Not the current folder, where a file may be named like a module.
    import_path = [str(Path(__file__).parents[3]), *filter(None, sys.path)]
    settings = json.dumps([import_path, sys.dont_write_bytecode, sys.pycache_prefix])
    started = []
    for share in filter(None, shares[1:]):
        with contextlib.suppress(OSError):  # no more processes are allowed
            process = subprocess.Popen(
                [sys.executable, "-P", "-c", _PROGRAM, settings, *share],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            started.append(process)
    store(shares[0])
    for process in started:
        process.wait()


@functools.cache
def _version(compiler: str) -> str:
    """Return what machine code depends on: sources, compilers, processor."""
    return f"{pack.digest_of_sources()} {compiler} {llvm.machine_name()}"
