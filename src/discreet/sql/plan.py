"""What a query was understood to ask: the kernel's questions, how their totals become columns, and what follows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from enum import Enum
from fractions import Fraction

import numpy as np
import pyarrow as pa

from discreet.kernel.expr import Type
from discreet.kernel.question import Cells, Question, Sum
from discreet.kernel.release import Key
from discreet.sql import estimates
from discreet.sql.after import After
from discreet.sql.descent import Target
from discreet.sql.estimates import Estimate, Kind, Moments, Range, Statistic, Total
from discreet.sql.intervals import Noise
from discreet.sql.text import Options

ARROW = {
    Type.INTEGER: pa.int64(),
    Type.REAL: pa.float64(),
    Type.BOOLEAN: pa.bool_(),
    Type.TEXT: pa.string(),
    Type.DATE: pa.date32(),
    Type.TIMESTAMP: pa.timestamp("us"),
}


@dataclass(frozen=True)
class Counted:
    """A number of rows or units; the number is the place of its total in the question."""

    total: int


@dataclass(frozen=True)
class Summed:
    """A sum; with a count, of values less their centre, which the count gives back."""

    total: int
    kind: Kind
    count: int | None = None


@dataclass(frozen=True)
class Averaged:
    """A sum of values less their centre, over their count."""

    total: int
    count: int
    low: Fraction
    high: Fraction


@dataclass(frozen=True)
class Spread:
    """A variance or standard deviation, from squares, a sum and a count."""

    squares: int
    total: int
    count: int
    low: Fraction
    high: Fraction
    statistic: Statistic


@dataclass(frozen=True)
class Quantile:
    """A value by its rank, found in a tree of cells; of a date, in days since `origin`."""

    total: int
    target: Target
    kind: Type
    origin: date | None = None


class Shown(Enum):
    """What is shown of how often each value of a list occurs."""

    MODE = "the most frequent one"
    TOP = "a list of the most frequent"
    COUNTS = "all of them, with their counts"


@dataclass(frozen=True)
class Frequent:
    """Values by how often they occur; `most` is the length of a list."""

    shown: Shown
    most: int = 1


@dataclass(frozen=True)
class Tabled:
    """Values of a list by how often they occur."""

    total: int
    how: Frequent


Recipe = Counted | Summed | Averaged | Spread | Quantile | Tabled


@dataclass(frozen=True)
class Measure:
    """A column of a released table: its name there, how the query wrote it, and what it is made of."""

    name: str
    label: str = field(compare=False)
    recipe: Recipe


@dataclass(frozen=True)
class Part:
    """One release: a question, and the table that its noisy totals become.

    `weights` say how to share the price among the totals: the squared margin of each counts that much. With a `report`,
    a last total tells how many units the limits touched, for this share of the price. `keys` are the columns of the
    table that the question's keys become, and `order` has their places as the analyst lists them: so rows are sorted.
    """

    name: str
    question: Question
    keys: tuple[str, ...]
    measures: tuple[Measure, ...]
    weights: tuple[Fraction, ...]
    sentences: tuple[str, ...]
    report: Fraction = Fraction(0)
    order: tuple[int, ...] = ()


@dataclass(frozen=True)
class Plan:
    """A query that can be answered: its releases, and what is computed from them (`above` is that as SQL)."""

    text: str
    explain: bool
    options: Options
    within: Fraction | None
    parts: tuple[Part, ...]
    above: str
    after: After


def schema(part: Part) -> pa.Schema:
    """Return the columns of a released table: the keys, then the measures."""
    keys = [(name, ARROW[expr.type]) for name, (_, expr) in zip(part.keys, part.question.by, strict=True)]
    return pa.schema([*keys, *((measure.name, _type(part, measure.recipe)) for measure in part.measures)])


def assemble(
    part: Part,
    keys: list[Key],
    noisy: np.ndarray,
    noises: tuple[Noise, ...],
    chosen: Mapping[str, Estimate] | None = None,
) -> tuple[pa.Table, dict[str, Estimate]]:
    """Make a released table from noisy totals (groups × totals), with the estimate behind every measure.

    Measures that are found in trees of cells are not made of these totals: `chosen` has them, by their names.
    """
    columns = [pa.array([key[place] for key in keys], kind) for place, kind in enumerate(_key_types(part))]
    found = {
        measure.name: chosen[measure.name]
        if chosen and measure.name in chosen
        else _estimate(part, measure.recipe, noisy, noises)
        for measure in part.measures
    }
    columns += [_column(found[measure.name], _type(part, measure.recipe)) for measure in part.measures]
    return pa.Table.from_arrays(columns, schema=schema(part)), found


def total_of(part: Part, place: int, noisy: np.ndarray, noises: tuple[Noise, ...]) -> Total:
    """Return one total of a question in units of its values."""
    asked = part.question.totals[place]
    step = asked.grid.step**asked.power if isinstance(asked, Sum) else Fraction(1)
    fine = part.question.bits(asked)
    return Total(np.ascontiguousarray(noisy[:, place]), noises[place], step / (1 << fine))


def parts_of(recipe: Recipe) -> tuple[int, ...]:
    """Return the totals that a measure is made of."""
    match recipe:
        case Counted(total) | Summed(total, _, None) | Quantile(total) | Tabled(total):
            return (total,)
        case Summed(total, _, int(count)) | Averaged(total, count):
            return total, count
        case Spread(squares, total, count):
            return squares, total, count
    raise TypeError(f"recipe must be one of the list, not {type(recipe).__name__}")


def moved(recipe: Recipe, places: Sequence[int]) -> Recipe:
    """Return the recipe of a measure whose totals are at other places."""
    names = ("squares", "total", "count")
    old = {name: getattr(recipe, name) for name in names if getattr(recipe, name, None) is not None}
    return replace(recipe, **{name: places[place] for name, place in old.items()})


def centre(total: Sum) -> Fraction:
    """Return what was taken from every value before it was summed."""
    return total.grid.offset * total.grid.step


def _key_types(part: Part) -> list[pa.DataType]:
    return [ARROW[expr.type] for _, expr in part.question.by]


def _type(part: Part, recipe: Recipe) -> pa.DataType:
    match recipe:
        case Quantile(kind=kind):
            return ARROW[kind] if kind in (Type.DATE, Type.TIMESTAMP) else pa.float64()
        case Tabled(place, Frequent(Shown.MODE)):
            asked = part.question.totals[place]
            assert isinstance(asked, Cells)
            return ARROW[asked.expr.type]
        case Tabled():
            return pa.string()
    whole = isinstance(recipe, Counted) or (isinstance(recipe, Summed) and recipe.kind is Kind.WHOLE)
    return pa.int64() if whole else pa.float64()


def _column(estimate: Estimate, kind: pa.DataType) -> pa.Array:
    missing = np.isnan(estimate.values) if estimate.values.dtype == np.float64 else None
    return pa.array(estimate.values, kind, mask=missing)


def _estimate(part: Part, recipe: Recipe, noisy: np.ndarray, noises: tuple[Noise, ...]) -> Estimate:
    totals = part.question.totals

    def total(place: int) -> Total:
        return total_of(part, place, noisy, noises)

    def middle(place: int) -> Fraction:
        asked = totals[place]
        return centre(asked) if isinstance(asked, Sum) else Fraction(0)

    match recipe:
        case Counted(place):
            return estimates.count(total(place))
        case Summed(place, kind, None):
            return estimates.sum_of(total(place), kind=kind)
        case Summed(place, kind, int(count)):
            return estimates.sum_around(total(place), total(count), centre=middle(place), kind=kind)
        case Averaged(place, count, low, high):
            within = Range(low, high, middle(place))
            return estimates.mean(total(place), total(count), within=within)
        case Spread(squares, place, count, low, high, statistic):
            asked = totals[squares]
            assert isinstance(asked, Sum)
            shift = asked.shift * asked.grid.step**2
            moments = Moments(total(squares), total(place), total(count), shift)
            return estimates.spread(moments, within=Range(low, high, middle(place)), statistic=statistic)
    raise TypeError(f"recipe must be one of the list, not {type(recipe).__name__}")
