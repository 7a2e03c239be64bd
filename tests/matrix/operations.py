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
