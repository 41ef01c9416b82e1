"""`lshdup curve`."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lshdup.cli.columns import column_names
from lshdup.cli.conflicts import is_set, refuse
from lshdup.cli.console import Console
from lshdup.cli.help import Command, plain_option
from lshdup.cli.listings import listing_target
from lshdup.cli.messages import say_contract
from lshdup.cli.options import (
    columns_of,
    output_options,
    perms_option,
    plot_option,
    shape_options,
    store_option,
    talk_options,
)
from lshdup.params import BandParams, SketchParams
from lshdup.utils.messages import counted

if TYPE_CHECKING:
    from lshdup.cli.output import Target
    from lshdup.lsh.band_plan import BandPlan
    from lshdup.utils.json_cells import Cell

#: How far below the threshold `--all` shows the chance to become a candidate.
BELOW = (0.1, 0.2, 0.3, 0.4)

#: From one row of `--data` to the next.
_STEP = 0.05


@columns_of("curve", "curve-all", "curve-data")
@click.command(
    "curve",
    cls=Command,
    short_help="S-curve, thresholds, and the choice of bands and rows",
    epilog="""\b
Examples:
  lshdup curve --bands 20 --rows 5
  lshdup curve --perms 128 --threshold 0.9 --all
  lshdup pairs sample_corpus --threshold 0.5 --output pairs.tsv && lshdup curve --data
""",
)
@shape_options
@perms_option
@plain_option(
    "--all",
    "every",
    is_flag=True,
    help="All (bands, rows) of K: their misses at the threshold, and candidates below it.",
)
@plain_option(
    "--data",
    is_flag=True,
    help="Beside the pairs that the last run of `pairs` found: at which similarities they are.",
)
@store_option
@plot_option
@talk_options
@output_options
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> int:
    """Print the chance to become a candidate at each similarity, for given bands and rows or for those lshdup would choose.

    The chance is 1 - (1 - s^r)^b; for small s^r it is about b s^r, and never more (approximation, which is no
    chance and may exceed 1). On stderr: where it is exactly 1/2, and
    (1/b)^(1/r). With --all: every shape that K rows allow, the chosen one marked.

    With --data: the chances of the bands of the last run, or of those that are given here, beside the pairs that were found from each
    similarity to the next, and how many of that similarity these bands are expected to miss.
    """
    target = listing_target(options)
    console = Console(quiet=options["quiet"], color=options["color"])
    if options["data"]:
        refuse(ctx, ("every",), "with --data")
        return _beside_data(ctx, console, target, options)
    refuse(ctx, ("store",), "without --data")
    given = {name: options[name] for name in ("bands", "rows") if options[name] is not None}
    params = BandParams(options["threshold"], options["recall"], **given)
    explicit = is_set(ctx, "perms")
    perms = (
        params.bands * params.rows
        if params.bands and params.rows and not explicit
        else options["perms"]
    )
    SketchParams(perms=perms)

    from lshdup.lsh import band_plan

    plan = band_plan.plan_bands(perms, params)
    half, estimate = (
        band_plan.half_point(plan.bands, plan.rows),
        band_plan.half_point_estimate(plan.bands, plan.rows),
    )
    say_contract(console, plan, params)
    console.say(f"the chance is 1/2 at {half:.4f}; (1/b)^(1/r) = {estimate:.4f}")
    if options["every"]:
        columns = (
            "bands",
            "rows",
            "half",
            "estimate",
            f"miss at {params.threshold:g}",
            *_below(params),
            "chosen",
        )
        target.write(columns, _shapes(perms, params, plan))
    else:
        target.write(column_names("curve"), _curve(plan))
    if options["plot"] is not None:
        _plot(options["plot"], plan, params)
    return console.exit_code


def _beside_data(
    ctx: click.Context, console: Console, target: "Target", options: dict[str, Any]
) -> int:
    from lshdup.evaluation import histogram
    from lshdup.lsh import band_plan
    from lshdup.workspace.workspace import Workspace

    collection, run, listing = Workspace(options["store"], console.say, read_only=True).last_pairs()
    assert collection.sketch is not None
    named = ("threshold", "recall", "bands", "rows", "perms")
    given = {
        name: options[name] for name in named if options[name] is not None and is_set(ctx, name)
    }
    perms = given.pop("perms", collection.sketch.perms)
    SketchParams(perms=perms)
    fixed = (
        {"bands": 0, "rows": 0}
        if given or perms != collection.sketch.perms
        else {"bands": run.bands, "rows": run.rows}
    )
    params = BandParams(**{**run.params.to_json(), **fixed, **given})
    plan = band_plan.plan_bands(perms, params)
    say_contract(console, plan, params)
    levels = sorted({*histogram.thresholds(_STEP, _STEP), run.params.threshold})
    bins = histogram.expected_misses(run, listing, plan, levels)
    missed = sum(each.missed or 0.0 for each in bins)
    shape = f"{counted(plan.bands, 'band')} of {counted(plan.rows, 'row')}"
    console.say(
        f"{counted(len(listing), 'pair')} of similarity {run.params.threshold:g} or more were found; on average, {shape} would miss "
        f"{'fewer than 0.05 pairs' if missed < 0.05 else f'{missed:,.1f} pairs'} of that similarity"
    )
    target.write(
        column_names("curve-data"),
        ((each.low, each.chance, each.pairs, each.missed) for each in bins),
    )
    if options["plot"] is not None:
        _plot(
            options["plot"],
            plan,
            params,
            [(each.low, each.pairs) for each in bins if each.pairs is not None],
        )
    return console.exit_code


def _curve(plan: "BandPlan") -> "Iterator[tuple[Cell, ...]]":
    from lshdup.lsh.band_plan import collision_probability

    for tenth in range(1, 11):
        s = tenth / 10
        yield s, collision_probability(s, plan.bands, plan.rows), plan.bands * s**plan.rows


def _lower(params: BandParams) -> list[float]:
    return [round(params.threshold - step, 6) for step in BELOW if params.threshold - step > 0]


def _below(params: BandParams) -> list[str]:
    return [f"candidate at {s:g}" for s in _lower(params)]


def _shapes(perms: int, params: BandParams, plan: "BandPlan") -> "Iterator[tuple[Cell, ...]]":
    from lshdup.lsh.band_plan import collision_probability, half_point, half_point_estimate

    for b, r in dict.fromkeys((perms // r, r) for r in range(1, perms + 1)):
        miss = 1.0 - collision_probability(params.threshold, b, r)
        lower = [collision_probability(s, b, r) for s in _lower(params)]
        chosen = "chosen" if (b, r) == (plan.bands, plan.rows) else ""
        yield b, r, half_point(b, r), half_point_estimate(b, r), miss, *lower, chosen


def _plot(
    path: Path, plan: "BandPlan", params: BandParams, found: Sequence[tuple[float, int]] = ()
) -> None:
    from lshdup.evaluation.plots import curve_figure

    curve_figure(path, [(plan.bands, plan.rows)], params.threshold, found)
