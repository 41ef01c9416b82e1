"""Files that `--split` cuts: a document begins at each line that matches."""

import os
import re

import numpy as np

from lshdup.base.forms import looks_like_html
from lshdup.base.skipped import Reason
from lshdup.base.system import pread
from lshdup.sources.readers.lines import begins_of_lines
from lshdup.sources.records import RecordFields, RecordList, SkippedRecord

#: A file with a NUL in so many bytes at its beginning is no text in lines.
_HEAD = 8192
#: How PDF and RTF files begin, which may hold no NUL; pieces of them would be no documents.
_WHOLE = (b"%PDF-", b"{\\rtf")


def list_records(file: int, fields: RecordFields, longest: int) -> RecordList | None:
    """Return the documents of an open file; None if no line matches, or it is no text in lines:
    binary, HTML, or an office document.

    What stands before the first line that matches is skipped.

    Parameters
    ----------
    file : descriptor of the file, unpacked.
    fields : with the pattern of the lines.
    longest : documents of more bytes are skipped; of a longer line only the beginning is looked at.

    """
    head = pread(file, _HEAD, 0)
    if b"\0" in head or head.startswith(_WHOLE) or looks_like_html(head, b""):
        return None
    matches = re.compile(os.fsencode(fields.split)).search
    size = os.fstat(file).st_size
    begins = [
        at for at, line in begins_of_lines(file, longest) if matches(line.removesuffix(b"\r"))
    ]
    if not begins:
        return None
    starts = np.array(begins, np.int64)
    lengths = np.diff(starts, append=size)
    skipped = [
        SkippedRecord.too_large(row + 1, int(lengths[row]), longest)
        for row in np.flatnonzero(lengths > longest).tolist()
    ]
    if pread(file, min(begins[0], _HEAD), 0).strip():
        skipped.insert(0, SkippedRecord(0, Reason.PREAMBLE))
    keep = np.flatnonzero(lengths <= longest)
    return RecordList(keep + 1, starts[keep], lengths[keep], None, skipped)
