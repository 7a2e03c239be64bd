"""Values that are chosen from released trees of cells: quantiles with their margins, and the most frequent values."""

import json
import math
from datetime import datetime, time, timedelta
from fractions import Fraction

import numpy as np

from discreet.kernel.expr import Type, Value
from discreet.kernel.grid import Grid
from discreet.kernel.question import Cells
from discreet.kernel.tree import Look, Reveal, Walk
from discreet.sql.descent import Descent
from discreet.sql.estimates import CONFIDENCE, Estimate
from discreet.sql.intervals import Noise
from discreet.sql.plan import Part, Quantile, Shown, Tabled

_Z = 1.96


def walks_of(part: Part, noises: tuple[Noise, ...]) -> tuple[Walk, ...]:
    """Return how to look at each of a question's trees."""
    return tuple(_walk(part, place, noises[place]) for place in _trees(part))


def choices(
    part: Part, noises: tuple[Noise, ...], trees: tuple[tuple[Look, ...], ...], groups: int
) -> dict[str, Estimate]:
    """Return the measures that are found in trees, by their names."""
    seen = dict(zip(_trees(part), trees, strict=True))
    found = {}
    for measure in part.measures:
        match measure.recipe:
            case Quantile(place) as recipe:
                found[measure.name] = _quantile(part, recipe, noises[place], seen[place], groups)
            case Tabled(place) as recipe:
                found[measure.name] = _tabled(part, recipe, noises[place], seen[place], groups)
    return found


def blurred(estimate: Estimate, times: int, rng: np.random.Generator) -> Estimate:
    """Return values with fresh noise as wide as their margins, so many times over."""
    values, margins = np.tile(estimate.values, times), np.tile(estimate.margins, times)
    if values.dtype == np.float64:
        values = values + np.nan_to_num(margins) / _Z * rng.normal(size=len(values))
    return Estimate(values, margins)


def sentences(part: Part, noises: tuple[Noise, ...]) -> list[str]:
    """Say what an end of a range means."""
    told = []
    for measure in part.measures:
        if isinstance(measure.recipe, Quantile) and measure.recipe.target.end:
            descent = _walk(part, measure.recipe.total, noises[measure.recipe.total])
            assert isinstance(descent, Descent)
            below = "below" if measure.recipe.target.end > 0 else "above"
            told.append(
                f"{measure.label} is a private quantile: about {_rough(descent.aside)} rows of a group lie {below} it, "
                "because the value of a single row cannot be told."
            )
    return told


def rank_margin(part: Part, recipe: Quantile, noise: Noise) -> float:
    """Return about how many rows the rank of a quantile can be off, at 95 %."""
    descent = _walk(part, recipe.total, noise)
    assert isinstance(descent, Descent)
    return float(_Z * descent.deviation * math.sqrt(descent.depth * descent.fan / 6 + 1))


def _rough(number: float) -> str:
    return f"{float(f'{number:.2g}'):,.0f}"


def _trees(part: Part) -> list[int]:
    return [place for place, total in enumerate(part.question.totals) if isinstance(total, Cells)]


def _cells(part: Part, place: int) -> Cells:
    total = part.question.totals[place]
    assert isinstance(total, Cells)
    return total


def _walk(part: Part, place: int, noise: Noise) -> Walk:
    total = _cells(part, place)
    if not isinstance(total.places, Grid):
        return _look_once
    recipes = [measure.recipe for measure in part.measures if isinstance(measure.recipe, Quantile)]
    targets = tuple(sorted({recipe.target for recipe in recipes if recipe.total == place}, key=lambda each: each.share))
    return Descent(targets, noise, _step(part, place), total.fan, total.depth)


def _step(part: Part, place: int) -> Fraction:
    return Fraction(1, 1 << part.question.bits(part.question.totals[place]))


def _look_once(reveal: Reveal, groups: int) -> None:
    reveal(np.zeros((groups, 1), np.int64))


def _quantile(part: Part, recipe: Quantile, noise: Noise, looks: tuple[Look, ...], groups: int) -> Estimate:
    total, descent = _cells(part, recipe.total), _walk(part, recipe.total, noise)
    assert isinstance(descent, Descent)
    assert isinstance(total.places, Grid)
    ends, rows = descent.ends(looks, groups)
    cells = np.minimum(ends[:, descent.targets.index(recipe.target)], total.size - 1)
    step, grid = float(total.places.step), total.places
    found = np.clip((cells + grid.index(float(grid.low))) * step, float(grid.low), float(grid.high))
    value, low, high = found.T
    # A whole number on steps of 1 is its cell; any other value may lie half a step beside the middle of its cell.
    beside = 0.0 if total.expr.type is Type.INTEGER and grid.step == 1 else step / 2
    low, high = np.minimum(low, value) - beside, np.maximum(high, value) + beside
    margins = np.maximum(value - low, high - value)
    # An end is told only of a group that has more rows than are left aside there.
    missing = rows <= (descent.aside if recipe.target.end else 0)
    margins[missing] = np.nan
    if recipe.origin is not None:
        return Estimate(_dates(value, missing, recipe), margins)
    return Estimate(np.where(missing, np.nan, value), margins)


def _dates(days: np.ndarray, missing: np.ndarray, recipe: Quantile) -> np.ndarray:
    assert recipe.origin is not None
    dates = [
        None if gone else recipe.origin + timedelta(days=int(day)) for day, gone in zip(days, missing, strict=True)
    ]
    if recipe.kind is Type.TIMESTAMP:
        dates = [None if day is None else datetime.combine(day, time()) for day in dates]
    return np.array(dates, object)


def _tabled(part: Part, recipe: Tabled, noise: Noise, looks: tuple[Look, ...], groups: int) -> Estimate:
    total, step = _cells(part, recipe.total), _step(part, recipe.total)
    assert not isinstance(total.places, Grid)
    counts = looks[0].counts[:, 0] if groups else np.zeros((0, total.size), np.int64)
    order = np.argsort(-counts, axis=1, kind="stable")
    if recipe.how.shown is Shown.MODE:
        return Estimate(_objects([total.places[row[0]] for row in order]), np.full(groups, np.nan))
    if recipe.how.shown is Shown.TOP:
        named = [[_plain(total.places[place]) for place in row[: recipe.how.most]] for row in order]
        return Estimate(_objects([json.dumps(row, ensure_ascii=False) for row in named]), np.full(groups, np.nan))
    shown = [
        {_key(value): round(Fraction(int(count)) * step) for value, count in zip(total.places, row, strict=True)}
        for row in counts
    ]
    margin = float(noise.margin(CONFIDENCE) * step)
    return Estimate(_objects([json.dumps(row, ensure_ascii=False) for row in shown]), np.full(groups, margin))


def _objects(values: list[Value]) -> np.ndarray:
    found = np.empty(len(values), object)
    found[:] = values
    return found


def _plain(value: Value) -> Value:
    return value if isinstance(value, str | bool | int | float) else str(value)


def _key(value: Value) -> str:
    """Write a value as a key of JSON: as JSON writes it by itself, and whole numbers without a point."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return json.dumps(value) if isinstance(value, bool | int | float) else str(value)
