"""PostgreSQL under test: the same tables, with results as Arrow."""

import operations
import pyarrow as pa
import strategies
from compare import Under

from discreet.engines.postgres.dialect import POSTGRES
from discreet.engines.reference.evaluate import evaluate, finite_or_null
from discreet.kernel.expr import Type
from discreet.kernel.sqlgen.dialect import quote_name
from discreet.kernel.sqlgen.expr_sql import write_expr, write_key

# By the numbers that PostgreSQL gives its types: a result has the kernel's and no others.
_FOUND = {20: Type.INTEGER, 701: Type.REAL, 16: Type.BOOLEAN, 25: Type.TEXT, 1082: Type.DATE, 1114: Type.TIMESTAMP}


def run(connection, sql):
    """Run a SELECT."""
    cursor = connection.execute(sql)
    rows = cursor.fetchall()
    kinds = [_FOUND[column.type_code] for column in cursor.description]
    columns = zip(*rows, strict=True) if rows else [()] * len(kinds)
    arrays = [pa.array(column, strategies.ARROW[kind]) for column, kind in zip(columns, kinds, strict=True)]
    return pa.Table.from_arrays(arrays, [column.name for column in cursor.description])


def fill(connection, name, schema, rows):
    """Make a table with exactly the kernel's types."""
    columns = [f"{quote_name(column)} {_stored(kind)}" for column, kind in schema.items()]
    connection.execute(
        f"DROP TABLE IF EXISTS {quote_name(name)}; CREATE TABLE {quote_name(name)} ({', '.join(columns)})"
    )
    with connection.cursor() as cursor, cursor.copy(f"COPY {quote_name(name)} FROM STDIN") as copy:
        for row in rows:
            copy.write_row([row[column] for column in schema])


def _stored(kind):
    return POSTGRES.types[kind] + (' COLLATE "C"' if kind is Type.TEXT else "")


def load(connection, tables):
    """Make all tables."""
    for name, schema in strategies.SCHEMAS.items():
        fill(connection, name, schema, tables[name])


def under(connection, dialect=POSTGRES):
    """Return the engine as comparisons use it."""
    return Under(dialect, lambda sql: run(connection, sql), lambda tables: load(connection, tables))


def compared(connection, exprs, schema, rows, how=write_expr):
    """Compare expressions with the reference in every row."""
    fields = {"row": Type.INTEGER, **schema}
    fill(connection, "given", fields, [{"row": at, **row} for at, row in enumerate(rows)])
    for expr in exprs:
        found = run(connection, f"SELECT {how(expr, POSTGRES)} AS v FROM given ORDER BY row").column("v")
        assert found.type == strategies.ARROW[expr.type]
        wanted = [evaluate(expr, row) for row in rows]
        wanted = [finite_or_null(value) for value in wanted] if how is write_key else wanted
        pairs = zip(rows, found.to_pylist(), wanted, strict=True)
        assert [(expr, *each) for each in pairs if not operations.same(each[1], each[2])][:3] == []
