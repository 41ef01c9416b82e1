"""A Spark session for the command line, and errors of Spark as errors of lshdup.

Programs that use `lshdup.spark.pipeline` bring their own session.
"""

import os
import re
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from lshdup.errors import InputError, LshdupError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Defaults of settings that a running session may change. Batches are small because a worker holds
#: several of them. Pieces of files are small because reading is work for the processor.
_SETTINGS = {
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1024",
    "spark.sql.execution.arrow.maxBytesPerBatch": "8m",
    "spark.sql.files.maxPartitionBytes": "32m",
    "spark.sql.parquet.columnarReaderBatchSize": "1024",
}

#: Bytes of input, as Spark estimates it, for each partition of a shuffle.
_PARTITION_BYTES, _MOST_PARTITIONS = 64 << 20, 20_000

_MORE_MEMORY = "give the executors more memory: --spark-conf spark.executor.memory=4g"

#: Advice by a part of the error.
_HINTS = {
    "JAVA_GATEWAY_EXITED": "install Java 17 or later (openjdk-17-jre-headless), or set JAVA_HOME",
    "Master": "for instance --master local[4], spark://host:7077, yarn",
    "masters are unresponsive": "is the master running, and at the address of --master?",
    "PATH_NOT_FOUND": "name files or folders that exist",
    "ClassNotFoundException": "Spark needs a package for it; for s3a: "
    "--spark-conf spark.jars.packages=org.apache.hadoop:hadoop-aws:VERSION",
    "No module named 'lshdup'": "install lshdup on the executors, or ship it with "
    "--spark-conf spark.submit.pyFiles=…",
    "OutOfMemoryError": _MORE_MEMORY,
    "exited unexpectedly": _MORE_MEMORY,
}


def check_packages() -> None:
    """Raise InputError if a package that Spark needs is not installed."""
    missing = [name for name in ("pyspark", "pyarrow", "pandas") if find_spec(name) is None]
    if missing:
        message = f"`lshdup spark` needs {' and '.join(missing)}"
        raise InputError(message, "pip install 'lshdup[spark]'")


@contextmanager
def session(
    master: str | None, settings: Mapping[str, str], *, quiet: bool
) -> Iterator["SparkSession"]:
    """Start a session, or use the running one; stop a started one at the end.

    master : URL of the master; None leaves the choice to Spark's configuration.
    settings : settings that override Spark's configuration and the defaults of this module.
    quiet : let Spark say errors only, and show no bar.

    Raises InputError if Java is missing or too old, or if the master does not answer.
    """
    from pyspark.sql import SparkSession

    running = SparkSession.getActiveSession()
    if not master or master.startswith("local"):
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("SPARK_DRIVER_MEMORY", "2g")  # Spark's own settings come first
    bar = str(not quiet and sys.stderr is not None and sys.stderr.isatty()).lower()
    builder = SparkSession.builder.appName("lshdup").config("spark.ui.showConsoleProgress", bar)
    for name, value in {**({"spark.master": master} if master else {}), **settings}.items():
        builder = builder.config(name, value)
    handler = signal.getsignal(signal.SIGINT)
    try:
        started = builder.getOrCreate()
    except Exception as error:
        message = f"Spark did not start: {first_line(str(error))}"
        raise InputError(message, _hint(str(error))) from None
    if running is None:
        with suppress(ValueError):  # not in the main thread, where no handler was set either
            signal.signal(signal.SIGINT, handler)  # Spark's own may wait for an answer
        known = started.sparkContext.getConf()
        for name, value in _SETTINGS.items():
            if not known.contains(name):
                started.conf.set(name, value)
    if quiet:
        started.sparkContext.setLogLevel("ERROR")
    try:
        yield started
    finally:
        # After Ctrl-C the connection may still wait for an answer; Java ends with this process.
        if running is None and not isinstance(sys.exc_info()[1], KeyboardInterrupt):
            with suppress(Exception):  # Java may have ended
                started.stop()


def set_partitions(documents: Any, settings: Mapping[str, str]) -> None:
    """Set the number of partitions of a shuffle by the size of the input, unless a setting has it.

    documents : a DataFrame. settings : those of `session`.
    """
    spark, name = documents.sparkSession, "spark.sql.shuffle.partitions"
    if name not in settings and not spark.sparkContext.getConf().contains(name):
        plan = documents._jdf.queryExecution().optimizedPlan()
        wanted = -(-int(str(plan.stats().sizeInBytes())) // _PARTITION_BYTES)
        at_least = 2 * spark.sparkContext.defaultParallelism
        spark.conf.set(name, str(max(at_least, min(_MOST_PARTITIONS, wanted))))


def first_line(text: str) -> str:
    r"""Return the first line that names a cause, without the package of its Java class.

    >>> first_line("An error occurred while calling o1.x.\n: java.io.IOException: no\n\tat x")
    'IOException: no'
    """
    lines = text.strip().splitlines() or [""]
    line = next((line for line in lines if not line.startswith("An error occurred")), lines[0])
    return re.sub(r"^(: )?(([a-z]\w*\.)+(?=[A-Z]))?", "", line)[:300]


def _hint(text: str) -> str:
    return next((hint for part, hint in _HINTS.items() if part in text), "")


@contextmanager
def one_line() -> Iterator[None]:
    """Raise errors of Spark, and errors of lshdup from its workers, as InputError."""
    from py4j.protocol import Py4JError, Py4JNetworkError
    from pyspark.errors import PySparkException

    try:
        yield
    except (ConnectionError, EOFError, PySparkException, Py4JError) as error:
        is_cut = isinstance(error, ConnectionError | EOFError | Py4JNetworkError)
        raise as_error("" if is_cut else str(error)) from None


def as_error(text: str) -> LshdupError:
    """Return the error of lshdup for what Spark says; nothing, if the connection is cut.

    >>> as_error("").message == as_error("An error occurred while calling o1.x").message
    True
    """
    # A call that Java answers has the trace behind its first line.
    if not text or re.fullmatch("An error occurred while calling .*", text):
        hint = "give it more memory: --spark-conf spark.driver.memory=8g"
        return InputError("Spark's driver, which is Java, ended", hint)
    if of_worker := re.findall(r"lshdup\.errors\.\w+: (.*)", text):
        return InputError(of_worker[-1][:300])
    return InputError(f"Spark: {first_line(text)}", _hint(text))
