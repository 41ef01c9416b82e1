"""Machine code of kernels that came with the installation: a wheel built with LSHDUP_PREBUILT=1.

Such a wheel has a shared library of all kernels for each level of processors (linking.py). The best
one that fits is loaded with ctypes, which takes neither LLVM nor a cache on disk.
"""

import ctypes
import functools
import os
from pathlib import Path

#: Levels of processors by machine, best first, as LLVM calls them; and the names in /proc/cpuinfo
#: of what a processor of the level has beyond the last one.
LEVELS = {
    "x86_64": {
        "x86-64-v3": frozenset({"abm", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe"}),
        "x86-64": frozenset[str](),
    },
    "aarch64": {"generic": frozenset[str]()},
}

_FOLDER = Path(__file__).parent


def file_name(level: str) -> str:
    """Return the name of the library for a level, beside this module."""
    return f"kernels-{level}.so"


def address(symbol: str) -> int | None:
    """Return the address of a kernel in the library; None if this installation has none."""
    library = _library()
    return None if library is None else ctypes.cast(library[symbol], ctypes.c_void_p).value


def best_level(machine: str, features: frozenset[str]) -> str:
    """Return the best level of a machine's processor with these features.

    >>> best_level("x86_64", frozenset({"sse2", "avx2"}))
    'x86-64'
    """
    return next(level for level, needed in LEVELS[machine].items() if needed <= features)


@functools.cache
def _library() -> ctypes.CDLL | None:
    machine = os.uname().machine
    if machine not in LEVELS or not (_FOLDER / file_name([*LEVELS[machine]][-1])).exists():
        return None
    return ctypes.CDLL(str(_FOLDER / file_name(best_level(machine, _features()))))


def _features() -> frozenset[str]:
    """Return what the first processor has; nothing where the system does not tell."""
    try:
        with Path("/proc/cpuinfo").open(encoding="ascii", errors="replace") as file:
            lines = (line.partition(":") for line in file)
            return next(
                (frozenset(values.split()) for name, _, values in lines if name[:5] == "flags"),
                frozenset(),
            )
    except OSError:
        return frozenset()
