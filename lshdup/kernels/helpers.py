"""Array types of kernel signatures, and the functions and instructions that kernels share."""

from collections.abc import Callable
from typing import Annotated, Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

U8 = NDArray[np.uint8]
U16 = NDArray[np.uint16]
U32 = NDArray[np.uint32]
U64 = NDArray[np.uint64]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
F64 = NDArray[np.float64]
U8Matrix = Annotated[U8, 2]
U32Matrix = Annotated[U32, 2]
U64Matrix = Annotated[U64, 2]
I64Matrix = Annotated[I64, 2]

#: Bytes behind the last document in a buffer of text: kernels load whole words past the end.
PADDING = 64

F = TypeVar("F", bound=Callable[..., Any])


class Helper:
    """A small function for use in kernels.

    kind : "inlined", copied into every kernel that calls it; "instruction", a machine instruction
        without a NumPy name, whose body is in native/lowering.py; or "C", a function of the C
        library.
    """

    def __init__(self, function: Callable[..., Any], kind: str) -> None:
        self.function = function
        self.kind = kind
        self.__doc__ = function.__doc__

    def __call__(self, *args: Any) -> Any:
        """Run the function as Python; kernels never do."""
        return self.function(*args)


def inlined(function: F) -> F:
    """Copy the function into the kernels that call it."""
    return cast("F", Helper(function, "inlined"))


def instruction(function: F) -> F:
    """Replace the function, within kernels, by its namesake in native/lowering.py."""
    return cast("F", Helper(function, "instruction"))


def c_function(name: str, result: str, *arguments: str) -> Any:
    """Return a C function for kernels, by the numba types of its result and arguments.

    A pointer is the address, an int64.
    """
    return Helper(lambda: (name, result, *arguments), "C")


@instruction
def load64(buffer: Any, index: Any) -> Any:
    """Return eight bytes of a uint8 array from `index` on as one little-endian uint64."""
    raise NotImplementedError


@instruction
def within(buffer: Any, index: Any, ones: Any, low: Any, count: Any) -> Any:
    """Return a bit for each of 64 bytes of a uint8 array from `index` on, as one uint64.

    A bit is set where low <= byte | ones < low + count.
    """
    raise NotImplementedError


@instruction
def fold_block(source: Any, index: Any, target: Any, at: Any, shift: Any) -> Any:
    """Copy the ASCII characters of 64 bytes from source[index] on to target[at] on.

    Add `shift` to those from "A" to "Z". Other bytes of the target stay as they are.
    """
    raise NotImplementedError


@instruction
def count_trailing_zeros(word: Any) -> Any:
    """Return the index of the lowest set bit of a uint64, as an int64; 64 if none is set."""
    raise NotImplementedError


@instruction
def count_ones(word: Any) -> Any:
    """Return the number of set bits of a uint64, as a uint64."""
    raise NotImplementedError


@instruction
def folded_product(a: Any, b: Any) -> Any:
    """Return the low half of the 128-bit product of two uint64 minus the high half, as a uint64.

    This is the product modulo 2^64 + 1, but for the wrap below 0.
    """
    raise NotImplementedError


#: Stafford's variant 13 of the MurmurHash3 finaliser; both are odd, so each step is a bijection.
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)


def mix64_array(x: np.uint64) -> np.uint64:
    """Scramble 64 bits bijectively: Stafford's variant 13, as in SplitMix64.

    Outside of kernels, where it stays Python, it also takes uint64 arrays.
    """
    x ^= x >> np.uint64(30)
    x *= _MIX_1
    x ^= x >> np.uint64(27)
    x *= _MIX_2
    return x ^ (x >> np.uint64(31))


mix64 = inlined(mix64_array)


@inlined
def first_from(keys: U64 | I64, key: np.uint64 | int, place: int) -> int:
    """Return the first place of ascending keys that are at least `key`.

    place : any place; one that is near spares looks.
    """
    low = high = place
    step = 1
    while high < len(keys) and keys[high] < key:
        low = high + 1
        high += step
        step *= 2
    step = 1
    while low > 0 and keys[low - 1] >= key:
        high = low - 1
        low -= step
        step *= 2
    low, high = max(low, 0), min(high, len(keys))
    while low < high:
        place = (low + high) // 2
        if keys[place] < key:
            low = place + 1
        else:
            high = place
    return low
