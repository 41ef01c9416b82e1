"""Machine code of kernels that comes with an installation: a wheel built with LSHDUP_PREBUILT=1.

Such a wheel has a shared library of all kernels for each level of processors. The build of the
wheel links them (hatch_build.py). The best one that fits is loaded with ctypes, which takes neither
LLVM nor a cache on disk.
"""

import ctypes
import functools
import os
import sys
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

#: Nothing is linked: functions of the C library are found in the process, whatever its version.
_FLAGS = ("-shared", "-nostdlib", "-s", "-Wl,--build-id=none", "-Wl,-z,noexecstack")


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
    from lshdup.kernels.native.cache import processor

    return frozenset(processor().get("flags", "").split())


# --- the build of a wheel ---


class LinkError(Exception):
    """The libraries cannot be made; the message says why and what to do."""


def find_linker() -> list[str] | None:
    """Return the command of a C compiler, which links; None if there is none."""
    import importlib.util
    import shutil

    for name in filter(None, (os.environ.get("CC"), "cc", "gcc", "clang")):
        if shutil.which(name):
            return [name]
    return [sys.executable, "-m", "ziglang", "cc"] if importlib.util.find_spec("ziglang") else None


def link_libraries(folder: Path, kernels: dict[str, str]) -> list[Path]:
    """Compile kernels for each level of this machine's processors; return the libraries.

    folder : where the libraries and their object files are written.
    kernels : IR of each kernel by its symbol, as in the pack; none if the pack is outdated.

    Errors: LinkError. Cost: some seconds. Determinism: the same pack, versions of LLVM and of the
    linker give the same bytes.
    """
    machine = os.uname().machine
    linker = find_linker()
    if machine not in LEVELS or sys.platform != "linux":
        message = f"kernels cannot be prebuilt for {sys.platform} on {machine}: only for Linux on "
        raise LinkError(message + " or ".join(LEVELS))
    if not kernels:
        message = "kernels.ir is not that of the sources: run .ci/pack"
        raise LinkError(message)
    if linker is None:
        message = "no linker was found: install a C compiler, or run `pip install ziglang`"
        raise LinkError(message)
    return [_link(folder, level, linker, kernels) for level in LEVELS[machine]]


def _link(folder: Path, level: str, linker: list[str], kernels: dict[str, str]) -> Path:
    import subprocess

    # Imported here because the linker is looked for before LLVM is installed.
    from lshdup.kernels.native.machine_code import object_code, target

    machine = target(
        f"{os.uname().machine}-unknown-linux-gnu", cpu=level, reloc="pic", codemodel="default"
    )
    objects = []
    for symbol, ir in kernels.items():
        objects.append(folder / f"{level}.{symbol}.o")
        objects[-1].write_bytes(object_code(ir, machine))
    library = folder / file_name(level)
    command = [*linker, *_FLAGS, "-o", library, *objects]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        message = f"{' '.join(linker)} cannot link the kernels: {done.stderr.strip()}"
        raise LinkError(message)
    return library
