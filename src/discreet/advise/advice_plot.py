"""Draw advice: clipping bias and noise over candidate bounds, and the histograms of columns. Needs matplotlib."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.advise.advice_plan import grouping_text
from discreet.advise.value_cells import ValueScale
from discreet.plotting import BLUE, GREY, INK, ORANGE, RED, add_legend, format_plain_numbers, panels, set_title, style
from discreet.policy.toml import decimal_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from discreet.advise.advice import Advice, BoundsAdvice, RangeAdvice

_TICKS = 5  # labels of cells, about
_SPARE_CELLS = 3  # empty cells that are shown beyond the range


def advice_figure(advice: "Advice") -> "Figure":
    """Draw a panel for each grouping and each column."""
    with style():
        parts = len(advice.bounds) + len(advice.ranges)
        columns = min(2, parts)
        figure, all_axes = panels(columns, math.ceil(parts / columns), height=2.9)
        for axes, bounds in zip(all_axes, advice.bounds, strict=False):
            _draw_bounds(axes, bounds)
        for axes, each in zip(all_axes[len(advice.bounds) :], advice.ranges, strict=False):
            _draw_range(axes, each)
        for axes in all_axes[parts:]:
            axes.set_axis_off()
        add_legend(figure, all_axes[:parts], columns=3)
        set_title(figure, f"{advice.plan.policy.data.name}: bounds and ranges, from noisy histograms only")
    return figure


def _draw_bounds(axes: Any, advice: "BoundsAdvice") -> None:
    radii, middle = advice.bias(0.5)
    _, high = advice.bias(0.9)
    deviation = advice.evidence.noise_ratio(advice.query_cost) * radii
    chosen = advice.radius(advice.bounds)
    shown = slice(0, min(len(radii), int(np.searchsorted(radii, 16 * chosen)) + 1))
    floor = float(deviation[0]) / 10
    axes.plot(radii[shown], deviation[shown], color=BLUE, label="noise (standard deviation)")
    axes.plot(radii[shown], np.maximum(middle, floor)[shown], color=ORANGE, label="clipping bias (forecast)")
    axes.fill_between(
        radii[shown],
        np.maximum(middle, floor)[shown],
        np.maximum(high, floor)[shown],
        color=ORANGE,
        alpha=0.25,
        lw=0,
        label="up to its 90 % quantile",
    )
    axes.plot(radii[shown], np.hypot(deviation, middle)[shown], color=INK, lw=0.8, ls=":", label="total error")
    axes.axvline(chosen, color=RED, lw=1, label="chosen")
    axes.set(xscale="log", yscale="log", xlabel="radius in rows", ylabel="error of a group's count")
    axes.set_ylim(bottom=floor)
    format_plain_numbers(axes.xaxis, axes.yaxis)
    blind = " (blind: the histogram cannot tell)" if advice.bounds.blind else ""
    axes.set_title(f"{advice.grouping.table}, {grouping_text(advice.grouping)}{blind}", parse_math=False)


def _draw_range(axes: Any, advice: "RangeAdvice") -> None:
    """Draw the coarse histogram around the occupied cells, and the chosen range."""
    counts, edges = advice.counts.counts, advice.counts.cells.edges
    first, last = advice.counts.occupied() or (0, len(counts) - 1)
    first, last = max(0, first - _SPARE_CELLS), min(len(counts) - 1, last + _SPARE_CELLS)
    places = np.arange(first, last + 1)
    axes.bar(places + 0.5, counts[places], 0.9, color=BLUE, label="values by cell (each unit counts once)")
    axes.axhspan(-2 * advice.counts.deviation, 2 * advice.counts.deviation, color=GREY, alpha=0.3, lw=0, label="noise")
    axes.axhline(0, color=INK, lw=0.5)
    step = max(1, math.ceil(len(places) / _TICKS))
    labelled = [place for place in places[::step] if place > 0]
    years = advice.target.cells.scale is ValueScale.YEAR
    labels = [str(edges[place - 1]) if years else _edge_text(edges[place - 1]) for place in labelled]
    axes.set_xticks(labelled, labels)
    axes.set_ylabel("noisy count")
    format_plain_numbers(axes.yaxis)
    name = f"{advice.target.table}.{advice.target.column.name}"
    if advice.chosen is None:
        axes.set_title(f"{name}: the histogram cannot tell", parse_math=False)
        return
    for end in (advice.chosen.low, advice.chosen.high):
        axes.axvline(_position(float(end) / (12 if years else 1), edges), color=RED, lw=1, label="chosen")
    axes.set_title(f"{name}: between {' and '.join(map(_end_text, advice.ends))}", parse_math=False)


def _position(value: float, edges: tuple[Any, ...]) -> float:
    """Return the place of a value on the axis of cells, linear within a cell."""
    return float(np.interp(value, [float(edge) for edge in edges], np.arange(1, len(edges) + 1)))


def _edge_text(edge: Any) -> str:
    return f"{float(edge):,.10g}" if 1e-4 <= abs(edge) < 1e6 or edge == 0 else f"{float(edge):g}"


def _end_text(end: Any) -> str:
    return str(end) if hasattr(end, "year") else decimal_text(end) if hasattr(end, "denominator") else str(end)
