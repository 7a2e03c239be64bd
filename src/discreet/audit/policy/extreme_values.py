"""Values of the planted unit: at the bounds of each column, beyond them, or missing."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import ROUND_DOWN, Decimal
from fractions import Fraction
from math import inf, nan
from typing import Any, Literal

import pyarrow as pa

from discreet.policy import Between, DeclaredColumn, Keys, NoDomain

_MAX_VALUES = 20_000  # distinct values of the planted unit, more than it has rows
_MONTHS = 36  # distinct times of a unit in many groups

ValueChoice = Literal["highest", "lowest", "above", "below", "missing", "nan"]
GroupChoice = Literal["one group", "as many groups as allowed", "every group", "groups of its own"]


@dataclass(frozen=True)
class Placement:
    """How a unit is planted: number of rows, values, groups, and whether it is alone."""

    name: str
    many_rows: bool
    value_choice: ValueChoice
    group_choice: GroupChoice = "one group"
    alone: bool = False


def planted_values(
    column: DeclaredColumn, placement: Placement, groups: int, candidates: Sequence[Any], kind: pa.DataType
) -> list[Any]:
    """Return the values that the planted rows take in turn in a column; `candidates` are its possible values.

    >>> age = DeclaredColumn("age", "integer", Between(0, 99, None, "clip"), null=False)
    >>> planted_values(age, Placement("too old", many_rows=False, value_choice="highest"), 1, [], pa.int64())
    [99]
    """
    if placement.value_choice == "missing":
        return [None]
    if placement.value_choice == "nan" and pa.types.is_floating(kind):
        return [nan]
    if placement.value_choice in ("above", "below"):
        return _out_of_range_values(kind, 1 if placement.value_choice == "above" else -1)
    return [
        _cast_to_stored_type(value, kind)
        for value in _limit_to_groups(_allowed_values(column, placement, candidates), placement, groups)
    ]


def _limit_to_groups(values: list[Any], placement: Placement, groups: int) -> list[Any]:
    match placement.group_choice:
        case "one group":
            return values[:1]
        case "as many groups as allowed":
            return values[:groups]
    return values


def _allowed_values(column: DeclaredColumn, placement: Placement, candidates: Sequence[Any]) -> list[Any]:
    """Return values that the policy allows: listed values, an end of a range, or unique ones without a domain."""
    if candidates and not (isinstance(column.domain, NoDomain) and placement.group_choice == "groups of its own"):
        is_numeric = column.type in ("integer", "decimal") and isinstance(column.domain, Keys)
        return sorted(candidates, reverse=placement.value_choice != "lowest") if is_numeric else list(candidates)
    if isinstance(column.domain, Between):
        end = column.domain.low if placement.value_choice == "lowest" else column.domain.high
        return _times_in_range(column.domain, end) if isinstance(end, date) else [end]
    return _unique_values(column.type, range(1 if placement.group_choice == "one group" else _MAX_VALUES))


def _unique_values(kind: str, numbers: range) -> list[Any]:
    """Return values of a type that no other unit has."""
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


def _times_in_range(domain: Between, end: Any) -> list[Any]:
    """Return times in a range, each in a different month, starting at `end`."""
    low, high = domain.low, domain.high
    step: timedelta = max((high - low) / _MONTHS, timedelta(days=32))  # type: ignore[operator, assignment]
    signed_step = -step if end == high else step
    return [end + number * signed_step for number in range(_MONTHS) if low <= end + number * signed_step <= high]


def _out_of_range_values(kind: pa.DataType, sign: int) -> list[Any]:
    """Return the largest or smallest values of a type that can be stored, beyond any bounds of a policy."""
    if pa.types.is_integer(kind):
        return [2**63 - 1, 2**62] if sign > 0 else [-(2**63), -(2**62)]
    if pa.types.is_floating(kind):
        return [sign * inf, sign * 1e308, nan, sign * 1e200]  # of one sign, so that they do not cancel
    if pa.types.is_decimal(kind):
        largest = Decimal(10 ** (kind.precision - kind.scale) - 1)
        return [largest if sign > 0 else largest.copy_negate()]
    if pa.types.is_date(kind):
        return [date.max if sign > 0 else date.min]
    if pa.types.is_timestamp(kind):
        return [datetime.max if sign > 0 else datetime.min]  # noqa: DTZ901 - local
    return ["", "not in the list", "\U0001f600 'quoted' \"twice\""] if pa.types.is_string(kind) else [None]


def _cast_to_stored_type(value: Any, kind: pa.DataType) -> Any:
    """Convert a value to the stored type of its column."""
    if pa.types.is_decimal(kind):
        exact = Fraction(value)
        number = Decimal(exact.numerator) / Decimal(exact.denominator)
        return number.quantize(Decimal(1).scaleb(-kind.scale), ROUND_DOWN)
    if pa.types.is_floating(kind):
        return float(value)
    return value
