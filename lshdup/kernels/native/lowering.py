"""Kernels -> LLVM IR, by numba; and the command that packs the IR.

Imported only to write the pack, or when the pack is not that of the sources. It uses parts of
numba that are not documented; the bounds in pyproject.toml exclude versions that have not been
tested.

`python -m lshdup.kernels.native.lowering` writes the pack. The IR depends on the byte code of
Python and on the compiler. So that everyone can make the same pack, and because an older LLVM may
not read what a later one wrote, the lowest versions that are allowed make it; `.ci/pack` runs the
command with these.
"""

import argparse
import contextlib
import functools
import importlib
import platform
import re
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import version
from typing import Any

import llvmlite.binding as llvm
import numba
from llvmlite import ir
from numba import types
from numba.core import compiler, config
from numba.core.registry import cpu_target
from numba.extending import intrinsic

from lshdup.kernels.helpers import Helper
from lshdup.kernels.native import pack
from lshdup.kernels.native.machine_code import optimise, target

#: Functions of the C library that machine code may call. numba's own functions are missing in the
#: processes that load it.
_C_LIBRARY = {
    "memset", "memcpy", "memmove", "floor", "ceil", "exp", "log", "log1p", "expm1", "pow",
    "lgamma", "statx", "open", "read", "close",
}  # fmt: skip

#: The lowest versions that pyproject.toml allows.
COMPILER = "Python 3.11, numba 0.62.0, llvmlite 0.45.0"

#: The IR is simplified for this target, and then fits every machine with 64-bit little-endian
#: words: neither vectors nor calls of the platform are in it.
_TARGET = "x86_64-unknown-linux-gnu"


def lower(function: Callable[..., Any], kinds: list[str], symbol: str) -> str:
    """Return the IR of a kernel, as text without a target, with one visible symbol.

    The code runs without the GIL and without reference counts; integers wrap. Raises numba's
    errors if the function cannot be compiled, and RuntimeError if it calls a function that the
    processes loading it lack.
    """
    _prepare_helpers()
    inside: Any = compiler  # numba's types know its decorators only
    flags = inside.Flags()
    flags.no_cpython_wrapper = flags.no_cfunc_wrapper = flags.release_gil = True
    flags.error_model = "numpy"
    flags.nrt = False
    with _without_optimisation():
        result = inside.compile_extra(
            cpu_target.typing_context,
            cpu_target.target_context,
            function,
            tuple(_type(kind, function) for kind in kinds),
            None,
            flags,
            {},
        )
        text = result.library.get_llvm_str()
    text = _simplified(text, result.fndesc.llvm_func_name, symbol)
    needs = set(re.findall(r"^declare [^@]*@\"?([\w.$]+)", text, re.MULTILINE))
    strange = {name for name in needs if not name.startswith("llvm.")} - _C_LIBRARY
    if strange or result.signature.return_type not in (types.none, types.int64):
        message = (
            f"kernel {function.__name__} calls {sorted(strange)} "
            f"and returns {result.signature.return_type}"
        )
        raise RuntimeError(message)
    return text


@contextlib.contextmanager
def _without_optimisation() -> Iterator[None]:
    """Keep numba from optimising: it would do so for the processor at hand."""
    inside: Any = config
    level, prune = inside.OPT, inside.LLVM_REFPRUNE_PASS
    inside.OPT, inside.LLVM_REFPRUNE_PASS = type(level)(0), 0
    try:
        yield
    finally:
        inside.OPT, inside.LLVM_REFPRUNE_PASS = level, prune


def _simplified(text: str, old_symbol: str, symbol: str) -> str:
    """Return a module with all functions inlined, as text without names, comments and target."""
    machine = target(_TARGET)
    module = llvm.parse_assembly(text)
    module.triple, module.data_layout = machine.triple, str(machine.target_data)
    for value in (*module.functions, *module.global_variables):
        if not value.is_declaration and value.name != old_symbol:
            value.linkage = "internal"
    module.get_function(old_symbol).name = symbol
    optimise(module, machine, for_machine=False)
    names = llvm.create_new_module_pass_manager()
    names.add_strip_symbols_pass()
    names.run(module, llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(0)))
    return re.sub(r"^(?:;|source_filename|target ).*\n| +; preds = .*", "", str(module), flags=re.M)


def _type(kind: str, function: Callable[..., Any]) -> Any:
    if kind.endswith(")"):  # A named tuple, whose class is a global of the kernel.
        name, _, parts = kind[:-1].partition("(")
        elements = [_type(part, function) for part in parts.split()]
        inside: Any = types
        return inside.BaseTuple.from_types(elements, function.__globals__[name])
    if kind.endswith("]"):
        return types.Array(getattr(types, kind[:-3]), int(kind[-2]), "C")
    return types.boolean if kind == "bool" else getattr(types, kind)


def _prepare_helpers() -> None:
    """Replace the helpers in all modules of kernels by numba's functions, found as globals."""
    for name, module in list(sys.modules.items()):
        if name.startswith("lshdup.kernels."):
            for key, value in list(vars(module).items()):
                if isinstance(value, Helper):
                    setattr(module, key, _numba_function(value))


@functools.cache
def _numba_function(helper: Helper) -> Any:
    if helper.kind == "instruction":
        return globals()[f"_{helper.function.__name__}"]
    if helper.kind == "C":
        name, result, *arguments = helper.function()
        signature = getattr(types, result)(*(getattr(types, kind) for kind in arguments))
        return types.ExternalFunction(name, signature)
    njit: Any = numba.njit
    return njit(nogil=True, error_model="numpy", forceinline=True, _nrt=False)(helper.function)


@intrinsic
def _load64(typingctx: Any, buffer: Any, index: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, args[0])
        address = builder.gep(array.data, [args[1]])
        word = builder.load(builder.bitcast(address, ir.IntType(64).as_pointer()))
        word.align = 1
        return word

    return types.uint64(buffer, types.intp), codegen


_BYTE, _BLOCK = ir.IntType(8), ir.VectorType(ir.IntType(8), 64)


def _block_at(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
    """Return the address of the 64 bytes of an array from an index on."""
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [index]), _BLOCK.as_pointer())


def _are_within(builder: Any, block: Any, low: Any, count: Any) -> Any:
    return builder.icmp_unsigned(
        "<", builder.sub(block, _spread(builder, low)), _spread(builder, count)
    )


def _spread(builder: Any, byte: Any) -> Any:
    """Return a block of one byte, 64 times."""
    one = builder.insert_element(ir.Constant(_BLOCK, ir.Undefined), byte, ir.Constant(_BYTE, 0))
    places = ir.Constant(ir.VectorType(ir.IntType(32), 64), [0] * 64)
    return builder.shuffle_vector(one, one, places)


@intrinsic
def _within(typingctx: Any, buffer: Any, index: Any, ones: Any, low: Any, count: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        block = builder.load(_block_at(context, builder, signature.args[0], *args[:2]), align=1)
        block = builder.or_(block, _spread(builder, args[2]))
        return builder.bitcast(_are_within(builder, block, *args[3:]), ir.IntType(64))

    return types.uint64(buffer, types.intp, types.uint8, types.uint8, types.uint8), codegen


@intrinsic
def _fold_block(typingctx: Any, source: Any, index: Any, target: Any, at: Any, shift: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        block = builder.load(_block_at(context, builder, signature.args[0], *args[:2]), align=1)
        address = _block_at(context, builder, signature.args[2], *args[2:4])
        capital = _are_within(builder, block, _BYTE(ord("A")), _BYTE(26))
        none = ir.Constant(_BLOCK, [0] * 64)
        shift = builder.select(capital, _spread(builder, args[4]), none)
        is_ascii = builder.icmp_signed(">=", block, none)
        kept = builder.load(address, align=1)
        builder.store(builder.select(is_ascii, builder.add(block, shift), kept), address, align=1)
        return context.get_dummy_value()

    return types.none(source, types.intp, target, types.intp, types.uint8), codegen


@intrinsic
def _count_trailing_zeros(typingctx: Any, word: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), codegen


@intrinsic
def _count_ones(typingctx: Any, word: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.uint64(types.uint64), codegen


@intrinsic
def _folded_product(typingctx: Any, a: Any, b: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        word, wide = ir.IntType(64), ir.IntType(128)
        product = builder.mul(builder.zext(args[0], wide), builder.zext(args[1], wide))
        high = builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), word)
        return builder.sub(builder.trunc(product, word), high)

    return types.uint64(types.uint64, types.uint64), codegen


# --- the command ---


def all_kernels() -> dict[str, Any]:
    """Return all kernels (`jit.Kernel`) of the package by module and name, such as
    "sketch.fast_sketch".
    """
    found = {}
    for name in pack.kernel_modules():
        module = importlib.import_module(f"lshdup.kernels.{name}")
        for value in vars(module).values():
            # By its name: jit.py, which has the class, imports this module.
            if type(value).__name__ == "Kernel" and value.function.__module__ == module.__name__:
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
