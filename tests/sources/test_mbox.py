"""Mailboxes: met in a folder or named, they are known by content and become their mails."""

import random

import pytest

from lshdup.base.mbox import bare_mail, find_mails, starts_mailbox
from lshdup.sources import lines
from lshdup.sources.records import RecordFields
from tests.documents import find


@pytest.mark.parametrize(("sizes", "found"), [((3, 2), 2), ((5, 1), 1), ((5,), 1), ((1, 1), 1)])
def test_a_large_mailbox_is_known_before_it_is_read(run, here, sizes, found):
    """By its first four million bytes, or once it is read: the mails are the same documents."""
    head = b"From: a@example.org\nTo: list@example.org\nSubject: about %d\n\nwords of %d\n"
    mails = [head % (at, at) + b"=" * (size << 20) for at, size in enumerate(sizes)]
    (here / "box").write_bytes(b"".join(SEPARATOR + each + b"\n" for each in mails))
    documents, _ = find("box")
    names = [b"box:1", b"box:2"][: len(sizes)] if len(sizes) > 1 else [b"box"]
    assert [*documents.names] == (names if found > 1 else [b"box"])
    assert run("clusters box --emit keep -q").ok().lines == [name.decode() for name in names]


SEPARATOR = b"From ann@example.org  Thu Aug 22 12:36:23 2002\n"

OF_MAIL = b"X-Status: 1\nFrom: a@b.c\nTo: d@e.f\n\nx\n"
BARE, UNTIMED = b"From \n", b"From a@b.c Thu Aug 22 2002\n"


@pytest.mark.parametrize(
    ("text", "count"),
    [
        (SEPARATOR + b"A: b\n\nx\n\n" + SEPARATOR + b"A: b\n\ny\n", 2),
        (SEPARATOR.replace(b"\n", b"\r\n") + b"A: b\r\n\r\nx\r\n\r\n" + SEPARATOR + b"A: b\n\n", 2),
        (SEPARATOR + b"A: b\n\nx\n" + SEPARATOR + b"A: b\n\ny\n", 1),  # no empty line before
        (SEPARATOR + b"A: b\n\nFrom here to there\nA: b\n", 1),  # no date
        (SEPARATOR + b"A: b\n\n" + SEPARATOR + b"no header\n", 1),
        (SEPARATOR + b"A: b\n\nx\n\n>" + SEPARATOR + b"A: b\n\ny\n", 1),  # quoted
        (SEPARATOR + b"A: b\n\nx\n\n" + SEPARATOR + b">From x\nA: b\n\ny\n", 2),
        # before the fields of a mail
        ((BARE + OF_MAIL + b"\n") * 3, 3),  # as Thunderbird
        (((BARE + OF_MAIL + b"\n") * 3).replace(b"\n", b"\r\n"), 3),
        (b"From - \n" + OF_MAIL + b"\nFrom -\n" + OF_MAIL, 2),
        ((UNTIMED + OF_MAIL + b"\n") * 3, 3),
        ((UNTIMED + OF_MAIL) * 3, 3),
        ((SEPARATOR + OF_MAIL) * 3, 3),
        ((BARE + OF_MAIL) * 3, 1),  # neither a date nor an empty line
        (BARE + OF_MAIL + b"\n" + BARE + b"To: one field\n\ny\n", 1),
        (BARE + OF_MAIL + b"\n" + BARE + b"X: " + b"x" * 9000 + b"\n" + OF_MAIL, 2),
        (BARE + OF_MAIL + b"\nFrom time to time\nto: and\nfrom: there\n\n", 1),
        (BARE + OF_MAIL + b"\n" + BARE + b">From x\n" + OF_MAIL, 2),
    ],
)
def test_separators(text, count):
    assert starts_mailbox(text)
    assert 1 + len(list(find_mails(text))) == count


def test_mails_are_as_they_were():
    text = SEPARATOR + b"A: b\n\n>From x\n>>From y\n> From z\n\n"
    assert bare_mail(text) == b"A: b\n\nFrom x\n>From y\n> From z\n"
    assert bare_mail(b"A: b\n\n>From x\n\n") == b"A: b\n\n>From x\n\n"


@pytest.mark.parametrize("block", [1, 7, 100, 1000])
def test_blocks_cut_nothing(tmp_path, monkeypatch, block):
    source = random.Random(block)
    filling = [b"x" * source.randrange(900) + b"\n" * source.randrange(3) for _ in range(40)]
    text = b"\n".join(SEPARATOR + b"A: b\n\n" + each + b"\n" for each in filling)
    (tmp_path / "m").write_bytes(text)
    monkeypatch.setattr(lines, "_SCAN_BYTES", block)
    with (tmp_path / "m").open("rb") as file:
        listed = lines.Mailbox(file.fileno(), RecordFields(), 1 << 30).list_records()
    assert listed.starts.tolist() == [0, *find_mails(text)]
    assert len(listed.starts) == 40
