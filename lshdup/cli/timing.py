"""`lshdup timing`."""

from typing import Any

import click

from lshdup.cli import options as shared
from lshdup.cli.summary import say_collection
from lshdup.errors import InputError
from lshdup.params import SketchParams

COLUMNS = ("scheme", "perms", "part", "comparisons", "median", "smallest", "largest", "runs")


@click.command(
    "timing",
    short_help="seconds for exact and estimated all pairs (R1 table 2)",
    epilog="""\b
Examples:
  lshdup timing sample_corpus --perms 150,350,600 --runs 3
  lshdup timing sample_corpus --tokens terms --scheme fast,classic
""",
)
@shared.documents_options
@shared.shingle_options
@click.option("--scheme", type=shared.Listed(str), default="fast", show_default=True, help="Schemes: fast, classic, linear.")
@click.option("--perms", type=shared.Listed(int), default="150,350,600", show_default=True, help="Rows of a signature, K.")
@click.option("--runs", type=click.IntRange(1), default=5, show_default=True, help="Measured runs of each part, interleaved.")
@click.option("--seed", type=int, default=SketchParams().seed, show_default=True, help="Makes all randomness.")
@shared.run_options
@shared.output_options
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> int:
    """Measure exact similarity of all pairs, the signature matrix, and estimated similarity of all pairs.

    Prints elementary comparisons and seconds (median, smallest, largest) of each. Without DOCS, the sets of shingles.npz are used.
    """
    target = shared.target(options)
    sketches = [SketchParams(scheme, perms, options["seed"]) for scheme in options.pop("scheme") for perms in options["perms"]]
    perms = options.pop("perms")
    with shared.session(ctx, options) as session, session.workspace.every_set(session.request) as (collection, sets):
        from lshdup.timing import timing

        say_collection(session.console, collection)
        if int((collection.sizes > 0).sum()) < 2:
            message = "fewer than two documents with tokens: there is no pair to measure"
            raise InputError(message, "name more documents")
        rows = (
            [getattr(result, column) for column in COLUMNS]
            for scheme in dict.fromkeys(sketch.scheme for sketch in sketches)
            for result in timing(sets, collection, SketchParams(scheme, 1, options["seed"]), perms, options["runs"], session.request.jobs)
        )
        target.write(COLUMNS, rows)
        return session.console.exit_code
