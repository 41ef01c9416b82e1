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
    session: Session,
    answer: "PairsListed",
    target: "Target",
    step: float,
    examples: int,
    plot: "Path | None",
) -> None:
    """Print the histogram, and draw it with --plot.

    step : between the thresholds. examples : pairs shown above each of them.
    """
    import numpy as np

    from lshdup.base.ragged import distinct
    from lshdup.evaluation.histogram import list_thresholds, make_histogram
    from lshdup.sources.preference import preference

    levels, sizes = list_thresholds(answer.threshold, step), answer.collection.sizes
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
        examples,
    )
    named = distinct(np.concatenate([each for level in steps for each in level.examples[:2]]))[0]
    warn_of_changes(session, documents, named.astype(np.int64))
    columns = column_names("pairs-histogram", optional=examples > 0)
    print_rows(
        session.console, target, columns, _rows(steps, documents, with_examples=examples > 0)
    )
    if plot is not None:
        from lshdup.evaluation.plots import draw_histogram

        draw_histogram(plot, steps)


def _rows(
    steps: "Sequence[Step]", documents: "DocumentList", *, with_examples: bool
) -> "Iterator[tuple[Cell, ...]]":
    for step in steps:
        counts = (step.threshold, step.pairs, step.documents, step.groups)
        left, right, similarity = step.examples
        if not with_examples:
            yield counts
        elif not len(left):
            yield (*counts, None, None, None)
        else:
            a, b = (
                documents.typed_names(left.astype("int64")),
                documents.typed_names(right.astype("int64")),
            )
            yield from (
                (*counts, *example) for example in zip(similarity.tolist(), a, b, strict=True)
            )
