"""Errors of Spark and of Java, which are pages, as errors of lshdup, which are one line. Called by sparksession.py."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lshdup.errors import InputError, LshdupError, ParameterError

INSTALL_JAVA = "install Java 17 or later (openjdk-17-jre-headless), or set JAVA_HOME"

#: The cause is on the line after the one and before the other.
_SAYS_NOTHING = (
    "Error occurred during initialization of VM",
    "Error: Could not create the Java Virtual Machine",
)


def not_started(error: str, said: str, master: str | None) -> LshdupError:
    """What is wrong if there is no session. said : by Java, before."""
    if "UnsupportedClassVersionError" in said:
        return InputError("this Java is too old for Spark", INSTALL_JAVA)
    if "masters are unresponsive" in said or "masters are unresponsive" in error:
        return InputError(
            f"--master {master}: nothing answers there",
            "is it running, and is that the address it says it listens at?",
        )
    if re.search("Could not parse Master URL|Master must either be", f"{error}\n{said}"):
        return ParameterError(
            f"--master is {master!r}, which Spark does not know",
            "for instance local[4], spark://host:7077, yarn",
        )
    no_java = re.search(rf"^{_SAYS_NOTHING[0]}\n(.+)|^(.+)\n{_SAYS_NOTHING[1]}", said, re.MULTILINE)
    lines = [
        line
        for line in said.splitlines()
        if re.search(r"(?i)error|exception|cannot|could not", line)
    ]
    why = (
        (no_java and (no_java[1] or no_java[2]))
        or _cause(error)
        or _cause(said)
        or next(iter(lines), error)
    )
    return InputError(f"Spark did not start: {_brief(why)}", "-v shows all that Java says")


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
    return InputError(
        "Spark's driver, which is Java, ended",
        "give it more memory: --spark-conf spark.driver.memory=8g",
    )


def _as_error(text: str) -> LshdupError:
    if "Answer from Java side is empty" in text or "trying to connect to the Java server" in text:
        return _driver_ended()
    own = re.findall(r"lshdup\.errors\.(\w+): (.*)", text)
    if own:
        return InputError(_brief(own[-1][1]))
    if "PATH_NOT_FOUND" in text:
        found = re.search(r"Path does not exist: (\S+)", text)
        return InputError(
            f"{found.group(1) if found else 'a path'} does not exist",
            "name folders or files that exist",
        )
    if "No module named 'lshdup'" in text:
        return InputError(
            "Python on the executors does not find lshdup",
            "install it there, or ship it with --spark-conf spark.submit.pyFiles=…",
        )
    if "maxResultSize" in text:
        return InputError(
            "the answer is too large to be printed", "write it with -o OUT.parquet or OUT.jsonl"
        )
    if re.search(r"ExecutorLost|OutOfMemoryError|exited unexpectedly|MemoryError", text):
        return InputError(
            f"Spark lost executors: {_brief(text)}",
            "give them more memory: --spark-conf spark.executor.memory=4g",
        )
    cause, hint = _brief(_cause(text) or text), "-v shows all that Java says"
    if "Relative path in absolute URI" in text:
        hint = "Hadoop cannot read files whose names have a colon; name their folder without a pattern or a scheme"
    elif re.search(
        r"is not a Parquet file|FAILED_READ_FILE|ParquetDecodingException|CorruptStatistics", text
    ):
        hint = "--spark-conf spark.sql.files.ignoreCorruptFiles=true leaves out what is damaged, without a count"
    return InputError(f"Spark: {cause}", hint)


def _cause(text: str) -> str:
    """The last cause in tracebacks of Java or Python, without the package of its class; empty if there is none."""
    before = r'(?:: |Caused by: |Exception in thread "[^"\n]*" )?'
    found = re.findall(
        rf"^{before}(?:[\w$]+\.)*([\w$]*(?:Error|Exception)(?:: .*)?)$", text, re.MULTILINE
    )
    told = [each for each in found if ": " in each]  # more than a name
    return next(iter([*told[-1:], *found[-1:]]), "")


def _brief(text: str) -> str:
    line: Any = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return str(line)[:300]
