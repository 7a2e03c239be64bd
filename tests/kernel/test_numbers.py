"""Numbers are read as they were meant, and real functions lie where their enclosures say."""

import math
import random
import time
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.kernel import numbers
from discreet.kernel.numbers import (
    as_fraction,
    as_integer,
    as_nonnegative,
    as_positive,
    exp_bounds,
    log_bounds,
    log_down,
    log_up,
    odd_series_bounds,
    power_down,
    round_down,
    round_up,
    store_integer,
)
from discreet.privacy.probability import as_probability

RANDOM = random.Random(20)


def fractions_of_all_sizes(count, low=-60, high=60):
    """Return positive fractions from 10^low to 10^high, with short and long numerators."""
    found = []
    for _ in range(count):
        digits = RANDOM.choice([1, 2, 5, 20, 60])
        mantissa = Fraction(RANDOM.randrange(1, 10**digits), RANDOM.randrange(1, 10**digits))
        found.append(mantissa * Fraction(10) ** RANDOM.randrange(low, high))
    return found


def real(x):
    return mpmath.mpf(x.numerator) / x.denominator


def near(x, count=40):
    """Return fractions close to a number, on both sides."""
    return [x + sign * Fraction(1, 10**k) for k in range(1, count) for sign in (-1, 1)]


BITS = (1, 2, 8, 15, 63, 64, 128, 160, 400)


@pytest.mark.parametrize("bits", BITS)
def test_exp_bounds_enclose_the_value(bits):
    xs = [Fraction(0), Fraction(1), Fraction(1, 2), Fraction(bits), Fraction(bits) + 1, Fraction(10**30)]
    xs += [x for x in fractions_of_all_sizes(400) if x < 10**6] + fractions_of_all_sizes(400, -3, 3)
    # Where the result passes through a power of two, and through the least that is told from zero.
    xs += near(Fraction(str(bits * 0.6931471805599453))) + [x for x in near(Fraction(bits + 1)) if x > 0]
    xs += [Fraction(RANDOM.randrange(0, 1 << 80), 1 << 74) for _ in range(300)]
    with mpmath.workprec(bits + 400):
        for x in xs:
            low, high = exp_bounds(x, bits)
            value = mpmath.ldexp(mpmath.exp(-real(x)), bits) if x < 10**6 else mpmath.mpf(0)
            assert low <= value <= high, (x, bits)
            assert low >= 0
            assert high - low <= 2
    assert exp_bounds(Fraction(0), bits)[0] >= (1 << bits) - 2


@pytest.mark.parametrize("bits", BITS)
def test_log_bounds_enclose_the_value(bits):
    xs = [Fraction(1), Fraction(2), Fraction(1, 2), Fraction(4), Fraction(3), Fraction(1, 3), Fraction(10) ** 300]
    xs += (
        [1 / x for x in xs] + fractions_of_all_sizes(600) + near(Fraction(1)) + near(Fraction(2)) + near(Fraction(1, 2))
    )
    xs += [Fraction(2) ** RANDOM.randrange(-2000, 2000) for _ in range(30)]
    signs = set()
    with mpmath.workprec(bits + 400):
        for x in xs:
            low, high = log_bounds(x, bits)
            value = mpmath.ldexp(mpmath.log(real(x)), bits)
            assert low <= value <= high, (x, bits)
            assert high - low <= 2
            signs.add(mpmath.sign(value))
    assert signs == {-1, 0, 1}
    low, high = log_bounds(Fraction(1), bits)
    assert low <= 0 <= high


def beside(value, distance):
    """Return fractions on both sides of an mpmath number, much closer to it than any enclosure here."""
    sign, mantissa, exponent, _ = value._mpf_
    near_value = (-1) ** sign * Fraction(int(mantissa)) * Fraction(2) ** exponent
    return near_value * (1 - distance), near_value * (1 + distance)


@pytest.mark.parametrize("bits", [*range(1, 9), 15, 63, 64, 128, 400, 2000])
def test_exp_bounds_enclose_values_that_are_almost_integers(bits):
    """An enclosure that is too narrow by any part of a unit ends on the wrong side of such a value."""
    tops = (
        range(1, 1 << bits)
        if bits < 7
        else [1, 2, (1 << bits) - 1, *(RANDOM.randrange(1, 1 << bits) for _ in range(99))]
    )
    with mpmath.workprec(2 * bits + 300):
        for n in tops:
            smaller, larger = beside(-mpmath.log(mpmath.ldexp(n, -bits)), Fraction(1, 1 << (bits + 200)))
            for (low, high), (least, most) in (
                (exp_bounds(smaller, bits), (n, n + 1)),
                (exp_bounds(larger, bits), (n - 1, n)),
            ):
                assert low <= least < most <= high <= low + 2, (n, bits)


def test_guard_bits_of_the_exponential_cover_as_many_squarings_as_are_needed(monkeypatch):
    precisions = []
    terms = numbers._term_count
    monkeypatch.setattr(numbers, "_term_count", lambda precision: precisions.append(precision) or terms(precision))
    for bits in range(1, 600):
        exp_bounds(Fraction(1), bits)
        halvings = (2 * bits + 1).bit_length()  # the least that bring everything up to bits + 1 down to 1/2
        assert precisions.pop() >= bits + halvings + 8 + bits.bit_length()


def test_the_work_for_an_exponential_does_not_grow_with_the_exponent():
    assert exp_bounds(Fraction(1 << 10**5), 64) == (0, 1)  # its powers would fill the memory


@pytest.mark.parametrize("bits", [1, 2, 3, 8, 15, 63, 64, 128, 400])
def test_log_bounds_enclose_values_that_are_almost_integers(bits):
    tops = [
        1,
        2,
        -1,
        -2,
        *(RANDOM.randrange(-60 << bits, 60 << bits) for _ in range(60)),
        3000 << bits,
        -(3000 << bits),
    ]
    with mpmath.workprec(2 * bits + 5000):
        for n in tops:
            smaller, larger = beside(mpmath.exp(mpmath.ldexp(n, -bits)), Fraction(1, 1 << (bits + 200)))
            for (low, high), (least, most) in (
                (log_bounds(larger, bits), (n, n + 1)),
                (log_bounds(smaller, bits), (n - 1, n)),
            ):
                assert low <= least < most <= high <= low + 2, (n, bits)


def test_rounded_logarithms_lie_on_their_side():
    with mpmath.workprec(800):
        for x in fractions_of_all_sizes(200, -20, 20):
            log = mpmath.log(real(x))
            assert 0 <= real(log_up(x)) - log < mpmath.mpf(2) ** -100
            assert 0 <= log - real(log_down(x)) < mpmath.mpf(2) ** -100


@pytest.mark.parametrize("precision", [1, 8, 64, 200, 1000])
def test_the_terms_that_the_exponential_leaves_out_are_below_a_unit(precision):
    """The last that is summed is below a unit already, and the one before is not."""
    last = numbers._term_count(precision) - 1
    assert Fraction(1, 2**last * math.factorial(last)) < Fraction(1, 2**precision)
    assert Fraction(1, 2 ** (last - 1) * math.factorial(last - 1)) >= Fraction(1, 2**precision)


@pytest.mark.parametrize("precision", [1, 8, 64, 200, 1000])
def test_the_odd_series_encloses_both_functions(precision):
    arguments = [
        Fraction(0),
        Fraction(1, 3),
        Fraction(1, 5),
        Fraction(1, 239),
        Fraction(1, 10**40),
        Fraction(333, 1000),
    ]
    with mpmath.workprec(precision + 200):
        for z in [*arguments, *(Fraction(n, 100) for n in range(1, 34))]:
            for sign, function in ((1, mpmath.atanh), (-1, mpmath.atan)):
                low, high = odd_series_bounds(z, precision, sign)
                assert low <= mpmath.ldexp(function(real(z)), precision) <= high
                assert high - low <= 4 * precision + 4


@pytest.mark.long
@settings(deadline=None, derandomize=True)
@given(st.fractions(min_value=0), st.integers(0, 20))
def test_rounding_is_in_the_stated_direction_and_by_less_than_a_unit(x, digits):
    unit = Fraction(1, 10**digits)
    assert 0 <= round_up(x, digits) - x < unit
    assert 0 <= x - round_down(x, digits) < unit
    assert (round_up(x, digits) / unit).denominator == 1
    assert (round_down(x, digits) / unit).denominator == 1


@pytest.mark.parametrize(
    ("given_", "meant"),
    [
        (0.1, Fraction(1, 10)),
        (0.01, Fraction(1, 100)),
        (1e-300, Fraction(1, 10**300)),
        (5e-324, Fraction(5, 10**324)),
        (1.7976931348623157e308, Fraction(17976931348623157 * 10**292)),
        (-0.0, Fraction(0)),
        (np.float64(0.1), Fraction(1, 10)),
        (np.float32(0.1), Fraction(1, 10)),
        (np.float16(0.1), Fraction(1, 10)),
        (3, Fraction(3)),
        (10**400, Fraction(10**400)),
        (np.int8(-7), Fraction(-7)),
        (np.uint64(2**64 - 1), Fraction(2**64 - 1)),
        (Fraction(2, 6), Fraction(1, 3)),
        ("1/10", Fraction(1, 10)),
        (" -3/4 ", Fraction(-3, 4)),
        ("0.1", Fraction(1, 10)),
        (".5", Fraction(1, 2)),
        ("2.", Fraction(2)),
        ("+1e-9", Fraction(1, 10**9)),
        ("1E3", Fraction(1000)),
    ],
)
def test_numbers_are_parsed_exactly(given_, meant):
    found = as_fraction(given_, "epsilon")
    assert type(found) is Fraction
    assert found == meant


@pytest.mark.long
@settings(deadline=None, derandomize=True)
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_means_its_shortest_text(x):
    assert as_fraction(x, "x") == Fraction(repr(x))
    assert float(as_fraction(x, "x")) == x


REFUSED = [
    True,
    False,
    np.True_,
    np.array(True),  # noqa: FBT003
    np.array([1, 2]),
    float("nan"),
    float("inf"),
    float("-inf"),
    np.float32("nan"),
    np.float64("inf"),
    "",
    " ",
    "nan",
    "inf",
    "Infinity",
    "abc",
    "0x10",
    "1_000",
    "1,5",
    "1 2",
    "--1",
    "1/-2",
    "1/2/3",
    "1.5/2",
    "1e5/2",
    "1/0",
    "1/00",
    "1/0 ",
    "1/\u0660",
    "1e999999999",
    "1e-999999999",
    "1e1000",
    "1" * 10**6,
    "1/" + "3" * 10**6,
    " " * 10**6,
    "1" + " " * 10**6 + "x",
    "1\x00",
    "½",
    1j,
    None,
    b"1",
    [1],
    (1, 2),
    {},
    Decimal("NaN"),
    Decimal("Infinity"),
    object(),
]


@pytest.mark.parametrize("value", REFUSED, ids=lambda value: f"{type(value).__name__}-{str(value)[:12]!r}")
@pytest.mark.parametrize("read", [as_fraction, as_positive, as_nonnegative, as_probability])
def test_a_non_number_is_refused_by_name(read, value):
    start = time.process_time()  # its own work, however busy the machine is
    with pytest.raises((TypeError, ValueError), match=r"\bepsilon\b") as caught:
        read(value, "epsilon")
    assert type(caught.value) in {TypeError, ValueError}
    assert len(str(caught.value)) < 200
    assert time.process_time() - start < 2


@pytest.mark.parametrize(
    ("read", "value"),
    [
        (as_positive, 0),
        (as_positive, -1),
        (as_positive, "-1/10"),
        (as_positive, -0.0),
        (as_positive, -(10**5000)),
        (as_nonnegative, -1e-300),
        (as_nonnegative, "-1e-400"),
        (as_nonnegative, -(10**5000)),
        (as_probability, 0),
        (as_probability, 1),
        (as_probability, 1.0),
        (as_probability, "11/10"),
        (as_probability, -0.5),
        (as_probability, 10**5000),
    ],
    ids=range(14),
)
def test_numbers_out_of_range_are_refused_by_name(read, value):
    with pytest.raises(ValueError, match=r"\bdelta\b"):
        read(value, "delta")


def test_numbers_at_the_ends_of_their_range_are_read():
    assert as_positive("1e-400", "x") == Fraction(1, 10**400)
    assert as_nonnegative(0, "x") == 0
    assert as_nonnegative(-0.0, "x") == 0
    assert as_probability("1e-400", "x") > 0
    assert as_probability(0.9999999999999999, "x") < 1


@pytest.mark.parametrize("value", [7, np.int16(7), np.uint64(7)])
def test_integers_are_read(value):
    found = as_integer(value, "count")
    assert type(found) is int
    assert found == 7


@pytest.mark.parametrize(
    "value", [True, np.False_, 7.0, np.float64(7), "7", Fraction(7), None, np.array([1, 2]), 7j, float("nan")]
)
def test_a_non_integer_is_refused_by_name(value):
    with pytest.raises(TypeError, match=r"\bcount\b"):
        as_integer(value, "count")


@pytest.mark.parametrize(("value", "least"), [(-1, 0), (0, 1), (-(10**5000), 0)], ids=range(3))
def test_integers_below_the_least_are_refused_by_name(value, least):
    with pytest.raises(ValueError, match=r"\bcount\b"):
        as_integer(value, "count", least)
    assert as_integer(least, "count", least) == least


def test_integers_are_at_least_0_unless_another_minimum_is_named():
    assert as_integer(0, "count") == 0
    with pytest.raises(ValueError, match=r"\bcount\b"):
        as_integer(-1, "count")


def test_a_stored_integer_of_a_frozen_record_is_pythons():
    @dataclass(frozen=True)
    class Record:
        rows: int

    record = Record(np.int8(100))
    assert store_integer(record, "rows") == 100
    assert (type(record.rows), record.rows) == (int, 100)
    assert store_integer(Record(1), "rows") == 1
    assert store_integer(Record(-5), "rows", minimum=-5) == -5
    for bad, error in ((0, ValueError), (1.0, TypeError), (True, TypeError)):
        with pytest.raises(error, match=r"\brows\b"):
            store_integer(Record(bad), "rows")


def test_numbers_are_rounded_in_the_named_direction():
    third = Fraction(1, 3)
    assert (round_up(third, 2), round_down(third, 2)) == (Fraction(34, 100), Fraction(33, 100))
    assert (round_up(-third, 2), round_down(-third, 2)) == (Fraction(-33, 100), Fraction(-34, 100))
    assert (round_up(third), round_down(third)) == (
        Fraction(333_333_333_334, 10**12),
        Fraction(333_333_333_333, 10**12),
    )
    assert round_up(Fraction(7, 100), 2) == round_down(Fraction(7, 100), 2) == Fraction(7, 100)


@pytest.mark.parametrize("bits", [8, 64])
def test_powers_are_rounded_down_and_little(bits):
    one = 1 << bits
    for x in (0, 1, one // 3, one - 1, one):
        for exponent in (0, 1, 2, 3, 7, 64, 1000):
            power, exact = power_down(x, exponent, bits), Fraction(x**exponent * one, one**exponent)
            assert exact - 3 * exponent <= power <= exact
    assert power_down(one // 3, 1, bits) == one // 3


def test_a_number_with_inconsistent_conversions_is_read_once():
    class Two(Fraction):
        asked = 0

        @property
        def numerator(self):
            type(self).asked += 1
            return 1000 if type(self).asked > 1 else 1

    read = as_fraction(Two(1, 1), "epsilon")
    assert type(read) is Fraction
    assert read == 1 == read.numerator
