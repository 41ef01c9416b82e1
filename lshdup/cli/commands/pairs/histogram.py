"""`lshdup pairs --histogram`."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from lshdup.cli.columns import column_names
from lshdup.cli.messages import warn_of_changes
from lshdup.cli.output import print_rows
from lshdup.cli.session import Session
from lshdup.errors import ParameterError
from lshdup.params import ClusterParams

if TYPE_CHECKING:
    from pathlib import Path

    from lshdup.base.messages import Cell
    from lshdup.cli.find_pairs import PairsListed
    from lshdup.cli.output import Target
    from lshdup.evaluation.histogram import Step
    from lshdup.sources.document_list import DocumentList


def print_histogram(
    session: Session, answer: "PairsListed", target: "Target", plot: "Path | None"
) -> None:
    """Print the histogram, and draw it with --plot."""
    import numpy as np

    from lshdup.evaluation.histogram import list_thresholds, make_histogram
    from lshdup.sources.preference import preference

    levels, sizes = list_thresholds(answer.threshold), answer.collection.sizes
    documents = answer.collection.documents
    try:
        order = preference(session.run, documents, sizes, ClusterParams()).order
    except ParameterError:  # The store has not kept the order of many DOCS.
        order = np.arange(len(documents))
    steps = make_histogram(
        session.workspace,
        sizes,
        order,
        answer.distinct_pairs,
        answer.duplicate_of,
        answer.pairs,
        levels,
    )
    named = [each for step in steps if step.example is not None for each in step.example[:2]]
    warn_of_changes(session, documents, np.unique(np.array(named, np.int64)))
    rows = _rows(steps, documents)
    print_rows(session.console, target, column_names("pairs-histogram"), rows)
    if plot is not None:
        from lshdup.evaluation.plots import draw_histogram

        draw_histogram(plot, steps)


def _rows(steps: "Sequence[Step]", documents: "DocumentList") -> "Iterator[tuple[Cell, ...]]":
    import numpy as np

    for step in steps:
        example: tuple[Cell, ...] = (None, None, None)
        if step.example is not None:
            a, b, similarity = step.example
            example = (similarity, *documents.typed_names(np.array([a, b])))
        yield (step.threshold, step.pairs, step.documents, step.groups, *example)
