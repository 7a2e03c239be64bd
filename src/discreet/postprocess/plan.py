"""Plan and run the query over released tables, with the margins of its result.

Nothing here sees private data. The syntax tree is checked against the allow-list, translated to DuckDB and bound to
empty tables before anything is charged; it runs on the noisy tables after the release.
"""

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from types import MappingProxyType

import numpy as np
import pyarrow as pa

from discreet.kernel.errors import Failed, Refused
from discreet.postprocess.derived_margins import (
    QueryOverDraws,
    Redraw,
    propagate_margins,
    redrawn_margins,
    simulate_margins,
)
from discreet.postprocess.from_tables import PlannedRelation, TablesByKey, released_table
from discreet.postprocess.planner import NotRepeatable, QueryContext, check_table_count, plan_query
from discreet.postprocess.sandbox import ERRORS, ResultTooLarge, compute, sandbox_table
from discreet.postprocess.sql_expression import (
    NUMERIC_TYPES,
    ColumnOrigin,
    MixedOrigin,
    Origin,
    ReleasedColumn,
    RowWiseOrigin,
    SqlExpr,
    SqlType,
    columns_read,
    columns_selecting,
    depends_on_rows,
)
from discreet.query.syntax.names import distinct_names
from discreet.query.syntax.resolved_query import ResolvedQuery
from discreet.query.syntax.syntax_tree import refuse

RowMargins = dict[str, list[float | None]]
NO_SAMPLING: Mapping[ReleasedColumn, np.ndarray] = MappingProxyType({})
_FAILED = "post-processing exceeded its limits on time, memory or rows. The charge is not refunded."
_NOT_COMPUTABLE = "line 1: the post-processing of this query cannot be planned. Simplify it."
_MAX_SQL_LENGTH = 1_000_000  # characters of SQL
_ARROW_TYPES = {
    SqlType.BOOLEAN: pa.bool_(),
    SqlType.INTEGER: pa.int64(),
    SqlType.WHOLE: pa.int64(),
    SqlType.REAL: pa.float64(),
    SqlType.TEXT: pa.string(),
    SqlType.UNKNOWN: pa.string(),
    SqlType.DATE: pa.date32(),
    SqlType.TIMESTAMP: pa.timestamp("us"),
}


@dataclass(frozen=True)
class PostprocessPlan:
    """A compiled query over released tables.

    `names`, `schema` and `origins` describe its columns; hidden columns after them hold the row numbers of the tables
    in `slots`. `selected_by` are the released columns that decide which rows there are, by conditions or by LIMIT after
    sorting. `draws` computes the columns that combine rows or tables for several draws of the noise; None if there are
    none, or if that is not possible. `keeps_rows`: the rows are those of one table, in their order. In the SQL,
    `tables` are named t0, t1 … and their columns c0, c1 ….
    """

    sql: str
    names: tuple[str, ...]
    origins: tuple[Origin, ...]
    schema: pa.Schema
    slots: tuple[str, ...]
    selected_by: frozenset[ReleasedColumn]
    draws: QueryOverDraws | None
    tables: tuple[tuple[str, tuple[str, ...]], ...]
    keeps_rows: bool


@dataclass(frozen=True, eq=False)
class PostprocessResult:
    """The result of a compiled query: its table, and the margins of its noisy columns from noise and from sampling.

    `source_rows` has, for each column that is a released column unchanged, the row that each value comes from; -1 where
    an outer join has none.
    """

    table: pa.Table
    noise_margins: RowMargins
    sampling_margins: RowMargins
    source_rows: dict[str, np.ndarray]


def compile_query(
    query: ResolvedQuery, tables: Mapping[str, pa.Schema], names: Mapping[Hashable, str] | None = None
) -> PostprocessPlan:
    """Compile a query over released tables; Refused if it uses anything that is not on the allow-list.

    `names` has the tables' names by the keys of the query's sources, if these differ.

    >>> from sqlglot import parse_one
    >>> from discreet.query.syntax.resolve import resolve_query
    >>> from discreet.query.syntax.resolved_query import ResolvedTable
    >>> table, sql = ResolvedTable("r0", ("city", "n")), "SELECT city, 100 * n / 7 FROM r0 ORDER BY n DESC"
    >>> query = resolve_query(parse_one(sql, read="postgres"), lambda _: table)
    >>> plan = compile_query(query, {"r0": pa.schema([("city", pa.string()), ("n", pa.int64())])})
    >>> plan.names
    ('city', '?column?')
    >>> run(plan, {"r0": pa.table({"city": ["a", "b"], "n": [1, 2]})}).to_pylist()
    [{'city': 'b', '?column?': 28}, {'city': 'a', '?column?': 14}]
    """
    relations = {name: released_table(index, name, schema) for index, (name, schema) in enumerate(tables.items())}
    by_key = {key: relations[name] for key, name in (names or dict(zip(tables, tables, strict=True))).items()}
    check_table_count(query)
    try:
        planned = plan_query(query, QueryContext(by_key, outermost=True))
    except Refused:
        raise
    except Exception:  # noqa: BLE001 - a tree that the rules fail on is not supported
        raise Refused(_NOT_COMPUTABLE) from None
    if len(planned.sql) > _MAX_SQL_LENGTH:
        raise Refused(_NOT_COMPUTABLE)
    for field in planned.fields:
        if field.kind is SqlType.INTERVAL:
            hint = "Use EXTRACT(EPOCH FROM …) for seconds"
            raise refuse(query.node, "SELECT", "intervals cannot be returned", hint)
    columns = tuple((name, tuple(schema.names)) for name, schema in tables.items())
    try:
        bound = _bound_schema(planned.sql, tuple(tables.values()))
    except ERRORS:
        raise Refused(_NOT_COMPUTABLE) from None
    unique_names = tuple(distinct_names([(name, True) for name in query.names]))
    types = [_column_type(field, bound[place].type) for place, field in enumerate(planned.fields)]
    schema = pa.schema(list(zip(unique_names, types, strict=True)))
    return PostprocessPlan(
        planned.sql,
        unique_names,
        tuple(field.origin for field in planned.fields),
        schema,
        planned.slots,
        planned.selected_by,
        _query_over_draws(query, by_key, planned),
        columns,
        planned.keeps_rows,
    )


@lru_cache(maxsize=256)
def _bound_schema(sql: str, tables: tuple[pa.Schema, ...]) -> pa.Schema:
    """Return the columns of a SELECT as DuckDB binds it to tables; those of a plan are often bound alike."""
    columns = [(str(index), tuple(schema.names)) for index, schema in enumerate(tables)]
    empty = {str(index): schema.empty_table() for index, schema in enumerate(tables)}
    return compute(sql, _sandbox_tables(columns, empty)).schema


def _query_over_draws(query: ResolvedQuery, tables: TablesByKey, planned: PlannedRelation) -> QueryOverDraws | None:
    columns = [
        index
        for index, field in enumerate(planned.fields)
        if isinstance(field.origin, MixedOrigin) and columns_read([field.origin]) and field.kind in NUMERIC_TYPES
    ]
    if not columns:
        return None
    try:
        sql = plan_query(query, QueryContext(tables, outermost=True, draws=True)).sql
    except NotRepeatable:
        return None
    hidden = [f"h{place}" for place in range(len(planned.slots))] + [f"i{place}" for place in range(planned.identity)]
    return QueryOverDraws(sql, tuple(columns), tuple(hidden))


def run(plan: PostprocessPlan, tables: Mapping[str, pa.Table]) -> pa.Table:
    """Run a compiled query on the released tables."""
    return _visible_columns(plan, _run_sandboxed(plan, tables))


def run_with_margins(
    plan: PostprocessPlan,
    tables: Mapping[str, pa.Table],
    column_margins: Mapping[ReleasedColumn, np.ndarray],
    redraw: Redraw,
    sampling: Mapping[ReleasedColumn, np.ndarray] = NO_SAMPLING,
) -> PostprocessResult:
    """Run a compiled query; return its table with the margins of its noisy columns from noise and from sampling.

    `column_margins` has the margins of the noisy released columns. `redraw(n)` returns the tables with fresh noise,
    n times each, with columns `draw` (from 0) and `row` (in the released table). Columns without noise have no margins;
    columns with an unknown margin have None in every row. `sampling` has the margins of the released columns from
    sampling, NaN where they are unknown.
    """
    result, noisy = _run_sandboxed(plan, tables), set(column_margins)
    from_noise = _margins_by_row(plan, result, column_margins, _derived_margins(plan, tables, noisy, redraw))
    from_noise |= _redrawn_margins(plan, tables, result, noisy, redraw)
    from_sampling: RowMargins = {}
    if sampling:
        propagated = _propagated_margins(plan, tables, noisy, sampling)
        from_sampling = _margins_by_row(plan, result, sampling, propagated)
    return PostprocessResult(_visible_columns(plan, result), from_noise, from_sampling, _source_rows(plan, result))


def _source_rows(plan: PostprocessPlan, result: pa.Table) -> dict[str, np.ndarray]:
    return {
        name: result.column(f"h{origin.slot}").fill_null(-1).to_numpy().astype(np.int64)
        for name, origin in zip(plan.names, plan.origins, strict=True)
        if isinstance(origin, ColumnOrigin)
    }


def _margins_by_row(
    plan: PostprocessPlan,
    result: pa.Table,
    column_margins: Mapping[ReleasedColumn, np.ndarray],
    derived: Mapping[int, np.ndarray],
) -> RowMargins:
    visible, margins_by_column = _visible_columns(plan, result), dict(derived)
    answer: RowMargins = {}
    for index, origin in enumerate(plan.origins):
        if not (columns_read([origin]) & set(column_margins) or depends_on_rows(origin)):
            continue
        if isinstance(origin, ColumnOrigin):
            margins_by_column[index] = column_margins[origin.table, origin.column]
        row_margins: list[float | None] = [None] * len(visible)
        if isinstance(origin, ColumnOrigin | RowWiseOrigin) and index in margins_by_column:
            row_margins = _margins_of_rows(
                margins_by_column[index], result.column(f"h{origin.slot}"), visible.column(index)
            )
        answer[plan.names[index]] = row_margins
    return answer


def _sandbox_tables(
    columns: Sequence[tuple[str, tuple[str, ...]]], tables: Mapping[str, pa.Table]
) -> dict[str, pa.Table]:
    return {
        f"t{index}": sandbox_table(tables[name], column_names, {"h0": pa.array(np.arange(tables[name].num_rows))})
        for index, (name, column_names) in enumerate(columns)
    }


def _column_type(field: SqlExpr, computed_type: pa.DataType) -> pa.DataType:
    """Return the Arrow type of an output column; numeric is a double unless the released column is a decimal."""
    return computed_type if field.kind is SqlType.NUMERIC else _ARROW_TYPES[field.kind]


def _run_sandboxed(plan: PostprocessPlan, tables: Mapping[str, pa.Table]) -> pa.Table:
    try:
        return compute(plan.sql, _sandbox_tables(plan.tables, tables))
    except (*ERRORS, ResultTooLarge) as error:
        raise Failed(_FAILED) from error


def _visible_columns(plan: PostprocessPlan, result: pa.Table) -> pa.Table:
    return result.select(range(len(plan.names))).rename_columns(list(plan.names)).cast(plan.schema)


def _derived_margins(
    plan: PostprocessPlan, tables: Mapping[str, pa.Table], noisy: set[ReleasedColumn], redraw: Redraw
) -> dict[int, np.ndarray]:
    """Return the margins of derived columns, for every row of the table they are computed from."""
    derived: dict[str, dict[int, str]] = {}  # SQL by table and column
    for index, origin in _row_wise_columns(plan, noisy):
        derived.setdefault(origin.table, {})[index] = origin.sql
    if not derived:
        return {}
    texts = {name: list(columns.values()) for name, columns in derived.items()}
    try:
        simulated = simulate_margins(texts, dict(plan.tables), tables, redraw)
    except (*ERRORS, ResultTooLarge):  # the answer is still valid without them
        return {}
    return {
        place: widths
        for name, columns in derived.items()
        for place, widths in zip(columns, simulated[name], strict=True)
    }


def _redrawn_margins(
    plan: PostprocessPlan, tables: Mapping[str, pa.Table], result: pa.Table, noisy: set[ReleasedColumn], redraw: Redraw
) -> RowMargins:
    """Return the margins of columns that combine rows or tables, by computing the whole query for every draw."""
    if plan.draws is None or not columns_read(plan.origins[index] for index in plan.draws.columns) & noisy:
        return {}
    try:
        margins_by_column = redrawn_margins(plan.draws, dict(plan.tables), tables, result, redraw)
    except (*ERRORS, ResultTooLarge):  # the answer is still valid without them
        return {}
    return {
        plan.names[index]: [float(width) if math.isfinite(width) else None for width in widths]
        for index, widths in zip(plan.draws.columns, margins_by_column, strict=True)
        if columns_read([plan.origins[index]]) & noisy and not columns_selecting([plan.origins[index]]) & noisy
    }


def _propagated_margins(
    plan: PostprocessPlan,
    tables: Mapping[str, pa.Table],
    noisy: set[ReleasedColumn],
    sampling: Mapping[ReleasedColumn, np.ndarray],
) -> dict[int, np.ndarray]:
    """Return the margins of derived columns from sampling, for every row of the table they are computed from."""
    columns, propagated = dict(plan.tables), {}
    for index, origin in _row_wise_columns(plan, noisy):
        read = {name: sampling[table, name] for table, name in origin.reads & noisy}
        if any(np.isnan(widths).all() for widths in read.values()):
            continue
        with suppress(*ERRORS, ResultTooLarge):  # the answer is still valid without them
            propagated[index] = propagate_margins(origin.sql, columns[origin.table], tables[origin.table], read)
    return propagated


def _row_wise_columns(plan: PostprocessPlan, noisy: set[ReleasedColumn]) -> Iterator[tuple[int, RowWiseOrigin]]:
    """Yield the numbers, and dates in days, that are computed from noisy columns of one row."""
    for index, (origin, kind) in enumerate(zip(plan.origins, plan.schema.types, strict=True)):
        if isinstance(origin, RowWiseOrigin) and origin.reads & noisy:
            if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
                yield index, origin
            elif pa.types.is_temporal(kind):
                yield index, replace(origin, sql=f"EPOCH({origin.sql}) / 86400")


def _margins_of_rows(
    released_margins: np.ndarray, rows: pa.ChunkedArray, values: pa.ChunkedArray
) -> list[float | None]:
    """Return the margins of the output rows."""
    by_row = [None if row is None else float(released_margins[row]) for row in rows.to_pylist()]
    missing = values.is_null().to_pylist()
    return [
        None if margin is None or gone or not math.isfinite(margin) else margin
        for margin, gone in zip(by_row, missing, strict=True)
    ]
