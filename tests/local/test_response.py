"""Randomized response: its law, its loss, and a margin that holds for every number of people."""

import json
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import stats

from discreet.local import randomized_response
from discreet.local.randomized_response import RandomizedResponse

TRUTHS = ["1/100", "1/10", "1/3", "1/2", "3/4", "9/10", "99/100", "999/1000"]
COIN = RandomizedResponse("1/2")


class Script:
    """A source that says what it was told to say, in the order of the questions."""

    def __init__(self, *parts):
        self._parts = list(parts)

    def bytes(self, count):
        part = self._parts.pop(0)
        assert len(part) == count
        return bytearray(part)


def test_coin_flips_lose_the_logarithm_of_three():
    loss = COIN.loss()
    with mpmath.workdps(40):
        exact = mpmath.log(3)
        assert exact <= mpmath.mpf(loss.epsilon.numerator) / loss.epsilon.denominator < exact + mpmath.mpf(10) ** -12
    assert loss.delta == 0
    ratios = [COIN.pmf(report, 1) / COIN.pmf(report, 0) for report in (0, 1)]
    assert ratios == [Fraction(1, 3), 3]


@pytest.mark.parametrize("truth", TRUTHS)
def test_the_epsilon_is_the_worst_log_ratio_rounded_up(truth):
    mechanism = RandomizedResponse(truth)
    ratio = mechanism.pmf(1, 1) / mechanism.pmf(1, 0)
    with mpmath.workdps(40):
        exact = mpmath.log(mpmath.mpf(ratio.numerator) / ratio.denominator)
        epsilon = mechanism.loss().epsilon
        assert exact <= mpmath.mpf(epsilon.numerator) / epsilon.denominator < exact + mpmath.mpf(10) ** -12


@pytest.mark.parametrize("truth", TRUTHS)
def test_response_rho_bounds_every_renyi_divergence(truth):
    mechanism = RandomizedResponse(truth)
    rho = mechanism.loss().rho
    with mpmath.workdps(40):
        bound = mpmath.mpf(rho.numerator) / rho.denominator
        p = mpmath.mpf(mechanism.pmf(1, 1).numerator) / mechanism.pmf(1, 1).denominator
        for order in ("1.000001", "1.01", "1.5", "2", "3", "10", "100", "10000"):
            a = mpmath.mpf(order)
            divergence = mpmath.log(p**a * (1 - p) ** (1 - a) + (1 - p) ** a * p ** (1 - a)) / (a - 1)
            assert divergence <= a * bound
            if order == "1.000001":
                assert divergence >= bound * (1 - mpmath.mpf("1e-5"))  # attained in the limit of order 1


@pytest.mark.parametrize("truth", ["1/2", "1/3", "9/10", "1e-9", "0.999999999"])
def test_randomized_response_has_the_exact_distribution(truth, monkeypatch):
    mechanism = RandomizedResponse(truth)
    stay = 1 - mechanism.flip
    cells = np.arange(65536, dtype=np.uint16)
    floor = math.floor(stay * 2**64)
    for away in (-1, 1, -1000, 1000):
        word = floor + away
        if not (0 <= word < 2**64 and word >> 48 == floor >> 48):
            continue
        # All first words once; the only undecided cell goes on with the 48 bits beside the boundary.
        rest = np.array([(word & (2**48 - 1)) << 16], np.uint64)
        source = Script(cells.tobytes(), rest.tobytes())
        monkeypatch.setattr(randomized_response, "thread_keystream", lambda source=source: source)
        flipped = mechanism.perturb(np.zeros(65536, np.int64))
        assert np.array_equal(flipped, (cells > floor >> 48) | ((cells == floor >> 48) & (away > 0)))
    for beyond, shown in ((-1, 0), (1, 1)):
        longer = math.floor(stay * 2**128) + beyond
        if longer >> 64 == floor:  # equal to the boundary in 64 bits: the next 64 decide
            parts = [
                np.array([floor >> 48], np.uint16).tobytes(),
                np.array([(floor & (2**48 - 1)) << 16], np.uint64).tobytes(),
            ]
            for bits in (np.zeros(1, np.int64), np.ones(1, bool)):
                source = Script(*parts, (longer % 2**64).to_bytes(8))
                monkeypatch.setattr(randomized_response, "thread_keystream", lambda source=source: source)
                assert mechanism.perturb(bits)[0] == bits[0] ^ shown


def test_real_flips_have_their_frequency_and_are_independent_of_the_bit():
    for bit in (0, 1):
        ones = int(COIN.perturb(np.full(200_000, bit)).sum())
        assert stats.binomtest(ones, 200_000, 0.25 + bit / 2).pvalue > 1e-10
        assert stats.binomtest(ones, 200_000, 0.26 + bit / 2).pvalue < 1e-10


def test_the_expected_share_of_yes_is_a_quarter_and_half_the_truth():
    for p in (Fraction(0), Fraction(1, 7), Fraction(1, 2), Fraction(1)):
        assert p * COIN.pmf(1, 1) + (1 - p) * COIN.pmf(1, 0) == Fraction(1, 4) + p / 2
    assert COIN.pmf(1, 1) + COIN.pmf(0, 1) == COIN.pmf(1, 0) + COIN.pmf(0, 0) == 1


@pytest.mark.parametrize("truth", TRUTHS)
def test_the_estimate_is_unbiased(truth):
    mechanism = RandomizedResponse(truth)
    n, flip = 20, float(mechanism.flip)
    for true in (0, 3, 20):
        law = np.convolve(
            stats.binom.pmf(range(true + 1), true, 1 - flip), stats.binom.pmf(range(n - true + 1), n - true, flip)
        )
        estimates = [mechanism.estimate(np.arange(n) < ones)[0] for ones in range(n + 1)]
        assert float(law @ estimates) == pytest.approx(true / n, abs=1e-9)


def coverage(mechanism, n, true, confidence=0.95):
    """Return the exact probability that the truth is within the margin."""
    flip = float(mechanism.flip)
    law = np.convolve(
        stats.binom.pmf(range(true + 1), true, 1 - flip), stats.binom.pmf(range(n - true + 1), n - true, flip)
    )
    first, margin = mechanism.estimate(np.zeros(n, bool), confidence=confidence)
    step = 1 / (n * float(mechanism.truth))
    errors = first + step * np.arange(n + 1) - true / n
    return float(law[np.abs(errors) <= margin].sum())


@pytest.mark.parametrize("truth", TRUTHS)
def test_the_margin_holds_at_95_percent_exactly(truth):
    mechanism = RandomizedResponse(truth)
    sizes = [*range(1, 41), *range(45, 301, 15), 1000, 3000, 10_000]
    found = {(n, true): coverage(mechanism, n, true) for n in sizes for true in {0, n // 3, n // 2, n}}
    worst = min(found, key=found.get)
    print(f"truth {truth}: least coverage {found[worst]:.4f} at n, ones = {worst}")
    assert found[worst] >= 0.95


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.99, 0.999])
@pytest.mark.parametrize("truth", TRUTHS)
def test_the_margin_holds_at_other_confidences(truth, confidence):
    mechanism = RandomizedResponse(truth)
    found = [coverage(mechanism, n, true, confidence) for n in (1, 5, 20, 100, 300, 3000) for true in {0, n // 3, n}]
    assert min(found) >= confidence
    with pytest.raises(ValueError, match="confidence"):
        mechanism.estimate(np.zeros(3, bool), confidence=95)


@pytest.mark.parametrize("bad", [("yes", "no"), (2, 0), (0.5, 1), (None, 1)])
def test_probabilities_of_non_bits_are_refused(bad):
    with pytest.raises((TypeError, ValueError), match="report and bit"):
        COIN.pmf(*bad)


def test_the_margin_is_nearly_the_smallest():
    margin = COIN.estimate(np.zeros(10_000, bool))[1]
    assert margin == pytest.approx(1.96 * math.sqrt(3 / 16 / 10_000) / 0.5, rel=0.02)


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint8, np.int64, np.uint64])
def test_reports_have_the_type_and_shape_of_the_bits(dtype):
    bits = np.array([[0, 1, 1], [1, 0, 0]], dtype)
    for given in (bits, bits[:, :0], bits[0, 0:1]):
        reports = COIN.perturb(given)
        assert (reports.dtype, reports.shape) == (given.dtype, given.shape)
        assert np.isin(reports, (0, 1)).all()
    assert np.array_equal(bits, np.array([[0, 1, 1], [1, 0, 0]], dtype))  # what was given is left as it was
    many = RandomizedResponse("0.999999").perturb(np.ones(1000, dtype))
    assert many.mean() > 0.9


@pytest.mark.parametrize(
    "bad", [np.array([0.0, 1.0]), np.array(["0"]), np.array([None]), np.array([2]), np.array([-1]), "01"]
)
def test_bad_bits_are_refused_by_name(bad):
    with pytest.raises((ValueError, TypeError), match="bits"):
        COIN.perturb(bad)


@pytest.mark.parametrize(
    "bad", [np.array([]), np.array([0, 2]), np.array([0.5]), np.array(["yes"]), np.array([np.nan])]
)
def test_bad_reports_are_refused_by_name(bad):
    with pytest.raises((ValueError, TypeError), match="reports"):
        COIN.estimate(bad)


@pytest.mark.parametrize("bad", [0, 1, -1, 2, math.nan, math.inf, True, "x", None])
def test_bad_truths_are_refused_by_name(bad):
    with pytest.raises((ValueError, TypeError), match="truth"):
        RandomizedResponse(bad)


def test_it_is_written_as_canonical_json():
    assert str(COIN) == '{"name":"randomized-response","truth":"1/2"}'
    assert RandomizedResponse(json.loads(str(COIN))["truth"]) == COIN
