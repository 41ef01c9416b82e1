"""Rows of JSON Lines and Parquet are documents, as their texts in files would be."""

import gzip
import os
import random
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import chain, product
from pathlib import Path

import numpy as np
import pytest

from lshdup.base.params import DocumentParams, PairParams
from lshdup.base.run import Run
from lshdup.base.skipped import Reason, RecordLocation, Skipped, SkippedFile
from lshdup.pipeline import expand_copies
from lshdup.sources import parquet
from lshdup.sources.finding import find_documents
from lshdup.sources.readers import RecordFiles
from lshdup.sources.text_batches import read_batch
from lshdup.workspace.comparing import load_or_find_pairs
from lshdup.workspace.index import load_or_build_index
from lshdup.workspace.request import Request
from tests.conftest import ROOT, RUN, WHOLE, ZSTD, open_workspace, part, require, write_files
from tests.documents import batch_texts, find, read, reasons, write_rows

pa = require("parquet", "pyarrow")
pq = require("parquet", "pyarrow.parquet")
require("parquet", ZSTD)

N = 300


def texts_of(n, seed=0):
    """Texts of which some are near-copies, in several scripts, with all that JSON escapes."""
    rng = random.Random(seed)
    words = ["rose", "Größe", "日本語", "e\u0301t\u00e9", 'a "quoted" word', "back\\slash"]
    words += ["new\nline", "tab\t", "\u0001", "😀", "x" * 70]
    made = []
    for number in range(n):
        if number % 3 == 2:
            made.append(made[-1] + " and more")
        else:
            count = rng.randrange(1, 60)
            made.append(" ".join(rng.choice(words) + str(rng.randrange(50)) for _ in range(count)))
    made[n // 2] = "<html><body><p>a page <script>no</script> in a row</body></html>"
    made[n // 2 + 1] = "a page in a row"
    made[n // 3] = ""
    made[n // 3 + 1] = "%PDF-1.4 is how a PDF begins; this is a text, with \0 in it"
    return made


def write(path, texts, **columns):
    """The same rows in any form that the ending says."""
    columns = {"text": texts, **columns}
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    write_rows(path, rows, row_group_size=37)


pytestmark = pytest.mark.usefixtures("here")


def answer(*documents, store="s", check_content=False, given=None, jobs=2, **params):
    """Pairs, and what was skipped, and how many documents were read."""
    skipped, said = [], []
    workspace = open_workspace(store, said.append, skipped.append, jobs=jobs)
    given = {"threshold": 0.5, "markup": "visible", **(given or {})}
    documents = tuple(map(os.fsencode, documents))
    request = Request(documents, DocumentParams(**params), given, check_content)
    indexed = load_or_build_index(workspace, request, save=False)
    pairs = load_or_find_pairs(workspace, indexed, PairParams()).pairs
    found = expand_copies(RUN, pairs, indexed.index.duplicate_of, collapse=False)
    name = indexed.collection.documents.names.__getitem__
    rows = (zip(*(column.tolist() for column in piece), strict=True) for piece in found.pieces())
    pairs = [(name(left), name(right), similarity) for left, right, similarity in chain(*rows)]
    return sorted(pairs), reasons(skipped), indexed.collection.read, said


FORMS = ["a.jsonl", "a.ndjson", "a.jsonl.gz", "a.jsonl.zst", "a.parquet"]


@pytest.mark.parametrize(("form", "store"), part(product(FORMS, ["s", None]), 2))
def test_rows_are_what_files_would_be(here, form, store, monkeypatch):
    # Nothing is kept: what is verified is read again.
    monkeypatch.setattr("lshdup.workspace.loading.SET_BYTES", 0)
    texts = texts_of(N)
    (here / "files").mkdir()
    for number, text in enumerate(texts, 1):
        text = "a text with in it" if text == texts[N // 3 + 1] else text  # a file would be a PDF
        (here / "files" / str(number)).write_bytes(text.encode())
    write(here / form, texts)

    def numbers_of(pairs, mark):
        return {(frozenset(each.rpartition(mark)[2] for each in pair), s) for *pair, s in pairs}

    pairs, skipped, read, _ = answer(form, store=store)
    assert numbers_of(pairs, b":") == numbers_of(answer("files", store=None)[0], b"/")
    assert len(pairs) > N // 4
    assert (skipped, read) == ({}, N)
    if store:
        again = answer(form, store=store)
        assert (again[0], again[2]) == (pairs, 0)


@pytest.mark.parametrize("form", FORMS)
def test_numbers_are_ids_too_and_others_are_named(here, form):
    write(here / form, ["a", "b", "c", "d"], id=[1, None, -2, 1])
    documents, skipped = find(form, id_field="id")
    assert list(documents.names) == [b"1", b"-2"]
    no_id = (f"{form}:2".encode(), Reason.NO_ID)
    assert [(each.name, each.reason) for each in skipped] == [no_id, (b"1", Reason.REPEATED)]
    assert skipped[1].detail == f"row 4 of {form}; the first is row 1 of {form}"


@pytest.mark.parametrize("form", [*FORMS, "rows.csv"])
def test_a_row_with_the_id_and_the_text_of_another_is_a_copy(here, form):
    """The text is what counts, as without ids; a file that is called like a row has none."""
    texts, ids = ["a b", "c d", "a b", "a b", "c d"], ["x", "y", "x", "y", "file"]
    write(here / form, texts, id=ids, other=[1, 2, 3, 4, 5])
    (here / "file").write_text("c d")
    documents, skipped = find(form, "file", id_field="id")
    in_order = [b"x", b"y", b"file"] if form < "file" else [b"file", b"x", b"y"]
    assert list(documents.names) == in_order
    left_out = {b"x": Reason.COPY, b"y": Reason.REPEATED, b"file": Reason.REPEATED}
    assert [(each.name, each.reason) for each in skipped] == list(left_out.items())
    assert skipped[0].detail == f"row 3 of {form}; the first is row 1 of {form}"
    assert skipped[2].detail == f"row 5 of {form}; the first is file"


def test_files_are_in_byte_order_and_their_rows_by_number(here):
    names = ["a.jsonl", "a.jsonl:1.jsonl", "a.jsonl-b.jsonl", "a", "b.jsonl"]
    for name in names:
        write(here / name, ["x"] * 12)
    for extra in ((), ("a.jsonl:5", "a.jsonl:zz")):
        write_files(here, dict.fromkeys(extra, "a file"))
        documents, skipped = find(*names, *extra)
        made = list(documents.names)
        numbers, places = documents.locations.numbers, documents.locations.file
        in_order = sorted(zip(map(documents.path, range(len(made))), numbers.tolist(), strict=True))
        assert in_order == [(documents.path(n), numbers[n]) for n in range(len(made))]
        assert (np.diff(places) >= 0).all()
        assert len(set(made)) == len(made)
        assert [documents.find(name) for name in made] == list(range(len(made)))
        assert documents.find_all([*made, b"none"]) == [*range(len(made)), -1]
        assert len(made) == 12 * 4 + 1 + len(extra) - bool(extra)
        assert [each.name for each in skipped] == [b"a.jsonl:5"] * bool(extra)
        for index, name in enumerate(made):
            assert name.startswith(documents.path(index))


def test_which_files_have_rows(here):
    (here / "d").mkdir()
    names = ("a.jsonl", "b.NDJSON", "c.json", "e.jsonl.gz", "f.parquet")
    for name in names:
        write(here / "d" / name, ["one", "two"], body=["three", "four"])

    def found(*arguments, **params):
        said = []
        run = replace(Run.quiet(), say=said.append)
        documents = find_documents(run, map(os.fsencode, arguments), DocumentParams(**params))
        return [name.decode() for name in documents.names], said

    advice = "3 JSON Lines files in folders are each one document; --text-field NAME takes the rows"
    assert found("d") == ([f"d/{name}" for name in names], [advice])
    assert found("d/a.jsonl") == (["d/a.jsonl:1", "d/a.jsonl:2"], [])
    rows = [f"d/{name}:{n}" for name in names for n in (1, 2)]
    rows[4:6] = ["d/c.json"]
    assert found("d", text_field="body") == (rows, [])
    assert found("d/c.json")[0] == ["d/c.json"]
    assert found("d/c.json", text_field="body")[0] == ["d/c.json:1", "d/c.json:2"]
    no_effect = "--id-field has no effect on d/c.json: no JSON Lines, CSV or Parquet file"
    assert found("d/c.json", id_field="id")[1] == [no_effect]


@pytest.mark.parametrize("form", ["a.jsonl", "a.jsonl.gz", "a.parquet"])
def test_another_field_is_another_document(here, form):
    """What is known of the rows by one field is never taken for what another field says."""
    bodies = ["something else entirely here", "something else entirely here", None]
    write(here / form, ["one and the same text"] * 3, body=bodies)
    assert len(answer(form)[0]) == 3
    pairs, skipped, read, _ = answer(form, text_field="body")
    assert [pair[:2] for pair in pairs] == [(f"{form}:1".encode(), f"{form}:2".encode())]
    assert read == 3
    assert skipped == {f"{form}:3".encode(): Reason.NULL_TEXT}
    assert answer(form, text_field="body")[2] == 0
    pairs, skipped, read, _ = answer(form)
    assert (len(pairs), skipped, read) == (3, {}, 0)  # It is known by this field too.


def test_files_of_rows_grow(here):
    """After any change all is as from nothing; an unchanged file is not opened."""
    texts = texts_of(60)
    for form in FORMS:
        write(here / form, texts)
    (here / "file").write_text(texts[5])
    documents = [*FORMS, "file"]
    answer(*documents)
    write(here / "a.jsonl", texts[:50] + texts_of(5, seed=3))
    write(here / "a.parquet", texts[10:])
    os.remove(here / "a.ndjson")
    documents.remove("a.ndjson")
    first, fresh = answer(*documents), answer(*documents, store="fresh")
    assert first[:2] == fresh[:2]
    assert (first[2], fresh[2]) == (55 + 50, 55 + 50 + 60 + 60 + 1)
    for kind in ("signatures", "bands", "pairs"):
        assert Path(f"s/{kind}.npz").read_bytes() == Path(f"fresh/{kind}.npz").read_bytes(), kind


def test_unchanged_files_are_not_looked_through(here, monkeypatch):
    for form in FORMS:
        write(here / form, texts_of(30), id=[f"{form} {n}" for n in range(30)])
    expected = answer(*FORMS, id_field="id")

    for name in ("list_records", "texts"):
        monkeypatch.setattr(RecordFiles, name, None)
    assert answer(*FORMS, id_field="id")[0] == expected[0]
    with pytest.raises(TypeError):
        answer(*FORMS, id_field="id", check_content=True)


def test_damaged_locations_are_rebuilt(here):
    write(here / "a.jsonl", texts_of(30), id=list(range(30)))
    expected = answer("a.jsonl", id_field="id")
    good = Path("s/signatures.npz").read_bytes()
    rng = random.Random(1)
    for _ in range(40 if WHOLE else 12):
        bad = bytearray(good)
        bad[rng.randrange(len(bad))] ^= 1 << rng.randrange(8)
        Path("s/signatures.npz").write_bytes(bad)
        assert answer("a.jsonl", id_field="id")[:2] == expected[:2]


@pytest.mark.parametrize("form", ["a.jsonl", "a.jsonl.gz", "a.parquet"])
@pytest.mark.parametrize("id_field", ["", "id"])
def test_skipped_rows_are_known_in_the_next_run(here, form, id_field, monkeypatch):
    """Whether listing or reading skipped them; a file is listed again with another limit only."""
    texts = ["one and the same text"] * 6 + ["x" * 900, None, "one and the same text again"]
    write(here / form, texts, id=["a", "b", "a", None, "", "c", "d", "e", "f"])
    write(here / "b.jsonl", ["another text", *texts[1:3]], id=["b", None, "g"])
    if form == "a.jsonl":
        with (here / form).open("a") as file:
            file.write("\n\n{\n[]\n" + '{"id": "h", "text": 7}\n')

    def outcome(max_bytes=500):
        skipped = []
        workspace = open_workspace("s", skipped=skipped.append)
        params = DocumentParams(id_field=id_field, max_bytes=max_bytes)
        request = Request((os.fsencode(form), b"b.jsonl"), params, {"threshold": 0.5})
        indexed = load_or_build_index(workspace, request, save=False)
        return skipped, list(indexed.collection.documents.names), indexed.collection.read

    skipped, names, _ = outcome()
    of_ids = {Reason.REPEATED, Reason.COPY} if id_field else set()
    assert {each.reason for each in skipped} >= {Reason.TOO_LARGE, Reason.NULL_TEXT, *of_ids}
    listed, list_records = [], RecordFiles.list_records

    def note(self, run, path, *rest):
        listed.append(path)
        return list_records(self, run, path, *rest)

    monkeypatch.setattr(RecordFiles, "list_records", note)
    for _ in range(2):
        again = outcome()
        assert again[:2] == (skipped, names)
        assert again[2] == (form == "a.parquet")  # the text that is too large is tried again
    assert listed == []
    if form != "a.parquet":
        more = outcome(1000)
        assert (listed, len(more[1])) == ([os.fsencode(form)], len(names) + 1)
        assert outcome(500)[:2] == (skipped, names)
        assert listed == [os.fsencode(form)] * 2
    # A record whose name was repeated is a document once the first is gone.
    listed.clear()
    write(here / form, ["something else"], id=["z"])
    _, names, read = outcome()
    assert listed == [os.fsencode(form)]
    assert names == ([b"z", b"b", b"g"] if id_field else [b"%s:1" % form.encode(), *names[1:]])
    assert read == (2 if id_field else 1)


@pytest.mark.parametrize("kept", [1 << 24, 1])
def test_parquet_rows_in_any_order_and_by_any_thread(here, monkeypatch, kept):
    monkeypatch.setattr(parquet, "_SLAB_ROWS", 5)
    monkeypatch.setattr(parquet, "_KEPT_BYTES", kept)
    texts = [f"text {n}" for n in range(500)]
    write(here / "a.parquet", texts)
    documents, _ = find("a.parquet")
    assert list(documents.names) == [b"a.parquet:%d" % (n + 1) for n in range(500)]
    assert wrong_rows(documents, texts, threads=4, times=8, most=60) == []


def wrong_rows(documents, texts, *, threads, times, most):
    """Read random rows by several threads; return those that are not there or have another text."""
    wrong = []

    def read_some(seed):
        rng = np.random.default_rng(seed)
        for _ in range(times):
            rows = rng.choice(len(texts), rng.integers(1, most), replace=False)
            found, _ = read(documents, rows)
            wrong.extend(row for row in rows.tolist() if found.get(row) != texts[row].encode())

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(read_some, range(threads)))
    return wrong


@pytest.mark.parametrize("kind", ["large_string", "string_view", "dictionary", "binary"])
def test_parquet_columns_of_all_kinds_of_text(here, kind):
    texts = ["a b c d", None, "é"]
    if kind == "string_view" and int(pa.__version__.partition(".")[0]) < 21:
        pytest.skip("views cannot be written")
    array = pa.array(texts)
    array = array.dictionary_encode() if kind == "dictionary" else array.cast(getattr(pa, kind)())
    pq.write_table(pa.table({"text": array}), "a.parquet")
    batch = read_batch(find("a.parquet")[0], np.arange(3))
    assert batch_texts(batch) == {0: b"a b c d", 2: "é".encode()}
    assert [(index, reason) for index, reason, _ in batch.skipped] == [(1, Reason.NULL_TEXT)]


def test_parquet_inside_of_others(here):
    rows = [{"b": "inner", "id": 1}, None, {"b": None, "id": 2}]
    pq.write_table(pa.table({"a": rows, "c.d": ["x", "y", "z"]}), "a.parquet")
    null = dict.fromkeys((b"a.parquet:2", b"a.parquet:3"), Reason.NULL_TEXT)
    assert answer("a.parquet", text_field="a.b")[1] == null
    no_id = {b"a.parquet:2": Reason.NO_ID}
    assert answer("a.parquet", text_field="c.d", id_field="a.id")[1] == no_id


def test_bad_parquet_files_and_the_rest(here, run):
    write(here / "good.jsonl", ["one and the same text", "one and the same text"])
    write(here / "whole.parquet", texts_of(100))
    data = (here / "whole.parquet").read_bytes()
    (here / "cut.parquet").write_bytes(data[: len(data) // 2])
    (here / "none.parquet").write_bytes(b"")
    (here / "page.parquet").write_bytes(data[:200] + bytes(2000) + data[2200:])
    pq.write_table(pa.table({"text": [1, 2]}), "numbers.parquet")
    pq.write_table(pa.table({"body": ["a"]}), "other.parquet")
    (here / "cut.jsonl.gz").write_bytes(gzip.compress(b'{"text":"a"}\n' * 1000)[:-9])
    said = dict.fromkeys(("cut.parquet", "none.parquet", "page.parquet"), "damaged")
    said |= {"numbers.parquet": "row whose text is no string", "other.parquet": "row without text"}
    said["cut.jsonl.gz"] = "damaged"
    made = run("pairs good.jsonl", *said, "-v", code=2)
    assert made.rows[0] == ["good.jsonl:1", "good.jsonl:2", "1.0", "bytes"]
    # Of its first row group, of 37, nothing can be read.
    rest = [name.partition(":") for row in made.rows[1:] for name in row[:2]]
    assert rest
    assert all(name == "page.parquet" and int(row) > 37 for name, _, row in rest)
    lines = made.err.splitlines()
    for name, reason in said.items():
        assert any(line.startswith(f"lshdup: {name}") and reason in line for line in lines), made
    assert "it has no column 'text', but body; --text-field names another" in made.err


def test_a_row_is_no_page_by_its_name(here):
    write(here / "a.jsonl", ["<p>x</p> one", "p x p one"], id=["a.html", "b"])
    assert [pair[2] for pair in answer("a.jsonl", id_field="id")[0]] == [1.0]


def test_ctrl_c_ends_a_slow_split(here):
    """A regular expression that is typed may take years: it is the only thing that runs then."""
    (here / "a.log").write_text("a" * 40 + "!\nx\n")
    command = [sys.executable, "-m", "lshdup", "pairs", "--no-store", "--split", "^(a+)+$", "a.log"]
    process = subprocess.Popen(
        command, stderr=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(ROOT)},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    time.sleep(2)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    assert b"interrupted" in process.communicate(timeout=60)[1]
    assert process.returncode == 130


def test_a_file_for_which_there_is_no_room_to_unpack_is_skipped(here, monkeypatch):
    """What it holds is not known; all else is compared."""
    for name in ("a.jsonl.gz", "b.jsonl"):
        write(here / name, ["one two three"])

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    found, (skipped,) = find("a.jsonl.gz", "b.jsonl")
    assert list(found.names) == [b"b.jsonl:1"]
    assert (skipped.name, skipped.reason) == (b"a.jsonl.gz", Reason.UNREADABLE)
    assert "'a.jsonl.gz' cannot be unpacked in" in skipped.detail
    assert "No space left on device" in skipped.detail


def test_skipped_when_listed_or_when_read():
    """What is skipped when files or records are listed is found again by every listing."""
    first = RecordLocation(b"f", 1, 0, 9)  # a record that begins where its file begins
    for reason, where, is_of_list in (
        (Reason.BINARY, (), True),
        (Reason.BINARY, (0,), False),
        (Reason.BINARY, (9, 9, first), False),
        (Reason.REPEATED, (9, 9, first), True),
        (Reason.COPY, (9, 9, first), True),
        (Reason.TOO_LARGE, (9, 9, RecordLocation(b"f", 1)), True),
    ):
        assert SkippedFile(Skipped(b"f", reason), *where).is_of_list is is_of_list
