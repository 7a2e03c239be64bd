"""A lint for valid policies that may not protect what their owner intends."""

import math
from collections.abc import Iterator
from datetime import datetime
from fractions import Fraction

from discreet.policy.column_domains import Between, DeclaredColumn, Keys, NoDomain, References, default_step
from discreet.policy.declarations import (
    DeclaredTable,
    NoUnit,
    ParentTableUnit,
    RowUnit,
    WindowUnit,
    declared_bound,
)
from discreet.policy.entries import DEFAULT_ROWS_MAX
from discreet.policy.hazard_rules import Hazard, make_hazard
from discreet.policy.model import Policy
from discreet.policy.name_patterns import is_email, suggests
from discreet.policy.validators import format_number

_MAX_STEPS = 1 << 62
_LARGE_EPSILON = 10
_LARGE_DELTA = Fraction(1, 10**6)
_WIDE_RANGE = 10**9
_LONG_LIST, _LONG_PERSON_LIST = 500, 20


def hazards(policy: Policy) -> list[Hazard]:
    """Return the findings of the lint, in the order of the policy's sections."""
    result = [*_budget_hazards(policy)]
    for table in policy.tables.values():
        result += _public_table_hazards(table, policy) if table.public else _private_table_hazards(table, policy)
    return result


def _budget_hazards(policy: Policy) -> Iterator[Hazard]:
    total = policy.budget
    if total.epsilon > _LARGE_EPSILON:
        yield make_hazard("D005", epsilon=format_number(total.epsilon), who=policy.data.protects)
    roots = [table for table in policy.tables.values() if not isinstance(table.unit, NoUnit | ParentTableUnit)]
    # The default limit says nothing about the number of people.
    sizes = [table.rows_max for table in roots if table.rows_max != DEFAULT_ROWS_MAX]
    largest = min([_LARGE_DELTA, *(Fraction(1, size) for size in sizes)])
    if total.delta > largest:
        yield make_hazard("D006", delta=format_number(total.delta), largest=format_number(largest))


def _public_table_hazards(table: DeclaredTable, policy: Policy) -> Iterator[Hazard]:
    if not table.columns:
        yield make_hazard("D010", table.name)
    tables = policy.tables.values()
    units = {name.lower() for other in tables if (name := other.unit_column)}
    domains = {column.domain for other in tables for column in other.columns.values()}
    for column in table.columns.values():
        if column.name.lower() in units or (_has_no_domain(column) and suggests(column.name, "a person")):
            yield make_hazard("D013", table.name, column.name)
        elif _has_no_domain(column, "text") and References(table.name, column.name) not in domains:
            yield make_hazard("D003", table.name, column.name)


def _private_table_hazards(table: DeclaredTable, policy: Policy) -> Iterator[Hazard]:
    yield from _unit_hazards(table, policy.data.protects)
    keys = policy.key_columns(table)
    for column in table.columns.values():
        if column.name not in keys:
            yield from _column_hazards(table, column, policy.data.protects)


def _unit_hazards(table: DeclaredTable, unit_noun: str) -> Iterator[Hazard]:
    match table.unit:
        case RowUnit():
            yield make_hazard("D007", table.name, who=unit_noun)
        case WindowUnit(_, _, window):
            yield make_hazard("D011", table.name, window=window.value, who=unit_noun)
        case ParentTableUnit(parent, on, key):
            yield make_hazard("D012", table.name, on, parent=parent, key=key)
    if missing := [key for key in ("groups", "rows") if getattr(table, key) is None]:
        missing_text = f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'}"
        yield make_hazard("D015", table.name, missing=missing_text, who=unit_noun)
    name = table.unit_column
    if name and suggests(name, "a device"):
        yield make_hazard("D001", table.name, name, who=unit_noun)
    if name and isinstance(table.columns[name].domain, Keys | References):
        yield make_hazard("D009", table.name, name)


def _column_hazards(table: DeclaredTable, column: DeclaredColumn, unit_noun: str) -> Iterator[Hazard]:
    if _has_no_domain(column) and (suggests(column.name, "a person") or suggests(column.name, "a key")):
        yield make_hazard("D002", table.name, column.name)
    elif _has_no_domain(column, "real", "decimal"):
        yield make_hazard("D004", table.name, column.name)
    elif _has_no_domain(column, "date", "timestamp"):
        yield make_hazard("D023", table.name, column.name)
    match column.domain:
        case Between(step=Fraction()) as range_:
            yield from _range_hazards(table, column, range_)
        case Between(datetime() as low, datetime() as high) if {low.second, high.second} - {0, 59}:
            yield make_hazard("D014", table.name, column.name)
        case Keys(values) if _look_taken_from_data(column, values):
            yield make_hazard("D018", table.name, column.name, count=len(values), who=unit_noun)


def _range_hazards(table: DeclaredTable, column: DeclaredColumn, range_: Between) -> Iterator[Hazard]:
    low, high = (Fraction(end) for end in (range_.low, range_.high))  # type: ignore[arg-type]  # a step: both are numbers
    assert range_.step is not None
    largest = max(abs(low), abs(high))
    size = math.ceil(largest / range_.step)
    if size * table.rows_max >= _MAX_STEPS:
        yield make_hazard("D008", table.name, column.name, size=size)
    if any(map(_looks_measured, (low, high))):
        yield make_hazard("D014", table.name, column.name)
    if largest >= _WIDE_RANGE:
        # At epsilon 1 the Laplace scale is one unit's largest contribution; 95 % of the noise is within 3 scales.
        margin = 3 * largest * (declared_bound(table.groups) or 1) * (declared_bound(table.rows) or 1)
        yield make_hazard("D016", table.name, column.name, margin=format_number(margin))
    is_default_step = range_.step == default_step(low, high)  # an owner is unlikely to choose this one
    if is_default_step and (column.type != "integer" or range_.step > 1):
        yield make_hazard("D017", table.name, column.name, step=format_number(range_.step))


def _look_taken_from_data(column: DeclaredColumn, values: tuple[object, ...]) -> bool:
    """Whether a list is too long to have been written by hand, or contains e-mail addresses."""
    max_values = _LONG_PERSON_LIST if suggests(column.name, "a person") else _LONG_LIST
    return len(values) > max_values or any(map(is_email, values))


def _has_no_domain(column: DeclaredColumn, *types: str) -> bool:
    return isinstance(column.domain, NoDomain) and (not types or column.type in types)


def _looks_measured(end: Fraction) -> bool:
    """Whether a bound has a fractional part and at least four digits, which nobody would choose."""
    return end.denominator != 1 and len(f"{abs(float(end)):.12g}".replace(".", "").strip("0")) >= 4
