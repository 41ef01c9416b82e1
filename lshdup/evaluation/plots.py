"""Figures of the experiments: each measurement with its expectation.

The only module that imports matplotlib (extra `plot`).
"""

import importlib.util
import logging
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lshdup.base.atomic import check_writable, replace_file
from lshdup.base.wording import count_of
from lshdup.errors import ParameterError
from lshdup.evaluation.experiments import Accuracy, BandAccuracy, Timing
from lshdup.lsh.band_plan import collision_probability, half_point, half_point_estimate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from lshdup.evaluation.histogram import Step

SUFFIXES = (".png", ".svg", ".pdf")

# Okabe and Ito's colours, which colour-blind people can tell apart.
_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_EXPECTED = "#555555"


def check_path(path: Path) -> None:
    """Raise ParameterError or InputError before the work if the figure cannot be written."""
    if path.suffix.lower() not in SUFFIXES:
        message = f"--plot {path}: a figure ends in one of {', '.join(SUFFIXES)}"
        raise ParameterError(message, f"for instance --plot {path.stem}.svg")
    check_writable(path)
    if importlib.util.find_spec("matplotlib") is None:
        message = "--plot needs matplotlib, which is not installed"
        raise ParameterError(message, "pip install 'lshdup[plot]'")


def draw_curve(path: Path, bands: int, rows: int, threshold: float) -> None:
    """Draw the S-curve, with the point where it is 1/2, and (1/b)^(1/r) (R3)."""
    figure, (axes,) = _figure(1)
    steps, color = [i / 400 for i in range(401)], _COLORS[0]
    curve = partial(collision_probability, bands=bands, rows=rows)
    label = f"{bands} bands of {rows} rows"
    axes.plot(steps, [curve(s) for s in steps], color=color, label=label, lw=2)
    estimate = half_point_estimate(bands, rows)
    axes.plot([half_point(bands, rows)], [0.5], "o", color=color)
    axes.plot([estimate], [curve(estimate)], "x", color=color, mew=2)
    axes.plot([], [], "o", color=_EXPECTED, ls="", label="exactly 1/2")
    axes.plot([], [], "x", color=_EXPECTED, ls="", mew=2, label="$(1/b)^{1/r}$")
    axes.axvline(threshold, color=_EXPECTED, ls=":", lw=1)
    axes.annotate(f" t = {threshold:g}", (threshold, 0.02), color=_EXPECTED)
    axes.set(xlabel="Jaccard similarity", ylabel="chance to become a candidate")
    axes.set(xlim=(0, 1), ylim=(0, 1.02), title="Chance that two documents share a bucket")
    axes.legend(frameon=False, loc="upper left")
    _save(figure, path)


def draw_histogram(path: Path, steps: Sequence["Step"]) -> None:
    """Draw the numbers of pairs, documents in pairs, and groups at each threshold."""
    figure, (axes,) = _figure(1)
    places = [step.threshold for step in steps]
    lines = {"pairs": "pairs", "documents": "documents in pairs", "groups": "groups"}
    for color, (name, label) in zip(_COLORS, lines.items(), strict=False):
        counts = [getattr(step, name) for step in steps]
        axes.plot(places, counts, "o-", color=color, lw=2, label=label)
    axes.set_yscale("symlog", linthresh=1)
    axes.set(xlabel="threshold", ylabel="of this similarity or more", ylim=(0, None))
    axes.set(title="What there is at each threshold")
    axes.legend(frameon=False)
    _save(figure, path)


def draw_accuracy(path: Path, results: Sequence[Accuracy]) -> None:
    """Draw pairs off by more than epsilon against K, a panel for each epsilon (R1 figure 1)."""
    epsilons = sorted({result.epsilon for result in results})
    figure, panels = _figure(len(epsilons))
    for axes, epsilon in zip(panels, epsilons, strict=True):
        chosen = [result for result in results if result.epsilon == epsilon]
        expected = {result.perms: result.expected for result in chosen}
        perms = sorted(expected)
        schemes = list(dict.fromkeys(result.scheme for result in chosen))
        width = 0.8 / len(schemes)
        for at, (color, scheme) in enumerate(zip(_COLORS, schemes, strict=False)):
            own = {result.perms: result for result in chosen if result.scheme == scheme}
            centres = [place + (at - (len(schemes) - 1) / 2) * width for place in range(len(perms))]
            off = [own[k].off for k in perms]
            errors = [own[k].off_error if own[k].runs > 1 else 0.0 for k in perms]
            axes.bar(centres, off, width * 0.92, color=color, label=scheme)
            axes.errorbar(centres, off, errors, fmt="none", ecolor="black", lw=1, capsize=2)
        label = "independent permutations, expected"
        for place, k in enumerate(perms):
            ends = [place - 0.45, place + 0.45]
            axes.plot(ends, [expected[k]] * 2, color=_EXPECTED, ls="--", lw=1.5, label=label)
            label = ""
        axes.set_xticks(range(len(perms)), [str(k) for k in perms])
        axes.set(xlabel="permutations K", title=f"$\\varepsilon$ = {epsilon:g}")
        axes.set_yscale("symlog", linthresh=1)
        measured = [result.off + result.off_error for result in chosen if result.runs > 1]
        axes.set_ylim(0, 2.0 * max(1.0, *measured, *expected.values()))
    panels[0].set_ylabel("pairs off by more than $\\varepsilon$, mean of the runs")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    figure.suptitle(
        f"Estimates of {count_of(results[0].pairs, 'pair')}, {count_of(results[0].runs, 'run')}"
    )
    _save(figure, path)


def draw_bands(path: Path, results: Sequence[BandAccuracy]) -> None:
    """Draw found, false negatives and false positives per query against bands (R1 figure 3)."""
    figure, (left, right) = _figure(2)
    left.axhline(results[0].near, color=_EXPECTED, ls=":", lw=1, label="similar documents")
    measured: list[tuple[Axes, str, str]] = [
        (left, "found", "found"),
        (left, "false_negatives", "missed"),
        (right, "false_positives", "less similar, but sharing a bucket"),
    ]

    def values(name: str) -> NDArray[np.float64]:
        return np.array([getattr(result, name) for result in results])

    bands = values("bands")
    for color, (axes, name, label) in zip(_COLORS, measured, strict=False):
        axes.plot(bands, values(name), "o-", color=color, label=label, lw=2)
        if name != "false_negatives":
            spread = [values(name) - values(f"{name}_low"), values(f"{name}_high") - values(name)]
            axes.errorbar(bands, values(name), spread, fmt="none", ecolor=color, capsize=3)
        axes.plot(bands, values(f"{name}_expected"), "--", color=_EXPECTED, lw=1.2)
    for axes in (left, right):
        axes.plot([], [], "--", color=_EXPECTED, label="expected from the S-curve")
        axes.set(xlabel=f"bands, of K = {results[0].perms} rows", ylim=(0, None))
        axes.legend(frameon=False)
    left.set(ylabel="documents per query", title="Near-duplicates")
    right.set(title="False positives")
    figure.suptitle(f"What the bands find, {results[0].queries} queries")
    _save(figure, path)


def draw_timing(path: Path, results: Sequence[Timing]) -> None:
    """Draw the seconds of each part against K, with the spread of the runs (R1 figure 2)."""
    figure, (axes,) = _figure(1)
    lines = list(dict.fromkeys((result.scheme, result.part) for result in results))
    for color, (scheme, part) in zip(_COLORS * 3, lines, strict=False):
        own = sorted(
            (result for result in results if (result.scheme, result.part) == (scheme, part)),
            key=lambda result: result.perms,
        )
        perms, medians = [result.perms for result in own], [result.median for result in own]
        spread = [[r.median - r.smallest for r in own], [r.largest - r.median for r in own]]
        look = {"fmt": "s--" if part.startswith("exact") else "o-", "lw": 2, "capsize": 3}
        axes.errorbar(perms, medians, spread, color=color, label=f"{part} ({scheme})", **look)
    axes.set(xlabel="permutations K", ylabel="seconds, median and range")
    axes.set(title="Exact and estimated similarity of all pairs", yscale="log")
    axes.legend(frameon=False)
    _save(figure, path)


def _figure(panels: int) -> "tuple[Figure, Any]":
    logging.getLogger("matplotlib").setLevel(logging.ERROR)  # as that its cache cannot be written
    from matplotlib.figure import Figure

    figure = Figure(figsize=(max(6.4, 3.6 * panels), 4.4), layout="constrained")
    axes = figure.subplots(1, panels, squeeze=False)[0]
    for each in axes:
        each.spines[["top", "right"]].set_visible(False)
        each.grid(axis="y", color="#dddddd", lw=0.6)
        each.set_axisbelow(True)
    return figure, axes


def _save(figure: "Figure", path: Path) -> None:
    """Write a figure without a date or random ids, so that equal figures are equal files."""
    import matplotlib as mpl

    kind = path.suffix.lower().removeprefix(".")
    metadata: dict[str, Any] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind, {})
    steady = mpl.rc_context({"svg.hashsalt": "lshdup", "svg.fonttype": "path"})
    with steady, replace_file(path) as file:
        figure.savefig(file, format=kind, dpi=110, metadata=metadata)
