"""Mailboxes: met in a folder or named, they are known by content and become their mails."""

import json
import mailbox
import os
import random

import numpy as np
import pytest

from lshdup.base.mailbox import bare_mail, find_mails, starts_mailbox
from lshdup.base.ragged import RaggedSets
from lshdup.params import KEEP
from lshdup.sources import lines
from lshdup.sources.records import RecordFields
from tests.documents import zip_of

WORDS = "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi".split()


def body(seed, changed=0):
    source = random.Random(seed)
    words = [source.choice(WORDS) + str(source.randrange(90)) for _ in range(120)]
    return " ".join([*(f"other{n}" for n in range(changed)), *words[changed:]])


def mail(number, text):
    return (
        f"From: a{number}@example.org\nTo: list@example.org\nMessage-ID: <{number}@example.org>\n"
        f"Subject: about {number % 3}\n\n{text}\n\nFrom here on quoted: {number}\n"
    ).encode()


def mails():
    """Ten mails, of which 2k and 2k + 1 are near-copies."""
    return [mail(n // 2, body(n // 2, changed=n % 2)) for n in range(10)]


def write_mbox(path, messages):
    """As the standard library writes it."""
    box = mailbox.mbox(path, create=True)
    for each in messages:
        box.add(each)
    box.close()


@pytest.fixture
def here(tmp_path):
    for folder in ("plain", "boxed"):
        (tmp_path / folder).mkdir()
    for n, each in enumerate(mails(), 1):
        (tmp_path / f"plain/{n:02}.eml").write_bytes(each)
    write_mbox(tmp_path / "boxed/inbox", mails())
    (tmp_path / "boxed/note.txt").write_text(body(99))
    return tmp_path


def test_a_mailbox_in_a_folder_becomes_its_mails(run, here):
    plain = run("pairs plain --no-store").ok()
    assert len(plain.rows) == 5
    expected = sorted((int(a[-6:-4]), int(b[-6:-4]), s, same) for a, b, s, same in plain.rows)
    boxed = run("pairs boxed").ok()
    found = sorted(
        (*sorted(int(name.rpartition(":")[2]) for name in (a, b)), s, same)
        for a, b, s, same in boxed.rows
    )
    assert found == expected
    assert all(a.startswith("boxed/inbox:") for a, *_ in boxed.rows)
    for jobs in (1, 2):
        again = run("pairs boxed --no-store -j", str(jobs)).ok()
        assert again.out == boxed.out
    named = run("pairs boxed/inbox --no-store").ok()
    assert named.out == boxed.out


def test_mails_of_a_mailbox_and_files_are_the_same(run, here):
    rows = run("pairs . -t 1 --no-store").ok().rows
    assert len(rows) == 10
    assert {same for *_, same in rows} == {"bytes"}


def test_an_unchanged_mailbox_is_not_read_again(run, here):
    first = run("pairs boxed").ok()
    assert "11 documents" in first.err
    again = run("pairs boxed").ok()
    assert again.out == first.out
    assert "0 documents read" in again.err
    (here / "boxed/note.txt").write_text(body(98))
    changed = run("pairs boxed").ok()
    assert "1 document read" in changed.err
    assert changed.out == first.out
    write_mbox(here / "boxed/second", [mail(70, body(70))] * 2)
    more = run("pairs boxed").ok()
    assert "2 documents read" in more.err
    assert len(more.rows) == 6
    shown = run("show boxed/inbox:1 boxed/inbox:2").ok()
    assert "mail" in shown.lines[0]
    assert run("query boxed/inbox:1").ok().rows[0][0] == "boxed/inbox:2"
    assert run("clusters boxed").ok().rows


def test_message_ids_name_mails(run, here):
    messages = [mail(n, body(0, changed=n)) for n in range(3)]
    write_mbox(here / "boxed/ids", [*messages, b"From: a@b.c\nTo: d@e.f\n\nnothing\n"])
    (here / "boxed/inbox").unlink()
    result = run("pairs boxed --id-field message-id", code=2)
    names = {name for a, b, *_ in result.rows for name in (a, b)}
    assert names == {f"boxed/ids/{n}@example.org" for n in range(3)}
    assert "boxed/ids:4: row without id" in result.err
    assert "no effect" not in result.err
    again = run("pairs boxed --id-field message-id", code=2)
    assert again.out == result.out
    assert "0 documents read" in again.err


def test_ids_that_strangers_chose_stay_behind_the_file(run, here):
    (here / "boxed/inbox").unlink()
    text = f"From: a@b.c\nTo: d@e.f\nMessage-ID: <%s>\n\n{body(0)}\n"
    write_mbox(here / "boxed/inbox", [text % each for each in ("/etc/passwd", "../x", "1@b")])
    options = ("boxed/inbox", "--id-field", "message-id", "--emit", "drop", "--no-store")
    result = run("clusters", *options).ok()
    assert len(result.lines) == 2
    assert all(name.startswith("boxed/inbox/") for name in result.lines)
    assert "2 names are of parts of files" in result.err


def test_of_repeated_names_the_first_is_the_same_in_every_run(run, here):
    """A row with the name of a mail; the mailbox is known only after the rows are listed."""
    rows = [{"id": f"a/{n}@example.org", "body": body(50)} for n in range(2)]
    for name in ("a", "z.jsonl"):
        (here / name).unlink(missing_ok=True)
    write_mbox(here / "a", [mail(0, body(0)), mail(1, body(0, changed=1))])
    lines = [json.dumps({"message-id": row["id"], "text": row["body"]}) for row in rows]
    (here / "z.jsonl").write_text("\n".join(lines))
    sources = ("a", "z.jsonl", "--id-field", "message-id")
    first = run("pairs", *sources, code=2)
    again = run("pairs", *sources, code=2)
    assert again.out == first.out
    assert "row 1 of z.jsonl; the first is row 1 of a" in first.err
    assert float(first.rows[0][2]) < 1  # as the mails, not as the rows


def test_names_that_are_no_files_are_counted(run, here):
    """What is dropped is a part of a file only if no file can be: `rm` would fail on its name."""
    (here / "one.jsonl").write_text(json.dumps({"text": body(0)}) + "\n")
    (here / "z.zip").write_bytes(zip_of([("n", mail(1, body(1)))]))
    files = run("clusters plain --no-store --emit drop").ok()
    assert len(files.lines) == 5
    assert "`rm`" not in files.err
    sources = ["boxed", "plain", "one.jsonl", "z.zip"]
    result = run("clusters", *sources, "--no-store", "--emit", "drop").ok()
    assert not {f"plain/{n:02}" for n in (1, 3, 5, 7, 9)} & set(result.lines)
    parts = [name for name in result.lines if not (here / name).is_file()]
    assert {"z.zip/n", "boxed/inbox:1"} <= set(parts)
    assert f"{len(parts)} names are of parts of files" in result.err


@pytest.mark.parametrize("keep", ["", *KEEP])
def test_whole_files_are_kept_before_their_copies_in_archives(run, here, keep):
    """Also where the archive is newer, or first in byte order, or what it holds is longer."""
    (here / "z").write_bytes(mail(0, body(0)))
    members = [("m", mail(0, body(0))), ("l", mail(0, body(0) + " one more"))]
    (here / "a.zip").write_bytes(zip_of(members))
    os.utime(here / "z", (1e9, 1e9 + (keep == "oldest") * 2e9))
    options = ["clusters", "z", "a.zip", "--no-store", *(["--keep", keep] if keep else [])]
    result = run(*options, "--emit", "drop").ok()
    assert sorted(result.lines) == ["a.zip/l", "a.zip/m"]
    assert ("whole files before parts of files" in result.err) == (keep != "first")
    result = run(*options, "--emit", "drop", "--prefer", "a.zip/m").ok()
    assert sorted(result.lines) == ["a.zip/l", "z"]


def test_shingles_of_a_mailbox_are_kept(run, here):
    """The second pass begins the sets anew, on disk and in memory."""
    run("shingle boxed").ok()
    run("shingle plain --store of-plain").ok()
    boxed, plain = (
        RaggedSets(file["values"], file["offsets"])
        for file in (np.load(here / folder / "shingles.npz") for folder in (".lshdup", "of-plain"))
    )
    assert len(boxed) == 11
    sets = [{sets[n].tobytes() for n in range(len(sets))} for sets in (plain, boxed)]
    assert sets[0] < sets[1]
    assert len(run("pairs boxed --exact").ok().rows) == 5
    assert len(run("pairs boxed --ignore-common 8 --no-store").ok().rows) == 5


def test_a_cut_mailbox_is_read_as_far_as_it_goes(run, here):
    whole = (here / "boxed/inbox").read_bytes()
    third = list(find_mails(whole))[1]
    (here / "boxed/inbox").write_bytes(whole[: third + 200])
    rows = run("pairs boxed").ok().rows
    assert [row[:2] for row in rows] == [["boxed/inbox:1", "boxed/inbox:2"]]


def test_mails_that_are_too_large_are_skipped(run, here):
    (here / "boxed/inbox").unlink()
    write_mbox(here / "boxed/inbox", [*mails(), mail(80, body(80) * 30)])
    result = run("pairs boxed --max-bytes 20000", code=2)
    assert len(result.rows) == 5
    assert "boxed/inbox:11: too large" in result.err


# --- where mails begin ----------------------------------------------------------------------------

SEPARATOR = b"From ann@example.org  Thu Aug 22 12:36:23 2002\n"


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
    ],
)
def test_separators(text, count):
    assert starts_mailbox(text)
    assert 1 + len(list(find_mails(text))) == count


OF_MAIL = b"X-Status: 1\nFrom: a@b.c\nTo: d@e.f\n\nx\n"
BARE, UNTIMED = b"From \n", b"From a@b.c Thu Aug 22 2002\n"


@pytest.mark.parametrize(
    ("text", "count"),
    [
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
def test_separators_before_the_fields_of_a_mail(text, count):
    assert starts_mailbox(text)
    assert 1 + len(list(find_mails(text))) == count


@pytest.mark.parametrize(
    ("separator", "between"),
    [(b"From \r\n", b"\r\n"), (SEPARATOR, b""), (UNTIMED, b"\n"), (UNTIMED, b"")],
)
def test_no_mail_of_a_mailbox_is_lost(run, tmp_path, separator, between):
    """Behind the end of a mail of several parts, a reader of one mail reads nothing more."""
    parts = (
        b"From: a@b.c\nTo: d@e.f\nSubject: s\nContent-Type: multipart/mixed; boundary=B\n\n"
        b"--B\nContent-Type: text/plain\n\nfirst words of this mail here\n--B--\n"
    )
    for box in (1, 2):
        texts = [parts, *(mail(n, body(100 * box + n)) for n in range(5))]
        data = b"".join(separator + each + between for each in texts)
        (tmp_path / f"box{box}").write_bytes(data)
    rows = run("clusters . --same text --no-store").ok().rows
    assert [row[1:3] for row in rows] == [["keep", "box1:1"], ["drop", "box2:1"]]


def test_mails_are_as_they_were():
    text = SEPARATOR + b"A: b\n\n>From x\n>>From y\n> From z\n\n"
    assert bare_mail(text) == b"A: b\n\nFrom x\n>From y\n> From z\n"
    assert bare_mail(b"A: b\n\n>From x\n\n") == b"A: b\n\n>From x\n\n"


@pytest.mark.parametrize("block", [1, 7, 100, 1000])
def test_blocks_cut_nothing(tmp_path, monkeypatch, block):
    """Mails begin at the same bytes wherever the blocks end that are read."""
    source = random.Random(block)
    filling = [b"x" * source.randrange(900) + b"\n" * source.randrange(3) for _ in range(40)]
    text = b"\n".join(SEPARATOR + b"A: b\n\n" + each + b"\n" for each in filling)
    (tmp_path / "m").write_bytes(text)
    monkeypatch.setattr(lines, "_SCAN_BYTES", block)
    with (tmp_path / "m").open("rb") as file:
        listed = lines.Mailbox(file.fileno(), RecordFields(), 1 << 30).list_records()
    assert listed.starts.tolist() == [0, *find_mails(text)]
    assert len(listed.starts) == 40
