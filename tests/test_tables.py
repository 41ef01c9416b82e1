"""Results as tables of other packages."""

import pickle
import re
import sys
import tracemalloc
from collections import namedtuple

import numpy as np
import pytest

import lshdup
from lshdup.api.rows import Groups, Rows
from lshdup.cli.columns import columns_of
from lshdup.cli.output import PIECE_ROWS, Target
from lshdup.errors import InputError, ParameterError
from tests.conftest import require

NAMES = ["a", "größe/\n", "\udcff.txt"]

Near = namedtuple("Near", "name score same")


def rows_of(fields=Near._fields):
    cells = NAMES, [1.0, 0.5, 1 / 3], [True, False, True]
    return Rows(fields, (NAMES, *map(np.array, cells[1:]))), list(zip(*cells, strict=True))


def test_rows_are_the_list_of_their_tuples():
    plain, tuples = rows_of()
    named, _ = rows_of(Near)
    for rows, wanted in ((plain, tuples), (named, [Near(*row) for row in tuples])):
        assert rows == wanted == list(rows) == [rows[at] for at in range(-3, 0)]
        assert repr(rows) == repr(wanted)
        assert all(type(cell) in (str, float, bool) for row in rows for cell in row)
        for at in (slice(1, None), slice(None, None, -1), slice(5, 9)):
            assert rows[at] == wanted[at]
            assert isinstance(rows[at], Rows)
        assert np.shares_memory(rows[1:].columns[1], rows.columns[1])
        assert pickle.loads(pickle.dumps(rows)) == rows
        assert rows != wanted[:-1] != rows
        assert rows != tuple(wanted)
        assert wanted[1] in rows and rows.index(wanted[1]) == 1  # noqa: PT018
        with pytest.raises(IndexError):
            rows[3]
    assert named[0].name == "a"
    empty = plain[:0]
    assert empty == [] and not empty and repr(empty) == "[]"  # noqa: PT018
    long = Rows(("at",), [np.arange(200_000)])
    assert [at for (at,) in long] == list(range(200_000))


def test_groups_are_lists_of_lists():
    require("parquet", "pyarrow")
    rows, tuples = rows_of()
    groups = Groups(rows, np.array([0, 2, 3]))
    wanted = [tuples[:2], tuples[2:]]
    assert groups == wanted == list(groups) == groups[:] == [groups[0], groups[-1]]
    assert repr(groups) == repr(wanted)
    assert pickle.loads(pickle.dumps(groups)) == wanted
    arrow = groups.to_arrow()
    assert arrow.column_names == ["group", "name", "score", "same"]
    assert arrow["group"].to_pylist() == [1, 1, 2]
    assert not len(Groups(rows[:0], np.zeros(1, np.int64)).to_arrow())


@pytest.mark.parametrize("package", ["pyarrow", "pandas", "polars"])
def test_tables_have_the_rows_and_share_the_numbers(package):
    """An independent reader finds the tuples; a byte that is not UTF-8 is an escape of JSON."""
    require({"pyarrow": "parquet"}.get(package, package), package)
    rows, tuples = rows_of()
    table = getattr(rows, f"to_{package.removeprefix('py')}")()
    columns = [table[name] for name in Near._fields]
    cells = (each.to_pylist() if package == "pyarrow" else each.to_list() for each in columns)
    found = list(zip(*cells, strict=True))
    assert found == [(name.replace("\udcff", r"\udcff"), *rest) for name, *rest in tuples]
    # A frame of pandas may be changed, and the rows stay.
    assert np.shares_memory(columns[1].to_numpy(), rows.columns[1]) == (package != "pandas")
    none = getattr(rows[:0], f"to_{package.removeprefix('py')}")()
    assert len(none) == 0
    kind = "type" if package == "pyarrow" else "dtype"
    kinds = [getattr(column, kind) for column in columns]
    assert [getattr(none[name], kind) for name in Near._fields] == kinds


def test_a_missing_package_is_said_in_one_line(monkeypatch):
    rows, _ = rows_of()
    for package, extra in (("pyarrow", "parquet"), ("pandas", "pandas"), ("polars", "polars")):
        monkeypatch.setitem(sys.modules, package, None)
        with pytest.raises(InputError, match=f"^a table of {package} needs {package}$") as error:
            getattr(rows, f"to_{package.removeprefix('py')}")()
        assert error.value.hint == f"pip install 'lshdup[{extra}]'"


# --- listings in Parquet files ---


def test_a_long_listing_is_written_a_row_group_at_a_time(tmp_path):
    pa, pq = require("parquet", "pyarrow"), require("parquet", "pyarrow.parquet")
    n, held, path = 1 << 21, [], tmp_path / "p.parquet"

    def pieces():
        for start in range(0, n, PIECE_ROWS):
            held.append(pa.total_allocated_bytes())
            numbers = range(start, start + PIECE_ROWS)
            names = [b"document number %d" % at for at in numbers]
            yield names, names, [at / n for at in numbers], [None] * PIECE_ROWS

    assert Target("parquet", path=path).write_pieces(columns_of("pairs"), pieces())
    assert max(held) - held[0] < 64 << 20
    rows = [(b"a", b"%d" % at, 0.5, None) for at in range(3000)]
    some = Target("parquet", path=tmp_path / "some.parquet")
    assert some.write_pieces(columns_of("pairs"), ([[cell] for cell in row] for row in rows))
    found = pq.read_table(tmp_path / "some.parquet").to_pydict()
    assert found["b"] == [str(at) for at in range(3000)]
    file = pq.ParquetFile(path)
    assert (file.metadata.num_rows, file.metadata.num_row_groups) == (n, 17)
    found = file.read(["b", "similarity"])
    assert found["b"][n - 1].as_py() == f"document number {n - 1}"
    assert np.array_equal(found["similarity"].to_numpy(), np.arange(n) / n)
    for package in ("polars", "pandas"):  # polars has a reader of its own.
        frame = require(package, package).read_parquet(path)
        assert np.array_equal(frame["similarity"].to_numpy(), np.arange(n) / n)
        assert list(frame["a"][-2:]) == [f"document number {at}" for at in (n - 2, n - 1)]
        assert frame["same"].count() == 0


def test_what_fails_leaves_the_older_file(tmp_path):
    require("parquet", "pyarrow")

    def pieces():
        yield [b"a"], [b"b"], [1.0], [None]
        raise KeyboardInterrupt

    path = tmp_path / "p.parquet"
    path.write_bytes(b"older")
    with pytest.raises(KeyboardInterrupt):
        Target("parquet", path=path).write_pieces(columns_of("pairs"), pieces())
    assert path.read_bytes() == b"older"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("pairs --format parquet", "a Parquet file is not written to standard output"),
        ("pairs --format parquet -o -", "a Parquet file is not written to standard output"),
        ("pairs -0 -o p.parquet", "-0 and -o p.parquet exclude each other"),
        ("pairs -o p.parquet", "Parquet files need pyarrow pip install 'lshdup[parquet]'"),
        ("clusters --removed p.parquet", "Parquet files need pyarrow"),
        ("passages --emit template -o t.parquet", "-o t.parquet: .parquet is not written here"),
    ],
)
def test_a_table_that_cannot_be_written_is_refused_early(refused, here, monkeypatch, line, said):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert said in refused(f"{line} d")
    assert not list(here.iterdir())


# --- tables as input ---

TEXTS = ["one two three four five", "one two three four six", "", "größe 漢字 one two three"]


class Streamed:
    """A table of a package that is not known here, which streams arrays of Arrow."""

    columns = ("n", "body")

    def __init__(self, table):
        self.__arrow_c_stream__ = table.__arrow_c_stream__


def packages():
    extras = {"pyarrow": "parquet", "pandas": "pandas", "polars": "polars"}
    return [require(extra, package) for package, extra in extras.items()]


def test_a_column_is_as_a_list_of_its_texts():
    pa, pd, pl = packages()
    wanted = lshdup.MinHash(TEXTS)
    columns = [
        tuple(TEXTS), np.array(TEXTS), np.array(TEXTS, object), pd.Series(TEXTS),
        pd.Series(TEXTS, dtype="string[pyarrow]"), pd.Series(TEXTS, dtype="category"),
        pl.Series(TEXTS), pa.array(TEXTS), pa.array(TEXTS, pa.large_string()),
        pa.array(TEXTS).dictionary_encode(), pa.array(["x", *TEXTS])[1:],
        pa.chunked_array([TEXTS[:1], [], TEXTS[1:]]), iter(TEXTS),
    ]  # fmt: skip
    for column in columns:
        found = lshdup.MinHash(column)
        assert found.all_docs() == wanted.all_docs() == ["0", "1", "2", "3"], column
        assert np.array_equal(found.signatures, wanted.signatures), column
        assert np.array_equal(found.sets.values, wanted.sets.values), column
    assert all(lshdup.MinHash(column[:0]).all_docs() == [] for column in columns[:-1])
    assert lshdup.MinHash(pd.Series(TEXTS, ["x", 7, "y", 2])).all_docs() == ["x", "7", "y", "2"]


def tables():
    """The table of ids and texts of each package."""
    pa, pd, pl = packages()
    cells = {"n": [7, 3, 5, 9], "name": [*"abcd"], "body": TEXTS}
    table = pa.table(cells)
    return [pd.DataFrame(cells), pl.DataFrame(cells), table, table.to_batches()[0], Streamed(table)]


@pytest.mark.parametrize("at", range(5))
def test_columns_of_a_table_have_texts_and_names(at):
    table = tables()[at]
    for id_field, names in (("n", "7359"), ("name", "abcd"), ("", "0123")):
        wanted = lshdup.NearDuplicates(dict(zip(names, TEXTS, strict=True)), threshold=0.1)
        found = lshdup.NearDuplicates(table, threshold=0.1, text_field="body", id_field=id_field)
        assert found.pairs() == wanted.pairs() != []
    index = lshdup.Index.open(["else"], threshold=0.1)
    index.add_many(table, text_field="body", id_field="name")
    assert list(index) == ["0", *"abcd"]
    assert index.query(TEXTS[0]) == lshdup.Index.open(
        {"0": "else", **dict(zip("abcd", TEXTS, strict=True))}, threshold=0.1
    ).query(TEXTS[0])
    if at == 0:  # Labels are names, as of a Series.
        assert lshdup.MinHash(table[1:3], text_field="body").all_docs() == ["1", "2"]
    if at == 2:
        made = lshdup.MinHash(table.to_reader(), text_field="body", id_field="name")
        assert made.all_docs() == [*"abcd"]


@pytest.mark.parametrize(
    ("cells", "options", "said"),
    [
        ({"text": ["a", None]}, {}, "the text of document '1' is null, not str"),
        ({"text": ["a", b"b"]}, {}, "the text of document '1' is bytes, not str"),
        ({"text": [1, 2]}, {}, "the text of document '0' is int, not str"),
        ({"text": ["a", float("nan")], "n": ["x", "y"]}, {"id_field": "n"}, "'y' is null, not str"),
        ({"text": ["a", "b"], "n": ["x", None]}, {"id_field": "n"}, "the id of row 1 is null"),
        ({"text": ["a", "b"], "n": [1.0, 2.0]}, {"id_field": "n"}, "the id of row 0 is float"),
        ({"text": ["a", "b"], "n": [True, False]}, {"id_field": "n"}, "the id of row 0 is bool"),
        ({"text": ["a", "b"], "n": ["x", "x"]}, {"id_field": "n"}, "rows 0 and 1 have one id, 'x'"),
        ({"txt": ["a"]}, {}, "no column 'text', but txt|did you mean text_field='txt'?"),
        ({"body": ["a"]}, {}, "no column 'text', but body|name another with text_field"),
        ({"text": ["a"], "n": [1]}, {"id_field": "N"}, "no column 'N'|did you mean id_field='n'?"),
    ],
)  # fmt: skip
def test_a_bad_table_is_refused_with_its_row(cells, options, said):
    pa, pd, pl = packages()
    frames = [pd.DataFrame(cells)]
    if len({type(cell) for cell in cells.get("text", ["a"])} - {type(None)}) == 1:
        frames += [pl.DataFrame(cells), pa.table(cells)]
    said, _, hint = said.partition("|")
    for made in (lshdup.MinHash, lshdup.NearDuplicates):
        for frame in frames:
            with pytest.raises(InputError, match=re.escape(said)) as refused:
                made(frame, **options)
            assert hint in refused.value.hint


class Lazy:
    """A table of polars that is not collected yet."""

    __module__, columns = "polars.lazyframe.frame", ["text"]


def test_what_is_no_table_or_column_is_refused():
    pd = require("pandas", "pandas")
    twice = pd.DataFrame([["a", "b"]], columns=["text", "text"])
    labels = pd.DataFrame({"text": ["a", "b"]}, index=[1, 1])
    for documents, options, error, said in (
        (twice, {}, InputError, "the table has two columns 'text'"),
        (pd.DataFrame({"text": pd.array(["a", None], "string")}), {}, InputError, "'1' is null"),
        (labels, {}, InputError, "two documents have one name in the index of the Series"),
        (Lazy(), {}, InputError, "documents are given as Lazy"),
        (np.array("a"), {}, InputError, "documents are given as ndarray"),
        (np.array([["a"]]), {}, InputError, "documents are given as ndarray"),
        (["a"], {"id_field": "n"}, ParameterError, "text_field and id_field are of files"),
        ({"a": "b"}, {"text_field": "a"}, ParameterError, "text_field and id_field are of files"),
    ):  # fmt: skip
        with pytest.raises(error, match=said):
            lshdup.MinHash(documents, **options)


@pytest.mark.parametrize("at", range(3))
def test_texts_of_a_table_are_not_copied_all_at_once(at):
    """Of 40 MB of texts, a part is in memory beside the table."""
    pa, pd, pl = packages()
    text = "one two three four five six seven eight nine ten " * 80
    table = [pd.DataFrame, pl.DataFrame, pa.table][at]({"text": [text] * 10_000})
    lshdup.MinHash(table[:2])
    tracemalloc.start()
    try:
        lshdup.MinHash(table)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 25 << 20, peak
