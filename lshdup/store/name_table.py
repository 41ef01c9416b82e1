"""Names of the documents of a store, without NumPy: fast enough for a shell that completes a word. Called by cli/completion.py."""

import json
import os
import zipfile
from array import array
from bisect import bisect_left, bisect_right
from pathlib import Path

#: More names than this help nobody to choose.
MOST = 500


class NameTable:
    """Names in byte order, as they lie in an artifact: one blob and where each begins."""

    def __init__(self, blob: bytes, offsets: "array[int]") -> None:
        self._blob = blob
        self._offsets = offsets

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def __getitem__(self, index: int) -> bytes:
        if not 0 <= index < len(self):
            raise IndexError(index)
        return self._blob[self._offsets[index] : self._offsets[index + 1]]

    def beginning_with(self, start: bytes) -> list[bytes]:
        """Names that begin so, up to the next slash, each once: as a shell completes paths.

        >>> table = NameTable(b"d/a.txtd/ed/s/ad/s/b", array("q", [0, 7, 10, 15, 20]))
        >>> table.beginning_with(b"d/")
        [b'd/a.txt', b'd/e', b'd/s/']
        """
        found: list[bytes] = []
        at = bisect_left(self, start)
        while at < len(self) and len(found) < MOST and (name := self[at]).startswith(start):
            slash = name.find(b"/", len(start))
            if slash < 0:
                found.append(name)
                at += 1
            else:
                found.append(name[: slash + 1])
                at = bisect_left(
                    self, name[:slash] + b"0", at
                )  # what follows all that begins with this and a slash
        return found

    def within(self, start: bytes) -> list[bytes]:
        """Names in which something begins so behind a slash, up to the next slash, each once; if there are none, names that end so. What
        ends a name stands for it where no other name ends so.

        >>> table = NameTable(b"d/a.txtd/ed/s/ad/s/b", array("q", [0, 7, 10, 15, 20]))
        >>> table.within(b"a"), table.within(b"s/"), table.within(b".txt")
        ([b'd/a.txt', b'd/s/a'], [b'd/s/a', b'd/s/b'], [b'd/a.txt'])
        """
        found: list[bytes] = []
        wanted = b"/" + start
        at = self._blob.find(wanted)
        while at >= 0 and len(found) < MOST:
            index = self._holding(at)
            name, place = self[index], at - self._offsets[index]
            after = at + 1
            if name.startswith(wanted, place):  # else it begins in one name and ends in the next
                slash = name.find(b"/", place + len(wanted))
                found.append(name if slash < 0 else name[: slash + 1])
                if slash >= 0:  # the next name that does not lie in this folder
                    after = self._offsets[bisect_left(self, name[:slash] + b"0", index)]
            at = self._blob.find(wanted, after)
        return found or self._ending_with(start)

    def _ending_with(self, end: bytes) -> list[bytes]:
        found: list[bytes] = []
        at = self._blob.find(end)
        while at >= 0 and len(found) < MOST:
            index = self._holding(at)
            if self._offsets[index + 1] == at + len(end) and self._offsets[index] <= at:
                found.append(self[index])
            at = self._blob.find(end, at + 1)
        return found

    def _holding(self, at: int) -> int:
        """The number of the name that a byte of the blob is in."""
        return bisect_right(self._offsets, at) - 1


def load(store: Path) -> tuple[NameTable, bytes] | None:
    """The names of the last run, and the way from here to where they start from (empty: here); None without a store that can be read."""
    files = [
        path for kind in ("signatures", "shingles") if (path := store / f"{kind}.npz").is_file()
    ]
    try:
        newest = max(files, key=lambda path: path.stat().st_mtime_ns)
        with zipfile.ZipFile(newest) as members:
            header = json.loads(_array(members, "header"))
            offsets = array("q")
            offsets.frombytes(_array(members, "names_offsets"))
            table = NameTable(_array(members, "names_blob"), offsets)
        home = os.path.normpath(store.resolve() / header["base"])
    except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile):
        return None
    here = os.path.relpath(home)
    return table, b"" if here == "." else os.fsencode(here) + b"/"


def _array(members: zipfile.ZipFile, name: str) -> bytes:
    """The numbers of a member: what comes behind the header of an .npy file."""
    data = members.read(f"{name}.npy")
    if data[:6] != b"\x93NUMPY":
        raise ValueError(name)
    size = (
        int.from_bytes(data[8:10], "little") + 10
        if data[6] == 1
        else int.from_bytes(data[8:12], "little") + 12
    )
    return data[size:]
