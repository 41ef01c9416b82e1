"""Lines of id lists as documents: a name, then integers (R4, R5)."""

import os
from collections.abc import Callable

import numpy as np

from lshdup.base.ragged import StringTable
from lshdup.base.skipped import Reason, Skipped
from lshdup.sources.document_list import DocumentList
from lshdup.sources.locations import Locations
from lshdup.sources.records import Kind


def list_lines(files: DocumentList, on_skipped: Callable[[Skipped], None]) -> DocumentList:
    """Return the lines of id lists as documents: names, and where the ids of each are."""
    found: dict[bytes, tuple[int, int, int]] = {}
    for at, path in enumerate(files.names):
        try:
            with open(path, "rb") as lines:  # noqa: PTH123 (bytes path)
                start = 0
                for number, line in enumerate(lines, 1):
                    name, body = _split_line(line)
                    if name in found:
                        detail = f"line {number} of {os.fsdecode(path)}"
                        on_skipped(Skipped(name, Reason.REPEATED, detail))
                    elif name:
                        found[name] = (at, start + body, len(line) - body)
                    start += len(line)
        except OSError as error:
            on_skipped(Skipped.because(path, error))
    names = StringTable.from_strings(sorted(found))
    rows = np.array([found[name] for name in names], np.int64).reshape(-1, 3)
    file, starts, lengths = np.ascontiguousarray(rows.T)
    kinds = np.full(len(files), Kind.IDS, np.uint8)
    locations = Locations(files.names, kinds, file, starts, lengths, np.zeros(len(rows), np.int64))
    return DocumentList(
        names, files.sizes[file], files.mtimes[file], locations, max_bytes=files.max_bytes
    )


def _split_line(line: bytes) -> tuple[bytes, int]:
    """Return the name in a line of an id list, and the position where its ids begin."""
    parts = line.split(None, 1)
    if not parts:
        return b"", 0
    return parts[0], line.index(parts[0]) + len(parts[0])
