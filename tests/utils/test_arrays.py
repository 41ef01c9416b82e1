"""Arrays in memory as far as its limit goes, else in temporary files."""

import mmap
import tempfile

import numpy as np
import pytest

from lshdup.errors import ArtifactError
from lshdup.utils.arrays import MOST_IN_MEMORY, Arrays

MB = 1 << 20


def is_mapped(array):
    base = array
    while isinstance(base, np.ndarray):
        base = base.base
    return isinstance(base, mmap.mmap)


def test_memory_is_used_up_then_files_and_is_given_back(tmp_path):
    arrays = Arrays(32 * MB, lambda: tmp_path)
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
    copy = arrays.copy(second)
    assert copy.sum(dtype=np.int64) == 70 * MB
    assert list(tmp_path.iterdir()) == []  # the files have no names


def test_a_large_array_is_in_the_store_or_in_memory_without_one(tmp_path):
    shape = MOST_IN_MEMORY // 8 + 1
    assert is_mapped(Arrays(1 << 40, lambda: tmp_path).empty(shape, np.uint64))
    assert not is_mapped(Arrays(1 << 40).empty(shape, np.uint64))


def test_a_disk_without_room_is_said_with_what_helps(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("lshdup.utils.scratch.allocate", full)
    for folder in (tmp_path, None, tmp_path / "missing"):
        with pytest.raises(ArtifactError, match=f"{MB + 1:,} bytes: No space left") as raised:
            Arrays(0, lambda folder=folder: folder).empty(MB + 1, np.uint8)
        where = tmp_path if folder == tmp_path else tempfile.gettempdir()
        assert raised.value.message.startswith(f"{where} has no room")
        assert "TMPDIR" in raised.value.hint
