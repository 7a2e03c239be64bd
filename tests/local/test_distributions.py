"""Every oracle has the claimed distribution, and its exact loss is the claimed epsilon, for all pairs of values."""

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import discreet as dc
from discreet.local.domain import Domain
from discreet.local.frequency_oracles.local_hashing import LocalHashingScheme
from discreet.local.oracle import Oracle, odds_for, parse_epsilon


def small_hashing(epsilon):
    """Return OLH with so small a prime that all of its functions can be listed."""
    price, odds = parse_epsilon(epsilon)
    return Oracle(Domain.from_values(4), price, LocalHashingScheme(4, odds, 3, bits=3))


EPSILONS = ["1/10", "1", "3", "6"]
# A small configuration of each, as a function of epsilon: its reports can all be listed.
SMALL = {
    "GRR of 2": lambda epsilon: dc.local.GRR(2, epsilon),
    "GRR of 5": lambda epsilon: dc.local.GRR(5, epsilon),
    "GRR of texts": lambda epsilon: dc.local.GRR(["red", "green", "blue"], epsilon),
    "OUE": lambda epsilon: dc.local.OUE(4, epsilon),
    "SUE": lambda epsilon: dc.local.SUE(4, epsilon),
    "subsets": lambda epsilon: dc.local.SubsetSelection(8, epsilon),
    "subsets of texts": lambda epsilon: dc.local.SubsetSelection(["red", "green", "blue"], epsilon),
    "Hadamard of 3": lambda epsilon: dc.local.Hadamard(3, epsilon),
    "Hadamard of 20": lambda epsilon: dc.local.Hadamard(20, epsilon),
    "parity hashing": lambda epsilon: dc.local.ParityHashing(7, epsilon),
    "OLH": small_hashing,
    # Without noise in each report, one tells as much as all.
    "RAPPOR": lambda epsilon: dc.local.RAPPOR(4, epsilon, noise=(0, 1)),
    "RAPPOR of 2 hashes": lambda epsilon: dc.local.RAPPOR(4, epsilon, bits=5, hashes=2, cohorts=3, noise=(0, 1)),
}
each = pytest.mark.parametrize("name", SMALL)


def values_of(oracle):
    return range(oracle.domain.size) if oracle.domain.values is None else oracle.domain.values


def as_key(report):
    """Return a report as `distribution` names it."""
    plain = report.item() if isinstance(report, np.generic) else report
    return plain.tobytes() if isinstance(plain, np.ndarray) else plain


@each
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_probabilities_add_up_to_one(name, epsilon):
    oracle = SMALL[name](epsilon)
    for value in values_of(oracle):
        distribution = oracle.distribution(value)
        assert sum(distribution.values()) == 1
        assert all(isinstance(p, Fraction) and p > 0 for p in distribution.values())


@pytest.mark.long(only=[f"{epsilon}-Hadamard of 20" for epsilon in ("1/10", "3", "6")])
@each
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_worst_log_ratio_of_every_oracle_is_the_claimed_epsilon(name, epsilon):
    oracle = SMALL[name](epsilon)
    claimed = oracle.loss().epsilon
    distributions = [oracle.distribution(value) for value in values_of(oracle)]
    worst = max(p[report] / q[report] for p in distributions for q in distributions for report in p)
    assert worst <= odds_for(claimed)  # at most exp(epsilon), in exact fractions
    assert math.log(worst) == pytest.approx(float(claimed), abs=1e-12)
    assert max(dc.privacy.max_divergence(p, q) for p in distributions for q in distributions) == pytest.approx(
        float(claimed), abs=1e-12
    )


@each
def test_reports_have_the_claimed_distribution(name):
    people = 60_000
    oracle, other = SMALL[name]("1"), SMALL[name]("1.3")
    value = list(values_of(oracle))[-1]
    seen = Counter(map(as_key, np.asarray(oracle.perturb([value] * people))))
    distribution = oracle.distribution(value)
    assert set(seen) <= set(distribution)
    assert fit(seen, distribution, people) > 1e-11
    assert fit(seen, other.distribution(value), people) < 1e-11  # the test can tell a distribution that is not this one


def fit(seen, distribution, people):
    expected = np.array([float(p) * people for p in distribution.values()])
    counted = np.array([seen[report] for report in distribution])
    return stats.chisquare(counted, expected).pvalue


@each
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_estimates_are_unbiased_under_the_exact_distribution(name, epsilon):
    oracle = SMALL[name](epsilon)
    dtype = oracle.scheme.dtype
    for place, value in enumerate(values_of(oracle)):
        distribution = oracle.distribution(value)
        reports = np.array([np.frombuffer(r, dtype)[0] if isinstance(r, bytes) else r for r in distribution], dtype)
        estimates = [
            oracle.estimate(dc.local.Reports(oracle.configuration, reports[i : i + 1])).estimates
            for i in range(len(reports))
        ]
        mean = np.array([float(p) for p in distribution.values()]) @ np.array(estimates)
        assert mean == pytest.approx(np.eye(oracle.domain.size)[place], abs=1e-8)
