"""The functions of `pyspark.sql`. They are imported at their first use: pyspark is an extra."""

from typing import Any


def __getattr__(name: str) -> Any:
    try:
        from pyspark.sql import functions
    except ModuleNotFoundError as error:  # Doctest looks for names in every module.
        raise AttributeError(name) from error
    return getattr(functions, name)
