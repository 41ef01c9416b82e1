"""Mailboxes (mbox files): where their mails begin, and the mails as they were before they were put
in.

A line `From `, a sender and a date, after an empty line and before header lines, begins a mail.
"""

import re
from collections.abc import Iterator

_FROM = b"From "
_AFTER_LINE = b"\n" + _FROM
#: A separator holds a time and a year; its first bytes are looked at.
_LONGEST = 400
_DATE = re.compile(rb"From [^\n]*?[0-9]:[0-9]{2}\b[^\n]*?\b(?:19|20)[0-9]{2}\b")
#: What may follow a separator: a header line, or another such line, quoted or not.
_NEXT = re.compile(rb"(?:[!-9;-~]+:|>?From )")
_QUOTED = re.compile(rb"(?m)^>(>*From )")

#: Bytes behind a possible separator that decide whether it is one.
LOOKAHEAD = 2 * _LONGEST


def starts_mailbox(data: bytes) -> bool:
    """Return whether data begins with a line that begins a mail of a mailbox."""
    return data.startswith(_FROM) and _separates(data, 0)


def is_mailbox(path: bytes) -> bool:
    """Return whether a file begins as a mailbox does; for files that are not read as a whole."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123 (bytes path)
            return starts_mailbox(file.read(LOOKAHEAD))
    except OSError:
        return False


def find_mails(data: bytes, start: int = 0, *, ended: bool = True) -> Iterator[int]:
    """Yield where mails begin after `start`: positions of their `From ` lines.

    ended : whether the data is all of the file; else a line that more data may decide is left to
        the next call.
    """
    at = data.find(_AFTER_LINE, start)
    while at >= 0:
        is_after_empty = data[max(at - 1, 0) : at] == b"\n" or data[max(at - 2, 0) : at] == b"\n\r"
        if is_after_empty and (ended or at + LOOKAHEAD < len(data)) and _separates(data, at + 1):
            yield at + 1
        at = data.find(_AFTER_LINE, at + 1)


def bare_mail(data: bytes) -> bytes:
    """Return a mail of a mailbox as it was: without `From ` line, quoting, and the empty line at
    its end.
    """
    if not data.startswith(_FROM):
        return data
    mail = data[data.find(b"\n") + 1 :] if b"\n" in data else b""
    if b">From " in mail:
        mail = _QUOTED.sub(rb"\1", mail)
    for end in (b"\r\n", b"\n"):
        if mail.endswith(end + end):
            return mail[: -len(end)]
    return mail


def _separates(data: bytes, at: int) -> bool:
    end = data.find(b"\n", at, at + _LONGEST)
    return (
        end >= 0
        and _DATE.match(data[at:end]) is not None
        and _NEXT.match(data, end + 1, end + _LONGEST) is not None
    )
