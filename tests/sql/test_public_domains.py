"""Domains: the values that a group may have, from what the policy says of the columns."""

import random
from datetime import date, datetime, timedelta
from fractions import Fraction

import pytest
import sqlglot
from hypothesis import given
from hypothesis import strategies as st

from discreet.engines.reference.evaluate import evaluate, finite_or_null
from discreet.kernel.expr import Call, Column, Constant, Type
from discreet.kernel.question import PublicGroups
from discreet.query.expressions.binder import bind_expr
from discreet.query.expressions.bound_expr import BoundExpr
from discreet.query.expressions.public_domains import domain_of

at = datetime.fromisoformat


def column(name, kind, low=None, high=None, domain=None):
    if kind in (Type.INTEGER, Type.REAL) and low is not None:
        low, high = Fraction(low), Fraction(high)
    return BoundExpr(Column(name, kind), low, high, domain=domain)


COLUMNS = {
    bound.expr.name: bound
    for bound in (
        column("age", Type.INTEGER, 0, 39),
        column("few", Type.INTEGER, 1, 3),
        column("wide", Type.INTEGER, 0, 999_999),
        column("wider", Type.INTEGER, 0, 1_000_000),
        column("code", Type.INTEGER, domain=(30, 10, 20)),
        column("free", Type.INTEGER),
        column("amount", Type.REAL, 0, 250),
        column("open", Type.REAL),
        column("price", Type.REAL, domain=(0.5, 1.5)),
        column("city", Type.TEXT, domain=("Rome", "Oslo", "Bern")),
        column("maybe", Type.TEXT, domain=("yes", "no", None)),
        column("word", Type.TEXT),
        column("flag", Type.BOOLEAN),
        column("day", Type.DATE, date(2010, 1, 30), date(2010, 2, 2)),
        column("long", Type.DATE, date(1, 1, 1), date(9999, 12, 31)),
        column("anyday", Type.DATE),
        column("time", Type.TIMESTAMP, at("2009-11-15 22:30"), at("2010-02-03 23:59:59.999999")),
        column("short", Type.TIMESTAMP, at("2010-01-01 22:30"), at("2010-01-02 01:00")),
        column("whenever", Type.TIMESTAMP),
    )
}


def bound(text):
    node = sqlglot.parse_one(f"SELECT {text}", dialect="postgres").selects[0]
    return bind_expr(node, lambda each: COLUMNS[each.name], "GROUP BY")


def listed(text):
    return domain_of(bound(text).expr, COLUMNS)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("city", ("Rome", "Oslo", "Bern")),
        ("maybe", ("yes", "no", None)),
        ("code", (30, 10, 20)),
        ("price", (0.5, 1.5)),
        ("few", (1, 2, 3)),
        ("flag", (False, True)),
        ("day", tuple(date(2010, 1, 30) + timedelta(days=place) for place in range(4))),
        ("free", None),
        ("amount", None),
        ("open", None),
        ("word", None),
        ("time", None),
        ("anyday", None),
        ("wider", None),
    ],
)
def test_a_column_has_the_values_that_the_policy_says(text, expected):
    assert listed(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("age / 10", (0, 1, 2, 3)),
        ("age % 3", (0, 1, 2)),
        ("few * few", (1, 4, 9)),
        ("few * 10 + few", (11, 22, 33)),
        ("few - 2", (-1, 0, 1)),
        ("-few", (-3, -2, -1)),
        ("ABS(few - 2)", (0, 1)),
        ("code / 10", (1, 2, 3)),
        ("LEAST(few, 2)", (1, 2)),
        ("CLIP(age, 5, 7)", (5, 6, 7)),
        ("FLOOR(age / 10) * 10", (0.0, 10.0, 20.0, 30.0)),
        ("few * 1.5", (1.5, 3.0, 4.5)),
        ("few::text", ("1", "2", "3")),
        ("10 / (few - 2)", (-10, 10, None)),
        ("NULLIF(few, 2)", (1, 3, None)),
        ("UPPER(city)", ("ROME", "OSLO", "BERN")),
        ("LOWER(TRIM(city))", ("rome", "oslo", "bern")),
        ("SUBSTR(city, 2, 1)", ("o", "s", "e")),
        ("LENGTH(city)", (4,)),
        ("city || '!'", ("Rome!", "Oslo!", "Bern!")),
        (
            "CONCAT(maybe, '-', few)",
            ("yes-1", "yes-2", "yes-3", "yes-", "no-1", "no-2", "no-3", "no-", "-1", "-2", "-3", "-"),
        ),
        ("price * 2", (1.0, 3.0)),
        ("UPPER(maybe)", ("YES", "NO", None)),
    ],
)
def test_an_expression_is_computed_over_the_values_of_its_columns(text, expected):
    assert listed(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("age >= 18", (False, True)),
        ("amount > 100", (False, True)),
        ("city IN ('Rome')", (False, True)),
        ("word LIKE 'a%'", (False, True)),
        ("open IS NULL", (False, True)),
        ("CASE WHEN age < 18 THEN 'minor' ELSE 'adult' END", ("minor", "adult")),
        ("CASE WHEN age >= 18 THEN 'b' WHEN age >= 0 THEN 'a' END", ("b", "a")),
        ("CASE WHEN age < 18 THEN 'minor' END", ("minor", None)),
        ("CASE WHEN age > 100 THEN 'old' ELSE 'young' END", ("old", "young")),
        ("CASE WHEN amount > 100 THEN 'high' ELSE 'low' END", ("high", "low")),
        ("CASE WHEN amount > 100 THEN 'high' END", ("high", None)),
        ("CASE WHEN word LIKE 'z%' THEN 2 WHEN word LIKE 'a%' THEN 1 ELSE 3 END", (2, 1, 3)),
        ("CASE WHEN word = 'x' THEN city ELSE 'other' END", ("other", "Rome", "Oslo", "Bern")),
        ("CASE WHEN flag THEN few ELSE 0 END", (0, 1, 2, 3)),
        ("CASE WHEN flag THEN word ELSE 'x' END", None),
        ("CASE WHEN flag THEN free ELSE 0 END", None),
        ("CASE city WHEN 'Rome' THEN 'south' ELSE 'north' END", ("south", "north")),
        ("CASE WHEN city = 'Rome' THEN 1.5 ELSE 2.5 END", (1.5, 2.5)),
        ("COALESCE(city, 'none')", ("none", "Rome", "Oslo", "Bern")),
        ("COALESCE(maybe, 'none')", ("none", "yes", "no")),
        ("UPPER(COALESCE(city, 'none'))", ("ROME", "OSLO", "BERN", "NONE")),
        ("COALESCE(few, 0)", (0, 1, 2, 3)),
        ("COALESCE(word, 'none')", None),
        ("CASE WHEN few IS NULL THEN -1 ELSE few END", (-1, 1, 2, 3)),
        ("CASE WHEN LN(amount) > 1 THEN few END", (1, 2, 3, None)),
        ("GREATEST(few, CASE WHEN amount > 1 THEN 2 ELSE 0 END)", (0, 1, 2, 3)),
    ],
)
def test_conditions_and_choices_have_few_values(text, expected):
    assert listed(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("EXTRACT(MONTH FROM time)", tuple(range(1, 13))),
        ("EXTRACT(MONTH FROM whenever)", tuple(range(1, 13))),
        ("EXTRACT(DOW FROM whenever)", tuple(range(7))),
        ("EXTRACT(ISODOW FROM whenever)", tuple(range(1, 8))),
        ("EXTRACT(HOUR FROM time)", tuple(range(24))),
        ("EXTRACT(QUARTER FROM time)", (1, 2, 3, 4)),
        ("EXTRACT(YEAR FROM time)", (2009, 2010)),
        ("EXTRACT(YEAR FROM whenever)", None),
        ("EXTRACT(MONTH FROM day)", (1, 2)),
        ("EXTRACT(DAY FROM day)", (1, 2, 30, 31)),
        ("EXTRACT(YEAR FROM long)", tuple(range(1, 10000))),
        ("EXTRACT(HOUR FROM time) / 12", tuple(hour / 12 for hour in range(24))),
        ("EXTRACT(HOUR FROM time)::int / 12", (0, 1)),
        (
            "EXTRACT(YEAR FROM time) * 100 + EXTRACT(QUARTER FROM time)",
            (200901, 200902, 200903, 200904, 201001, 201002, 201003, 201004),
        ),
        ("DATE_TRUNC('month', time)", tuple(map(at, ("2009-11-01", "2009-12-01", "2010-01-01", "2010-02-01")))),
        ("DATE_TRUNC('quarter', time)", tuple(map(at, ("2009-10-01", "2010-01-01")))),
        ("DATE_TRUNC('year', time)", tuple(map(at, ("2009-01-01", "2010-01-01")))),
        (
            "DATE_TRUNC('hour', short)",
            tuple(map(at, ("2010-01-01 22:00", "2010-01-01 23:00", "2010-01-02 00:00", "2010-01-02 01:00"))),
        ),
        ("DATE_TRUNC('day', short)", tuple(map(at, ("2010-01-01", "2010-01-02")))),
        ("DATE_TRUNC('month', day)", tuple(map(at, ("2010-01-01", "2010-02-01")))),
        ("DATE_TRUNC('month', day)::date", (date(2010, 1, 1), date(2010, 2, 1))),
        ("DATE_TRUNC('month', time)::date", (date(2009, 11, 1), date(2009, 12, 1), date(2010, 1, 1), date(2010, 2, 1))),
        ("DATE_TRUNC('month', short - INTERVAL '1 day')", (at("2009-12-01"), at("2010-01-01"))),
        ("DATE_TRUNC('month', whenever)", None),
        ("DATE_TRUNC('second', time)", None),
        ("short::date", (date(2010, 1, 1), date(2010, 1, 2))),
        ("day + 1", (date(2010, 1, 31), date(2010, 2, 1), date(2010, 2, 2), date(2010, 2, 3))),
        ("day - '2010-01-30'", (0, 1, 2, 3)),
        ("short + INTERVAL '1 day'", None),
    ],
)
def test_dates_and_times_have_the_windows_and_parts_of_their_range(text, expected):
    assert listed(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("FLOOR(amount / 100)", (0.0, 1.0, 2.0)),
        ("FLOOR(amount / 100) * 100", (0.0, 100.0, 200.0)),
        ("CEIL(amount / 100)", (0.0, 1.0, 2.0, 3.0)),
        ("ROUND(amount, -2)", (0.0, 100.0, 200.0, 300.0)),
        ("ROUND(amount / 1000, 1)", (0.0, 0.1, 0.2, 0.3)),
        ("(amount / 100)::int", (0, 1, 2, 3)),
        ("SIGN(amount)", (0.0, 1.0)),
        ("TRUNC(amount / 100)", (0.0, 1.0, 2.0, 3.0)),
        ("FLOOR(CLIP(open, 0, 2))", (0.0, 1.0, 2.0)),
        ("FLOOR(open)", None),
        ("amount / 100", None),
        ("SQRT(amount)", None),
        ("FLOOR(amount * 1000000)", None),
    ],
)
def test_rounded_reals_have_the_multiples_in_their_range(text, expected):
    assert listed(text) == expected


def test_a_million_values_are_listed_and_one_more_is_not():
    assert listed("wide") == tuple(range(1_000_000))
    assert listed("wider") is None
    assert listed("wide / 10") == tuple(range(100_000))
    assert listed("wide * 10") is None


def test_many_days_are_listed_up_to_a_million():
    assert len(listed("day")) == 4
    assert listed("long") is None
    assert len(listed("DATE_TRUNC('year', long)")) == 9999
    assert listed("DATE_TRUNC('year', long)")[-1] == at("9999-01-01")


@pytest.mark.long(only=["second"])
@pytest.mark.parametrize("window", ["year", "quarter", "month", "week", "day", "hour", "minute", "second"])
def test_windows_are_listed_without_a_gap_to_the_last(window):
    low, high = at("2009-12-30 23:58:59"), at("2010-03-02 00:00:00")
    if window in ("minute", "second"):
        high = at("2010-01-01 00:00:01")
    time = column("time", Type.TIMESTAMP, low, high)
    expr = Call(f"trunc_{window}", (time.expr,))
    found = domain_of(expr, {"time": time})
    wanted, moment = [], low
    while moment < high:
        wanted.append(evaluate(expr, {"time": moment}))
        moment += timedelta(seconds=1) if window in ("minute", "second") else timedelta(minutes=59)
    assert found == tuple(dict.fromkeys([*wanted, evaluate(expr, {"time": high})]))


def test_work_is_bounded_for_many_conditions():
    """Twenty conditions on a real have 3^20 outcomes: the written values are listed instead."""
    conditions = " ".join(f"WHEN amount < {place} THEN '{place:02}'" for place in range(20))
    assert listed(f"CASE {conditions} ELSE 'more' END") == (*(f"{place:02}" for place in range(20)), "more")
    assert listed(f"CASE {conditions} END") == (*(f"{place:02}" for place in range(20)), None)
    assert listed(f"UPPER(CASE {conditions} END)") is None


@pytest.mark.long
def test_nested_case_expressions_are_visited_once():
    text = "city"
    for place in range(40):
        text = f"CASE WHEN word = '{place}' THEN {text} ELSE 'x{place}' END"
    assert len(listed(text)) == 43


def test_a_domain_is_computed_lazily():
    assert bound("day > '2010-01-01'").domain is None
    assert bound("age / 10").domain is None
    assert bound("city").domain == ("Rome", "Oslo", "Bern")


def test_every_domain_can_be_the_keys_of_a_question():
    for text in (
        "age / 10",
        "FLOOR(amount)",
        "maybe",
        "DATE_TRUNC('week', time)",
        "COALESCE(maybe, 'yes')",
        "few * 0 - 0.0",
    ):
        PublicGroups((listed(text),))


KINDS = {
    "age": (
        "age",
        "few",
        "code",
        "EXTRACT(HOUR FROM time)::int",
        "EXTRACT(YEAR FROM time)::int",
        "(amount / 50)::int",
        "7",
    ),
    "city": ("city", "maybe", "few::text", "'x'", "SUBSTR(city, 1, 2)", "CASE WHEN amount > 9 THEN 'a' ELSE city END"),
}
NUMBER_SHAPES = (
    "{0} + {1}",
    "{0} * {1}",
    "{0} / {1}",
    "{0} % {1}",
    "COALESCE({0}, {1})",
    "NULLIF({0}, {1})",
    "LEAST({0}, {1})",
)
NUMBER_SHAPES += ("CASE WHEN {0} > {1} THEN {0} ELSE {1} END", "CASE WHEN {0} > {1} THEN {0} END", "ABS({0} - {1})")
TEXT_SHAPES = ("{0} || {1}", "CONCAT({0}, {1})", "COALESCE({0}, {1})", "NULLIF({0}, {1})", "UPPER({0})", "LEFT({0}, 3)")
TEXT_SHAPES += ("CASE WHEN {0} LIKE 'R%' THEN {0} ELSE {1} END", "CASE WHEN {0} < {1} THEN 'less' END")


def some_row(chance):
    row = {}
    for name, bound in COLUMNS.items():
        if bound.domain is not None:
            row[name] = chance.choice(bound.domain)
        elif bound.type is Type.INTEGER:
            row[name] = chance.randrange(40) if name == "age" else chance.randrange(1, 4)
        elif bound.type is Type.REAL:
            row[name] = chance.choice((0.0, 250.0, 250 * chance.random()))
        elif bound.type is Type.TIMESTAMP and bound.low is not None:
            row[name] = bound.low + (bound.high - bound.low) * chance.random()
        else:
            row[name] = None
    return row


@pytest.mark.long(but=["city-shapes1"])
@pytest.mark.parametrize(("start", "shapes"), [("age", NUMBER_SHAPES), ("city", TEXT_SHAPES)])
def test_every_value_of_an_expression_is_in_its_domain(start, shapes):
    chance = random.Random(f"domains of {start}")
    found = 0
    for _ in range(120):
        text = chance.choice(KINDS[start])
        for _ in range(chance.randrange(1, 4)):
            text = chance.choice(shapes).format(f"({text})", chance.choice(KINDS[start]))
        expr = bound(text).expr
        domain = domain_of(expr, COLUMNS)
        if domain is None:
            continue
        found += 1
        assert len(set(domain)) == len(domain)
        for _ in range(20):
            row = some_row(chance)
            value = finite_or_null(evaluate(expr, row))
            assert value in domain, (text, row)
            value = evaluate(expr, {**row, chance.choice(list(row)): None})
            assert value is None or value in domain, (text, row)
    assert found > 80


def test_an_undeclared_column_has_no_domain():
    assert domain_of(Column("x", Type.INTEGER), {}) is None
    assert domain_of(Column("x", Type.BOOLEAN), {}) == (False, True)
    assert domain_of(Constant("a", Type.TEXT), {}) == ("a",)


@given(st.integers(-3000, 3000), st.integers(0, 400), st.integers(1, 90), st.booleans())
def test_bins_of_integers_are_found_as_if_every_value_were_computed(first, count, width, whole):
    values = tuple(range(first, first + count + 1))
    column = BoundExpr(Column("x", Type.INTEGER), domain=values)
    expr = Call("divide", (column.expr, Constant(width, Type.INTEGER)))
    expr = expr if whole else Call("floor", (Call("to_real", (expr,)),))
    assert domain_of(expr, {"x": column}) == tuple(dict.fromkeys(evaluate(expr, {"x": value}) for value in values))
