"""The pack of kernels -> shared libraries. A step of a wheel's build (hatch_build.py)."""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

from lshdup.kernels.native import prebuilt

#: Nothing is linked: functions of the C library are found in the process, whatever its version.
_FLAGS = ("-shared", "-nostdlib", "-s", "-Wl,--build-id=none", "-Wl,-z,noexecstack")


class LinkError(Exception):
    """The libraries cannot be made; the message says why and what to do."""


def find_linker() -> list[str] | None:
    """Return the command of a C compiler, which links; None if there is none."""
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
    if machine not in prebuilt.LEVELS or sys.platform != "linux":
        message = f"kernels cannot be prebuilt for {sys.platform} on {machine}: only for Linux on "
        raise LinkError(message + " or ".join(prebuilt.LEVELS))
    if not kernels:
        message = "kernels.ir is not that of the sources: run .ci/pack"
        raise LinkError(message)
    if linker is None:
        message = "no linker was found: install a C compiler, or run `pip install ziglang`"
        raise LinkError(message)
    return [_link(folder, level, linker, kernels) for level in prebuilt.LEVELS[machine]]


def _link(folder: Path, level: str, linker: list[str], kernels: dict[str, str]) -> Path:
    from lshdup.kernels.native import llvm  # The linker is looked for before LLVM is installed.

    machine = llvm.target(
        f"{os.uname().machine}-unknown-linux-gnu", cpu=level, reloc="pic", codemodel="default"
    )
    objects = []
    for symbol, ir in kernels.items():
        objects.append(folder / f"{level}.{symbol}.o")
        objects[-1].write_bytes(llvm.object_code(ir, machine))
    library = folder / prebuilt.file_name(level)
    command = [*linker, *_FLAGS, "-o", library, *objects]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        message = f"{' '.join(linker)} cannot link the kernels: {done.stderr.strip()}"
        raise LinkError(message)
    return library
