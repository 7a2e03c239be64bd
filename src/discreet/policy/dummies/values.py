"""Made-up values of a column: within its range, from its list, or, if it has neither, recognisably invented."""

from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from math import ceil, floor, log10
from typing import Any

import numpy as np
import pyarrow as pa

from discreet.policy.columns import Between, Declared, Keys
from discreet.policy.names import stem

_FIRST_DAY, _LAST_DAY = date(2020, 1, 1), date(2024, 12, 31)  # where a column does not say
_MOST_DIGITS = 15  # of a decimal in front of the point; larger ones are written as reals
_WORDS = 40  # different texts in a column without a domain, besides rare ones

Chance = np.random.Generator


def arrow_type(column: Declared) -> pa.DataType:
    """Return how a column's values are stored."""
    plain = {
        "integer": pa.int64(),
        "real": pa.float64(),
        "boolean": pa.bool_(),
        "text": pa.string(),
        "date": pa.date32(),
        "timestamp": pa.timestamp("us"),
    }
    if column.type != "decimal":
        return plain[column.type]
    digits = _digits(column)
    return pa.float64() if digits is None else pa.decimal128(38, digits)


def draw(column: Declared, count: int, chance: Chance) -> list[Any]:
    """Make up values, of which some are common and some rare."""
    if isinstance(column.domain, Keys):
        return pick(column.domain.values, count, chance)
    if column.unique and len(values := distinct(column, count, chance)) == count:
        return values
    return _DRAWERS[column.type](column, count, chance)


def pick(pool: Sequence[Any], count: int, chance: Chance) -> list[Any]:
    """Choose from a list, the first ones most often."""
    weights = 1.0 / np.arange(1, len(pool) + 1)
    places = chance.choice(len(pool), size=count, p=weights / weights.sum())
    return [pool[place] for place in places]


def distinct(column: Declared, most: int, chance: Chance) -> list[Any]:
    """Make up at most so many values that are all different."""
    if isinstance(column.domain, Keys):
        return list(column.domain.values)[:most]
    if column.type == "boolean":
        return [False, True][:most]
    if column.type == "text":
        return [f"{_label(column)}-{place:05d}" for place in range(1, most + 1)]
    if column.type == "integer" and not isinstance(column.domain, Between):
        return [int(number) for number in 1000 + chance.permutation(3 * most)[:most]]
    found: dict[Any, None] = {}
    for _ in range(20):  # a small range has few different values, and may not have all that are wanted
        found |= dict.fromkeys(_DRAWERS[column.type](column, 2 * most, chance))
        if len(found) >= most:
            break
    return list(found)[:most]


def _label(column: Declared) -> str:
    return stem(column.name) or "made-up"


def _shares(count: int, chance: Chance) -> Any:
    """Return numbers between 0 and 1, small ones more often, as incomes and costs are."""
    return chance.beta(1.5, 3.0, size=count)


def _integers(column: Declared, count: int, chance: Chance) -> list[Any]:
    if not isinstance(column.domain, Between):
        return [int(number) for number in chance.integers(0, 1000, size=count)]
    low, high = int(column.domain.low), int(column.domain.high)  # type: ignore[arg-type]
    return [min(high, low + int(share * (high - low + 1))) for share in _shares(count, chance)]


def _reals(column: Declared, count: int, chance: Chance) -> list[Any]:
    if not isinstance(column.domain, Between):
        return [round(float(number), 2) for number in chance.normal(100, 30, size=count)]
    low, high = _inside(column.domain)
    digits = _decimals(column.domain.step)
    return [min(high, max(low, round(low + float(share) * (high - low), digits))) for share in _shares(count, chance)]


def _inside(domain: Between) -> tuple[float, float]:
    """Return the ends as floats that do not lie outside."""
    low, high = Fraction(domain.low), Fraction(domain.high)  # type: ignore[arg-type]
    ends = [float(low), float(high)]
    if Fraction(ends[0]) < low:
        ends[0] = float(np.nextafter(ends[0], np.inf))
    if Fraction(ends[1]) > high:
        ends[1] = float(np.nextafter(ends[1], -np.inf))
    return ends[0], ends[1]


def _decimals(step: Fraction | None) -> int:
    """Return how many digits after the point a step asks for."""
    return 2 if step is None else min(12, max(0, ceil(-log10(step))))


def _digits(column: Declared) -> int | None:
    """Return how many digits after the point a decimal column is stored with; None if it is stored as a real."""
    domain = column.domain
    if isinstance(domain, Keys):
        ends = [Fraction(value) for value in domain.values]  # type: ignore[arg-type]
        digits = next((size for size in range(13) if all((end * 10**size).denominator == 1 for end in ends)), None)
    elif isinstance(domain, Between):
        ends = [Fraction(domain.low), Fraction(domain.high)]  # type: ignore[arg-type]
        # Fine enough for the step, and so fine that there is a value within the range.
        sizes = range(_decimals(domain.step), 13)
        digits = next((size for size in sizes if ceil(ends[0] * 10**size) <= floor(ends[1] * 10**size)), None)
    else:
        return 2
    return digits if max(map(abs, ends)) < 10**_MOST_DIGITS else None


def _decimal_numbers(column: Declared, count: int, chance: Chance) -> list[Any]:
    digits = _digits(column)
    if digits is None:
        return _reals(column, count, chance)
    if not isinstance(column.domain, Between):
        return [Decimal(f"{number:.2f}") for number in chance.normal(100, 30, size=count)]
    low, high = Fraction(column.domain.low), Fraction(column.domain.high)  # type: ignore[arg-type]
    first, last = ceil(low * 10**digits), floor(high * 10**digits)
    numbers = (min(last, first + int(share * (last - first + 1))) for share in _shares(count, chance))
    return [Decimal(number).scaleb(-digits) for number in numbers]


def _dates(column: Declared, count: int, chance: Chance) -> list[Any]:
    low, high = _FIRST_DAY, _LAST_DAY
    if isinstance(column.domain, Between):
        low, high = column.domain.low, column.domain.high  # type: ignore[assignment]
    return [low + timedelta(days=int(day)) for day in chance.integers(0, (high - low).days + 1, size=count)]


def _times(column: Declared, count: int, chance: Chance) -> list[Any]:
    low, high = (datetime.combine(day, datetime.min.time()) for day in (_FIRST_DAY, _LAST_DAY))
    if isinstance(column.domain, Between):
        low, high = column.domain.low, column.domain.high  # type: ignore[assignment]
    seconds = chance.integers(0, int((high - low).total_seconds()) + 1, size=count)
    return [low + timedelta(seconds=int(second)) for second in seconds]


def _texts(column: Declared, count: int, chance: Chance) -> list[Any]:
    """Make up words: some that many have, and one in twenty that nobody else has."""
    pool = [f"{_label(column)}-{place:02d}" for place in range(1, _WORDS + 1)]
    rare = chance.random(count) < 0.05
    common = pick(pool, count, chance)
    return [f"{_label(column)}-rare-{place}" if rare[place] else common[place] for place in range(count)]


_DRAWERS: dict[str, Callable[[Declared, int, Chance], list[Any]]] = {
    "integer": _integers,
    "real": _reals,
    "decimal": _decimal_numbers,
    "boolean": lambda _, count, chance: pick((False, True), count, chance),
    "text": _texts,
    "date": _dates,
    "timestamp": _times,
}
