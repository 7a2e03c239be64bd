"""How much likelier one thing surely is: never wrong more often than stated, for any probabilities."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from discreet.audit.counting import Share, limits
from discreet.audit.ratios import least_epsilon, refutes


@pytest.mark.parametrize(("delta", "error"), [(0.0, 0.3), (0.0, 0.05), (0.2, 0.3)])
def test_the_bound_is_too_large_no_more_often_than_stated_for_any_two_probabilities(delta, error):
    n, m = 11, 8
    table = np.array(
        [
            [least_epsilon(Share(k, n), Share(j, m), delta=delta, error=error) for j in range(m + 1)]
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


def test_counts_together_tell_more_than_two_intervals():
    for eps, n in ((0.1, 100_000), (1.0, 1000), (4.0, 10_000)):
        p = math.exp(eps) / (1 + math.exp(eps))
        seen, other = Share(round(p * n), n), Share(round((1 - p) * n), n)
        apart = math.log(limits(seen.hits, n, 0.025)[0] / limits(other.hits, n, 0.025)[1])
        together = least_epsilon(seen, other, error=0.05)
        assert apart < together < eps


@pytest.mark.parametrize(("hits", "others"), [(50, 3), (100, 0), (1, 0), (60, 50)])
def test_what_refutes_an_epsilon_refutes_every_smaller_one(hits, others):
    verdicts = [refutes(Share(hits, 100), Share(others, 100), eps) for eps in np.linspace(0, 6, 61)]
    assert verdicts == sorted(verdicts, reverse=True)


def test_the_bound_is_where_refuting_ends():
    seen, other = Share(700, 1000), Share(200, 1000)
    low = least_epsilon(seen, other, error=0.01)
    assert refutes(seen, other, low, error=0.01)
    assert not refutes(seen, other, low + 0.01, error=0.01)


def test_equal_counts_and_rarer_ones_show_nothing():
    assert least_epsilon(Share(10, 100), Share(10, 100)) == 0
    assert least_epsilon(Share(0, 100), Share(100, 100)) == 0
    assert least_epsilon(Share(0, 100), Share(0, 100)) == 0
    assert least_epsilon(Share(100, 100), Share(100, 100)) == 0


def test_what_never_happens_on_one_side_shows_no_more_than_its_runs_can():
    n = 10_000
    low = least_epsilon(Share(n // 2, n), Share(0, n), error=0.05)
    assert math.log(0.5 * n / 4) < low < math.log(0.5 * n / 2.9)  # e^-3 is 0.05


def test_a_delta_takes_its_part():
    seen, other = Share(300, 10_000), Share(100, 10_000)
    assert least_epsilon(seen, other) > 0.8
    assert least_epsilon(seen, other, delta=0.01) < math.log(2)
    assert least_epsilon(seen, other, delta=0.05) == 0


def test_less_error_means_a_lower_bound():
    seen, other = Share(900, 1000), Share(100, 1000)
    found = [least_epsilon(seen, other, error=error) for error in (0.05, 1e-3, 1e-9, 1e-12)]
    assert found == sorted(found, reverse=True)
    assert found[-1] > 1
