"""The tables hold the floors of the distribution functions, to the last unit."""

from fractions import Fraction
from itertools import accumulate

import mpmath
import pytest
from noise_reference import floors

from discreet.kernel.noise import distribution
from discreet.kernel.noise.distribution import NoiseDistribution, TailWeights
from discreet.kernel.noise.sampler import Sampler

SCALES = ["1/1000", "1/2", "0.3", "1", "10", "11.999", "12", "31.9", "32", "1000", "1000001", "1e12", f"{10**25}/3"]


def parameters(name, scale):
    """Return alpha and beta of a law of this scale."""
    scale = Fraction(scale)
    return (1 / scale, Fraction(0)) if name == "laplace" else (Fraction(0), 1 / (2 * scale * scale))


def agree(boundaries, reference, bits):
    """Compare, and see that the list goes on until the floors are 0 or 2^bits - 1."""
    ours = dict(enumerate(boundaries.floors, boundaries.first))
    assert ours == {s: reference[s] for s in ours}
    left_out = {s: floor for s, floor in reference.items() if s not in ours}
    assert set(left_out.values()) <= {0, (1 << bits) - 1}
    return ours


@pytest.mark.long(only=["laplace-11.999-256"])
@pytest.mark.parametrize("bits", [8, 64, 128, 256])
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", ["laplace", "gaussian"])
def test_boundaries_agree_with_an_independent_computation(name, scale, bits):
    alpha, beta = parameters(name, scale)
    sampler = Sampler(alpha, beta)
    coarse = sampler._low_bit_count + sampler._digit_bits
    table = NoiseDistribution(alpha * 2**coarse, beta * 4**coarse)
    one = agree(table.one_sided_cdf(bits), floors(*table, bits, "one"), bits)
    both = agree(table.two_sided_cdf(bits), floors(*table, bits, "both"), bits)
    assert min(one) == 0
    assert min(both) == -max(both) - 1
    # Unbounded support: the last word of all is decided by further bits.
    assert one[max(one)] == both[max(both)] == (1 << bits) - 1
    assert both[min(both)] == 0
    if bits == 64:
        assert sampler._table._floors.tolist() == list((one if coarse else both).values())
        assert sampler._table.first == min(one if coarse else both)
    if sampler._digit_bits:
        finer, count = NoiseDistribution(alpha * 2**sampler._low_bit_count, beta), 1 << sampler._digit_bits
        digits = agree(finer.digit_cdf(count, bits), floors(*finer, bits, count), bits)
        assert list(digits) == list(range(count - 1))
        if bits == 64:
            assert sampler._digit._floors.tolist() == list(digits.values())


@pytest.mark.parametrize("name", ["laplace", "gaussian"])
def test_boundaries_are_right_when_the_first_guard_bits_do_not_suffice(name, monkeypatch):
    # Law 1/(1+q) at bits where a floor is decided late: with few guard bits the loop must go round.
    law = NoiseDistribution(*parameters(name, "7/3"))
    asked = []
    inner = NoiseDistribution._one_sided_tails

    def poor(self, bits, precision):
        asked.append(precision)
        tails = inner(self, bits, precision)
        return tails._replace(error=tails.error << 60) if len(asked) == 1 else tails

    monkeypatch.setattr(NoiseDistribution, "_one_sided_tails", poor)
    agree(law.two_sided_cdf(64), floors(*law, 64, "both"), 64)
    assert len(asked) > 1


@pytest.mark.parametrize("name", ["laplace", "gaussian"])
@pytest.mark.parametrize("scale", ["1/10", "1", "5.5", "11.999", "20"])
def test_weights_are_below_the_truth_by_no_more_than_stated(name, scale):
    law, precision = NoiseDistribution(*parameters(name, scale)), 128
    for kind, bits in (("one", 64), ("both", 64)):
        found = law._two_sided_tails(bits, precision) if kind == "both" else law._one_sided_tails(bits, precision)
        with mpmath.workprec(600):
            a, b = (mpmath.mpf(part.numerator) / part.denominator for part in law)
            listed = [mpmath.exp(-a * k - b * k * k) for k in range(4000)]
            true = list(accumulate(reversed(listed)))[::-1][: len(found.weights)]
            everything = true[0] + (true[1] if kind == "both" else 0)
            for ours, truth in [*zip(found.weights, true, strict=True), (found.total, everything)]:
                assert abs(ours - mpmath.ldexp(truth, precision)) <= found.error


@pytest.mark.parametrize("name", ["laplace", "gaussian"])
@pytest.mark.parametrize("scale", ["1/10", "1", "5.5", "20"])
def test_the_error_of_tails_covers_that_of_each_weight_and_all_that_are_left_out(name, scale):
    law, precision = NoiseDistribution(*parameters(name, scale)), 128
    tails = law._one_sided_tails(64, precision)
    rounding = distribution._rounding_error(tails.weights)
    with mpmath.workprec(600):
        ratio = mpmath.exp(-mpmath.mpf(sum(law).numerator) / sum(law).denominator)
        claimed = len(tails.weights) * rounding + (tails.weights[-1] + rounding) / (1 - ratio)
        assert claimed <= tails.error < claimed + 1


@pytest.mark.parametrize("name", ["laplace", "gaussian"])
@pytest.mark.parametrize("scale", ["1/10", "1", "20"])
def test_each_weight_is_rounded_down_by_no_more_than_stated(name, scale):
    law, precision = NoiseDistribution(*parameters(name, scale)), 128
    with mpmath.workprec(600):
        a, b = (mpmath.mpf(part.numerator) / part.denominator for part in law)
        for weights in (law._weights(precision, minimum=1 << 24), law._weights(precision, count=5)):
            assert len(weights) > 5 or weights[-1] <= 1 << 24
            for k, weight in enumerate(weights):
                assert 0 <= mpmath.ldexp(mpmath.exp(-a * k - b * k * k), precision) - weight <= 2 * (k + 2) ** 2


def test_the_rounding_error_of_a_weight_covers_that_of_every_step():
    for k in (*range(20), 100, 1000):
        assert sum(3 * i + 4 for i in range(k)) <= distribution._rounding_error([0] * (k + 1))


def test_a_sum_of_two_tails_may_be_wrong_by_both_their_errors():
    law = NoiseDistribution(*parameters("gaussian", 5))
    one, both = law._one_sided_tails(64, 128), law._two_sided_tails(64, 128)
    assert both.total == one.weights[0] + one.weights[1]
    assert both.error >= 2 * one.error


@pytest.mark.parametrize("place", range(3))
@pytest.mark.parametrize("unbounded", [True, False])
@pytest.mark.parametrize("integers", [[200, 120, 50], [254, 2, 1], [128, 77, 1]])
def test_a_floor_within_the_error_of_a_boundary_is_decided_by_more_bits(place, unbounded, integers):
    """One of R·2^8 is an integer and some units, above or below it, and the others lie between integers.

    The claim decides beyond four errors and one unit.
    """
    bits, error = 8, 1000

    def floors_and_rounds(units):
        asked = []

        def tails_at(precision):
            asked.append(precision)
            one, whole = 1 << precision, 1 << (precision - bits)
            weights = [each * whole + whole // 2 for each in integers]
            weights[place] = integers[place] * whole + units * (whole >> 64)
            # What is above 0 and surely below 1 needs no more bits.
            return TailWeights([one, *weights, *([error, error // 2] if unbounded else [])], one, error)

        return distribution._tail_floors(bits, tails_at), asked

    def expected(moved):
        floors = [each - moved * (index == place) for index, each in enumerate(integers)]
        return floors[: floors.index(0) + 1] if 0 in floors else floors + [0] * unbounded

    for far in (4 * error + 2, 10**6, 10**18):
        assert floors_and_rounds(far) == (expected(0), [bits + 64])
        assert floors_and_rounds(-far) == (expected(1), [bits + 64])
    for near in (1, 2, error, 2 * error, 4 * error + 1):
        assert floors_and_rounds(near) == (expected(0), [bits + 64, bits + 128])
        assert floors_and_rounds(-near) == (expected(1), [bits + 64, bits + 128])


def test_the_sampler_splits_scales_into_tables_of_moderate_size():
    for name in ("laplace", "gaussian"):
        for scale in SCALES:
            sampler = Sampler(*parameters(name, scale))
            assert sampler._table.last - sampler._table.first < 1200
            assert sampler._table._cells.dtype == "int16"
            assert len(sampler._table._cells) == 1 << 16
