"""The compilation of kernels to object code, by numba.

jit.py imports this module only when the cache lacks a kernel. It uses parts of numba that are not
documented; the bounds in pyproject.toml exclude versions that have not been tested.
"""

import functools
import re
import sys
from collections.abc import Callable
from typing import Any

import numba
from llvmlite import ir
from numba import types
from numba.core import cgutils, compiler
from numba.core.registry import cpu_target
from numba.extending import intrinsic

from lshdup.kernels.helpers import Helper

#: Functions of the C library that object code may call. numba's own functions are missing in the
#: processes that load the object code.
_C_LIBRARY = {
    "memset", "memcpy", "memmove", "floor", "ceil", "exp", "log", "log1p", "expm1", "pow",
    "lgamma", "statx", "open", "read", "close",
}  # fmt: skip


def compile_kernel(function: Callable[..., Any], kinds: tuple[str, ...]) -> tuple[str, bytes]:
    """Return the symbol of a kernel and its object code.

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
    result = inside.compile_extra(
        cpu_target.typing_context,
        cpu_target.target_context,
        function,
        tuple(map(_type, kinds)),
        None,
        flags,
        {},
    )
    needs = set(
        re.findall(r"^declare [^@]*@\"?([\w.$]+)", result.library.get_llvm_str(), re.MULTILINE)
    )
    strange = {name for name in needs if not name.startswith("llvm.")} - _C_LIBRARY
    if strange or result.signature.return_type not in (types.none, types.int64):
        message = (
            f"kernel {function.__name__} calls {sorted(strange)} "
            f"and returns {result.signature.return_type}"
        )
        raise RuntimeError(message)
    _, _, (code, _) = result.library.serialize_using_object_code()
    return result.fndesc.llvm_func_name, code


def _type(kind: str) -> Any:
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


# --- calls of the C library ---

_INT, _LONG, _POINTER = ir.IntType(32), ir.IntType(64), ir.IntType(8).as_pointer()
_CURRENT_FOLDER = -100  # AT_FDCWD
_NO_FOLLOW = 0x100  # AT_SYMLINK_NOFOLLOW
_TYPE_TIME_SIZE = 0x1 | 0x40 | 0x200  # STATX_TYPE, STATX_MTIME, STATX_SIZE


def _c_call(builder: Any, name: str, result: Any, *args: Any) -> Any:
    """Call a C function; return its result as an int64."""
    kind = ir.FunctionType(result, [arg.type for arg in args])
    declared: Any = cgutils
    value = builder.call(declared.get_or_insert_function(builder.module, kind, name), args)
    return value if result is _LONG else builder.sext(value, _LONG)


def _address(context: Any, builder: Any, kind: Any, array: Any, index: Any = None) -> Any:
    """Return the address of an array's element, as a pointer to bytes."""
    data = context.make_array(kind)(context, builder, array).data
    return builder.bitcast(data if index is None else builder.gep(data, [index]), _POINTER)


@intrinsic
def _c_statx(typingctx: Any, paths: Any, start: Any, record: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        path = _address(context, builder, signature.args[0], args[0], args[1])
        out = _address(context, builder, signature.args[2], args[2])
        folder, flags, mask = _INT(_CURRENT_FOLDER), _INT(_NO_FOLLOW), _INT(_TYPE_TIME_SIZE)
        return _c_call(builder, "statx", _INT, folder, path, flags, mask, out)

    return types.int64(paths, types.intp, record), codegen


@intrinsic
def _c_open(typingctx: Any, paths: Any, start: Any, flags: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        path = _address(context, builder, signature.args[0], args[0], args[1])
        return _c_call(builder, "open", _INT, path, builder.trunc(args[2], _INT))

    return types.int64(paths, types.intp, types.int64), codegen


@intrinsic
def _c_read(typingctx: Any, descriptor: Any, buffer: Any, start: Any, size: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = _address(context, builder, signature.args[1], args[1], args[2])
        return _c_call(builder, "read", _LONG, builder.trunc(args[0], _INT), place, args[3])

    return types.int64(types.int64, buffer, types.intp, types.int64), codegen


@intrinsic
def _c_close(typingctx: Any, descriptor: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _c_call(builder, "close", _INT, builder.trunc(args[0], _INT))

    return types.int64(types.int64), codegen
