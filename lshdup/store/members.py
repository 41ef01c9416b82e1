"""Declarations of what the use of an artifact needs of its arrays, and the check of them."""

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from lshdup.base.frozen import dataclass
from lshdup.base.ragged import StringTable
from lshdup.errors import ArtifactError, ParameterError
from lshdup.store.checksums import is_lazy
from lshdup.store.npz import Array, Artifact

#: Errors of an artifact whose header or arrays do not fit.
DAMAGED = (KeyError, TypeError, ValueError, IndexError, ParameterError)


@contextlib.contextmanager
def damage_explained(path: Path, remedy: str) -> Iterator[None]:
    """Raise ArtifactError instead of the errors of an artifact that does not fit."""
    try:
        yield
    except DAMAGED as error:
        message = f"{path} is damaged ({error})"
        raise ArtifactError(message, remedy) from None


def refuse_if(wrong: object, message: str) -> None:
    """Raise ValueError if a condition holds."""
    if wrong:
        raise ValueError(message)


@dataclass(frozen=True)
class Member:
    """What the use of an array of an artifact needs of it.

    dtype : its type; kernels take nothing else.
    shape : numbers, or names of sizes. A size that is not known yet is that of this array.
    below : values are indices of so many things: a number, or the name of a size.
    is_ascending : each value is larger than the one before.
    offsets_of : the array of whose runs it holds the offsets, one more than `shape` says.
    """

    dtype: type
    shape: tuple[int | str, ...]
    below: int | str | None = None
    is_ascending: bool = False
    offsets_of: str = ""


#: The members of an artifact by name, or some that are there together.
Declaration = dict[str, Member]


def declare_columns(size: str, **dtypes: type) -> Declaration:
    """Return the declaration of arrays of one size, of any values."""
    return {name: Member(dtype, (size,)) for name, dtype in dtypes.items()}


def declare_sets(size: str) -> Declaration:
    """Return the declaration of so many sets, as of `RaggedSets`."""
    offsets = Member(np.int64, (size,), offsets_of="values")
    return {"values": Member(np.uint64, ("elements",)), "offsets": offsets}


def declare_strings(name: str, size: str) -> Declaration:
    """Return the declaration of a table of so many strings; `table_of` returns the table."""
    blob, offsets = f"{name}_blob", f"{name}_offsets"
    lengths = Member(np.int64, (size,), offsets_of=blob)
    return {blob: Member(np.uint8, (f"bytes of {name}",)), offsets: lengths}


def table_of(arrays: Mapping[str, Array], name: str) -> StringTable:
    """Return a table of strings from the arrays that `declare_strings` declares."""
    return StringTable(arrays[f"{name}_blob"], arrays[f"{name}_offsets"])


def check_arrays(
    artifact: Artifact, declaration: Declaration, sizes: dict[str, int]
) -> dict[str, Array]:
    """Return the declared arrays. Raise KeyError or ValueError if one is not as its use needs.

    sizes : what is known of them; the others are added.

    Of an array that is verified lazily only the ends are looked at: a query reads few of its pages,
    and looks at the values that it takes.
    """
    arrays = {name: artifact.arrays[name] for name in declaration}
    for name, member in declaration.items():
        array, is_whole = arrays[name], not is_lazy(arrays[name])
        fits = array.dtype == member.dtype and array.ndim == len(member.shape)
        refuse_if(not fits, f"{name} do not fit")
        for size, found in zip(member.shape, array.shape, strict=True):
            found -= member.offsets_of != ""
            known = size if isinstance(size, int) else sizes.setdefault(size, found)
            refuse_if(found != known or found < 0, f"{name} do not fit")
        if member.offsets_of:
            ends = array[0] == 0 and array[-1] == len(arrays[member.offsets_of])
            ascend = not is_whole or (array[1:] >= array[:-1]).all()
            refuse_if(not (ends and ascend), f"{name} do not fit")
        if member.below is not None and is_whole and array.size:
            below = member.below if isinstance(member.below, int) else sizes[member.below]
            inside = int(array.min()) >= 0 and int(array.max()) < below
            refuse_if(not inside, f"{name} has numbers of what is not there")
        if member.is_ascending and is_whole:
            refuse_if(not (array[1:] > array[:-1]).all(), f"{name} are not in order")
    return arrays
