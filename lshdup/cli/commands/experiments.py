"""`lshdup accuracy`, `lshdup timing` and `lshdup curve`: the published experiments."""

import fnmatch
import re
from collections.abc import Callable, Iterator
from dataclasses import astuple, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lshdup.base.frozen import dataclass
from lshdup.base.params import SCHEMES, BandParams, SketchParams
from lshdup.base.wording import Cell, count_of, significant
from lshdup.cli import options as shared
from lshdup.cli.columns import SHARE, Columns, columns_of
from lshdup.cli.console import Console
from lshdup.cli.help import define, is_set, plain_option, stack
from lshdup.cli.messages import say_collection, say_contract
from lshdup.cli.output import OutputOptions, make_target, print_rows
from lshdup.cli.session import Session, list_outputs, open_session
from lshdup.cli.types import Listed, ParamType, Share
from lshdup.errors import InputError, ParameterError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from lshdup.collection.collection import Collection
    from lshdup.evaluation.experiments import Experiment
    from lshdup.lsh.band_plan import BandPlan


@dataclass(frozen=True)
class ExperimentOptions(OutputOptions):
    """The options of an experiment."""

    schemes: tuple[str, ...]
    sizes: tuple[int, ...]
    runs: int
    first_seed: int
    plot: Path | None


#: Of commands that measure documents.
_experiment_options = stack(
    shared.documents_options, shared.shingle_options,
    plain_option("--scheme", "schemes", type=Listed(str), default=SketchParams().scheme,
                 group="Signatures and bands",
                 help=f"Schemes, separated by commas: {', '.join(SCHEMES)}."),
    shared.plot_option, shared.listing_options,
)  # fmt: skip


@shared.list_columns("timing")
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
    _experiment_options,
    plain_option("--perms", "sizes", type=Listed(int), default="150,350,600", brief=True,
                  help="Rows of a signature, K."),
    plain_option("--runs", type=click.IntRange(1), default=5, brief=True,
                  help="Measured runs of each part, interleaved."),
    plain_option("--seed", "first_seed", type=int, default=SketchParams().seed,
                  help="Makes all randomness."),
)  # fmt: skip
def timing(ctx: click.Context, options: ExperimentOptions) -> int:
    """Measure exact similarity of all pairs, the signature matrix, and estimated similarity of all
    pairs.

    Prints elementary comparisons and seconds (median, smallest, largest) of each; says on stderr
    which of exact and estimated is faster on this collection. Without DOCS, the sets of
    the last run are used; unless it kept them, its documents are read.
    """

    def measure(session: Session, _: "Collection", experiment: "Experiment") -> Any:
        from lshdup.evaluation import experiments, plots

        timings = list(experiments.timing(experiment, options.runs))
        for line in experiments.compare_timings(timings):
            session.console.say(line)
        return timings, plots.draw_timing

    return run_experiment(ctx, options, list_sketches(options), measure, "timing")


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
    measure: Callable[[Session, "Collection", "Experiment"], Any],
    listing: str,
) -> int:
    """Print the results of an experiment, and draw them if --plot says so.

    measure : measures, and returns dataclasses that are printed a line each, and what draws them.
    listing : its name, of the columns.
    """
    target = make_target(options)
    with open_session(ctx) as session:
        from lshdup.evaluation.experiments import Experiment
        from lshdup.workspace.loading import load_all_sets

        run = session.workspace
        # Every document is read, whatever the store knows of it.
        collection = load_all_sets(run, replace(session.request, check_content=True))
        say_collection(session, collection, 0, whole=True)
        experiment = Experiment(run, collection.filtered_sets(run.arrays), sketches)
        if len(experiment.present) < 2:
            message = "fewer than two documents with tokens: there is no pair to measure"
            raise InputError(message, "name more documents")
        measured, draw = measure(session, collection, experiment)
        results = list(measured)
        print_rows(session.console, target, columns_of(listing), map(astuple, results))
        if options.plot is not None:
            draw(options.plot, results)
        return session.console.exit_code()


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


@dataclass(frozen=True)
class AccuracyOptions(ExperimentOptions):
    """The options of `accuracy`."""

    epsilon: tuple[float, ...]
    bands: tuple[int, ...] | None
    found: bool
    least: float
    promise: float
    sample: int
    queries: str | None
    folded: str | int | None


@shared.list_columns("accuracy", "accuracy-bands", "accuracy-found")
@define(
    "accuracy",
    AccuracyOptions,
    short_help="how far estimates are from exact, and what bands find",
    epilog="""\b
Examples:
  lshdup accuracy sample_corpus --perms 100,400 --epsilon 0.05,0.1 --runs 3
  lshdup accuracy sample_corpus --perms 120 --bands 10,20 -t 0.7 --sample 50
  lshdup accuracy sample_corpus --found --threshold 0.7
""",
)
@stack(
    _experiment_options,
    plain_option("--perms", "sizes", type=Listed(int), brief=True,
                  show_default="400,600,800; with --bands 1200; with --found 128",
                  help="Rows of a signature, K."),
    plain_option("--epsilon", type=Listed(float), default="0.04,0.07,0.09",
                  excludes=("--found", "--bands"), brief=True,
                  help="An estimate is off if it differs from the exact similarity by more than "
                       "this."),
    plain_option("--runs", type=click.IntRange(1), default=5, excludes=("--found", "--bands"),
                  brief=True, help="Independent seeds."),
    plain_option("--bands", type=Listed(int), brief=True,
                  help="Measure what so many bands find, instead of estimates."),
    plain_option("--found", is_flag=True, brief=True,
                  help="Measure what share of all true pairs the bands find: planned ones, or "
                       "--bands."),
    plain_option("-t", "--threshold", "least", type=Share(), metavar="T", default=0.9,
                  requires=("--bands", "--found"), brief=True,
                  help="With --bands, --found: similarity of near-duplicates."),
    plain_option("--recall", "promise", type=Share(), metavar="P", default=BandParams().recall,
                  requires=("--found",), help="With --found: plan the bands for this chance."),
    plain_option("--sample", type=click.IntRange(1), default=110, requires=("--bands",),
                  excludes=("--found",), help="With --bands: documents to query."),
    plain_option("--queries", metavar="GLOB", requires=("--bands",), excludes=("--found",),
                  help="With --bands: draw the queries from documents whose name "
                       "matches."),
    plain_option("--buckets", "folded", type=_Buckets(), show_default="whole 64-bit keys",
                  requires=("--bands", "--found"),
                  help="With --bands, --found: fold keys into so many buckets; prime: the smallest "
                       "prime from the number of documents."),
    plain_option("--seed", "first_seed", type=int, default=SketchParams().seed,
                  help="The first of the seeds."),
)  # fmt: skip
def accuracy(ctx: click.Context, options: AccuracyOptions) -> int:
    """Compare the estimates of all pairs with their exact similarities; with --bands or --found,
    what bands find with what there is.

    Prints, for each scheme, K and epsilon, the mean number of pairs (off) whose estimate differs by
    more than epsilon, the number that K independent permutations would give (expected), and bias,
    root mean square and largest error. With --bands, for each number of bands: found
    near-duplicates, false positives and false negatives per query, beside what the S-curve expects.
    Without DOCS, the sets of the last run are used; unless it kept them, its documents are read.

    With --found: all pairs from the threshold on, by the exact join, and the share of them that the
    bands of `lshdup pairs` find, with a 95 % interval, in each bin of similarity (the last line: in
    all), beside what the S-curve expects. Exact copies are counted once.
    """
    bands, found = options.bands or (), options.found
    if not options.sizes:
        usual = (SketchParams().perms,) if found else (1200,) if bands else (400, 600, 800)
        options = replace(options, sizes=usual)
    sketches = list_sketches(options)
    for epsilon in options.epsilon:
        if not 0 < epsilon < 1:
            message = f"--epsilon is {epsilon:g}; it must be above 0 and below 1"
            raise ParameterError(message)
    for b in bands:
        if not 1 <= b <= min(options.sizes):
            message = f"--bands {b} with --perms {min(options.sizes)}: there must be 1 to K bands"
            raise ParameterError(message, "use fewer bands or more --perms")
    if found:
        _plan_bands(options, 0)  # Raises before any work starts if no plan keeps the recall.

    def measure(session: Session, collection: "Collection", experiment: "Experiment") -> Any:
        from lshdup.evaluation import experiments, plots
        from lshdup.lsh.signatures import smallest_prime_from

        n, folded, console = len(experiment.present), options.folded, session.console
        buckets = smallest_prime_from(n) if folded == "prime" else int(folded or 0)
        if found:
            planned = _plan_bands(options, buckets)
            for plan, params in chain.from_iterable(planned.values()):
                say_contract(console, plan, params, whole=True)
            pairs = experiment.find_true_pairs(collection.fingerprints, options.least)
            console.say(
                f"{count_of(len(pairs), 'pair')} of similarity {options.least:g} or more, by the "
                f"exact join{console.duration_of('candidates')}"
            )
            plans = {k: [plan for plan, _ in each] for k, each in planned.items()}
            return experiments.band_recall(experiment, pairs, plans), plots.draw_bands
        if not bands:
            estimates = experiments.accuracy(experiment, options.epsilon, options.runs)
            return estimates, plots.draw_accuracy
        eligible = _list_eligible(options.queries, collection, experiment)
        least, sample = options.least, options.sample
        near = experiments.band_accuracy(experiment, bands, least, sample, eligible, buckets)
        return near, plots.draw_bands

    listing = "accuracy-found" if found else "accuracy-bands" if bands else "accuracy"
    return run_experiment(ctx, options, sketches, measure, listing)


def _plan_bands(
    options: AccuracyOptions, buckets: int
) -> "dict[int, list[tuple[BandPlan, BandParams]]]":
    """Return the band plans to measure and what they were planned for, by K."""
    from lshdup.lsh.band_plan import plan_bands

    wanted = [
        BandParams(options.least, options.promise, b, 0, buckets) for b in options.bands or (0,)
    ]
    return {k: [(plan_bands(k, each), each) for each in wanted] for k in options.sizes}


def _list_eligible(
    queries: str | None, collection: "Collection", experiment: "Experiment"
) -> "NDArray[np.bool_] | None":
    """Return which documents may be queries: bool array of shape (n,); None for all."""
    import numpy as np

    if queries is None:
        return None
    pattern = fnmatch.translate(queries).encode("utf-8", "surrogateescape")
    wanted = re.compile(pattern).match
    eligible = np.array([wanted(name) is not None for name in collection.documents.names])
    if not eligible[experiment.present].any():
        message = f"--queries {queries} matches no document"
        raise InputError(message, "quote the pattern, so that it is not expanded by the shell")
    return eligible


#: Distances below the threshold at which `--all` shows the chance to become a candidate.
BELOW = (0.1, 0.2, 0.3, 0.4)


@dataclass(frozen=True)
class CurveOptions(OutputOptions):
    """The options of `curve`."""

    threshold: float
    recall: float
    bands: int | None
    rows: int | None
    perms: int
    every: bool
    plot: Path | None


@shared.list_columns("curve", "curve-all")
@define(
    "curve",
    CurveOptions,
    short_help="S-curve, thresholds, and the choice of bands and rows",
    epilog="""\b
Examples:
  lshdup curve --bands 20 --rows 5
  lshdup curve --perms 128 --threshold 0.9 --all
""",
)
@shared.shape_options
@shared.perms_option
@plain_option("--all", "every", is_flag=True, brief=True,
              help="All (bands, rows) of K: their misses at the threshold, and candidates below "
                   "it.")  # fmt: skip
@shared.plot_option
@shared.talk_options
@shared.output_options
def curve(ctx: click.Context, options: CurveOptions) -> int:
    """Print the chance to become a candidate at each similarity, for given bands and rows or for
    those lshdup would choose.

    The chance is 1 - (1 - s^r)^b; for small s^r it is about b s^r, and never more (approximation,
    which is no chance and may exceed 1). On stderr: where it is exactly 1/2, and (1/b)^(1/r). With
    --all: every shape that K rows allow, the chosen one marked.
    """
    target = make_target(options)
    list_outputs(ctx)
    console = Console(**ctx.params)
    bands, rows, perms = options.bands or 0, options.rows or 0, options.perms
    params = BandParams(options.threshold, options.recall, bands, rows)
    if bands and rows and not is_set(ctx, "perms"):
        perms = bands * rows
    SketchParams(perms=perms)

    from lshdup.lsh.band_plan import half_point, half_point_estimate, plan_bands

    plan = plan_bands(perms, params)
    b, r = plan.bands, plan.rows
    say_contract(console, plan, params, whole=True)
    half, estimate = half_point(b, r), half_point_estimate(b, r)
    console.say(f"the chance is 1/2 at {half:.4f}; (1/b)^(1/r) = {estimate:.4f}")
    if options.every:
        lower = [round(params.threshold - step, 6) for step in BELOW if params.threshold > step]
        types = dict(columns_of("curve-all").types)
        chosen = types.pop("chosen")
        by_value = (f"miss at {params.threshold:g}", *(f"candidate at {s:g}" for s in lower))
        types |= {**dict.fromkeys(by_value, SHARE), "chosen": chosen}
        print_rows(console, target, Columns("curve-all", types), _shapes(perms, plan, lower))
    else:
        print_rows(console, target, columns_of("curve"), _curve(plan))
    if options.plot is not None:
        from lshdup.evaluation.plots import draw_curve

        draw_curve(options.plot, b, r, params.threshold)
    return console.exit_code()


def _curve(plan: "BandPlan") -> Iterator[tuple[Cell, ...]]:
    from lshdup.lsh.band_plan import collision_probability

    for s in (tenth / 10 for tenth in range(1, 11)):
        chance = collision_probability(s, plan.bands, plan.rows)
        yield s, significant(chance), significant(plan.bands * s**plan.rows)


def _shapes(perms: int, plan: "BandPlan", lower: list[float]) -> Iterator[tuple[Cell, ...]]:
    """Yield a line for each number of bands and rows that so many rows of a signature allow."""
    from lshdup.lsh.band_plan import collision_probability, half_point, half_point_estimate

    for b, r in dict.fromkeys((perms // r, r) for r in range(1, perms + 1)):
        figures = [half_point(b, r), half_point_estimate(b, r)]
        figures.append(1.0 - collision_probability(plan.threshold, b, r))
        figures += [collision_probability(s, b, r) for s in lower]
        chosen = "chosen" if (b, r) == (plan.bands, plan.rows) else ""
        yield b, r, *map(significant, figures), chosen
