"""Dummy tables that fit a policy: the same units in all tables, valid keys, no real data."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from discreet.kernel.errors import PolicyError
from discreet.policy.column_domains import DeclaredColumn, Keys, References
from discreet.policy.declarations import (
    ColumnUnit,
    DeclaredTable,
    ParentTableUnit,
    RowUnit,
    WindowUnit,
    declared_name,
)
from discreet.policy.dummy_data.dummy_values import Rng, arrow_type, draw_distinct, draw_from_pool, draw_values
from discreet.policy.dummy_data.pools import (
    Pools,
    assign_owners,
    draw_pools,
    draw_units,
    public_columns,
    units_in_domain,
)
from discreet.policy.model import Policy

_NULL_SHARE = 0.05
_MIN_ROWS, _MAX_ROWS = 10, 1_000_000
DEFAULT_ROWS = 50_000  # enough for useful answers at epsilon 0.1
_PUBLIC_ROWS = 100  # rows of a public table that no column refers to


def dummy(policy: Policy, rows: int = DEFAULT_ROWS, *, random_state: int = 0) -> dict[str, pa.Table]:
    """Return dummy tables that fit a policy, with this many rows in each private one; the real data is never read.

    Values lie in their ranges and lists, units and keys are the same across tables, references are valid, NULLs occur
    where the policy makes them a group, and a few units exceed the contribution bounds slightly.

    >>> policy = Policy.from_dict({
    ...     "data": {"name": "visits"}, "budget": {"epsilon": 1},
    ...     "tables": {"visits": {"source": "v.csv", "unit": "who", "columns": {"who": {"type": "integer"}}}},
    ... })
    >>> dummy(policy, rows=50)["visits"].num_rows
    50
    """
    if not isinstance(rows, int) or not _MIN_ROWS <= rows <= _MAX_ROWS:
        raise PolicyError(f"rows must be an integer from {_MIN_ROWS} to {_MAX_ROWS:,}, not {rows}.")
    rng = np.random.default_rng(random_state)
    columns = {table.name: public_columns(table, policy) for table in policy.tables.values() if table.public}
    pools = draw_pools(policy, columns, rows, rng)
    tables = {name: _public_table(policy, name, columns[name], pools, rows, rng) for name in columns}
    units = draw_units(policy, rows, rng)
    for table in policy.private_tables():
        tables[table.name] = _private_table(table, _DummyContext(policy, units, pools, tables), rows, rng)
    return {name: tables[name] for name in policy.tables}


@dataclass(frozen=True)
class _DummyContext:
    """The inputs of a private table: the units, the public values, and the tables generated before."""

    policy: Policy
    units: list[Any]
    pools: Pools
    tables: Mapping[str, pa.Table]


def _public_table(  # noqa: PLR0913, PLR0917 - a table, and what it is drawn from
    policy: Policy, name: str, columns: Mapping[str, DeclaredColumn], pools: Pools, rows: int, rng: Rng
) -> pa.Table:
    all_pools = {key: pools.values.get((name.lower(), key.lower(), column.type)) for key, column in columns.items()}
    keys = {key: pool for key, pool in all_pools.items() if pool}
    count = min(map(len, keys.values())) if keys else min(rows, _PUBLIC_ROWS)
    values = {
        column: keys[column][:count] if column in keys else _draw_column(declared, pools, count, rng)
        for column, declared in columns.items()
    }
    for coarser in _looked_up_in(name, policy):
        known = coarser.domain.values if isinstance(coarser.domain, Keys) else pools.values_for(coarser)
        if known and (column := declared_name(columns, coarser.name)):
            values[column] = draw_from_pool(known, count, rng)
    return _arrow_table(columns, values)


def _looked_up_in(public: str, policy: Policy) -> list[DeclaredColumn]:
    """Return the private columns whose values a public table has for each value of a finer column."""
    return [
        table.columns[column.within]
        for table in policy.tables.values()
        for column in table.columns.values()
        if column.within and isinstance(column.domain, References) and column.domain.table == public
    ]


def _private_table(table: DeclaredTable, context: _DummyContext, rows: int, rng: Rng) -> pa.Table:
    key_columns = _key_columns(table, context, rows, rng)
    count = min(map(len, key_columns.values())) if key_columns else rows
    values = {
        name: key_columns[name][:count]
        if name in key_columns
        else _with_nulls(_draw_column(column, context.pools, count, rng), column, rng)
        for name, column in table.columns.items()
    }
    if isinstance(table.unit, WindowUnit):
        _move_into_one_day(values[table.unit.name], values[table.unit.time])
    _make_levels_consistent(table, values, context.tables)
    return _arrow_table(table.columns, values)


def _make_levels_consistent(table: DeclaredTable, values: dict[str, list[Any]], tables: Mapping[str, pa.Table]) -> None:
    """Give each row the coarser values that its finer ones belong to, the finest columns first."""
    within = {column.name: column.within for column in table.columns.values() if column.within}
    waiting = list(within)
    while waiting:
        finest = next(name for name in waiting if name not in [within[other] for other in waiting])
        waiting.remove(finest)
        parents = _parents_of(table.columns[finest], within[finest], tables)
        values[within[finest]] = [parents.get(value) for value in values[finest]]


def _parents_of(column: DeclaredColumn, coarser: str, tables: Mapping[str, pa.Table]) -> Mapping[Any, Any]:
    if isinstance(column.domain, Keys):
        return dict(zip(column.domain.values, column.domain.within, strict=True))
    assert isinstance(column.domain, References)
    public = tables[column.domain.table]
    names = (declared_name(public.column_names, name) for name in (column.domain.column, coarser))
    return dict(zip(*(public.column(name).to_pylist() for name in names if name), strict=True))


def _key_columns(table: DeclaredTable, context: _DummyContext, rows: int, rng: Rng) -> dict[str, list[Any]]:
    """Return the values of the columns that determine a row's unit, and of those that other tables refer to."""
    key_columns: dict[str, list[Any]] = {}
    match table.unit:
        case ColumnUnit(name) | WindowUnit(name, _, _):
            units = units_in_domain(context.units, table.columns[name])
            key_columns[name] = [units[index] for index in assign_owners(table, rows, len(units), rng)]
        case ParentTableUnit(parent, on, key):
            parents = list(dict.fromkeys(context.tables[parent].column(key).to_pylist()))
            key_columns[on] = [parents[place] for place in assign_owners(table, rows, len(parents), rng)]
        case RowUnit():
            pass
    for key in context.policy.key_columns(table) - set(key_columns):
        key_columns[key] = draw_distinct(table.columns[key], rows, rng)
    if isinstance(table.unit, WindowUnit):
        key_columns.setdefault(table.unit.time, draw_values(table.columns[table.unit.time], rows, rng))
    return key_columns


def _draw_column(column: DeclaredColumn, pools: Pools, count: int, rng: Rng) -> list[Any]:
    pool = pools.values_for(column)
    return draw_from_pool(pool, count, rng) if pool else draw_values(column, count, rng)


def _with_nulls(values: list[Any], column: DeclaredColumn, rng: Rng) -> list[Any]:
    if not column.null:
        return values
    is_null = rng.random(len(values)) < _NULL_SHARE
    return [None if is_null[index] else value for index, value in enumerate(values)]


def _move_into_one_day(units: list[Any], times: list[Any]) -> None:
    """Move all rows of the first unit into one day, so that one window exceeds the contribution bounds."""
    first, earliest, latest = times[0], min(times), max(times)
    for index, unit in enumerate(units):
        if unit == units[0]:
            moved = datetime.combine(first, times[index].time()) if isinstance(first, datetime) else first
            times[index] = moved if earliest <= moved <= latest else first


def _arrow_table(columns: Mapping[str, DeclaredColumn], values: Mapping[str, list[Any]]) -> pa.Table:
    return pa.table({name: _arrow_array(column, values[name]) for name, column in columns.items()})


def _arrow_array(column: DeclaredColumn, values: list[Any]) -> pa.Array:
    """Return the values as an array; decimals become reals if they, or the values they refer to, are too large."""
    dtype = arrow_type(column)
    if column.type == "decimal" and any(isinstance(value, float) for value in values):
        dtype = pa.float64()
    if column.type != "decimal":
        return pa.array(values, dtype)
    convert = float if dtype == pa.float64() else _to_decimal
    return pa.array([None if value is None else convert(value) for value in values], dtype)


def _to_decimal(value: Decimal | Fraction) -> Decimal:
    return value if isinstance(value, Decimal) else Decimal(value.numerator) / Decimal(value.denominator)
