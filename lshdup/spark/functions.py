"""The functions of `pyspark.sql`. They are imported at their first use: pyspark is an extra."""

from typing import Any


def __getattr__(name: str) -> Any:
    if name.startswith("__"):  # Doctest and inspect look such names up in every module.
        raise AttributeError(name)
    from pyspark.sql import functions

    return getattr(functions, name)
