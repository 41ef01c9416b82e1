"""Members of archives: their names, each once and below the archive, and their contents."""

from collections.abc import Callable, Iterable
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from lshdup.base.ragged import StringTable
from lshdup.base.skipped import Reason
from lshdup.kernels.helpers import PADDING
from lshdup.sources.files import Buffer, read_spans
from lshdup.sources.records import RecordError, RecordList, SkippedRecord, is_archive

#: An archive with members of more bytes than --max-bytes in all, and than so many times its own
#: size, is taken for a bomb. Texts shrink to a fifth, log files to a fiftieth.
_MOST_TIMES = 200

#: No name has more bytes: systems take 4096, zip 65535.
LONGEST_NAME = 1 << 16

T = TypeVar("T")


class Members:
    """The members of an archive, added one after the other.

    longest : members of more bytes are skipped.
    """

    def __init__(self, longest: int) -> None:
        self._longest = longest
        self._rows: list[tuple[int, int, int]] = []
        self._names: list[bytes] = []
        self._skipped: list[SkippedRecord] = []

    def add(self, number: int, start: int, size: int, name: bytes) -> None:
        """Add a document: its number from 1, where it is, its bytes, and its name."""
        if len(name) > LONGEST_NAME:
            detail = f"a name of more than {LONGEST_NAME} bytes"
            self._skipped.append(SkippedRecord(number, Reason.UNREADABLE, detail))
        elif size > self._longest:
            self._skipped.append(SkippedRecord.too_large(number, size, self._longest, name))
        else:
            self._rows.append((number, start, size))
            self._names.append(name.replace(b"\0", b""))

    def skip(self, number: int, name: bytes, reason: Reason, detail: str) -> None:
        """Add a member that is no document, and why."""
        name = name if len(name) <= LONGEST_NAME else b""
        self._skipped.append(SkippedRecord(number, reason, detail, name))

    def damaged(self, number: int, detail: str) -> None:
        """Add what stands from member `number` on, which cannot be read.

        Raises RecordError if nothing stands before.
        """
        if not (self._rows or self._skipped):
            raise RecordError(Reason.DAMAGED, detail)
        self._skipped.append(SkippedRecord(number, Reason.DAMAGED, f"the rest of it: {detail}"))

    def listed(self) -> RecordList:
        """Return all members."""
        table = np.array(self._rows, np.int64).reshape(-1, 3)
        names = StringTable.from_strings(distinct_names(self._names))
        numbers, starts, sizes = np.ascontiguousarray(table.T)
        return RecordList(numbers, starts, sizes, names, self._skipped)


#: What `RecordFiles.texts` returns.
Contents = tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64], dict[int, RecordError]]


def read_contents(
    file: int,
    starts: NDArray[np.int64],
    lengths: NDArray[np.int64],
    buffer: Buffer,
    read: Callable[[bytes], bytes],
) -> Contents:
    """Return the contents of parts of an open file.

    Parameters
    ----------
    file : descriptor of the file, unpacked.
    starts, lengths : int64 arrays of shape (n,), ascending, bytes.
    buffer : memory to read into.
    read : returns the content of a part. Raises RecordError.

    """
    data, places = read_spans(file, starts, lengths, buffer)
    view = data.data
    each = zip(places.tolist(), lengths.tolist(), strict=True)
    return join_contents((view[at : at + size].tobytes() for at, size in each), read)


def join_contents(members: Iterable[T], read: Callable[[T], bytes]) -> Contents:
    """Return the contents of members as `RecordFiles.texts` does.

    members : members as they are in the archive.
    read : returns the content of a member. Raises RecordError.
    """
    contents: list[bytes] = []
    failed: dict[int, RecordError] = {}
    for at, member in enumerate(members):
        try:
            contents.append(read(member))
        except RecordError as error:
            failed[at] = error
            contents.append(b"")
    sizes = np.fromiter(map(len, contents), np.int64, len(contents))
    text = np.frombuffer(bytearray().join([*contents, bytes(PADDING)]), np.uint8)
    return text, np.cumsum(sizes) - sizes, sizes, failed


def inner_path(name: bytes) -> bytes:
    """Return the path of a member: relative, without ``.``, ``..``, empty parts and NUL.

    >>> inner_path(b"/etc/../a//b.txt"), inner_path(b"./c"), inner_path(b"..")
    (b'etc/a/b.txt', b'c', b'')
    """
    parts = name.replace(b"\0", b"").split(b"/")
    return b"/".join(part for part in parts if part not in (b"", b".", b".."))


def distinct_names(names: Iterable[bytes]) -> list[bytes]:
    """Return names of which each is different: of equal ones the second gets ``:2``, and so on.

    An empty name becomes a number. Cost: linear in the number of names.

    >>> distinct_names([b"a", b"b", b"a", b"a:2", b"a", b""])
    [b'a', b'b', b'a:3', b'a:2', b'a:4', b'6']
    """
    names = [name or b"%d" % number for number, name in enumerate(names, 1)]
    taken, counts = set(names), dict.fromkeys(names, 0)
    for at, name in enumerate(names):
        counts[name] += 1
        if counts[name] > 1:
            while b"%s:%d" % (name, counts[name]) in taken:
                counts[name] += 1
            names[at] = b"%s:%d" % (name, counts[name])
    return names


def refused_name(path: bytes, *, hidden: bool) -> tuple[Reason, str] | None:
    """Return why a member with this path is skipped, or None.

    hidden : whether names that begin with a dot are taken.
    """
    if not hidden and (b"/" + path).find(b"/.") >= 0:
        return Reason.HIDDEN, ""
    if is_archive(path):
        return Reason.NESTED, "unpack the archive around it to compare what is in it"
    return None


def most_unpacked(packed: int, longest: int) -> int:
    """Return how many bytes an archive may hold.

    packed : bytes of the archive.
    longest : bytes that one member may have.
    """
    return max(longest, _MOST_TIMES * packed)


def too_large_unpacked(most: int, longest: int) -> RecordError:
    """Return the error for an archive that holds more than `most` bytes."""
    detail = (
        f"more than {most} bytes when unpacked: above {_MOST_TIMES} times its size and above "
        f"--max-bytes, which is {longest}"
    )
    return RecordError(Reason.TOO_LARGE, detail)
