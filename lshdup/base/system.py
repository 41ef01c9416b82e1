"""What not every system has: each call with what takes its place where it is missing.

Linux has all of them; macOS has no `posix_fallocate`; Windows has none, changes line ends of files
that are not opened as binary, and cannot replace a file that is open.
"""

import contextlib
import errno
import functools
import mmap
import os
import stat
import sys
import threading

# What `hashlib` has by this name, without OpenSSL, which it loads in 2 ms.
from _blake2 import blake2b as blake2b
from collections.abc import Callable
from pathlib import Path
from typing import IO, BinaryIO

from lshdup.errors import InputError

with contextlib.suppress(ImportError):  # Windows
    import resource  # at once: a limit of addresses may leave it no room later

#: Flags of `os.open` for a file of bytes, which is not translated, and not inherited. To read, not
#: blocking too: a file that has become a pipe since it was listed must not hold the run up.
BINARY = getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
READ = os.O_RDONLY | BINARY | getattr(os, "O_NONBLOCK", 0)

#: Flag of `os.open` for what must be no link.
NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)

#: Whether an open file can be renamed and removed; not on Windows.
CAN_MOVE_OPEN_FILES = os.name != "nt"

#: Standard output as a file; programs take ``-`` for it too.
STDOUT = Path("/dev/stdout")

#: Bytes of memory that are assumed where the system does not tell.
_MEMORY = 8 << 30

#: Bytes of zeros that are written at a time.
_CHUNK = 64 << 20

_moving = threading.Lock()  #: held while the position of a file is another one


def pread(file: int, size: int, at: int) -> bytes:
    """Read at most `size` bytes of a file from byte `at` on. Raises OSError."""
    if hasattr(os, "pread"):
        return os.pread(file, size, at)
    with _moving:
        os.lseek(file, at, os.SEEK_SET)
        return os.read(file, size)


def pread_into(file: int, buffer: memoryview, at: int) -> int:
    """Read bytes of a file from byte `at` on into memory; return how many. Raises OSError."""
    if hasattr(os, "preadv"):
        return os.preadv(file, [buffer], at)
    data = pread(file, len(buffer), at)
    buffer[: len(data)] = data
    return len(data)


def pwrite(file: int, data: bytes | memoryview, at: int) -> int:
    """Write bytes to a file from byte `at` on; return how many were written. Raises OSError."""
    if hasattr(os, "pwrite"):
        return os.pwrite(file, data, at)
    with _moving:
        os.lseek(file, at, os.SEEK_SET)
        return os.write(file, data)


def allocate(file: IO[bytes], size: int) -> None:
    """Take the room of an empty file, by writing zeros where there is no call. Raises OSError."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file.fileno(), 0, size)
        return
    for start in range(0, size, _CHUNK):
        file.write(bytes(min(_CHUNK, size - start)))
    file.flush()


def release(mapped: mmap.mmap) -> None:
    """Let go of the memory of a mapped file; where that cannot be said, the system decides."""
    if hasattr(mapped, "madvise") and hasattr(mmap, "MADV_DONTNEED"):
        mapped.madvise(mmap.MADV_DONTNEED)


def trim_memory() -> None:
    """Give back memory that is free, but that allocators keep for later, as far as can be said."""
    if "pyarrow" in sys.modules:
        sys.modules["pyarrow"].default_memory_pool().release_unused()
    if (trim := _c_function("malloc_trim")) is not None:
        trim(0)


@functools.cache
def _c_function(name: str) -> Callable[..., int] | None:
    """Return a function of the C library of this process; None if it has none of this name."""
    import ctypes

    try:
        return getattr(ctypes.CDLL(None), name, None)
    except (OSError, TypeError):  # Windows has no library without a name.
        return None


def hold(descriptor: int) -> bool:
    """Lock a file until it is closed; return whether this system and file system have locks.

    Raises BlockingIOError if another process holds the lock.
    """
    try:
        import fcntl
    except ImportError:
        return _hold_by_range(descriptor)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError:  # This file system has no locks.
        return False
    return True


def _hold_by_range(descriptor: int) -> bool:
    """Lock a byte far behind the end of a file, as Windows does."""
    try:
        import msvcrt
    except ImportError:
        return False
    locking, mode = getattr(msvcrt, "locking"), getattr(msvcrt, "LK_NBLCK")  # noqa: B009
    with _moving:
        os.lseek(descriptor, 1 << 30, os.SEEK_SET)
        try:
            locking(descriptor, mode, 1)
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EDEADLK):
                raise BlockingIOError(*error.args) from None
            return False
        finally:
            os.lseek(descriptor, 0, os.SEEK_SET)
    return True


def is_read_only(folder: os.PathLike[str]) -> bool:
    """Return whether a folder is on a file system that cannot be written. Raises OSError."""
    return hasattr(os, "statvfs") and bool(os.statvfs(folder).f_flag & os.ST_RDONLY)


def is_own(status: os.stat_result) -> bool:
    """Return whether a file is this user's, or this user is root, where files have owners."""
    return not hasattr(os, "getuid") or os.getuid() in (0, status.st_uid)


def standard_input() -> BinaryIO:
    """Return standard input as a file of bytes. Raise InputError if it is closed."""
    if sys.stdin is None:
        message = "standard input is closed"
        raise InputError(message, "send documents to it, or name them")
    return sys.stdin.buffer


def is_waiting_pipe(descriptor: int) -> bool:
    """Return whether a file is a pipe with data, or with an open writer, as far as can be told."""
    import select

    try:
        if not hasattr(select, "poll") or not stat.S_ISFIFO(os.fstat(descriptor).st_mode):
            return False
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        events = dict(poll.poll(0)).get(descriptor, 0)
    except (OSError, ValueError):
        return False
    return bool(events & select.POLLIN) or not events


def is_stdout(path: str | os.PathLike[str]) -> bool:
    """Return whether the name of an output stands for standard output."""
    return os.fspath(path) in ("-", os.fspath(STDOUT))


def address_space() -> int:
    """Return the bytes of addresses that this process may take; 0 for no limit."""
    if "resource" not in globals():
        return 0
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return 0 if limit == resource.RLIM_INFINITY else limit


def can_bound_processes() -> bool:
    """Return whether the time and memory of other processes can be bounded: not on Windows."""
    import select

    return hasattr(select, "poll") and "resource" in globals()


def with_slashes(path: bytes) -> bytes:
    """Return a path with / between its names, as all names of documents have it."""
    return path if os.sep == "/" else path.replace(os.fsencode(os.sep), b"/")


#: The smallest limit: with less, work in pieces is mostly overhead.
LEAST_LIMIT = 16 << 20

#: Where the kernel lists the control groups of this process, and where it shows them.
_GROUPS, _MOUNT = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")


def machine_memory(groups: Path = _GROUPS, mount: Path = _MOUNT) -> int:
    """Return the bytes of memory that this process may use.

    They are the memory of the machine, or less where a control group has a limit, as of a
    container (Linux kernel, admin-guide/cgroup-v2 "memory.max"; cgroup-v1/memory
    "memory.limit_in_bytes"); 8 GB where the system does not tell.

    groups, mount : list of the process's control groups, and the folder where they are shown.
    """
    memory = _MEMORY
    if hasattr(os, "sysconf"):
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        lines = groups.read_text("utf-8", "replace").splitlines()
    except OSError:
        return memory
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
            with contextlib.suppress(OSError, ValueError):  # Not shown here, or "max".
                memory = min(memory, int((folder / name).read_text("ascii")))
    return memory
