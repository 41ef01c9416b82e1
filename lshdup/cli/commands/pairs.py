"""`lshdup pairs`, and its histogram."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lshdup.base.frozen import dataclass
from lshdup.cli.columns import column_names
from lshdup.cli.commands.pairs_listing import Gate, Listing, print_listing
from lshdup.cli.find_pairs import find_pairs
from lshdup.cli.help import define, option, plain_option, stack
from lshdup.cli.messages import warn_of_changes
from lshdup.cli.options import (
    FindOptions,
    against_option,
    check_option,
    collapse_option,
    exact_option,
    list_columns,
    max_bucket_option,
    measure_option,
    memory_option,
    pair_output_options,
    plot_option,
    run_options,
    same_option,
    table_options,
)
from lshdup.cli.output import OutputOptions, containments, make_target, print_rows
from lshdup.cli.session import Session, open_session
from lshdup.cli.types import OutputPath
from lshdup.errors import ParameterError
from lshdup.params import ClusterParams

if TYPE_CHECKING:
    from lshdup.base.wording import Cell
    from lshdup.cli.find_pairs import PairsListed
    from lshdup.cli.output import Target
    from lshdup.evaluation.histogram import Step
    from lshdup.sources.document_list import DocumentList


@dataclass(frozen=True)
class PairsOptions(FindOptions, OutputOptions):
    """The options of `pairs`."""

    unmatched: bool = False
    histogram: bool = False
    plot: Path | None = None
    baseline: Path | None = None
    update_baseline: bool = False
    changed_since: str | None = None


@list_columns("pairs", "pairs-against", "pairs-unmatched", "pairs-containment", "pairs-histogram")
@define(
    "pairs",
    PairsOptions,
    short_help="all near-duplicate pairs",
    epilog="""\b
Examples:
  lshdup pairs sample_corpus --threshold 0.9
  lshdup pairs sample_corpus --threshold 0.5 --histogram
  lshdup pairs sample_corpus --measure containment
  lshdup pairs sample_corpus/udhr --against sample_corpus/licences -t 0.6
""",
)
@stack(
    table_options,
    measure_option,
    against_option("Only pairs of DOCS with documents of OTHER (they may be gone)"),
    plain_option("--unmatched", is_flag=True, requires=("--against",), brief=True,
                 help="Instead of the pairs: the documents of DOCS that are in none, nor in "
                      "OTHER."),
    option("--histogram", is_flag=True, excludes=("--measure containment", "--same"), brief=True,
            help="Instead of the pairs: how many there are at each threshold, with examples."),
    plot_option,
    collapse_option,
    same_option,
    check_option("pairs"),
    plain_option("--baseline", type=OutputPath(Path, dir_okay=False), metavar="FILE",
                  excludes=("--histogram", "--unmatched"),
                  help="Only pairs that FILE does not name as known."),
    plain_option("--update-baseline", is_flag=True, requires=("--baseline",),
                  help="Write all pairs to that FILE."),
    plain_option("--changed-since", metavar="REF",
                  excludes=("--update-baseline", "--histogram", "--unmatched"),
                  help="Only pairs of documents that git says changed."),
    exact_option,
    max_bucket_option,
    memory_option,
    run_options,
    pair_output_options,
)  # fmt: skip
def command(ctx: click.Context, options: PairsOptions) -> int:
    """Print all pairs of documents whose similarity is at least the threshold: name, name,
    similarity, same.

    The similarity is the exact Jaccard similarity of the shingle sets. Same is bytes for equal
    files, text for the same words in the same order, else empty. The chance to miss a pair is said
    on stderr. Without DOCS, the documents of the last run are compared. With --against, a is of
    DOCS and b of OTHER; verified is exact, or estimate where a document of OTHER is gone.

    With --measure containment, a is inside b; with --against too, relation says which is inside.
    """
    target = make_target(options)
    gate = Gate(options.baseline, options.changed_since, updates=options.update_baseline)
    # If nothing is compared, the baseline stays as it is.
    check = True if gate.updates else None
    with open_session(ctx, gate.accept, check=check) as session:
        console = session.console
        if options.against:
            from lshdup.cli.commands.pairs_against import pairs_against, print_unmatched

            answer_with = print_unmatched if options.unmatched else pairs_against
            return answer_with(session, options, target, gate)
        answer = find_pairs(session, options)
        if options.histogram:
            print_histogram(session, answer, target, options.plot)
            return console.exit_code(len(answer.pairs))
        collection, pairs = answer.collection, answer.pairs
        documents = collection.documents
        listing = gate.select(
            session,
            Listing(
                len(pairs), pairs.documents(), pairs.pieces, [documents], documents.typed_names,
                collection.prints, collection.shingle,
            ),
        )  # fmt: skip
        warn_of_changes(session, documents, listing.documents)
        if answer.measure == "containment":
            cells = containments(collection.sizes)
            print_listing(session, target, listing, "pairs-containment", cells)
        else:
            print_listing(session, target, listing, "pairs")
        return console.exit_code(0 if gate.updates else listing.total)


def print_histogram(
    session: Session, answer: "PairsListed", target: "Target", plot: Path | None
) -> None:
    """Print the histogram, and draw it with --plot."""
    import numpy as np

    from lshdup.compare.keep_rules import preference
    from lshdup.evaluation.histogram import list_thresholds, make_histogram

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
