"""Hadamard response: the exact distribution, errors as the theory says, and reports that survive the post."""

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import discreet as dc
from discreet.local.aggregator import Aggregator
from discreet.local.domain import Domain
from discreet.local.frequency_oracles.hadamard_response import (
    Hadamard,
    HadamardScheme,
    best_blocks,
    bit_parity,
    walsh_hadamard,
)
from discreet.local.oracle import Oracle, odds_for

NEVER = 1e-10  # how unlikely something must be to count as a mistake
EPSILONS = ["1/10", "1/2", "1", "2", "5"]
SIZES = [2, 3, 4, 8, 13]


def with_blocks(size, epsilon, blocks):
    price = Fraction(epsilon)
    return Oracle(Domain.from_values(size), price, HadamardScheme(size, odds_for(price), blocks))


def test_the_transform_is_that_of_hadamards_matrix():
    for power in range(7):
        numbers = np.arange(3 << power).reshape(3, -1) ** 2 % 17
        rows = np.arange(1 << power)
        matrix = 1 - 2 * bit_parity(rows[:, None] & rows).astype(np.int64)
        assert (walsh_hadamard(numbers) == numbers @ matrix).all()


@pytest.mark.long(only=["2"])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_worst_log_ratio_of_hadamard_response_is_the_claimed_epsilon(epsilon):
    blocked = [with_blocks(5, epsilon, blocks) for blocks in (1, 2, 4, 8)]
    for oracle in [*blocked, *(Hadamard(size, epsilon) for size in SIZES)]:
        distributions = [oracle.distribution(value) for value in range(oracle.domain.size)]
        assert all(sum(distribution.values()) == 1 for distribution in distributions)
        assert max(p[report] / q[report] for p in distributions for q in distributions for report in p) == odds_for(
            Fraction(epsilon)
        )
        worst = max(dc.privacy.max_divergence(p, q) for p in distributions for q in distributions)
        assert worst == pytest.approx(float(Fraction(epsilon)), abs=1e-12)
        assert oracle.loss() == dc.Loss(Fraction(epsilon))


@pytest.mark.parametrize("blocks", [1, 2, 4])
def test_hadamard_reports_have_the_claimed_distribution(blocks):
    people, oracle = 60_000, with_blocks(6, 1, blocks)

    def surprise(distribution, value):
        seen = Counter(np.asarray(oracle.perturb([value] * people)).tolist())
        assert set(seen) <= set(distribution)
        return stats.chisquare(
            [seen[at] for at in distribution], [float(distribution[at]) * people for at in distribution]
        ).pvalue

    for value in range(6):
        assert surprise(oracle.distribution(value), value) > NEVER
    assert surprise(with_blocks(6, "6/5", blocks).distribution(3), 3) < NEVER


@pytest.mark.parametrize("blocks", [1, 2, 4, 8])
def test_hadamard_response_is_unbiased_for_every_value(blocks):
    oracle = with_blocks(7, "3/2", blocks)
    for value in range(7):
        distribution = oracle.distribution(value)
        mean = np.array([float(distribution[point]) for point in range(oracle.scheme.points)])
        assert np.allclose(oracle.scheme.estimate(mean, 1, 2.0)[0], np.arange(7) == value, atol=1e-9)


def test_no_other_number_of_blocks_is_better():
    for size in (2, 3, 5, 100, 1000):
        for odds in (Fraction(11, 10), Fraction(3), Fraction(20), Fraction(400)):
            best = HadamardScheme(size, odds, best_blocks(size, odds)).variance
            assert best == min(HadamardScheme(size, odds, 1 << power).variance for power in range(12))


@pytest.mark.parametrize(("epsilon", "blocks"), [(0.5, 1), (1, 1), (2, 4), (4, 32)])
def test_errors_and_margins_of_hadamard_response_are_those_of_the_theory(epsilon, blocks):
    people, rounds = 30_000, 100
    oracle = Hadamard(128, epsilon)
    assert oracle.scheme.blocks == blocks
    values = np.minimum(np.arange(people) % 509, 127)  # three in four have the last
    truth = np.bincount(values, minlength=128) / people
    estimates, margins = zip(*(oracle.estimate(oracle.perturb(values)) for _ in range(rounds)), strict=True)
    told = float(oracle.scheme.truth)
    in_block = truth.reshape(-1, blocks).sum(axis=0)[np.arange(128) % blocks]
    variance = (in_block * told + (1 - told) / blocks - truth * told**2) / (people * told**2)
    errors = np.array(estimates) - truth
    assert abs(math.sqrt((errors**2 / variance).mean()) - 1) < 0.05
    covered = (np.abs(errors) < np.array(margins)).mean()
    assert 0.934 < covered < 0.978
    assert 0 <= np.mean(margins) / (1.96 * np.sqrt(variance).mean()) - 1 < 0.03


def test_the_variance_is_that_of_equal_shares():
    people, oracle = 30_000, Hadamard(128, 3)
    values = np.arange(people) % 128
    errors = [oracle.estimate(oracle.perturb(values)).estimates - 1 / 128 for _ in range(100)]
    assert abs(math.sqrt(np.mean(np.square(errors)) * people / float(oracle.scheme.variance)) - 1) < 0.05


@pytest.mark.long
@pytest.mark.parametrize("epsilon", [0.5, 2, 5])
def test_margins_of_hadamard_response_hold_for_few_people(epsilon):
    oracle, values = Hadamard(4, epsilon), np.array([0] * 25 + [1] * 5)
    truth = np.array([25, 5, 0, 0]) / 30
    covered = 0
    for _ in range(800):
        shares, margins = oracle.estimate(oracle.perturb(values))
        covered += np.abs(shares - truth) <= margins
    assert (covered / 800 > 0.95 - 6.4 * math.sqrt(0.95 * 0.05 / 800)).all()


def test_reports_of_hadamard_response_survive_serialisation():
    oracle = Hadamard(["a", "b", "c"], 1)
    reports = oracle.perturb(["a", "b", "c", "c"] * 100)
    again = oracle.read(reports.messages())
    assert (oracle.estimate(again).estimates == oracle.estimate(reports).estimates).all()
    assert len(bytes(reports)) == 6 + 400
    for other in (Hadamard(["a", "b", "c"], 2), Hadamard(["a", "b", "d"], 1)):
        with pytest.raises(ValueError, match="configuration"):
            other.read(bytes(reports))
    with pytest.raises(ValueError, match="format version 9"):
        oracle.read(b"\x09" + bytes(reports)[1:])
    wide = Hadamard(1000, 1)
    with pytest.raises(ValueError, match=r"wrong length|bytes of counts"):
        wide.read(bytes(wide.perturb([1, 2, 3]))[:-1])
    tallies = Aggregator(oracle), Aggregator(oracle)
    tallies[0].add(reports[:150])
    tallies[1].add(bytes(reports[150:]))
    tallies[0].merge(tallies[1])
    assert (tallies[0].estimate().estimates == oracle.estimate(reports).estimates).all()


def test_a_point_that_does_not_exist_is_refused():
    oracle = Hadamard(10, 1)
    reports = oracle.perturb([1, 2, 3])
    reports.array[1] = oracle.scheme.points - 1
    oracle.read(bytes(reports))
    reports.array[1] += 1
    with pytest.raises(ValueError, match="point 16 is not below 16"):
        oracle.read(bytes(reports))


def test_hadamard_response_refuses_what_it_cannot_do():
    for wrong in (0, -1, 65, "one"):
        with pytest.raises(ValueError, match="epsilon"):
            Hadamard(10, wrong)
    for wrong in (1, ["a"], ["a", "a"]):
        with pytest.raises(ValueError, match="domain"):
            Hadamard(wrong, 1)
    oracle = Hadamard(100_000, 1)
    for wrong in ([100_000], [-1]):
        with pytest.raises(ValueError, match="outside the domain"):
            oracle.perturb(wrong)
    with pytest.raises(ValueError, match="must not be empty"):
        oracle.estimate(oracle.perturb([]))
    with pytest.raises(ValueError, match=r"too many .*to list"):
        oracle.distribution(1)
    assert oracle.pmf(np.asarray(oracle.perturb([5]))[0], 5) > 0
