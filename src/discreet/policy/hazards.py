"""A lint for policies that are valid, and yet may not protect whom their owner has in mind."""

import math
from collections.abc import Iterator
from datetime import datetime
from fractions import Fraction

from discreet.policy.columns import Between, Declared, Keys, Open, References, default_step
from discreet.policy.entries import MOST_ROWS
from discreet.policy.names import holds_people, is_device, is_email, is_key
from discreet.policy.policy import Policy
from discreet.policy.rules import Hazard, hazard
from discreet.policy.tables import Table
from discreet.policy.units import Column, ColumnInWindow, Public, Row, Through
from discreet.policy.values import written

_MOST_STEPS = 1 << 62
_LARGE_EPSILON = 10
_LARGE_DELTA = Fraction(1, 10**6)
_WIDE = 10**9
_LONG_LIST, _LONG_LIST_OF_PEOPLE = 500, 20


def hazards(policy: Policy) -> list[Hazard]:
    """Return what a careful reader of the policy would ask its owner about."""
    found = [*_of_budget(policy)]
    for table in policy.tables.values():
        found += _of_public(table, policy) if table.public else _of_private(table, policy)
    return found


def _of_budget(policy: Policy) -> Iterator[Hazard]:
    total = policy.budget
    if total.epsilon > _LARGE_EPSILON:
        yield hazard("D005", epsilon=written(total.epsilon), who=policy.data.protects)
    roots = [table for table in policy.tables.values() if not isinstance(table.unit, Public | Through)]
    sizes = [table.rows_max for table in roots if table.rows_max != MOST_ROWS]  # the default says nothing of people
    largest = min([_LARGE_DELTA, *(Fraction(1, size) for size in sizes)])
    if total.delta > largest:
        yield hazard("D006", delta=written(total.delta), largest=written(largest))


def _of_public(table: Table, policy: Policy) -> Iterator[Hazard]:
    if not table.columns:
        yield hazard("D010", table.name)
    every = policy.tables.values()
    units = {name.lower() for other in every if (name := _unit_column(other))}
    domains = {column.domain for other in every for column in other.columns.values()}
    for column in table.columns.values():
        if column.name.lower() in units or (_is_open(column) and holds_people(column.name)):
            yield hazard("D013", table.name, column.name)
        elif _is_open(column, "text") and References(table.name, column.name) not in domains:
            yield hazard("D003", table.name, column.name)


def _of_private(table: Table, policy: Policy) -> Iterator[Hazard]:
    yield from _of_unit(table, policy.data.protects)
    keys = {_unit_column(table)} | {table.unit.on if isinstance(table.unit, Through) else None}
    for other in policy.tables.values():
        if isinstance(other.unit, Through) and other.unit.table == table.name:
            keys.add(other.unit.key)
    for column in table.columns.values():
        if column.name not in keys:
            yield from _of_column(table, column, policy.data.protects)


def _of_unit(table: Table, who: str) -> Iterator[Hazard]:
    match table.unit:
        case Row():
            yield hazard("D007", table.name, who=who)
        case ColumnInWindow(_, _, window):
            yield hazard("D011", table.name, window=window.value, who=who)
        case Through(parent, on, key):
            yield hazard("D012", table.name, on, parent=parent, key=key)
    if missing := [key for key in ("groups", "rows") if getattr(table, key) is None]:
        words = f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'}"
        yield hazard("D015", table.name, missing=words, who=who)
    name = _unit_column(table)
    if name and is_device(name):
        yield hazard("D001", table.name, name, who=who)
    if name and isinstance(table.columns[name].domain, Keys | References):
        yield hazard("D009", table.name, name)


def _of_column(table: Table, column: Declared, who: str) -> Iterator[Hazard]:
    if _is_open(column) and (holds_people(column.name) or is_key(column.name)):
        yield hazard("D002", table.name, column.name)
    elif _is_open(column, "real", "decimal"):
        yield hazard("D004", table.name, column.name)
    elif _is_open(column, "date", "timestamp"):
        yield hazard("D023", table.name, column.name)
    match column.domain:
        case Between(step=Fraction()) as range_:
            yield from _of_range(table, column, range_)
        case Between(datetime() as low, datetime() as high) if {low.second, high.second} - {0, 59}:
            yield hazard("D014", table.name, column.name)
        case Keys(values) if _look_copied(column, values):
            yield hazard("D018", table.name, column.name, count=len(values), who=who)


def _of_range(table: Table, column: Declared, range_: Between) -> Iterator[Hazard]:
    low, high = (Fraction(end) for end in (range_.low, range_.high))  # type: ignore[arg-type]  # a step: both are numbers
    assert range_.step is not None
    largest = max(abs(low), abs(high))
    size = math.ceil(largest / range_.step)
    if size * table.rows_max >= _MOST_STEPS:
        yield hazard("D008", table.name, column.name, size=size)
    if any(map(_looks_measured, (low, high))):
        yield hazard("D014", table.name, column.name)
    if largest >= _WIDE:
        # At epsilon 1 the noise of a sum is below 3 scales in 95 of 100 cases, and a scale is what one unit weighs.
        margin = 3 * largest * (table.groups or 1) * (table.rows or 1)
        yield hazard("D016", table.name, column.name, margin=written(margin))
    chosen = range_.step == default_step(low, high)  # whoever names a step hardly names this one
    if chosen and (column.type != "integer" or range_.step > 1):
        yield hazard("D017", table.name, column.name, step=written(range_.step))


def _look_copied(column: Declared, values: tuple[object, ...]) -> bool:
    """Tell whether a list is too long to have been written by hand, or is one of people."""
    most = _LONG_LIST_OF_PEOPLE if holds_people(column.name) else _LONG_LIST
    return len(values) > most or any(map(is_email, values))


def _unit_column(table: Table) -> str | None:
    return table.unit.name if isinstance(table.unit, Column | ColumnInWindow) else None


def _is_open(column: Declared, *types: str) -> bool:
    return isinstance(column.domain, Open) and (not types or column.type in types)


def _looks_measured(end: Fraction) -> bool:
    """Tell whether a bound has a fraction and four or more digits, as nobody would choose it."""
    return end.denominator != 1 and len(f"{abs(float(end)):.12g}".replace(".", "").strip("0")) >= 4
