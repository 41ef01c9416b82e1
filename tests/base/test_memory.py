"""The memory that may be used: of the machine, or less where a control group says so."""

import os

import pytest

from lshdup.base.memory import Arrays
from lshdup.base.system import machine_memory

PHYSICAL = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


@pytest.mark.parametrize(
    ("groups", "files", "limit"),
    [
        pytest.param("0::/a/b\n", {"a/b/memory.max": "max", "a/memory.max": "4096"}, 4096,
                     id="a group above"),
        pytest.param("0::/a/b\n", {"a/b/memory.max": "2048", "a/memory.max": "4096"}, 2048,
                     id="the group itself"),
        pytest.param("0::/host/path\n", {"memory.max": "4096"}, 4096, id="in a container"),
        pytest.param("4:cpu,memory:/a\n1:cpu:/b\n0::/\n",
                     {"memory/a/memory.limit_in_bytes": "4096", "cpu/b/memory.max": "1"}, 4096,
                     id="version 1"),
        pytest.param("2:cpu:/b\n1:memory:/a\n", {"memory/a/memory.limit_in_bytes": "4096"}, 4096,
                     id="version 1, each controller for itself"),
        pytest.param("0::/a\n", {"a/memory.max": "max"}, PHYSICAL, id="no limit"),
        pytest.param("1:cpu:/\n", {}, PHYSICAL, id="no group of memory"),
    ],
)  # fmt: skip
def test_the_least_limit_counts(tmp_path, groups, files, limit):
    (tmp_path / "groups").write_text(groups)
    for name, value in files.items():
        (tmp_path / "mount" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "mount" / name).write_text(f"{value}\n")
    assert machine_memory(tmp_path / "groups", tmp_path / "mount") == limit


def test_without_control_groups_it_is_the_memory_of_the_machine(tmp_path):
    assert machine_memory(tmp_path / "none", tmp_path) == PHYSICAL
    assert 0 < Arrays(None).limit <= PHYSICAL // 4
