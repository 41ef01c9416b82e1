"""Names as typed -> locations of input and output: on this machine, or in Hadoop's file systems."""

import os
import re
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lshdup.errors import InputError
from lshdup.spark.errors import first_line
from lshdup.utils import atomic

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_FORMATS = {".parquet": "parquet", ".jsonl": "json", ".ndjson": "json"}

_SCHEME = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*:/")

#: Advice for a name that cannot be looked up, by a part of the error.
_NEEDS_PACKAGE = (
    "Spark needs a package for it; for s3a: "
    "--spark-conf spark.jars.packages=org.apache.hadoop:hadoop-aws:VERSION"
)
_HINTS = {
    "ClassNotFoundException": _NEEDS_PACKAGE,
    "No FileSystem for scheme": _NEEDS_PACKAGE,
    "Illegal file pattern": r"[ ] { } * ? have a meaning in patterns; "
    r"a \ before one is the character itself",
}


def has_scheme(name: str) -> bool:
    """Return whether a name says which file system it is in.

    >>> has_scheme("s3a://b/x"), has_scheme("dbfs:/x"), has_scheme("a/b"), has_scheme("12:30.txt")
    (True, True, False, False)
    """
    return _SCHEME.match(name) is not None


def is_home_local(spark: "SparkSession") -> bool:
    """Return whether Spark takes names without a scheme to be on this machine."""
    context: Any = spark.sparkContext
    default = str(context._jsc.hadoopConfiguration().get("fs.defaultFS", "file:///"))
    return default.startswith("file:")


def spark_name(name: str, *, home_local: bool) -> str:
    """Return a name as Spark takes it: absolute on this machine, else as it was typed.

    Java does not know the current folder.

    >>> spark_name("hdfs:///x", home_local=True), spark_name("x", home_local=False)
    ('hdfs:///x', 'x')
    """
    return os.path.abspath(name) if home_local and not has_scheme(name) else name  # noqa: PTH100 (as typed)


def located(spark: "SparkSession", name: str) -> tuple[Any, Any]:
    """Return Hadoop's full path of a name, and its file system.

    Raises InputError if the session knows no such file system.
    """
    context: Any = spark.sparkContext
    try:
        path = context._jvm.org.apache.hadoop.fs.Path(name)
        system = path.getFileSystem(context._jsc.hadoopConfiguration())
        return path.makeQualified(system.getUri(), system.getWorkingDirectory()), system
    except Exception as error:
        raise not_looked_up(name, error) from None


def not_looked_up(name: str, error: Exception) -> InputError:
    """Return the error for a name whose file system gave no answer."""
    why = first_line(str(error))
    hints = (hint for part, hint in _HINTS.items() if part in str(error))
    hint = next(hints, "does Spark know that file system, and may it read and write there?")
    return InputError(f"{name!r} cannot be looked up: {why}", hint)


def format_of(name: str) -> str:
    """Return the format that Spark writes under a name: parquet, json, or nothing.

    >>> format_of("x.JSONL"), format_of("x.tsv"), format_of("a.parquet/")
    ('json', '', 'parquet')
    """
    typed = name.rstrip("/").lower()
    return next((form for ending, form in _FORMATS.items() if typed.endswith(ending)), "")


def check_output(spark: "SparkSession", name: str) -> str:
    """Return the path of an answer, as Spark takes it.

    Raises InputError if it exists or cannot be written. The proof is a file in its folder, created
    and removed.
    """
    home_local = is_home_local(spark)
    path = spark_name(name, home_local=home_local)
    if home_local and not has_scheme(name):
        atomic.check_writable(Path(path), folder=True)
    location, system = located(spark, path)
    try:
        if system.exists(location):
            message = f"-o {name} exists already"
            raise InputError(
                message, "Spark writes a folder and replaces none: name another, or remove it"
            )
        folder = location.getParent()
        while folder.getParent() is not None and not system.exists(folder):
            folder = folder.getParent()
        context: Any = spark.sparkContext
        probe = context._jvm.org.apache.hadoop.fs.Path(folder, f"_lshdup-{uuid.uuid4().hex}")
        system.create(probe, False).close()
        system.delete(probe, False)
    except InputError:
        raise
    except Exception as error:
        message = f"-o {name} cannot be written: {first_line(str(error))}"
        raise InputError(message, "name a path where Spark may write") from None
    return path
