"""`lshdup timing`, and what the experiments have in common."""

from collections.abc import Callable, Iterable
from dataclasses import astuple, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lshdup.base.frozen import dataclass
from lshdup.cli.help import define, plain_option, stack
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
from lshdup.cli.output import OutputOptions, make_target
from lshdup.cli.session import Session, open_session
from lshdup.cli.types import Listed
from lshdup.errors import InputError
from lshdup.params import SketchParams

if TYPE_CHECKING:
    from lshdup.collection.collection import Collection
    from lshdup.evaluation.experiment import Experiment
    from lshdup.evaluation.timing import Timing


@dataclass(frozen=True)
class ExperimentOptions(OutputOptions):
    """The options of an experiment."""

    schemes: tuple[str, ...]
    sizes: tuple[int, ...]
    runs: int
    first_seed: int
    plot: Path | None


#: Returns the results of an experiment, dataclasses that are printed a line each.
Measure = Callable[[Session, "Collection", "Experiment"], Iterable[Any]]


@list_columns("timing")
@define(
    "timing",
    ExperimentOptions,
    short_help="seconds for exact and estimated all pairs",
    epilog="""\b
Examples:
  lshdup timing sample_corpus --perms 150,350,600 --runs 3
  lshdup timing sample_corpus --tokens terms --scheme fast,classic
""",
)
@stack(
    documents_options,
    shingle_options,
    schemes_option,
    plain_option("--perms", "sizes", type=Listed(int), default="150,350,600", brief=True,
                  help="Rows of a signature, K."),
    plain_option("--runs", type=click.IntRange(1), default=5, brief=True,
                  help="Measured runs of each part, interleaved."),
    plain_option("--seed", "first_seed", type=int, default=SketchParams().seed,
                  help="Makes all randomness."),
    plot_option,
    run_options,
    output_options,
)  # fmt: skip
def command(ctx: click.Context, options: ExperimentOptions) -> int:
    """Measure exact similarity of all pairs, the signature matrix, and estimated similarity of all
    pairs.

    Prints elementary comparisons and seconds (median, smallest, largest) of each; says on stderr
    which of exact and estimated is faster on this collection. Without DOCS, the sets of
    the last run are used; unless it kept them, its documents are read.
    """
    measure = partial(_measure, options.runs)
    return run_experiment(ctx, options, list_sketches(options), measure, "draw_timing")


def _measure(
    runs: int, session: Session, _: "Collection", experiment: "Experiment"
) -> "list[Timing]":
    from lshdup.evaluation.timing import compare_timings, timing

    timings = list(timing(experiment, runs))
    for line in compare_timings(timings):
        session.console.say(line)
    return timings


def list_sketches(options: ExperimentOptions) -> list[SketchParams]:
    """Return the parameters of all signatures to measure, which are checked by this."""
    return [
        SketchParams(scheme, k, options.first_seed)
        for scheme in options.schemes
        for k in options.sizes
    ]


def run_experiment(
    ctx: click.Context,
    options: ExperimentOptions,
    sketches: list[SketchParams],
    measure: Measure,
    draw: str,
) -> int:
    """Print the results of an experiment, and draw them if --plot says so.

    draw : name of the function in `evaluation.plots` that draws the results.
    """
    target = make_target(options)
    with open_session(ctx) as session:
        from lshdup.evaluation import plots
        from lshdup.evaluation.experiment import Experiment
        from lshdup.workspace.loading import load_all_sets

        console, request = session.console, session.request
        collection = load_all_sets(session.workspace, request)
        say_collection(session, collection, 0, whole=True)
        experiment = Experiment(session.workspace, collection.filtered_sets, sketches)
        if len(experiment.present) < 2:
            message = "fewer than two documents with tokens: there is no pair to measure"
            raise InputError(message, "name more documents")
        results = list(measure(session, collection, experiment))
        target.write([field.name for field in fields(results[0])], map(astuple, results))
        if options.plot is not None:
            getattr(plots, draw)(options.plot, results)
        return console.exit_code
