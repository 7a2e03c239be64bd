# ruff: noqa: S608 - this module generates SQL from its own templates
"""FROM over released tables: tables, subqueries, VALUES, and their joins."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from sqlglot import exp

from discreet.postprocess.environment import Env
from discreet.postprocess.sql_expression import (
    ColumnOrigin,
    MixedOrigin,
    Origin,
    ReleasedColumn,
    SqlExpr,
    SqlType,
    shift_slots,
)
from discreet.postprocess.type_conversion import coerce_together
from discreet.query.syntax.resolved_query import (
    FromItem,
    Reference,
    ResolvedQuery,
    ResolvedSelect,
    TableSource,
    ValuesSource,
    WithQuery,
)

_RELEASED_TEXT_WIDTH = 100  # assumed characters of a released text, to bound the length of concatenations


@dataclass(frozen=True)
class PlannedColumn:
    """A column of a planned query."""

    name: str
    kind: SqlType
    origin: Origin
    width: int = 0


@dataclass(frozen=True)
class PlannedRelation:
    """A planned query or table.

    Its columns are c0, c1 …; hidden columns h0, h1 … hold the row numbers of the tables in `slots`, and hidden column w
    numbers the rows if `is_ordered`. `is_single_row`: there is at most one row. `selected_by` are the released columns
    that decide which rows there are.
    """

    sql: str
    fields: tuple[PlannedColumn, ...]
    slots: tuple[str, ...] = ()
    is_ordered: bool = False
    is_single_row: bool = False
    selected_by: frozenset[ReleasedColumn] = frozenset()


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
        place = self.places[index]
        field = self.relation.fields[place]
        return SqlExpr(f"{self.ref}.c{place}", field.kind, shift_slots(field.origin, self.slot_offset), field.width)


@dataclass(frozen=True)
class PlannedFrom:
    """The sources of a FROM, and its SQL."""

    sources: tuple[PlannedSource, ...] = ()
    sql: str = ""

    @property
    def slots(self) -> tuple[str, ...]:
        """The tables that have row numbers."""
        return tuple(table for source in self.sources for table in source.relation.slots)

    @property
    def row_numbers(self) -> list[str]:
        """The SQL of the row numbers."""
        return [f"{source.ref}.h{index}" for source in self.sources for index in range(len(source.relation.slots))]

    def column(self, reference: Reference) -> SqlExpr | None:
        """Return a column; None if it belongs to another query."""
        source = next((source for source in self.sources if source.ref == reference.source), None)
        return None if source is None else source.column_expr(reference.index)


def released_table(index: int, name: str, schema: pa.Schema) -> PlannedRelation:
    """Return a released table, named t0, t1 … in the SQL, with row numbers in hidden column h0."""
    fields = [
        PlannedColumn(field.name, _sql_type(field), ColumnOrigin(0, name, field.name, f"c{at}"), _RELEASED_TEXT_WIDTH)
        for at, field in enumerate(schema)
    ]
    return PlannedRelation(f"t{index}", tuple(fields), (name,))


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
) -> PlannedFrom:
    """Plan the sources and joins of a FROM."""
    begin = PlannedFrom()
    for item in select.sources:
        relation, text = _plan_source(item, tables, plan_query, make_env)
        source = PlannedSource(item.ref, relation, len(begin.slots), _places(item, relation))
        wider = PlannedFrom((*begin.sources, source), "")
        begin = replace(wider, sql=f"{begin.sql}{_join_sql(item, wider, f'{text} AS {item.ref}', make_env)}")
    return begin


def _plan_source(
    item: FromItem,
    tables: TablesByKey,
    plan_query: Callable[[ResolvedQuery], PlannedRelation],
    make_env: Callable[[PlannedFrom], Env],
) -> tuple[PlannedRelation, str]:
    """Return the relation of a source, and its SQL."""
    match item.source:
        case TableSource(key):
            relation = tables[key]
            return replace(relation, is_single_row=item.source.is_single_row), relation.sql
        case WithQuery(ref):
            return tables[ref], ref
        case ValuesSource(rows, names):
            relation = _plan_values(rows, names, item.node, make_env(PlannedFrom()))
        case _:
            relation = plan_query(item.source)
    return relation, f"({relation.sql})"


def _places(item: FromItem, relation: PlannedRelation) -> tuple[int, ...]:
    if not isinstance(item.source, TableSource):
        return tuple(range(len(relation.fields)))
    by_name = {field.name: place for place, field in enumerate(relation.fields)}
    return tuple(by_name.get(name, -1) for name in item.source.columns)


def _join_sql(item: FromItem, wider: PlannedFrom, text: str, make_env: Callable[[PlannedFrom], Env]) -> str:
    if item.join is None:
        return f" FROM {text}"
    if item.join.on is None:
        return f" CROSS JOIN {text}"
    condition = replace(make_env(wider), clause="JOIN").condition(item.join.on).sql
    return f" {item.join.side or 'INNER'} JOIN {text} ON {condition}"


def _plan_values(rows: Sequence[Sequence[exp.Expr]], names: Sequence[str], node: exp.Expr, env: Env) -> PlannedRelation:
    env = replace(env, clause="VALUES")
    columns = [
        coerce_together([env.translate(each) for each in column], node, "VALUES") for column in zip(*rows, strict=True)
    ]
    texts = [f"({', '.join(value.sql for value in row)})" for row in zip(*(each for each, _ in columns), strict=True)]
    fields = [
        PlannedColumn(name, kind, MixedOrigin(frozenset()), max(value.width for value in values))
        for name, (values, kind) in zip(names, columns, strict=True)
    ]
    places = ", ".join(f"c{index}" for index in range(len(columns)))
    return PlannedRelation(f"SELECT * FROM (VALUES {', '.join(texts)}) AS v({places})", tuple(fields))
