"""Expressions: what may be written, and that nothing else can be."""

import math
import random
import sys
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from types import SimpleNamespace

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.engines.column_usage import columns_of
from discreet.engines.duckdb.dialect import DUCKDB
from discreet.engines.postgres.dialect import POSTGRES
from discreet.engines.reference.evaluate import evaluate
from discreet.engines.spark.dialect import SPARK
from discreet.engines.unsupported import unsupported_reason
from discreet.kernel import expr as module
from discreet.kernel.expr import (
    SIGNATURES,
    Call,
    Column,
    Constant,
    Type,
    check_name,
    check_value,
)
from discreet.kernel.relation import Derive, EachRow, Scan
from discreet.kernel.sqlgen.dialect import quote_name
from discreet.kernel.sqlgen.expr_sql import write_expr

sys.path.insert(0, str(Path(__file__).parents[1] / "matrix"))
import strategies

INT, REAL, BOOL, TEXT, DATE, TIME = Type
N, X, FLAG, NAME = Column("n", INT), Column("x", REAL), Column("flag", BOOL), Column("name", TEXT)
ONE = Constant(1, INT)
NAMES = Scan("names", (NAME,), EachRow(), max_rows=1)


def of(value, kind=TEXT):
    return Constant(value, kind)


@pytest.mark.parametrize(
    ("op", "args", "kind"),
    [
        ("add", (N, ONE), INT),
        ("add", (X, X), REAL),
        ("least", (NAME, NAME, NAME), TEXT),
        ("equal", (NAME, NAME), BOOL),
        ("clip", (X, of(0.0, REAL), of(1.0, REAL)), REAL),
        ("one_of", (N, ONE, of(2, INT)), BOOL),
        ("coalesce", (FLAG, FLAG), BOOL),
        ("part", (NAME, ONE, ONE), TEXT),
        ("case", (FLAG, N, ONE), INT),
        ("case", (FLAG, X, FLAG, X, X), REAL),
        ("is_null", (X,), BOOL),
        ("year", (Column("t", TIME),), INT),
        ("add_days", (Column("d", DATE), ONE), DATE),
    ],
)
def test_a_call_has_the_type_of_its_signature(op, args, kind):
    assert Call(op, args).type is kind


@pytest.mark.parametrize(
    ("op", "args"),
    [
        ("add", (N, X)),
        ("add", (N,)),
        ("add", (N, N, N)),
        ("add", (NAME, NAME)),
        ("modulo", (X, X)),
        ("floor", (N,)),
        ("round", (X, N)),
        ("round", (X, of(None, INT))),
        ("round", (X, of(1.0, REAL))),
        ("least", (N,)),
        ("least", (N, X)),
        ("clip", (N, N, N)),
        ("clip", (N, of(0.0, REAL), of(1.0, REAL))),
        ("inside", (N, ONE, of(None, INT))),
        ("one_of", (N, N)),
        ("one_of", (N,)),
        ("one_of", (N, ONE, of(1.0, REAL))),
        ("and", (FLAG,)),
        ("and", (FLAG, N)),
        ("not", (N,)),
        ("coalesce", (N, X)),
        ("coalesce", (N,)),
        ("like", (NAME, NAME)),
        ("like", (NAME, of(None))),
        ("matches", (N, of("a"))),
        ("to_real", (X,)),
        ("year", (Column("d", DATE),)),
        ("case", (FLAG, N)),
        ("case", (FLAG, N, X)),
        ("case", (N, N, N)),
        ("case", ()),
        ("case", (N,)),
        ("case", (FLAG, N, FLAG, N)),
        ("case", (FLAG, N, N, N, N)),
        ("case", (FLAG, X, FLAG, N, X)),
        ("is_null", ()),
        ("join", (NAME, N)),
    ],
)
def test_other_arguments_are_refused(op, args):
    with pytest.raises(TypeError):
        Call(op, args)


@pytest.mark.parametrize(
    "op", ["", "ADD", "random", "now", "sleep", "getenv", "read_csv", "add i", "drop table", "{0}"]
)
def test_an_unlisted_operation_is_refused(op):
    with pytest.raises(ValueError, match="op must be"):
        Call(op, (N, N))


@pytest.mark.parametrize("args", [[N, N], "ab", None, (N, "1"), (N, 1), (N, None), N])
def test_arguments_are_a_tuple_of_expressions(args):
    with pytest.raises(TypeError, match="tuple of expressions"):
        Call("add", args)


def test_every_operation_can_be_written_and_evaluated():
    written = {op.split()[0] for op in DUCKDB.operations} | {"and", "or", "join", "case"}
    assert written == {*SIGNATURES, "case"}
    rng = random.Random(0)
    row = {f"c{kind.value}": rng.choice(strategies.POOLS[kind]) for kind in Type}
    schema = {f"c{kind.value}": kind for kind in Type}
    used = set()
    for _ in range(3000):
        expr = strategies.expression(rng, schema, rng.choice(list(Type)), depth=1)
        if isinstance(expr, Call):
            used.add(expr.op)
        evaluate(expr, row)
        write_expr(expr, DUCKDB)
    assert used == {*SIGNATURES, "case"}


# Constants.


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (1, REAL),
        (1.0, INT),
        (True, INT),
        (1, BOOL),
        ("a", INT),
        (b"a", TEXT),
        (np.int64(1), INT),
        (np.float64(1), REAL),
        (np.str_("a"), TEXT),
        (datetime(2020, 1, 1), DATE),
        (date(2020, 1, 1), TIME),
        ([], INT),
    ],
)
def test_a_constant_has_exactly_its_declared_type(value, kind):
    with pytest.raises(TypeError, match="value must be of type"):
        Constant(value, kind)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (1 << 63, INT),
        (-(1 << 63) - 1, INT),
        (math.inf, REAL),
        (math.nan, REAL),
        ("a\0b", TEXT),
        ("\ud800", TEXT),
        ("a" * 2001, TEXT),
        (datetime(2020, 1, 1, tzinfo=UTC), TIME),
    ],
)
def test_a_constant_that_not_every_engine_holds_is_refused(value, kind):
    with pytest.raises(ValueError):
        Constant(value, kind)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ((1 << 63) - 1, INT),
        (-(1 << 63), INT),
        (sys.float_info.max, REAL),
        ("a" * 2000, TEXT),
        ("\U0010ffff", TEXT),
        (datetime(9999, 12, 31, 23, 59, 59, 999999), TIME),
    ],
    ids=["the largest integer", "the least integer", "the largest real", "a long text", "any character", "a timestamp"],
)
def test_a_constant_may_be_as_large_as_every_engine_holds(value, kind):
    assert Constant(value, kind).value == value


def test_null_is_of_every_type():
    for kind in Type:
        check_value(None, kind)
        assert Constant(None, kind).type is kind


@pytest.mark.parametrize("bad", ["i", None, int, "INTEGER"])
def test_a_type_is_a_type(bad):
    for make in (lambda: Column("a", bad), lambda: Constant(None, bad)):
        with pytest.raises(TypeError, match="type must be of type Type"):
            make()


VALUES = {
    INT: st.integers(-(1 << 63), (1 << 63) - 1),
    REAL: st.floats(allow_nan=False, allow_infinity=False),
    BOOL: st.booleans(),
    TEXT: st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
    DATE: st.dates(),
    TIME: st.datetimes().map(lambda time: time.replace(fold=0)),
}


@pytest.fixture(scope="module")
def engine():
    with duckdb.connect(config={"threads": "1"}) as connection:
        yield connection


@pytest.mark.long
@given(st.data())
@settings(max_examples=300)
def test_the_engine_reads_every_constant_as_it_is(engine, data):
    kind = data.draw(st.sampled_from(list(Type)))
    values = data.draw(st.lists(VALUES[kind], min_size=1, max_size=20))
    listed = ", ".join(write_expr(Constant(value, kind), DUCKDB) for value in values)
    [(found, types)] = engine.execute(f"SELECT [{listed}] AS v, typeof(v)").fetchall()
    assert [repr(value) for value in found] == [repr(value) for value in values]
    assert types == f"{DUCKDB.types[kind]}[]"


NASTY = [
    "'",
    "''",
    '"',
    "\\",
    "'; DROP TABLE t; --",
    "--",
    "/*",
    "$$",
    "{0}",
    "{all}",
    "%s",
    "\n",
    "\r\n",
    "漢",
    "e\u0301",
    "a\tb",
]


@pytest.mark.parametrize("text", NASTY)
def test_a_constant_cannot_inject_sql(engine, text):
    for expr in (of(text), Call("coalesce", (of(None), of(text)))):
        assert engine.execute(f"SELECT {write_expr(expr, DUCKDB)}").fetchall() == [(text,)]
    equal = Call("equal", (Column("c", TEXT), of(text)))
    engine.execute("CREATE OR REPLACE TABLE one AS SELECT ? AS c", [text])
    assert engine.execute(f"SELECT {write_expr(equal, DUCKDB)} FROM one").fetchall() == [(True,)]


# Names.


@pytest.mark.parametrize("name", [*NASTY, "select", "a.b", "rowid", "1", " ", "k0", "*", "a" * 200])
def test_a_name_cannot_inject_sql(engine, name):
    engine.execute(f"CREATE OR REPLACE TABLE one AS SELECT 7 AS {quote_name(check_name(name))}, 8 AS other")
    assert engine.execute(f"SELECT {write_expr(Column(name, INT), DUCKDB)} FROM one").fetchall() == [(7,)]


@pytest.mark.parametrize("name", ["", ".u0", ".", "a\0", "a" * 201, "\ud800", None, 1, b"a", ["a"]])
def test_an_invalid_name_is_refused(name):
    with pytest.raises((ValueError, TypeError), match="name"):
        Column(name, INT)


def test_the_columns_of_an_expression_are_found():
    expr = Call("case", (Call("less", (N, ONE)), Call("to_real", (N,)), X))
    assert columns_of(expr) == {"n": INT, "x": REAL}
    assert columns_of(ONE) == {}


# Size.


def test_an_expression_is_neither_too_long_nor_too_deep():
    deep = FLAG
    for _ in range(199):
        deep = Call("not", (deep,))
    with pytest.raises(ValueError, match="nested"):
        Call("not", (deep,))
    doubled = N
    while 3 * doubled.size < module._MAX_SIZE:
        doubled = Call("add", (doubled, doubled))
    with pytest.raises(ValueError, match="long"):
        Call("add", (doubled, Call("add", (doubled, doubled))))
    assert Call("one_of", (N, *(ONE,) * 4998)).size == 5000
    with pytest.raises(ValueError, match="long"):
        Call("one_of", (N, *(ONE,) * 4999))


def test_the_size_counts_a_shared_part_as_often_as_it_appears():
    both = Call("add", (N, ONE))
    assert (both.size, both.depth) == (3, 2)
    assert (Call("add", (both, both)).size, Call("add", (both, N)).depth) == (7, 3)


@pytest.mark.long
def test_an_expression_of_the_maximum_weight_is_written_and_run(engine):
    heavy = Call("clip", (X, of(0.0, REAL), of(1.0, REAL)))
    for _ in range(6):  # each writes its argument three times
        heavy = Call("clip", (heavy, of(0.0, REAL), of(1.0, REAL)))
    wide = Call("least", (N,) * 2000)
    deep = N
    while deep.depth < 199:
        deep = Call("negate", (deep,))
    for expr, row in ((heavy, {"x": 7.0}), (wide, {"n": 3}), (deep, {"n": 3})):
        name, value = next(iter(row.items()))
        found = engine.execute(f"SELECT {write_expr(expr, DUCKDB)} FROM (SELECT {value} AS {name})").fetchall()
        assert found == [(evaluate(expr, row),)]


# Patterns.


@pytest.mark.parametrize(
    "pattern",
    [
        "",
        "a",
        "^a.*b$",
        "[a-z0-9]+",
        "[^,;]",
        "(ab|cd)?e{2,3}",
        "\\.\\$\\^",
        "é+",
        "a{3}",
        "a{3,}",
        "x|y$",
        "^$",
        "a-b c_d",
        "()",
        "(a*)*",
    ],
)
def test_a_plain_pattern_is_accepted_and_means_the_same_everywhere(engine, pattern):
    expr = Call("matches", (NAME, of(pattern)))
    rng = random.Random(pattern)
    texts = [
        "",
        "a",
        "ab",
        "abcde",
        "\n",
        "a\n",
        "é",
        ".$^",
        "e",
        "eee",
        "-",
        *("".join(rng.choices("abé.e\n,;x", k=6)) for _ in range(100)),
    ]
    engine.execute("CREATE OR REPLACE TABLE texts AS SELECT unnest(?::VARCHAR[]) AS name", [texts])
    found = engine.execute(f"SELECT {write_expr(expr, DUCKDB)} FROM texts").fetchall()
    assert [value for (value,) in found] == [evaluate(expr, {"name": text}) for text in texts]


@pytest.mark.parametrize(
    "pattern",
    [
        *(
            "(?i)a",
            "(?=a)",
            "(?:a)",
            "(?P<a>b)",
            "\\d",
            "\\w",
            "\\b",
            "\\1",
            "(a)\\1",
            "\\p{L}",
            "[[:alpha:]]",
            "[\\d]",
        ),
        *(
            "a**",
            "a{2}{3}",
            "*a",
            "(a",
            "a)",
            "[a",
            "[z-a]",
            "a{3,2}",
            "a$b",
            "a^b",
            "[]",
            "[^]",
            "\\",
            "a\\",
            "a{100}",
        ),
        *("(a{50}){50}", "((a{20}){20}){20}", "a" * 1001, "a*?", "a++", "\n", "a{,3}", "{", "}"),
        *("((a?){30}){30}", "((a|b){0,30}c?){30}x", "a?" * 400, "((" + "a" * 880 + "){30}){30}"),
    ],
)
def test_no_dialect_writes_a_pattern_that_engines_read_differently(pattern):
    expr = Call("matches", (NAME, of(pattern)))
    for dialect in (DUCKDB, POSTGRES, SPARK):
        with pytest.raises(ValueError, match="regular expression"):
            write_expr(expr, dialect)
        assert "regular expression" in unsupported_reason(Derive(NAMES, (("v", expr),)), dialect)
    with pytest.raises(ValueError, match="regular expression"):
        evaluate(expr, {"name": "a"})


@pytest.mark.long
@given(st.text(st.sampled_from("ab^$.[]()|*+?{}\\-,0123é ^#&~"), max_size=12))
@settings(max_examples=1000)
def test_an_accepted_pattern_never_fails_in_the_engine(engine, pattern):
    expr = Call("matches", (NAME, of(pattern)))
    try:
        write_expr(expr, DUCKDB)
    except ValueError:
        return
    for text in ("", "a", "ab\n", "(a)*{2}", "é", "a,b-0"):
        found = engine.execute(f"SELECT {write_expr(expr, DUCKDB)} FROM (SELECT ? AS name)", [text]).fetchall()
        assert found == [(evaluate(expr, {"name": text}),)]


@pytest.mark.long
@given(
    st.text(st.sampled_from("ab%_\\é"), max_size=8),
    st.lists(st.text(st.sampled_from("abAB%_\\éÉ\n"), max_size=6), max_size=8),
)
@settings(max_examples=400)
def test_an_accepted_like_pattern_never_fails_in_the_engine(engine, pattern, texts):
    for op in ("like", "like_any_case"):
        try:
            expr = Call(op, (NAME, of(pattern)))
        except ValueError:
            assert (len(pattern) - len(pattern.rstrip("\\"))) % 2  # the only reason
            continue
        rows = [{"name": text} for text in (*texts, pattern, pattern.replace("\\", ""), pattern[:-1])]
        listed = ", ".join(f"({write_expr(of(row['name']), DUCKDB)})" for row in rows)
        found = engine.execute(f"SELECT {write_expr(expr, DUCKDB)} FROM (VALUES {listed}) AS t(name)").fetchall()
        assert [value for (value,) in found] == [evaluate(expr, row) for row in rows]


@pytest.mark.parametrize("op", ["like", "like_any_case"])
@pytest.mark.parametrize("pattern", ["\\", "a\\", "a\\\\\\"])
def test_a_pattern_that_ends_with_a_single_backslash_is_refused(op, pattern):
    """DuckDB would stop at it, and only where a row's text is like the rest: one row would decide."""
    with pytest.raises(ValueError, match="backslash"):
        Call(op, (NAME, of(pattern)))


@pytest.mark.parametrize("pattern", ["", "\\\\", "a\\\\", "a\\\\\\\\", "a\\b"])
def test_a_pattern_may_end_with_escaped_backslashes(pattern):
    assert Call("like", (NAME, of(pattern))).type is BOOL


@pytest.mark.parametrize(
    ("op", "first", "low", "high"),
    [
        ("round", (of(1.5, REAL),), -15, 15),
        ("part", (of("text"),), 1, 100_000),
        ("part", (of("text"), ONE), 0, 100_000),
        ("keep_last", (of("text"),), 1, 100_000),
        ("drop_last", (of("text"),), 1, 100_000),
        ("split_part", (of("text"),), -2_000, 2_000),
        ("add_days", (of(date(2020, 1, 1), DATE),), -3_652_059, 3_652_059),
        ("add_seconds", (of(datetime(2020, 1, 1), TIME),), -100_000_000_000, 100_000_000_000),
    ],
)
def test_constants_stay_within_what_every_engine_computes(op, first, low, high):
    last = (ONE,) if op == "part" and len(first) == 1 else (of(","),) if op == "split_part" else ()
    for value in (low, high):
        assert Call(op, (*first, of(value, INT), *last)).type is first[0].type
    for value in (low - 1, high + 1):
        with pytest.raises(ValueError, match="must be an integer"):
            Call(op, (*first, of(value, INT), *last))


def test_texts_are_found_and_replaced_within_bounds():
    for old, new in (("a", ""), ("a", "b" * 8), ("ab", "b" * 16)):
        assert Call("replace", (NAME, of(old), of(new))).type is TEXT
    for op, constants in (
        ("position", (of(""),)),
        ("replace", (of(""), of("a"))),
        ("replace", (of("a"), of("b" * 9))),
        ("replace", (of("ab"), of("b" * 17))),
        ("split_part", (ONE, of(""))),
        ("split_part", (of(0, INT), of(","))),
    ):
        with pytest.raises(ValueError, match=op):
            Call(op, (NAME, *constants))


def test_what_only_looks_like_an_expression_is_refused():
    fake = SimpleNamespace(type=TEXT, name="name", args=(), size=1, depth=1)
    for make in (lambda: Derive(NAMES, (("v", fake),)), lambda: Call("lower", (fake,))):
        with pytest.raises(TypeError, match="expression"):
            make()


def test_texts_cannot_be_doubled_until_the_memory_is_full(engine):
    """Through a chain of relations a text could be joined with itself for ever; it is cut where it is joined."""
    text = "b" * 1500
    for _ in range(3):
        joined = Call("join", (NAME, of("a"), NAME))
        found = engine.execute(f"SELECT {write_expr(joined, DUCKDB)} FROM (SELECT '{text}' AS name)").fetchall()
        text = evaluate(joined, {"name": text})
        assert found == [(text,)]
        assert len(text) == module.MAX_TEXT_LENGTH


def test_a_dialect_may_write_an_operation_by_itself_and_by_the_type_of_the_first_argument():
    own = {"join": "OWN({all})", "round": "ANY({all})", "round r": "REAL({0}; {rest})", "round i": "INTEGER({all})"}
    own |= {"add": "ANY({all})", "length": lambda texts, exprs: f"{len(exprs)} OF {texts[0]}"}
    dialect = replace(DUCKDB, operations={**DUCKDB.operations, "add r": "REAL({all})", "add i": "", **own})
    for expr, sql in (
        (Call("join", (NAME, NAME, NAME)), '(OWN("name", "name", "name"))'),
        (Call("round", (X, ONE)), f'(REAL("x"; {DUCKDB.constant(1, INT)}))'),
        (Call("add", (N, N)), '(ANY("n", "n"))'),
        (Call("length", (NAME,)), '(1 OF "name")'),
    ):
        assert write_expr(expr, dialect) == sql


def test_a_text_is_cut_off_before_it_is_searched_and_after_it_is_joined():
    """Otherwise one long text could take a time that discloses it."""
    cut = 'SUBSTRING("name", 1, 2000)'
    for op in ("like", "like_any_case", "matches", "lower", "upper"):
        constants = (of("a"),) * (len(SIGNATURES[op].split()) - 2)
        for dialect in (DUCKDB, POSTGRES, SPARK):
            written = write_expr(Call(op, (NAME, *constants)), replace(dialect, operations={op: "{all}"}))
            assert written == f"({', '.join([cut, *(write_expr(text, dialect) for text in constants)])})"
    joined = '(SUBSTRING(TRY("name") || TRY("name"), 1, 2000))'
    assert write_expr(Call("join", (NAME, NAME)), DUCKDB) == joined
