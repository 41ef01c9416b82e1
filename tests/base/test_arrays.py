"""Arrays in memory as far as its limit goes, else in temporary files."""

import mmap
import os
import tempfile

import numpy as np
import pytest

import lshdup.base.memory
from lshdup.base.memory import MOST_IN_MEMORY, Arrays, GrowingArray, are_equal, is_counting
from lshdup.base.ragged import StringTable
from lshdup.base.system import machine_memory
from lshdup.errors import ArtifactError
from tests.conftest import failing

MB = 1 << 20


def is_mapped(array):
    base = array
    while isinstance(base, np.ndarray):
        base = base.base
    return isinstance(base, mmap.mmap)


def test_memory_is_used_up_then_files_and_is_given_back(tmp_path):
    arrays = Arrays(32 * MB, tmp_path)
    first, second = arrays.empty(10 * MB, np.uint8), arrays.empty((2, 5 * MB), np.uint8)
    assert [is_mapped(each) for each in (first, second)] == [False, True]
    small = arrays.empty(MB, np.uint8)
    assert not is_mapped(small)
    part = first[5:]
    del first
    assert is_mapped(arrays.empty(10 * MB, np.uint8))  # a view keeps its array
    del part
    assert not is_mapped(arrays.empty(10 * MB, np.uint8))
    second[:] = 7
    copy = arrays.take(second, np.array([1, 0]))
    assert copy.sum(dtype=np.int64) == 70 * MB
    assert list(tmp_path.iterdir()) == []  # the files have no names


def test_a_large_array_is_in_the_store_or_in_memory_without_one(tmp_path):
    shape = MOST_IN_MEMORY // 8 + 1
    assert is_mapped(Arrays(1 << 40, tmp_path).empty(shape, np.uint64))
    assert not is_mapped(Arrays(1 << 40).empty(shape, np.uint64))


def test_a_disk_without_room_is_said_with_what_helps(tmp_path, monkeypatch):
    full = OSError(28, "No space left on device")
    monkeypatch.setattr("lshdup.base.memory.allocate", failing(full))
    for folder in (tmp_path, None, tmp_path / "missing"):
        with pytest.raises(ArtifactError, match=f"{MB + 1:,} bytes: No space left") as raised:
            Arrays(0, folder).empty(MB + 1, np.uint8)
        where = tmp_path if folder == tmp_path else tempfile.gettempdir()
        assert raised.value.message.startswith(f"{where} has no room")
        assert "TMPDIR" in raised.value.hint


def test_strings_taken_in_pieces_are_those_taken_at_once(monkeypatch, tmp_path):
    table = StringTable.from_strings(b"x" * (i % 7) + b"%d" % i for i in range(1000))
    indices = np.random.default_rng(0).integers(0, 1000, 700)
    whole = list(table.take(indices))
    monkeypatch.setattr("lshdup.base.ragged.ROWS_AT_ONCE", 64)
    monkeypatch.setattr("lshdup.base.memory._SMALL", 100)
    arrays = Arrays(0, tmp_path)
    pieces = table.take(indices, arrays)
    assert is_mapped(pieces.values)
    assert list(pieces) == whole == [table[i] for i in indices.tolist()]
    again = StringTable.concatenate([pieces, table, StringTable.from_strings([])], arrays)
    assert list(again) == [*whole, *table]


@pytest.mark.parametrize("at_once", [1, 7, 1 << 18])
def test_slices_give_what_numpy_gives_at_once(monkeypatch, tmp_path, at_once):
    """Values, indices and orders; numbers of any size and sign, equal ones in their order."""
    monkeypatch.setattr(lshdup.base.memory, "ROWS_AT_ONCE", at_once)
    monkeypatch.setattr(lshdup.base.memory, "_SMALL", 0)
    arrays, rng = Arrays(0, tmp_path), np.random.default_rng(3)
    for n in (0, 1, 2, 40):
        few = rng.integers(0, 4, n)
        keys = [
            few, rng.integers(-(1 << 63), (1 << 63) - 1, 4)[few],
            rng.integers(0, (1 << 64) - 1, 4, np.uint64)[few],
            few.astype(np.float64).view(np.int64), few > 1, np.full(n, 9),
        ]  # fmt: skip
        for some in ([0], [1], [2], [3], [4], [5], [4, 1], [5, 0, 2], [0, 1, 2, 3]):
            chosen = [keys[at] for at in some]
            order = arrays.order(n, [key.__getitem__ for key in chosen])
            assert order.tolist() == np.lexsort(chosen[::-1]).tolist()
        assert arrays.order(n, []).tolist() == list(range(n))
        assert arrays.find(keys[4]).tolist() == np.flatnonzero(keys[4]).tolist()
        assert arrays.where(n, keys[4].__getitem__).tolist() == arrays.find(keys[4]).tolist()
        assert arrays.compute(n, np.int64, few.__getitem__).tolist() == few.tolist()
        assert is_counting(np.arange(n))
        assert not n or not is_counting(np.arange(n) + 1)
        assert n < 2 or not is_counting(np.append(np.arange(n - 1), 0))
        assert are_equal(few, few.copy())
        assert not n or not are_equal(few, few + 1)
        assert not are_equal(few, np.append(few, 1))
    assert is_mapped(arrays.order(2, [np.arange(2).__getitem__]))


@pytest.mark.parametrize("at_once", [1, 7, 1 << 18])
def test_strings_match_as_in_a_dictionary(monkeypatch, tmp_path, at_once):
    """Each string has the last equal one, also of those that are repeated or empty."""
    monkeypatch.setattr(lshdup.base.memory, "ROWS_AT_ONCE", at_once)
    monkeypatch.setattr(lshdup.base.memory, "_SMALL", 0)
    arrays, rng = Arrays(0, tmp_path), np.random.default_rng(5)
    for n, m in ((0, 0), (0, 3), (3, 0), (1, 1), (40, 60), (60, 40)):
        old, new = ([b"%d" % i if i else b"" for i in rng.integers(0, 50, k)] for k in (n, m))
        rows = {string: row for row, string in enumerate(old)}
        table = StringTable.from_strings(old)
        matched = table.match(StringTable.from_strings(new), arrays)
        assert matched.tolist() == [rows.get(string, -1) for string in new]
    distinct = StringTable.from_strings(b"%d" % i for i in range(20))
    assert is_counting(distinct.match(distinct, arrays))


def test_an_array_grows_by_parts(tmp_path):
    """Its values are those of all parts, few at any time, and in a file beyond memory."""
    arrays, parts = Arrays(0, tmp_path), [np.arange(i % 5) for i in range(1000)]
    grown = GrowingArray(np.int64, arrays)
    assert grown.whole().tolist() == []
    for part in parts:
        grown.append(part)
        assert len(grown._parts) < 14
    assert grown.whole().tolist() == np.concatenate(parts).tolist()
    grown.append(np.zeros(MB, np.int64))
    grown.append(parts[4])
    assert is_mapped(grown.whole())
    assert grown.whole().tolist() == np.concatenate([*parts, np.zeros(MB), parts[4]]).tolist()
    assert os.listdir(tmp_path) == []


def test_strings_of_parts_are_gathered(tmp_path):
    parts = [[b"a", b"", b"long" * 50], [], [b"\0"], [b"b" * 3000]]
    tables = (StringTable.from_strings(part) for part in parts)
    gathered = StringTable.gather(tables, Arrays(0, tmp_path))
    assert list(gathered) == [string for part in parts for string in part]
    assert list(StringTable.gather([])) == []


def test_strings_that_are_there_again():
    every = [b"b", b"a", b"", b"b", b"c", b"", b"b"]
    table = StringTable.from_strings(every)
    assert sorted(table.repeats(Arrays(1 << 30))) == [[0, 3, 6], [2, 5]]
    assert [table.search(each) for each in (b"b", b"c", b"", b"d")] == [0, 4, None, None]
    odd = StringTable.from_strings([b"a\0", b"a\1", b"a", b"\0\0", b"\0"])
    assert [odd.search(each) for each in odd] == [0, 1, 2, 3, 4]


# --- the memory of the machine, or less where a control group says so ----------------------------

PHYSICAL = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")

#: The groups of a process, files below the folder of control groups, and the limit.
LIMITS = {
    "above": ("0::/a/b", {"a/b/memory.max": "max", "a/memory.max": "4096"}, 4096),
    "itself": ("0::/a/b", {"a/b/memory.max": "2048", "a/memory.max": "4096"}, 2048),
    "in a container": ("0::/host/path", {"memory.max": "4096"}, 4096),
    "version 1": ("4:cpu,memory:/a\n1:cpu:/b\n0::/",
                  {"memory/a/memory.limit_in_bytes": "4096", "cpu/b/memory.max": "1"}, 4096),
    "each controller": ("2:cpu:/b\n1:memory:/a", {"memory/a/memory.limit_in_bytes": "4096"}, 4096),
    "no limit": ("0::/a", {"a/memory.max": "max"}, PHYSICAL),
    "no group of memory": ("1:cpu:/", {}, PHYSICAL),
}  # fmt: skip


@pytest.mark.parametrize("case", LIMITS)
def test_the_least_limit_counts(tmp_path, case):
    groups, files, limit = LIMITS[case]
    (tmp_path / "groups").write_text(f"{groups}\n")
    for name, value in files.items():
        (tmp_path / "mount" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "mount" / name).write_text(f"{value}\n")
    assert machine_memory(tmp_path / "groups", tmp_path / "mount") == limit


def test_without_control_groups_it_is_the_memory_of_the_machine(tmp_path):
    assert machine_memory(tmp_path / "none", tmp_path) == PHYSICAL
    assert 0 < Arrays(None).limit <= PHYSICAL // 4
