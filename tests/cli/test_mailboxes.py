"""Mailboxes written without the mails that may go, as Python's mailbox module reads them."""

import email
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
from lshdup.sources.rewriting import write_without
from lshdup.text.mail import read_envelope
from tests.conftest import many
from tests.documents import find
from tests.running import run_program

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


def test_several_mailboxes_and_one_of_one_mail(run, inbox, tmp_path):
    """One of one mail is empty without it; all keep their names below a folder."""
    one, other = tmp_path / "One", tmp_path / "box/Other"
    other.parent.mkdir()
    one.write_bytes(parts_of(inbox.read_bytes())[7])
    other.write_bytes(b"From x Thu Aug 22 12:36:23 2002\n" + mail(99, body(99)) + b"\n")
    run("clusters Inbox.mbox One box/Other --write clean --no-store -q --keep first").ok()
    assert (tmp_path / "clean/One").read_bytes() == b""
    assert (tmp_path / "clean/box/Other").read_bytes() == other.read_bytes()
    assert len(mails_of(tmp_path / "clean/Inbox.mbox")) == 20
    run("clusters One --write kept.mbox --no-store -q").ok()
    assert (tmp_path / "kept.mbox").read_bytes() == one.read_bytes()


@pytest.fixture
def maildir(tmp_path):
    """A Maildir of 31 mails in cur and new with flags, of which some are copies, and what is no
    mail, or not compared.
    """
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
    assert "32 mails: 17 kept (1 of them not compared), 15 dropped (47 %)" in said
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


def test_maildirs_below_a_folder(run, maildir, tmp_path):
    """A Maildir in a Maildir, of whatever name, and a mailbox beside them."""
    sent = mailbox.Maildir(maildir / "Archive")
    sent.add(mail(50, body(50)))
    sent.add(mail(51, body(0)))
    (tmp_path / "Inbox").write_bytes(b"From x Thu Aug 22 12:36:23 2002\n" + mail(52, body(50)))
    run("clusters Mail Inbox --write out/ --no-store -q --keep first").ok()
    made = mailbox.Maildir(tmp_path / "out/Mail", create=False)
    below = mailbox.Maildir(tmp_path / "out/Mail/Archive", create=False)
    assert (len(made), len(below)) == (15, 2)
    assert (tmp_path / "out/Inbox").read_bytes() == b""


def test_what_is_refused(run, maildir, inbox, tmp_path):
    """Before the work, and nothing is written."""
    (tmp_path / "full").mkdir()
    (tmp_path / "full/x").touch()
    (tmp_path / "a.eml").write_bytes(mail(1, body(1)))
    before = snapshot(tmp_path)
    for line, why in {
        "clusters Mail --write -": "a Maildir is a folder",
        "clusters Mail --write Inbox.mbox": "Inbox.mbox is there already",
        "clusters Mail --write full": "full holds 1 file that this run does not write: x",
        "clusters Mail --write Mail/new/clean": "is in the Maildir that is read",
        "clusters Inbox.mbox --write Inbox.mbox": "is one of the documents",
        "clusters Inbox.mbox --write Clean.jsonl": "does not end like a file of mails",
        "clusters Inbox.mbox a.eml --write out/": "or mails of a mailbox: 'a.eml' is none",
        "clusters a.eml --write out/": "or mails of a mailbox: 'a.eml' is none",
        "passages Inbox.mbox --write out.mbox": "not all documents are rows",
        "passages Mail --write out/": "not all documents are rows",
    }.items():  # fmt: skip
        said = run(*line.split(), "--no-store", code=2).err.replace("\n  ", " ")
        assert why in said, line
        assert snapshot(tmp_path) == before, line


def test_a_mail_that_changes_meanwhile_is_said(run, maildir, tmp_path, monkeypatch):
    """Documents of a store may have changed: then no folder is made."""
    run("clusters Mail -q")
    name = sorted((maildir / "cur").iterdir())[3]
    name.write_bytes(name.read_bytes() + b"more\n")
    said = run("clusters --write Clean", code=2).err
    assert "has changed since its mails were compared" in said or "changed while in use" in said
    assert not (tmp_path / "Clean").exists()
    assert not [path for path in tmp_path.iterdir() if path.suffix == ".tmp"]


def test_mails_that_are_skipped_by_an_option_are_said(run, maildir, tmp_path):
    """As those that come meanwhile, which no list can have."""
    first = min((maildir / "cur").iterdir()).name
    said = run("clusters Mail --no-store --write Clean --exclude", first).ok().err
    assert "1 mail of 'Mail' not in what is written: new there, or skipped by an option" in said
    assert first in said
    assert not (tmp_path / "Clean/cur" / first).exists()


def test_tables_show_subject_and_date(inbox):
    """Behind all other columns, and only where no program reads them."""
    folder = inbox.parent
    for line, wide in (
        ("clusters Inbox.mbox --no-store -q", "about 0  Thu, 22 Aug 2002 12:01:00 +0100"),
        ("pairs Inbox.mbox --no-store -q", "about 0"),
        ("pairs Inbox.mbox --no-store -q --measure containment", "about 0"),
    ):
        shown = run_program([*line.split(), "--format", "table"], cwd=folder).stdout.decode()
        assert wide in shown, line
        plain = run_program(line.split(), cwd=folder).stdout.decode()
        assert "about" not in plain, line
    heads = run_program(
        ["pairs", "Inbox.mbox", "-q", "--format", "table", "--no-store"], cwd=folder
    ).stdout.decode()
    assert heads.split("\n")[0].split()[-4:] == ["a_subject", "a_date", "b_subject", "b_date"]


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
    write_without(Run.quiet(), documents, rows, tmp_path / "new", mails=True)
    kept = [each for number, each in enumerate(mails) if number not in dropped]
    assert (tmp_path / "new").read_bytes() == b"".join(kept)
    assert hashlib.sha256(source.read_bytes()).digest() == hashlib.sha256(b"".join(mails)).digest()
