"""Mailboxes (mbox): where their mails are, and the mails as they were before they were put in."""

import os
import re

import numpy as np
from numpy.typing import NDArray

from lshdup.base.mailbox import LOOKAHEAD, bare_mail, find_mails
from lshdup.base.ragged import StringTable
from lshdup.base.skipped import Reason
from lshdup.base.system import pread
from lshdup.kernels.helpers import PADDING
from lshdup.sources.files import Buffer, read_spans
from lshdup.sources.records import MESSAGE_ID, RecordFields, RecordList, SkippedRecord

#: Bytes read at a time to find where mails begin, and the first bytes of a mail that hold its id.
_SCAN_BYTES, _HEAD_BYTES = 1 << 22, 1 << 16
_ID = re.compile(rb"(?im)^message-id:[ \t\r\n]*<?([^\s>]+)>?")


def list_records(file: int, fields: RecordFields, longest: int) -> RecordList:
    """Return the mails of an open mailbox.

    A mail begins at its `From ` line and ends where the next mail begins. Cost: one pass. Memory:
    24 bytes a mail, and the ids.

    Parameters
    ----------
    file : descriptor of the mailbox.
    fields : names of text and id; with the id field Message-ID, mails have names.
    longest : mails of more bytes are skipped.

    """
    begins = _find_starts(file)
    starts, lengths = begins[:-1], np.diff(begins)
    numbers = np.arange(1, len(starts) + 1)
    skipped = [
        SkippedRecord.too_large(at + 1, int(lengths[at]), longest)
        for at in np.flatnonzero(lengths > longest).tolist()
    ]
    keep, names = lengths <= longest, None
    if fields.id.lower() == MESSAGE_ID:
        ids = [_message_id(file, start) for start in starts[keep].tolist()]
        nameless = np.array([not each for each in ids], bool)
        skipped += [
            SkippedRecord(number, Reason.NO_ID, "the mail has no Message-ID")
            for number in numbers[keep][nameless].tolist()
        ]
        names = StringTable.from_strings(filter(None, ids))
        keep[np.flatnonzero(keep)[nameless]] = False
        skipped.sort()
    return RecordList(numbers[keep], starts[keep], lengths[keep], names, skipped)


def read_mails(
    file: int, starts: NDArray[np.int64], lengths: NDArray[np.int64], buffer: Buffer
) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
    """Return mails of an open mailbox: a uint8 array with room to load past the end, and int64
    starts and lengths of shape (n,) of the mails in it.

    Parameters
    ----------
    file : descriptor of the mailbox.
    starts, lengths : int64 arrays of shape (n,), from `list_records`.
    buffer : memory to read into.

    """
    data, places = read_spans(file, starts, lengths, buffer)
    spans = zip(places.tolist(), lengths.tolist(), strict=True)
    mails = [bare_mail(data[start : start + length].tobytes()) for start, length in spans]
    sizes = np.fromiter(map(len, mails), np.int64, len(mails))
    text = np.frombuffer(bytearray().join([*mails, bytes(PADDING)]), np.uint8)
    return text, np.cumsum(sizes) - sizes, sizes


def _find_starts(file: int) -> NDArray[np.int64]:
    """Return where mails begin, and the end of the file: int64 array of n + 1 bytes."""
    size = os.fstat(file).st_size
    starts, at = [0], 0
    while at < size and (data := pread(file, _SCAN_BYTES + LOOKAHEAD + 8, at)):
        ended = at + len(data) >= size
        found = [at + place for place in find_mails(data, ended=ended)]
        starts += [place for place in found if place > starts[-1]]
        # The last bytes are looked at again: a separator may begin there, after an empty line.
        at = size if ended else at + len(data) - LOOKAHEAD - 4
    return np.array([*starts, size], np.int64)


def _message_id(file: int, start: int) -> bytes:
    head = pread(file, _HEAD_BYTES, start).replace(b"\r\n", b"\n").partition(b"\n\n")[0]
    found = _ID.search(head)
    return found[1] if found is not None else b""
