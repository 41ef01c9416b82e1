"""A Spark session for the command line: started with sensible settings, or the one that is there.

Nothing here knows documents. Programs that use `lshdup.spark.comparison` bring their own session.
"""

import logging
import os
import re
import shutil
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from lshdup.errors import InputError
from lshdup.spark.errors import INSTALL_JAVA, not_started
from lshdup.spark.errors import one_line as one_line
from lshdup.spark.interrupts import Interrupts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: What mapInArrow takes beside pyspark itself.
_PACKAGES = ("pyspark", "pyarrow", "pandas")

#: Settings that `--spark-conf`, or Spark's own files, may say otherwise. Batches are small, because a worker holds some of them; and so are
#: the pieces of files, because the map side is work for the processor and not for the disk.
_SETTINGS = {
    "spark.app.name": "lshdup",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1024",
    "spark.sql.execution.arrow.maxBytesPerBatch": "8m",
    "spark.sql.files.maxPartitionBytes": "32m",
    "spark.sql.parquet.columnarReaderBatchSize": "1024",
}

#: And for a master that is this process: it has no page to look at, and holds the rows.
_LOCAL_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.driver.memory": "2g",
    "spark.driver.defaultJavaOptions": "-XX:+UseParallelGC",
}

#: Bytes of input for each partition of a shuffle, on which about as much is written as was read.
_PARTITION_BYTES = 32 << 20
_MOST_PARTITIONS = 20_000

#: Bytes that are kept of what Java says, and seconds to wait for the last of it.
_TAIL_BYTES, _MOMENT = 1 << 18, 0.5

#: What Spark says, again and again, while a job has no executor.
_NO_EXECUTORS = b"Initial job has not accepted any resources"


@contextmanager
def session(
    master: str | None,
    settings: Mapping[str, str],
    *,
    loud: bool = False,
    warn: Callable[[str], None] | None = None,
) -> Iterator["SparkSession"]:
    """A session with these settings over the defaults here, stopped at the end, or by SIGINT, if it was started here.

    loud : what Java says goes to stderr; otherwise it is kept, and quoted if the session does not start. warn : is told, by another thread
    and at most once, that a job waits for executors; not if Java itself is heard. Raises InputError if pyspark or Java is missing or too
    old, or if the master cannot be reached.
    """
    check_packages()
    import warnings

    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
    warnings.filterwarnings("ignore", "Unable to cleanly shutdown Spark JVM", RuntimeWarning)
    from pyspark.sql import SparkSession

    if not loud:  # else it prints what is raised too
        logging.getLogger("DataFrameQueryContextLogger").disabled = True
    running = SparkSession.getActiveSession()
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ  # by spark-submit, which has started Java
    if running is None and not submitted:
        _check_java()
    builder = SparkSession.builder
    if master:
        builder = builder.master(master)
    in_file = _in_file()
    set_before = {**in_file, **settings}
    local = (master or set_before.get("spark.master", "local" if not submitted else "")).startswith(
        "local"
    )
    if local:
        os.environ.setdefault(
            "PYSPARK_PYTHON", set_before.get("spark.pyspark.python", sys.executable)
        )
    defaults = {**_SETTINGS, **(_LOCAL_SETTINGS if local else {})}
    if "GC" in set_before.get("spark.driver.extraJavaOptions", ""):  # two collectors are an error
        defaults.pop("spark.driver.defaultJavaOptions", None)
    defaults = {name: value for name, value in defaults.items() if name not in in_file}
    if not submitted:
        for name, value in {**defaults, **settings}.items():
            builder = builder.config(name, value)
    else:  # what was said to spark-submit stands
        for name, value in settings.items():
            builder = builder.config(name, value)
    if running is not None:
        yield builder.getOrCreate()
        return
    said = None if loud else _Said()
    with Interrupts() as interrupts, _quiet_py4j(loud=loud):
        try:
            with _streams_to(said, interrupts):
                started = _started(builder, interrupts, loud=loud)
        except Exception as error:
            raise not_started(str(error), "" if said is None else said.text(), master) from None
        if submitted:
            for name, value in defaults.items():
                if name.startswith("spark.sql.") and not started.sparkContext.getConf().contains(
                    name
                ):
                    started.conf.set(name, value)
        if said is not None and warn is not None:
            said.await_text(_NO_EXECUTORS, partial(warn, _waiting(started)))
        try:
            yield started
        finally:
            if not interrupts.happened:
                with suppress(Exception):
                    started.stop()


def _in_file() -> dict[str, str]:
    """What `spark-defaults.conf` says: settings of a builder would override it."""
    from pyspark.find_spark_home import _find_spark_home

    folder = Path(os.environ.get("SPARK_CONF_DIR") or Path(_find_spark_home(), "conf"))
    try:
        lines = (folder / "spark-defaults.conf").read_text("utf-8", "replace").splitlines()
    except OSError:
        return {}
    found = (re.fullmatch(r"\s*([^\s#!=:][^\s=:]*)\s*[\s=:]\s*(.*?)\s*", line) for line in lines)
    return {each[1]: each[2] for each in found if each}


def _started(builder: Any, interrupts: Interrupts, *, loud: bool) -> "SparkSession":
    """In two steps, because the first sets pyspark's handler of SIGINT, and the second takes a second."""
    from pyspark import SparkConf, SparkContext

    conf = SparkConf()
    for name, value in builder._options.items():  # as `getOrCreate` does
        conf.set(name, value)
    context: Any = SparkContext.getOrCreate(conf)
    interrupts.again()
    if not loud:
        context._accumulatorServer.handle_error = (
            _nothing  # else it prints a traceback when Java ends
        )
    interrupts.started = started = builder.getOrCreate()
    return cast("SparkSession", started)


def _waiting(started: "SparkSession") -> str:
    """What is said if a job gets no executor."""
    conf = started.sparkContext.getConf()
    memory, cores = conf.get("spark.executor.memory", "1g"), conf.get("spark.executor.cores", "1")
    wanted = f"{memory} of memory (spark.executor.memory) and {cores} of its cores (spark.executor.cores) free"
    return f"waiting for executors: none has started, for which a worker of {started.sparkContext.master} must have {wanted}"


@contextmanager
def _quiet_py4j(*, loud: bool) -> Iterator[None]:
    """What goes wrong between Python and Java is raised, too; it need not be logged, by the root of all loggers, with a traceback."""
    loggers = [logging.getLogger(name) for name in (None, "py4j.clientserver", "py4j.java_gateway")]

    def is_wanted(record: logging.LogRecord) -> bool:
        return loud or f"{os.sep}py4j{os.sep}" not in record.pathname

    for each in loggers:
        each.addFilter(is_wanted)
    try:
        yield
    finally:
        for each in loggers:
            each.removeFilter(is_wanted)


def check_packages() -> None:
    """Raise InputError if what Spark takes is not installed."""
    missing = [name for name in _PACKAGES if find_spec(name) is None]
    if missing:
        message = f"--engine spark needs {' and '.join(missing)}"
        raise InputError(message, "pip install 'lshdup[spark]'")


def _check_java() -> None:
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else "java"  # noqa: PTH118
    if shutil.which(java) is None:
        message = (
            f"--engine spark needs Java, and JAVA_HOME is {home!r}, where it is not"
            if home
            else "--engine spark needs Java"
        )
        raise InputError(message, INSTALL_JAVA)


class _Said:
    """The last of what Java and its workers write to stderr, for as long as they live: a pipe, and a thread that empties it."""

    def __init__(self) -> None:
        self._end, self.writer = os.pipe()
        self._tail = bytearray()
        self._awaited = b""
        self._tell: Callable[[], None] = _nothing
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        with open(self._end, "rb", buffering=0) as said:  # noqa: PTH123 (a descriptor)
            while part := said.read(1 << 16):
                self._tail += part
                if self._awaited and self._awaited in self._tail[-len(part) - len(self._awaited) :]:
                    self._awaited = b""
                    with suppress(Exception):  # the pipe must be emptied
                        self._tell()
                del self._tail[:-_TAIL_BYTES]

    def await_text(self, text: bytes, tell: Callable[[], None]) -> None:
        """Call `tell`, in the thread that reads, when a text comes by from now on: the first time only."""
        self._tell, self._awaited = tell, text

    def text(self) -> str:
        """What was said, after a moment for what is under way."""
        self._thread.join(_MOMENT)
        return self._tail.decode("utf-8", "replace")


@contextmanager
def _streams_to(said: _Said | None, interrupts: Interrupts) -> Iterator[None]:
    """What is started meanwhile writes its stderr there, and its stdout, which is for the answer: Java says there why it does not start.

    said : None: to stderr. interrupts : is told where stderr of this process is.
    """
    own = {
        number: os.dup(number)
        for number, stream in ((1, sys.stdout), (2, sys.stderr))
        if stream is not None
    }
    interrupts.stderr = own.get(2)
    try:
        for number in own:
            if said is not None:
                os.dup2(said.writer, number)
            elif 2 in own:
                os.dup2(2, number)
        if said is not None:
            os.close(said.writer)
        yield
    finally:
        for number, kept in own.items():
            os.dup2(kept, number)
        interrupts.stderr = None
        for kept in own.values():
            os.close(kept)


def default_partitions(spark: "SparkSession", settings: Mapping[str, str], size: int) -> int:
    """Set how many partitions shuffles have, from the bytes of the input, unless a setting says; returns how many."""
    name = "spark.sql.shuffle.partitions"
    if name not in settings and not spark.sparkContext.getConf().contains(name):
        at_least = 2 * spark.sparkContext.defaultParallelism
        spark.conf.set(
            name, str(max(at_least, min(_MOST_PARTITIONS, -(-size // _PARTITION_BYTES))))
        )
    return int(str(spark.conf.get(name)))


def _nothing(*_: object) -> None:
    pass
