"""The sections of the suite, in the order in which they run."""

from collections.abc import Callable

from benchmarks.sections import (
    exact,
    first,
    hot,
    kinds,
    peers,
    recall,
    scale,
    spark,
    stages,
    templates,
    whole,
)
from benchmarks.sections.bench import Bench
from benchmarks.tables import Table

SECTIONS: dict[str, Callable[[Bench], list[Table]]] = {
    "whole": whole.section,
    "scale": scale.section,
    "peers": peers.section,
    "recall": recall.section,
    "exact": exact.section,
    "kinds": kinds.section,
    "stages": stages.section,
    "hot": hot.section,
    "templates": templates.section,
    "first": first.section,
    "spark": spark.section,
}
