# ruff: noqa: S608 - this module generates SQL from its own templates
"""FROM over released tables: tables, subqueries, VALUES, and their joins."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa
from sqlglot import exp

from discreet.postprocess.environment import Env
from discreet.postprocess.sql_expression import (
    ColumnOrigin,
    MixedOrigin,
    ReleasedColumn,
    SqlExpr,
    SqlType,
    columns_read,
    shift_slots,
)
from discreet.postprocess.type_conversion import coerce_together
from discreet.query.syntax.resolved_query import (
    FromItem,
    Reference,
    ResolvedQuery,
    ResolvedSelect,
    ResolvedTable,
    ValuesSource,
    WithQuery,
)

DRAWS = "draws"  # the table with the numbers of all draws
_RELEASED_TEXT_WIDTH = 100  # assumed characters of a released text, to bound the length of concatenations


@dataclass(frozen=True)
class PlannedRelation:
    """A planned query or table.

    Its columns are c0, c1 …; hidden columns h0, h1 … hold the row numbers of the tables in `slots`, and hidden column w
    numbers the rows if `is_ordered`. `is_single_row`: there is at most one row. `selected_by` are the released columns
    that decide which rows there are. Hidden columns i0, i1 …, as many as `identity`, and the row numbers identify a row
    in every draw of the noise. Over several draws, hidden column d has the number of the draw. `keeps_rows`: its rows
    are those of one table, in their order.
    """

    sql: str
    fields: tuple[SqlExpr, ...]
    slots: tuple[str, ...] = ()
    is_ordered: bool = False
    is_single_row: bool = False
    selected_by: frozenset[ReleasedColumn] = frozenset()
    identity: int = 0
    keeps_rows: bool = False


TablesByKey = Mapping[Hashable, PlannedRelation]  # tables by the keys of their sources, WITH queries by their names


@dataclass(frozen=True)
class PlannedSource:
    """A source of FROM: its name in the SQL, its relation, and the hidden columns before its own."""

    ref: str
    relation: PlannedRelation
    slot_offset: int
    places: tuple[int, ...]  # of its columns in the relation

    def column_expr(self, index: int) -> SqlExpr:
        """Return a column of the source as an expression."""
        field = self.relation.fields[self.places[index]]
        return replace(field, sql=f"{self.ref}.{field.sql}", origin=shift_slots(field.origin, self.slot_offset))


@dataclass(frozen=True)
class PlannedFrom:
    """The sources of FROM and their joins; `draw` is the SQL of the number of the draw, if there are several."""

    sources: tuple[PlannedSource, ...] = ()
    joins: str = ""
    draw: str | None = None

    @property
    def slots(self) -> tuple[str, ...]:
        """The tables that have row numbers."""
        return tuple(table for source in self.sources for table in source.relation.slots)

    def column(self, reference: Reference) -> SqlExpr | None:
        """Return a column; None if it belongs to another query."""
        source = next((source for source in self.sources if source.ref == reference.source), None)
        return None if source is None else source.column_expr(reference.index)


@dataclass(frozen=True)
class Rows:
    """The input of a SELECT list, rows or groups of rows: FROM and WHERE as SQL, and what a PlannedRelation says of it.

    `row_numbers`, `identity` and `order` are the SQL of the hidden columns.
    """

    sql: str
    draw: str | None
    selected_by: frozenset[ReleasedColumn]
    is_single_row: bool
    identity: Sequence[str]
    row_numbers: Sequence[str] = ()
    order: Sequence[str] = ()
    slots: tuple[str, ...] = ()
    keeps_rows: bool = False


def rows_where(begin: PlannedFrom, conditions: Sequence[SqlExpr]) -> Rows:
    """Return the rows of FROM that satisfy all conditions."""
    relations = [(source.ref, source.relation) for source in begin.sources]
    only = relations[0][1] if len(relations) == 1 else None
    return Rows(
        begin.joins + where_sql(conditions),
        begin.draw,
        frozenset().union(*(relation.selected_by for _, relation in relations))
        | columns_read(condition.origin for condition in conditions),
        is_single_row=not relations or (only is not None and only.is_single_row),
        identity=[f"{ref}.i{index}" for ref, relation in relations for index in range(relation.identity)],
        row_numbers=[f"{ref}.h{index}" for ref, relation in relations for index in range(len(relation.slots))],
        order=[f"{relations[0][0]}.w"] if only is not None and only.is_ordered else [],
        slots=begin.slots,
        keeps_rows=only is not None and only.keeps_rows and not conditions,
    )


def where_sql(conditions: Sequence[SqlExpr]) -> str:
    """Return WHERE as SQL."""
    return f" WHERE {' AND '.join(condition.sql for condition in conditions)}" if conditions else ""


def released_table(index: int, name: str, schema: pa.Schema) -> PlannedRelation:
    """Return a released table, named t0, t1 … in the SQL, with row numbers in hidden column h0."""
    fields = [
        SqlExpr(f"c{at}", _sql_type(field), ColumnOrigin(0, name, field.name, f"c{at}"), _RELEASED_TEXT_WIDTH)
        for at, field in enumerate(schema)
    ]
    return PlannedRelation(f"t{index}", tuple(fields), (name,), keeps_rows=True)


def _sql_type(field: pa.Field) -> SqlType:
    kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    for check, sql_type in _SQL_TYPES:
        if check(kind):
            return sql_type
    raise TypeError(f"column {field.name!r} has type {field.type}, which is not supported on aggregated results")


_SQL_TYPES: tuple[tuple[Callable[[pa.DataType], bool], SqlType], ...] = (
    (pa.types.is_boolean, SqlType.BOOLEAN),
    (pa.types.is_integer, SqlType.INTEGER),
    (pa.types.is_floating, SqlType.REAL),
    (pa.types.is_decimal, SqlType.NUMERIC),
    (lambda kind: pa.types.is_string(kind) or pa.types.is_large_string(kind), SqlType.TEXT),
    (pa.types.is_date, SqlType.DATE),
    (lambda kind: pa.types.is_timestamp(kind) and kind.tz is None, SqlType.TIMESTAMP),
)


def plan_from(
    select: ResolvedSelect,
    tables: TablesByKey,
    plan_query: Callable[[ResolvedQuery], PlannedRelation],
    make_env: Callable[[PlannedFrom], Env],
    *,
    draws: bool,
) -> PlannedFrom:
    """Plan the sources and joins of a FROM; over several draws, rows of the same draw are joined."""
    begin = PlannedFrom()
    if draws and not select.sources:
        return PlannedFrom(joins=f" FROM {DRAWS}", draw=f"{DRAWS}.d")
    for item in select.sources:
        relation, text = _plan_source(item, tables, plan_query, make_env)
        if draws and isinstance(item.source, ValuesSource):
            text = f"(SELECT * FROM {DRAWS} CROSS JOIN {text} AS v)"
        source = PlannedSource(item.ref, relation, len(begin.slots), _places(item, relation))
        wider, own = PlannedFrom((*begin.sources, source)), f"{item.ref}.d"
        same_draw = f"{begin.draw} = {own}" if draws and begin.sources else ""
        join = _join_sql(item, f"{text} AS {item.ref}", same_draw, partial(make_env, wider))
        draw = f"coalesce({begin.draw}, {own})" if same_draw else own
        begin = replace(wider, joins=begin.joins + join, draw=draw if draws else None)
    return begin


def _plan_source(
    item: FromItem,
    tables: TablesByKey,
    plan_query: Callable[[ResolvedQuery], PlannedRelation],
    make_env: Callable[[PlannedFrom], Env],
) -> tuple[PlannedRelation, str]:
    """Return the relation of a source, and its SQL."""
    match item.source:
        case ResolvedTable(key):
            relation = tables[key]
            return replace(relation, is_single_row=item.source.is_single_row), relation.sql
        case WithQuery(ref):
            return tables[ref], ref
        case ValuesSource(rows):
            relation = _plan_values(rows, item.node, make_env(PlannedFrom()))
        case _:
            relation = plan_query(item.source)
    return relation, f"({relation.sql})"


def _places(item: FromItem, relation: PlannedRelation) -> tuple[int, ...]:
    if not isinstance(item.source, ResolvedTable):
        return tuple(range(len(relation.fields)))
    origins = (field.origin for field in relation.fields)
    by_name = {origin.column: place for place, origin in enumerate(origins) if isinstance(origin, ColumnOrigin)}
    return tuple(by_name.get(name, -1) for name in item.source.columns)


def _join_sql(item: FromItem, text: str, same_draw: str, make_env: Callable[[], Env]) -> str:
    if item.join is None:
        return f" FROM {text}"
    conditions = [same_draw] if same_draw else []
    if item.join.on is not None:
        conditions.append(replace(make_env(), clause="JOIN").condition(item.join.on).sql)
    if not conditions:
        return f" CROSS JOIN {text}"
    return f" {item.join.side or 'INNER'} JOIN {text} ON {' AND '.join(conditions)}"


def _plan_values(rows: Sequence[Sequence[exp.Expr]], node: exp.Expr, env: Env) -> PlannedRelation:
    env = replace(env, clause="VALUES")
    columns = [
        coerce_together([env.translate(each) for each in column], node, "VALUES") for column in zip(*rows, strict=True)
    ]
    texts = [f"({', '.join(value.sql for value in row)})" for row in zip(*(each for each, _ in columns), strict=True)]
    fields = [
        SqlExpr(f"c{place}", kind, MixedOrigin(frozenset()), max(value.width for value in values))
        for place, (values, kind) in enumerate(columns)
    ]
    places = ", ".join(f"c{index}" for index in range(len(columns)))
    numbered = "*, CAST(row_number() OVER () AS VARCHAR) AS i0"
    sql = f"SELECT {numbered} FROM (VALUES {', '.join(texts)}) AS v({places})"
    return PlannedRelation(sql, tuple(fields), identity=1)
