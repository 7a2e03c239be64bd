"""SQL above the release: what is computed from noisy tables, and the margins of the result.

Nothing here sees private data. The question's tree is checked against a list, written anew for DuckDB and bound to
empty tables before anything is paid for; it runs once the noisy tables are there.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from sqlglot import exp

from discreet.kernel.errors import Failed, Refused
from discreet.sql.after.names import apart
from discreet.sql.after.redrawing import DRAW, ROW, Redraw, spread
from discreet.sql.after.sandbox import ERRORS, TooMuch, compute, stored
from discreet.sql.after.scope import Field
from discreet.sql.after.select import Context, Planner
from discreet.sql.after.tables import stored_table
from discreet.sql.after.values import Carried, Constant, Kind, Mixed, Origin, Read, RowWise, counts, reads
from discreet.sql.places import refuse

__all__ = ["DRAW", "ROW", "After", "Carried", "Constant", "Mixed", "RowWise"]
__all__ += ["margins", "plan", "run", "run_with_margins"]

_FAILED = (
    "what follows the release could not be computed within the limits of time, memory and rows. The charge stands."
)
_LOST = "line 1: what follows the release cannot be computed. Write it in fewer or simpler steps."
_LONGEST = 1_000_000  # characters of SQL
_ARROW = {
    Kind.BOOLEAN: pa.bool_(),
    Kind.INTEGER: pa.int64(),
    Kind.WHOLE: pa.int64(),
    Kind.REAL: pa.float64(),
    Kind.TEXT: pa.string(),
    Kind.UNKNOWN: pa.string(),
    Kind.DATE: pa.date32(),
    Kind.TIMESTAMP: pa.timestamp("us"),
}


@dataclass(frozen=True)
class After:
    """A query over released tables, ready to run.

    `names` and `schema` describe its columns, `row_wise` says what each is made of; hidden columns behind them hold the
    row numbers of the tables in `slots`. `tables` are called t0, t1 … in the SQL, and their columns c0, c1 ….
    """

    sql: str
    names: tuple[str, ...]
    row_wise: tuple[Origin, ...]
    schema: pa.Schema
    slots: tuple[str, ...]
    tables: tuple[tuple[str, tuple[str, ...]], ...]


def plan(query: exp.Expr, tables: Mapping[str, pa.Schema]) -> After:
    """Check a query over released tables and write it anew; whatever is not on the list is Refused.

    >>> from sqlglot import parse_one
    >>> query = parse_one("SELECT city, 100 * n / 7 FROM r0 ORDER BY n DESC", read="postgres")
    >>> after = plan(query, {"r0": pa.schema([("city", pa.string()), ("n", pa.int64())])})
    >>> after.names
    ('city', '?column?')
    >>> run(after, {"r0": pa.table({"city": ["a", "b"], "n": [1, 2]})}).to_pylist()
    [{'city': 'b', '?column?': 28}, {'city': 'a', '?column?': 14}]
    """
    names = {name: stored_table(place, name, schema) for place, (name, schema) in enumerate(tables.items())}
    try:
        found = Planner().query(query, Context(names, outermost=True))
    except Refused:
        raise
    except Exception:  # noqa: BLE001 - a tree that the rules stumble over is not on the list
        raise Refused(_LOST) from None
    if len(found.sql) > _LONGEST:
        raise Refused(_LOST)
    for field in found.fields:
        if field.kind is Kind.INTERVAL:
            way_out = "Use EXTRACT(EPOCH FROM …) for seconds"
            raise refuse(query, "SELECT", "an interval cannot be shown", way_out)
    columns = tuple((name, tuple(schema.names)) for name, schema in tables.items())
    empty = {name: schema.empty_table() for name, schema in tables.items()}
    try:
        bound = compute(found.sql, _stored(columns, empty)).schema
    except ERRORS:
        raise Refused(_LOST) from None
    shown = apart([field.name for field in found.fields])
    types = [_type(field, bound[place].type) for place, field in enumerate(found.fields)]
    schema = pa.schema(list(zip(shown, types, strict=True)))
    return After(found.sql, shown, tuple(field.origin for field in found.fields), schema, found.slots, columns)


def run(after: After, tables: Mapping[str, pa.Table]) -> pa.Table:
    """Compute the answer from released tables."""
    return _shown(after, _computed(after, tables))


def run_with_margins(
    after: After, tables: Mapping[str, pa.Table], column_margins: Mapping[Read, np.ndarray], redraw: Redraw
) -> tuple[pa.Table, dict[str, list[float | None]]]:
    """Compute the answer from released tables, and the margins of its noisy columns (see `margins`)."""
    found = _computed(after, tables)
    return _shown(after, found), _margins(after, found, tables, column_margins, redraw)


def margins(
    after: After, tables: Mapping[str, pa.Table], column_margins: Mapping[Read, np.ndarray], redraw: Redraw
) -> dict[str, list[float | None]]:
    """Return the 95 % margins of the columns that noise took part in, row by row as `run` gives them.

    `column_margins` has the margins of the released columns that are noisy. `redraw(n)` returns these tables with
    fresh noise, n times each, with columns `draw` (from 0 on) and `row` (the place in the released table).
    A column that noise took no part in is left out; one whose margin is not known has None in every row.
    """
    return run_with_margins(after, tables, column_margins, redraw)[1]


def _margins(
    after: After,
    found: pa.Table,
    tables: Mapping[str, pa.Table],
    column_margins: Mapping[Read, np.ndarray],
    redraw: Redraw,
) -> dict[str, list[float | None]]:
    shown = _shown(after, found)
    known = _renoised(after, tables, set(column_margins), redraw)
    answer: dict[str, list[float | None]] = {}
    for place, origin in enumerate(after.row_wise):
        if not (reads([origin]) & set(column_margins) or counts(origin)):
            continue
        if isinstance(origin, Carried):
            known[place] = column_margins[origin.table, origin.column]
        followed: list[float | None] = [None] * len(shown)
        if isinstance(origin, Carried | RowWise) and place in known:
            followed = _followed(known[place], found.column(f"h{origin.slot}"), shown.column(place))
        answer[after.names[place]] = followed
    return answer


def _stored(columns: Sequence[tuple[str, tuple[str, ...]]], tables: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
    return {
        f"t{place}": stored(tables[name], listed, {"h0": pa.array(np.arange(tables[name].num_rows))})
        for place, (name, listed) in enumerate(columns)
    }


def _type(field: Field, bound: pa.DataType) -> pa.DataType:
    """Return the type of a column of the answer; a numeric is a double unless the released column is a decimal."""
    return bound if field.kind is Kind.NUMERIC else _ARROW[field.kind]


def _computed(after: After, tables: Mapping[str, pa.Table]) -> pa.Table:
    try:
        return compute(after.sql, _stored(after.tables, tables))
    except (*ERRORS, TooMuch) as error:
        raise Failed(_FAILED) from error


def _shown(after: After, found: pa.Table) -> pa.Table:
    return found.select(range(len(after.names))).rename_columns(list(after.names)).cast(after.schema)


def _renoised(after: After, tables: Mapping[str, pa.Table], noisy: set[Read], redraw: Redraw) -> dict[int, np.ndarray]:
    """Return the margins of computed columns, for every row of the table that they are computed from."""
    places: dict[str, list[int]] = {}
    for place, origin in enumerate(after.row_wise):
        if isinstance(origin, RowWise) and origin.reads & noisy and _is_number(after.schema.field(place).type):
            places.setdefault(origin.table, []).append(place)
    if not places:
        return {}
    texts = {name: [_text(after.row_wise[place]) for place in listed] for name, listed in places.items()}
    try:
        moved = spread(texts, dict(after.tables), tables, redraw)
    except (*ERRORS, TooMuch):  # the answer stands without them
        return {}
    return {place: each for name, listed in places.items() for place, each in zip(listed, moved[name], strict=True)}


def _text(origin: Origin) -> str:
    assert isinstance(origin, RowWise)
    return origin.sql


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _followed(given: np.ndarray, rows: pa.ChunkedArray, values: pa.ChunkedArray) -> list[float | None]:
    """Return the margins of the rows that are left, in their order."""
    known = [None if row is None else float(given[row]) for row in rows.to_pylist()]
    missing = values.is_null().to_pylist()
    return [
        None if margin is None or gone or not math.isfinite(margin) else margin
        for margin, gone in zip(known, missing, strict=True)
    ]
