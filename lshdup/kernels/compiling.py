"""The command that writes the pack of kernels: `python -m lshdup.kernels.compiling`."""

import argparse
import importlib
from importlib.metadata import version

from lshdup.kernels.jit import Kernel
from lshdup.kernels.native import pack
from lshdup.kernels.native.lowering import lower


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
    compiler = " ".join(f"{name} {version(name)}" for name in ("numba", "llvmlite"))
    return pack.Pack(pack.digest_of_sources(), compiler, kernels)


def main() -> None:
    """Write the pack, or check that it is that of the sources."""
    parser = argparse.ArgumentParser(description="Write the LLVM IR of all kernels.")
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit with 1 if it differs"
    )
    arguments = parser.parse_args()
    made = make_pack()
    if not arguments.check:
        pack.PATH.write_bytes(made.to_bytes())
    elif pack.read_pack() != made:
        message = "kernels.ir is not that of the sources: run python -m lshdup.kernels.compiling"
        raise SystemExit(message)


if __name__ == "__main__":
    main()
