"""A name as it is typed -> where it is: on this machine, or in one of Hadoop's file systems. For what is read and what is written alike."""

import os
import re
import uuid
from typing import TYPE_CHECKING, Any

from lshdup.errors import InputError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SCHEME = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*:/")


def has_scheme(name: str) -> bool:
    """Whether a name says itself which file system it is in.

    >>> has_scheme("s3a://b/x"), has_scheme("dbfs:/x"), has_scheme("a/b"), has_scheme("12:30.txt")
    (True, True, False, False)
    """
    return _SCHEME.match(name) is not None


def is_home_local(spark: "SparkSession") -> bool:
    """Whether names without a scheme are on this machine, as far as Spark is concerned too."""
    context: Any = spark.sparkContext
    return bool(
        str(context._jsc.hadoopConfiguration().get("fs.defaultFS", "file:///")).startswith("file:")
    )


def spark_name(name: str, *, home_local: bool) -> str:
    """A name as Spark takes it: the text that was typed; on this machine from the root, as Java does not know the current folder.

    >>> spark_name("hdfs:///x", home_local=True), spark_name("x", home_local=False)
    ('hdfs:///x', 'x')
    """
    return os.path.abspath(name) if home_local and not has_scheme(name) else name  # noqa: PTH100 (as typed)


def located(spark: "SparkSession", name: str) -> tuple[Any, Any]:
    """Hadoop's path, in full, for a name that Spark takes, and its file system, as this session's settings have them. Raises InputError if
    it knows none.
    """
    context: Any = spark.sparkContext
    try:
        path = context._jvm.org.apache.hadoop.fs.Path(name)
        system = path.getFileSystem(context._jsc.hadoopConfiguration())
        return path.makeQualified(system.getUri(), system.getWorkingDirectory()), system
    except Exception as error:
        raise not_looked_up(name, error) from None


def not_looked_up(name: str, error: Exception) -> InputError:
    """What to say of a name whose file system could not be asked."""
    why = cause(error)
    hint = "does Spark know that file system, and may it read and write there?"
    if "ClassNotFoundException" in why or "No FileSystem for scheme" in why:
        hint = "Spark needs a package for it; for s3a: --spark-conf spark.jars.packages=org.apache.hadoop:hadoop-aws:VERSION"
    elif "Illegal file pattern" in why:
        hint = r"[ ] { } * ? have a meaning in patterns; a \ before one is the character itself"
    return InputError(f"{name!r} cannot be looked up: {why}", hint)


def check_new(spark: "SparkSession", place: str, name: str) -> None:
    """Raise InputError if something is at a place, or if nothing can be written there: a file is made where it would be, and removed.

    name : as it was typed, for messages.
    """
    path, system = located(spark, place)
    try:
        if system.exists(path):
            message = f"-o {name} exists already"
            raise InputError(
                message, "Spark writes a folder and replaces none: name another, or remove it"
            )
        folder = path.getParent()
        while folder.getParent() is not None and not system.exists(folder):
            folder = folder.getParent()
        context: Any = spark.sparkContext
        probe = context._jvm.org.apache.hadoop.fs.Path(folder, f"_lshdup-{uuid.uuid4().hex}")
        system.create(probe, False).close()
        system.delete(probe, False)
    except InputError:
        raise
    except Exception as error:
        message = f"-o {name} cannot be written: {cause(error)}"
        raise InputError(message, "name a path where Spark may write") from None


def cause(error: BaseException) -> str:
    """What Java says, in one line."""
    return (str(getattr(error, "java_exception", error)).splitlines() or [type(error).__name__])[0][
        :300
    ]
