"""Results as tables of other packages."""

import pickle
import sys
from typing import NamedTuple

import numpy as np
import pytest

from lshdup.api.rows import Groups, Rows
from lshdup.cli.columns import columns_of
from lshdup.cli.output import PIECE_ROWS, Target
from lshdup.errors import InputError
from tests.conftest import require

NAMES = ["a", "größe/\n", "\udcff.txt"]


class Near(NamedTuple):
    name: str
    score: float
    same: bool


def rows_of(fields=("name", "score", "same")):
    columns = NAMES, np.array([1.0, 0.5, 1 / 3]), np.array([True, False, True])
    return Rows(fields, columns), list(
        zip(NAMES, [1.0, 0.5, 1 / 3], [True, False, True], strict=True)
    )


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
    columns = [table[name] for name in ("name", "score", "same")]
    found = list(zip(*(column.to_list() if package != "pyarrow" else column.to_pylist()
                       for column in columns), strict=True))  # fmt: skip
    assert found == [(name.replace("\udcff", r"\udcff"), *rest) for name, *rest in tuples]
    assert np.shares_memory(columns[1].to_numpy(), rows.columns[1])
    assert len(getattr(rows[:0], f"to_{package.removeprefix('py')}")()) == 0


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
    file = pq.ParquetFile(path)
    assert (file.metadata.num_rows, file.metadata.num_row_groups) == (n, 17)
    found = file.read(["b", "similarity"])
    assert found["b"][n - 1].as_py() == f"document number {n - 1}"
    assert np.array_equal(found["similarity"].to_numpy(), np.arange(n) / n)


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
    ],
)
def test_a_table_that_cannot_be_written_is_refused_early(refused, here, monkeypatch, line, said):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert said in refused(f"{line} d")
    assert not list(here.iterdir())
