"""`lshdup timing`."""

from dataclasses import astuple, fields
from typing import Any

import click

from lshdup.cli.help import Command, plain_option
from lshdup.cli.messages import say_collection
from lshdup.cli.options import (
    documents_options,
    list_columns,
    output_options,
    plot_option,
    run_options,
    schemes_option,
    shingle_options,
)
from lshdup.cli.printing import make_target
from lshdup.cli.session import list_sketches, open_session
from lshdup.cli.types import Listed
from lshdup.errors import InputError
from lshdup.params import SketchParams


@list_columns("timing")
@click.command(
    "timing",
    cls=Command,
    short_help="seconds for exact and estimated all pairs",
    epilog="""\b
Examples:
  lshdup timing sample_corpus --perms 150,350,600 --runs 3
  lshdup timing sample_corpus --tokens terms --scheme fast,classic
""",
)
@documents_options
@shingle_options
@schemes_option
@plain_option("--perms", type=Listed(int), default="150,350,600", help="Rows of a signature, K.")
@plain_option(
    "--runs", type=click.IntRange(1), default=5, help="Measured runs of each part, interleaved."
)
@plain_option("--seed", type=int, default=SketchParams().seed, help="Makes all randomness.")
@plot_option
@run_options
@output_options
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> int:
    """Measure exact similarity of all pairs, the signature matrix, and estimated similarity of all
    pairs.

    Prints elementary comparisons and seconds (median, smallest, largest) of each; says on stderr
    which of exact and estimated is faster on this collection. Without DOCS, the sets of
    shingles.npz are used.
    """
    target = make_target(options)
    perms, runs = options.pop("perms"), options.pop("runs")
    sketches = list_sketches(options, perms)
    with open_session(ctx, options) as session:
        collection, sets = session.workspace.load_or_collect_sets(session.request)
        from lshdup.evaluation.timing import Timing, compare_timings, timing

        say_collection(session, collection, 0)
        if int((collection.sizes > 0).sum()) < 2:
            message = "fewer than two documents with tokens: there is no pair to measure"
            raise InputError(message, "name more documents")
        timings = [
            result
            for scheme in dict.fromkeys(sketch.scheme for sketch in sketches)
            for result in timing(
                sets,
                collection,
                SketchParams(scheme, 1, options["seed"]),
                perms,
                runs,
                session.request.jobs,
                session.console.progress,
            )
        ]
        for line in compare_timings(timings):
            session.console.say(line)
        target.write([field.name for field in fields(Timing)], map(astuple, timings))
        if options["plot"] is not None:
            from lshdup.evaluation.plots import draw_timing

            draw_timing(options["plot"], timings)
        return session.console.exit_code
