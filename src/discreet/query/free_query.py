"""Queries that read no private table: constants, public tables, and the policy itself as information_schema.

They are post-processing of public information, so they need no release and cost nothing. The post-processing sandbox
computes them, by its allow-list.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from discreet.engines.interface import Engine
from discreet.estimate.planned_release import ARROW_TYPES
from discreet.kernel.expr import Type
from discreet.policy import Between, DeclaredTable, Keys, References
from discreet.policy.toml import list_text, value_text
from discreet.query.bind_context import BindContext
from discreet.query.relations.from_clause import policy_table
from discreet.query.relations.scope import name_hint, same_name
from discreet.query.syntax.parse import ParsedQuery
from discreet.query.syntax.source_position import quote_name, refuse
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
        *((name, pa.string()) for name in ("data_type", "is_nullable", "minimum", "maximum", "declared_values")),
    ]
)


@dataclass(frozen=True)
class FreeQuery:
    """A query over tables with these schemas: the public ones, by their names, and those of `catalog`."""

    query: exp.Expr
    schemas: Mapping[str, pa.Schema]
    catalog: Mapping[str, pa.Table]


def free_query(parsed: ParsedQuery, context: BindContext) -> FreeQuery | None:
    """Return the query if it reads no private table; None if it does, or if a table does not exist."""
    nodes = list(_tables_read(parsed.query, ()))
    named = [node for node in nodes if not _is_catalog(node)]
    public = [_public_table(node, context) for node in named]
    if None in public:
        return None
    schemas = {table.name: _schema(table, context) for table in public if table is not None}
    catalog = {}
    for node in nodes:
        if _is_catalog(node):
            name = f"{_SCHEMA}.{node.name.lower()}"
            catalog[name] = _catalog_table(node, context)
            _rename_table(node, name)
    query = parsed.query
    if parsed.described is not None:
        name = policy_table(parsed.described, context).name
        query.set("where", exp.Where(this=exp.EQ(this=exp.column("table_name"), expression=exp.Literal.string(name))))
    return FreeQuery(query, schemas | {name: table.schema for name, table in catalog.items()}, catalog)


def _tables_read(node: exp.Expr, ctes: Sequence[str]) -> Iterator[exp.Table]:
    """Yield the tables that a query names, without the WITH queries that are visible there."""
    clause = node.args.get("with_")
    for cte in clause.expressions if isinstance(clause, exp.With) else ():
        yield from _tables_read(cte.this, ctes)
        ctes = (*ctes, cte.alias)
    if isinstance(node, exp.Table) and not (not node.db and any(same_name(node.this, name) for name in ctes)):
        yield node
    for child in node.iter_expressions():
        if child is not clause:
            yield from _tables_read(child, ctes)


def _is_catalog(node: exp.Table) -> bool:
    return bool(node.db) and not node.catalog and same_name(node.args["db"], _SCHEMA)


def _public_table(node: exp.Table, context: BindContext) -> DeclaredTable | None:
    if node.db or not isinstance(node.this, exp.Identifier):
        return None
    return next((table for table in context.visible_tables if table.public and same_name(node.this, table.name)), None)


def _schema(table: DeclaredTable, context: BindContext) -> pa.Schema:
    types = column_types(context.public_tables, table)
    return pa.schema([(name, ARROW_TYPES[kind]) for name, kind in types.items()])


def _rename_table(node: exp.Table, name: str) -> None:
    """Give a table of information_schema a single name, and keep its own as the alias."""
    if node.args.get("alias") is None:
        node.set("alias", exp.TableAlias(this=node.this.copy()))
    node.set("this", exp.to_identifier(name, quoted=True))
    node.set("db", None)


def _catalog_table(node: exp.Table, context: BindContext) -> pa.Table:
    """Return a table of information_schema: what the policy declares about the tables that the analyst may query."""
    name = context.policy.data.name
    if same_name(node.this, "tables"):
        rows = [{"table_catalog": name, **_table_row(table)} for table in context.visible_tables]
        return pa.Table.from_pylist(rows, _TABLES_SCHEMA)
    if same_name(node.this, "columns"):
        rows = [
            {"table_catalog": name, **row} for table in context.visible_tables for row in _column_rows(table, context)
        ]
        return pa.Table.from_pylist(rows, _COLUMNS_SCHEMA)
    cause = f"table {quote_name(f'{_SCHEMA}.{node.name}')} does not exist"
    raise refuse(node, "FROM", cause, name_hint(node.name, ["tables", "columns"]))


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
