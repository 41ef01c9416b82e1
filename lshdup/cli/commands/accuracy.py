"""`lshdup accuracy`."""

import fnmatch
import re
from collections.abc import Iterable
from itertools import chain
from typing import TYPE_CHECKING, Any

import click

from lshdup.base.messages import count_of
from lshdup.cli.commands.timing import list_sketches, run_experiment
from lshdup.cli.conflicts import is_set, refuse
from lshdup.cli.findings import say_contract
from lshdup.cli.help import Command, plain_option
from lshdup.cli.options import (
    documents_options,
    list_columns,
    measure_option,
    memory_option,
    output_options,
    plot_option,
    run_options,
    schemes_option,
    shingle_options,
)
from lshdup.cli.session import Session
from lshdup.cli.types import Listed, ParamType, Share
from lshdup.errors import InputError, ParameterError
from lshdup.params import BandParams, SketchParams

if TYPE_CHECKING:
    from lshdup.collection.collection import Collection
    from lshdup.evaluation.accuracy import Accuracy, BandAccuracy, BandRecall
    from lshdup.evaluation.experiment import Experiment
    from lshdup.evaluation.sample_recall import SampleRecall
    from lshdup.lsh.band_plan import BandPlan


class _Buckets(ParamType[str | int]):
    """A number of buckets, or the word prime."""

    name = "buckets"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> str | int:
        if value == "prime":
            return "prime"
        if not str(value).isdecimal() or int(value) < 1:
            self.fail(f"{value!r} is neither a number of buckets nor the word prime", param, ctx)
        return int(value)


@list_columns("accuracy", "accuracy-bands", "accuracy-found", "accuracy-containment")
@click.command(
    "accuracy",
    cls=Command,
    short_help="how far estimates are from exact, and what bands find",
    epilog="""\b
Examples:
  lshdup accuracy sample_corpus --perms 100,400 --epsilon 0.05,0.1 --runs 3
  lshdup accuracy sample_corpus --perms 120 --bands 10,20 -t 0.7 --sample 50
  lshdup accuracy sample_corpus --found --threshold 0.7
  lshdup accuracy sample_corpus --found --measure containment --threshold 0.7
""",
)
@documents_options
@shingle_options
@schemes_option
@plain_option("--perms", type=Listed(int),
              show_default="400,600,800; with --bands 1200; with --found 128",
              help="Rows of a signature, K.")  # fmt: skip
@plain_option("--epsilon", type=Listed(float), default="0.04,0.07,0.09",
              help="An estimate is off if it differs from the exact similarity by more than "
                   "this.")  # fmt: skip
@plain_option("--runs", type=click.IntRange(1), default=5, help="Independent seeds.")
@plain_option("--bands", type=Listed(int),
              help="Measure what so many bands find, instead of estimates.")  # fmt: skip
@plain_option("--found", is_flag=True,
              help="Measure what share of all true pairs the bands find: planned ones, or "
                   "--bands.")  # fmt: skip
@measure_option
@plain_option("-t", "--threshold", type=Share(), metavar="T", default=0.9,
              help="With --bands, --found: similarity of near-duplicates.")  # fmt: skip
@plain_option("--recall", type=Share(), metavar="P", default=BandParams().recall,
              help="With --found: plan the bands for this chance.")  # fmt: skip
@plain_option("--sample", type=click.IntRange(1), default=110,
              help="With --bands: documents to query.")  # fmt: skip
@plain_option("--queries", metavar="GLOB",
              help="With --bands: draw the queries from documents whose name "
                   "matches.")  # fmt: skip
@plain_option("--buckets", type=_Buckets(), show_default="whole 64-bit keys",
              help="With --bands, --found: fold keys into so many buckets; prime: the smallest "
                   "prime from the number of documents.")  # fmt: skip
@plain_option("--seed", type=int, default=SketchParams().seed, help="The first of the seeds.")
@plot_option
@memory_option
@run_options
@output_options
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> int:
    """Compare the estimates of all pairs with their exact similarities; with --bands or --found,
    what bands find with what there is.

    Prints, for each scheme, K and epsilon, the mean number of pairs (off) whose estimate differs by
    more than epsilon, the number that K independent permutations would give (expected), and bias,
    root mean square and largest error. With --bands, for each number of bands: found
    near-duplicates, false positives and false negatives per query, beside what the S-curve expects.
    Without DOCS, the sets of the last run are used; unless it kept them, its documents are read.

    With --found: all pairs from the threshold on, by the exact join, and the share of them that the
    bands of `lshdup pairs` find, with a 95 % interval, in each bin of similarity (the last line: in
    all), beside what the S-curve expects. Exact copies are counted once. With --measure
    containment: the share of them that the samples of `lshdup pairs` find, which it takes where the
    sets exceed --memory; pairs whose smaller document has fewer shingles than the promise is for
    have lines of their own.
    """
    bands, found = options["bands"], options["found"]
    if not options["perms"]:
        options["perms"] = (
            (SketchParams().perms,) if found else (1200,) if bands else (400, 600, 800)
        )
    sketches = list_sketches(options)
    _check_use(ctx, bands, options["perms"])
    if options["measure"] == "containment":
        return run_experiment(ctx, options, sketches, _measure_samples, "")
    if found and not bands:
        _plan_bands(options, 0)  # Raises before any work starts if no plan keeps the recall.
    measure = _measure_recall if found else _measure_bands if bands else _measure_estimates
    draw = "draw_bands" if bands else "draw_accuracy"
    return run_experiment(ctx, options, sketches, measure, draw)


#: Options that not every experiment uses, with the options of the experiments that use them.
_USE = {
    "epsilon": (),
    "runs": (),
    "sample": ("bands",),
    "queries": ("bands",),
    "threshold": ("bands", "found"),
    "buckets": ("bands", "found"),
    "recall": ("found",),
    "measure": ("found",),
}

#: Options of bands and signatures, which pairs of containment do not come from.
_NOT_CONTAINED = ("schemes", "perms", "bands", "buckets")


def _check_use(ctx: click.Context, bands: tuple[int, ...] | None, perms: tuple[int, ...]) -> None:
    """Raise ParameterError for options that this experiment ignores, and for too many bands."""
    mode = "found" if ctx.params["found"] else "bands" if bands else ""
    for name, modes in _USE.items():
        if is_set(ctx, name) and mode not in (modes or ("",)):
            others = " or ".join(f"--{each}" for each in modes)
            why = f"cannot be combined with --{mode}" if mode else f"has no effect without {others}"
            message = f"--{name} {why}"
            raise ParameterError(message, "leave one of them out")
    if ctx.params["measure"] == "containment":
        refuse(ctx, _NOT_CONTAINED, "with --measure containment")
    else:
        refuse(ctx, ("memory",), "without --measure containment")
    if mode == "found" and ctx.params["plot"] is not None:
        message = "--plot draws no figure of --found"
        raise ParameterError(message, "leave one of them out")
    for epsilon in ctx.params["epsilon"]:
        if not 0 < epsilon < 1:
            message = f"--epsilon is {epsilon:g}; it must be above 0 and below 1"
            raise ParameterError(message)
    for b in bands or ():
        if not 1 <= b <= min(perms):
            message = f"--bands {b} with --perms {min(perms)}: there must be 1 to K bands"
            raise ParameterError(message, "use fewer bands or more --perms")


def _plan_bands(
    options: dict[str, Any], buckets: int
) -> "dict[int, list[tuple[BandPlan, BandParams]]]":
    """Return the band plans to measure and what they were planned for, by K."""
    from lshdup.lsh.band_plan import plan_bands

    wanted = [
        BandParams(options["threshold"], options["recall"], b, 0, buckets)
        for b in options["bands"] or (0,)
    ]
    return {k: [(plan_bands(k, each), each) for each in wanted] for k in options["perms"]}


def _measure_estimates(
    _session: Session, _: "Collection", experiment: "Experiment", options: dict[str, Any]
) -> "Iterable[Accuracy]":
    from lshdup.evaluation.accuracy import accuracy

    return accuracy(experiment, options["epsilon"], options["runs"])


def _measure_bands(
    _session: Session, collection: "Collection", experiment: "Experiment", options: dict[str, Any]
) -> "Iterable[BandAccuracy]":
    import numpy as np

    from lshdup.evaluation.accuracy import band_accuracy

    buckets = _count_buckets(options["buckets"], experiment)
    eligible = None
    if options["queries"] is not None:
        pattern = fnmatch.translate(options["queries"]).encode("utf-8", "surrogateescape")
        wanted = re.compile(pattern).match
        eligible = np.array([wanted(name) is not None for name in collection.documents.names])
        if not eligible[experiment.present].any():
            message = f"--queries {options['queries']} matches no document"
            raise InputError(message, "quote the pattern, so that it is not expanded by the shell")
    bands, threshold, sample = options["bands"], options["threshold"], options["sample"]
    return band_accuracy(experiment, bands, threshold, sample, eligible, buckets)


def _measure_recall(
    session: Session, collection: "Collection", experiment: "Experiment", options: dict[str, Any]
) -> "Iterable[BandRecall]":
    from lshdup.evaluation.accuracy import band_recall

    console, threshold = session.console, options["threshold"]
    planned = _plan_bands(options, _count_buckets(options["buckets"], experiment))
    for plan, params in chain.from_iterable(planned.values()):
        say_contract(console, plan, params, whole=True)
    pairs = experiment.find_true_pairs(collection.fingerprints, threshold)
    console.say(
        f"{count_of(len(pairs), 'pair')} of similarity {threshold:g} or more, by the exact "
        f"join{console.duration_of('candidates')}"
    )
    plans = {k: [plan for plan, _ in each] for k, each in planned.items()}
    return band_recall(experiment, pairs, plans)


def _measure_samples(
    session: Session, collection: "Collection", experiment: "Experiment", options: dict[str, Any]
) -> "Iterable[SampleRecall]":
    from lshdup.compare.sampled_join import plan_join
    from lshdup.evaluation.sample_recall import sample_recall
    from lshdup.lsh.candidates import documents_to_compare, find_exact_duplicates

    console, run, threshold = session.console, session.workspace, options["threshold"]
    duplicate_of = find_exact_duplicates(run, collection.fingerprints)
    sizes = collection.sizes[documents_to_compare(run, duplicate_of, collection.sizes)]
    params = BandParams(threshold, options["recall"])
    plan = plan_join(sizes, params, run.memory, run.jobs, sample=True)
    assert plan.samples is not None
    console.say(f"samples of 1 shingle in {plan.samples.rate}")
    console.say(plan.describe_misses())
    pairs = experiment.find_true_pairs(collection.fingerprints, threshold, "containment")
    console.say(
        f"{count_of(len(pairs), 'pair')} of containment {threshold:g} or more, by the exact "
        f"join{console.duration_of('candidates')}"
    )
    return sample_recall(experiment, pairs, plan.samples, options["seed"])


def _count_buckets(buckets: str | int | None, experiment: "Experiment") -> int:
    """Return the number of buckets that --buckets means; 0 for whole keys."""
    from lshdup.lsh.signatures import smallest_prime_from

    return smallest_prime_from(len(experiment.present)) if buckets == "prime" else int(buckets or 0)
