"""Files of rows written back: what is kept stays exact, and what is read is not touched."""

import gzip
import json
from dataclasses import replace
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lshdup.base.run import Run
from lshdup.errors import InputError, ParameterError
from lshdup.passages.cutting import check_cutting, cut_texts, write_cut
from lshdup.sources import rewriting
from lshdup.sources.jsonlines import find_values
from lshdup.sources.rewriting import Dropping, rewrite
from tests.conftest import WHOLE, ZSTD, part, require, write_files
from tests.documents import find, write_rows

pa = require("parquet", "pyarrow")
pq = require("parquet", "pyarrow.parquet")
zstd = require("parquet", ZSTD)

quick = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

SIDES = ["docs", "store"]
PACKED = {".jsonl": lambda data: data, ".jsonl.gz": gzip.compress, ".jsonl.zst": zstd.compress}
UNPACK = {".jsonl": lambda data: data, ".jsonl.gz": gzip.decompress, ".jsonl.zst": zstd.decompress}


def listed(*paths, **params):
    return find(*paths, **params)[0]


def drop(documents, dropped, target):
    """Write the rows of documents without some, by their numbers; return what is written."""
    changed = np.array(dropped, np.int64)
    return rewrite(Run.quiet(), documents, changed, target, Dropping()).paths


def row_numbers(documents):
    return [int(name.rpartition(b":")[2]) for name in documents.names]


ODD = [
    b'{"text":"plain","n":1}',
    b'{"n":1.0,"text":"a","m":1e5}',
    b'  {"text" : "spaced" , "big":12345678901234567890123456789}\t',
    b'{"text":"\\u00e9\\ud83d\\ude00","escaped":"\\u0041"}',
    b'{"text":"twice","k":1,"k":2}',
    b'{"text":"","x":{"y":[1,[2,{"z":null}]]}}',
    *('{"text":"é漢😀"}'.encode(), b'{"text":"cr"}\r', b'{"text":""}', b"", b"  ", b"\r"),
    *(b"broken", b'{"x":1}', b"[1,2]", b'{"text":null}', b"\xff\xfe"),
    b'{"text":"' + b"long " * 50 + b'"}',
]


def split(whole):
    """Lines with their ends, which are newlines and nothing else."""
    lines = [line + b"\n" for line in whole.split(b"\n")]
    lines[-1] = lines[-1][:-1]
    return lines


endings = st.sampled_from(sorted(PACKED))


@quick
@given(st.lists(st.sampled_from(ODD), max_size=12), st.booleans(), st.data(), endings, endings)
def test_lines_that_are_kept_are_what_they_were(
    tmp_path, monkeypatch, lines, ended, data, ending, target_ending
):
    """Also over the ends of what is read at a time."""
    monkeypatch.setattr("lshdup.base.compression.CHUNK", 7)
    source, target = tmp_path / f"a{ending}", tmp_path / f"out{target_ending}"
    whole = b"\n".join(lines) + (b"\n" if ended and lines else b"")
    packed = PACKED[ending](whole)
    source.write_bytes(packed)
    target.unlink(missing_ok=True)
    documents = listed(source)
    numbers = row_numbers(documents)  # of the rows that can be dropped
    dropped = data.draw(st.sets(st.sampled_from(numbers)) if numbers else st.just(set()))
    assert drop(documents, [numbers.index(number) for number in dropped], target) == [target]
    kept = [line for number, line in enumerate(split(whole), 1) if number not in dropped]
    assert UNPACK[target_ending](target.read_bytes()) == b"".join(kept)
    assert source.read_bytes() == packed


def table_of(n):
    texts = [None if i % 7 == 3 else f"text number {i}" for i in range(n)]
    lists = [["a", None, "b" * i] if i % 3 else None for i in range(n)]
    typed = {
        "i8": (range(n), pa.int16()),
        "u64": ([2**64 - 1 - i for i in range(n)], pa.uint64()),
        "f": ([float("nan") if i % 5 == 0 else i / 3 for i in range(n)], pa.float32()),
        "when": ([i * 1_000_000_007 for i in range(n)], pa.timestamp("ns", "Europe/Berlin")),
        "day": (range(n), pa.date32()),
        "money": ([None if i % 4 == 0 else i for i in range(n)], pa.decimal128(20, 3)),
        "words": (lists, pa.list_(pa.string())),
        "map": ([[("k", i)] for i in range(n)], pa.map_(pa.string(), pa.int64())),
        "bytes": ([bytes([i % 256]) * 3 for i in range(n)], pa.binary(3)),
        "large": ([f"large {i}" for i in range(n)], pa.large_string()),
    }
    columns = {name: pa.array(*each) for name, each in typed.items()}
    columns["deep"] = pa.array([{"x": [{"y": i}], "z": None} for i in range(n)])
    columns["kinds"] = pa.array([f"kind {i % 4}" for i in range(n)]).dictionary_encode()
    columns["yes"] = pa.array([i % 2 == 0 for i in range(n)])
    table = pa.table({"text": texts, **columns, "nothing": pa.nulls(n)})
    return table.replace_schema_metadata({"made by": "a test", "k\xff": "ü"})


@settings(quick, max_examples=25 if WHOLE else 10)
@given(
    st.integers(0, 40), st.integers(1, 12), st.data(),
    st.sampled_from(["snappy", "zstd", "none"]), st.booleans(),
)  # fmt: skip
def test_parquet_keeps_every_value(tmp_path, monkeypatch, n, group, data, codec, in_parts):
    monkeypatch.setattr("lshdup.sources.rewriting._PART_BYTES", 1000 if in_parts else 1 << 20)
    source, target = tmp_path / "a.parquet", tmp_path / "b.parquet"
    table = table_of(n)
    pq.write_table(table, source, row_group_size=group, compression=codec)
    before = source.read_bytes()
    documents = listed(source)
    assert len(documents) == n
    dropped = data.draw(st.sets(st.integers(1, n)) if n else st.just(set()))
    drop(documents, [row_numbers(documents).index(number) for number in dropped], target)
    made, whole = pq.read_table(target), pq.read_table(source)
    assert made.schema.equals(whole.schema, check_metadata=True)
    kept = [number not in dropped for number in range(1, n + 1)]
    wanted = whole.filter(pa.array(kept, pa.bool_()))
    assert str(made["f"].to_pylist()) == str(wanted["f"].to_pylist())  # with NaN
    assert made.drop_columns("f").equals(wanted.drop_columns("f"))
    assert source.read_bytes() == before
    metadata = pq.ParquetFile(target).metadata
    codecs = {metadata.row_group(g).column(0).compression for g in range(metadata.num_row_groups)}
    assert codecs <= {"UNCOMPRESSED" if codec == "none" else codec.upper()}


def test_old_times_and_names_of_elements(tmp_path):
    source, target = tmp_path / "a.parquet", tmp_path / "b.parquet"
    times = pa.array([1, 2], pa.timestamp("ns"))
    table = pa.table({"text": ["a", "b"], "when": times, "l": [["x"], ["y"]]})
    codecs = {"text": "gzip", "when": "snappy", "l.list.item": "zstd"}
    old_forms = {"use_deprecated_int96_timestamps": True, "use_compliant_nested_type": False}
    pq.write_table(table, source, **old_forms, store_schema=False, compression=codecs)
    drop(listed(source), [0], target)
    old, new = pq.ParquetFile(source), pq.ParquetFile(target)
    assert new.schema.equals(old.schema)
    made = [new.metadata.row_group(0).column(at).compression for at in range(3)]
    assert made == [codec.upper() for codec in codecs.values()]
    assert new.read().equals(table.slice(1))


@pytest.mark.parametrize("words", [["text", "kind"], ["kind"], []])
def test_columns_with_a_dictionary_keep_one_and_others_get_none(tmp_path, words):
    source, target = tmp_path / "a.parquet", tmp_path / "b.parquet"
    pq.write_table(pa.table({"text": ["a", "b"], "kind": ["x", "x"]}), source, use_dictionary=words)
    drop(listed(source), [0], target)
    group = pq.ParquetFile(target).metadata.row_group(0)
    columns = [group.column(at) for at in range(2)]
    assert [each.path_in_schema for each in columns if each.has_dictionary_page] == words


def test_a_large_row_group_is_never_in_memory(tmp_path, monkeypatch):
    monkeypatch.setattr("lshdup.sources.rewriting._PART_BYTES", 1 << 20)
    rng = np.random.default_rng(1)
    texts = [rng.integers(97, 123, 2000).astype(np.uint8).tobytes().decode() for _ in range(10_000)]
    table = pa.table({"text": texts, "n": range(10_000)})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=10_000, use_dictionary=False)
    documents = listed(tmp_path / "a.parquet")
    order = np.argsort(documents.locations.starts)
    before, seen, reported = pa.total_allocated_bytes(), [], []

    class DropEven(rewriting.Change):
        def rows(self, table, rows, which):
            assert documents.locations.starts[which].tolist() == table["n"].take(rows).to_pylist()
            seen.append(pa.total_allocated_bytes() - before)
            return table.filter(pa.compute.equal(pa.compute.bit_wise_and(table["n"], 1), 1))

    run = replace(Run.quiet(), progress=lambda *each: reported.append(each))
    rewrite(run, documents, order[::2], tmp_path / "b.parquet", DropEven())
    assert pq.read_table(tmp_path / "b.parquet")["text"].to_pylist() == texts[1::2]
    assert len(seen) == 20
    assert max(seen) < 6 << 20  # of 20 MB: a part, the one before, and what the reader holds
    size = (tmp_path / "a.parquet").stat().st_size
    assert reported[-1] == ("write", size, size)
    assert sorted(reported) == reported


def test_what_has_no_room_is_not_begun(tmp_path, monkeypatch):
    (tmp_path / "a.jsonl").write_text('{"text":"a"}\n' * 10)
    documents, out = listed(tmp_path / "a.jsonl"), f"{tmp_path}/out/"
    disk = SimpleNamespace(free=13 * 8 - 1)
    monkeypatch.setattr("lshdup.sources.rewriting.shutil.disk_usage", lambda _: disk)
    with pytest.raises(InputError, match=r"take about 104 bytes, and its disk has 103 left"):
        drop(documents, range(2), out)
    assert not (tmp_path / "out").exists()
    drop(documents, range(3), out)  # one row less
    drop(documents, range(2), tmp_path / "b.jsonl.gz")  # nobody knows before


ROWS = '{"text":"a"}\n{"text":"b"}\n'


def test_parquet_to_standard_output(run, tmp_path):
    rows = [{"id": at, "text": f"one text {at % 2}"} for at in range(4)]
    write_rows(tmp_path / "a.parquet", rows)
    table = run("clusters a.parquet --write - --no-store").out
    assert pq.read_table(pa.BufferReader(table)).to_pylist() == rows[:2]


@pytest.mark.parametrize(
    ("command", "ending"),
    [*product(["clusters"], [".jsonl", ".csv", ".parquet"]), ("passages", ".parquet")],
)
def test_nothing_is_written_if_nothing_was_compared(run, tmp_path, command, ending):
    write_rows(tmp_path / f"a{ending}", [{"id": 1, "text": "a text"}])
    options = ["--write", f"out{ending}", "--removed", "gone.jsonl", "--no-store", "-q"]
    refused = run(command, f"a{ending}", "--text-field", "txt", *options, code=2).err
    assert "error: nothing was compared, so nothing is written" in refused
    last = refused.splitlines()[-1]
    assert "'txt', but id, text; did you mean --text-field text?" in last
    assert [path.name for path in tmp_path.iterdir()] == [f"a{ending}"]


def test_what_has_changed_or_has_no_folder_is_not_written(here):
    write_files(".", {"a.jsonl": ROWS})
    documents = listed("a.jsonl")
    with pytest.raises(InputError, match="is not written: No such file"):
        drop(documents, [0], Path("no/folder/b.jsonl"))
    Path("a.jsonl").write_text('{"text":"another"}\n{"text":"b"}\n')
    with pytest.raises(InputError, match="has changed"):
        drop(documents, [0], Path("b.jsonl"))
    assert [path.name for path in here.iterdir()] == ["a.jsonl"]


def test_a_file_that_changes_while_it_is_read_replaces_nothing(tmp_path, monkeypatch):
    source, target = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    source.write_text(ROWS)
    target.write_text("old")
    documents = listed(source)

    def chunks(file, real=rewriting.chunks):
        yield from real(file)
        Path(source).write_text("something else")

    monkeypatch.setattr(rewriting, "chunks", chunks)
    with pytest.raises(InputError, match="has changed"):
        drop(documents, [0], target)
    assert target.read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.jsonl", "b.jsonl"]


@pytest.mark.parametrize(("ending", "side"), part(product([*PACKED, ".parquet"], SIDES), 2))
def test_removed_ids_keep_their_types_and_order(run, tmp_path, ending, side):
    """Integers are integers, and strings that look like them are not; also of OTHER, by a store."""
    ids = [10, 9, "08", 30, 100] if ending != ".parquet" else [10, 9, 8, 30, 100]
    rows = [{"meta": {"id": each}, "text": f"one text, {at % 2}"} for at, each in enumerate(ids)]
    write_rows(tmp_path / f"a{ending}", rows)
    write_rows(tmp_path / "old.jsonl", [{"meta": {"id": "7"}, "text": "One text, 0."}])
    names = ["--id-field", "meta.id", "--no-store"]
    other = ["--against", "old.jsonl"]
    if side == "store":
        run("index old.jsonl --id-field meta.id --store kept")
        other = ["--against", "kept"]
    command = ["clusters", f"a{ending}", *names, "--write", f"o{ending}", "--removed", "-", "-q"]
    gone = [json.loads(line) for line in run(*command).lines]
    assert [(row["id"], row["kept"]) for row in gone] == [(ids[2], 10), (30, 9), (100, 10)]
    gone = [json.loads(line) for line in run(*command, *other).lines]
    wanted = [(10, "7"), (ids[2], "7"), (30, 9), (100, "7")]
    assert [(row["id"], row["kept"]) for row in gone] == wanted


# --- rows without parts of their texts: all else is as it was, byte for byte ----------------------

WORDS = st.text(st.sampled_from('ab é"\\\n漢😀'), max_size=12)


def cut(documents, parts, target):
    """Cut {name: [(start, end)]}."""
    rows = [(documents.find(name.encode()), *each) for name in parts for each in parts[name]]
    columns = np.array(sorted(rows), np.int64).reshape(-1, 3).T
    paths, uncut = write_cut(Run.quiet(), documents, *columns, target)
    return paths, {documents.names[number].decode() for number in uncut}


@settings(deadline=None)
@given(st.lists(WORDS | st.none(), min_size=1, max_size=3), st.data())
def test_parts_are_cut_from_the_fields_they_are_in(texts, data):
    """As if the fields were one text, in which each byte knows its field."""
    fields = [None if text is None else text.encode() for text in texts]
    bytes_of, at = {}, 0
    for number, field in enumerate(fields):
        for byte in field or b"":
            bytes_of[at] = (number, byte)
            at += 1
        at += 0 if field is None else 2
    cuts = sorted(data.draw(st.sets(st.integers(0, at), max_size=6)))
    parts = list(zip(cuts[::2], cuts[1::2], strict=False))
    gone = {at for start, end in parts for at in range(start, end)}
    kept = [each for at, each in bytes_of.items() if at not in gone]
    left = [bytes(byte for of, byte in kept if of == number) for number in range(len(fields))]
    left = [None if field is None else each for field, each in zip(fields, left, strict=True)]
    assert cut_texts(fields, parts) == left


@given(st.dictionaries(st.sampled_from(["text", "a", "b", "a.b"]), WORDS | st.none(), min_size=1),
       st.booleans(), st.sampled_from([b"", b"\xef\xbb\xbf", b"  "]))  # fmt: skip
def test_values_are_where_they_are_found(values, ascii_only, before):
    line = before + json.dumps(values | {"n": [1, {"text": "x"}]}, ensure_ascii=ascii_only).encode()
    for name, value in values.items():
        (place,) = find_values(line, [name])
        assert (place is None) == (value is None)
        if place is not None:
            start, end, text = place
            assert (json.loads(line[start:end]), text.decode()) == (value, value)


def test_values_within_values_and_none():
    line = b'{"text": {"body": "x"}, "text": {"body": "one"}}'
    assert find_values(line, ["text.body"]) == [(41, 46, b"one")]
    assert find_values(b'{"text": "x", "n": NaN}', ["text"]) is None
    assert find_values(b"[1]", ["text"]) is None


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_json_lines_are_cut_and_nothing_else(tmp_path, ending):
    lines = [
        b'{"n": 1.0, "text" : "one two three",  "m":1e5}', b"", b"broken",
        '{"text": "é\\u00e9 漢 four"}'.encode(),
        b'{"text": "\\u00e9 five six", "text2": 12345678901234567890123}',
        b'{"n": NaN, "text": "seven eight"}', b'{"text": "the last one"}',
    ]  # fmt: skip
    data = b"\n".join(lines)
    source, target = tmp_path / f"r.jsonl{ending}", tmp_path / f"out.jsonl{ending}"
    source.write_bytes(gzip.compress(data) if ending else data)
    documents = listed(source)
    parts = {1: [(4, 8)], 4: [(0, 5), (9, 13)], 5: [(0, 3)], 6: [(0, 5)], 7: [(3, 8)]}
    named = {f"{source}:{row}": each for row, each in parts.items()}
    assert cut(documents, named, target) == ([target], {f"{source}:6"})
    written = gzip.decompress(target.read_bytes()) if ending else target.read_bytes()
    lines[0] = b'{"n": 1.0, "text" : "one three",  "m":1e5}'
    lines[3] = '{"text": "漢 "}'.encode()
    lines[4] = b'{"text": "five six", "text2": 12345678901234567890123}'
    lines[6] = b'{"text": "the one"}'
    assert written == b"\n".join(lines)


@pytest.mark.parametrize("kind", ["string", "large_string", "binary", "dictionary", "string_view"])
def test_parquet_is_cut(tmp_path, kind):
    texts = [f"row {i} é same" if i % 5 else None for i in range(40)]
    try:
        column = pa.array(texts)
        column = column.dictionary_encode() if kind == "dictionary" else column.cast(kind)
    except pa.ArrowNotImplementedError:  # The lowest version allowed makes no views.
        assert kind == "string_view"
        assert int(pa.__version__.partition(".")[0]) < 20
        pytest.skip("this pyarrow makes no views")
    table = pa.table({"n": range(40), "text": column, "x": ["y"] * 40})
    table = table.replace_schema_metadata({"made": "here"})
    source, target = tmp_path / "r.parquet", tmp_path / "out.parquet"
    pq.write_table(table, source, row_group_size=7)
    documents = listed(source)
    parts = {f"{source}:{row + 1}": [(0, 4)] for row in (1, 2, 6, 7, 8, 39)}
    assert cut(documents, parts, target) == ([target], set())
    written = pq.read_table(target)
    assert written.schema.equals(table.schema, check_metadata=True)
    for row, text in enumerate(texts):
        texts[row] = text[4:] if f"{source}:{row + 1}" in parts else text
    found = written.column("text").cast(pa.string()).to_pylist()
    assert found == texts
    assert written.drop_columns("text") == table.drop_columns("text")


def test_rows_of_csv_are_not_cut(tmp_path):
    (tmp_path / "r.csv").write_text("text\none\n")
    with pytest.raises(ParameterError, match="not of CSV"):
        check_cutting(listed(tmp_path / "r.csv"))
