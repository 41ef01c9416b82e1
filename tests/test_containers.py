"""A collection made of every kind of container, with known near-copies across kinds."""

import bz2
import gzip
import itertools
import json
import os
import random

import pytest

from lshdup.sources.readers import RecordFiles
from tests.conftest import ZSTD, require
from tests.documents import tar_of, warc_record, wiki_dump, zip_of
from tests.sources.test_records import answer

zstd = require("zstd", ZSTD)

WORDS = [f"word{n}" for n in range(2000)]


def text(number, version=0):
    """Return a text of 200 words; two versions of a number are near, two numbers are not."""
    rng = random.Random(number)
    words = [rng.choice(WORDS) for _ in range(200)]
    if version:
        words[11 * version] = "changed"
    return " ".join(words)


def page(content):
    return f"<html><body><p>{content}</p></body></html>".encode()


def response(content):
    return b"HTTP/1.1 200 OK\r\n\r\n" + page(content)


PACKERS = {".gz": gzip.compress, ".zst": zstd.compress, ".bz2": bz2.compress}


def content_of(name, number):
    """Return a container of the texts `number` and `number` + 1, and their names."""
    one, two = text(number, 1), text(number + 1, 2)
    files = [("a/one.txt", one.encode()), ("two.txt.gz", gzip.compress(two.encode()))]
    of_files = [f"{name}/a/one.txt", f"{name}/two.txt.gz"]
    if name.endswith(".zip"):
        return zip_of(files), of_files
    if ".warc" in name:
        kind, block = ("conversion", str.encode) if ".wet" in name else ("response", response)
        texts = {"http://x/0": one, "http://x/1": two}
        pages = [gzip.compress(warc_record(kind, uri, block(texts[uri]))) for uri in texts]
        return b"".join(pages), [f"{name}/{uri}" for uri in texts]
    packer = PACKERS.get(os.path.splitext(name)[1], bytes)
    if ".tar" in name:
        return packer(tar_of(files)), of_files
    if ".xml" in name:
        data = wiki_dump([("One", [one]), ("Talk:Two", [two])])
        return packer(data), [f"{name}/One", f"{name}/Talk:Two"]
    names = [f"{name}:1", f"{name}:2"]
    if ".jsonl" in name:
        data = "".join(json.dumps({"text": each}) + "\n" for each in (one, two)).encode()
        return packer(data), names
    if name.endswith(".csv"):
        return f'id,text\n1,"{one}"\n2,"{two}"\n'.encode(), names
    if name.endswith(".mbox"):
        head = "From a@x.org Thu Jan  1 00:00:00 2026\nFrom: a@x.org\nDate: 1 Jan 2026\n"
        mails = (f"{head}Subject: word\n\n{each}\n\n" for each in (one, two))
        return "".join(mails).encode(), names
    assert ".sgm" in name
    return packer(f"<DOC 1>\n{one}\n<DOC 2>\n{two}\n".encode()), names


CONTAINERS = [
    "a.tar", "b.tar.gz", "c.tar.zst", "d.tar.bz2", "e.zip", "f.warc.gz", "g.warc.wet.gz", "h.xml",
    "i.xml.bz2", "j.jsonl", "k.jsonl.gz", "l.csv", "m.sgm", "n.sgm.gz", "o.mbox",
]  # fmt: skip


def make(folder):
    """Write every container, and plain files; return the pairs that are near copies."""
    near = {}
    for at, name in enumerate(CONTAINERS):
        # Each shares a text with the container before it, and one with the next.
        content, names = content_of(name, at)
        (folder / name).write_bytes(content)
        for number, document in zip((at, at + 1), names, strict=True):
            near.setdefault(number, []).append(document)
    for number, name in ((0, "first.txt"), (len(CONTAINERS), "last.html")):
        (folder / name).write_bytes(text(number).encode() if number == 0 else page(text(number)))
        near[number].append(name)
    pairs = (pair for each in near.values() for pair in itertools.combinations(each, 2))
    return {tuple(sorted(pair)) for pair in pairs}


@pytest.fixture
def opened(monkeypatch):
    """Record which containers are listed or read."""
    paths = []
    for name in ("list_records", "texts"):
        real = getattr(RecordFiles, name)

        def recorded(self, *arguments, real=real):
            paths.extend(os.fsdecode(each) for each in arguments if isinstance(each, bytes))
            return real(self, *arguments)

        monkeypatch.setattr(RecordFiles, name, recorded)
    return paths


OPTIONS = {"archives": True, "split": "^<DOC", "text_field": "text"}


def found(**options):
    """Return the pairs of a run over the current folder."""
    pairs, skipped, _, _ = answer(".", **OPTIONS, **options)
    assert not skipped
    return {tuple(sorted(map(os.fsdecode, pair[:2]))) for pair in pairs}


def test_exactly_the_known_pairs(here, run):
    expected = make(here)
    assert len(expected) == len(CONTAINERS) + 1
    rows = run("pairs . --archives --split '^<DOC' --text-field text --no-store --jobs 2").rows
    assert {tuple(sorted(row[:2])) for row in rows} == expected


def test_only_a_container_that_changed_is_read_again(here, opened):
    expected = make(here)
    assert found() == expected
    assert {*opened} >= {*CONTAINERS}  # plain files are looked through for lines of --split
    opened.clear()
    assert found() == expected
    assert not opened
    content, names = content_of("e.zip", 40)
    (here / "e.zip").write_bytes(content)
    assert found() == {pair for pair in expected if not {*pair} & {*names}}
    assert {*opened} == {"e.zip"}
