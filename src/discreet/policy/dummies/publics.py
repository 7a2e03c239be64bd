"""Fake public tables, and the values that other tables take from them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from discreet.kernel.errors import PolicyError
from discreet.policy.columns import ColumnType, Declared, Open, References
from discreet.policy.drafting.schemas import read_schemas
from discreet.policy.dummies.values import Chance, distinct
from discreet.policy.policy import Policy
from discreet.policy.tables import Table

_MOST = 200  # rows of a public table


@dataclass(frozen=True)
class Pools:
    """The values of public columns that others refer to, by table and column in lower case, and type."""

    values: dict[tuple[str, str, str], list[Any]]

    def of(self, column: Declared) -> list[Any] | None:
        """Return what a column may be: the values that it references, or those of a public column of its name."""
        if isinstance(column.domain, References):
            return self.values.get((column.domain.table.lower(), column.domain.column.lower(), column.type))
        if isinstance(column.domain, Open):
            same = (column.name.lower(), column.type)
            return next((pool for (_, *known), pool in self.values.items() if tuple(known) == same), None)
        return None


def public_columns(table: Table, policy: Policy) -> Mapping[str, Declared]:
    """Return the columns of a public table; one that lists none has what its schema or references to it tell."""
    if table.columns:
        return table.columns
    source = policy.sources()[table.name]
    try:
        (sketch,) = read_schemas(source)
        types = {column.name: column.type for column in sketch.columns if column.type}
    except PolicyError:  # not there: what other tables say of it must do
        types = {}
    referenced = {
        column.domain.column: column.type
        for other in policy.tables.values()
        for column in other.columns.values()
        if isinstance(column.domain, References) and column.domain.table == table.name
    }
    known: dict[str, ColumnType] = {**types, **referenced}  # type: ignore[dict-item]
    if not known:
        raise PolicyError(
            f"table {table.name}: it lists no columns, and its source is not there ({Path(source).name}). "
            "List the columns in the policy."
        )
    return {name: Declared(name, kind, Open(), null=False) for name, kind in known.items()}


def make_pools(policy: Policy, columns: Mapping[str, Mapping[str, Declared]], rows: int, chance: Chance) -> Pools:
    """Make up different values for each public column that is referenced, or that an open column is named after."""
    pools = Pools({})
    wanted = [
        (table, column) for table in columns for column in columns[table].values() if _is_wanted(table, column, policy)
    ]
    for table, column in sorted(wanted, key=lambda pair: isinstance(pair[1].domain, References)):
        known = pools.of(column) if isinstance(column.domain, References) else None
        plain = replace(column, domain=Open()) if isinstance(column.domain, References) else column
        pool = known or distinct(plain, min(_MOST, max(3, rows // 10)), chance)
        pools.values[table.lower(), column.name.lower(), column.type] = pool
    return pools


def _is_wanted(table: str, column: Declared, policy: Policy) -> bool:
    return any(_leads(other, use, table, column) for other in policy.tables.values() for use in other.columns.values())


def _leads(other: Table, use: Declared, table: str, column: Declared) -> bool:
    """Whether a column references a public one, or has its name and no values of its own: people will join on it."""
    if isinstance(use.domain, References):
        return (use.domain.table, use.domain.column.lower()) == (table, column.name.lower())
    if other.public or getattr(other.unit, "name", None) == use.name or not isinstance(use.domain, Open):
        return False
    return use.name.lower() == column.name.lower() and use.type == column.type != "real"
