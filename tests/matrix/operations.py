"""Values and calls that exercise every operation on any engine."""

import math
import random
import struct
from contextlib import suppress
from datetime import date, datetime, timedelta
from itertools import product

import strategies
from strategies import DATE, INT, REAL, TEXT, TIME

from discreet.engines.portable_regex import check_regex, expand_regex
from discreet.kernel.expr import SIGNATURES, Call, Column, Constant, Type
from discreet.kernel.sqlgen.expr_sql import write_expr


def values_of(kind, count=0):
    """Return NULL, the values of a type that break things, and so many others."""
    rng = random.Random(f"values of {kind}")
    pool = [None, *strategies.POOLS[kind]]
    if kind is REAL:
        drawn = [struct.unpack("d", struct.pack("Q", rng.getrandbits(64)))[0] for _ in range(count)]
        drawn += [rng.randint(-(10**6), 10**6) / rng.choice([2, 4, 10, 1000]) for _ in range(count)]
        pool += [*strategies.STRANGE, 709.0, 709.5, -708.5, 0.5, -0.5, 1.5, 4503599627370497.5, *drawn]
    if kind is INT:
        pool += [rng.getrandbits(64) - (1 << 63) for _ in range(count)]
    if kind is TEXT:
        pool.append(strategies.LONG)
        letters = "aAbß %_\\'\n.é\u0301İ0123456789-:T 👩"
        pool += ["".join(rng.choices(letters, k=rng.randint(0, 8))) for _ in range(count)]
        pool += [f"{rng.randint(0, 3000):04}-{rng.randint(0, 13):02}-{rng.randint(0, 32):02}" for _ in range(count)]
        pool += [f"2020-02-29 {rng.randint(0, 25):02}:{rng.randint(0, 61):02}" for _ in range(count)]
    if kind is TIME:
        pool += [datetime(1, 1, 1) + timedelta(seconds=3e11 * rng.random()) for _ in range(count)]
    if kind is DATE:
        pool += [date.fromordinal(rng.randint(1, date.max.toordinal())) for _ in range(count)]
    return pool


def same(one, other):
    """Whether two values are the same, NaN included, and of one type."""
    if isinstance(one, float) and isinstance(other, float):
        return one == other or (math.isnan(one) and math.isnan(other))
    return one == other and type(one) is type(other)


def typings(op):
    """Return the types of an operation's arguments, in every way."""
    *wanted, _ = SIGNATURES[op].split()
    if wanted[-1].endswith("*"):
        wanted = [*wanted[:-1], wanted[-1][0], wanted[-1][0]] if "!" not in wanted[-1] else [*wanted, wanted[-1]]
    free = {"N": (INT, REAL), "A": tuple(Type)}.get(wanted[0][0], (None,))
    return [[(Type(text[0]) if text[0] in "irbtds" else kind, "!" in text) for text in wanted] for kind in free]


def constants_of(op, kinds):
    """Return lists of constants for the arguments that must be constants."""
    if op == "matches":
        return [[Constant(text, TEXT)] for text in strategies.PATTERNS]
    if op in {"like", "like_any_case"}:
        return [[Constant(text, TEXT)] for text in strategies.LIKES]
    if op in strategies.SEARCHES:
        return [
            [Constant(value, kind) for value, kind in zip(values, kinds, strict=True)]
            for values in strategies.SEARCHES[op]
        ]
    if op in strategies.SPANS:
        return [[Constant(value, INT) for value in values] for values in product(*strategies.SPANS[op])]
    rng = random.Random(op)
    pools = [strategies.POOLS[kind] for kind in kinds]
    return [[Constant(rng.choice(pool), kind) for pool, kind in zip(pools, kinds, strict=True)] for _ in range(5)]


def trials(op, most=1500):
    """Give calls of an operation for every typing: the schema, the calls, and rows for them."""
    rng = random.Random(op)
    for typing in typings(op):
        schema = {f"c{place}": kind for place, (kind, fixed) in enumerate(typing) if not fixed}
        fixed = [kind for kind, held in typing if held]
        count = 200 if len(schema) == 1 else 8
        values = product(*(values_of(kind, count) for kind in schema.values()))
        rows = [dict(zip(schema, each, strict=True)) for each in values]
        columns = tuple(Column(name, kind) for name, kind in schema.items())
        calls = [Call(op, (*columns, *held)) for held in constants_of(op, fixed)[:40]] if fixed else [Call(op, columns)]
        yield schema, calls, rng.sample(rows, min(len(rows), most))


def of_nulls(op):
    """Give calls of an operation on NULLs, for every typing."""
    for typing in typings(op):
        fixed = iter(constants_of(op, [kind for kind, held in typing if held])[0])
        yield Call(op, tuple(next(fixed) if held else Constant(None, kind) for kind, held in typing))


# Operations by example.

KINDS = {int: INT, float: REAL, bool: Type.BOOLEAN, str: TEXT, date: DATE, datetime: TIME}
LEAST, MOST = -(1 << 63), (1 << 63) - 1
INF, NAN = math.inf, math.nan


def call_of(op, values):
    """Call an operation on values: its constants as constants, the others as columns; a NULL is of the other's type."""
    *wanted, _ = SIGNATURES.get(op, "A* A").split()
    wanted += [wanted[-1]] * (len(values) - len(wanted))
    known = next((KINDS[type(value)] for value in values if value is not None), TEXT)
    kinds = [Type(text[0]) if text[0] in "irbtds" else known for text in wanted]
    args = tuple(
        Constant(value, kind) if "!" in text else Column(f"c{place}", kind)
        for place, (value, kind, text) in enumerate(zip(values, kinds, wanted, strict=True))
    )
    return Call(op, args), {f"c{place}": value for place, value in enumerate(values)}


MEANINGS = [
    ("add", (MOST, 1), None),
    ("add", (1, None), None),
    ("add", (1e308, 1e308), INF),
    ("subtract", (LEAST, 1), None),
    ("multiply", (1 << 40, 1 << 40), None),
    ("multiply", (-1e308, 10.0), -INF),
    ("divide", (-7, 2), -3),
    ("divide", (7, -2), -3),
    ("divide", (LEAST, -1), None),
    ("divide", (1, 0), None),
    ("divide", (1.0, -0.0), None),
    ("divide", (1e308, 0.1), INF),
    ("modulo", (-7, 2), -1),
    ("modulo", (7, -2), 1),
    ("modulo", (LEAST, -1), 0),
    ("modulo", (1, 0), None),
    ("negate", (LEAST,), None),
    ("abs", (LEAST,), None),
    ("abs", (-2.5,), 2.5),
    ("sign", (-3,), -1),
    ("sign", (NAN,), 0.0),
    ("floor", (-2.5,), -3.0),
    ("ceil", (-2.5,), -2.0),
    ("floor", (INF,), INF),
    ("round", (2.5, 0), 3.0),
    ("round", (-2.5, 0), -3.0),
    ("round", (0.49999999999999994, 0), 0.0),
    ("round", (1250.0, -2), 1300.0),
    ("round", (1e308, 15), 1e308),
    ("sqrt", (-1.0,), None),
    ("ln", (0.0,), None),
    ("log10", (1000.0,), 3.0),
    ("exp", (710.0,), None),
    ("exp", (NAN,), None),
    ("exp", (-1e9,), math.exp(-708)),
    ("power", (0.0, -1.0), None),
    ("power", (-1.0, 0.5), None),
    ("power", (10.0, 400.0), None),
    ("power", (2.0, 10.0), 1024.0),
    ("power", (INF, -1.0), None),
    ("power", (1.0, NAN), None),
    ("power", (10.0, 307.5), None),
    ("power", (-10.0, -307.5), None),
    ("power", (10.0, -308.0), 0.0),
    ("power", (-10.0, -3.0), -0.001),
    ("power", (0.0, 0.0), 1.0),
    ("least", (None, 3, 2), 2),
    ("greatest", (None, 3, 2), 3),
    ("least", (None, None), None),
    ("greatest", (NAN, 1e308), NAN),
    ("clip", (7, 0, 5), 5),
    ("clip", (NAN, 0.0, 5.0), 5.0),
    ("inside", (7, 0, 5), None),
    ("inside", (5, 0, 5), 5),
    ("inside", (NAN, 0.0, 5.0), None),
    ("to_integer", (2.5,), 2),
    ("to_integer", (3.5,), 4),
    ("to_integer", (1e19,), None),
    ("to_integer", (NAN,), None),
    ("read_integer", ("+12",), 12),
    ("read_integer", (" 12",), None),
    ("read_integer", ("1" * 19,), None),
    ("read_real", ("1e999",), None),
    ("read_real", ("1e200",), None),
    ("read_real", ("-1.5E+199",), -1.5e199),
    ("read_real", ("9" * 100 + "." + "9" * 100 + "e-199",), 1e-99),
    ("read_real", ("1" * 101,), None),
    ("read_real", ("nan",), None),
    ("read_date", ("2021-02-30",), None),
    ("read_date", ("0000-01-01",), None),
    ("read_date", ("2020-02-29",), date(2020, 2, 29)),
    ("read_timestamp", ("2021-01-01T10:11:12.5",), datetime(2021, 1, 1, 10, 11, 12, 500000)),
    ("read_timestamp", ("2021-01-01 24:00",), None),
    ("write_boolean", (True,), "true"),
    ("write_date", (date(1, 1, 1),), "0001-01-01"),
    ("equal", (NAN, NAN), True),
    ("equal", (0.0, -0.0), True),
    ("equal", (None, None), None),
    ("less", (INF, NAN), True),
    ("at_most", ("a", "B"), False),
    ("and", (None, False), False),
    ("and", (None, True), None),
    ("or", (None, True), True),
    ("or", (None, False), None),
    ("not", (None,), None),
    ("is_null", (None,), True),
    ("one_of", (None, 1), None),
    ("one_of", (3, 1, 3), True),
    ("coalesce", (None, 2, 3), 2),
    ("nullif", (1, 1), None),
    ("nullif", (1, None), 1),
    ("nullif", (None, 1), None),
    ("lower", ("İA",), "ia"),
    ("upper", ("ßﬀᾀa",), "ẞﬀᾈA"),
    ("trim", ("  a\t ",), "a\t"),
    ("length", ("e\u0301👩‍👩‍👧",), 7),
    ("part", ("a👩b", 2, 1), "👩"),
    ("part", ("ab", 3, 5), ""),
    ("keep_last", ("a👩b", 2), "👩b"),
    ("keep_last", ("ab", 100_000), "ab"),
    ("drop_last", ("a👩b", 1), "a👩"),
    ("drop_last", ("ab", 3), ""),
    ("position", ("e\u0301👩b", "b"), 4),
    ("position", ("ab", "B"), 0),
    ("position", ("a" * 2000 + "b", "b"), 0),
    ("replace", ("aaa%", "aa", "b"), "ba%"),
    ("replace", ("a" * 2000, "a", "bcdefghi"), "bcdefghi" * 250),
    ("replace", ("a.b", ".", ""), "ab"),
    ("split_part", ("a, b, c", 2, ", "), "b"),
    ("split_part", ("aaa", 2, "aa"), "a"),
    ("split_part", ("aaa", -1, "aa"), "a"),
    ("split_part", ("a,b,c", -3, ","), "a"),
    ("split_part", ("a,b,c", -4, ","), ""),
    ("split_part", ("a,b,c", 4, ","), ""),
    ("split_part", ("", 1, ","), ""),
    ("split_part", ("a|b", 1, "|"), "a"),
    ("join", ("a", None), None),
    ("join", ("a" * 2000, "b"), "a" * 2000),
    ("upper", ("a" * 2001,), "A" * 2000),
    ("like", ("a" * 2000 + "b", "%b"), False),
    ("matches", ("a" * 2000 + "b", "a$"), True),
    ("like", ("a%", "a\\%"), True),
    ("like", ("ab", "a\\%"), False),
    ("like", ("a\nb", "a_b"), True),
    ("like_any_case", ("ÉA", "é_"), True),
    ("matches", ("a\n", "a$"), False),
    ("matches", ("xa", "b|a$"), True),
    ("matches", ("a$", "a\\$"), True),
    ("matches", ("a\nb", "a.b"), False),
    ("week", (datetime(2021, 1, 3),), 53),
    ("dow", (datetime(2021, 1, 3),), 0),
    ("isodow", (datetime(2021, 1, 3),), 7),
    ("quarter", (datetime(2021, 12, 3),), 4),
    ("second", (datetime(2021, 12, 3, 1, 2, 3, 999999),), 3),
    ("trunc_quarter", (datetime(2021, 12, 3, 1),), datetime(2021, 10, 1)),
    ("trunc_week", (datetime(1, 1, 7, 1),), datetime(1, 1, 1)),
    ("trunc_minute", (datetime(2021, 12, 3, 1, 2, 3),), datetime(2021, 12, 3, 1, 2)),
    ("days_between", (date(1, 1, 1), date(9999, 12, 31)), 3_652_058),
    ("add_days", (date(9999, 12, 31), 1), None),
    ("add_seconds", (datetime(2020, 12, 31, 23, 59, 59), 1), datetime(2021, 1, 1)),
    ("add_seconds", (datetime(1, 1, 1), -1), None),
    ("add", (2, 3), 5),
    ("add", (0.5, 0.25), 0.75),
    ("subtract", (7, 2), 5),
    ("subtract", (0.5, 0.25), 0.25),
    ("multiply", (7, 2), 14),
    ("multiply", (3.0, 0.5), 1.5),
    ("divide", (3.0, 0.5), 6.0),
    ("negate", (3,), -3),
    ("abs", (-3,), 3),
    ("sign", (-2.5,), -1.0),
    ("sqrt", (0.0,), 0.0),
    ("sqrt", (6.25,), 2.5),
    ("ln", (1.0,), 0.0),
    ("log10", (0.0,), None),
    ("exp", (0.0,), 1.0),
    ("exp", (709.0,), math.exp(709)),
    ("power", (-10.0, 309.0), None),
    ("power", (10.0, 307.0), 1e307),
    ("power", (10.0, -307.0), 1e-307),
    ("power", (10.0, -400.0), 0.0),
    ("greatest", (1, None, 5, 3, 2), 5),
    ("least", (4, None, 5, 3, 6), 3),
    ("clip", (-1, 0, 5), 0),
    ("clip", (3, 0, 5), 3),
    ("less", (1, 1), False),
    ("at_most", (1, 1), True),
    ("days_between", (date(2020, 1, 1), date(2020, 3, 1)), 60),
    ("add_days", (date(9999, 12, 30), 1), date(9999, 12, 31)),
    ("add_days", (date(1, 1, 1), -1), None),
    ("add_days", (date(1, 1, 2), -1), date(1, 1, 1)),
    ("add_seconds", (datetime(9999, 12, 31, 23, 59, 59), 1), None),
]


def without_meaning(dialect, fetch_one):
    """Return the cases to which an engine gives another meaning; their arguments are columns of one row."""
    columns, values = [], {}
    for place, (op, args, _) in enumerate(MEANINGS):
        call, row = call_of(op, args)
        names = {name: f"c{place}_{name}" for name in row}
        held = [Column(names[arg.name], arg.type) if isinstance(arg, Column) else arg for arg in call.args]
        columns.append(f"{write_expr(Call(op, tuple(held)), dialect)} AS v{place}")
        for arg in (arg for arg in call.args if isinstance(arg, Column)):
            values[names[arg.name]] = _written(row[arg.name], arg.type, dialect)
    source = f"SELECT {', '.join(f'{value} AS {name}' for name, value in values.items())} OFFSET 0"
    found = fetch_one(f"SELECT {', '.join(columns)} FROM ({source}) AS t")
    return [(*case, value) for case, value in zip(MEANINGS, found, strict=True) if not same(value, case[2])]


def _written(value, kind, dialect):
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return f"CAST({'NULL' if value is None else repr(str(value))} AS {dialect.types[kind]})"
    return dialect.constant(value, kind)


# Patterns of the kernel's language.

_PARTS = ["a", "b-d", "0-9", "A", "_", ",", ":", ".", "@", "#", " ", ";"]
_TIMES = ["", "", "", "*", "+", "?", "{2}", "{1,2}", "{0,1}", "{2,}", "{0}"]


def pattern(rng):
    """Draw a regular expression; the kernel may refuse it."""
    return rng.choice(["", "", "^"]) + _ways(rng, 2) + rng.choice(["", "", "$"])


def _ways(rng, depth):
    return "|".join(_row(rng, depth) for _ in range(rng.choice([1, 1, 1, 2, 2, 3])))


def _row(rng, depth):
    return "".join(_atom(rng, depth) + rng.choice(_TIMES) for _ in range(rng.randint(0, 3)))


def _atom(rng, depth):
    draw = rng.random()
    if draw < 0.45:
        return rng.choice("abc019 -:é.")
    if draw < 0.55:
        return "\\" + rng.choice(".\\^$|?*+()[]{}/-")
    if draw < 0.75:
        inner = "".join(rng.choices(_PARTS, k=rng.randint(1, 3)))
        return f"[{rng.choice(['', '^'])}{inner}{rng.choice(['', '', '-'])}]"
    return f"({_ways(rng, depth - 1)})" if depth else "a"


def large_patterns(count):
    """Draw patterns that are nearly as large as the kernel takes, written out."""
    rng, found = random.Random("large"), []
    while len(found) < count:
        drawn = _large(rng, 5)
        with suppress(ValueError):
            check_regex(drawn)
            found += [drawn] if expand_regex(drawn).transitions > 1200 else []
    return found


def _large(rng, depth):
    draw = rng.random()
    if depth == 0 or draw < 0.25:
        return rng.choice(["a", "b", ".", "[a-z]", "[^a]", "é", "[0-9a-f]"])
    if draw < 0.5:
        return "".join(_large(rng, depth - 1) for _ in range(rng.randint(1, 6)))
    inner = "|".join(_large(rng, depth - 1) for _ in range(rng.randint(1, 3)))
    times = ["*", "+", "?", "{1,}", f"{{0,{rng.randint(1, 60)}}}", f"{{{rng.randint(1, 60)}}}"]
    return f"({inner}){rng.choice(times)}"


def short_texts(rng, count):
    """Draw texts of the letters that patterns are made of."""
    letters = "abcd019 -:é.\\^$|?*+()[]{}/_,@#;A%\n\r"
    return ["".join(rng.choices(letters, k=rng.randint(0, 7))) for _ in range(count)]
