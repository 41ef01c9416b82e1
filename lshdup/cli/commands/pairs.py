"""`lshdup pairs`, and its histogram."""

from functools import partial
from pathlib import Path

import click

from lshdup.cli import options as shared
from lshdup.cli import removal
from lshdup.cli.help import define, option, plain_option, stack
from lshdup.cli.output import make_target
from lshdup.cli.session import open_session
from lshdup.cli.types import OutputPath
from lshdup.errors import ParameterError


@shared.list_columns(
    "pairs", "pairs-against", "pairs-unmatched", "pairs-containment", "pairs-histogram"
)
@define(
    "pairs",
    shared.PairsOptions,
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
    shared.table_options,
    shared.measure_option,
    shared.against_option("Only pairs of DOCS with documents of OTHER (they may be gone)"),
    shared.across_option,
    plain_option("--unmatched", is_flag=True, requires=("--against",), brief=True,
                 help="Instead of the pairs: the documents of DOCS that are in none, nor in "
                      "OTHER."),
    plain_option("--relation", type=click.Choice(("holds", "inside", "both")),
                 requires=("--against",), excludes=("--measure jaccard", "--unmatched"),
                 show_default="both; of --write holds",
                 help="Only pairs in which a holds b, or is inside it, or both of these; of equal "
                      "sizes a does either."),
    plain_option("--write", type=OutputPath(str), metavar="FILE|DIR/", requires=("--against",),
                 excludes=("--unmatched", "--baseline", "--changed-since"),
                 help="Write the JSON Lines, CSV or Parquet files without the rows of DOCS that "
                      "hold one of OTHER (or that --relation names), all else as it is. Pairs "
                      "only with -o."),
    plain_option("--removed", type=OutputPath(Path), metavar="FILE", requires=("--write",),
                 help="List there what --write leaves out; - is standard output."),
    option("--histogram", is_flag=True, excludes=("--measure containment", "--same"), brief=True,
            help="Instead of the pairs: how many there are at each threshold, with examples."),
    shared.plot_option,
    shared.collapse_option,
    shared.same_options,
    shared.check_option("pairs"),
    plain_option("--baseline", type=OutputPath(Path, dir_okay=False), metavar="FILE",
                  excludes=("--histogram", "--unmatched"),
                  help="Only pairs that FILE does not name as known."),
    plain_option("--update-baseline", is_flag=True, requires=("--baseline",),
                  help="Write all pairs to that FILE."),
    plain_option("--changed-since", metavar="REF",
                  excludes=("--update-baseline", "--histogram", "--unmatched"),
                  help="Only pairs of documents that git says changed."),
    shared.memory_option,
    shared.run_options,
    shared.pair_output_options,
)  # fmt: skip
def command(ctx: click.Context, options: shared.PairsOptions) -> int:
    """Print all pairs of documents whose similarity is at least the threshold: name, name,
    similarity, same.

    The similarity is the exact Jaccard similarity of the shingle sets. Same is bytes for equal
    files, text for the same words in the same order, else empty. The chance to miss a pair is said
    on stderr. Without DOCS, the documents of the last run are compared. With --against, a is of
    DOCS and b of OTHER; verified is exact, or estimate where a document of OTHER is gone.

    With --measure containment, a is inside b; with --against too, relation says which is inside,
    and --write writes DOCS without the rows that hold a document of OTHER.
    """
    target = make_target(options)
    if options.write is not None and options.measure != "containment":
        message = "--write needs --measure containment: it is about what holds a document of OTHER"
        raise ParameterError(message, "`lshdup clusters --against OTHER --write` takes near-copies")
    removal.check_outputs(options)
    gate, updates = None, options.update_baseline
    if options.baseline is not None or options.changed_since is not None:
        from lshdup.cli.listings.pairs import Gate

        gate = Gate(options.baseline, options.changed_since, updates=updates)
    accept = gate.accept if gate is not None else partial(removal.check_documents, options)
    # If nothing is compared, the baseline stays as it is.
    with open_session(ctx, accept, check=True if updates else None) as session:
        from lshdup.cli.listings import pairs as listings

        if options.unmatched:
            found = listings.list_unmatched(session, options, target)
        elif options.histogram:
            found = listings.list_histogram(session, options, target)
        else:
            found = listings.list_pairs(session, options, target, gate)
        return session.console.exit_code(0 if updates else found)
