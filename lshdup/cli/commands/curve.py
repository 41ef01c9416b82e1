"""`lshdup curve`."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lshdup.cli.columns import column_names
from lshdup.cli.conflicts import is_set
from lshdup.cli.console import Console
from lshdup.cli.help import Command, plain_option
from lshdup.cli.messages import say_contract
from lshdup.cli.options import (
    list_columns,
    output_options,
    perms_option,
    plot_option,
    shape_options,
    talk_options,
)
from lshdup.cli.printing import make_target
from lshdup.params import BandParams, SketchParams

if TYPE_CHECKING:
    from lshdup.lsh.band_plan import BandPlan
    from lshdup.utils.json_cells import Cell

#: Distances below the threshold at which `--all` shows the chance to become a candidate.
BELOW = (0.1, 0.2, 0.3, 0.4)


@list_columns("curve", "curve-all")
@click.command(
    "curve",
    cls=Command,
    short_help="S-curve, thresholds, and the choice of bands and rows",
    epilog="""\b
Examples:
  lshdup curve --bands 20 --rows 5
  lshdup curve --perms 128 --threshold 0.9 --all
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
@plot_option
@talk_options
@output_options
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> int:
    """Print the chance to become a candidate at each similarity, for given bands and rows or for
    those lshdup would choose.

    The chance is 1 - (1 - s^r)^b; for small s^r it is about b s^r, and never more (approximation,
    which is no chance and may exceed 1). On stderr: where it is exactly 1/2, and (1/b)^(1/r). With
    --all: every shape that K rows allow, the chosen one marked.
    """
    target = make_target(options)
    console = Console.of(options)
    shape = {name: options[name] for name in ("bands", "rows") if options[name] is not None}
    params = BandParams(options["threshold"], options["recall"], **shape)
    perms = (
        params.bands * params.rows
        if params.bands and params.rows and not is_set(ctx, "perms")
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


def _plot(path: Path, plan: "BandPlan", params: BandParams) -> None:
    from lshdup.evaluation.plots import draw_curve

    draw_curve(path, [(plan.bands, plan.rows)], params.threshold)
