"""Names of the documents of a store, without NumPy: fast enough for a shell that completes a word. Called by cli/completion.py."""

import json
import os
import zipfile
from array import array
from bisect import bisect_left
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
                at = bisect_left(self, name[:slash] + b"0", at)  # what follows all that begins with this and a slash
        return found

    def with_file(self, start: bytes) -> list[bytes]:
        """Names whose last part begins so."""
        found: list[bytes] = []
        at = self._blob.find(b"/" + start)
        while at >= 0 and len(found) < MOST:
            index = max(0, bisect_left(self._offsets, at + 1) - 1)
            name = self[index]
            if name.rfind(b"/") == at - self._offsets[index]:
                found.append(name)
            at = self._blob.find(b"/" + start, at + 1)
        return found


def load(store: Path) -> tuple[NameTable, bytes] | None:
    """The names of the last run, and the way from here to where they start from (empty: here); None without a store that can be read."""
    files = [path for kind in ("signatures", "shingles") if (path := store / f"{kind}.npz").is_file()]
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
    size = int.from_bytes(data[8:10], "little") + 10 if data[6] == 1 else int.from_bytes(data[8:12], "little") + 12
    return data[size:]
