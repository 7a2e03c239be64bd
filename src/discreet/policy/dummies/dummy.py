"""Dummy tables that fit a policy: the same units everywhere, valid keys, and nothing of the real data."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from discreet.kernel.errors import PolicyError
from discreet.policy.columns import Declared
from discreet.policy.dummies.owners import spread, unit_pool, usable
from discreet.policy.dummies.publics import Pools, make_pools, public_columns
from discreet.policy.dummies.values import Chance, arrow_type, distinct, draw, pick
from discreet.policy.policy import Policy
from discreet.policy.tables import Table
from discreet.policy.units import Column, ColumnInWindow, Row, Through

_NULLS = 0.05
_LEAST, _MOST = 10, 1_000_000
ROWS = 50_000  # enough that an answer at epsilon 1/10 is of use
_PUBLIC = 100  # rows of a public table that nothing leads to


def dummy(policy: Policy, rows: int = ROWS, *, random_state: int = 0) -> dict[str, pa.Table]:
    """Return dummy tables that fit a policy, with this many rows in each private one; the real data is never read.

    Values lie in their ranges and lists, units and keys are the same across tables, references are valid, NULLs occur
    where the policy makes them a group, and a few units exceed the contribution bounds.

    >>> policy = Policy.of({
    ...     "data": {"name": "visits"}, "budget": {"epsilon": 1},
    ...     "tables": {"visits": {"source": "v.csv", "unit": "who", "columns": {"who": {"type": "integer"}}}},
    ... })
    >>> dummy(policy, rows=50)["visits"].num_rows
    50
    """
    if not isinstance(rows, int) or not _LEAST <= rows <= _MOST:
        raise PolicyError(f"rows must be a whole number from {_LEAST} to {_MOST:,}, not {rows}.")
    chance = np.random.default_rng(random_state)
    columns = {table.name: public_columns(table, policy) for table in policy.tables.values() if table.public}
    pools = make_pools(policy, columns, rows, chance)
    made = {name: _public(name, columns[name], pools, rows, chance) for name in columns}
    people = unit_pool(policy, rows, chance)
    for table in _in_order(policy):
        made[table.name] = _private(table, _Known(policy, people, pools, made), rows, chance)
    return {name: made[name] for name in policy.tables}


@dataclass(frozen=True)
class _Known:
    """What is decided when a private table is made: the people, the public values, and the tables made before."""

    policy: Policy
    people: list[Any]
    pools: Pools
    made: Mapping[str, pa.Table]

    def keys(self, table: Table) -> set[str]:
        """Return the columns of a table by which other tables lead to it."""
        uses = (other.unit for other in self.policy.tables.values())
        return {unit.key for unit in uses if isinstance(unit, Through) and unit.table == table.name}


def _in_order(policy: Policy) -> list[Table]:
    """Return the private tables, parents first."""
    found: list[Table] = []
    waiting = [table for table in policy.tables.values() if not table.public]
    while waiting:
        late = {table.name for table in waiting}
        ready = [table for table in waiting if not isinstance(table.unit, Through) or table.unit.table not in late]
        found += ready
        waiting = [table for table in waiting if table not in ready]
    return found


def _public(name: str, columns: Mapping[str, Declared], pools: Pools, rows: int, chance: Chance) -> pa.Table:
    found = {key: pools.values.get((name.lower(), key.lower(), column.type)) for key, column in columns.items()}
    keys = {key: pool for key, pool in found.items() if pool}
    count = min(map(len, keys.values())) if keys else min(rows, _PUBLIC)
    values = {
        column: keys[column][:count] if column in keys else _drawn(declared, pools, count, chance)
        for column, declared in columns.items()
    }
    return _arrow(columns, values)


def _private(table: Table, known: _Known, rows: int, chance: Chance) -> pa.Table:
    own = _owned(table, known, rows, chance)
    count = min(map(len, own.values())) if own else rows
    values = {
        name: own[name][:count] if name in own else _nulled(_drawn(column, known.pools, count, chance), column, chance)
        for name, column in table.columns.items()
    }
    if isinstance(table.unit, ColumnInWindow):
        _crowd(values[table.unit.name], values[table.unit.time])
    return _arrow(table.columns, values)


def _owned(table: Table, known: _Known, rows: int, chance: Chance) -> dict[str, list[Any]]:
    """Return the columns that say who owns a row, and those by which other tables lead here."""
    own: dict[str, list[Any]] = {}
    match table.unit:
        case Column(name) | ColumnInWindow(name, _, _):
            people = usable(known.people, table.columns[name])
            own[name] = [people[place] for place in spread(table, rows, len(people), chance)]
        case Through(parent, on, key):
            parents = list(dict.fromkeys(known.made[parent].column(key).to_pylist()))
            own[on] = [parents[place] for place in spread(table, rows, len(parents), chance)]
        case Row():
            pass
    for key in known.keys(table) - set(own):
        own[key] = distinct(table.columns[key], rows, chance)
    if isinstance(table.unit, ColumnInWindow):
        own.setdefault(table.unit.time, draw(table.columns[table.unit.time], rows, chance))
    return own


def _drawn(column: Declared, pools: Pools, count: int, chance: Chance) -> list[Any]:
    pool = pools.of(column)
    return pick(pool, count, chance) if pool else draw(column, count, chance)


def _nulled(values: list[Any], column: Declared, chance: Chance) -> list[Any]:
    if not column.null:
        return values
    gone = chance.random(len(values)) < _NULLS
    return [None if gone[place] else value for place, value in enumerate(values)]


def _crowd(people: list[Any], times: list[Any]) -> None:
    """Move all that the first person did into one day, so that one window is fuller than the limits allow."""
    first, earliest, latest = times[0], min(times), max(times)
    for place, person in enumerate(people):
        if person == people[0]:
            moved = datetime.combine(first, times[place].time()) if isinstance(first, datetime) else first
            times[place] = moved if earliest <= moved <= latest else first


def _arrow(columns: Mapping[str, Declared], values: Mapping[str, list[Any]]) -> pa.Table:
    return pa.table({name: _array(column, values[name]) for name, column in columns.items()})


def _array(column: Declared, values: list[Any]) -> pa.Array:
    """Store values; decimals as reals if they are too large, or if those that they reference are."""
    kind = arrow_type(column)
    if column.type == "decimal" and any(isinstance(value, float) for value in values):
        kind = pa.float64()
    if column.type != "decimal":
        return pa.array(values, kind)
    to = float if kind == pa.float64() else _decimal
    return pa.array([None if value is None else to(value) for value in values], kind)


def _decimal(value: Decimal | Fraction) -> Decimal:
    return value if isinstance(value, Decimal) else Decimal(value.numerator) / Decimal(value.denominator)
