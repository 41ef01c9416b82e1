"""`lshdup accuracy`."""

from typing import Any

import click

from lshdup.cli import options as shared
from lshdup.cli.summary import say_collection
from lshdup.errors import InputError
from lshdup.params import SketchParams

COLUMNS = ("scheme", "perms", "epsilon", "runs", "pairs", "off", "bias", "rmse", "largest")


@click.command(
    "accuracy",
    short_help="how far estimates are from exact similarities (R1 table 1)",
    epilog="""\b
Examples:
  lshdup accuracy sample_corpus --perms 100,400 --epsilon 0.05,0.1 --runs 3
  lshdup accuracy sample_corpus --tokens terms --scheme linear
""",
)
@shared.documents_options
@shared.shingle_options
@click.option("--scheme", type=shared.Listed(str), default="fast", show_default=True, help="Schemes: fast, classic, linear.")
@click.option("--perms", type=shared.Listed(int), default="400,600,800", show_default=True, help="Rows of a signature, K.")
@click.option(
    "--epsilon",
    type=shared.Listed(float),
    default="0.04,0.07,0.09",
    show_default=True,
    help="An estimate is off if it differs from the exact similarity by more than this.",
)
@click.option("--runs", type=click.IntRange(1), default=5, show_default=True, help="Independent seeds.")
@click.option("--seed", type=int, default=SketchParams().seed, show_default=True, help="The first of the seeds.")
@shared.run_options
@shared.output_options
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> int:
    """Compare the estimates of all pairs with their exact similarities.

    Prints, for each scheme, K and epsilon, the mean number of pairs (off) whose estimate differs by more than epsilon, and bias, root mean
    square and largest error. Without DOCS, the sets of shingles.npz are used.
    """  # fmt: skip
    target = shared.target(options)
    sketches = [SketchParams(scheme, perms, options["seed"]) for scheme in options.pop("scheme") for perms in options["perms"]]
    perms, epsilons = options.pop("perms"), options.pop("epsilon")
    with shared.session(ctx, options) as session, session.workspace.every_set(session.request) as (collection, sets):
        from lshdup.accuracy import accuracy

        say_collection(session.console, collection)
        if int((collection.sizes > 0).sum()) < 2:
            message = "fewer than two documents with tokens: there is no pair to measure"
            raise InputError(message, "name more documents")
        schemes = dict.fromkeys(sketch.scheme for sketch in sketches)
        rows = (
            [getattr(result, column) for column in COLUMNS]
            for scheme in schemes
            for result in accuracy(
                sets, collection, SketchParams(scheme, 1, options["seed"]), perms, epsilons, options["runs"],
                session.request.jobs, session.console.progress,
            )
        )  # fmt: skip
        target.write(COLUMNS, rows)
        return session.console.exit_code
