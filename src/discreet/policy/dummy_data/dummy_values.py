"""Dummy values of a column: from its range or list, or else recognisably artificial."""

from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from math import ceil, floor, log10
from typing import Any

import numpy as np
import pyarrow as pa

from discreet.policy.column_domains import Between, DeclaredColumn, Keys
from discreet.policy.name_patterns import entity_stem

_FIRST_DAY, _LAST_DAY = date(2020, 1, 1), date(2024, 12, 31)  # for columns without a range
_MAX_INTEGER_DIGITS = 15  # decimals with more digits before the point are stored as reals
_DISTINCT_TEXTS = 40  # common texts in a column without a domain

Rng = np.random.Generator


def arrow_type(column: DeclaredColumn) -> pa.DataType:
    """Return the Arrow type that stores a column's values."""
    types = {
        "integer": pa.int64(),
        "real": pa.float64(),
        "boolean": pa.bool_(),
        "text": pa.string(),
        "date": pa.date32(),
        "timestamp": pa.timestamp("us"),
    }
    if column.type != "decimal":
        return types[column.type]
    digits = _stored_decimal_places(column)
    return pa.float64() if digits is None else pa.decimal128(38, digits)


def draw_values(column: DeclaredColumn, count: int, rng: Rng) -> list[Any]:
    """Draw values, some common and some rare."""
    if isinstance(column.domain, Keys):
        return draw_from_pool(column.domain.values, count, rng)
    if column.unique and len(values := draw_distinct(column, count, rng)) == count:
        return values
    return _DRAWERS[column.type](column, count, rng)


def draw_from_pool(pool: Sequence[Any], count: int, rng: Rng) -> list[Any]:
    """Draw from a list with weights 1, 1/2, 1/3, …"""
    weights = 1.0 / np.arange(1, len(pool) + 1)
    indices = rng.choice(len(pool), size=count, p=weights / weights.sum())
    return [pool[index] for index in indices]


def draw_distinct(column: DeclaredColumn, max_count: int, rng: Rng) -> list[Any]:
    """Draw at most `max_count` distinct values."""
    if isinstance(column.domain, Keys):
        return list(column.domain.values)[:max_count]
    if column.type == "boolean":
        return [False, True][:max_count]
    if column.type == "text":
        return [f"{_text_prefix(column)}-{index:05d}" for index in range(1, max_count + 1)]
    if column.type == "integer" and not isinstance(column.domain, Between):
        return [int(number) for number in 1000 + rng.permutation(3 * max_count)[:max_count]]
    values: dict[Any, None] = {}
    for _ in range(20):  # a small range may have fewer distinct values than requested
        values |= dict.fromkeys(_DRAWERS[column.type](column, 2 * max_count, rng))
        if len(values) >= max_count:
            break
    return list(values)[:max_count]


def _text_prefix(column: DeclaredColumn) -> str:
    return entity_stem(column.name) or "dummy"


def _skewed_fractions(count: int, rng: Rng) -> Any:
    """Draw numbers between 0 and 1 from a right-skewed distribution, like that of incomes and costs."""
    return rng.beta(1.5, 3.0, size=count)


def _draw_integers(column: DeclaredColumn, count: int, rng: Rng) -> list[Any]:
    if not isinstance(column.domain, Between):
        return [int(number) for number in rng.integers(0, 1000, size=count)]
    low, high = int(column.domain.low), int(column.domain.high)  # type: ignore[arg-type]
    return [min(high, low + int(share * (high - low + 1))) for share in _skewed_fractions(count, rng)]


def _draw_reals(column: DeclaredColumn, count: int, rng: Rng) -> list[Any]:
    if not isinstance(column.domain, Between):
        return [round(float(number), 2) for number in rng.normal(100, 30, size=count)]
    low, high = _float_bounds(column.domain)
    digits = _decimal_places(column.domain.step)
    return [
        min(high, max(low, round(low + float(share) * (high - low), digits))) for share in _skewed_fractions(count, rng)
    ]


def _float_bounds(domain: Between) -> tuple[float, float]:
    """Return the bounds as floats inside the range."""
    low, high = Fraction(domain.low), Fraction(domain.high)  # type: ignore[arg-type]
    ends = [float(low), float(high)]
    if Fraction(ends[0]) < low:
        ends[0] = float(np.nextafter(ends[0], np.inf))
    if Fraction(ends[1]) > high:
        ends[1] = float(np.nextafter(ends[1], -np.inf))
    return ends[0], ends[1]


def _decimal_places(step: Fraction | None) -> int:
    """Return the number of decimal places of a step."""
    return 2 if step is None else min(12, max(0, ceil(-log10(step))))


def _stored_decimal_places(column: DeclaredColumn) -> int | None:
    """Return the number of decimal places that a decimal column is stored with; None if it is stored as a real."""
    domain = column.domain
    if isinstance(domain, Keys):
        ends = [Fraction(value) for value in domain.values]  # type: ignore[arg-type]
        digits = next((size for size in range(13) if all((end * 10**size).denominator == 1 for end in ends)), None)
    elif isinstance(domain, Between):
        ends = [Fraction(domain.low), Fraction(domain.high)]  # type: ignore[arg-type]
        # Enough decimal places for the step, and for at least one value in the range.
        sizes = range(_decimal_places(domain.step), 13)
        digits = next((size for size in sizes if ceil(ends[0] * 10**size) <= floor(ends[1] * 10**size)), None)
    else:
        return 2
    return digits if max(map(abs, ends)) < 10**_MAX_INTEGER_DIGITS else None


def _draw_decimals(column: DeclaredColumn, count: int, rng: Rng) -> list[Any]:
    digits = _stored_decimal_places(column)
    if digits is None:
        return _draw_reals(column, count, rng)
    if not isinstance(column.domain, Between):
        return [Decimal(f"{number:.2f}") for number in rng.normal(100, 30, size=count)]
    low, high = Fraction(column.domain.low), Fraction(column.domain.high)  # type: ignore[arg-type]
    first, last = ceil(low * 10**digits), floor(high * 10**digits)
    numbers = (min(last, first + int(share * (last - first + 1))) for share in _skewed_fractions(count, rng))
    return [Decimal(number).scaleb(-digits) for number in numbers]


def _draw_dates(column: DeclaredColumn, count: int, rng: Rng) -> list[Any]:
    low, high = _FIRST_DAY, _LAST_DAY
    if isinstance(column.domain, Between):
        low, high = column.domain.low, column.domain.high  # type: ignore[assignment]
    return [low + timedelta(days=int(day)) for day in rng.integers(0, (high - low).days + 1, size=count)]


def _draw_timestamps(column: DeclaredColumn, count: int, rng: Rng) -> list[Any]:
    low, high = (datetime.combine(day, datetime.min.time()) for day in (_FIRST_DAY, _LAST_DAY))
    if isinstance(column.domain, Between):
        low, high = column.domain.low, column.domain.high  # type: ignore[assignment]
    seconds = rng.integers(0, int((high - low).total_seconds()) + 1, size=count)
    return [low + timedelta(seconds=int(second)) for second in seconds]


def _draw_texts(column: DeclaredColumn, count: int, rng: Rng) -> list[Any]:
    """Draw texts, of which one in twenty is unique."""
    pool = [f"{_text_prefix(column)}-{index:02d}" for index in range(1, _DISTINCT_TEXTS + 1)]
    rare = rng.random(count) < 0.05
    common = draw_from_pool(pool, count, rng)
    return [f"{_text_prefix(column)}-rare-{index}" if rare[index] else common[index] for index in range(count)]


_DRAWERS: dict[str, Callable[[DeclaredColumn, int, Rng], list[Any]]] = {
    "integer": _draw_integers,
    "real": _draw_reals,
    "decimal": _draw_decimals,
    "boolean": lambda _, count, rng: draw_from_pool((False, True), count, rng),
    "text": _draw_texts,
    "date": _draw_dates,
    "timestamp": _draw_timestamps,
}
