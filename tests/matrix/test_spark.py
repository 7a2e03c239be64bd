"""Spark's SQL computes what the reference says: each operation alone, and random questions about random databases.

Here it runs on Sail, which speaks Spark's language and starts at once; tests/slow does the same on Spark itself.
"""

import math
import random
import re
import sys
from contextlib import suppress
from datetime import date, datetime

import compare
import operations
import pytest
import situations
import spark_under
import strategies
from servers.spark import session as opened
from spark_under import EXACT, SAILS_OWN, SAILS_SEEDS, SAILS_SITUATIONS, compared
from strategies import BOOL, DATE, INT, REAL, TEXT, TIME, VISITS

from discreet.engines.duckdb.dialect import DUCKDB
from discreet.engines.reference.evaluate import finite_or_null
from discreet.engines.spark.dialect import SPARK
from discreet.engines.spark.literals import requote_names, text_literal
from discreet.engines.sql_totals import compute_totals
from discreet.engines.unsupported import unsupported_reason
from discreet.kernel.expr import SIGNATURES, Call, Column, Constant, Type
from discreet.kernel.grid import Grid
from discreet.kernel.question import ContributionBounds, PublicGroups, Question, SelectedGroups
from discreet.kernel.relation import Derive, SemiJoinKind, SemiJoinOnUnit
from discreet.kernel.sqlgen.expr_sql import write_grid_step as steps_of
from discreet.kernel.sqlgen.expr_sql import write_key
from discreet.kernel.sqlgen.question_sql import write_selects
from discreet.kernel.totals import Count, CountDistinct, CountUnits, SelectionWeight

TEXT_COLUMN = Column("t", TEXT)


@pytest.fixture(scope="module")
def session(sail):
    with opened(sail.url) as found:
        yield spark_under.prepare(found)


@pytest.fixture
def engine(session):
    return spark_under.under(session)


# Expressions.


@pytest.mark.long(but=["add", "equal", "lower", "not", "extract_year"])
@pytest.mark.parametrize("op", SIGNATURES)
def test_each_operation_means_the_same(session, op):
    for schema, calls, rows in operations.trials(op, most=300):
        compared(session, [call for call in calls if not SPARK.unsupported_reason(call)], schema, rows)


@pytest.mark.long(but=["add", "lower", "not"])
@pytest.mark.parametrize("op", SIGNATURES)
def test_an_operation_means_the_same_where_it_is_compared(session, op):
    """An optimizer likes to compare what an operation was computed from, also where there is no result."""
    for schema, exprs, rows in spark_under.comparisons(op, numbers_only=True):
        compared(session, exprs, schema, rows)


@pytest.mark.long(but=["add", "equal", "lower", "not"])
@pytest.mark.parametrize("op", SIGNATURES)
def test_each_operation_means_the_same_on_constants(session, op):
    """Constants are folded before the first row is read, which must not fail either."""
    for _, calls, rows in operations.trials(op, most=8):
        held = [
            row for row in rows if all(value is None or finite_or_null(value) is not None for value in row.values())
        ]
        held = [row for row in held if strategies.LONG not in row.values()]
        exprs = [Call(op, tuple(fixed(arg, row) for arg in call.args)) for call in calls[:3] for row in held]
        compared(session, exprs, {}, [{}])


def fixed(arg, row):
    return Constant(row[arg.name], arg.type) if isinstance(arg, Column) else arg


@pytest.mark.long(but=["add", "equal", "lower"])
@pytest.mark.parametrize("op", SIGNATURES)
def test_a_null_keeps_its_type(session, op):
    compared(session, list(operations.of_nulls(op)), {}, [{}])


def borders():
    """Return doubles at which something begins or ends."""
    powers = (-1074, -1022, -512, -1, 0, 52, 53, 62, 63, 64, 512, 1023)
    ends = [*(math.ldexp(1, power) for power in powers), 709.0, 1e307, 1e-307, sys.float_info.max]
    near = {each for x in ends for each in (x, math.nextafter(x, 0), math.nextafter(x, math.inf), x * 1.5)}
    sizes = sorted(x for x in near if math.isfinite(x))
    return [*sizes, *(-x for x in sizes), 0.0, -0.0, *strategies.STRANGE, None]


@pytest.mark.parametrize("op", ["add", "subtract", "multiply", "divide", "power", "least", "greatest", "less", "equal"])
def test_operations_on_pairs_of_reals_agree_at_every_boundary(session, op):
    values = borders()
    rows = [{"a": one, "b": other} for one in values for other in values]
    compared(session, [Call(op, (Column("a", REAL), Column("b", REAL)))], {"a": REAL, "b": REAL}, rows)
    assert len(rows) > 5000


def test_operations_on_single_reals_agree_at_every_boundary(session):
    a = Column("a", REAL)
    calls = [Call(op, (a,)) for op in ("negate", "abs", "sign", "floor", "ceil", "sqrt", "to_integer", "exp", "ln")]
    calls += [Call("round", (a, Constant(places, INT))) for places in range(-15, 16)]
    halves = [sign * (n + 0.5) / factor for sign in (1, -1) for n in (0, 1, 2, 2**51) for factor in (1, 10, 1e15, 0.1)]
    near = [x for half in halves for x in (half, math.nextafter(half, 0), math.nextafter(half, 1e300))]
    edges = [sys.float_info.max / 10.0**places for places in range(16)]
    near += [x for edge in edges for x in (edge, math.nextafter(edge, 0), math.nextafter(edge, math.inf))]
    compared(session, calls, {"a": REAL}, [{"a": x} for x in [*borders(), *near]])


@pytest.mark.parametrize("step", ["1", "1/7", "7", "1e-300", "1e290", "0.1", "1e20"])
def test_the_steps_of_a_grid_are_the_kernels_own(session, step):
    ends = {"1e-300": "1e-290", "1e290": "1e300", "1e20": "1e30"}.get(step, "1e6")
    grids = [Grid(low, high, step) for low, high in ((f"-{ends}", ends), (0, ends), (f"-{ends}", 0), (0, 0))]
    width = float(grids[0].step)
    values = [*borders(), *(width * x for x in (0.5, 1.5, 2.5, 0.49999999999999994, -0.5, -1.5, 3, -7))]
    spark_under.fill(session, "given", {"row": INT, "a": REAL}, [{"row": n, "a": x} for n, x in enumerate(values)])
    for grid in grids:
        sql = f'SELECT {steps_of(quoted_a(), grid, SPARK)} AS v FROM "given" ORDER BY "row"'
        found = spark_under.run(session, requote_names(sql)).column("v")
        assert found.type == strategies.ARROW[INT]
        assert found.to_pylist() == [None if finite_or_null(x) is None else grid.index(x) - grid.offset for x in values]


def quoted_a():
    return '"a"'


@pytest.mark.long
def test_letters_have_the_upper_case_of_the_reference(session):
    letters = [chr(code) for code in range(1, 0x110000) if not 0xD800 <= code < 0xE000]
    cased = [letter for letter in letters if len({letter, letter.lower(), letter.upper(), letter.title()}) > 1]
    known = [*letters[:0x500], *cased, *letters[0x500::500]]
    texts = ["".join(known[at : at + 60]) for at in range(0, len(known), 60)]
    calls = [Call(op, (TEXT_COLUMN,)) for op in ("lower", "upper")]
    calls += [Call("like_any_case", (TEXT_COLUMN, Constant(pattern, TEXT))) for pattern in ("%É%", "%ß%", "İ%", "%Σ%")]
    compared(session, calls, {"t": TEXT}, [{"t": each} for each in texts])


PATTERNS = [
    *("", ".", "^.$", "a.b", "[a-c-]", "[^a-]", "[.]", "[:a:]", "[ _,;:@#.]+", "(a|)b", "()a", "a||b", "(a*)b"),
    *("\\.\\*\\?\\+\\(\\)\\[\\]\\{\\}\\^\\$\\|\\\\\\/\\-", "a\\$", "^a|b$", "(ab){2,}", "a{2}", "é+", "👩", "#a"),
    *("[0-9]{99}", "^(.{33}){30}", "^((a{4}){4}){4}", "^(a|b|c|d)*abcd", "[a-z0-9]{1,9}@[a-z.]+", "\"'", "a{0}b"),
    *("-,;:@#%&=<>!/~`", "^[^@]+@[^@.]+\\.com$", "(foo|bar).{0,9}baz", "^x{3,}y", "^(a|b){3,}$", "a{2,}.{0,3}b"),
]
TEXTS = [
    *(
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
    ),
    *("a" * 729, "user@example.org", "me@b.com", "\"'", "-,;:@#%&=<>!/~`", ".*?+()[]{}^$|\\/-", "abcabcd", "c", "\r"),
    *("\x85", "\u2028", "a👩b👩" * 400, "xxxxy", "foo 123 baz", "aab", "aa\nb", "a\n"),
]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_patterns_are_read_alike(session, pattern):
    call = Call("matches", (TEXT_COLUMN, Constant(pattern, TEXT)))
    if pattern not in {"(ab){2,}", "^(a|b|c|d)*abcd", "^(.{33}){30}"}:
        assert SPARK.unsupported_reason(call) == ""
    compared(session, [call], {"t": TEXT}, [{"t": each} for each in TEXTS])


@pytest.mark.long
@pytest.mark.parametrize("op", ["matches", "like", "like_any_case"])
def test_random_patterns_are_read_alike(session, op):
    rng = random.Random(op)
    calls = []
    while len(calls) < 150:
        drawn = operations.pattern(rng) if op == "matches" else "".join(rng.choices("aAé%_\\.", k=rng.randint(0, 6)))
        with suppress(ValueError):  # not of the kernel's language
            calls.append(Call(op, (TEXT_COLUMN, Constant(drawn, TEXT))))
    rows = [{"t": each} for each in ["", "\n", "a\n", None, *operations.short_texts(rng, 100), "aéaé" * 20]]
    compared(session, calls, {"t": TEXT}, rows)


def test_all_dates_are_read_and_no_others(session):
    years = [0, 1, 4, 100, 400, 1900, 2000, 2023, 2024, 9999]
    days = [f"{year:04}-{month:02}-{number:02}" for year in years for month in range(14) for number in range(33)]
    calls = [Call("read_date", (TEXT_COLUMN,))]
    calls.append(Call("read_timestamp", (Call("join", (TEXT_COLUMN, Constant(" 23:59", TEXT))),)))
    compared(session, calls, {"t": TEXT}, [{"t": day} for day in days])
    clocks = ["24:00", "23:59:60", "23:60", "1:00", "00:00:00.", "00:00:00.1234567", "00:00:59.999999", "00:00Z"]
    ways = [f"2024-02-29{between}{clock}{end}" for between in " Tt" for clock in clocks for end in ("", "\n", " ")]
    said = [
        "now",
        "today",
        "epoch",
        "2024",
        "2024-02",
        "10000-01-01",
        "-0001-01-01",
        " 2024-02-29",
        "\u0662\u0660\u0662\u0664-01-01",
        "\uff11\uff12",
    ]
    said += ["1d", "1.5f", "0x1p3", "0x10", "12L", " 12 ", "NaN", "Infinity", "inf", "1e5\n", "+-1"]
    reads = [Call(op, (TEXT_COLUMN,)) for op in ("read_timestamp", "read_date", "read_integer", "read_real")]
    compared(session, reads, {"t": TEXT}, [{"t": each} for each in [*ways, *said]])


def test_times_are_truncated_alike_in_every_year(session):
    rng = random.Random("times")
    ordinals = [rng.randint(1, date.max.toordinal()) for _ in range(300)]
    days = [
        *map(date.fromordinal, ordinals),
        *(date(year, *day) for year in (1, 4, 1969, 9999) for day in ((1, 1), (12, 31))),
    ]
    clocks = [(0, 0, 0, 0), (23, 59, 59, 999999), (2, 30, 15, 1)]
    rows = [{"s": datetime(day.year, day.month, day.day, *rng.choice(clocks)), "d": day} for day in days]
    ops = [op for op, text in SIGNATURES.items() if text.startswith("s ") and "!" not in text]
    calls = [Call(op, (Column("s", TIME),)) for op in ops]
    calls += [Call("days_between", (Column("d", DATE), Constant(date(2000, 1, 1), DATE)))]
    calls += [Call("add_seconds", (Column("s", TIME), Constant(by, INT))) for by in (-1, 86_400, 10**11, -(10**11))]
    calls += [Call("add_days", (Column("d", DATE), Constant(by, INT))) for by in (-366, 1, 3_652_059, -3_652_059)]
    compared(session, calls, {"s": TIME, "d": DATE}, rows)


@pytest.mark.parametrize("seed", range(4))
def test_nested_expressions_mean_the_same(session, seed):
    rng = random.Random(seed)
    schema = {"i": INT, "j": INT, "r": REAL, "x": REAL, "b": BOOL, "t": TEXT, "u": TEXT, "d": DATE, "s": TIME}
    values = {kind: operations.values_of(kind, 20) for kind in Type}
    rows = [{name: rng.choice(values[kind]) for name, kind in schema.items()} for _ in range(30)]
    drawn = [strategies.expression(rng, schema, rng.choice(list(Type)), depth=3) for _ in range(40)]
    exprs = [expr for expr in drawn if not unsupported_reason(Derive(VISITS, (("v", without_columns(expr)),)), EXACT)]
    compared(session, exprs, schema, rows)
    compared(session, exprs[:10], schema, rows, write_key)


def without_columns(expr):
    """Return an expression with NULL for its columns, which any relation has."""
    if isinstance(expr, Column):
        return Constant(None, expr.type)
    return Call(expr.op, tuple(map(without_columns, expr.args))) if isinstance(expr, Call) else expr


@pytest.mark.parametrize("op", ["add", "negate", "not"])
def test_expressions_may_be_as_deep_as_spark_allows(session, op):
    """Sail takes twice as long for each CASE and each SUBSTRING around another; Spark does not."""
    compared(session, [spark_under.deep(op)], *spark_under.SHALLOW)


# Questions.


@pytest.mark.long
@pytest.mark.parametrize("block", range(4))
def test_spark_sql_equals_the_reference(engine, block):
    deep, left = spark_under.explore(engine, range(block * 10, block * 10 + 10), forgiven=SAILS_OWN)
    wide, _ = spark_under.explore(
        engine, range(9000 + block, 9001 + block), questions=15, depth=0, inner=0, most=60, forgiven=SAILS_OWN
    )
    assert deep > 10
    assert wide > 2
    assert left < 25


@pytest.mark.slow
@pytest.mark.parametrize("block", range(4))
def test_spark_sql_equals_the_reference_a_thousand_times(engine, block):
    first = 1000 + block * 50
    seeds = [seed for seed in range(first, first + 50) if seed not in SAILS_SEEDS]
    assert spark_under.explore(engine, seeds, forgiven=SAILS_OWN)[0] > 60
    spark_under.explore(engine, range(first * 10, first * 10 + 5), depth=5, most=30, forgiven=SAILS_OWN)
    few = range(first * 20, first * 20 + 5)
    spark_under.explore(engine, few, questions=20, depth=1, inner=0, most=80, forgiven=SAILS_OWN)


@pytest.mark.long
def test_spark_sql_equals_the_reference_on_thousands_of_rows(engine):
    rng = random.Random("crowd 0")
    tables = strategies.crowd(rng)
    engine.load(tables)
    full = 0
    while full < 5:
        question = strategies.question(rng, tables, rng.choice([0, 0, 1, 2]), 1, 1)
        if not unsupported_reason(question, EXACT):
            wanted = compare.expected(tables, question)
            assert compare.computed(engine, question) == wanted, question
            full += any(wanted.values())


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in situations.SITUATIONS if name not in SAILS_SITUATIONS])
def test_situations(engine, name):
    situations.check(engine, situations.SITUATIONS[name])


@pytest.mark.long
def test_columns_may_have_the_names_that_the_kernel_gives_tables(engine):
    """Within EXISTS, s would be the other side's column."""
    others = Derive(VISITS, tuple((name, Column("flag", BOOL)) for name in "sopcwlramdnhu"))
    rows = [situations.visit(user=user, flag=user == 1) for user in (1, 1, 2)]
    for has in SemiJoinKind:
        question = Question(
            SemiJoinOnUnit(VISITS, others, has), (), PublicGroups(()), ContributionBounds(5, 5), (Count(), CountUnits())
        )
        situations.check(engine, situations.Situation(situations.small(visits=rows), question))


def test_where_hashes_collide_the_value_decides_what_counts_here_too(engine):
    people = list(range(200))
    random.Random(1).shuffle(people)
    pairs = [(user, place) for user in people for place in ("ba"[user % 2], "ab"[user % 2])]
    engine.load(situations.small(visits=[situations.visit(user=user, place=place) for user, place in pairs]))
    question = Question(VISITS, (), PublicGroups(()), ContributionBounds(1, 1), (CountDistinct(situations.PLACE),))
    found = compute_totals(question, lambda sql: engine.run(sql.replace("MD5(", "LENGTH(")), SPARK)
    assert found.values.tolist() == [[1]]


# Texts alone.


HOSTILE = ["'", '"', "\\", "`", "${spark.app.name}", "${env:HOME}", "a\nb", "--", "/*", "é", "%", "?", ":x", "\\'", "$"]


def test_a_constant_ends_where_it_should():
    """Whatever is in it: letters, digits and what means nothing, or the numbers of its bytes."""
    for value in [*HOSTILE, *strategies.POOLS[TEXT], "".join(map(chr, range(1, 300)))]:
        assert re.fullmatch(r"'[A-Za-z0-9 _.,:;+/-]*'|CAST\(X'[0-9A-F]*' AS STRING\)", text_literal(value))


def test_names_are_quoted_and_nothing_else_is_in_double_quotes():
    names = tuple((f"{value.strip('.')}{place}", Constant(value, TEXT)) for place, value in enumerate(HOSTILE))
    question = Question(
        Derive(VISITS, names),
        (("k", Column(names[0][0], TEXT)),),
        SelectedGroups(5),
        ContributionBounds(2, 2),
        (SelectionWeight(), Count(Column(names[4][0], TEXT))),
    )
    sql = " ".join(write_selects(question, SPARK).values())
    bare = re.sub(r"`(?:[^`]|``)*`|'[^'\\]*'", "", sql)
    assert re.fullmatch(r"[A-Za-z0-9_ .,()*+=<>/%|-]*", bare)
    assert "${" not in re.sub(r"`(?:[^`]|``)*`", "", sql)


def test_expressions_too_deep_for_sparks_parser_are_refused():
    deepest = without_columns(spark_under.deep("add"))
    assert unsupported_reason(Derive(VISITS, (("v", deepest),)), SPARK) == ""
    deeper = Derive(VISITS, (("v", Call("negate", (deepest,))),))
    assert "too deeply nested" in unsupported_reason(deeper, SPARK)
    assert unsupported_reason(deeper, DUCKDB) == ""
