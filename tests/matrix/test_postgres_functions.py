"""Functions of SQL mean what PostgreSQL itself makes of them: their text runs there, unread."""

import random
from datetime import date, datetime, timedelta
from fractions import Fraction

import pytest
import sqlglot

from discreet.engines.reference.evaluate import evaluate
from discreet.kernel.expr import Column, Type
from discreet.query.expressions.binder import bind_expr
from discreet.query.expressions.bound_expr import BoundExpr

KINDS = {
    "t": (Type.TEXT, 'TEXT COLLATE "C"'),
    "x": (Type.REAL, "DOUBLE PRECISION"),
    "i": (Type.INTEGER, "BIGINT"),
    "d": (Type.DATE, "DATE"),
    "e": (Type.DATE, "DATE"),
    "s": (Type.TIMESTAMP, "TIMESTAMP"),
    "r": (Type.TIMESTAMP, "TIMESTAMP"),
}
TEXTS = [
    *("STRPOS(t, 'a')", "POSITION('b' IN t)", "POSITION('' IN t)", "STRPOS(t, 'é')"),
    *("REPLACE(t, 'a', 'xy')", "REPLACE(t, 'aa', '')", "REPLACE(t, '', 'x')", "REPLACE(t, '-', '\\1')"),
    *(f"{side}(t, {size})" for side in ("LEFT", "RIGHT") for size in (-9, -2, -1, 0, 1, 2, 9)),
    *(f"SPLIT_PART(t, '{by}', {place})" for by in ("-", "aa", "é", "") for place in (-3, -1, 1, 2, 9)),
]
NUMBERS = [
    *("WIDTH_BUCKET(x, 0, 10, 5)", "WIDTH_BUCKET(x, 10, 0, 5)", "WIDTH_BUCKET(x, 0.1, 0.7, 6)"),
    *("WIDTH_BUCKET(x, -1e9, 1e9, 7)", "WIDTH_BUCKET(x, ARRAY[0, 2.5, 7]::float8[])"),
    *("WIDTH_BUCKET(i, 0, 10, 4)", "WIDTH_BUCKET(i, 9, -3, 4)", "WIDTH_BUCKET(i, ARRAY[0, 2, 7]::bigint[])"),
]
MOMENTS = [
    f"EXTRACT({part} FROM AGE({end}, {start}))"
    for part in ("YEAR", "MONTH")
    for end, start in (("d", "e"), ("s", "r"), ("d", "r"), ("s", "e"), ("d", "DATE '2020-02-29'"))
]


def rows(seed, count=300):
    rng = random.Random(seed)
    first = datetime(2019, 12, 25)
    for place in range(count):
        moments = [first + timedelta(seconds=rng.randrange(86_400 * 1200)) for _ in range(4)]
        if place % 3 == 0:  # on the same day of a month, and at the same time or just before
            moments[1] = moments[0].replace(year=2021, day=min(28, moments[0].day)) - timedelta(seconds=place % 2)
            moments[3] = moments[2].replace(year=2022, day=rng.choice([1, 28]))
        yield {
            "t": rng.choice([None, "", "".join(rng.choices("ab-é👩", k=rng.randint(1, 7)))]),
            "x": rng.choice([None, rng.uniform(-2, 12), rng.randint(-2, 12), rng.randint(0, 10) / 10, 1e300, -1e300]),
            "i": rng.choice([None, rng.randint(-5, 13), (1 << 63) - 1, -(1 << 63)]),
            "s": moments[0],
            "r": moments[1],
            "d": moments[2].date(),
            "e": rng.choice([None, moments[3].date()]),
        } | ({"d": date(2020, 2, 29), "e": date(2021, 2, 28)} if place % 10 == 0 else {})


@pytest.mark.parametrize("texts", [TEXTS, NUMBERS, MOMENTS], ids=["texts", "numbers", "moments"])
def test_a_function_is_postgresqls_own(connection, texts):
    if connection.info.server_version < 140000:
        texts = [text for text in texts if not text.startswith("SPLIT_PART") or "-" not in text.split(",")[-1]]
    table = [
        {name: float(row["x"]) if name == "x" and row["x"] is not None else row[name] for name in KINDS}
        for row in rows(texts[0])
    ]
    connection.execute(f"CREATE TEMP TABLE own ({', '.join(f'{name} {sql}' for name, (_, sql) in KINDS.items())})")
    try:
        with connection.cursor() as cursor, cursor.copy("COPY own FROM STDIN") as copy:
            for row in table:
                copy.write_row([row[name] for name in KINDS])
        columns = {name: BoundExpr(Column(name, kind)) for name, (kind, _) in KINDS.items()}
        for text in texts:
            plain = text.replace("::float8[]", "").replace("::bigint[]", "")
            node = sqlglot.parse_one(f"SELECT {plain}", dialect="postgres").selects[0]
            expr = bind_expr(node, lambda column: columns[column.name], "SELECT").expr
            own = [value for (value,) in connection.execute(f"SELECT {text} FROM own").fetchall()]
            found = [evaluate(expr, row) for row in table]
            wrong = [
                (text, row, value, theirs)
                for row, value, theirs in zip(table, found, own, strict=True)
                if value != theirs
            ]
            assert wrong == [], wrong[:2]
            assert len(set(found)) > 1
    finally:
        connection.execute("DROP TABLE own")


def test_results_stay_in_the_range_that_is_computed_for_them():
    columns = {name: BoundExpr(Column(name, kind)) for name, (kind, _) in KINDS.items()}
    columns["d"] = BoundExpr(Column("d", Type.DATE), date(2019, 1, 1), date(2024, 1, 1))
    columns["e"] = BoundExpr(Column("e", Type.DATE), date(2019, 1, 1), date(2024, 1, 1))
    for text in (*NUMBERS[:3], NUMBERS[5], "STRPOS(t, 'a')", MOMENTS[0], MOMENTS[5]):
        node = sqlglot.parse_one(f"SELECT {text}", dialect="postgres").selects[0]
        bound = bind_expr(node, lambda column: columns[column.name], "SELECT")
        found = [value for row in rows("ranges") if (value := evaluate(bound.expr, row)) is not None]
        assert bound.low <= min(found) < max(found) <= bound.high, text
    assert (bound.low, bound.high) == (Fraction(-11), Fraction(11))
