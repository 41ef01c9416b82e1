"""The functions of `pyspark.sql`. They are imported at their first use: pyspark is an extra."""

from typing import Any


def __getattr__(name: str) -> Any:
    from pyspark.sql import functions

    return getattr(functions, name)
