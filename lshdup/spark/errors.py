"""Errors of Spark and Java as errors of lshdup: the first line that names the cause, and a hint."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from lshdup.errors import InputError, LshdupError

INSTALL_JAVA = "install Java 17 or later (openjdk-17-jre-headless), or set JAVA_HOME"

_MASTERS = "for instance --master local[4], spark://host:7077, yarn"
_MORE_MEMORY = "give the executors more memory: --spark-conf spark.executor.memory=4g"

#: Advice by a part of the error.
_HINTS = {
    "UnsupportedClassVersionError": INSTALL_JAVA,
    "masters are unresponsive": "is the master running, and at the address of --master?",
    "Could not parse Master URL": _MASTERS,
    "Master must either be": _MASTERS,
    "PATH_NOT_FOUND": "name folders or files that exist",
    "No module named 'lshdup'": "install lshdup on the executors, or ship it with "
    "--spark-conf spark.submit.pyFiles=…",
    "maxResultSize": "the answer is too large to be printed: write it with -o OUT.parquet",
    "ExecutorLost": _MORE_MEMORY,
    "OutOfMemoryError": _MORE_MEMORY,
    "exited unexpectedly": _MORE_MEMORY,
    "MemoryError": _MORE_MEMORY,
    "Relative path in absolute URI": "Hadoop cannot read files whose names have a colon; "
    "name their folder without a pattern or a scheme",
} | dict.fromkeys(
    ("is not a Parquet file", "FAILED_READ_FILE", "ParquetDecodingException", "CorruptStatistics"),
    "--spark-conf spark.sql.files.ignoreCorruptFiles=true leaves out what is damaged, "
    "without a count",
)

#: Lines without a cause: headings, places in a program, logs.
_NOISE = re.compile(
    r"\s|$|An error occurred while calling|Traceback \(most recent|Picked up |WARNING|NOTE"
    r"|Error occurred during initialization of VM|\d\d/\d\d/\d\d |Using |Setting |To adjust "
)


def first_line(text: str) -> str:
    r"""Return the first line that names a cause, without the package of its Java class.

    >>> first_line("An error occurred while calling o1.x.\n: java.io.IOException: no\n\tat x")
    'IOException: no'
    """
    lines = (line for line in text.splitlines() if not _NOISE.match(line))
    line = next(lines, text.strip().partition("\n")[0])
    return re.sub(r'^(: |Exception in thread "[^"]*" )?(([a-z]\w*\.)+(?=[A-Z]))?', "", line)[:300]


def not_started(error: str, java_output: str) -> LshdupError:
    """Return why there is no session: what Java wrote last if Java itself ended, else the error."""
    ended = "JAVA_GATEWAY_EXITED" in error and java_output.strip()
    why = first_line(java_output if ended else error)
    return InputError(f"Spark did not start: {why}", _hint(error + java_output))


@contextmanager
def one_line() -> Iterator[None]:
    """Raise errors of Spark, and errors of lshdup from its workers, as InputError."""
    from py4j.protocol import Py4JError, Py4JNetworkError
    from pyspark.errors import PySparkException

    try:
        yield
    except (ConnectionError, EOFError, Py4JNetworkError):
        raise _driver_ended() from None
    except (PySparkException, Py4JError) as error:
        raise _as_error(str(error)) from None


def _driver_ended() -> LshdupError:
    return InputError(
        "Spark's driver, which is Java, ended",
        "give it more memory: --spark-conf spark.driver.memory=8g",
    )


def _as_error(text: str) -> LshdupError:
    if "Answer from Java side is empty" in text or "trying to connect to the Java server" in text:
        return _driver_ended()
    if of_worker := re.findall(r"lshdup\.errors\.\w+: (.*)", text):
        return InputError(of_worker[-1][:300])
    return InputError(f"Spark: {first_line(text)}", _hint(text))


def _hint(text: str) -> str:
    hints = (hint for part, hint in _HINTS.items() if part in text)
    return next(hints, "-v shows all that Java says")
