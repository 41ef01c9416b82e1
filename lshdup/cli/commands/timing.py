"""`lshdup timing`, and what the experiments have in common."""

from collections.abc import Callable, Iterable
from dataclasses import astuple, fields
from typing import TYPE_CHECKING, Any

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
from lshdup.cli.session import Session, open_session
from lshdup.cli.types import Listed
from lshdup.errors import InputError
from lshdup.params import SketchParams

if TYPE_CHECKING:
    from lshdup.collection.collection import Collection
    from lshdup.evaluation.experiment import Experiment
    from lshdup.evaluation.timing import Timing

#: Returns the results of an experiment, dataclasses that are printed a line each.
Measure = Callable[[Session, "Collection", "Experiment", dict[str, Any]], Iterable[Any]]


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
@plain_option("--runs", type=click.IntRange(1), default=5,
              help="Measured runs of each part, interleaved.")  # fmt: skip
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
    the last run are used; unless it kept them, its documents are read.
    """
    return run_experiment(ctx, options, list_sketches(options), _measure, "draw_timing")


def _measure(
    session: Session, _: "Collection", experiment: "Experiment", options: dict[str, Any]
) -> "list[Timing]":
    from lshdup.evaluation.timing import compare_timings, timing

    timings = list(timing(experiment, options["runs"]))
    for line in compare_timings(timings):
        session.console.say(line)
    return timings


def list_sketches(options: dict[str, Any]) -> list[SketchParams]:
    """Return the parameters of all signatures to measure, which are checked by this."""
    return [
        SketchParams(scheme, k, options["seed"])
        for scheme in options["schemes"]
        for k in options["perms"]
    ]


#: Parameters of experiments: a session knows nothing of them, and the store is never asked.
_MEASURED = """
schemes perms seed runs epsilon bands found threshold recall sample queries buckets measure
""".split()


def run_experiment(
    ctx: click.Context,
    options: dict[str, Any],
    sketches: list[SketchParams],
    measure: Measure,
    draw: str,
) -> int:
    """Print the results of an experiment, and draw them if --plot says so.

    draw : name of the function in `evaluation.plots` that draws the results.
    """
    target = make_target(options)
    measured = {name: options.pop(name) for name in _MEASURED if name in options}
    with open_session(ctx, options) as session:
        from lshdup.evaluation import plots
        from lshdup.evaluation.experiment import Experiment

        console, request = session.console, session.request
        collection, sets = session.workspace.load_or_collect_sets(request)
        say_collection(session, collection, 0, whole=True)
        experiment = Experiment(session.workspace, sets, sketches)
        if len(experiment.present) < 2:
            message = "fewer than two documents with tokens: there is no pair to measure"
            raise InputError(message, "name more documents")
        results = list(measure(session, collection, experiment, measured))
        target.write([field.name for field in fields(results[0])], map(astuple, results))
        if options["plot"] is not None:
            getattr(plots, draw)(options["plot"], results)
        return console.exit_code
