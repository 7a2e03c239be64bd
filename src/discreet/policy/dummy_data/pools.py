"""The units and public values that dummy tables draw from."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from discreet.kernel.errors import PolicyError
from discreet.policy.column_domains import Between, ColumnType, DeclaredColumn, Keys, NoDomain, References
from discreet.policy.declarations import DeclaredTable, declared_bound
from discreet.policy.drafting.schemas import read_schemas
from discreet.policy.dummy_data.dummy_values import Rng, draw_distinct
from discreet.policy.model import Policy

_USUAL_ROWS_PER_UNIT = 5  # mean rows per unit, if the bounds allow it
_BOUND_TO_MEAN_RATIO = 4  # the bounds allow this many times the mean
_UNITS_PER_EXCEEDING_UNIT = 1000  # one unit in this many exceeds the bounds


def draw_units(policy: Policy, rows: int, rng: Rng) -> list[Any]:
    """Draw the units that all tables share: as many as the table with the fewest rows per unit needs."""
    tables = [table for table in policy.tables.values() if table.unit_column]
    columns = [table.columns[table.unit_column] for table in tables if table.unit_column]
    if not columns:
        return []
    with_domain = [column for column in columns if not isinstance(column.domain, NoDomain)]
    return draw_distinct([*with_domain, *columns][0], max(2, rows // min(map(_mean_rows_per_unit, tables))), rng)


def assign_owners(table: DeclaredTable, rows: int, owners: int, rng: Rng) -> Any:
    """Return the index of each row's owner; a few exceed the contribution bounds, by a row or up to a quarter."""
    owners = min(owners, max(2, rows // _mean_rows_per_unit(table)))
    bound = min(_max_rows_per_unit(table), max(rows // 4, 1))
    exceeding = min(max(2, owners // _UNITS_PER_EXCEEDING_UNIT), owners - 1)
    excess = rng.integers(1, max(1, bound // 4), size=exceeding, endpoint=True)
    exceeding_rows = np.repeat(np.arange(exceeding), bound + excess)[: rows // 2]
    one_each = np.arange(exceeding, owners)[: rows - len(exceeding_rows)]
    weights = rng.gamma(3, size=owners - exceeding) + 0.1
    others = rng.choice(owners - exceeding, size=rows - len(exceeding_rows) - len(one_each), p=weights / weights.sum())
    return np.concatenate([exceeding_rows, one_each, exceeding + others])


def _max_rows_per_unit(table: DeclaredTable) -> int:
    return (declared_bound(table.groups) or 1) * (declared_bound(table.rows) or _USUAL_ROWS_PER_UNIT)


def _mean_rows_per_unit(table: DeclaredTable) -> int:
    return min(_USUAL_ROWS_PER_UNIT, max(1, _max_rows_per_unit(table) // _BOUND_TO_MEAN_RATIO))


def units_in_domain(pool: list[Any], column: DeclaredColumn) -> list[Any]:
    """Return the units that are in the domain of a table's unit column."""
    match column.domain:
        case Keys(values):
            return [unit for unit in pool if unit in values] or list(values)
        case Between(low, high):
            return [unit for unit in pool if low <= _as_fraction(unit) <= high] or [low]
    return pool


def _as_fraction(value: Any) -> Any:
    return Fraction(value) if isinstance(value, Decimal) else value


_MAX_PUBLIC_ROWS = 200  # rows of a public table


@dataclass(frozen=True)
class Pools:
    """The values of public columns that others refer to, by table and column in lower case, and type."""

    values: dict[tuple[str, str, str], list[Any]]

    def values_for(self, column: DeclaredColumn) -> list[Any] | None:
        """Return the values that a column references, or those of a public column of the same name and type."""
        if isinstance(column.domain, References):
            return self.values.get((column.domain.table.lower(), column.domain.column.lower(), column.type))
        if isinstance(column.domain, NoDomain):
            name_and_type = (column.name.lower(), column.type)
            return next(
                (pool for (_, *public_column), pool in self.values.items() if tuple(public_column) == name_and_type),
                None,
            )
        return None


def public_columns(table: DeclaredTable, policy: Policy) -> Mapping[str, DeclaredColumn]:
    """Return the columns of a public table; if it lists none, those of its schema and of references to it."""
    if table.columns:
        return table.columns
    source = policy.sources()[table.name]
    try:
        (sketch,) = read_schemas(source)
        types = {column.name: column.type for column in sketch.columns if column.type}
    except PolicyError:  # no file: only the references of other tables are known
        types = {}
    referenced = {
        column.domain.column: column.type
        for other in policy.tables.values()
        for column in other.columns.values()
        if isinstance(column.domain, References) and column.domain.table == table.name
    }
    column_types: dict[str, ColumnType] = {**types, **referenced}  # type: ignore[dict-item]
    if not column_types:
        raise PolicyError(
            f"table {table.name}: no columns are listed, and the source {Path(source).name} does not exist. "
            "List the columns in the policy."
        )
    return {name: DeclaredColumn(name, kind, NoDomain(), null=False) for name, kind in column_types.items()}


def draw_pools(policy: Policy, columns: Mapping[str, Mapping[str, DeclaredColumn]], rows: int, rng: Rng) -> Pools:
    """Draw distinct values for each public column that others refer to, by reference or by name."""
    pools = Pools({})
    needed = [
        (table, column)
        for table in columns
        for column in columns[table].values()
        if _is_joined_on(table, column, policy)
    ]
    for table, column in sorted(needed, key=lambda pair: isinstance(pair[1].domain, References)):
        referenced_values = pools.values_for(column) if isinstance(column.domain, References) else None
        without_reference = replace(column, domain=NoDomain()) if isinstance(column.domain, References) else column
        pool = referenced_values or draw_distinct(without_reference, min(_MAX_PUBLIC_ROWS, max(3, rows // 10)), rng)
        pools.values[table.lower(), column.name.lower(), column.type] = pool
    return pools


def _is_joined_on(table: str, column: DeclaredColumn, policy: Policy) -> bool:
    return any(
        _joins_on(other, use, table, column) for other in policy.tables.values() for use in other.columns.values()
    )


def _joins_on(other: DeclaredTable, use: DeclaredColumn, table: str, column: DeclaredColumn) -> bool:
    """Whether queries are likely to join `use` on a public column: it refers to it, or has its name and no domain."""
    if isinstance(use.domain, References):
        return (use.domain.table, use.domain.column.lower()) == (table, column.name.lower())
    if other.public or getattr(other.unit, "name", None) == use.name or not isinstance(use.domain, NoDomain):
        return False
    return use.name.lower() == column.name.lower() and use.type == column.type != "real"
