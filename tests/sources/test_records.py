"""Rows of JSON Lines and Parquet as documents: the same answer as their texts in files, whatever
they are stored as.
"""

import gzip
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lshdup.base.run import Run
from lshdup.base.skipped import Reason, RecordLocation, Skipped, SkippedFile
from lshdup.params import DocumentParams, PairParams
from lshdup.pipeline import expand_copies
from lshdup.sources import parquet
from lshdup.sources.finding import find_documents
from lshdup.sources.reading import batches, read_batch
from lshdup.sources.record_files import RecordFiles
from lshdup.sources.records import name_records
from lshdup.workspace.request import Request
from tests.conftest import ROOT, RUN, ZSTD, open_workspace, require

pa = require("parquet", "pyarrow")
pq = require("parquet", "pyarrow.parquet")
zstd = require("parquet", ZSTD)

N = 300


def texts_of(n, seed=0):
    """Texts of which some are near-copies, in several scripts, with all that JSON escapes."""
    rng = random.Random(seed)
    words = [
        "rose",
        "Größe",
        "日本語",
        "e\u0301t\u00e9",
        'a "quoted" word',
        "back\\slash",
        "new\nline",
        "tab\t",
        "\u0001",
        "😀",
        "x" * 70,
    ]
    made = []
    for number in range(n):
        if number % 3 == 2:
            made.append(made[-1] + " and more")
        else:
            made.append(
                " ".join(
                    rng.choice(words) + str(rng.randrange(50)) for _ in range(rng.randrange(1, 60))
                )
            )
    made[n // 2] = "<html><body><p>a page <script>no</script> in a row</body></html>"
    made[n // 2 + 1] = "a page in a row"
    made[n // 3] = ""
    made[n // 3 + 1] = "%PDF-1.4 is how a PDF begins; this is a text, with \0 in it"
    return made


def write(path, texts, **columns):
    """The same rows in any form that the ending says."""
    columns = {"text": texts, **columns}
    if path.suffix == ".parquet":
        pq.write_table(pa.table(columns), path, row_group_size=37)
        return
    lines = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    data = b"".join(
        json.dumps(line, ensure_ascii=number % 2 == 0).encode() + b"\n"
        for number, line in enumerate(lines)
    )
    packers = {".gz": gzip.compress, ".zst": zstd.compress}
    path.write_bytes(packers.get(path.suffix, lambda data: data)(data))


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def answer(*documents, store="s", check_content=False, given=None, jobs=2, **params):
    """Pairs, and what was skipped, and how many documents were read."""
    skipped, said = [], []
    workspace = open_workspace(store, said.append, skipped.append, jobs=jobs)
    request = Request(
        tuple(map(os.fsencode, documents)),
        DocumentParams(**params),
        {"threshold": 0.5, "markup": "visible", **(given or {})},
        check_content,
    )
    indexed = workspace.load_or_build_index(request, save=False)
    found = expand_copies(
        RUN,
        workspace.find_pairs(indexed, PairParams()).pairs,
        indexed.index.duplicate_of,
        collapse=False,
    )
    name = indexed.collection.documents.names.__getitem__
    pairs = [
        (name(left), name(right), similarity)
        for piece in found.pieces()
        for left, right, similarity in zip(*(column.tolist() for column in piece), strict=True)
    ]
    pairs.sort()
    return pairs, {each.name: each.reason for each in skipped}, indexed.collection.read, said


FORMS = ["a.jsonl", "a.ndjson", "a.jsonl.gz", "a.jsonl.zst", "a.parquet"]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("store", ["s", None])
def test_rows_are_what_files_would_be(here, form, store, monkeypatch):
    monkeypatch.setattr(
        "lshdup.workspace.from_documents.SET_BYTES", 0
    )  # nothing is kept: what is verified is read again
    texts = texts_of(N)
    plain = [
        text for number, text in enumerate(texts) if number != N // 3 + 1
    ]  # a file of that one would be a PDF
    (here / "files").mkdir()
    for number, text in enumerate(texts, 1):
        (here / "files" / str(number)).write_bytes(
            text.encode() if text in plain else b"a text with in it"
        )
    write(here / form, texts)
    pairs, skipped, read, _ = answer(form, store=store)
    expected = answer("files", store=None)[0]
    in_files = {
        (frozenset((a.rpartition(b"/")[2], b.rpartition(b"/")[2])), similarity)
        for a, b, similarity in expected
    }
    in_rows = {
        (frozenset((a.rpartition(b":")[2], b.rpartition(b":")[2])), similarity)
        for a, b, similarity in pairs
    }
    assert in_rows == in_files
    assert len(pairs) > N // 4
    assert skipped == {}
    assert read == N
    if store:
        again = answer(form, store=store)
        assert (again[0], again[2]) == (pairs, 0)


@pytest.mark.parametrize("form", FORMS)
def test_ids_name_rows(here, form):
    texts = texts_of(40)
    ids = [f"id {number * 7 % 40}" for number in range(40)]
    write(here / form, texts, id=ids)
    documents = find_documents(Run.quiet(), [os.fsencode(form)], DocumentParams(id_field="id"))
    assert list(documents.names) == list(map(str.encode, ids))  # in the order of the rows
    got = {}
    for indices in batches(Run.quiet(), documents, np.arange(len(documents))):
        batch = read_batch(documents, indices)
        for index, start, length in zip(
            batch.indices.tolist(), batch.starts.tolist(), batch.lengths.tolist(), strict=True
        ):
            got[documents.names[index].decode()] = (
                batch.text[start : start + length].tobytes().decode()
            )
    assert got == dict(zip(ids, texts, strict=True))


@pytest.mark.parametrize("form", FORMS)
def test_numbers_are_ids_too_and_others_are_named(here, form):
    write(here / form, ["a", "b", "c", "d"], id=[1, None, -2, 1])
    skipped = []
    documents = find_documents(
        replace(Run.quiet(), skipped=skipped.append),
        [os.fsencode(form)],
        DocumentParams(id_field="id"),
    )
    assert list(documents.names) == [b"1", b"-2"]
    assert [(each.name, each.reason) for each in skipped] == [
        (f"{form}:2".encode(), Reason.NO_ID),
        (b"1", Reason.REPEATED),
    ]
    assert skipped[1].detail == f"row 4 of {form}; the first is row 1 of {form}"


@pytest.mark.parametrize("form", [*FORMS, "rows.csv"])
def test_a_row_with_the_id_and_the_text_of_another_is_a_copy(here, form):
    """The text is what counts, as without ids; a file that is called like a row has none."""
    texts, ids = ["a b", "c d", "a b", "a b", "c d"], ["x", "y", "x", "y", "file"]
    if form.endswith("csv"):
        rows = [f"{text},{each}\n" for text, each in zip(texts, ids, strict=True)]
        (here / form).write_text("".join(["text,id\n", *rows]))
    else:
        write(here / form, texts, id=ids, other=[1, 2, 3, 4, 5])
    (here / "file").write_text("c d")
    skipped = []
    documents = find_documents(
        replace(Run.quiet(), skipped=skipped.append),
        [os.fsencode(form), b"file"],
        DocumentParams(id_field="id"),
    )
    in_order = [b"x", b"y", b"file"] if form < "file" else [b"file", b"x", b"y"]
    assert list(documents.names) == in_order
    assert [(each.name, each.reason) for each in skipped] == [
        (b"x", Reason.COPY),
        (b"y", Reason.REPEATED),
        (b"file", Reason.REPEATED),
    ]
    assert skipped[0].detail == f"row 3 of {form}; the first is row 1 of {form}"


def test_ids_are_looked_at_across_files(here):
    write(here / "a.jsonl", ["a", "b"], id=["x", "y"])
    write(here / "b.parquet", ["c", "d"], id=["y", "z"])
    (here / "z").write_text("a file called like a row")
    skipped = []
    documents = find_documents(
        replace(Run.quiet(), skipped=skipped.append),
        [b"a.jsonl", b"b.parquet", b"z"],
        DocumentParams(id_field="id"),
    )
    assert list(documents.names) == [b"x", b"y", b"z"]
    assert [(each.name, each.detail) for each in skipped] == [
        (b"y", "row 1 of b.parquet; the first is row 2 of "
"a.jsonl"), (b"z", "row 2 of b.parquet; the first is z"),
    ]  # fmt: skip


def test_files_are_in_byte_order_and_their_rows_by_number(here):
    names = ["a.jsonl", "a.jsonl:1.jsonl", "a.jsonl-b.jsonl", "a", "b.jsonl"]
    for name in names:
        write(here / name, ["x"] * 12)
    for extra in ((), ("a.jsonl:5", "a.jsonl:zz")):
        for name in extra:
            (here / name).write_text("a file")
        skipped = []
        documents = find_documents(
            replace(Run.quiet(), skipped=skipped.append),
            map(os.fsencode, (*names, *extra)),
            DocumentParams(),
        )
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
    for name in ("a.jsonl", "b.NDJSON", "c.json", "e.jsonl.gz"):
        write(here / "d" / name, ["one", "two"], body=["three", "four"])
    write(here / "d/f.parquet", ["one", "two"], body=["three", "four"])

    def found(*names, **params):
        said = []
        documents = find_documents(
            replace(Run.quiet(), say=said.append), map(os.fsencode, names), DocumentParams(**params)
        )
        return [name.decode() for name in documents.names], said

    whole, said = found("d")
    assert whole == ["d/a.jsonl", "d/b.NDJSON", "d/c.json", "d/e.jsonl.gz", "d/f.parquet"]
    assert said == [
        "3 JSON Lines files in folders are each one document; --text-field NAME takes the rows"
    ]
    assert found("d/a.jsonl") == (["d/a.jsonl:1", "d/a.jsonl:2"], [])
    made, said = found("d", text_field="body")
    records = {"a.jsonl": (1, 2), "b.NDJSON": (1, 2), "c.json": (0,)}
    records |= {"e.jsonl.gz": (1, 2), "f.parquet": (1, 2)}
    assert made == [
        f"d/{name}:{n}" if n else f"d/{name}" for name, numbers in records.items() for n in numbers
    ]
    assert said == []
    assert found("d/c.json")[0] == ["d/c.json"]
    assert found("d/c.json", text_field="body")[0] == ["d/c.json:1", "d/c.json:2"]
    assert found("d/c.json", id_field="id")[1] == [
        "--id-field has no effect on d/c.json: no JSON Lines, CSV or Parquet file"
    ]


@pytest.mark.parametrize("form", ["a.jsonl", "a.jsonl.gz", "a.parquet"])
def test_another_field_is_another_document(here, form):
    """What is known of the rows by one field is never taken for what another field says."""
    write(
        here / form,
        ["one and the same text"] * 3,
        body=["something else entirely here", "something else entirely here", None],
    )
    assert len(answer(form)[0]) == 3
    pairs, skipped, read, _ = answer(form, text_field="body")
    assert ([pair[:2] for pair in pairs], read) == (
        [(f"{form}:1".encode(), f"{form}:2".encode())],
        3,
    )
    assert skipped == {f"{form}:3".encode(): Reason.NULL_TEXT}
    assert answer(form, text_field="body")[2] == 0
    pairs, skipped, read, _ = answer(form)
    assert (len(pairs), skipped, read) == (3, {}, 0)  # It is known by this field too.


def test_files_of_rows_grow(here):
    """After any change, artifacts and answers are those of a run from nothing; an unchanged file is
    not opened.
    """
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
    shutil.rmtree("fresh")


def test_unchanged_files_are_not_looked_through(here, monkeypatch):
    for form in FORMS:
        write(here / form, texts_of(30), id=[f"{form} {n}" for n in range(30)])
    expected = answer(*FORMS, id_field="id")

    def refuse(*_):
        raise AssertionError

    monkeypatch.setattr("lshdup.sources.record_files.RecordFiles.list_records", refuse)
    monkeypatch.setattr("lshdup.sources.record_files.RecordFiles.texts", refuse)
    assert answer(*FORMS, id_field="id")[0] == expected[0]
    with pytest.raises(AssertionError):
        answer(*FORMS, id_field="id", check_content=True)


def test_damaged_locations_are_rebuilt(here):
    write(here / "a.jsonl", texts_of(30), id=list(range(30)))
    expected = answer("a.jsonl", id_field="id")
    good = Path("s/signatures.npz").read_bytes()
    rng = random.Random(1)
    for _ in range(40):
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
        indexed = workspace.load_or_build_index(request, save=False)
        return skipped, list(indexed.collection.documents.names), indexed.collection.read

    skipped, names, _ = outcome()
    reasons = {each.reason for each in skipped}
    of_ids = {Reason.REPEATED, Reason.COPY} if id_field else set()
    assert reasons >= {Reason.TOO_LARGE, Reason.NULL_TEXT, *of_ids}
    listed = []
    list_records = RecordFiles.list_records

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
    documents = find_documents(Run.quiet(), [b"a.parquet"], DocumentParams())
    wrong = []

    def read(seed):
        rng = np.random.default_rng(seed)
        for _ in range(30):
            for indices in batches(
                Run.quiet(), documents, rng.choice(500, rng.integers(1, 60), replace=False)
            ):
                batch = read_batch(documents, indices)
                for index, start, length in zip(
                    batch.indices.tolist(),
                    batch.starts.tolist(),
                    batch.lengths.tolist(),
                    strict=True,
                ):
                    number = int(documents.names[index].rpartition(b":")[2])
                    if batch.text[start : start + length].tobytes().decode() != texts[number - 1]:
                        wrong.append(number)

    threads = [threading.Thread(target=read, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.parametrize(
    "array",
    [
        pa.array(["a b c d", None, "é"], pa.large_string()),
        pytest.param(
            pa.array(["a b c d", None, "é"], pa.string_view()),
            marks=pytest.mark.skipif(
                int(pa.__version__.partition(".")[0]) < 21, reason="views cannot be written"
            ),
        ),
        pa.array(["a b c d", None, "é"]).dictionary_encode(),
        pa.array([b"a b c d", None, "é".encode()], pa.binary()),
    ],
)
def test_parquet_columns_of_all_kinds_of_text(here, array):
    pq.write_table(pa.table({"text": array}), "a.parquet")
    documents = find_documents(Run.quiet(), [b"a.parquet"], DocumentParams())
    batch = read_batch(documents, np.arange(3))
    made = [
        batch.text[start : start + length].tobytes()
        for start, length in zip(batch.starts, batch.lengths, strict=True)
    ]
    assert made == [b"a b c d", "é".encode()]
    assert [(index, reason) for index, reason, _ in batch.skipped] == [(1, Reason.NULL_TEXT)]


def test_parquet_inside_of_others(here):
    pq.write_table(
        pa.table(
            {"a": [{"b": "inner", "id": 1}, None, {"b": None, "id": 2}], "c.d": ["x", "y", "z"]}
        ),
        "a.parquet",
    )
    assert answer("a.parquet", text_field="a.b")[1] == {
        b"a.parquet:2": Reason.NULL_TEXT,
        b"a.parquet:3": Reason.NULL_TEXT,
    }
    assert answer("a.parquet", text_field="c.d", id_field="a.id")[1] == {
        b"a.parquet:2": Reason.NO_ID
    }


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
    names = [
        "cut.parquet",
        "none.parquet",
        "page.parquet",
        "numbers.parquet",
        "other.parquet",
        "cut.jsonl.gz",
    ]
    made = run("pairs", "good.jsonl", *names, "-v", code=2)
    assert made.rows[0] == ["good.jsonl:1", "good.jsonl:2", "1.0", "bytes"]
    rest = [
        name.partition(":") for row in made.rows[1:] for name in row[:2]
    ]  # of its first row group, of 37, nothing can be read
    assert rest
    assert all(name == "page.parquet" and int(row) > 37 for name, _, row in rest)
    for name, reason in zip(
        names,
        [
            "damaged",
            "damaged",
            "damaged",
            "row whose text is no string",
            "row without text",
            "damaged",
        ],
        strict=True,
    ):
        assert any(
            line.startswith(f"lshdup: {name}") and reason in line for line in made.err.splitlines()
        ), (name, made)
    assert "it has no column 'text', but body; --text-field names another" in made.err


def test_broken_rows_are_said_and_the_rest_goes_on(here, run):
    lines = [
        '{"text":"one and the same text"}',
        "{",
        "[]",
        '{"text":null}',
        '{"text":7}',
        '{"text":"\\ud800"}',
        "",
        '{"other":1}',
    ]
    (here / "a.jsonl").write_text("\n".join([*lines, lines[0]]))
    for _ in range(2):  # the second time from the store
        made = run("pairs", "a.jsonl", "-v", code=2)
        assert made.rows == [["a.jsonl:1", "a.jsonl:9", "1.0", "bytes"]]
        assert (
            "skipped: 2 rows that are no JSON objects, 1 row whose text is no string, 1 row "
            "whose text is null, 1 row without text, 1 undecodable" in made.err
        )
        for row in (2, 3, 4, 5, 6, 8):
            assert f"lshdup: a.jsonl:{row}: " in made.err
        assert "a.jsonl:7" not in made.err


@pytest.mark.parametrize("form", ["a.jsonl", "a.parquet"])
def test_null_texts_are_counted_and_fail_no_gate(here, form, run):
    """A row without a text is like one with an empty text: nothing that should be compared."""
    write(here / form, ["one text of several words", None, "", "another of other words", None])
    for words in ((), ("--check",)):
        made = run("pairs", form, *words, code=0)
        assert "skipped: 2 rows whose text is null\n" in made.err
    assert f"{form}:2" not in made.err
    run("clusters", form, "--write", f"clean-{form}", code=0)
    assert run("pairs", form, "--baseline", "known", "--update-baseline", code=0).err
    assert Path("known").exists()


def test_query_of_rows(here, run):
    write(
        here / "a.jsonl",
        ["one text of several words", "another", "one text of several words"],
        id=["x", "y", "x/z"],
    )
    run("index", "a.jsonl")
    assert run("query", "a.jsonl:3").rows == [["a.jsonl:1", "1.0", "bytes"]]
    assert run("query", "jsonl:3").rows == [["a.jsonl:1", "1.0", "bytes"]]
    assert "name one of them, as a.jsonl:1" in run("query", "a.jsonl", code=2).err
    (here / "sub").mkdir()
    assert run("query", "../a.jsonl:3", "--store", "../.lshdup", cwd=here / "sub").rows == [
        ["../a.jsonl:1", "1.0", "bytes"]
    ]
    run("index", "a.jsonl", "--id-field", "id")
    assert run("query", "x/z").rows == [["x", "1.0", "bytes"]]
    assert run("query", "x", "--store", "../.lshdup", cwd=here / "sub").rows == [
        ["x/z", "1.0", "bytes"]
    ]
    assert "has no effect without DOCS" in run("pairs", "--id-field", "id", code=2).err
    assert (
        "cannot be combined with --tokens ids"
        in run("pairs", "a.jsonl", "--tokens", "ids", "--id-field", "id", code=2).err
    )
    # Changed since, in its place, and as a whole.
    write(
        here / "a.jsonl",
        ["ane text of several wards", "another", "one text of several words"],
        id=["x", "y", "x/z"],
    )
    changed = run("query", "x")
    assert "has changed since it was indexed" in changed.err
    write(here / "a.jsonl", ["new"])
    assert "changed while in use" in run("query", "x/z", code=2).err


def test_rows_are_shown(here, run):
    write(here / "a.jsonl", ["<p>not a page, and --encoding is not for it: é"])
    run("index", "a.jsonl", "--encoding", "latin-1")
    assert [row[1] for row in run("shingle", "--show", "a.jsonl:1").rows][-1] == "for it é"


def test_a_row_is_no_page_by_its_name(here):
    write(here / "a.jsonl", ["<p>x</p> one", "p x p one"], id=["a.html", "b"])
    assert [pair[2] for pair in answer("a.jsonl", id_field="id")[0]] == [1.0]


@pytest.mark.parametrize("n", [0, 1, 9, 10, 11, 100, 1234])
def test_row_names(n):
    numbers = np.arange(1, n + 1)
    names = name_records(Run.quiet(), b"\xff:", numbers)
    assert list(names) == [b"\xff::%d" % number for number in range(1, n + 1)]


def test_ctrl_c_ends_a_slow_split(here):
    """A regular expression that is typed may take years: it is the only thing that runs then."""
    (here / "a.log").write_text("a" * 40 + "!\nx\n")
    command = [sys.executable, "-m", "lshdup", "pairs", "--no-store", "--split", "^(a+)+$", "a.log"]
    process = subprocess.Popen(
        command,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    time.sleep(3)
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
    skipped = []
    found = find_documents(
        replace(Run.quiet(), skipped=skipped.append), [b"a.jsonl.gz", b"b.jsonl"], DocumentParams()
    )
    assert list(found.names) == [b"b.jsonl:1"]
    ((name, reason, detail),) = [(each.name, each.reason, each.detail) for each in skipped]
    assert (name, reason) == (b"a.jsonl.gz", Reason.UNREADABLE)
    assert "'a.jsonl.gz' cannot be unpacked in" in detail
    assert "No space left on device" in detail


def test_skipped_when_listed_or_when_read():
    """What is skipped when files or records are listed is found again by every listing."""
    first = RecordLocation(b"f", 1, 0, 9)  # a record that begins where its file begins
    expected = {
        SkippedFile(Skipped(b"f", Reason.BINARY)): True,
        SkippedFile(Skipped(b"f", Reason.BINARY), size=0): False,
        SkippedFile(Skipped(b"f:1", Reason.BINARY), 9, 9, first): False,
        SkippedFile(Skipped(b"f:1", Reason.REPEATED), 9, 9, first): True,
        SkippedFile(Skipped(b"f:1", Reason.COPY), 9, 9, first): True,
        SkippedFile(Skipped(b"f:1", Reason.TOO_LARGE), 9, 9, RecordLocation(b"f", 1)): True,
    }
    assert {each: each.is_of_list for each in expected} == expected
