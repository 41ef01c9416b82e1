"""`lshdup curve`."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lshdup.base.frozen import dataclass
from lshdup.base.messages import significant
from lshdup.cli.columns import column_names
from lshdup.cli.console import Console
from lshdup.cli.help import define, is_set, plain_option
from lshdup.cli.messages import say_contract
from lshdup.cli.options import (
    list_columns,
    output_options,
    perms_option,
    plot_option,
    shape_options,
    talk_options,
)
from lshdup.cli.output import OutputOptions, make_target
from lshdup.cli.outputs import Outputs
from lshdup.params import BandParams, SketchParams

if TYPE_CHECKING:
    from lshdup.base.messages import Cell
    from lshdup.lsh.band_plan import BandPlan

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


@list_columns("curve", "curve-all")
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
@shape_options
@perms_option
@plain_option("--all", "every", is_flag=True, brief=True,
              help="All (bands, rows) of K: their misses at the threshold, and candidates below "
                   "it.")  # fmt: skip
@plot_option
@talk_options
@output_options
def command(ctx: click.Context, options: CurveOptions) -> int:
    """Print the chance to become a candidate at each similarity, for given bands and rows or for
    those lshdup would choose.

    The chance is 1 - (1 - s^r)^b; for small s^r it is about b s^r, and never more (approximation,
    which is no chance and may exceed 1). On stderr: where it is exactly 1/2, and (1/b)^(1/r). With
    --all: every shape that K rows allow, the chosen one marked.
    """
    target = make_target(options)
    Outputs.of(ctx)
    console = Console.of(ctx.params)
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
        columns = ["bands", "rows", "half", "estimate", f"miss at {params.threshold:g}"]
        columns += [*(f"candidate at {s:g}" for s in lower), "chosen"]
        target.write(columns, _shapes(perms, plan, lower))
    else:
        target.write(column_names("curve"), _curve(plan))
    if options.plot is not None:
        from lshdup.evaluation.plots import draw_curve

        draw_curve(options.plot, [(b, r)], params.threshold)
    return console.exit_code


def _curve(plan: "BandPlan") -> "Iterator[tuple[Cell, ...]]":
    from lshdup.lsh.band_plan import collision_probability

    for s in (tenth / 10 for tenth in range(1, 11)):
        chance = collision_probability(s, plan.bands, plan.rows)
        yield s, significant(chance), significant(plan.bands * s**plan.rows)


def _shapes(perms: int, plan: "BandPlan", lower: list[float]) -> "Iterator[tuple[Cell, ...]]":
    """Yield a line for each number of bands and rows that so many rows of a signature allow."""
    from lshdup.lsh.band_plan import collision_probability, half_point, half_point_estimate

    for b, r in dict.fromkeys((perms // r, r) for r in range(1, perms + 1)):
        figures = [half_point(b, r), half_point_estimate(b, r)]
        figures.append(1.0 - collision_probability(plan.threshold, b, r))
        figures += [collision_probability(s, b, r) for s in lower]
        chosen = "chosen" if (b, r) == (plan.bands, plan.rows) else ""
        yield b, r, *map(significant, figures), chosen
