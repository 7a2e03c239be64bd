"""Exact numbers: validated arguments, and integer enclosures of exp and log.

Nothing here rounds to nearest. A real function returns a pair of integers `low, high` with low <= value·2^bits <= high,
so that a caller can distinguish "surely below" from "undecided".
"""

import math
import operator
import re
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from itertools import count
from typing import Any, Literal, TypeVar

import numpy as np

Number = int | str | float | Decimal | Fraction
_T = TypeVar("_T")

_NUMBER_TEXT = re.compile(
    r"\s*[+-]?(\d{1,400}/\d{1,400}|(\d{1,400}(\.\d{0,400})?|\.\d{1,400})([eE][+-]?\d{1,3})?)\s*", re.ASCII
)


def as_fraction(value: Any, name: str) -> Fraction:
    """Return a number as an exact fraction; a float means its shortest decimal, so 0.1 is 1/10.

    >>> as_fraction(0.1, "epsilon"), as_fraction("1/3", "epsilon")
    (Fraction(1, 10), Fraction(1, 3))
    """
    if isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be a number, not {value!r}")
    if isinstance(value, Fraction):
        return Fraction(int(value.numerator), int(value.denominator))  # a subclass is read only once
    if isinstance(value, int | np.integer):
        return Fraction(operator.index(value))
    if isinstance(value, float | np.floating | Decimal):
        if not math.isfinite(value):
            raise ValueError(f"{name} must be finite, not {float(value)}")
        return as_fraction(str(value), name)
    if isinstance(value, str):
        # The pattern also rejects "1e999999999", which would exhaust memory.
        if not _NUMBER_TEXT.fullmatch(value) or re.search(r"/0+\s*$", value):
            raise ValueError(f'{name} must be a number such as 0.1, "0.1" or "1/10", not {value[:40]!r}')
        return Fraction(value)
    raise TypeError(f"{name} must be an int, float, Decimal, Fraction or str, not {type(value).__name__}")


def as_positive(value: Any, name: str) -> Fraction:
    """Return a number that must be above zero."""
    return as_fraction_where(lambda number: number > 0, "above 0", value, name)


def as_nonnegative(value: Any, name: str) -> Fraction:
    """Return a number that must not be below zero."""
    return as_fraction_where(lambda number: number >= 0, "at least 0", value, name)


def as_fraction_where(holds: Callable[[Fraction], bool], description: str, value: Any, name: str) -> Fraction:
    """Return a number for which a condition holds; the error message describes it."""
    number = as_fraction(value, name)
    if not holds(number):
        raise ValueError(f"{name} must be {description}, not {_short_text(value)}")
    return number


def as_integer(value: Any, name: str, minimum: int = 0) -> int:
    """Return an integer of at least `minimum`; a bool or a float is refused."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        raise TypeError(f"{name} must be an integer, not {type(value).__name__}")
    number = operator.index(value)
    if number < minimum:
        raise ValueError(f"{name} must be at least {minimum}, not {_short_text(number)}")
    return number


def store_integer(record: Any, name: str, minimum: int = 1) -> int:
    """Store and return a field of a frozen record as a Python integer: those of numpy would wrap around."""
    number = vars(record)[name] = as_integer(getattr(record, name), name, minimum)
    return number


def check_type(expected: type[_T], value: Any, name: str) -> _T:
    """Return the value if it has the expected type; the error message begins with the argument's name."""
    if not isinstance(value, expected):
        raise TypeError(f"{name} must be of type {expected.__name__}, not {type(value).__name__}")
    return value


def _short_text(value: Any) -> str:
    try:
        return f"{value!s:.40}"
    except ValueError:  # Python does not print integers of more than 4,300 digits
        return "a number of thousands of digits"


def exp_bounds(x: Fraction, bits: int) -> tuple[int, int]:
    """Enclose exp(-x)·2^bits for x >= 0 between two integers that differ by at most 2.

    The number of steps depends only on `bits`, so that the time of a private selection hardly depends on x.

    Claim: low <= exp(-x)·2^bits <= high.
    Proof: with r = x/2^k <= 1/2, itself rounded down to a unit of 2^-p, each term t_j of Taylor's series is
        rounded down once, so it is low by at most e_(j-1)·r/j + 1/j·r + 1 <= 2 units (e_1 <= 1). The series
        alternates and decreases, and stops where a term is below one unit (_term_count): the sum is off by
        at most e = 2·(number of terms) + 2. Squaring v <= 2^p that is off by e gives an error of at most
        2·e + 2, so k squarings give 2^k·(e + 2), which the guard bits make less than half a unit of the
        result. From x = bits + 1 on, exp(-x)·2^bits is below 1.
    Needs: nothing.
    Checked by: test_exp_bounds_enclose_the_value
    """
    halvings = (2 * bits + 2).bit_length()
    precision = bits + halvings + 8 + bits.bit_length()
    negligible = x >= bits + 1
    used = Fraction(bits) if negligible else x
    r = (used.numerator << (precision - halvings)) // used.denominator
    total = term = 1 << precision
    terms = _term_count(precision)
    for j in range(1, terms):
        term = (term * r >> precision) // j
        total += -term if j & 1 else term
    error = 2 * terms + 2
    for _ in range(halvings):
        total = total * total >> precision
        error = 2 * error + 2
    guard = precision - bits
    low, high = max(0, (total - error) >> guard), -((-total - error) >> guard)
    return (0, 1) if negligible else (low, high)


@lru_cache(maxsize=256)
def _term_count(precision: int) -> int:
    """Return one more than the least n with (1/2)^n/n! below 2^-precision."""
    return next(n for n in count(1) if math.factorial(n) << n > 1 << precision) + 1


def log_bounds(x: Fraction, bits: int) -> tuple[int, int]:
    """Enclose ln(x)·2^bits for x > 0 between two integers that differ by at most 2.

    Claim: low <= ln(x)·2^bits <= high.
    Proof: x = m·2^k with 1 <= m < 2, ln(m) = 2·artanh((m-1)/(m+1)) and ln 2 = 2·artanh(1/3). The enclosures are added;
        for a negative k the ends of the second change places. The sum is doubled by shifting one bit less.
    Needs: odd_series_bounds.
    Checked by: test_log_bounds_enclose_the_value
    """
    shift = x.numerator.bit_length() - x.denominator.bit_length()
    if x < Fraction(2) ** shift:
        shift -= 1
    mantissa = x / Fraction(2) ** shift
    precision = bits + 12 + bits.bit_length() + abs(shift).bit_length()
    low, high = odd_series_bounds((mantissa - 1) / (mantissa + 1), precision, sign=1)
    shift_low, shift_high = sorted(shift * end for end in odd_series_bounds(Fraction(1, 3), precision, sign=1))
    guard = precision - bits - 1
    return (low + shift_low) >> guard, -(-(high + shift_high) >> guard)


def odd_series_bounds(z: Fraction, precision: int, sign: Literal[1, -1]) -> tuple[int, int]:
    """Enclose (z + sign·z³/3 + z⁵/5 + sign·z⁷/7 + …)·2^precision for 0 <= z <= 1/3: artanh, or arctan with sign -1.

    Claim: low <= artanh(z)·2^precision <= high, or arctan(z) with sign -1.
    Proof: z is rounded down by less than a unit, its square by less than two, and each power by less than
        e/9 + 2/3 + 1 <= 2 units if the previous one by e <= 2. So each of n terms is low by less than 3 units. The
        rest, whose first power is below 2 units, is below 3/2. With sign 1 the sum is never too high.
    Needs: nothing.
    Checked by: test_log_bounds_enclose_the_value, test_the_odd_series_encloses_both_functions
    """
    power = (z.numerator << precision) // z.denominator
    square = power * power >> precision
    total, terms = 0, 0
    while power:
        total += sign**terms * (power // (2 * terms + 1))
        power = power * square >> precision
        terms += 1
    error = 3 * terms + 2
    return (total if sign > 0 else total - error), total + error


def log_up(x: Fraction) -> Fraction:
    """Return ln(x), rounded up by less than 2^-100."""
    return Fraction(log_bounds(x, 104)[1], 1 << 104)


def log_down(x: Fraction) -> Fraction:
    """Return ln(x), rounded down by less than 2^-100."""
    return Fraction(log_bounds(x, 104)[0], 1 << 104)


def round_up(x: Fraction, places: int = 12) -> Fraction:
    """Return x rounded up to `places` decimal places."""
    return -round_down(-x, places)


def round_down(x: Fraction, places: int = 12) -> Fraction:
    """Return x rounded down to `places` decimal places."""
    unit = 10**places
    return Fraction(math.floor(x * unit), unit)


def power_down(x: int, exponent: int, bits: int) -> int:
    """Return (x/2^bits)^exponent·2^bits for 0 <= x <= 2^bits, rounded down."""
    result = 1 << bits
    while exponent:
        if exponent & 1:
            result = result * x >> bits
        x = x * x >> bits
        exponent >>= 1
    return result
