"""Ctrl-C in a run on Spark: its jobs are cancelled, what is half written is removed, and Java ends, all within seconds.

pyspark has a handler of its own for it, which sends a command through a connection that is in the middle of another, and then waits for
it. Called by sparksession.py; sparkwriting.py says what is being written.
"""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any

from lshdup.utils import atomic

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Seconds for Spark to stop in an orderly way, and then for Java to end by itself.
_PATIENCE, _JAVA_PATIENCE = 5.0, 3.0

#: What Spark writes into a folder begins so.
_OF_SPARK = ("part-", "_", ".")

#: Folders that Spark is writing now: Hadoop's paths and file systems, by the paths as they are spelled in full.
_under_way: dict[str, tuple[Any, Any]] = {}


@contextmanager
def being_written(place: Any, files: Any) -> Iterator[None]:
    """While Spark writes a folder: an interrupt removes it, and an error does if nothing is in it. It must be proven that it is new.

    place : Hadoop's path of it, in full; files : its file system.
    """
    name = str(place.toString())
    _under_way[name] = place, files
    try:
        yield
        atomic.note_kept(atomic.FILES)
    except Exception as error:
        if "PATH_ALREADY_EXISTS" not in str(error):  # then it is somebody else's
            with suppress(Exception):
                if not _entries(place, files):
                    files.delete(place, False)
        raise
    finally:
        _under_way.pop(name, None)


def _entries(place: Any, files: Any) -> list[str]:
    """What is in a folder. Raises an error of Java's if it is none."""
    if not files.getFileStatus(place).isDirectory():
        raise NotADirectoryError
    return [each.getPath().getName() for each in files.listStatus(place)]


class Interrupts:
    """What SIGINT does while a session is there. A context manager; does nothing outside of the main thread.

    started : the session, once it is there. stderr : a descriptor that has to be 2 again before anything is said. happened : whether there
    was an interrupt.

    After Spark has stopped what SIGINT did before is done: the process ends, or KeyboardInterrupt is raised, behind which the session is of
    no use. A second SIGINT does not wait.
    """

    def __init__(self) -> None:
        self.started: SparkSession | None = None
        self.stderr: int | None = None
        self.happened = False
        self._before: Any = None

    def __enter__(self) -> "Interrupts":
        if threading.current_thread() is threading.main_thread():
            self._before = signal.getsignal(signal.SIGINT)
            self.again()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
        if self.happened and isinstance(error, Exception):  # only that there is no Java any more
            raise KeyboardInterrupt from None

    def again(self) -> None:
        """Take the place of the handler that pyspark sets; but where SIGINT is ignored, it stays so."""
        if self._before is not None:
            signal.signal(signal.SIGINT, self._handle if callable(self._before) else self._before)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.stderr is not None:
            os.dup2(self.stderr, 2)
        if not self.happened:
            self.happened = True
            # In another thread, which has a connection of its own: that of this one may be in the middle of an answer.
            stopping = threading.Thread(target=self._stop, daemon=True)
            stopping.start()
            stopping.join(_PATIENCE)
            _end_java(_JAVA_PATIENCE)
        else:
            _end_java(0.0)
        self._before(number, frame)

    def _stop(self) -> None:
        if self.started is None:
            return
        with suppress(Exception):
            self.started.sparkContext.cancelAllJobs()
        with suppress(Exception):
            self.started.stop()
        with suppress(Exception):
            _remove_half_written()


def _remove_half_written() -> None:
    """Folders without the mark that Spark sets last; Java is there still."""
    for place, files in tuple(_under_way.values()):
        entries = _entries(place, files)
        if "_SUCCESS" in entries:
            atomic.note_kept(atomic.FILES)
        elif all(each.startswith(_OF_SPARK) for each in entries):
            files.delete(place, True)


def _end_java(patience: float) -> None:
    """If this process started it. It ends when its standard input does; if not soon, it is made to."""
    from pyspark import SparkContext

    process = getattr(SparkContext._gateway, "proc", None)  # there is no other way to it
    if process is None:
        return
    with suppress(Exception):
        process.stdin.close()
    with suppress(Exception):
        process.wait(patience)
    with suppress(Exception):
        process.kill()
        process.wait(1)
