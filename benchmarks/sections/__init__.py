"""The sections of the suite, in the order in which they run."""

from collections.abc import Callable

from benchmarks.sections import (
    across,
    budgets,
    containment,
    decontamination,
    exact,
    first,
    folders,
    hot,
    index,
    kinds,
    noisy,
    office,
    passages,
    peers,
    recall,
    rows,
    scale,
    scripts,
    spark,
    stages,
    templates,
    whole,
)
from benchmarks.sections.bench import Bench
from benchmarks.tables import Table

#: Sections that take long, or much memory: only where they are named.
ON_REQUEST = ("peers-all", "across")

SECTIONS: dict[str, Callable[[Bench], list[Table]]] = {
    "budgets": budgets.section,
    "whole": whole.section,
    "scale": scale.section,
    "peers": peers.section,
    "index": index.section,
    "recall": recall.section,
    "exact": exact.section,
    "containment": containment.section,
    "decontamination": decontamination.section,
    "passages": passages.section,
    "folders": folders.section,
    "rows": rows.section,
    "kinds": kinds.section,
    "noisy": noisy.section,
    "scripts": scripts.section,
    "stages": stages.section,
    "hot": hot.section,
    "templates": templates.section,
    "first": first.section,
    "office": office.section,
    "spark": spark.section,
    "peers-all": peers.large_section,
    "across": across.section,
}
