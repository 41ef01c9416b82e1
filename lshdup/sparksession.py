"""A Spark session for the command line: started with sensible settings, or the one that is there; and its errors in one line.

Nothing here knows documents. Programs that use `lshdup.spark` bring their own session.
"""

import logging
import os
import re
import shutil
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from lshdup.errors import InputError, LshdupError, ParameterError

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

_INSTALL_JAVA = "install Java 17 or later (openjdk-17-jre-headless), or set JAVA_HOME"


@contextmanager
def session(master: str | None, settings: Mapping[str, str], *, loud: bool = False) -> Iterator["SparkSession"]:
    """A session with these settings over the defaults here, stopped at the end if it was started here.

    loud : what Java says goes to stderr; otherwise it is kept, and quoted if the session does not start. Raises InputError if pyspark or
    Java is missing or too old, or if the master cannot be reached.
    """
    check_packages()
    import warnings

    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
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
    local = (master or settings.get("spark.master", "local" if not submitted else "")).startswith("local")
    if local:
        os.environ.setdefault("PYSPARK_PYTHON", settings.get("spark.pyspark.python", sys.executable))
    defaults = {**_SETTINGS, **(_LOCAL_SETTINGS if local else {})}
    if "GC" in settings.get("spark.driver.extraJavaOptions", ""):  # two collectors are an error
        defaults.pop("spark.driver.defaultJavaOptions", None)
    if not submitted:
        for name, value in {**defaults, **settings}.items():
            builder = builder.config(name, value)
    else:  # what was said to spark-submit stands
        for name, value in settings.items():
            builder = builder.config(name, value)
    said = None if loud or running is not None else _Said()
    try:
        with _stderr_to(said):
            started = builder.getOrCreate()
    except Exception as error:
        raise _not_started(str(error), "" if said is None else said.text(), master) from None
    if submitted:
        for name, value in defaults.items():
            if name.startswith("spark.sql.") and not started.sparkContext.getConf().contains(name):
                started.conf.set(name, value)
    try:
        yield started
    finally:
        if running is None:
            with suppress(Exception):
                started.stop()


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
        message = f"--engine spark needs Java, and JAVA_HOME is {home!r}, where it is not" if home else "--engine spark needs Java"
        raise InputError(message, _INSTALL_JAVA)


class _Said:
    """The last of what Java and its workers write to stderr, for as long as they live: a pipe, and a thread that empties it."""

    def __init__(self) -> None:
        self._end, self.writer = os.pipe()
        self._tail = bytearray()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        with open(self._end, "rb", buffering=0) as said:  # noqa: PTH123 (a descriptor)
            while part := said.read(1 << 16):
                self._tail += part
                del self._tail[:-_TAIL_BYTES]

    def text(self) -> str:
        """What was said, after a moment for what is under way."""
        self._thread.join(_MOMENT)
        return self._tail.decode("utf-8", "replace")


@contextmanager
def _stderr_to(said: _Said | None) -> Iterator[None]:
    """What is started meanwhile writes its stderr there."""
    if said is None:
        yield
        return
    if sys.stderr is None:
        os.close(said.writer)
        yield
        return
    own = os.dup(2)
    try:
        os.dup2(said.writer, 2)
        os.close(said.writer)
        yield
    finally:
        os.dup2(own, 2)
        os.close(own)


def _not_started(error: str, said: str, master: str | None) -> LshdupError:
    if "UnsupportedClassVersionError" in said:
        return InputError("this Java is too old for Spark", _INSTALL_JAVA)
    if "masters are unresponsive" in said or "masters are unresponsive" in error:
        return InputError(f"--master {master}: nothing answers there", "is it running, and is that the address it says it listens at?")
    if "Could not parse Master URL" in error or "Could not parse Master URL" in said:
        return ParameterError(f"--master is {master!r}, which Spark does not know", "for instance local[4], spark://host:7077, yarn")
    lines = [line.strip() for line in said.splitlines() if re.search(r"(?i)error|exception|cannot|could not", line)]
    return InputError(f"Spark did not start: {_brief(lines[0] if lines else error)}", "-v shows all that Java says")


def default_partitions(spark: "SparkSession", settings: Mapping[str, str], size: int) -> int:
    """Set how many partitions shuffles have, from the bytes of the input, unless a setting says; returns how many."""
    name = "spark.sql.shuffle.partitions"
    if name not in settings and not spark.sparkContext.getConf().contains(name):
        at_least = 2 * spark.sparkContext.defaultParallelism
        spark.conf.set(name, str(max(at_least, min(_MOST_PARTITIONS, -(-size // _PARTITION_BYTES)))))
    return int(str(spark.conf.get(name)))


@contextmanager
def one_line() -> Iterator[None]:
    """Errors of Spark, and those of lshdup that come back through it, as LshdupError."""
    from py4j.protocol import Py4JError, Py4JNetworkError
    from pyspark.errors import PySparkException

    try:
        yield
    except (ConnectionError, EOFError, Py4JNetworkError):
        raise _driver_ended() from None
    except (PySparkException, Py4JError) as error:
        raise _as_error(str(error)) from None


def _driver_ended() -> LshdupError:
    return InputError("Spark's driver, which is Java, ended", "give it more memory: --spark-conf spark.driver.memory=8g")


def _as_error(text: str) -> LshdupError:
    if "Answer from Java side is empty" in text or "trying to connect to the Java server" in text:
        return _driver_ended()
    own = re.findall(r"lshdup\.errors\.(\w+): (.*)", text)
    if own:
        return InputError(_brief(own[-1][1]))
    if "PATH_NOT_FOUND" in text:
        found = re.search(r"Path does not exist: (\S+)", text)
        return InputError(f"{found.group(1) if found else 'a path'} does not exist", "name folders or files that exist")
    if "No module named 'lshdup'" in text:
        return InputError(
            "Python on the executors does not find lshdup", "install it there, or ship it with --spark-conf spark.submit.pyFiles=…"
        )
    if "maxResultSize" in text:
        return InputError("the answer is too large to be printed", "write it with -o OUT.parquet or OUT.jsonl")
    if re.search(r"ExecutorLost|OutOfMemoryError|exited unexpectedly|MemoryError", text):
        return InputError(f"Spark lost executors: {_brief(text)}", "give them more memory: --spark-conf spark.executor.memory=4g")
    causes = re.findall(r"^(?:Caused by: )?((?:[\w.]+\.)?\w*(?:Error|Exception): .*)$", text, re.MULTILINE)
    return InputError(f"Spark: {_brief(causes[-1] if causes else text)}", "-v shows all that Java says")


def _brief(text: str) -> str:
    line: Any = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return str(line)[:300]
