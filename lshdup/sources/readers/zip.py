"""Zip archives: the directory at the end, and the members, stored or deflated.

The directory is read here and not by `zipfile`, which decodes names, refuses the whole archive for
one wrong name, and takes ten times the time and memory a member.
"""

import os
import stat
import struct
import zlib
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from lshdup.base.frozen import dataclass
from lshdup.base.ragged import StringTable
from lshdup.base.skipped import Reason
from lshdup.base.system import pread
from lshdup.sources.files import Buffer, read_spans
from lshdup.sources.readers.members import (
    Contents,
    Members,
    inner_path,
    join_contents,
    most_unpacked,
    refused_name,
    too_large_unpacked,
)
from lshdup.sources.records import RecordError, RecordFields, RecordList

#: Records of the format (APPNOTE.TXT 4.3): the end of the directory, what leads to the larger end
#: of an archive with more members or bytes, this end, a directory's entry, and a member's header.
_END, _LOCATOR = struct.Struct("<4s4H2LH"), struct.Struct("<4sLQL")
_END_64, _ENTRY = struct.Struct("<4sQ2H2L4Q"), struct.Struct("<4s6H3L5H2L")
_HEADER = struct.Struct("<4s5H3L2H")

#: Behind the last record is a comment of at most so many bytes, like names and extra fields.
_LONGEST_FIELD = (1 << 16) - 1

_STORED, _DEFLATED = 0, 8
_IS_ENCRYPTED, _IS_UTF8 = 1, 1 << 11
_IN_EXTRA = (1 << 32) - 1  # a number that is in the extra field for 64 bits
_UNIX = 3


@dataclass(frozen=True)
class _Directory:
    """The n members of an archive, in the order of their bytes.

    names : n names.
    starts : int64 array of shape (n + 1,), first byte of each header, and of the directory.
    order : int64 array of shape (n,), place of each in the directory.
    sizes, packed, methods, checksums, flags, modes : int64 arrays of shape (n,); modes are those
        of Unix, or 0.
    """

    names: StringTable
    starts: NDArray[np.int64]
    order: NDArray[np.int64]
    sizes: NDArray[np.int64]
    packed: NDArray[np.int64]
    methods: NDArray[np.int64]
    checksums: NDArray[np.int64]
    flags: NDArray[np.int64]
    modes: NDArray[np.int64]


def list_records(file: int, fields: RecordFields, longest: int) -> RecordList:
    """Return the members of an open archive. Raises RecordError if it is damaged, or a bomb.

    Parameters
    ----------
    file : descriptor of the archive.
    fields : which members are documents.
    longest : members of more bytes are skipped.

    """
    found = _directory_of(file)
    most = most_unpacked(os.fstat(file).st_size, longest)
    if found.sizes.sum(dtype=np.float64) > most:  # integers could overflow
        raise too_large_unpacked(most, longest)
    members = Members(longest)
    paths = list(found.names)
    for row in np.argsort(found.order).tolist():
        if paths[row].endswith(b"/"):
            continue
        number, name = int(found.order[row]) + 1, inner_path(paths[row])
        if refused := _refusal(found, row, name, fields):
            members.skip(number, name, *refused)
        else:
            members.add(number, int(found.starts[row]), int(found.sizes[row]), name)
    return members.listed()


def read_members(file: int, starts: NDArray[np.int64], buffer: Buffer) -> Contents:
    """Return the bytes of members of an open archive, as `jsonlines.read_texts` does.

    starts : int64 array, ascending, first bytes of the headers.
    """
    found = _directory_of(file)
    rows = np.searchsorted(found.starts, starts, side="right") - 1
    if not np.array_equal(found.starts[rows], starts) or rows.max() >= len(found.order):
        raise RecordError(Reason.CHANGED, "its archive is another one now")
    # No member reads the bytes of the next one: overlapping members make the worst bombs.
    most = _HEADER.size + 2 * _LONGEST_FIELD + found.packed[rows]
    spans = np.minimum(found.starts[rows + 1] - starts, most)
    data, places = read_spans(file, starts, spans, buffer)
    view = data.data
    each = zip(rows.tolist(), places.tolist(), spans.tolist(), strict=True)
    return join_contents(
        ((row, view[place : place + span]) for row, place, span in each),
        lambda member: _content(found, *member),
    )


def _content(found: _Directory, row: int, span: memoryview) -> bytes:
    """Return the content of a member, from the bytes of its header on. Raises RecordError."""
    size, content = int(found.sizes[row]), None
    try:
        signature, *_, name, extra = _HEADER.unpack_from(span)
        start = _HEADER.size + name + extra
        packed = span[start : start + int(found.packed[row])]
        if signature == b"PK\x03\x04" and len(packed) == found.packed[row]:
            content = (
                packed.tobytes()
                if found.methods[row] == _STORED
                else zlib.decompressobj(-zlib.MAX_WBITS).decompress(packed, size + 1)
            )
    except (zlib.error, struct.error) as error:
        raise RecordError(Reason.DAMAGED, str(error)) from None
    if content is None:
        detail = "its header is not where the directory says, or it overlaps the next member"
        raise RecordError(Reason.DAMAGED, detail)
    if len(content) != size or zlib.crc32(content) != found.checksums[row]:
        raise RecordError(Reason.DAMAGED, "its content is not what the directory says")
    return content


def _refusal(
    found: _Directory, row: int, name: bytes, fields: RecordFields
) -> tuple[Reason, str] | None:
    mode, method = int(found.modes[row]), int(found.methods[row])
    if stat.S_ISLNK(mode):
        return Reason.LINK, ""
    if stat.S_IFMT(mode) not in (0, stat.S_IFREG):
        return Reason.SPECIAL, ""
    if refused := refused_name(name, hidden=fields.hidden):
        return refused
    if found.flags[row] & _IS_ENCRYPTED:
        return Reason.ENCRYPTED, ""
    if method not in (_STORED, _DEFLATED):
        return Reason.FORMAT, f"compressed by method {method} in a zip archive"
    if found.starts[row] == found.starts[row + 1]:
        return Reason.DAMAGED, "it has the bytes of another member"
    return None


# --- the directory --------------------------------------------------------------------------------


def _directory_of(file: int) -> _Directory:
    """Return the directory of an open archive, which is read once while it does not change."""
    status = os.fstat(file)
    key = status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
    return _read_directory(_Opened(file, key))


class _Opened:
    """An open archive that is equal to another one if both are the same file, unchanged."""

    def __init__(self, file: int, key: tuple[int, ...]) -> None:
        self.file, self.size, self._key = file, key[2], key

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Opened) and self._key == other._key


@lru_cache(8)
def _read_directory(archive: _Opened) -> _Directory:
    """Read the directory of an archive. Raises RecordError if it is damaged."""
    try:
        start, size, shift = _find_directory(archive)
        return _parse_directory(pread(archive.file, size, start), start, shift)
    except (struct.error, ValueError, OverflowError) as error:
        raise RecordError(Reason.DAMAGED, f"its directory is damaged: {error}") from None


def _find_directory(archive: _Opened) -> tuple[int, int, int]:
    """Return where the directory begins, its bytes, and what stands before the archive."""
    behind = min(archive.size, _END.size + _LONGEST_FIELD)
    tail = pread(archive.file, behind, archive.size - behind)
    at = tail.rfind(b"PK\x05\x06")
    if at < 0:
        raise RecordError(Reason.DAMAGED, "no directory at its end: cut off?")
    end = archive.size - behind + at
    *_, size, offset, _ = _END.unpack_from(tail, at)
    locator = pread(archive.file, _LOCATOR.size, max(end - _LOCATOR.size, 0))
    if locator.startswith(b"PK\x06\x07"):
        _, _, there, _ = _LOCATOR.unpack(locator)
        for place in (there, end - _LOCATOR.size - _END_64.size):  # the second: shifted
            larger = pread(archive.file, _END_64.size, place) if 0 <= place < end else b""
            if larger.startswith(b"PK\x06\x06"):
                *_, size, offset = _END_64.unpack(larger)
                end = place
                break
    start = end - size
    if start < offset:
        message = f"it begins at byte {start}, not at {offset}"
        raise ValueError(message)
    return start, size, start - offset


def _parse_directory(data: bytes, end: int, shift: int) -> _Directory:
    rows: list[tuple[int, ...]] = []
    names: list[bytes] = []
    at = 0
    while at < len(data):
        (
            signature, version, _, flags, method, _, _, checksum, packed, size, name_size,
            extra_size, comment_size, _, _, attributes, start,
        ) = _ENTRY.unpack_from(data, at)  # fmt: skip
        if signature != b"PK\x01\x02":
            message = f"no entry at byte {at} of it"
            raise ValueError(message)
        at += _ENTRY.size
        name, extra = data[at : at + name_size], data[at + name_size : at + name_size + extra_size]
        at += name_size + extra_size + comment_size
        if _IN_EXTRA in (size, packed, start):
            size, packed, start = _large_numbers(extra, size, packed, start)
        mode = attributes >> 16 if version >> 8 == _UNIX else 0
        if start + shift >= end:
            message = f"a member begins at byte {start}"
            raise ValueError(message)
        rows.append((start + shift, size, min(packed, end), method, checksum, flags, mode))
        names.append(_decoded(name, flags))
    table = np.array(rows, np.int64).reshape(-1, 7)
    order = np.argsort(table[:, 0], kind="stable")
    starts, *columns = np.ascontiguousarray(table[order].T)
    members = StringTable.from_strings(names).take(order)
    return _Directory(members, np.append(starts, end), order, *columns)


def _large_numbers(extra: bytes, *numbers: int) -> tuple[int, ...]:
    """Return numbers of which some are in the extra field for 64 bits, in this order."""
    at = 0
    while at + 4 <= len(extra):
        tag, size = struct.unpack_from("<HH", extra, at)
        if tag == 1:
            values = iter(struct.unpack_from(f"<{size // 8}Q", extra, at + 4))
            return tuple(next(values, each) if each == _IN_EXTRA else each for each in numbers)
        at += 4 + size
    return numbers


def _decoded(name: bytes, flags: int) -> bytes:
    """Return a name as UTF-8 if it is that, or was written by the rule; else its bytes."""
    if flags & _IS_UTF8 or name.isascii():
        return name
    try:
        name.decode()
    except UnicodeDecodeError:
        return name.decode("cp437").encode()
    return name
