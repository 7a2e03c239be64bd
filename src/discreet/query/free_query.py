"""Queries that read no private table: constants, public tables, and the policy itself as information_schema.

They are post-processing of public information, so they need no release and cost nothing. The post-processing sandbox
computes them, by its allow-list.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from discreet.engines.interface import Engine
from discreet.estimate.planned_release import ARROW_TYPES
from discreet.kernel.expr import Type
from discreet.policy import Between, ColumnUnit, DeclaredTable, Keys, References, WindowUnit
from discreet.policy.declarations import ParentTableUnit
from discreet.policy.toml import list_text, value_text
from discreet.query.relations.bound_sources import BindContext
from discreet.query.syntax.names import name_hint, same_name
from discreet.query.syntax.resolved_query import ResolvedQuery, ResolvedTable, all_sources
from discreet.query.syntax.syntax_tree import quote_name, refuse
from discreet.query.table_sources import column_types

_SCHEMA = "information_schema"
MAX_PUBLIC_ROWS = 1_000_000
_MAX_PUBLIC_VALUES = 20_000_000  # rows times columns
_MAX_LISTED = 1_000  # values of a declared list
_TYPE_NAMES = {
    Type.INTEGER: "bigint",
    Type.REAL: "double precision",
    Type.BOOLEAN: "boolean",
    Type.TEXT: "text",
    Type.DATE: "date",
    Type.TIMESTAMP: "timestamp without time zone",
}
_TABLES_SCHEMA = pa.schema(
    [
        (name, pa.string())
        for name in ("table_catalog", "table_schema", "table_name", "table_type", "is_private", "privacy_unit")
    ]
)
_COLUMNS_SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in ("table_catalog", "table_schema", "table_name", "column_name")),
        ("ordinal_position", pa.int64()),
        *(
            (name, pa.string())
            for name in ("data_type", "is_nullable", "minimum", "maximum", "declared_values", "is_unit")
        ),
    ]
)
_CATALOG_SCHEMAS = {"tables": _TABLES_SCHEMA, "columns": _COLUMNS_SCHEMA}


@dataclass(frozen=True)
class FreeTables:
    """The tables that a free query reads: the schemas of all of them, and the contents of those that describe the
    policy.
    """

    schemas: Mapping[str, pa.Schema]
    catalog: Mapping[str, pa.Table]


def find_table(node: exp.Table, context: BindContext) -> ResolvedTable:
    """Return the table of this name that the analyst may query, or a table of information_schema."""
    if node.db and not node.catalog and same_name(node.args["db"], _SCHEMA):
        name = _catalog_name(node)
        return ResolvedTable(f"{_SCHEMA}.{name}", tuple(_CATALOG_SCHEMAS[name].names))
    if node.db or node.catalog:
        raise refuse(node, "FROM", "schema names are not supported", "Write the table's name alone.")
    table = policy_table(node, context)
    declared_texts = tuple(
        column.domain.values
        for column in table.columns.values()
        if column.type == "text" and isinstance(column.domain, Keys)
    )
    columns = tuple(column_types(context.public_tables, table))
    return ResolvedTable(table.name, columns, declared_texts=declared_texts)  # type: ignore[arg-type]


def policy_table(node: exp.Table, context: BindContext) -> DeclaredTable:
    """Return the table of this name that the analyst may query."""
    tables = {table.name: table for table in context.visible_tables}
    named = next((table for name, table in tables.items() if same_name(node.this, name)), None)
    if named is None:
        cause = f"table {quote_name(node.this.name)} does not exist"
        raise refuse(node, "FROM", cause, name_hint(node.this.name, list(tables)))
    return named


def free_tables(query: ResolvedQuery, context: BindContext) -> FreeTables | None:
    """Return the tables of a query that reads no private one; None if it does."""
    names = [str(item.source.key) for item in all_sources(query) if isinstance(item.source, ResolvedTable)]
    tables = {name: context.policy.tables.get(name) for name in names}
    if any(table is not None and not table.public for table in tables.values()):
        return None
    catalog = {name: _catalog_table(name, context) for name, table in tables.items() if table is None}
    public = {name: _schema(table, context) for name, table in tables.items() if table is not None}
    return FreeTables(public | {name: table.schema for name, table in catalog.items()}, catalog)


def _schema(table: DeclaredTable, context: BindContext) -> pa.Schema:
    types = column_types(context.public_tables, table)
    return pa.schema([(name, ARROW_TYPES[kind]) for name, kind in types.items()])


def _catalog_name(node: exp.Table) -> str:
    name = next((name for name in _CATALOG_SCHEMAS if same_name(node.this, name)), None)
    if name is None:
        cause = f"table {quote_name(f'{_SCHEMA}.{node.name}')} does not exist"
        raise refuse(node, "FROM", cause, name_hint(node.name, list(_CATALOG_SCHEMAS)))
    return name


def _catalog_table(key: str, context: BindContext) -> pa.Table:
    """Return a table of information_schema: what the policy declares about the tables that the analyst may query."""
    name = key.removeprefix(f"{_SCHEMA}.")
    rows = [
        {"table_catalog": context.policy.data.name, **row}
        for table in context.visible_tables
        for row in ([_table_row(table)] if name == "tables" else _column_rows(table, context))
    ]
    return pa.Table.from_pylist(rows, _CATALOG_SCHEMAS[name])


def _table_row(table: DeclaredTable) -> dict[str, Any]:
    return {
        "table_schema": "public",
        "table_name": table.name,
        "table_type": "BASE TABLE",
        "is_private": "NO" if table.public else "YES",
        "privacy_unit": getattr(table.unit, "name", None),
    }


def _column_rows(table: DeclaredTable, context: BindContext) -> Iterator[dict[str, Any]]:
    types = column_types(context.public_tables, table)
    for position, (name, kind) in enumerate(types.items(), 1):
        declared = table.columns.get(name)
        row: dict[str, Any] = {
            "table_schema": "public",
            "table_name": table.name,
            "column_name": name,
            "ordinal_position": position,
            "data_type": "numeric" if declared and declared.type == "decimal" else _TYPE_NAMES[kind],
            "is_nullable": "NO" if declared and not declared.null else "YES",
            "is_unit": "YES" if name in _unit_columns(table) else "NO",
        }
        match declared.domain if declared else None:
            case Between(low, high):
                row |= {"minimum": value_text(low), "maximum": value_text(high)}
            case Keys(values):
                more = ["…"] if len(values) > _MAX_LISTED else []
                row["declared_values"] = list_text([*values[:_MAX_LISTED], *more])
            case References(other, column):
                row["declared_values"] = f"those of {other}.{column}"
        yield row


def _unit_columns(table: DeclaredTable) -> tuple[str, ...]:
    """Return the columns that identify the privacy unit."""
    match table.unit:
        case ColumnUnit(name):
            return (name,)
        case WindowUnit(name, time, _):
            return name, time
        case ParentTableUnit(on=name):
            return (name,)
    return ()


def read_public_rows(engine: Engine, table: str, types: Mapping[str, Type]) -> pa.Table:
    """Return these columns of a public table, with NULL for infinities and NaN; Refused if it is too large."""
    limit = min(MAX_PUBLIC_ROWS, _MAX_PUBLIC_VALUES // len(types))
    rows = engine.rows(table, tuple(types), limit + 1)
    if rows.num_rows > limit:
        cause = f"table {quote_name(table)} has more than {limit:,} rows, too many for a query on public tables alone"
        raise refuse(None, "FROM", cause, "Join it with a private table, or read it at its source.")
    rows = rows.cast(pa.schema([(name, ARROW_TYPES[kind]) for name, kind in types.items()]))
    for index, (name, kind) in enumerate(types.items()):
        if kind is Type.REAL:
            column = rows.column(index)
            rows = rows.set_column(index, name, pc.if_else(pc.is_finite(column), column, None))
    return rows
