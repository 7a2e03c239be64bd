"""Neighbouring databases: dummy tables that fit a policy, with and without a planted unit."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from discreet.audit.policy.extreme_values import Placement, planted_values
from discreet.policy import (
    Between,
    ColumnUnit,
    DeclaredTable,
    Keys,
    ParentTableUnit,
    Policy,
    References,
    RowUnit,
    WindowUnit,
)
from discreet.policy import dummy as dummy_data
from discreet.policy.declarations import declared_bound

_ROWS_PER_TABLE = 400  # enough for groups above the threshold
_DEFAULT_GROUPS, _DEFAULT_ROWS = 2, 3  # for tables without contribution bounds
_MAX_GROUPS, _MAX_ROWS = 20, 400  # so that the planted unit can exceed every bound

Tables = Mapping[str, pa.Table]
PLACEMENTS = (
    Placement("one row, highest values", many_rows=False, value_choice="highest"),
    Placement("one row, lowest values", many_rows=False, value_choice="lowest"),
    Placement("same row too often, highest values", many_rows=True, value_choice="highest"),
    Placement("same row too often, lowest values", many_rows=True, value_choice="lowest"),
    Placement(
        "maximum number of groups, highest values",
        many_rows=True,
        value_choice="highest",
        group_choice="as many groups as allowed",
    ),
    Placement(
        "maximum number of groups, lowest values",
        many_rows=True,
        value_choice="lowest",
        group_choice="as many groups as allowed",
    ),
    Placement("too many groups, highest values", many_rows=True, value_choice="highest", group_choice="every group"),
    Placement("too many groups, lowest values", many_rows=True, value_choice="lowest", group_choice="every group"),
    Placement("above every bound", many_rows=True, value_choice="above", group_choice="every group"),
    Placement("below every bound", many_rows=True, value_choice="below", group_choice="every group"),
    Placement("NaN", many_rows=True, value_choice="nan", group_choice="as many groups as allowed"),
    Placement("missing values", many_rows=True, value_choice="missing"),
    Placement("unique keys", many_rows=True, value_choice="highest", group_choice="groups of its own"),
    Placement(
        "alone in the data",
        many_rows=True,
        value_choice="highest",
        group_choice="as many groups as allowed",
        alone=True,
    ),
)


@dataclass(frozen=True)
class NeighbouringDatabases:
    """Two databases that differ in one unit: the tables with it and without it."""

    placement: Placement
    present: Tables
    absent: Tables


def contribution_bounds(table: DeclaredTable) -> tuple[int, int]:
    """Return the bounds of a table on groups and on rows per group, or defaults; capped for the audit.

    >>> policy = Policy.from_dict({
    ...     "data": {"name": "visits"}, "budget": {"epsilon": 1},
    ...     "tables": {"visits": {"source": "v", "unit": "who", "rows": 5, "columns": {"who": {"type": "integer"}}}},
    ... })
    >>> contribution_bounds(policy.tables["visits"])
    (2, 5)
    """
    is_row_unit = isinstance(table.unit, RowUnit)
    groups, rows = (
        declared_bound(table.groups) or (1 if is_row_unit else _DEFAULT_GROUPS),
        declared_bound(table.rows) or (1 if is_row_unit else _DEFAULT_ROWS),
    )
    return min(groups, _MAX_GROUPS), min(rows, _MAX_ROWS)


def neighbouring_databases(policy: Policy, *, random_state: int = 0) -> Iterator[NeighbouringDatabases]:
    """Yield pairs of neighbouring databases that fit a policy; the real data is not read.

    >>> policy = Policy.from_dict({
    ...     "data": {"name": "visits"}, "budget": {"epsilon": 1},
    ...     "tables": {"visits": {"source": "v.csv", "unit": "who", "columns": {"who": {"type": "integer"}}}},
    ... })
    >>> first = next(neighbouring_databases(policy))
    >>> first.present["visits"].num_rows - first.absent["visits"].num_rows
    1
    """
    dummy_tables = dummy_data(policy, _ROWS_PER_TABLE, random_state=random_state)
    planted_unit = _PlantedUnit.choose(policy, dummy_tables)
    empty_tables = {
        name: rows if policy.tables[name].public else rows.slice(0, 0) for name, rows in dummy_tables.items()
    }
    for placement in PLACEMENTS:
        absent = empty_tables if placement.alone else planted_unit.others
        planted_rows = {name: planted_unit.plant_rows(policy.tables[name], placement) for name in planted_unit.removed}
        present = {
            name: pa.concat_tables([rows, planted_rows[name]]) if name in planted_rows else rows
            for name, rows in absent.items()
        }
        yield NeighbouringDatabases(placement, present, absent)


@dataclass(frozen=True)
class _PlantedUnit:
    """One unit of the dummy data: its rows, which are replaced by planted ones, and all other rows."""

    policy: Policy
    removed: Tables
    others: Tables

    @classmethod
    def choose(cls, policy: Policy, tables: Tables) -> "_PlantedUnit":
        removed: dict[str, pa.Table] = {}
        others = dict(tables)
        unit = _unit_to_plant(policy, tables)
        for table in policy.private_tables():
            rows = tables[table.name]
            is_own = _rows_of_unit(table, rows, unit, removed)
            removed[table.name], others[table.name] = rows.filter(is_own), rows.filter(pc.invert(is_own))
        return cls(policy, removed, others)

    def plant_rows(self, table: DeclaredTable, placement: Placement) -> pa.Table:
        """Return the rows to plant in a table."""
        original = self.removed[table.name]
        if not original.num_rows:
            return original
        groups, rows = contribution_bounds(table)
        count = 2 * (groups + 1) * (rows + 1) if placement.many_rows and not isinstance(table.unit, RowUnit) else 1
        identifiers = self._identifier_columns(table)
        columns = []
        for name in table.columns:
            kind = original.schema.field(name).type
            if name in identifiers:
                own_values = original.column(name).to_pylist()
                own_values = own_values[:1] if identifiers[name] == "one" else own_values
                columns.append(pa.array([own_values[row % len(own_values)] for row in range(count)], kind))
            else:
                values = planted_values(
                    table.columns[name], placement, groups, self._candidate_values(table, name), kind
                )
                columns.append(pa.array([values[row % len(values)] for row in range(count)], kind))
        return pa.Table.from_arrays(columns, schema=original.schema)

    def _identifier_columns(self, table: DeclaredTable) -> dict[str, Literal["one", "all"]]:
        """Return the columns that identify the unit, which keep all their values or the first one."""
        identifiers: dict[str, Literal["one", "all"]] = {}
        match table.unit:
            case ColumnUnit(name):
                identifiers[name] = "one"
            case WindowUnit(name, time, _):
                identifiers |= {name: "one", time: "one"}
        return {name: identifiers.get(name, "all") for name in self.policy.key_columns(table) | set(identifiers)}

    def _candidate_values(self, table: DeclaredTable, name: str) -> list[Any]:
        """Return possible values of a column: listed ones, or those of other units, the most frequent first."""
        domain = table.columns[name].domain
        if isinstance(domain, Keys):
            return list(domain.values)
        if isinstance(domain, Between):
            return []
        source = (domain.table, domain.column) if isinstance(domain, References) else (table.name, name)
        values = [value for value in self.others[source[0]].column(source[1]).to_pylist() if value is not None]
        return [value for value, _ in Counter(values).most_common()]


def _unit_to_plant(policy: Policy, tables: Tables) -> Any:
    """Return the identifier of the unit to plant; None if every row is a unit."""
    for table in policy.tables.values():
        if isinstance(table.unit, ColumnUnit | WindowUnit):
            return tables[table.name].column(table.unit.name)[0].as_py()
    return None


def _rows_of_unit(table: DeclaredTable, rows: pa.Table, unit: Any, removed: Tables) -> pa.Array:
    """Return a mask of the rows that belong to a unit."""
    match table.unit:
        case ColumnUnit(name) | WindowUnit(name, _, _):
            return pa.array([value == unit for value in rows.column(name).to_pylist()], pa.bool_())
        case ParentTableUnit(parent, on, key):
            keys = set(removed[parent].column(key).to_pylist())
            return pa.array([value in keys for value in rows.column(on).to_pylist()], pa.bool_())
    return pa.array([index == 0 for index in range(rows.num_rows)], pa.bool_())
