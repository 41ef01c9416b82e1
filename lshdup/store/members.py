"""Members of an artifact with the types and shapes that they must have, or a ValueError."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lshdup.errors import ArtifactError, ParameterError
from lshdup.store.checksums import is_lazy
from lshdup.store.npz import Array, Artifact
from lshdup.utils.ragged import StringTable

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


def read_strings(artifact: Artifact, name: str) -> StringTable:
    """Return the table of strings with this name."""
    table = StringTable(artifact.arrays[f"{name}_blob"], artifact.arrays[f"{name}_offsets"])
    fits = is_column(table.blob, np.uint8) and are_offsets(table.offsets, len(table.blob))
    refuse_if(not fits, f"{name} do not fit")
    return table


def read_column(
    artifact: Artifact, name: str, dtype: type, n: int | None = None, *, below: int | None = None
) -> NDArray[Any]:
    """Return the array of shape (n,) with this name and type; n None: of any length.

    below : values are indices of so many things; what is mapped lazily is looked at where it is
        used, because a query reads few of its pages.
    """
    array = artifact.arrays[name]
    refuse_if(not is_column(array, dtype) or n not in (None, len(array)), f"{name} do not fit")
    if below is not None and len(array) and not is_lazy(array):
        inside = int(array.min()) >= 0 and int(array.max()) < below
        refuse_if(not inside, f"{name} has numbers of what is not there")
    return array


def read_indices(artifact: Artifact, name: str, n: int) -> NDArray[np.int64]:
    """Return the ascending indices of some of the n documents with this name: int64 array."""
    array = read_column(artifact, name, np.int64)
    ascending = len(array) == 0 or (
        array[0] >= 0 and array[-1] < n and bool((np.diff(array) > 0).all())
    )
    refuse_if(not ascending, f"{name} has documents that are not there")
    return array


def is_column(array: Array, kind: type) -> bool:
    """Return whether an array has one dimension and this type; kernels take nothing else."""
    return array.dtype == kind and array.ndim == 1


def are_offsets(offsets: Array, total: int) -> bool:
    """Return whether an array holds the offsets of runs that together have `total` values."""
    return bool(
        is_column(offsets, np.int64)
        and len(offsets)
        and offsets[0] == 0
        and offsets[-1] == total
        # A lazy array is not read whole: a query needs few of its offsets.
        and (is_lazy(offsets) or (np.diff(offsets) >= 0).all())
    )
