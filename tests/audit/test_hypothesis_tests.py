"""How much likelier one thing surely is: never wrong more often than stated, for any probabilities."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from discreet.audit.hypothesis_tests import Proportion, clopper_pearson, epsilon_lower_bound, refutes_epsilon


@pytest.mark.parametrize(("delta", "error"), [(0.0, 0.3), (0.0, 0.05), (0.2, 0.3)])
def test_the_bound_is_too_large_no_more_often_than_stated_for_any_two_probabilities(delta, error):
    n, m = 11, 8
    table = np.array(
        [
            [epsilon_lower_bound(Proportion(k, n), Proportion(j, m), delta=delta, error=error) for j in range(m + 1)]
            for k in range(n + 1)
        ]
    )
    worst = 0.0
    for q in np.linspace(0.01, 0.99, 25):
        for p in np.linspace(q + delta, 1, 12):
            truth = max(0.0, math.log((p - delta) / q))
            chances = np.outer(binom.pmf(range(n + 1), n, p), binom.pmf(range(m + 1), m, q))
            worst = max(worst, chances[table > truth + 1e-9].sum())
    assert worst <= error
    assert worst > error / 10  # and the bound is not idle


def test_joint_counts_show_more_than_two_intervals():
    for eps, n in ((0.1, 100_000), (1.0, 1000), (4.0, 10_000)):
        p = math.exp(eps) / (1 + math.exp(eps))
        seen, other = Proportion(round(p * n), n), Proportion(round((1 - p) * n), n)
        apart = math.log(clopper_pearson(seen.hits, n, 0.025)[0] / clopper_pearson(other.hits, n, 0.025)[1])
        together = epsilon_lower_bound(seen, other, error=0.05)
        assert apart < together < eps


@pytest.mark.parametrize(("hits", "others"), [(50, 3), (100, 0), (1, 0), (60, 50)])
def test_evidence_against_an_epsilon_refutes_every_smaller_one(hits, others):
    verdicts = [refutes_epsilon(Proportion(hits, 100), Proportion(others, 100), eps) for eps in np.linspace(0, 6, 61)]
    assert verdicts == sorted(verdicts, reverse=True)


def test_the_bound_is_where_refuting_ends():
    seen, other = Proportion(700, 1000), Proportion(200, 1000)
    low = epsilon_lower_bound(seen, other, error=0.01)
    assert refutes_epsilon(seen, other, low, error=0.01)
    assert not refutes_epsilon(seen, other, low + 0.01, error=0.01)


def test_equal_counts_and_rarer_ones_show_nothing():
    assert epsilon_lower_bound(Proportion(10, 100), Proportion(10, 100)) == 0
    assert epsilon_lower_bound(Proportion(0, 100), Proportion(100, 100)) == 0
    assert epsilon_lower_bound(Proportion(0, 100), Proportion(0, 100)) == 0
    assert epsilon_lower_bound(Proportion(100, 100), Proportion(100, 100)) == 0


def test_what_never_happens_on_one_side_shows_no_more_than_its_runs_can():
    n = 10_000
    low = epsilon_lower_bound(Proportion(n // 2, n), Proportion(0, n), error=0.05)
    assert math.log(0.5 * n / 4) < low < math.log(0.5 * n / 2.9)  # e^-3 is 0.05


def test_a_delta_reduces_the_bound():
    seen, other = Proportion(300, 10_000), Proportion(100, 10_000)
    assert epsilon_lower_bound(seen, other) > 0.8
    assert epsilon_lower_bound(seen, other, delta=0.01) < math.log(2)
    assert epsilon_lower_bound(seen, other, delta=0.05) == 0


def test_a_smaller_error_probability_gives_a_lower_bound():
    seen, other = Proportion(900, 1000), Proportion(100, 1000)
    found = [epsilon_lower_bound(seen, other, error=error) for error in (0.05, 1e-3, 1e-9, 1e-12)]
    assert found == sorted(found, reverse=True)
    assert found[-1] > 1
