"""Exact numbers: validated arguments, and integer enclosures of exp and log.

Nothing here rounds to nearest. A real function returns a pair of integers `low, high` with low <= value·2^bits <= high,
so that a caller can distinguish "surely below" from "undecided".
"""

import math
import operator
import re
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeVar

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
    number = as_fraction(value, name)
    if number <= 0:
        raise ValueError(f"{name} must be above 0, not {_short_text(value)}")
    return number


def as_nonnegative(value: Any, name: str) -> Fraction:
    """Return a number that must not be below zero."""
    number = as_fraction(value, name)
    if number < 0:
        raise ValueError(f"{name} must be at least 0, not {_short_text(value)}")
    return number


def as_probability(value: Any, name: str) -> Fraction:
    """Return a probability strictly between 0 and 1."""
    number = as_fraction(value, name)
    if not 0 < number < 1:
        raise ValueError(f"{name} must be strictly between 0 and 1, not {_short_text(value)}")
    return number


def as_integer(value: Any, name: str, minimum: int = 0) -> int:
    """Return an integer of at least `minimum`; a bool or a float is refused."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        raise TypeError(f"{name} must be an integer, not {type(value).__name__}")
    number = operator.index(value)
    if number < minimum:
        raise ValueError(f"{name} must be at least {minimum}, not {_short_text(number)}")
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
    Seal: 23212f0539e1
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
    """Return n with (1/2)^n/n! below 2^-precision."""
    n, weight = 0, Fraction(1)
    while weight >= Fraction(1, 1 << precision):
        n += 1
        weight /= 2 * n
    return n + 1


def log_bounds(x: Fraction, bits: int) -> tuple[int, int]:
    """Enclose ln(x)·2^bits for x > 0 between two integers that differ by at most 2.

    Claim: low <= ln(x)·2^bits <= high.
    Proof: x = m·2^k with 1 <= m < 2, ln(m) = 2·(z + z^3/3 + z^5/5 + …) with z = (m-1)/(m+1) < 1/3, and
        ln 2 is the same series at 1/3. Every term is rounded down; the sum of n terms is low by at most
        3·n + 1 units (the rounding of z, of its power and of the quotient, and a tail smaller than the
        last term), twice that after doubling, and (|k| + 1) times that in all.
    Needs: nothing.
    Checked by: test_log_bounds_enclose_the_value
    Seal: 38780501d723
    """
    shift = x.numerator.bit_length() - x.denominator.bit_length()
    if x < Fraction(2) ** shift:
        shift -= 1
    mantissa = x / Fraction(2) ** shift
    precision = bits + 12 + bits.bit_length() + abs(shift).bit_length()
    total, shortfall = _twice_artanh((mantissa - 1) / (mantissa + 1), precision)
    if shift:
        log_two, log_two_shortfall = _twice_artanh(Fraction(1, 3), precision)
        low = total + shift * (log_two if shift > 0 else log_two + log_two_shortfall)
        high = total + shortfall + shift * (log_two + log_two_shortfall if shift > 0 else log_two)
    else:
        low, high = total, total + shortfall
    guard = precision - bits
    return low >> guard, -(-high >> guard)


def _twice_artanh(z: Fraction, precision: int) -> tuple[int, int]:
    """Return 2·artanh(z)·2^precision rounded down, and its maximum error."""
    power = (z.numerator << precision) // z.denominator
    square = power * power >> precision
    total, terms = 0, 0
    while power:
        total += power // (2 * terms + 1)
        power = power * square >> precision
        terms += 1
    return 2 * total, 2 * (3 * terms + 1)


def log_up(x: Fraction) -> Fraction:
    """Return ln(x), rounded up by less than 2^-100."""
    return Fraction(log_bounds(x, 104)[1], 1 << 104)


def log_down(x: Fraction) -> Fraction:
    """Return ln(x), rounded down by less than 2^-100."""
    return Fraction(log_bounds(x, 104)[0], 1 << 104)


def exp_up(x: Fraction) -> Fraction:
    """Return exp(x), rounded up, for x of either sign."""
    if x <= 0:
        return Fraction(exp_bounds(-x, 128)[1], 1 << 128)
    bits = 128 + 3 * math.ceil(x)  # e^x < 2^(1.5·x), so enough bits of e^-x remain for 128 bits of its inverse
    return Fraction(1 << bits, exp_bounds(x, bits)[0])


def odds_for(epsilon: Fraction) -> Fraction:
    """Return exp(epsilon) rounded down to a multiple of 2^-64: the maximum likelihood ratio of a report.

    Claim: the result is at most exp(epsilon), and more than exp(epsilon) - 2^-62.
    Proof: exp(epsilon) = 1/exp(-epsilon), and exp_bounds gives an upper bound of exp(-epsilon)·2^bits with an error
        of at most 2; with bits >= 3·epsilon + 128 its inverse is off by less than 2·exp(2·epsilon)/2^bits < 2^-63.
        Rounding down to 2^-64 subtracts less than one more unit.
    Needs: exp_bounds.
    Checked by: test_odds_are_just_below_the_exponential,
        test_odds_lean_on_the_side_of_the_enclosure_that_hides_more
    Seal: 844d01a10319
    """
    bits = 128 + 3 * math.ceil(epsilon)
    return Fraction((1 << (bits + 64)) // exp_bounds(epsilon, bits)[1], 1 << 64)


def sqrt_up(x: Fraction, digits: int = 12) -> Fraction:
    """Return the square root of x > 0, rounded up to `digits` significant decimal digits."""
    # The root has about half as many digits as x; scale so that the integer root has `digits` of them.
    size = (len(str(x.numerator)) - len(str(x.denominator))) // 2
    unit = Fraction(10) ** (size - digits)
    target = x / (unit * unit)
    root = math.isqrt(math.ceil(target))
    while root * root < target:
        root += 1
    return root * unit


def round_up(x: Fraction, places: int = 12) -> Fraction:
    """Return x >= 0 rounded up to `places` decimal places."""
    unit = 10**places
    return Fraction(math.ceil(x * unit), unit)


def round_down(x: Fraction, places: int = 12) -> Fraction:
    """Return x >= 0 rounded down to `places` decimal places."""
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
