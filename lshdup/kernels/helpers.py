"""Functions and instructions that every kernel may call, and the types of arrays in their signatures."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

U8 = NDArray[np.uint8]
U32 = NDArray[np.uint32]
I64 = NDArray[np.int64]
U64 = NDArray[np.uint64]


F = TypeVar("F", bound=Callable[..., Any])


class Helper:
    """A small function that kernels call, copied into every loop that does; or a machine instruction that NumPy has no name for."""

    def __init__(self, function: Callable[..., Any], make: str) -> None:
        self.function = function
        self.make = make
        self.__doc__ = function.__doc__

    def __call__(self, *args: Any) -> Any:
        """As Python; kernels never come here."""
        return self.function(*args)


def inlined(function: F) -> F:
    """A helper, copied into the kernels that call it."""
    return cast("F", Helper(function, "inlined"))


def instruction(function: F) -> F:
    """A helper whose body is in compiling.py, under the same name."""
    return cast("F", Helper(function, "instruction"))


@instruction
def load64(buffer: Any, index: Any) -> Any:
    """Eight bytes of a contiguous uint8 array from `index` on, as one little-endian uint64, whatever the alignment."""
    raise NotImplementedError


@instruction
def count_trailing_zeros(word: Any) -> Any:
    """Index of the lowest set bit of a uint64, as an int64; 64 if none is set."""
    raise NotImplementedError


@instruction
def count_ones(word: Any) -> Any:
    """How many bits of a uint64 are set, as a uint64."""
    raise NotImplementedError


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


@inlined
def scatter_by(span: np.uint64, n: int) -> tuple[np.uint64, int]:
    """How to scatter n numbers of a range by their leading bits: (bits to shift out of number - smallest, places), places >= n."""
    bits = np.uint64(0)
    while (1 << bits) < n:
        bits += np.uint64(1)
    shift = np.uint64(0)
    while shift < 63 and (span >> shift) >> bits:
        shift += np.uint64(1)
    return shift, 1 << np.int64(bits)


#: Buffers of text end with this many bytes that belong to no document, so that kernels may load whole words past the end.
PADDING = 64
