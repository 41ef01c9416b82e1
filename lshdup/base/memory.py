"""The memory that this process may use, and the share of it that a stage plans for by default."""

from collections.abc import Iterator
from pathlib import Path

from lshdup.base.system import physical_memory

#: The smallest limit: with less, work in pieces is mostly overhead.
LEAST_LIMIT = 16 << 20

#: Where the kernel lists the control groups of this process, and where it shows them.
_GROUPS, _MOUNT = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")


def default_limit() -> int:
    """Return the bytes that a stage plans for without --memory: a quarter of the memory."""
    return machine_memory() // 4


def machine_memory(groups: Path = _GROUPS, mount: Path = _MOUNT) -> int:
    """Return the bytes of memory that this process may use.

    They are the memory of the machine, or less where a control group has a limit, as of a
    container (Linux kernel, admin-guide/cgroup-v2 "memory.max"; cgroup-v1/memory
    "memory.limit_in_bytes").

    groups, mount : list of the process's control groups, and the folder where they are shown.
    """
    return min([physical_memory(), *_group_limits(groups, mount)])


def _group_limits(groups: Path, mount: Path) -> Iterator[int]:
    """Yield the limits of the control groups of this process, and of the groups above them."""
    try:
        lines = groups.read_text("utf-8", "replace").splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        top, name = (
            (mount / "memory", "memory.limit_in_bytes") if controllers else (mount, "memory.max")
        )
        group = top / path.lstrip("/")
        # A container may see the path that its group has outside: the groups above are shown.
        for folder in (group, *group.parents[: len(group.parts) - len(top.parts)]):
            try:
                yield int((folder / name).read_text("ascii"))
            except (OSError, ValueError):  # Not shown here, or "max".
                continue
