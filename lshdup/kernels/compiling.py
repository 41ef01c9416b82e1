"""The command that writes the pack of kernels: `python -m lshdup.kernels.compiling`.

The IR depends on the byte code of Python and on the compiler. So that everyone can make the same
pack, and because an older LLVM may not read what a later one wrote, the lowest versions that are
allowed make it; `.ci/pack` runs the command with these.
"""

import argparse
import importlib
import platform
from importlib.metadata import version

from lshdup.kernels.jit import Kernel
from lshdup.kernels.native import pack
from lshdup.kernels.native.lowering import lower

#: The lowest versions that pyproject.toml allows.
COMPILER = "Python 3.11, numba 0.62.0, llvmlite 0.45.0"


def all_kernels() -> dict[str, Kernel]:
    """Return all kernels of the package by module and name, such as "sketch.fast_sketch"."""
    found = {}
    for name in pack.kernel_modules():
        module = importlib.import_module(f"lshdup.kernels.{name}")
        for value in vars(module).values():
            if isinstance(value, Kernel) and value.function.__module__ == module.__name__:
                found[f"{name}.{value.__name__}"] = value
    return found


def make_pack() -> pack.Pack:
    """Return the pack of the sources at hand, made by the compiler that is installed."""
    kernels = {
        symbol: lower(each.function, kinds, symbol)
        for each in all_kernels().values()
        for symbol, kinds in each.variants.items()
    }
    return pack.Pack(pack.digest_of_sources(), installed_compiler(), kernels)


def installed_compiler() -> str:
    """Return the versions that the IR depends on, as in COMPILER."""
    python = ".".join(platform.python_version_tuple()[:2])
    return f"Python {python}, numba {version('numba')}, llvmlite {version('llvmlite')}"


def main() -> None:
    """Write the pack, or check that it is that of the sources."""
    parser = argparse.ArgumentParser(description="Write the LLVM IR of all kernels.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if it differs")
    arguments = parser.parse_args()
    if installed_compiler() != COMPILER:
        parser.error(f"{COMPILER} make the pack, not {installed_compiler()}: run .ci/pack")
    made = make_pack()
    if not arguments.check:
        pack.PATH.write_bytes(made.to_bytes())
    elif pack.read_pack() != made:
        parser.error(f"{pack.PATH} is not that of the sources: run .ci/pack")


if __name__ == "__main__":
    main()
