"""The lock of a store: one process at a time writes to it."""

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

from lshdup.base.atomic import Folder
from lshdup.base.system import hold, pread, pwrite
from lshdup.errors import ArtifactError
from lshdup.store.npz import cannot_write


@contextlib.contextmanager
def locked(path: Path, wait: float = 0.0) -> Iterator[None]:
    """Hold the lock file `path` of a store, where there are locks.

    Not every platform and file system has them. The system releases a lock however the process
    ends. The file holds the number of the process, for the message. It is never removed: a run
    that has just opened it would hold a lock that no other run sees.

    Raises ArtifactError if another run holds the lock, and goes on to do so for `wait` seconds.
    """
    try:
        with Folder(path.parent) as folder:
            descriptor = folder.open_lock(path.name)
    except OSError as error:
        raise cannot_write(path, error) from None
    try:
        _hold(descriptor, path.parent, time.monotonic() + wait)
        with contextlib.suppress(OSError):  # A full disk costs the number in a message.
            os.ftruncate(descriptor, pwrite(descriptor, b"%d\n" % os.getpid(), 0))
        yield
    finally:
        with contextlib.suppress(OSError):
            os.close(descriptor)


def _hold(descriptor: int, store: Path, until: float) -> None:
    try:
        while True:
            try:
                hold(descriptor)
                return
            except BlockingIOError:
                if time.monotonic() >= until:
                    raise
            time.sleep(0.05)
    except BlockingIOError:
        time.sleep(0.01)  # The other run may have begun just now, without its number.
        number = pread(descriptor, 20, 0).partition(b"\n")[0].decode("ascii", "replace")
        holder = f" (process {number})" if number.isdecimal() else ""
        message = f"another lshdup run{holder} is writing to {store}"
        hint = "wait until it is done (--wait SECONDS), or use --store DIR or --no-store"
        raise ArtifactError(message, hint) from None
