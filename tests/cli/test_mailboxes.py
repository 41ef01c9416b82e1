"""Mailboxes written without the mails that may go, as Python's mailbox module reads them."""

import email
import email.policy
import hashlib
import json
import mailbox
import os
import random
from contextlib import closing
from email.header import Header
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lshdup.base.mbox import find_mails
from lshdup.base.run import Run
from lshdup.sources.expansion import expand_records
from lshdup.sources.records import Kind
from lshdup.sources.rewriting import Dropping, rewrite
from lshdup.text.mail import read_envelope
from tests.conftest import many
from tests.documents import find

WORDS = "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi".split()


def body(seed):
    """A text that is near no text of another seed."""
    source = random.Random(seed)
    return " ".join(source.choice(WORDS) + str(source.randrange(90)) for _ in range(60))


def mail(number, text, subject="minutes"):
    """A mail as bytes, with lines that a mailbox quotes."""
    return (
        f"Received: by host{number}\nFrom: a{number}@example.org\nTo: list@example.org\n"
        f"Date: Thu, 22 Aug 2002 12:{number % 60:02}:00 +0100\nMessage-ID: <{number}@example.org>\n"
        f"Subject: {subject}\n\n{text}\n\nFrom here on quoted: {number}\n"
    ).encode()


def snapshot(folder):
    """{path: its bytes, times and permissions} of all below a folder."""
    return {
        path: (path.is_file() and path.read_bytes(), path.stat().st_mtime_ns, path.stat().st_mode)
        for path in sorted(folder.rglob("*"))
    }


def mails_of(path):
    """[(`From ` line, mail)] of a mailbox, as Python reads it."""
    with closing(mailbox.mbox(path, create=False)) as box:
        return [(box.get_message(key).get_from(), box.get_bytes(key)) for key in box.iterkeys()]


def parts_of(data):
    """The mails of a mailbox with their `From ` lines: all bytes of it."""
    cuts = [0, *find_mails(data), len(data)]
    return [data[a:b] for a, b in pairwise(cuts)]


@pytest.fixture
def inbox(tmp_path):
    """A mailbox of 40 mails, every other one a copy of an earlier one in another envelope."""
    box = mailbox.mbox(tmp_path / "Inbox.mbox")
    for number in range(40):
        made = mailbox.mboxMessage(mail(number, body(number // 2), f"about {number // 2}"))
        made.set_from(f"a{number}@example.org Thu Aug 22 12:36:{number % 60:02} 2002")
        made.set_flags("RO" if number % 3 else "")
        box.add(made)
    box.close()
    (tmp_path / "Inbox.mbox").chmod(0o600)
    return tmp_path / "Inbox.mbox"


def test_a_mailbox_without_the_rest(run, inbox, tmp_path):
    before, data = mails_of(inbox), inbox.read_bytes()
    said = run("clusters Inbox.mbox --write Clean.mbox --removed gone.jsonl --no-store").ok().err
    assert "Clean.mbox is written" in said
    assert "40 mails: 20 kept, 20 dropped (50 %)" in said
    assert "gone.jsonl lists 20 removed mails" in said
    clean = tmp_path / "Clean.mbox"
    assert mails_of(clean) == before[::2]
    assert clean.read_bytes() == b"".join(parts_of(data)[::2])
    assert clean.stat().st_mode & 0o777 == 0o600
    assert inbox.read_bytes() == data
    listed = [json.loads(line) for line in (tmp_path / "gone.jsonl").read_text().splitlines()]
    assert [*listed[0]][:6] == ["id", "kept", "similarity", "file", "kept_file", "same"]
    assert [*listed[0]][6:] == ["subject", "date", "message_id"]
    for row, number in zip(listed, range(1, 40, 2), strict=True):
        assert row["id"] == f"Inbox.mbox:{number + 1}"
        assert row["kept"] == f"Inbox.mbox:{number}"
        told = email.message_from_bytes(before[number][1])
        fields = [told[name] for name in ("Subject", "Date", "Message-ID")]
        assert [row["subject"], row["date"], f"<{row['message_id']}>"] == fields
    # What is written has no groups, and the list of another run is the same.
    assert run("clusters Clean.mbox --no-store --check").err.count("no groups") == 1
    run("clusters Inbox.mbox --write - --removed again.jsonl -q")
    assert (tmp_path / "again.jsonl").read_bytes() == (tmp_path / "gone.jsonl").read_bytes()


@pytest.fixture
def maildir(tmp_path):
    """A Maildir of 31 mails with flags, some of them copies, and what is no mail."""
    made = mailbox.Maildir(tmp_path / "Mail")
    for number in range(30):
        each = mailbox.MaildirMessage(mail(number, body(number // 2)))
        each.set_subdir("cur" if number % 4 else "new")
        each.set_flags("FRS"[: number % 4])
        made.add(each)
    (tmp_path / "Mail/cur/1.a.b:2,S").write_bytes(b"\0\1\2" * 9)
    (tmp_path / "Mail/dovecot-uidlist").write_text("3 V1 N31 of one server\n")
    for at, path in enumerate(sorted((tmp_path / "Mail").rglob("*"))):
        if path.is_file():
            path.chmod(0o600 if at % 2 else 0o640)
            os.utime(path, ns=(at * 10**9, at * 10**9 + 5))
    return tmp_path / "Mail"


def test_a_maildir_without_the_rest(run, maildir, tmp_path):
    before = snapshot(maildir)
    said = run("clusters Mail --write Clean --removed gone.jsonl --no-store").ok().err
    assert "Clean is written" in said
    assert "32 mails and other files: 17 kept (1 of them not compared), 15 dropped (47 %)" in said
    assert snapshot(maildir) == before
    lines = (tmp_path / "gone.jsonl").read_text().splitlines()
    gone = {json.loads(line)["id"] for line in lines}
    assert len(gone) == 15
    wanted = {
        path.relative_to(maildir): told
        for path, told in before.items()
        if str(path.relative_to(tmp_path)) not in gone and told[0] is not False
    }
    clean = tmp_path / "Clean"
    written = {path.relative_to(clean): told for path, told in snapshot(clean).items()}
    folders = {str(path) for path, told in written.items() if told[0] is False}
    assert folders == {"cur", "new", "tmp"}
    assert {path: told for path, told in written.items() if told[0] is not False} == wanted
    old, new = mailbox.Maildir(maildir, create=False), mailbox.Maildir(clean, create=False)
    assert len(new) == 16
    for key, each in new.items():
        assert each.as_bytes() == old[key].as_bytes()
        assert (each.get_flags(), each.get_subdir()) == (
            old[key].get_flags(),
            old[key].get_subdir(),
        )
    assert not [path for path in tmp_path.iterdir() if path.suffix == ".tmp"]


def test_what_a_header_says():
    subject = Header("Größe in Zürich", "utf-8").encode()
    data = mail(7, "x", subject).replace(b"\nTo:", b"\nX-Long: a\n b\nTo:")
    assert read_envelope(data) == (
        "Größe in Zürich",
        "Thu, 22 Aug 2002 12:07:00 +0100",
        "7@example.org",
    )
    assert read_envelope(b"From x 2002\nSubject: a\n\tb\n\nDate: no\n") == ("a b", "", "")


pieces = st.sampled_from(
    [mail(n, body(n % 3)).replace(b"\nFrom here", b"\n>From here") for n in range(6)]
    + [mail(8, "é"), mail(9, "no end").rstrip(b"\n")]
)


@settings(
    deadline=None,
    max_examples=many(60),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    st.lists(st.tuples(pieces, st.sampled_from([b"\n", b"\r\n"])), min_size=1, max_size=12),
    st.data(),
)
def test_mails_that_are_kept_are_what_they_were(tmp_path, monkeypatch, drawn, data):
    """Also over the ends of what is read at a time."""
    monkeypatch.setattr("lshdup.base.compression.CHUNK", 7)
    mails = [
        (b"From a Thu Aug 22 12:36:23 2002\n" + each + b"\n\n").replace(b"\n", end)
        for each, end in drawn
    ]
    source = tmp_path / "box"
    source.write_bytes(b"".join(mails))
    documents, _ = expand_records(Run.quiet(), find(source)[0], {bytes(source): Kind.MBOX})
    assert len(documents) == len(mails)
    dropped = data.draw(st.sets(st.integers(0, len(mails) - 1)))
    rows = np.array(sorted(dropped), np.int64)
    rewrite(Run.quiet(), documents, rows, tmp_path / "new", Dropping(), mails=True)
    kept = [each for number, each in enumerate(mails) if number not in dropped]
    assert (tmp_path / "new").read_bytes() == b"".join(kept)
    assert hashlib.sha256(source.read_bytes()).digest() == hashlib.sha256(b"".join(mails)).digest()
