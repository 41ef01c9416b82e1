"""The one way kernels are compiled, and the machine instructions NumPy has no name for.

Every kernel releases the GIL and is cached on disk, so that threads run side by side and only the first run on a machine
compiles. Called by the other files of this folder only.
"""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

F = TypeVar("F", bound=Callable[..., Any])


def _stamp() -> str:
    """What all kernels are compiled from: their sources."""
    digest = hashlib.blake2b(digest_size=16)
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


_STAMP = _stamp()


def kernel(function: F) -> F:
    """Compile on first call for the argument types met; cached on disk; runs without the GIL; integers wrap.

    Numba takes a cached kernel for current while the file it stands in is unchanged; but kernels call helpers in other files. So the
    stamp it compares is replaced by one of all sources: a change of any of them compiles all of them anew.
    """
    compiled: Any = numba.njit(nogil=True, error_model="numpy")(function)
    try:
        compiled.enable_caching()
    except RuntimeError:  # neither this folder nor the user's cache can be written: every run compiles
        return compiled  # type: ignore[no-any-return]
    compiled._cache._cache_file._source_stamp = _STAMP
    return compiled  # type: ignore[no-any-return]


def inlined(function: F) -> F:
    """For small helpers, which are copied into every loop that calls them."""
    compiled: F = numba.njit(nogil=True, error_model="numpy", forceinline=True)(function)
    return compiled


@intrinsic
def load64(typingctx: Any, buffer: Any, index: Any) -> Any:
    """Eight bytes of a contiguous uint8 array from `index` on, as one little-endian uint64, whatever the alignment."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, args[0])
        address = builder.gep(array.data, [args[1]])
        word = builder.load(builder.bitcast(address, ir.IntType(64).as_pointer()))
        word.align = 1
        return word

    return types.uint64(buffer, types.intp), codegen


@intrinsic
def count_trailing_zeros(typingctx: Any, word: Any) -> Any:
    """Index of the lowest set bit of a non-zero uint64, as an int64."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), codegen


#: The constants of the 64-bit finaliser by Pelle Evensen and David Stafford ("variant 13"); odd, so each step is a bijection.
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)


@inlined
def mix64(x: np.uint64) -> np.uint64:
    """Bijective scrambling of 64 bits (Stafford's variant 13 of the MurmurHash3 finaliser, as in SplitMix64)."""
    x ^= x >> np.uint64(30)
    x *= _MIX_1
    x ^= x >> np.uint64(27)
    x *= _MIX_2
    return x ^ (x >> np.uint64(31))


def on_first_compilation(callback: Callable[[], None]) -> None:
    """Call back once if a kernel has to be compiled in this process, because the cache on disk does not have it yet."""
    from numba.core import event

    told = False

    class Listener(event.Listener):
        def on_start(self, event: Any) -> None:
            nonlocal told
            if not told:
                told = True
                callback()

        def on_end(self, event: Any) -> None:
            pass

    register: Any = event.register
    register("numba:compile", Listener())
