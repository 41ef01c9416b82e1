"""Kernels -> object code, by numba. Imported by jit.py when a machine meets a kernel for the first time, and by nothing else."""

import re
import sys
from collections.abc import Callable
from typing import Any

import numba
from llvmlite import ir
from numba import types
from numba.core import compiler
from numba.core.registry import cpu_target
from numba.extending import intrinsic

from lshdup.kernels.jit import Helper

#: Functions of the C library that object code may call: it is linked again in processes where numba's own are not there.
_C_LIBRARY = {
    "memset", "memcpy", "memmove", "floor", "ceil", "exp", "log", "log1p", "expm1", "pow", "lgamma",
}  # fmt: skip


def compiled(function: Callable[..., Any], kinds: tuple[str, ...]) -> tuple[str, bytes]:
    """The name of a kernel's entry in its object code, and that code. Without the GIL, integers wrap, no reference counts.

    Raises numba's errors for a kernel that is none, and RuntimeError for one that calls what will not be there.
    """
    _prepare_helpers()
    inside: Any = compiler  # numba's types know its decorators only
    flags = inside.Flags()
    flags.no_cpython_wrapper = flags.no_cfunc_wrapper = flags.release_gil = True
    flags.error_model = "numpy"
    flags.nrt = False
    result = inside.compile_extra(cpu_target.typing_context, cpu_target.target_context, function, tuple(map(_type, kinds)), None, flags, {})
    needs = set(re.findall(r"^declare [^@]*@\"?([\w.$]+)", result.library.get_llvm_str(), re.MULTILINE))
    strange = {name for name in needs if not name.startswith("llvm.")} - _C_LIBRARY
    if strange or result.signature.return_type not in (types.none, types.int64):
        message = f"kernel {function.__name__} calls {sorted(strange)} and returns {result.signature.return_type}"
        raise RuntimeError(message)
    _, _, (code, _) = result.library.serialize_using_object_code()
    return result.fndesc.llvm_func_name, code


def _type(kind: str) -> Any:
    if kind.endswith("]"):
        return types.Array(getattr(types, kind[:-3]), int(kind[-2]), "C")
    return types.boolean if kind == "bool" else getattr(types, kind)


def _prepare_helpers() -> None:
    """In every file of kernels, what numba knows takes the place of the helpers: functions find each other as globals."""
    for name, module in list(sys.modules.items()):
        if name.startswith("lshdup.kernels."):
            for key, value in list(vars(module).items()):
                if isinstance(value, Helper):
                    setattr(module, key, _made(value))


_known: dict[int, Any] = {}


def _made(helper: Helper) -> Any:
    if id(helper) not in _known:
        if helper.make == "instruction":
            made: Any = globals()[f"_{helper.function.__name__}"]
        else:
            njit: Any = numba.njit
            made = njit(nogil=True, error_model="numpy", forceinline=True, _nrt=False)(helper.function)
        _known[id(helper)] = (made, helper)  # the helper too: its id must stay its own
    return _known[id(helper)][0]


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
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), codegen
