"""A Spark session for the command line: started with suitable settings, or the running one.

Programs that use `lshdup.spark.pipeline` bring their own session.
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
from lshdup.spark.interrupts import Interrupts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: The packages that mapInArrow imports beside pyspark itself.
_PACKAGES = ("pyspark", "pyarrow", "pandas")

#: Defaults, which `--spark-conf` and Spark's own files override. Batches are small because a worker
#: holds several of them. Pieces of files are small because reading is work for the processor.
_SETTINGS = {
    "spark.app.name": "lshdup",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1024",
    "spark.sql.execution.arrow.maxBytesPerBatch": "8m",
    "spark.sql.files.maxPartitionBytes": "32m",
    "spark.sql.parquet.columnarReaderBatchSize": "1024",
}

#: Defaults for a master in this process: it needs no web page, and its memory holds the rows.
_LOCAL_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.driver.memory": "2g",
    "spark.driver.defaultJavaOptions": "-XX:+UseParallelGC",
}

#: Bytes of input for each partition of a shuffle, which writes about as much as was read.
_PARTITION_BYTES = 32 << 20
_MOST_PARTITIONS = 20_000

#: Bytes of Java's output that are kept, and seconds to wait for the last of them.
_TAIL_BYTES, _TAIL_SECONDS = 1 << 18, 0.5

#: Spark's warning, repeated while a job has no executor.
_NO_EXECUTORS = b"Initial job has not accepted any resources"

#: What Spark's ConsoleProgressBar writes: a bar, or blanks over the last bar.
_PROGRESS_BAR = re.compile(rb"\r(?:\[Stage [^\r\n]*| +)\r")


@contextmanager
def session(
    master: str | None,
    settings: Mapping[str, str],
    *,
    loud: bool = False,
    progress: bool = False,
    warn: Callable[[str], None] | None = None,
) -> Iterator["SparkSession"]:
    """Start a session, or use the running one; stop a started one at the end, and on SIGINT.

    master : URL of the master; None leaves the choice to Spark's configuration.
    settings : settings that override the defaults of this module.
    loud : let Java write to stderr; otherwise its last output is quoted if no session starts.
    progress : let Spark show its progress bar on stderr.
    warn : notified once, from another thread, if a job waits for executors and not `loud`.

    Raises InputError if pyspark or Java is missing or too old, or if the master does not answer.
    """
    check_packages()
    import warnings

    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
    warnings.filterwarnings("ignore", "Unable to cleanly shutdown Spark JVM", RuntimeWarning)
    from pyspark.sql import SparkSession

    if not loud:  # this logger prints errors that are raised too
        logging.getLogger("DataFrameQueryContextLogger").disabled = True
    running = SparkSession.getActiveSession()
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ  # by spark-submit, which has started Java
    if running is None and not submitted:
        _check_java()
    builder, defaults = _builder(master, settings, progress=progress, submitted=submitted)
    if running is not None:
        yield builder.getOrCreate()
        return
    output = None if loud else JavaOutput()
    with Interrupts() as interrupts, _quiet_py4j(loud=loud):
        try:
            with _redirected_to(output, interrupts):
                started = _start(builder, interrupts, loud=loud)
        except Exception as error:
            raise not_started(str(error), "" if output is None else output.text()) from None
        if submitted:
            for name, value in defaults.items():
                if name.startswith("spark.sql.") and not started.sparkContext.getConf().contains(
                    name
                ):
                    started.conf.set(name, value)
        if output is not None and warn is not None:
            output.notify(_NO_EXECUTORS, partial(warn, waiting_for_executors(started)))
        try:
            yield started
        finally:
            if not interrupts.happened:
                with suppress(Exception):
                    started.stop()


def _builder(
    master: str | None, settings: Mapping[str, str], *, progress: bool, submitted: bool
) -> tuple[Any, dict[str, str]]:
    """Return a builder with all settings, and the defaults among them."""
    from pyspark.sql import SparkSession

    in_file = settings_in_file()
    set_explicitly = {**in_file, **settings}
    url = master or set_explicitly.get("spark.master", "" if submitted else "local")
    local = url.startswith("local")
    if local:
        python = set_explicitly.get("spark.pyspark.python", sys.executable)
        os.environ.setdefault("PYSPARK_PYTHON", python)
    defaults = _SETTINGS | (_LOCAL_SETTINGS if local else {})
    defaults["spark.ui.showConsoleProgress"] = str(progress).lower()
    if progress:  # the width of the bar
        os.environ.setdefault("COLUMNS", str(shutil.get_terminal_size().columns))
    if "GC" in set_explicitly.get("spark.driver.extraJavaOptions", ""):  # Java refuses two of them
        defaults.pop("spark.driver.defaultJavaOptions", None)
    defaults = {name: value for name, value in defaults.items() if name not in in_file}
    builder = SparkSession.builder
    if master:
        builder = builder.master(master)
    # The settings of spark-submit have been read by Java already; defaults here must not undo them.
    for name, value in {**({} if submitted else defaults), **settings}.items():
        builder = builder.config(name, value)
    return builder, defaults


def settings_in_file() -> dict[str, str]:
    """Return the settings of `spark-defaults.conf`, which those of a builder would override."""
    from pyspark.find_spark_home import _find_spark_home

    folder = Path(os.environ.get("SPARK_CONF_DIR") or Path(_find_spark_home(), "conf"))
    try:
        lines = (folder / "spark-defaults.conf").read_text("utf-8", "replace").splitlines()
    except OSError:
        return {}
    found = (re.fullmatch(r"\s*([^\s#!=:][^\s=:]*)\s*[\s=:]\s*(.*?)\s*", line) for line in lines)
    return {setting[1]: setting[2] for setting in found if setting}


def _start(builder: Any, interrupts: Interrupts, *, loud: bool) -> "SparkSession":
    """Start context and session one by one: the first replaces the handler of SIGINT."""
    from pyspark import SparkConf, SparkContext

    conf = SparkConf()
    for name, value in builder._options.items():  # as `getOrCreate` does
        conf.set(name, value)
    context: Any = SparkContext.getOrCreate(conf)
    interrupts.install()
    if not loud:  # the default prints a traceback when Java ends
        context._accumulatorServer.handle_error = lambda *_: None
    interrupts.session = started = builder.getOrCreate()
    return cast("SparkSession", started)


def waiting_for_executors(started: "SparkSession") -> str:
    """Return the warning for a job that gets no executor."""
    conf = started.sparkContext.getConf()
    memory, cores = conf.get("spark.executor.memory", "1g"), conf.get("spark.executor.cores", "1")
    return (
        "waiting for executors: none has started, for which a worker of "
        f"{started.sparkContext.master} must have {memory} of memory (spark.executor.memory) "
        f"and {cores} of its cores (spark.executor.cores) free"
    )


@contextmanager
def _quiet_py4j(*, loud: bool) -> Iterator[None]:
    """Keep py4j from logging errors, with a traceback, that it raises too."""
    loggers = [logging.getLogger(name) for name in (None, "py4j.clientserver", "py4j.java_gateway")]

    def is_wanted(record: logging.LogRecord) -> bool:
        return loud or f"{os.sep}py4j{os.sep}" not in record.pathname

    for logger in loggers:
        logger.addFilter(is_wanted)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(is_wanted)


def check_packages() -> None:
    """Raise InputError if a package that Spark needs is not installed."""
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


class JavaOutput:
    """The last output of Java and its workers: a pipe, and a thread that reads it while they live.

    Spark's progress bar goes on to stderr.

    writer : descriptor of the pipe's end for writing.
    """

    def __init__(self) -> None:
        self._reader, self.writer = os.pipe()
        self._tail = bytearray()
        self._awaited = b""
        self._callback: Callable[[], None] | None = None
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        with open(self._reader, "rb", buffering=0) as pipe:  # noqa: PTH123 (a descriptor)
            while part := pipe.read(1 << 16):
                with suppress(OSError):  # the pipe must be read to its end
                    os.write(2, b"".join(_PROGRESS_BAR.findall(part)))
                self._tail += part
                recent = self._tail[-len(part) - len(self._awaited) :]
                if self._callback is not None and self._awaited in recent:
                    callback, self._callback = self._callback, None
                    with suppress(Exception):
                        callback()
                del self._tail[:-_TAIL_BYTES]

    def notify(self, text: bytes, callback: Callable[[], None]) -> None:
        """Call a function, from the reading thread, when a text appears for the first time."""
        self._awaited, self._callback = text, callback

    def text(self) -> str:
        """Return the output, after a moment for its last part."""
        self._thread.join(_TAIL_SECONDS)
        return self._tail.decode("utf-8", "replace")


@contextmanager
def _redirected_to(output: JavaOutput | None, interrupts: Interrupts) -> Iterator[None]:
    """Let processes that start meanwhile inherit another stderr, and the same for stdout.

    Java explains on its stdout why it does not start; stdout of lshdup is for the answer.

    output : None for stderr of this process.
    interrupts : notified of the descriptor that stderr has meanwhile.
    """
    own = {
        number: os.dup(number)
        for number, stream in ((1, sys.stdout), (2, sys.stderr))
        if stream is not None
    }
    interrupts.stderr = own.get(2)
    try:
        for number in own:
            if output is not None:
                os.dup2(output.writer, number)
            elif 2 in own:
                os.dup2(2, number)
        if output is not None:
            os.close(output.writer)
        yield
    finally:
        for number, saved in own.items():
            os.dup2(saved, number)
        interrupts.stderr = None
        for saved in own.values():
            os.close(saved)


def default_partitions(spark: "SparkSession", settings: Mapping[str, str], size: int) -> int:
    """Set the number of partitions of a shuffle, unless a setting has it, and return it.

    size : bytes of the input.
    """
    name = "spark.sql.shuffle.partitions"
    if name not in settings and not spark.sparkContext.getConf().contains(name):
        at_least = 2 * spark.sparkContext.defaultParallelism
        partitions = max(at_least, min(_MOST_PARTITIONS, -(-size // _PARTITION_BYTES)))
        spark.conf.set(name, str(partitions))
    return int(str(spark.conf.get(name)))
