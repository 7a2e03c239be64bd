"""What the tests of frequency oracles measure: distributions, errors against theory, and margins against errors."""

from collections import Counter

import numpy as np
from scipy import stats

import discreet as dc

BY_CHANCE = 1e-11  # a right program fails so seldom


def fit(oracle, value, people, distribution):
    """Return the chi-square probability of fresh reports of one value under a distribution of single reports."""
    return fits(Counter(np.asarray(oracle.perturb([value] * people)).tolist()), people, distribution)


def fits(seen, people, distribution):
    assert set(seen) <= set(distribution)
    counted = np.array([seen[report] for report in distribution])
    return stats.chisquare(counted, [float(p) * people for p in distribution.values()]).pvalue


def mean_by_distribution(oracle, value):
    """Return the exact expectation of the estimate from one report."""
    distribution = oracle.distribution(value)
    arrays = [np.frombuffer(report, oracle.scheme.dtype) for report in distribution]
    found = [oracle.estimate(dc.local.Reports(oracle.configuration, array)).estimates for array in arrays]
    return np.array([float(p) for p in distribution.values()]) @ np.array(found)


def uneven(size, people):
    """Return values of so many people: some frequent, most rare, some without anybody."""
    weights = 1 / np.arange(1, size + 1) ** 1.5
    weights[-size // 4 :] = 0
    edges = np.floor(np.cumsum(weights) / weights.sum() * people).astype(int)
    return np.searchsorted(edges, np.arange(people), side="right")


def surveyed(oracle, values, times):
    """Ask the same people so many times; return errors and margins, times × values."""
    people = len(values)
    truth = np.bincount(values, minlength=oracle.domain.size) / people
    reports = oracle.perturb(np.tile(values, times))
    found = [oracle.estimate(reports[i * people : (i + 1) * people]) for i in range(times)]
    return np.array([each.estimates - truth for each in found]), np.array([each.margins for each in found])


def theory(rates, values, size):
    """Return the standard deviation of each value's estimate, where a report supports values with these rates."""
    own, other = map(float, rates)
    shares = np.bincount(values, minlength=size) / len(values)
    return np.sqrt((shares * own * (1 - own) + (1 - shares) * other * (1 - other)) / len(values)) / (own - other)
