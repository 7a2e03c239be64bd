"""The real stream through the real path: the law is accepted, its neighbours are not."""

import math
import secrets
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from noise_reference import (
    CDF,
    SURELY,
    edges_of,
    gaussian_attempt,
    heads_of,
    laplace_attempt,
    p_value,
    p_value_of_two,
    rejection_gaussian,
    rejection_laplace,
)
from scipy import stats

from discreet import privacy
from discreet.kernel import noise
from discreet.kernel.mechanism import Gaussian, Laplace
from discreet.kernel.noise import sampler as module

MECHANISM = {"laplace": Laplace, "gaussian": Gaussian}
LAWS = pytest.mark.parametrize("name", ["laplace", "gaussian"])


def sampler_of(name, scale):
    scale = Fraction(scale)
    return getattr(noise, f"{name}_sampler")(scale.numerator, scale.denominator)


def judged(sample, name, scale, off=0.1):
    """Return the p-values of a sample under the law of this scale, of a smaller and of a larger one."""
    scale = float(Fraction(scale))
    edges = edges_of(CDF[name](scale), scale, bins=min(100, len(sample) / 200))
    return [p_value(sample, CDF[name](scale * factor), edges) for factor in (1, 1 - off, 1 + off)]


@pytest.mark.long(only=["1000-gaussian", "1e25-laplace"])
@LAWS
@pytest.mark.parametrize(
    "scale", ["3/10", "1", "5", "10", "11.9", "12.1", "31.9", "32.1", "100", "1000", "1e6", "1e12", "1e25"]
)
def test_chi_square_accepts_the_distribution_and_rejects_nearby_ones(name, scale):
    count = 1_000_000 if Fraction(scale) < 10**15 else 100_000
    if Fraction(scale) < 10**15:
        sample = MECHANISM[name](scale).perturb(np.zeros(count, np.int64))
    else:
        sample = sampler_of(name, scale).draw(count)
    right, less, more = judged(sample, name, scale)
    assert right > SURELY
    assert less < SURELY
    assert more < SURELY


@LAWS
@pytest.mark.parametrize("scale", ["1e6", "1e9", "1e12", "1e16", "1e25"])
def test_low_bits_of_wide_noise_are_uniform(name, scale):
    count = 400_000 if Fraction(scale) < 10**15 else 40_000
    sample = sampler_of(name, scale).draw(count)
    for shift in (0, 3, 7):
        counts = np.bincount(((sample >> shift) & 63).astype(np.int64), minlength=64)
        assert stats.chisquare(counts).pvalue > SURELY
    # And they know nothing of the sign or the size.
    halves = np.array(
        [np.bincount((sample[part] & 15).astype(np.int64), minlength=16) for part in (sample < 0, sample >= 0)]
    )
    assert stats.chi2_contingency(halves).pvalue > SURELY
    assert stats.chisquare(halves.sum(1)).pvalue > SURELY


@pytest.mark.long
@LAWS
@pytest.mark.parametrize("scale", ["2", "13", "40"])
def test_many_small_draws_have_the_distribution(name, scale):
    sampler = sampler_of(name, scale)
    firsts, lasts, everything = [], [], []
    for size in range(1, 8):
        for _ in range(2500):
            drawn = sampler.draw(size)
            assert len(drawn) == size
            firsts.append(drawn[0])
            lasts.append(drawn[-1])
            everything.extend(drawn.tolist())
    for sample in (everything, firsts, lasts):
        right, less, more = judged(sample, name, scale, off=0.25)
        assert right > SURELY
        assert less < SURELY
        assert more < SURELY
    singles = [sampler.draw_one().item() for _ in range(100_000)]
    right, less, more = judged(singles, name, scale)
    assert right > SURELY
    assert less < SURELY
    assert more < SURELY


@pytest.mark.long(but=["2-laplace"])
@LAWS
@pytest.mark.parametrize("scale", ["2", "13", "40"])
def test_every_coordinate_of_a_vector_has_the_distribution(name, scale, monkeypatch):
    # Blocks of eight show at every eighth place what blocks of 32,768 would hide.
    monkeypatch.setattr(module, "BLOCK_SIZE", 8)
    sampler = sampler_of(name, scale)
    drawn = np.array([sampler.draw(21) for _ in range(8000)])
    for place in range(21):
        right, less, more = judged(drawn[:, place], name, scale, off=0.3)
        assert right > SURELY
        assert max(less, more) < SURELY
    right, less, more = judged(drawn.ravel(), name, scale)
    assert right > SURELY
    assert max(less, more) < SURELY


@LAWS
@pytest.mark.parametrize("scale", ["1/2", "5", "13", "1000"])
def test_draws_are_independent_of_their_predecessors(name, scale):
    sampler = sampler_of(name, scale)
    for sample in (sampler.draw(500_000), np.array([sampler.draw_one().item() for _ in range(50_000)])):
        for values in (sample.astype(float), np.abs(sample).astype(float), (sample & 1).astype(float)):
            centred = values - values.mean()
            for lag in (1, 2, 3, 4, 5, 7, 8, 16, 64, 512):
                r = (centred[lag:] * centred[:-lag]).mean() / centred.var()
                # Heavy tails make the estimate wider than normal; eight deviations are enough for any of them.
                assert abs(r) * len(sample) ** 0.5 < 8, lag
        # All pairs of neighbours, in cells of equal weight.
        ranks = np.searchsorted(np.quantile(sample, [0.2, 0.4, 0.6, 0.8]), sample)
        table = np.zeros((5, 5))
        np.add.at(table, (ranks[1:], ranks[:-1]), 1)
        table = table[table.sum(1) > 100][:, table.sum(0) > 100]
        assert stats.chi2_contingency(table).pvalue > SURELY


# An oracle: another algorithm, checked by following all its branches.


class MoreChancesError(Exception):
    """The branch has come to a chance that it has not been told the outcome of."""


def masses(sample, least=1e-12):
    """Return {outcome: probability} over all branches that have at least this probability."""
    found, waiting = Counter(), [((), 1.0)]
    while waiting:
        told, mass = waiting.pop()
        replay = iter(told)

        def chance(p, replay=replay):
            if p in (0, 1):
                return p == 1
            for outcome in replay:
                return outcome
            raise MoreChancesError(p)

        try:
            found[sample(chance)] += mass
        except MoreChancesError as branch:
            p = float(branch.args[0])
            waiting += [
                (way, part)
                for way, part in (((*told, True), mass * p), ((*told, False), mass * (1 - p)))
                if part > least
            ]
    assert sum(found.values()) == pytest.approx(1, abs=1e-6)
    return found


def tossed(p):
    return secrets.randbelow(p.denominator) < p.numerator


def exact_heads(chance, gamma):
    return chance(math.exp(-gamma))


def exact_laplace(chance, scale):
    """Return y with its exact probability, from one chance after another."""
    q = math.exp(-1 / scale)
    if chance((1 - q) / (1 + q)):
        return 0
    y = 1
    while not chance(1 - q):
        y += 1
    return y if chance(0.5) else -y


def test_the_oracle_has_the_exact_distribution():
    # Each layer by all its branches, on top of a layer that is exact.
    for gamma in (Fraction(0), Fraction(1, 7), Fraction(1), Fraction(5, 2)):
        assert masses(lambda chance, gamma=gamma: heads_of(chance, gamma))[True] == pytest.approx(
            math.exp(-gamma), abs=1e-6
        )
    for scale in (Fraction(1), Fraction(3, 2), Fraction(4), Fraction(1, 3)):
        found = masses(lambda chance, scale=scale: laplace_attempt(chance, exact_heads, scale))
        for k in range(-6, 7):
            assert found[k] / found[0] == pytest.approx(math.exp(-abs(k) / scale), abs=1e-6)
    for sigma in (Fraction(1), Fraction(1, 2), Fraction(7, 3)):
        found = masses(lambda chance, sigma=sigma: gaussian_attempt(chance, exact_heads, exact_laplace, sigma))
        for k in range(-6, 7):
            assert found[k] / found[0] == pytest.approx(math.exp(-(k * k) / (2 * sigma * sigma)), abs=1e-6)


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "scale", "sample"),
    [
        ("laplace", "3/2", rejection_laplace),
        ("laplace", "20", rejection_laplace),
        ("gaussian", "5/2", rejection_gaussian),
        ("gaussian", "40", rejection_gaussian),
    ],
)
def test_the_noise_agrees_with_the_rejection_sampler(name, scale, sample):
    oracle = [sample(tossed, Fraction(scale)) for _ in range(15_000)]
    edges = edges_of(CDF[name](float(Fraction(scale))), float(Fraction(scale)), bins=30)
    ours = {
        factor: sampler_of(name, Fraction(scale) * Fraction(factor)).draw(500_000) for factor in ("1", "0.8", "1.25")
    }
    assert p_value_of_two(oracle, ours["1"], edges) > SURELY
    assert p_value_of_two(oracle, ours["0.8"], edges) < SURELY
    assert p_value_of_two(oracle, ours["1.25"], edges) < SURELY


@pytest.mark.long
@pytest.mark.parametrize(("name", "scale"), [("laplace", 10), ("laplace", 0.5), ("gaussian", 10), ("gaussian", 100)])
def test_the_noise_agrees_with_that_of_opendp(name, scale):
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib")
    distance = dp.l1_distance if name == "laplace" else dp.l2_distance
    make = dp.m.make_laplace if name == "laplace" else dp.m.make_gaussian
    space = dp.vector_domain(dp.atom_domain(T="i64")), distance(T="i64")
    theirs = make(*space, scale=float(scale))([0] * 50_000)
    edges = edges_of(CDF[name](scale), scale, bins=50)
    ours = {factor: MECHANISM[name](scale * factor).perturb(np.zeros(500_000, np.int64)) for factor in (1, 0.9, 1.1)}
    assert p_value_of_two(theirs, ours[1], edges) > SURELY
    assert p_value_of_two(theirs, ours[0.9], edges) < SURELY
    assert p_value_of_two(theirs, ours[1.1], edges) < SURELY


@LAWS
def test_probabilities_are_those_of_the_noise(name):
    for scale in (0.3, 1, 12.5, 40):
        cdf = CDF[name](scale)
        for k in (-40, -3, -1, 0, 1, 2, 17):
            expected = float(cdf(k) - cdf(k - 1))
            assert privacy.pmf(MECHANISM[name](scale), k) == pytest.approx(expected, rel=1e-6, abs=1e-15)
