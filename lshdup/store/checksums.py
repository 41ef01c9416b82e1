"""Checksums of blocks of arrays, so that who looks up a few rows of a large file need check those only. Called by artifacts.py."""

import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lshdup.errors import ArtifactError
from lshdup.utils.ragged import distinct, ranges

#: Bytes that have a checksum together: few enough to be looked at for one of them, so many that the checksums are nothing beside them.
BLOCK = 16 << 10

Array = NDArray[Any]


def block_checksums(arrays: Mapping[str, Array]) -> NDArray[np.uint32]:
    """CRC-32 of each BLOCK bytes of each (contiguous) array, array after array."""
    sums: list[int] = []
    for array in arrays.values():
        view = array.reshape(-1).view(np.uint8).data
        sums += [zlib.crc32(view[at : at + BLOCK]) for at in range(0, len(view), BLOCK)]
    return np.array(sums, np.uint32)


class CheckedBlocks:
    """The `ragged.Check` of arrays that are mapped from a file and have not been looked at: checks the blocks that are used, once each.

    Arrays of which it has not been told are trusted. It raises ArtifactError, naming the file and how it is made anew.
    """

    def __init__(self, path: Path, remedy: str) -> None:
        self._path, self._remedy = path, remedy
        self._members: list[tuple[int, memoryview, list[int], set[int]]] = []

    def add(self, array: Array, checksums: NDArray[np.uint32]) -> None:
        """A C-contiguous array that is not to be trusted, and what the checksums of its blocks must be."""
        view = array.reshape(-1).view(np.uint8).data
        self._members.append((_address(array), view, checksums.tolist(), set()))

    def __call__(
        self,
        array: Array,
        start: int | NDArray[np.int64] | None = None,
        stop: int | NDArray[np.int64] | None = None,
    ) -> None:
        if not self._members or not array.size:
            return
        address = _address(array)
        member = next(
            (each for each in self._members if each[0] <= address < each[0] + len(each[1])), None
        )
        if member is None:
            return
        begin, view, checksums, good = member
        offset, width = address - begin, array.strides[0]
        blocks: Iterable[int]
        if start is None or stop is None:
            blocks = range(offset // BLOCK, blocks_of(offset + array.nbytes))
        elif isinstance(start, np.ndarray):
            ends = np.clip(offset + stop * width, 0, len(view))
            starts = np.clip(offset + start * width, 0, ends)
            first = starts // BLOCK
            blocks = distinct(ranges(first, np.where(starts < ends, -(-ends // BLOCK) - first, 0)))[
                0
            ].tolist()
        else:
            end = min(max(offset + int(stop) * width, 0), len(view))
            blocks = range(max(offset + int(start) * width, 0) // BLOCK, blocks_of(end))
        for block in blocks:
            if block not in good:
                if zlib.crc32(view[block * BLOCK : (block + 1) * BLOCK]) != checksums[block]:
                    message = f"{self._path} is damaged (a block of it has a wrong checksum)"
                    raise ArtifactError(message, self._remedy)
                good.add(block)


def blocks_of(size: int) -> int:
    """How many blocks hold so many bytes."""
    return -(-size // BLOCK)


def _address(array: Array) -> int:
    address: int = array.__array_interface__["data"][0]
    return address
