"""Local hashing: exact distributions, exact collisions, errors as in theory, and reports that survive transport."""

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import discreet as dc
from discreet.local.aggregator import Aggregator
from discreet.local.domain import MAX_DOMAIN_SIZE, Domain
from discreet.local.frequency_oracles.local_hashing import OLH, LocalHashingScheme, best_buckets
from discreet.local.frequency_oracles.parity_hashing import (
    _FIELD_POLYNOMIALS,
    MAX_POSITION_BITS,
    ParityHashing,
    ParityHashingScheme,
    best_checks,
    expand_mask,
    parity_buckets,
)
from discreet.local.oracle import Oracle, odds_for

NEVER = 1e-10  # how unlikely something must be to count as a mistake
EPSILONS = ["1/10", "1/2", "1", "2", "5"]


def short_hashing(size, epsilon, buckets, bits=3):
    """Return OLH over a prime so small that all of its functions can be listed."""
    price = Fraction(epsilon)
    return Oracle(Domain.from_values(size), price, LocalHashingScheme(size, odds_for(price), buckets, bits))


def small(epsilon):
    return [
        short_hashing(4, epsilon, 2),
        short_hashing(5, epsilon, 3),
        *(ParityHashing(size, epsilon) for size in (2, 7, 9)),
    ]


def surprise(oracle, distribution, value, people):
    """Return how likely reports would fit the distribution as badly as they do."""
    seen = Counter(np.asarray(oracle.perturb([value] * people)).tolist())
    assert set(seen) <= set(distribution)
    expected = np.array([float(distribution[report]) * people for report in distribution])
    return stats.chisquare([seen[report] for report in distribution], expected * people / expected.sum()).pvalue


@pytest.mark.long(but=["1/2"])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_worst_log_ratio_of_local_hashing_is_the_claimed_epsilon(epsilon):
    for oracle in small(epsilon):
        distributions = [oracle.distribution(value) for value in range(oracle.domain.size)]
        assert all(sum(distribution.values()) == 1 for distribution in distributions)
        assert max(p[report] / q[report] for p in distributions for q in distributions for report in p) == odds_for(
            Fraction(epsilon)
        )
        worst = max(dc.privacy.max_divergence(p, q) for p in distributions for q in distributions)
        assert worst == pytest.approx(float(Fraction(epsilon)), abs=1e-12)
        assert oracle.loss() == dc.Loss(Fraction(epsilon))


def test_hashing_reports_have_the_claimed_distribution():
    oracle = short_hashing(4, 1, 3)
    for value in range(4):
        assert surprise(oracle, oracle.distribution(value), value, 40_000) > NEVER
    assert surprise(oracle, short_hashing(4, "6/5", 3).distribution(2), 2, 40_000) < NEVER


def test_parity_reports_have_the_claimed_distribution():
    oracle = ParityHashing(7, 1)
    for value in range(7):
        assert surprise(oracle, oracle.distribution(value), value, 40_000) > NEVER
    assert (
        surprise(
            oracle,
            Oracle(oracle.domain, Fraction(1), ParityHashingScheme(7, odds_for(Fraction("6/5")), 2)).distribution(2),
            2,
            40_000,
        )
        < NEVER
    )


def test_hashing_with_the_long_prime_has_the_claimed_distribution_given_the_function():
    oracle = OLH(1000, 1)
    reports = np.asarray(oracle.perturb(np.full(100_000, 321)))
    own = (reports["slope"].astype(object) * 321 + reports["shift"]) % (2**31 - 1) * 4 // 2**31
    away = (reports["bucket"] - own.astype(np.int64)) % 4
    chances = [float(oracle.scheme.truth + (1 - oracle.scheme.truth) / 4)] + [float((1 - oracle.scheme.truth) / 4)] * 3
    assert stats.chisquare(np.bincount(away, minlength=4), np.array(chances) * 100_000).pvalue > NEVER
    for field in ("slope", "shift"):
        assert stats.chisquare(np.bincount(reports[field] >> 24, minlength=128)).pvalue > NEVER


@pytest.mark.parametrize(("bits", "buckets"), [(3, 2), (3, 3), (3, 5), (5, 4), (5, 7)])
def test_any_two_values_collide_in_a_bucket_as_often_as_claimed(bits, buckets):
    scheme = LocalHashingScheme(4, Fraction(3), buckets, bits)
    slope, shift = (part.ravel() for part in np.meshgrid(np.arange(scheme.prime), np.arange(scheme.prime)))
    found = [scheme.hash_bucket(slope, shift, np.full(len(slope), value)) for value in range(4)]
    own, other = scheme.rates
    for x in range(4):
        for y in range(x):
            meet = Fraction(int((found[x] == found[y]).sum()), scheme.prime**2)
            assert other == meet * own + (1 - meet) * (1 - own) / (buckets - 1)


def test_two_values_share_a_bucket_of_parities_as_often_as_is_claimed():
    for bits, checks in [(2, 1), (2, 2), (3, 3), (4, 2), (5, 4), (8, 5)]:
        masks = expand_mask(np.arange(1 << bits), bits, checks)
        buckets = [parity_buckets(masks, np.full(1 << bits, value)) for value in range(1 << bits)]
        for x in range(1, min(1 << bits, 40)):
            assert (np.bincount(buckets[x] ^ buckets[x // 2], minlength=1 << checks) == 1 << (bits - checks)).all()


def test_each_mask_follows_by_an_irreducible_polynomial():
    def left_over(number, divisor):
        while number.bit_length() >= divisor.bit_length():
            number ^= divisor << (number.bit_length() - divisor.bit_length())
        return number

    assert len(_FIELD_POLYNOMIALS) == MAX_POSITION_BITS - 1
    assert 1 << MAX_POSITION_BITS >= MAX_DOMAIN_SIZE
    for bits, tail in enumerate(_FIELD_POLYNOMIALS, 2):
        assert tail < 1 << bits
        assert all(left_over(1 << bits | tail, divisor) for divisor in range(2, 1 << (bits // 2 + 1)))


def test_local_hashing_is_unbiased_for_every_value():
    for oracle in small("3/2"):
        scheme = oracle.scheme
        for value in range(oracle.domain.size):
            mean = sum(
                float(chance) * scheme.counts(np.array([report], scheme.dtype))
                for report, chance in oracle.distribution(value).items()
            )
            shares, _ = scheme.estimate(mean, 1, 2.0)
            assert np.allclose(shares, np.arange(oracle.domain.size) == value, atol=1e-9)


@pytest.mark.long
def test_counts_are_those_of_the_hash_function_itself():
    scheme = OLH(50, 2).scheme
    prime = scheme.prime
    reports = np.asarray(OLH(50, 2).perturb(np.arange(50).repeat(400))).copy()
    reports["slope"][:300] = [0, 1, prime - 1] * 100
    reports["shift"][:300] = ([0] * 3 + [prime - 1] * 3) * 50
    slope, shift = (reports[field].astype(object) for field in ("slope", "shift"))
    plain = [np.count_nonzero((slope * v + shift) % prime * 8 // 2**31 == reports["bucket"]) for v in range(50)]
    assert scheme.counts(reports).tolist() == plain
    # Across the blocks of people, too.
    assert (
        scheme.counts(np.concatenate([reports, reports[:9]])).tolist()
        == (scheme.counts(reports) + scheme.counts(reports[:9])).tolist()
    )


def test_counts_of_parities_are_those_of_the_hash_function_itself():
    oracle = ParityHashing(50, 2)
    reports = np.asarray(oracle.perturb(np.arange(50).repeat(40)))
    masks = expand_mask(reports["mask"].astype(np.int64), oracle.scheme.bits, oracle.scheme.checks)
    plain = np.array(
        [np.count_nonzero(parity_buckets(masks, np.full(len(reports), v)) == reports["bucket"]) for v in range(50)]
    )
    shares, _ = oracle.scheme.estimate(oracle.scheme.counts(reports), len(reports), 2.0)
    own, other = map(float, oracle.scheme.rates)
    assert np.allclose(shares, (plain / len(reports) - other) / (own - other))


@pytest.mark.parametrize(
    "odds", [Fraction(11, 10), Fraction(2), Fraction(271828, 100_000), Fraction(20), Fraction(501, 10)]
)
def test_no_other_number_of_buckets_is_better(odds):
    best = LocalHashingScheme(2, odds, best_buckets(odds)).variance
    assert all(best <= LocalHashingScheme(2, odds, buckets).variance for buckets in range(2, 80))
    parities = ParityHashing(1 << 16, Fraction(math.floor(math.log(odds) * 1000), 1000)).scheme
    assert parities.variance == min(
        ParityHashingScheme(1 << 16, parities.odds, checks).variance for checks in range(1, 9)
    )
    assert best_checks(odds, 16) == parities.checks


@pytest.mark.long(but=["0.5-ParityHashing", "1-ParityHashing"])
@pytest.mark.parametrize("protocol", [OLH, ParityHashing])
@pytest.mark.parametrize("epsilon", [0.5, 1, 4])
def test_errors_and_margins_of_local_hashing_are_those_of_the_theory(protocol, epsilon):
    people, rounds = 30_000, 100
    oracle = protocol(128, epsilon)
    values = (np.arange(people) ** 2 % 1009) % 128
    truth = np.bincount(values, minlength=128) / people
    estimates, margins = zip(*(oracle.estimate(oracle.perturb(values)) for _ in range(rounds)), strict=True)
    own, other = map(float, oracle.scheme.rates)
    variance = (truth * own * (1 - own) + (1 - truth) * other * (1 - other)) / (people * (own - other) ** 2)
    errors = np.array(estimates) - truth
    assert abs(math.sqrt((errors**2 / variance).mean()) - 1) < 0.05
    covered = (np.abs(errors) < np.array(margins)).mean()
    assert 0.934 < covered < 0.978
    assert 0 <= np.mean(margins) / (1.96 * np.sqrt(variance).mean()) - 1 < 0.08


@pytest.mark.long
@pytest.mark.parametrize("protocol", [OLH, ParityHashing])
def test_margins_of_local_hashing_hold_for_few_people(protocol):
    oracle, values = protocol(4, 1), np.array([0] * 25 + [1] * 5)
    truth = np.array([25, 5, 0, 0]) / 30
    covered = 0
    for _ in range(800):
        shares, margins = oracle.estimate(oracle.perturb(values))
        covered += np.abs(shares - truth) <= margins
    assert (covered / 800 > 0.95 - 6.4 * math.sqrt(0.95 * 0.05 / 800)).all()


@pytest.mark.parametrize("protocol", [OLH, ParityHashing])
def test_reports_of_local_hashing_survive_serialisation(protocol):
    oracle = protocol(["a", "b", "c"], 1)
    reports = oracle.perturb(["a", "b", "c", "c"] * 100)
    again = oracle.read(reports.messages())
    assert (oracle.estimate(again).estimates == oracle.estimate(reports).estimates).all()
    assert bytes(oracle.read(bytes(reports))) == bytes(reports)
    for other in (protocol(["a", "b", "c"], 2), protocol(["a", "b", "d"], 1)):
        with pytest.raises(ValueError, match="configuration"):
            other.read(bytes(reports))
    with pytest.raises(ValueError, match=r"wrong length|bytes of counts"):
        oracle.read(bytes(reports)[:-1])
    with pytest.raises(ValueError, match="format version 9"):
        oracle.read(b"\x09" + bytes(reports)[1:])
    tallies = Aggregator(oracle), Aggregator(oracle)
    tallies[0].add(reports[:150])
    tallies[1].add(bytes(reports[150:]))
    tallies[0].merge(tallies[1])
    assert (tallies[0].estimate().estimates == oracle.estimate(reports).estimates).all()


def test_reports_of_other_bucket_numbers_are_refused():
    with pytest.raises(ValueError, match="configuration"):
        OLH(10, 1, buckets=5).read(bytes(OLH(10, 1).perturb([1, 2])))


@pytest.mark.parametrize(
    ("oracle", "field", "limit"),
    [
        (OLH(10, 1), "slope", 2**31 - 1),
        (OLH(10, 1), "shift", 2**31 - 1),
        (OLH(10, 1), "bucket", 4),
        (ParityHashing(10, 1), "mask", 16),
        (ParityHashing(10, 1), "bucket", 4),
    ],
)
def test_impossible_reports_of_local_hashing_are_refused(oracle, field, limit):
    reports = oracle.perturb([1, 2, 3])
    reports.array[field][1] = limit - 1
    oracle.read(bytes(reports))
    reports.array[field][1] = limit
    with pytest.raises(ValueError, match=f"{field} {limit} is not below {limit}"):
        oracle.read(bytes(reports))


@pytest.mark.parametrize("protocol", [OLH, ParityHashing])
def test_local_hashing_refuses_what_it_cannot_do(protocol):
    for wrong in (0, -1, 65, "one"):
        with pytest.raises(ValueError, match="epsilon"):
            protocol(10, wrong)
    for wrong in (1, ["a"], ["a", "a"]):
        with pytest.raises(ValueError, match="domain"):
            protocol(wrong, 1)
    oracle = protocol(1000, 1)
    for wrong in ([1000], [-1]):
        with pytest.raises(ValueError, match="outside the domain"):
            oracle.perturb(wrong)
    with pytest.raises(ValueError, match="must not be empty"):
        oracle.estimate(oracle.perturb([]))
    with pytest.raises(ValueError, match=r"too many .*to list"):
        protocol(100_000, 1).distribution(1)
    assert protocol(1000, 1).pmf(np.asarray(oracle.perturb([5]))[0], 5) > 0


def test_an_uninformative_mask_is_refused():
    reports = ParityHashing(10, 1).perturb([1, 2, 3])
    reports.array["mask"][1] = 0
    with pytest.raises(ValueError, match="mask 0 is not used"):
        ParityHashing(10, 1).read(bytes(reports))


def test_buckets_must_be_a_few_integers():
    with pytest.raises(ValueError, match="buckets must be at least 2"):
        OLH(10, 1, buckets=1)
    with pytest.raises(ValueError, match="buckets must be at most 65,536"):
        OLH(10, 1, buckets=1 << 17)
    with pytest.raises(TypeError, match="buckets must be an integer"):
        OLH(10, 1, buckets=2.5)
    assert OLH(10, 60).scheme.buckets == 65_536
