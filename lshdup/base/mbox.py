"""Mailboxes: which folders are a Maildir; where the mails of an mbox file begin, and the mails as
they were before they were put in.

A line `From ` begins a mail where header fields follow: one with a date after an empty line before
any fields; one without a date, as Thunderbird writes it, or without an empty line before it, before
the fields of a mail.
"""

import os
import re
from collections.abc import Iterator
from functools import lru_cache

_FROM = b"From "
_AFTER_LINE = b"\n" + _FROM
#: A separator ends within so many bytes.
_LONGEST = 400
_TIME = re.compile(rb"[0-9]:[0-9]{2}\b")
_YEAR = re.compile(rb"\b(?:19|20)[0-9]{2}\b")
#: What may follow a separator: a header line, or another such line, quoted or not.
_NEXT = re.compile(rb"(?:[!-9;-~]+:|>?From )")
_MORE = re.compile(rb"(?:>?From [^\n]*+\n){0,3}+")
_QUOTED = re.compile(rb"(?m)^>(>*From )")

#: A header field with its continuation lines, in any number.
FIELDS = re.compile(rb"(?:[!-9;-~]++:[^\n]*+\n(?:[ \t][^\n]*+\n)*+)++")
#: Names of the fields by which a mail is known, in small letters.
_KNOWN = tuple(
    b"\n%b:" % name
    for name in b"from to date subject message-id received newsgroups path references".split()
)
#: Fields that mail servers write.
_OF_SERVERS = frozenset((b"\nmessage-id:", b"\nreceived:"))

#: The folders of a Maildir: two of mails, and one of mails that are being written.
MAILDIR = (b"cur", b"new", b"tmp")

#: Bytes behind a possible separator that decide whether it is one.
LOOKAHEAD = 1 << 16
#: A larger file is known as a mailbox before it is read as a whole.
LARGE = 1 << 22


def is_of_mail(fields: bytes, *, alone: bool = False) -> bool:
    """Return whether header fields are those of a mail: whether two of them are known.

    Names in small letters count only beside one that mail servers write, because configuration
    files have such lines.

    alone : whether no body follows; then a sender is needed too, or what mail servers write.
    """
    lines = b"\n" + fields
    low = lines.lower()
    names = [each for each in _KNOWN if each in low]
    if len(names) > 1:
        is_sent = not _OF_SERVERS.isdisjoint(names)
        are_small = all(each in lines for each in names)
        return is_sent or not (are_small or (alone and b"\nfrom:" not in names))
    return False


def starts_mailbox(data: bytes) -> bool:
    """Return whether data begins with a line that begins a mail of a mailbox."""
    return data.startswith(_FROM) and _separates(data, 0, after_empty=True)


def is_mailbox(data: bytes) -> bool:
    """Return whether a file is a mailbox (mbox) of more than one mail."""
    return starts_mailbox(data) and next(find_mails(data), 0) > 0


def is_mailbox_file(path: bytes, *, several: bool = False) -> bool:
    """Return whether a file begins as a mailbox does; for files that are not read as a whole.

    several : whether another mail is to begin in the first LARGE bytes too.
    """
    try:
        with open(path, "rb") as file:  # noqa: PTH123 (bytes path)
            data = file.read(LOOKAHEAD)
            if not (starts_mailbox(data) and several):
                return starts_mailbox(data)
            return any(find_mails(data + file.read(LARGE - LOOKAHEAD), ended=False))
    except OSError:
        return False


@lru_cache(64)  # Files of a folder follow each other.
def is_maildir(folder: bytes) -> bool:
    """Return whether a folder has those of a Maildir."""
    return all(os.path.isdir(folder + b"/" + each) for each in MAILDIR)


def find_maildir(path: bytes) -> tuple[bytes, bytes]:
    """Return the Maildir that a file is in, and the name of the file from there; b"" if none is."""
    folder, name = os.path.split(path)
    above, part = os.path.split(folder)
    if part in MAILDIR and is_maildir(above or b"."):
        return above or b".", part + b"/" + name
    return (folder or b".", name) if is_maildir(folder or b".") else (b"", b"")


def find_mails(data: bytes, *, ended: bool = True) -> Iterator[int]:
    """Yield where mails begin, but for the first: positions of their `From ` lines.

    ended : whether the data is all of the file; else a line that more data may decide is left to
        the next call.
    """
    at = data.find(_AFTER_LINE)
    while at >= 0:
        is_after_empty = data[max(at - 1, 0) : at] == b"\n" or data[max(at - 2, 0) : at] == b"\n\r"
        is_known = ended or at + LOOKAHEAD < len(data)
        if is_known and _separates(data, at + 1, after_empty=is_after_empty):
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


def _separates(data: bytes, at: int, *, after_empty: bool) -> bool:
    """Return whether a `From ` line begins a mail. Cost: linear in the bytes to the next one."""
    end = data.find(b"\n", at, at + _LONGEST)
    if end < 0 or _NEXT.match(data, end + 1, end + _LONGEST) is None:
        return False
    has_year = _YEAR.search(data, at, end) is not None
    if after_empty and has_year and _TIME.search(data, at, end) is not None:
        return True
    if not (after_empty or has_year):
        return False
    last = at + LOOKAHEAD
    start = _MORE.match(data, end + 1, last).end()  # type: ignore[union-attr]
    fields = FIELDS.match(data, start, last)
    return fields is not None and is_of_mail(fields[0])
