"""`lshdup pairs`."""

from pathlib import Path
from typing import Any

import click

from lshdup.cli.commands.pairs.gate import Gate
from lshdup.cli.commands.pairs.listing import Listing, print_listing
from lshdup.cli.conflicts import refuse, refuse_with_exact, refuse_with_same
from lshdup.cli.find_pairs import find_pairs
from lshdup.cli.findings import warn_of_changes
from lshdup.cli.help import Command, plain_option
from lshdup.cli.options import (
    against_option,
    check_files_option,
    check_option,
    list_columns,
    memory_option,
    option,
    pair_options,
    pair_output_options,
    plot_option,
    run_options,
    same_option,
    table_options,
)
from lshdup.cli.printing import containments, make_target
from lshdup.cli.session import open_session
from lshdup.cli.types import OutputPath, Share


@list_columns("pairs", "pairs-against", "pairs-unmatched", "pairs-containment", "pairs-histogram")
@click.command(
    "pairs",
    cls=Command,
    short_help="all near-duplicate pairs",
    epilog="""\b
Examples:
  lshdup pairs sample_corpus --threshold 0.9
  lshdup pairs sample_corpus --threshold 0.5 --histogram
  lshdup pairs sample_corpus --measure containment
  lshdup pairs sample_corpus/udhr --against sample_corpus/licences -t 0.6
""",
)
@table_options
@pair_options
@memory_option
@same_option
@against_option("Only pairs of DOCS with documents of OTHER (they may be gone)")
@plain_option(
    "--unmatched",
    is_flag=True,
    help="Instead of the pairs: the documents of DOCS that are in none, nor in OTHER.",
)
@option(
    "--histogram",
    is_flag=True,
    help="Instead of the pairs: how many there are at each threshold, with examples.",
)
@option(
    "--step",
    type=Share(least=0.001),
    metavar="X",
    default=0.05,
    help="Between the thresholds of --histogram.",
)
@option(
    "--examples",
    type=click.IntRange(0),
    default=1,
    metavar="N",
    help="Pairs to show above each threshold of --histogram.",
)
@plot_option
@check_option("pairs")
@plain_option(
    "--baseline",
    type=OutputPath(Path, dir_okay=False),
    metavar="FILE",
    help="Only pairs that FILE does not name as known.",
)
@plain_option("--update-baseline", is_flag=True, help="Write all pairs to that FILE.")
@plain_option(
    "--changed-since", metavar="REF", help="Only pairs of documents that git says changed."
)
@check_files_option
@run_options
@pair_output_options
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> int:
    """Print all pairs of documents whose similarity is at least the threshold: name, name,
    similarity, same.

    The similarity is the exact Jaccard similarity of the shingle sets. Same is bytes for equal
    files, text for the same words in the same order, else empty. The chance to miss a pair is said
    on stderr. Without DOCS, the documents of the last run are compared. With --against, a is of
    DOCS and b of OTHER; verified is exact, or estimate where a document of OTHER is gone.

    With --measure containment, a is inside b; with --against too, relation says which is inside.
    """
    target = make_target(options)
    gate = Gate(ctx, options)
    refuse_with_exact(ctx)
    if options["histogram"]:
        refuse(ctx, ("against",), "with --histogram")
    else:
        refuse(ctx, ("step", "examples", "plot"), "without --histogram")
    if options["measure"] == "containment":
        refuse(ctx, ("histogram",), "with --measure containment, which makes no groups")
    if options["unmatched"]:
        refuse(ctx, ("collapse_copies",), "with --unmatched, which prints no pairs")
    if not options["against"]:
        refuse(ctx, ("unmatched",), "without --against OTHER")
    refuse_with_same(ctx, options["same"])
    with open_session(ctx, options, gate.accept) as session:
        console = session.console
        if options["against"]:
            from lshdup.cli.commands.pairs.against import pairs_against, print_unmatched

            answer_with = print_unmatched if options["unmatched"] else pairs_against
            return answer_with(session, options, target, gate)
        answer = find_pairs(session, options)
        if options["histogram"]:
            from lshdup.cli.commands.pairs.histogram import print_histogram

            print_histogram(session, answer, options, target)
            return console.exit_code_of(len(answer.pairs))
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
        return console.exit_code_of(0 if gate.updates else listing.total)
