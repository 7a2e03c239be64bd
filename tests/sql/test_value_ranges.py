"""Ranges and steps: what follows from the ends of the columns, and that no value lies outside."""

import math
import random
from datetime import date, datetime, timedelta
from fractions import Fraction

import pytest

from discreet.kernel.expr import Call, Column, Constant, Type
from discreet.query.expressions.bound_expr import BoundExpr
from discreet.query.expressions.value_ranges import (
    bound_call,
    bound_constant,
    is_null,
    range_of,
    truncate,
)

at = datetime.fromisoformat
INTEGER, REAL, BOOLEAN, TEXT, DATE, TIMESTAMP = Type
HALF = Fraction(1, 2)
INT64 = 1 << 63


def column(name, kind, low=None, high=None, step=None):
    if kind in (INTEGER, REAL) and low is not None:
        low, high = Fraction(low), Fraction(high)
    return BoundExpr(Column(name, kind), low, high, step)


COLUMNS = {
    bound.expr.name: bound
    for bound in (
        column("a", INTEGER, -7, 12, Fraction(1)),
        column("b", INTEGER, 1, 9, Fraction(1)),
        column("c", INTEGER, -3, -1),
        column("w", INTEGER, -(1 << 62), 1 << 62),
        column("p", INTEGER),
        column("x", REAL, "-2.5", 4, Fraction(1, 4)),
        column("y", REAL, "0.25", 8, HALF),
        column("z", REAL, 0, 1),
        column("q", REAL),
        column("f", BOOLEAN),
        column("t", TEXT),
        column("d", DATE, date(2009, 11, 28), date(2010, 3, 5)),
        column("e", DATE),
        column("s", TIMESTAMP, at("2009-12-30 22:15"), at("2010-02-03 04:05:06")),
    )
}
A, B, C, W, P, X, Y, Z, Q, F, T, D, E, S = COLUMNS.values()


def ends(bound):
    return bound.low, bound.high


def number(value):
    return bound_constant(value, INTEGER if isinstance(value, int) else REAL)


@pytest.mark.parametrize(
    ("op", "args", "low", "high"),
    [
        ("add", (A, B), -6, 21),
        ("subtract", (A, B), -16, 11),
        ("multiply", (A, B), -63, 108),
        ("multiply", (A, C), -36, 21),
        ("multiply", (X, X), -10, 16),
        ("add", (A, P), None, None),
        ("add", (W, W), -INT64, None),
        ("multiply", (W, B), None, None),
        ("divide", (A, number(10)), 0, 1),
        ("divide", (A, number(-2)), -6, 3),
        ("divide", (A, B), -7, 12),
        ("divide", (A, A), -12, 12),
        ("divide", (A, P), -12, 12),
        ("divide", (B, C), -9, 0),
        ("divide", (P, B), None, None),
        ("divide", (A, number(0)), None, None),
        ("divide", (X, Y), -10, 16),
        ("divide", (X, number(3.0)), Fraction(-5, 6), Fraction(4, 3)),
        ("divide", (X, Z), None, None),
        ("divide", (X, Q), None, None),
        ("modulo", (A, number(5)), -4, 4),
        ("modulo", (B, number(5)), 0, 4),
        ("modulo", (B, number(-50)), 0, 9),
        ("modulo", (C, number(5)), -3, 0),
        ("modulo", (P, number(5)), -4, 4),
        ("modulo", (A, P), None, None),
        ("modulo", (A, number(0)), None, None),
        ("negate", (A,), -12, 7),
        ("abs", (A,), 0, 12),
        ("abs", (C,), 1, 3),
        ("abs", (Q,), 0, None),
        ("sign", (A,), -1, 1),
        ("sign", (Y,), 1, 1),
        ("sign", (Q,), -1, 1),
        ("floor", (X,), -3, 4),
        ("ceil", (X,), -2, 4),
        ("round", (X, number(0)), -3, 4),
        ("round", (Y, number(1)), Fraction(2, 10), 8),
        ("round", (bound_constant(1234.5, REAL), number(-2)), 1200, 1200),
        ("sqrt", (Y,), HALF, None),
        ("sqrt", (bound_constant(-4.0, REAL),), None, None),
        ("sqrt", (column("r", REAL, -9, 16),), 0, 4),
        ("ln", (Z,), None, 0),
        ("ln", (column("r", REAL, 1, 1),), 0, 0),
        ("log10", (column("r", REAL, "0.01", 1000),), -2, 3),
        ("exp", (column("r", REAL, -1000, 0),), 0, 1),
        ("exp", (Q,), 0, None),
        ("exp", (column("r", REAL, 0, 1000),), 1, None),
        ("power", (X, bound_constant(2.0, REAL)), 0, 16),
        ("power", (X, bound_constant(3.0, REAL)), Fraction("-15.625"), 64),
        ("power", (X, bound_constant(0.0, REAL)), 1, 1),
        ("power", (Y, bound_constant(-1.0, REAL)), Fraction(1, 8), 4),
        ("power", (X, bound_constant(-1.0, REAL)), None, None),
        ("power", (X, bound_constant(0.5, REAL)), None, None),
        ("power", (Y, Z), Fraction(1, 4), 8),
        ("power", (Q, bound_constant(2.0, REAL)), None, None),
        ("least", (A, B), -7, 12),
        ("least", (A, number(5)), -7, 5),
        ("least", (P, number(5)), None, 5),
        ("greatest", (A, number(5)), 5, 12),
        ("greatest", (Q, bound_constant(0.0, REAL)), 0, None),
        ("clip", (A, number(0), number(5)), 0, 5),
        ("clip", (A, number(-50), number(50)), -7, 12),
        ("clip", (A, number(20), number(30)), 20, 20),
        ("clip", (P, number(0), number(5)), 0, 5),
        ("inside", (A, number(0), number(50)), 0, 12),
        ("inside", (P, number(0), number(50)), 0, 50),
        ("inside", (A, number(20), number(30)), None, None),
        ("coalesce", (A, number(50)), -7, 50),
        ("coalesce", (A, P), None, None),
        ("nullif", (A, B), -7, 12),
        ("case", (F, A, number(50)), -7, 50),
        ("case", (F, A, bound_constant(None, INTEGER)), -7, 12),
        ("case", (F, A, F, B, P), None, None),
        ("to_real", (A,), -7, 12),
        ("to_integer", (X,), -3, 4),
        ("as_integer", (F,), 0, 1),
        ("read_integer", (T,), None, None),
        ("length", (T,), 0, None),
        ("year", (S,), 2009, 2010),
        ("month", (S,), 1, 12),
        ("dow", (S,), 0, 6),
        ("isodow", (S,), 1, 7),
        ("week", (S,), 1, 53),
        ("doy", (S,), 1, 366),
        ("second", (S,), 0, 59),
        ("days_between", (D, D), -97, 97),
        ("days_between", (D, E), None, None),
        ("to_date", (S,), date(2009, 12, 30), date(2010, 2, 3)),
        ("to_timestamp", (D,), at("2009-11-28"), at("2010-03-05")),
        ("trunc_year", (S,), at("2009-01-01"), at("2010-01-01")),
        ("trunc_quarter", (S,), at("2009-10-01"), at("2010-01-01")),
        ("trunc_week", (S,), at("2009-12-28"), at("2010-02-01")),
        ("trunc_hour", (S,), at("2009-12-30 22:00"), at("2010-02-03 04:00")),
        ("trunc_second", (S,), S.low, S.high),
        ("add_days", (D, number(30)), date(2009, 12, 28), date(2010, 4, 4)),
        ("add_days", (D, number(3_000_000)), None, None),
        ("add_seconds", (S, number(-60)), at("2009-12-30 22:14"), at("2010-02-03 04:04:06")),
        (
            "clip",
            (D, bound_constant(date(2010, 1, 1), DATE), bound_constant(date(2010, 1, 31), DATE)),
            date(2010, 1, 1),
            date(2010, 1, 31),
        ),
        ("clip", (T, bound_constant("a", TEXT), bound_constant("b", TEXT)), None, None),
        ("less", (A, B), None, None),
        ("lower", (T,), None, None),
    ],
)
def test_bounds_of_expressions_follow_from_bounds_of_columns(op, args, low, high):
    found = range_of(Call(op, tuple(arg.expr for arg in args)), {**COLUMNS, "r": args[0]})
    if (op, low) == ("sqrt", HALF):
        high = found.high
        assert Fraction(math.sqrt(8)) < high < Fraction(math.sqrt(8)) + Fraction(1, 10**9)
    assert ends(found) == (low, high)


@pytest.mark.parametrize(
    ("op", "args", "step"),
    [
        ("add", (A, B), 1),
        ("add", (X, Y), Fraction(1, 4)),
        ("add", (X, bound_constant(0.5, REAL)), Fraction(1, 4)),
        ("add", (X, bound_constant(0.1, REAL)), None),
        ("add", (X, Z), None),
        ("subtract", (Y, bound_constant(2.5, REAL)), HALF),
        ("multiply", (X, bound_constant(-3.0, REAL)), Fraction(3, 4)),
        ("multiply", (bound_constant(10, INTEGER), A), 10),
        ("multiply", (A, C), 1),
        ("multiply", (X, Y), None),
        ("multiply", (X, bound_constant(0.0, REAL)), None),
        ("divide", (Y, bound_constant(4.0, REAL)), Fraction(1, 8)),
        ("divide", (A, number(4)), 1),
        ("divide", (Y, Y), None),
        ("negate", (X,), Fraction(1, 4)),
        ("abs", (X,), Fraction(1, 4)),
        ("to_real", (A,), 1),
        ("floor", (Z,), 1),
        ("round", (Z, number(2)), Fraction(1, 100)),
        ("round", (X, number(-1)), 10),
        ("coalesce", (X, bound_constant(0.1, REAL)), Fraction(1, 4)),
        ("case", (F, X, Y), Fraction(1, 4)),
        ("case", (F, X, Z), None),
        ("case", (F, bound_constant(1, INTEGER), bound_constant(0, INTEGER)), 1),
        ("clip", (X, bound_constant(0.1, REAL), bound_constant(0.9, REAL)), Fraction(1, 4)),
        ("clip", (P, number(0), number(5)), 1),
        ("add", (P, P), None),
        ("multiply", (column("r", INTEGER, 0, 1 << 30), column("r", INTEGER, 0, 1 << 30)), None),
        ("sqrt", (X,), None),
        ("month", (S,), 1),
        ("days_between", (D, D), 1),
    ],
)
def test_a_step_is_kept_where_it_is_exact(op, args, step):
    assert bound_call(op, *args).step == step


def test_operations_on_constants_are_constants():
    assert bound_call("add", bound_constant(0.1, REAL), bound_constant(0.2, REAL)).expr == Constant(0.3, REAL)
    assert bound_call("divide", number(1), number(0)).expr == Constant(None, INTEGER)
    assert bound_call("add", number(INT64 - 1), number(1)).expr == Constant(None, INTEGER)
    assert bound_call("lower", bound_constant("ABC", TEXT)).expr == Constant("abc", TEXT)
    assert bound_call("month", bound_constant(at("2010-05-01"), TIMESTAMP)).expr == Constant(5, INTEGER)
    assert bound_call("sqrt", bound_constant(4.0, REAL)).expr == Constant(2.0, REAL)
    assert bound_call("add", bound_constant(None, REAL), bound_constant(1.0, REAL)).expr == Constant(None, REAL)
    assert is_null(bound_call("less", bound_constant(None, INTEGER), number(1)))


def test_what_engines_round_differently_or_a_pattern_slows_down_is_not_computed():
    assert isinstance(bound_call("ln", bound_constant(2.0, REAL)).expr, Call)
    assert isinstance(
        bound_call("like", bound_constant("aaaaaaaa", TEXT), bound_constant("%a%a%a%a%a%b", TEXT)).expr, Call
    )


def test_a_range_with_one_end_is_none_until_the_other_end_is_known():
    size = bound_call("abs", Q)
    assert not size.has_range
    assert ends(bound_call("least", size, bound_constant(5.0, REAL))) == (0, 5)
    assert A.has_range


def test_bounds_stay_short_however_often_they_are_multiplied():
    found = column("v", REAL, Fraction(1, 3), Fraction(9, 7))
    for _ in range(60):
        square = bound_call("multiply", found, found)
        found = BoundExpr(Column("v", REAL), square.low, square.high)
        low, high = ends(found)
        assert low is None or low.denominator.bit_length() < 1200
        assert high is None or high.denominator.bit_length() < 1200
    assert found.high is None


@pytest.mark.parametrize("window", ["year", "quarter", "month", "week", "day", "hour", "minute", "second"])
def test_a_window_begins_at_or_before_its_moments_and_once(window):
    moment = at("2009-12-28 23:59:59.5")
    for _ in range(300):
        begin = truncate(window, moment)
        assert begin <= moment
        assert truncate(window, begin) == begin
        moment += timedelta(hours=29, minutes=31, seconds=7.25)


# An evaluator in exact fractions: ranges are computed as if doubles did not round.


def fits(value):
    return value if value is None or -INT64 <= value < INT64 else None


def rounded(value, places=0):
    scale = Fraction(10) ** places
    return Fraction(math.floor(abs(value) * scale + HALF)) / scale * (1 if value >= 0 else -1)


def quotient(x, y):
    return None if y == 0 else math.trunc(Fraction(x) / y) if isinstance(x, int) else x / y


def floated(function):
    def compute(value):
        try:
            return Fraction(function(float(value)))
        except (ValueError, OverflowError):
            return None

    return compute


def power(x, y):
    try:
        found = Fraction(x) ** int(y) if y.denominator == 1 and abs(y) <= 64 else Fraction(math.pow(float(x), float(y)))
    except (ValueError, OverflowError, ZeroDivisionError):
        return None
    return found


EXACT = {
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "multiply": lambda x, y: x * y,
    "divide": quotient,
    "modulo": lambda x, y: None if y == 0 else abs(x) % abs(y) * (-1 if x < 0 else 1),
    "negate": lambda x: -x,
    "abs": abs,
    "sign": lambda x: type(x)((x > 0) - (x < 0)),
    "floor": lambda x: Fraction(math.floor(x)),
    "ceil": lambda x: Fraction(math.ceil(x)),
    "round": rounded,
    "sqrt": floated(math.sqrt),
    "ln": floated(math.log),
    "log10": floated(math.log10),
    "exp": floated(math.exp),
    "power": power,
    "clip": lambda x, low, high: min(max(x, low), high),
    "inside": lambda x, low, high: x if low <= x <= high else None,
    "to_real": Fraction,
    "to_integer": round,
    "days_between": lambda x, y: (y - x).days,
    "to_date": datetime.date,
    "to_timestamp": lambda day: datetime.combine(day, datetime.min.time()),
    "add_days": lambda day, days: day + timedelta(days=days),
    "add_seconds": lambda moment, seconds: moment + timedelta(seconds=seconds),
    "year": lambda moment: moment.year,
    "month": lambda moment: moment.month,
    "quarter": lambda moment: (moment.month + 2) // 3,
    "week": lambda moment: moment.isocalendar().week,
    "dow": lambda moment: moment.isoweekday() % 7,
    "hour": lambda moment: moment.hour,
    "trunc_month": lambda moment: moment.replace(day=1, hour=0, minute=0, second=0),
    "trunc_day": lambda moment: moment.replace(hour=0, minute=0, second=0),
    "trunc_hour": lambda moment: moment.replace(minute=0, second=0),
}


def exact(expr, row):
    if isinstance(expr, Column):
        return row[expr.name]
    if isinstance(expr, Constant):
        return Fraction(str(expr.value)) if expr.type is REAL and expr.value is not None else expr.value
    args = [exact(arg, row) for arg in expr.args]
    if expr.op in LENIENT:
        return LENIENT[expr.op](args, [arg for arg in args if arg is not None])
    found = None if None in args else EXACT[expr.op](*args)
    return fits(found) if expr.type is INTEGER else found


LENIENT = {
    "case": lambda args, _: args[1] if args[0] else args[2],
    "coalesce": lambda _, present: next(iter(present), None),
    "least": lambda _, present: min(present, default=None),
    "greatest": lambda _, present: max(present, default=None),
    "nullif": lambda args, _: None if args[0] == args[1] else args[0],
}


class Builder:
    """Builds expressions of every type at random."""

    def __init__(self, chance):
        self.chance = chance

    def build(self, kind, depth):
        if depth == 0 or self.chance.random() < 0.15:
            return self.leaf(kind)
        ops = (*BY_TYPE[kind], "case")
        op = self.chance.choice(ops)
        kinds = SIGNATURES.get(op, (kind, kind))
        if op == "case":
            return Call(op, (F.expr, *(self.build(kind, depth - 1) for _ in range(2))))
        if op in ("clip", "inside"):
            low, high = sorted(self.chance.randrange(-8, 9) for _ in range(2))
            return Call(op, (self.build(kind, depth - 1), self.constant(low, kind), self.constant(high, kind)))
        if op in SMALL:
            constant = Constant(self.chance.randrange(*SMALL[op]), INTEGER)
            return Call(op, (self.build(kind, depth - 1), constant))
        return Call(op, tuple(self.build(kind if each is None else each, depth - 1) for each in kinds))

    def leaf(self, kind):
        if kind in (INTEGER, REAL) and self.chance.random() < 0.4:
            return self.constant(self.chance.randrange(-12, 25), kind)
        return COLUMNS[self.chance.choice([name for name, bound in COLUMNS.items() if bound.type is kind])].expr

    def constant(self, value, kind):
        return Constant(value if kind is INTEGER else value / 4, kind)


NUMERIC = (
    *("add", "subtract", "multiply", "divide", "negate", "abs", "sign", "least", "greatest", "coalesce", "nullif"),
    *("clip", "inside"),
)
BY_TYPE = {
    INTEGER: (*NUMERIC, "modulo", "to_integer", "days_between", "year", "month", "quarter", "week", "dow", "hour"),
    REAL: (*NUMERIC, "floor", "ceil", "round", "sqrt", "ln", "log10", "exp", "power", "to_real"),
    DATE: ("add_days", "to_date", "coalesce", "least"),
    TIMESTAMP: ("add_seconds", "to_timestamp", "trunc_month", "trunc_day", "trunc_hour", "greatest"),
}
SMALL = {"round": (-1, 3), "add_days": (-9, 9), "add_seconds": (-9999, 9999)}
SIGNATURES = {
    **dict.fromkeys(("negate", "abs", "sign", "trunc_month", "trunc_day", "trunc_hour"), (None,)),
    **dict.fromkeys(("floor", "ceil", "sqrt", "ln", "log10", "exp", "to_integer"), (REAL,)),
    **dict.fromkeys(("year", "month", "quarter", "week", "dow", "hour", "to_date"), (TIMESTAMP,)),
    "to_real": (INTEGER,),
    "to_timestamp": (DATE,),
    "days_between": (DATE, DATE),
}


def some_value(chance, bound):
    """Take a value within a column's range, often at an end, sometimes NULL."""
    if chance.random() < 0.1:
        return None
    if bound.type is BOOLEAN:
        return chance.random() < 0.5
    low, high = ends(bound)
    if low is None:
        low, high = {INTEGER: (-(10**6), 10**6), REAL: (-1000, 1000), DATE: (date(2000, 1, 1), date(2020, 1, 1))}[
            bound.type
        ]
    if chance.random() < 0.4:
        found = chance.choice((low, high))
    elif bound.type is DATE:
        found = low + timedelta(days=chance.randrange((high - low).days + 1))
    elif bound.type is TIMESTAMP:
        found = low + timedelta(seconds=chance.randrange(int((high - low).total_seconds()) + 1))
    else:
        found = low + Fraction(chance.randrange(65), 64) * (high - low)
    return math.floor(found) if bound.type is INTEGER else Fraction(found) if bound.type is REAL else found


@pytest.mark.long
@pytest.mark.parametrize("kind", [INTEGER, REAL, DATE, TIMESTAMP], ids=lambda kind: kind.name.lower())
def test_no_value_lies_outside_the_range_of_any_expression(kind):
    chance = random.Random(f"ranges of {kind.name}")
    bounded = 0
    for _ in range(3000):
        expr = Builder(chance).build(kind, chance.randrange(1, 5))
        found = range_of(expr, COLUMNS)
        low, high = ends(found)
        bounded += low is not None and high is not None
        for _ in range(6):
            row = {name: some_value(chance, bound) for name, bound in COLUMNS.items() if bound.type is not TEXT}
            value = exact(expr, row)
            if value is not None:
                assert low is None or low <= value, (expr, row)
                assert high is None or value <= high, (expr, row)
    assert bounded > 700


@pytest.mark.long
def test_a_range_is_attained():
    """A range that is far too wide would pass the test above: here every end is a value."""
    chance = random.Random("tight")
    for op, args in (
        ("multiply", (A, C)),
        ("divide", (A, B)),
        ("subtract", (X, Y)),
        ("abs", (A,)),
        ("modulo", (A, number(5))),
    ):
        expr = Call(op, tuple(arg.expr for arg in args))
        found = ends(range_of(expr, COLUMNS))
        rows = [
            {name: some_value(chance, bound) for name, bound in COLUMNS.items() if name in "abcxy"} for _ in range(3000)
        ]
        values = [value for row in rows if (value := exact(expr, row)) is not None]
        assert (min(values), max(values)) == found
