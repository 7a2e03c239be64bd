"""Quantiles with margins, selected or from histogram trees, and most frequent values."""

import json
import math
from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
from fractions import Fraction
from typing import Any

import numpy as np

from discreet import privacy
from discreet.estimate.estimators import CONFIDENCE, ColumnEstimate
from discreet.estimate.intervals import ReleaseNoise, additive
from discreet.estimate.planned_release import Frequencies, FrequencyOutput, PlannedRelease, Quantile, QuantileMethod
from discreet.estimate.quantile_walk import WALKERS, QuantileWalk
from discreet.kernel.expr import Type, Value
from discreet.kernel.grid import Grid
from discreet.kernel.histogram_tree import NodeCounts, NodeQuery, TreeWalk
from discreet.kernel.release import NoisyTotals
from discreet.kernel.selection import QuantileSelection, RankTarget, margin_widths
from discreet.kernel.totals import Count, HistogramTree

_Z = 1.96


def selected_levels(release: PlannedRelease, index: int) -> tuple[Fraction, ...]:
    """Return the levels of the quantiles that are selected from a total; none for a total with noise."""
    selected = [each for each in _quantiles_of(release, index) if each.method is QuantileMethod.SELECTION]
    return tuple(sorted({estimator.target.level for estimator in selected}))


def _quantiles_of(release: PlannedRelease, index: int) -> list[Quantile]:
    """Return the quantiles that are found in a total."""
    estimators = (measure.estimator for measure in release.measures)
    return [each for each in estimators if isinstance(each, Quantile) and each.total == index]


def numbers_per_group(release: PlannedRelease) -> int:
    """Return how many numbers are stored for each group of a release: key, totals, nodes, counts and selected cells."""
    question = release.question
    count = len(question.by) + len(question.totals)
    count += sum(2 * len(selected_levels(release, index)) for index in range(len(question.totals)))
    for index in _tree_indices(release):
        total, targets = _tree_total(release, index), {estimator.target for estimator in _quantiles_of(release, index)}
        visited = WALKERS * len(targets) * total.depth if isinstance(total.domain, Grid) else 1
        count += visited * (total.branching + 1)
    return count


def quantile_selection(levels: Sequence[Fraction], cell_count: int, scale: Fraction) -> QuantileSelection:
    """Return the selection of quantiles, with offsets for margins that cover at 95 %.

    A margin that misses the quantile has no rank between it and the quantile, so its distance is at least `offset`:
    all such widths together have a probability of at most their number times exp(-offset/(scale·max(level, 1-level))).

    >>> quantile_selection([Fraction(1, 2)], 65_536, Fraction(4)).targets[0].offset
    15
    """
    scales = float(scale) * math.log((len(margin_widths(cell_count)) + 1) / float(1 - CONFIDENCE))
    return QuantileSelection(
        scale, tuple(RankTarget(level, math.ceil(scales * max(level, 1 - level))) for level in levels)
    )


def tree_walks(release: PlannedRelease, noises: tuple[ReleaseNoise, ...]) -> tuple[TreeWalk, ...]:
    """Return the walk for each histogram tree with noise of a question."""
    return tuple(
        _quantile_walk(release, index, noises[index])
        if isinstance(_tree_total(release, index).domain, Grid)
        else _look_once
        for index in _tree_indices(release)
    )


def value_estimates(
    release: PlannedRelease, noises: tuple[ReleaseNoise, ...], noisy: NoisyTotals
) -> dict[str, ColumnEstimate]:
    """Return the estimates of quantiles and frequencies, by measure name."""
    looks_by_total = dict(zip(_tree_indices(release), noisy.trees, strict=True))
    selected = [index for index in range(len(release.question.totals)) if selected_levels(release, index)]
    cells_by_total = dict(zip(selected, noisy.quantiles, strict=True))
    groups, estimates = len(noisy.keys), {}
    for measure in release.measures:
        match measure.estimator:
            case Quantile(index, method=QuantileMethod.SELECTION) as estimator:
                too_few = _count_refutes_margin(release, estimator, noises, noisy)
                estimates[measure.name] = _selected_quantile(release, estimator, cells_by_total[index], too_few)
            case Quantile(index) as estimator:
                estimates[measure.name] = _walked_quantile(
                    release, estimator, noises[index], looks_by_total[index], groups
                )
            case Frequencies(index) as estimator:
                estimates[measure.name] = _estimate_frequencies(
                    release, estimator, noises[index], looks_by_total[index], groups
                )
    return estimates


def redraw_estimate(estimate: ColumnEstimate, times: int, rng: np.random.Generator) -> ColumnEstimate:
    """Return an estimate repeated `times` times, with fresh noise as wide as its margins."""
    values, margins = np.tile(estimate.values, times), np.tile(estimate.margins, times)
    moves = np.nan_to_num(margins) / _Z * rng.normal(size=len(values))
    if values.dtype == np.float64:
        values = values + moves
    elif isinstance(next(filter(None, values), None), date):
        values = _object_array([day and _move(day, round(days)) for day, days in zip(values, moves, strict=True)])
    return ColumnEstimate(values, margins)


def _move(day: date, days: int) -> date:
    """Return a date or a timestamp moved by days, within the calendar."""
    moved = date.fromordinal(min(max(day.toordinal() + days, 1), date.max.toordinal()))
    return datetime.combine(moved, day.time()) if isinstance(day, datetime) else moved


def extreme_notes(release: PlannedRelease, noises: tuple[ReleaseNoise, ...]) -> list[str]:
    """Return notes on MIN and MAX."""
    notes = []
    for measure in release.measures:
        if isinstance(measure.estimator, Quantile) and measure.estimator.target.end_sign:
            walk = _quantile_walk(release, measure.estimator.total, noises[measure.estimator.total])
            below = "below" if measure.estimator.target.end_sign > 0 else "above"
            notes.append(
                f"{measure.label} is a private quantile: about {_two_digits(walk.rows_set_aside)} rows of each group "
                f"lie {below} it, because the exact extreme would disclose a single row."
            )
    return notes


def rank_margin(release: PlannedRelease, estimator: Quantile, noise: ReleaseNoise) -> float:
    """Return the approximate 95 % margin of a quantile's rank, in rows."""
    if isinstance(noise, QuantileSelection):
        (target,) = (each for each in noise.targets if each.level == estimator.target.level)
        return float(target.offset * _step(release, estimator.total))
    walk = _quantile_walk(release, estimator.total, noise)
    return float(_Z * walk.noise_stddev * math.sqrt(walk.depth * walk.fan / 6 + 1))


def _two_digits(number: float) -> str:
    return f"{float(f'{number:.2g}'):,.0f}"


def _tree_indices(release: PlannedRelease) -> list[int]:
    trees = [index for index, total in enumerate(release.question.totals) if isinstance(total, HistogramTree)]
    return [index for index in trees if not selected_levels(release, index)]


def _tree_total(release: PlannedRelease, index: int) -> HistogramTree:
    total = release.question.totals[index]
    assert isinstance(total, HistogramTree)
    return total


def _quantile_walk(release: PlannedRelease, index: int, noise: ReleaseNoise) -> QuantileWalk:
    total = _tree_total(release, index)
    found = {estimator.target for estimator in _quantiles_of(release, index)}
    targets = tuple(sorted(found, key=lambda each: each.level))
    return QuantileWalk(targets, additive(noise), _step(release, index), total.branching, total.depth)


def _step(release: PlannedRelease, index: int) -> Fraction:
    return Fraction(1, 1 << release.question.fraction_bits(release.question.totals[index]))


def _look_once(reveal: NodeQuery, groups: int) -> None:
    reveal(np.zeros((groups, 1), np.int64))


def _walked_quantile(
    release: PlannedRelease, estimator: Quantile, noise: ReleaseNoise, looks: tuple[NodeCounts, ...], groups: int
) -> ColumnEstimate:
    walk = _quantile_walk(release, estimator.total, noise)
    ends, rows = walk.locate(looks, groups)
    # An extreme needs more rows than are skipped there.
    missing = rows <= (walk.rows_set_aside if estimator.target.end_sign else 0)
    return _quantile_in_units(release, estimator, ends[:, walk.targets.index(estimator.target)].T, missing)


def _count_refutes_margin(
    release: PlannedRelease, estimator: Quantile, noises: tuple[ReleaseNoise, ...], noisy: NoisyTotals
) -> np.ndarray:
    """Return in which groups a released count leaves fewer rows than the margin of a quantile must span.

    Without rows, all margins miss alike. One in 20 such groups would have a margin by chance, mostly a narrow one.
    """
    level, values = estimator.target.level, _tree_total(release, estimator.total).expr
    needed = rank_margin(release, estimator, noises[estimator.total]) / max(level, 1 - level)
    refuted = np.zeros(len(noisy.keys), bool)
    for index, total in enumerate(release.question.totals):
        if isinstance(total, Count) and total.expr in (None, values):
            most = noisy.values[:, index] + privacy.margin(additive(noises[index]), CONFIDENCE)
            refuted |= most * float(_step(release, index)) < needed
    return refuted


def _selected_quantile(
    release: PlannedRelease, estimator: Quantile, selected: np.ndarray, too_few: np.ndarray
) -> ColumnEstimate:
    """Return selected cells and widths as values and margins; a margin wider than the grid means too few rows."""
    column = selected_levels(release, estimator.total).index(estimator.target.level)
    cells, widths = selected[:, column].T
    last = _tree_total(release, estimator.total).cell_count - 1
    ends = np.stack([cells, np.maximum(cells - widths, 0), np.minimum(cells + widths, last)])
    return _quantile_in_units(release, estimator, ends, missing=too_few | (widths > last))


def _quantile_in_units(
    release: PlannedRelease, estimator: Quantile, ends: np.ndarray, missing: np.ndarray
) -> ColumnEstimate:
    """Return the estimate for the cells of the value, the lower and the upper end, one row each."""
    total = _tree_total(release, estimator.total)
    assert isinstance(total.domain, Grid)
    step, grid = float(total.domain.step), total.domain
    cells = np.minimum(ends, total.cell_count - 1)
    value, low, high = np.clip((cells + grid.index(float(grid.low))) * step, float(grid.low), float(grid.high))
    # An integer with step 1 equals its cell; any other value is within half a step of the middle of its cell.
    beside = 0.0 if total.expr.type is Type.INTEGER and grid.step == 1 else step / 2
    # A timestamp is anywhere in the day of its cell.
    day = 1.0 if estimator.kind is Type.TIMESTAMP else 0.0
    low, high = np.minimum(low, value) - beside, np.maximum(high, value) + max(beside, day)
    margins = np.maximum(value - low, high - value)
    margins[missing] = np.nan
    if estimator.origin is not None:
        return ColumnEstimate(_dates(value, missing, estimator), margins)
    return ColumnEstimate(np.where(missing, np.nan, value), margins)


def _dates(days: np.ndarray, missing: np.ndarray, estimator: Quantile) -> np.ndarray:
    assert estimator.origin is not None
    dates = [
        None if gone else estimator.origin + timedelta(days=int(day)) for day, gone in zip(days, missing, strict=True)
    ]
    if estimator.kind is Type.TIMESTAMP:
        dates = [None if day is None else datetime.combine(day, time()) for day in dates]
    return np.array(dates, object)


def _estimate_frequencies(
    release: PlannedRelease, estimator: Frequencies, noise: ReleaseNoise, looks: tuple[NodeCounts, ...], groups: int
) -> ColumnEstimate:
    total, step = _tree_total(release, estimator.total), _step(release, estimator.total)
    assert not isinstance(total.domain, Grid)
    counts = looks[0].counts[:, 0] if groups else np.zeros((0, total.cell_count), np.int64)
    order = np.argsort(-counts, axis=1, kind="stable")
    lowest = privacy.margin(additive(noise), CONFIDENCE, count=total.cell_count)  # above it, values that somebody has
    seen = [row[count[row] > lowest] for row, count in zip(order, counts, strict=True)]
    if estimator.function.output is FrequencyOutput.MODE:
        modes = _object_array([total.domain[row[0]] if len(row) else None for row in seen])
        return ColumnEstimate(modes, np.full(groups, np.nan))
    listed: list[Any] = [
        [_json_value(total.domain[index]) for index in row[: estimator.function.length]] for row in seen
    ]
    margin = math.nan
    if estimator.function.output is FrequencyOutput.COUNTS:
        named = [_json_key(value) for value in total.domain]
        sizes = [[round(Fraction(int(count)) * step) for count in row] for row in counts]
        listed = [dict(zip(named, row, strict=True)) for row in sizes]
        margin = float(privacy.margin(additive(noise), CONFIDENCE) * step)
    texts = _object_array([json.dumps(row, ensure_ascii=False) if row else None for row in listed])
    return ColumnEstimate(texts, np.full(groups, margin))


def _object_array(values: list[Value]) -> np.ndarray:
    array = np.empty(len(values), object)
    array[:] = values
    return array


def _json_value(value: Value) -> Value:
    return value if isinstance(value, str | bool | int | float) else str(value)


def _json_key(value: Value) -> str:
    """Return a value as a JSON object key, with integral numbers without a decimal point."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return json.dumps(value) if isinstance(value, bool | int | float) else str(value)
