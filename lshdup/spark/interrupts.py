"""SIGINT in a run on Spark: cancel jobs, stop the session, remove half-written output folders."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any

from lshdup.utils import atomic

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Seconds for Spark to stop.
_PATIENCE = 5.0

#: Output folders that Spark is writing: Hadoop's path of each folder, and its file system.
_unfinished: list[tuple[Any, Any]] = []


@contextmanager
def unfinished(
    path: Any, files: Any, wait_for_tasks: Callable[[], None] = lambda: None
) -> Iterator[None]:
    """Mark a new output folder as half-written for the length of a block.

    SIGINT removes such a folder; an error removes it only if it holds no finished file.

    path : Hadoop's full path of the folder.
    files : the file system of the path.
    wait_for_tasks : returns when the tasks of a failed job, which may still write, have ended.
    """
    _unfinished.append((path, files))
    try:
        yield
        atomic.note_kept(atomic.FILES)
    except Exception as error:
        if "PATH_ALREADY_EXISTS" not in str(error):  # else another program has made the folder
            with suppress(Exception):
                wait_for_tasks()
                names = _names(path, files)
                if names in ([], ["_temporary"]):
                    files.delete(path, bool(names))
        raise
    finally:
        _unfinished.remove((path, files))


def wait_for_tasks(session: "SparkSession") -> None:
    """Wait until no task of a session runs, at most as long as Spark may take to stop."""
    until = time.monotonic() + _PATIENCE
    tracker = session.sparkContext._jsc.sc().statusTracker()
    while time.monotonic() < until:
        if not sum(executor.numRunningTasks() for executor in tracker.getExecutorInfos()):
            return
        time.sleep(0.05)


def _names(path: Any, files: Any) -> list[str]:
    if not files.getFileStatus(path).isDirectory():
        raise NotADirectoryError
    return [entry.getPath().getName() for entry in files.listStatus(path)]


class Interrupts:
    """The handler of SIGINT for the life of a session; a context manager.

    pyspark's own handler sends a command on a connection that may still wait for an answer. This
    handler stops Spark from another thread, which has its own connection, and then calls the
    previous handler. A second SIGINT calls the previous handler at once. Java ends with the
    process. Where SIGINT is ignored, and outside of the main thread, nothing changes.

    session : the session, set once it has started.
    stderr : descriptor of stderr while descriptor 2 is another file, else None.
    happened : whether SIGINT has stopped the session.
    """

    def __init__(self) -> None:
        self.session: SparkSession | None = None
        self.stderr: int | None = None
        self.happened = False
        self._previous: Any = None

    def __enter__(self) -> "Interrupts":
        if threading.current_thread() is threading.main_thread():
            self._previous = signal.getsignal(signal.SIGINT)
            self.install()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._previous is not None:
            signal.signal(signal.SIGINT, self._previous)
        if self.happened and isinstance(error, Exception):  # of the connection to a stopped Spark
            raise KeyboardInterrupt from None

    def install(self) -> None:
        """Set the handler; again after pyspark has set its own."""
        if self._previous is not None:
            handler = self._handle if callable(self._previous) else self._previous
            signal.signal(signal.SIGINT, handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self.happened = True
        signal.signal(signal.SIGINT, self._previous)
        if self.stderr is not None:
            os.dup2(self.stderr, 2)
        if self.session is not None:
            stopping = threading.Thread(target=_stop, args=(self.session,), daemon=True)
            stopping.start()
            stopping.join(_PATIENCE)
        self._previous(number, frame)


def _stop(session: "SparkSession") -> None:
    for step in (session.sparkContext.cancelAllJobs, session.stop, _remove_unfinished):
        with suppress(Exception):
            step()


def _remove_unfinished() -> None:
    """Remove the folders without Spark's last mark that hold only files of Spark."""
    for path, files in _unfinished:
        names = _names(path, files)
        if "_SUCCESS" in names:
            atomic.note_kept(atomic.FILES)
        elif all(name.startswith(("part-", "_", ".")) for name in names):
            files.delete(path, True)
