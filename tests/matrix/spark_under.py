"""Spark under test: the same tables as views, with results as Arrow."""

import math
import random
from dataclasses import replace

import compare
import operations
import pyarrow as pa
import strategies
from compare import Under

from discreet.engines.reference.evaluate import evaluate, finite_or_null
from discreet.engines.spark.connection import SETTINGS
from discreet.engines.spark.dialect import INEXACT_OPERATIONS, SPARK
from discreet.engines.spark.literals import requote_names
from discreet.engines.unsupported import unsupported_reason
from discreet.kernel.expr import Call, Column, Constant
from discreet.kernel.sqlgen.dialect import quote_name
from discreet.kernel.sqlgen.expr_sql import write_expr, write_key

# Spark without the operations that it need not compute to the last bit: what is left must be equal bit for bit.
EXACT = replace(
    SPARK,
    unsupported_reason=lambda call: (
        SPARK.unsupported_reason(call) or ("rough" if call.op in INEXACT_OPERATIONS else "")
    ),
)

# At these Sail stops by a mistake of its own, before or without a row: a column and a cast of it in one GROUP BY, as
# NULLs of several types are too, a division in a part without rows, a union whose sides differ in what can be NULL, and
# rows that are numbered in the order of CEIL or FLOOR of a column, and then of the column.
SAILS_OWN = (
    "Projections require unique expression names",
    "duplicate unqualified field name",
    "Division by zero",
    "Physical input schema should be the same as the one converted from logical input schema",
    "does not satisfy order requirements",
)
SAILS_SEEDS = {1107}  # infinity less infinity is a NaN that Sail takes for less than all numbers
SAILS_SITUATIONS = {"a unit's rows may be gathered by constants"}


def prepare(session):
    """Make the settings that the engine makes."""
    for name, value in SETTINGS.items():
        session.conf.set(name, value)
    return session


def run(session, sql):
    """Run a SELECT."""
    return session.sql(sql).toArrow()


def fill(session, name, schema, rows):
    """Make a view with exactly the kernel's types."""
    fields = pa.schema([(column, strategies.ARROW[kind]) for column, kind in schema.items()])
    nothing = [f"CAST(NULL AS {SPARK.types[kind]}) AS {quote_name(column)}" for column, kind in schema.items()]
    if rows:
        frame = session.createDataFrame(pa.Table.from_pylist(rows, schema=fields))
    else:
        frame = session.sql(requote_names(f"SELECT {', '.join(nothing)} WHERE FALSE"))
    given = f"given_{name.encode().hex()}"  # Sail and Spark read other names differently where no SELECT names them
    frame.createOrReplaceTempView(given)
    session.sql(requote_names(f"CREATE OR REPLACE TEMP VIEW {quote_name(name)} AS SELECT * FROM {given}")).collect()


def load(session, tables):
    """Make all tables."""
    for name, schema in strategies.SCHEMAS.items():
        fill(session, name, schema, tables[name])


def under(session, dialect=EXACT):
    """Return the engine as comparisons use it."""
    return Under(dialect, lambda sql: run(session, sql), lambda tables: load(session, tables))


def compared(session, exprs, schema, rows, how=write_expr):
    """Compare expressions with the reference in every row."""
    fill(session, "given", {"row": strategies.INT, **schema}, [{"row": at, **row} for at, row in enumerate(rows)])
    for at in range(0, len(exprs), 10):  # not all at once: a SELECT of many takes its time to be planned
        some = exprs[at : at + 10]
        texts = [f"{how(expr, SPARK)} AS v{place}" for place, expr in enumerate(some)]
        found = run(session, requote_names(f'SELECT {", ".join(texts)} FROM "given" ORDER BY "row"'))
        for place, expr in enumerate(some):
            column = found.column(f"v{place}")
            assert column.type == strategies.ARROW[expr.type]
            wanted = [evaluate(expr, row) for row in rows]
            wanted = [finite_or_null(value) for value in wanted] if how is write_key else wanted
            pairs = zip(rows, column.to_pylist(), wanted, strict=True)
            wrong = [each for each in pairs if not _equal(expr, each[1], each[2])]
            assert not wrong, (expr, wrong[:3])


def _equal(expr, one, other):
    rough = getattr(expr, "op", None) in INEXACT_OPERATIONS and None not in (one, other)
    return operations.same(one, other) or (rough and abs(one - other) <= 2 * math.ulp(other))


def comparisons(op, *, numbers_only):
    """Give conditions about an operation's result, for every typing: the schema, the conditions, and rows for them.

    Sail has a NaN below all numbers, beside the one above them: where computed ones are compared it is another engine.
    """
    rng = random.Random(f"compared {op}")
    for schema, calls, rows in operations.trials(op, most=400):
        kind = calls[0].type
        near = {strategies.INT: [2**53 + 1, -1], strategies.REAL: [2.0**53, -(2.0**63), 0.5, -0.0]}.get(kind, [])
        ends = [*rng.sample(strategies.POOLS[kind], min(3, len(strategies.POOLS[kind]))), *near]
        known = [Constant(value, kind) for value in dict.fromkeys(ends)]
        many = [Constant(value, kind) for value in [*ends, *strategies.POOLS[kind]]]  # enough for a table of them
        for call in [call for call in calls if not EXACT.unsupported_reason(call)][:3]:
            found = [evaluate(call, row) for row in rows]
            strange = [numbers_only and isinstance(value, float) and math.isnan(value) for value in found]
            exprs = [Call(how, (call, end)) for how in ("equal", "less", "at_most") for end in known]
            exprs += [Call(how, (end, call)) for how in ("less", "at_most") for end in known]
            exprs += [Call("one_of", (call, *known)), Call("one_of", (call, *many)), Call("is_null", (call,))]
            yield schema, exprs, [row for row, left in zip(rows, strange, strict=True) if not left]


def explore(engine, seeds, *, questions=5, depth=3, inner=2, most=12, forgiven=()):
    """Compare random questions; return how many found anything at all, and how many were left out."""
    full = left = 0
    for seed in seeds:
        rng = random.Random(seed)
        tables = strategies.database(rng, most)
        engine.load(tables)
        for number in range(questions):
            question = strategies.question(rng, tables, rng.choice([0, 0, 0, 1, 2]), depth, inner)
            wanted = compare.expected(tables, question)
            try:
                found = None if unsupported_reason(question, engine.dialect) else compare.computed(engine, question)
            except Exception as stop:
                if not any(text in str(stop) for text in forgiven):
                    raise AssertionError(seed, number, question) from stop
                found = None
            assert found in (None, wanted), (seed, number, question)
            left += found is None
            full += found is not None and any(wanted.values())
    return full, left


SHALLOW = (
    {"i": strategies.INT, "t": strategies.TEXT, "r": strategies.REAL, "b": strategies.BOOL},
    [{"i": 3, "t": "a", "r": 1.5, "b": True}, {"i": None, "t": None, "r": None, "b": None}],
)


def deep(op):
    """Return an operation around itself, as often as Spark allows."""
    kind = {"add": "i", "join": "t", "negate": "r"}.get(op, "b")
    expr = column = Column(kind, SHALLOW[0][kind])
    rest = {"add": [Constant(1, strategies.INT)], "join": [Constant("x", strategies.TEXT)], "case": [column, column]}
    for _ in range(SPARK.max_nesting - 1):
        expr = Call(op, (expr, *rest.get(op, [])))
    return expr
