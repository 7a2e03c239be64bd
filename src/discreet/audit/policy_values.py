"""The values that a planted unit has: at the ends of every range, beyond them, or none at all."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import ROUND_DOWN, Decimal
from fractions import Fraction
from math import inf, nan
from typing import Any, Literal

import pyarrow as pa

from discreet.policy import Between, Declared, Keys, Open

_MOST = 20_000  # different values of the planted unit, more than it has rows
_MONTHS = 36  # different times of a unit that is in many groups

Values = Literal["highest", "lowest", "above", "below", "missing", "nan"]
Spread = Literal["one group", "as many groups as allowed", "every group", "groups of its own"]


@dataclass(frozen=True)
class Place:
    """How a unit is planted: with how many rows, which values, in which groups, and beside whom."""

    name: str
    many: bool
    values: Values
    spread: Spread = "one group"
    alone: bool = False


def values_of(column: Declared, place: Place, groups: int, pool: Sequence[Any], kind: pa.DataType) -> list[Any]:
    """Return the values of a column that planted rows have in turn; `pool` are those that it may have.

    >>> age = Declared("age", "integer", Between(0, 99, None, "clip"), null=False)
    >>> values_of(age, Place("too old", many=False, values="highest"), 1, [], pa.int64())
    [99]
    """
    if place.values == "missing":
        return [None]
    if place.values == "nan" and pa.types.is_floating(kind):
        return [nan]
    if place.values in ("above", "below"):
        return _beyond(kind, 1 if place.values == "above" else -1)
    return [_stored(value, kind) for value in _groups(_inside(column, place, pool), place, groups)]


def _groups(values: list[Any], place: Place, groups: int) -> list[Any]:
    match place.spread:
        case "one group":
            return values[:1]
        case "as many groups as allowed":
            return values[:groups]
    return values


def _inside(column: Declared, place: Place, pool: Sequence[Any]) -> list[Any]:
    """Return values that the policy allows: listed ones, the end of a range, or any where there is no domain."""
    if pool and not (isinstance(column.domain, Open) and place.spread == "groups of its own"):
        numbers = column.type in ("integer", "decimal") and isinstance(column.domain, Keys)
        return sorted(pool, reverse=place.values != "lowest") if numbers else list(pool)
    if isinstance(column.domain, Between):
        end = column.domain.low if place.values == "lowest" else column.domain.high
        return _times(column.domain, end) if isinstance(end, date) else [end]
    return _anything(column.type, range(1 if place.spread == "one group" else _MOST))


def _anything(kind: str, numbers: range) -> list[Any]:
    """Return values of a type that nobody else has, as many as there are."""
    match kind:
        case "text":
            return [f"planted {number}" for number in numbers]
        case "date":
            return [date(2024, 2, 29) + timedelta(number % 1000) for number in numbers]
        case "timestamp":
            return [datetime(2024, 2, 29, 12) + timedelta(number % 1000) for number in numbers]  # noqa: DTZ001 - local
        case "boolean":
            return [True, False]
    return [10**9 + number for number in numbers]


def _times(domain: Between, end: Any) -> list[Any]:
    """Return times over a range, its end first, and each in another month."""
    low, high = domain.low, domain.high
    step: timedelta = max((high - low) / _MONTHS, timedelta(days=32))  # type: ignore[operator, assignment]
    way = -step if end == high else step
    return [end + number * way for number in range(_MONTHS) if low <= end + number * way <= high]


def _beyond(kind: pa.DataType, sign: int) -> list[Any]:
    """Return values of a type that lie above, or below, whatever a policy says, as far as they can be stored."""
    if pa.types.is_integer(kind):
        return [2**63 - 1, 2**62] if sign > 0 else [-(2**63), -(2**62)]
    if pa.types.is_floating(kind):
        return [sign * inf, sign * 1e308, nan, sign * 1e200]  # not of both signs: their sum would be nothing
    if pa.types.is_decimal(kind):
        most = Decimal(10 ** (kind.precision - kind.scale) - 1)
        return [most if sign > 0 else most.copy_negate()]
    if pa.types.is_date(kind):
        return [date.max if sign > 0 else date.min]
    if pa.types.is_timestamp(kind):
        return [datetime.max if sign > 0 else datetime.min]  # noqa: DTZ901 - local
    return ["", "not of the list", "\U0001f600 'quoted' \"twice\""] if pa.types.is_string(kind) else [None]


def _stored(value: Any, kind: pa.DataType) -> Any:
    """Return a value in the type that its column is stored in."""
    if pa.types.is_decimal(kind):
        exact = Fraction(value)
        number = Decimal(exact.numerator) / Decimal(exact.denominator)
        return number.quantize(Decimal(1).scaleb(-kind.scale), ROUND_DOWN)
    if pa.types.is_floating(kind):
        return float(value)
    return value
