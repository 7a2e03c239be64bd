"""PostgreSQL computes what the reference says: each operation alone, and random questions about random databases."""

import math
import os
import random
import sys
from contextlib import suppress
from dataclasses import replace
from datetime import date, datetime

import compare
import operations
import postgres_under
import pytest
import situations
import strategies
from operations import same
from strategies import BOOL, DATE, INT, REAL, TEXT, TIME, VISITS

from discreet.engines.dialects.postgres import POSTGRES
from discreet.engines.dialects.postgres_texts import shortened
from discreet.engines.evaluate import evaluate, finite
from discreet.engines.gathering import totals_of
from discreet.kernel.dialect import Spread
from discreet.kernel.expr import SIGNATURES, Call, Column, Constant, Type
from discreet.kernel.grid import Grid
from discreet.kernel.question import Limit, Public, Question, Values
from discreet.kernel.writing import key_of, steps, write
from discreet.postgres.connecting import connect

HOSTILE = (
    "SET DateStyle = 'German, DMY'; SET IntervalStyle = 'sql_standard'; SET TimeZone = 'America/Sao_Paulo'; "
    "SET standard_conforming_strings = off; SET escape_string_warning = off; "
    "SET lc_time = 'C'; SET array_nulls = off; SET bytea_output = 'escape'; SET enable_hashjoin = off"
)


@pytest.fixture(scope="module")
def connection(postgres):
    """A database whose own order of texts is a language's: every comparison must say its own."""
    name = f"matrix_{os.getpid()}"
    with connect(postgres.url()) as server:
        icu = "LOCALE_PROVIDER icu ICU_LOCALE 'en-US' LOCALE 'C.UTF-8'" if server.info.server_version >= 150000 else ""
        server.execute(f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8' {icu}")
    with connect(postgres.url(name), enable_nestloop="off", jit="off", statement_timeout="60s") as opened:
        yield opened


@pytest.fixture
def engine(connection):
    return postgres_under.under(connection)


def compared(connection, exprs, schema, rows, how=write):
    """Compare expressions with the reference in every row."""
    fields = {"row": INT, **schema}
    postgres_under.fill(connection, "given", fields, [{"row": at, **row} for at, row in enumerate(rows)])
    for expr in exprs:
        found = postgres_under.run(connection, f"SELECT {how(expr, POSTGRES)} AS v FROM given ORDER BY row").column("v")
        assert found.type == strategies.ARROW[expr.type]
        wanted = [evaluate(expr, row) for row in rows]
        wanted = [finite(value) for value in wanted] if how is key_of else wanted
        pairs = zip(rows, found.to_pylist(), wanted, strict=True)
        assert [(expr, *each) for each in pairs if not same(each[1], each[2])][:3] == []


# Expressions.


@pytest.mark.parametrize("op", SIGNATURES)
def test_each_operation_means_the_same(connection, op):
    for schema, calls, rows in operations.trials(op):
        compared(connection, calls, schema, rows)


@pytest.mark.parametrize("op", SIGNATURES)
def test_each_operation_means_the_same_on_what_was_computed(connection, op):
    """An argument that an operation names more than once is then computed by itself, once."""
    for schema, calls, rows in operations.trials(op, most=100):
        made = {name: Call("coalesce", (Column(name, kind), Column(name, kind))) for name, kind in schema.items()}
        deeper = [
            Call(op, tuple(made[arg.name] if isinstance(arg, Column) else arg for arg in call.args)) for call in calls
        ]
        compared(connection, deeper[:5], schema, rows)


@pytest.mark.parametrize("op", SIGNATURES)
def test_each_operation_means_the_same_on_constants(connection, op):
    """They are computed before the first row is read, and there too nothing may fail."""
    for _, calls, rows in operations.trials(op, most=25):
        held = [row for row in rows if all(map(may_be_constant, row.values()))]
        exprs = [Call(op, tuple(fixed(arg, row) for arg in call.args)) for call in calls[:5] for row in held]
        columns = ", ".join(f"{write(expr, POSTGRES)} AS c{place}" for place, expr in enumerate(exprs))
        found = postgres_under.run(connection, f"SELECT {columns}").to_pylist()[0].values()
        pairs = zip(exprs, found, strict=True)
        assert [(expr, value) for expr, value in pairs if not same(value, evaluate(expr, {}))] == []


def may_be_constant(value):
    return value is None or (finite(value) is not None and value != strategies.LONG)


def fixed(arg, row):
    return Constant(row[arg.name], arg.type) if isinstance(arg, Column) else arg


@pytest.mark.parametrize("op", SIGNATURES)
def test_a_null_keeps_its_type(connection, op):
    for expr in operations.of_nulls(op):
        found = postgres_under.run(connection, f"SELECT {write(expr, POSTGRES)} AS v").column("v")
        assert found.type == strategies.ARROW[expr.type]
        assert found.to_pylist() == [evaluate(expr, {})]


def borders():
    """Return doubles at which something begins or ends: powers of two with their neighbours, and the least and most."""
    powers = [
        -1074,
        -1073,
        -1022,
        -575,
        -562,
        -538,
        -537,
        -512,
        -511,
        -500,
        -51,
        -50,
        -1,
        0,
        1,
        50,
        53,
        500,
        512,
        538,
        970,
        1023,
    ]
    ends = [*(math.ldexp(1, power) for power in powers), 1e150, 1e-150, 8e307, 1e307, 1e-307]
    near = {each for x in ends for each in (x, math.nextafter(x, 0), math.nextafter(x, math.inf), x * 1.5)}
    sizes = [*sorted(x for x in near if math.isfinite(x)), sys.float_info.max, 3 * 5e-324, 0.1]
    return [*sizes, *(-x for x in sizes), 0.0, -0.0, *strategies.STRANGE]


def meeting():
    """Give pairs whose product is next to half of the least double, or to the first that is too large."""
    rng = random.Random("products")
    for power in range(-1074, -1):
        one = 1 + (rng.getrandbits(26) | 1) * math.ldexp(1, rng.randint(0, 25) - 52)
        for other in (1 / one, math.nextafter(1 / one, 2), math.nextafter(1 / one, 0)):
            yield math.ldexp(one, power), math.ldexp(other, -1075 - power)
            if power > -1022:
                yield math.ldexp(one, 1024 + power), math.ldexp(other, -power)


@pytest.mark.parametrize("op", ["add", "subtract", "multiply", "divide", "power"])
def test_arithmetic_is_that_of_doubles_at_every_border(connection, op):
    values = borders()
    pairs = [*((one, other) for one in values for other in values), *meeting()]
    rows = [{"a": one, "b": other} for one, other in pairs]
    schema = {"a": REAL, "b": REAL}
    compared(connection, [Call(op, (Column("a", REAL), Column("b", REAL)))], schema, rows)
    assert len(rows) > 20_000


@pytest.mark.parametrize("places", range(-15, 16))
def test_numbers_are_rounded_alike_at_every_border(connection, places):
    factor = 10.0**places
    near = [sys.float_info.max / max(factor, 1 / factor), 0.5 / factor, 2.5 / factor, 0.25 / factor, 2.0**52, 2.0**53]
    around = [y for x in near for y in (x, math.nextafter(x, 0), math.nextafter(x, math.inf), x / 3)]
    rows = [{"a": x} for x in [*borders(), *around, *(-x for x in around)]]
    compared(connection, [Call("round", (Column("a", REAL), Constant(places, INT)))], {"a": REAL}, rows)


@pytest.mark.parametrize("step", ["1", "1/7", "7", "1e-300", "1e290", "1e300", "0.1", "1e20"])
def test_the_steps_of_a_grid_are_the_kernels_own(connection, step):
    """Where a step is large, a tiny number of steps must not be too small for PostgreSQL."""
    ends = {"1e-300": "1e-290", "1e290": "1e300", "1e300": "1e300", "1e20": "1e30"}.get(step, "1e6")
    grids = [Grid(low, high, step) for low, high in ((f"-{ends}", ends), (0, ends), (f"-{ends}", 0), (0, 0))]
    width = float(grids[0].step)
    values = [*borders(), *(width * x for x in (0.5, 1.5, 2.5, 0.49999999999999994, -0.5, -1.5, 3, -7)), None]
    rows = [{"a": x} for x in values if x is None or not math.isnan(x)]
    postgres_under.fill(connection, "given", {"row": INT, "a": REAL}, [{"row": n, **row} for n, row in enumerate(rows)])
    for grid in grids:
        sql = f"SELECT {steps('a', grid, POSTGRES)} AS v FROM given ORDER BY row"
        found = postgres_under.run(connection, sql).column("v").to_pylist()
        assert found == [None if finite(row["a"]) is None else grid.index(row["a"]) - grid.offset for row in rows]


def test_every_letter_has_the_references_capital(connection):
    letters = [chr(code) for code in range(1, 0x110000) if not 0xD800 <= code < 0xE000]
    cased = [letter for letter in letters if len({letter, letter.lower(), letter.upper(), letter.title()}) > 1]
    known = [*letters[:0x3000], *cased, *letters[0x3000::50]]
    texts = ["".join(known[at : at + 100]) for at in range(0, len(known), 100)]
    texts += [f"{one}a{other}" for one, other in zip(cased, reversed(cased), strict=True)]
    calls = [Call(op, (Column("t", TEXT),)) for op in ("lower", "upper")]
    compared(connection, calls, {"t": TEXT}, [{"t": text} for text in texts])


def test_texts_are_in_the_order_of_their_code_points(connection):
    """Also those that were made here, in a database with the order of a language."""
    texts = ["a", "A", "b", "B", "-7", "12", "é", "e\u0301", "Z", "_", "", " a"]
    rows = [{"t": one, "u": other} for one in texts for other in texts]
    t, u = Column("t", TEXT), Column("u", TEXT)
    made = [
        Call("lower", (t,)),
        Call("join", (t, u)),
        Call("part", (u, Constant(1, INT), Constant(1, INT))),
        Call("trim", (u,)),
    ]
    made += [
        Call("write_integer", (Call("length", (t,)),)),
        Call("coalesce", (t, u)),
        Constant("B", TEXT),
        Constant("a", TEXT),
    ]
    exprs = [Call("less", (one, other)) for one in [t, *made] for other in made]
    exprs += [Call("least", (one, other)) for one in made for other in made]
    compared(connection, exprs, {"t": TEXT, "u": TEXT}, rows)


@pytest.mark.parametrize(
    "pattern",
    [
        *(
            "",
            ".",
            "^.$",
            "a.b",
            "[a-c-]",
            "[^a-]",
            "[.]",
            "[:a:]",
            "[ _,;:@#.]+",
            "(a|)b",
            "()a",
            "a||b",
            "(a*)b",
            "a{0}b",
        ),
        *(
            "\\.\\*\\?\\+\\(\\)\\[\\]\\{\\}\\^\\$\\|\\\\\\/\\-",
            "a\\$",
            "^a|b$",
            "(ab){2,}",
            "a{2}",
            "[é-]",
            "é+",
            "👩",
            "#a",
            "[0-9]{99}",
        ),
        *("(.{33}){30}", "((a{9}){9}){9}", "(a|b|c|d)*abcd", "[a-zA-Z0-9]{1,99}@[a-z.]+", "\"'", "-,;:@#%&=<>!/~`"),
    ],
)
def test_patterns_are_read_alike(connection, pattern):
    known = [
        "",
        "a",
        "b",
        "ab",
        "abab",
        "a.b",
        "a\nb",
        "\n",
        "-",
        ":",
        "[",
        "aaa",
        "a$",
        "é",
        "👩",
        "#a",
        "9" * 99,
        "x" * 990,
    ]
    known += [
        "a" * 729,
        "user@example.org",
        "\"'",
        "-,;:@#%&=<>!/~`",
        ".*?+()[]{}^$|\\/-",
        "abcabcd",
        "c",
        "\r",
        "\x85",
        "\u2028",
    ]
    try:
        call = Call("matches", (Column("t", TEXT), Constant(pattern, TEXT)))
    except ValueError:
        assert pattern == "[é-]"  # no class of the kernel's
        return
    compared(connection, [call], {"t": TEXT}, [{"t": text} for text in known])


@pytest.mark.parametrize("op", ["matches", "like", "like_any_case"])
def test_random_patterns_are_read_alike(connection, op):
    rng = random.Random(op)
    calls = []
    while len(calls) < 150:
        drawn = operations.pattern(rng) if op == "matches" else "".join(rng.choices("aAé%_\\.", k=rng.randint(0, 6)))
        with suppress(ValueError):  # not of the kernel's language
            calls.append(Call(op, (Column("t", TEXT), Constant(drawn, TEXT))))
    rows = [{"t": text} for text in ["", "\n", "a\n", *operations.short_texts(rng, 100)]]
    compared(connection, calls, {"t": TEXT}, rows)


def test_all_dates_are_read_and_no_others(connection):
    day = Column("t", TEXT)
    years = [0, 1, 4, 100, 400, 1900, 2000, 2023, 2024, 9999]
    texts = [f"{year:04}-{month:02}-{number:02}" for year in years for month in range(14) for number in range(33)]
    calls = [Call("read_date", (day,)), Call("read_timestamp", (Call("join", (day, Constant(" 23:59", TEXT))),))]
    compared(connection, calls, {"t": TEXT}, [{"t": text} for text in texts])
    clocks = [
        "24:00",
        "23:59:60",
        "23:60",
        "1:00",
        "00:00:00.",
        "00:00:00.1234567",
        "00:00:59.999999",
        "00:00Z",
        " 00:00",
    ]
    rows = [
        {"t": f"2024-02-29{between}{clock}{end}"} for between in " Tt" for clock in clocks for end in ("", "\n", " ")
    ]
    compared(connection, [Call("read_timestamp", (day,))], {"t": TEXT}, rows)


@pytest.mark.parametrize("seed", range(6))
def test_nested_expressions_mean_the_same(connection, seed):
    rng = random.Random(seed)
    schema = {"i": INT, "j": INT, "r": REAL, "x": REAL, "b": BOOL, "t": TEXT, "u": TEXT, "d": DATE, "s": TIME}
    values = {kind: operations.values_of(kind, 20) for kind in Type}
    rows = [{name: rng.choice(values[kind]) for name, kind in schema.items()} for _ in range(30)]
    exprs = [strategies.expression(rng, schema, rng.choice(list(Type)), depth=4) for _ in range(30)]
    compared(connection, exprs, schema, rows)
    compared(connection, exprs[:10], schema, rows, key_of)


@pytest.mark.parametrize(
    "op", ["add", "multiply", "negate", "abs", "floor", "round", "least", "greatest", "trim", "lower", "add_days"]
)
def test_expressions_may_be_as_deep_as_the_kernel_allows(connection, op):
    schema = {"i": INT, "r": REAL, "t": TEXT, "d": DATE}
    rows = [{"i": 3, "r": 1.25, "t": " aÉ", "d": date(2020, 2, 29)}, dict.fromkeys(schema)]
    rows.append({"i": (1 << 63) - 1, "r": 1e308, "t": "A" * 3000, "d": date.max})
    first = SIGNATURES[op][0]
    name = next(name for name, kind in schema.items() if kind.value == {"N": "r", "O": "r"}.get(first, first))
    rest = [Constant(0 if op == "round" else 1, INT)] if "!" in SIGNATURES[op] else [Column(name, schema[name])]
    expr = Column(name, schema[name])
    more = rest * (len(SIGNATURES[op].split()) - 2)
    try:
        while True:
            expr = Call(op, (expr, *more))
    except ValueError:
        assert expr.depth == 200 or op in {"floor", "round", "lower", "add_days"}
    compared(connection, [expr], schema, rows)


def test_columns_of_columns_do_not_grow(engine):
    """Each names the one before it many times: written out, the last would have a million parts."""
    rows = [
        situations.visit(user=user, **{'x"q': x}) for user, x in enumerate([1.0, 1.5, -2.0, math.inf, None, 1e-200])
    ]
    relation = strategies.Derive(VISITS, (("c0", Column('x"q', REAL)),))
    for number in range(11):
        column = Column(f"c{number}", REAL)
        relation = strategies.Derive(relation, ((f"c{number + 1}", Call("multiply", (column, column))),))
    total = strategies.Sum(Column("c11", REAL), Grid(-5, 5, "1/4"))
    question = Question(relation, (), Public(()), Limit(1, 1), (total,))
    situations.check(engine, situations.Situation(situations.small(visits=rows), question))


# Questions.


@pytest.mark.parametrize("block", range(8))
def test_postgresql_equals_the_reference(engine, block):
    deep, _ = compare.explore(engine, range(block * 16, block * 16 + 16))
    wide, _ = compare.explore(
        engine, range(9000 + block * 2, 9002 + block * 2), questions=15, depth=0, inner=0, most=60
    )
    assert deep > 15
    assert wide > 4


def test_settings_of_the_server_change_nothing(postgres, connection):
    with connect(postgres.url(connection.info.dbname)) as other:
        other.execute(HOSTILE)
        full, _ = compare.explore(postgres_under.under(other), range(500, 505))
        for name in (
            "many keys, listed: text",
            "long names that begin alike",
            "a real key has one zero and no infinity",
        ):
            situations.check(postgres_under.under(other), situations.SITUATIONS[name])
    assert full > 5


def test_counting_over_a_units_rows_is_the_same_as_joining(connection):
    over = postgres_under.under(connection, replace(POSTGRES, spread=Spread.WINDOW))
    full, _ = compare.explore(over, range(30_000, 30_005), questions=6, depth=1, inner=1, most=40)
    assert full > 5


def test_postgresql_equals_the_reference_on_thousands_of_rows(engine):
    full = 0
    for seed in range(2):
        rng = random.Random(f"crowd {seed}")
        tables = strategies.crowd(rng)
        engine.load(tables)
        for _ in range(6):
            question = strategies.question(rng, tables, rng.choice([0, 0, 1, 2]), 1, 1)
            wanted = compare.expected(tables, question)
            assert compare.computed(engine, question) == wanted, question
            full += any(wanted.values())
    assert full > 3


@pytest.mark.slow
@pytest.mark.parametrize("block", range(8))
def test_postgresql_equals_the_reference_thousands_of_times(engine, block):
    compare.explore(engine, range(1000 + block * 100, 1100 + block * 100))
    compare.explore(engine, range(10_000 + block * 20, 10_020 + block * 20), depth=5, most=30)
    compare.explore(engine, range(20_000 + block * 20, 20_020 + block * 20), questions=20, depth=1, inner=0, most=80)


@pytest.mark.parametrize("name", situations.SITUATIONS)
def test_situations(engine, name):
    situations.check(engine, situations.SITUATIONS[name])


def test_a_million_keys_may_be_listed(engine):
    """As many as a policy may declare; they are sent as one array."""
    tables = situations.small(events=[situations.event("a", n) for n in (-1, 0, 999_999, 1_000_000)])
    keys = tuple(range(1_000_000))
    question = Question(strategies.EVENTS, (("k", situations.N),), Public((keys,)), Limit(5, 5), (situations.Count(),))
    engine.load(tables)
    assert compare.computed(engine, question) == {(0,): (1,), (999_999,): (1,)}


def test_where_hashes_meet_the_value_decides_what_counts_here_too(engine):
    people = list(range(200))
    random.Random(1).shuffle(people)
    pairs = [(user, place) for user in people for place in ("ba"[user % 2], "ab"[user % 2])]
    engine.load(situations.small(visits=[situations.visit(user=user, place=place) for user, place in pairs]))
    question = Question(VISITS, (), Public(()), Limit(1, 1), (Values(situations.PLACE),))
    met = replace(POSTGRES, hashed="LENGTH({0})")
    assert totals_of(question, engine.run, met).values.tolist() == [[1]]


def test_nothing_is_made_on_the_server(postgres, connection, engine):
    """A role that can read the tables and do nothing else has every answer."""
    engine.load(situations.SITUATIONS["units with too much: values by text"].tables)
    connection.execute("CREATE ROLE reads LOGIN")
    connection.execute(f"REVOKE TEMPORARY, CREATE ON DATABASE {connection.info.dbname} FROM PUBLIC")
    connection.execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO reads")
    with connect(postgres.url(connection.info.dbname, "reads"), default_transaction_read_only="on") as reader:
        under = postgres_under.under(reader)
        for kind in ("text", "integer", "boolean"):
            for name in ("cells", "values"):
                situation = situations.SITUATIONS[f"units with too much: {name} by {kind}"]
                found = compare.computed(under, situation.question)
                assert found == compare.expected(situation.tables, situation.question)
    connection.execute("DROP OWNED BY reads; DROP ROLE reads")


# Texts alone.


def test_names_are_shortened_and_constants_are_not():
    name, other = "n" * 64, "n" * 63
    sql = f'SELECT "{name}", "{other}", \'"{name}"\', E\'\\\\\', "{name}" FROM "{name}"""'
    found = shortened(sql)
    assert found.count(f'"{name}"') == 1
    assert f'"{other}"' in found
    short = found.split('"')[1]
    assert short.startswith(".")
    assert found.count(f'"{short}"') == 2


def test_the_time_of_a_question_is_local():
    expr = Constant(datetime(2020, 1, 1, 12), TIME)
    assert write(expr, POSTGRES) == "TIMESTAMP '2020-01-01 12:00:00'"
