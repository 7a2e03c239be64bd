"""The tests' own noise: the same in every run, new in every draw, and of the same law as ever."""

import secrets

import numpy as np
import pytest
from scipy import stats
from seeded_noise import seeded

import discreet as dc


def fitted():
    return dc.learn.KMeans(2, epsilon=1, bounds=(0, 1)).fit(np.eye(2)).cluster_centers_.tolist()


SOURCES = {
    "one by one": lambda: [dc.Laplace(1000).perturb(0) for _ in range(5)],
    "vectors": lambda: dc.Gaussian(1000).perturb(np.zeros(100, np.int64)).tolist(),
    "reports": lambda: np.asarray(dc.local.GRR(1000, "1/10").perturb([1] * 50)).tolist(),
    "generators": lambda: np.random.default_rng().random(5).tolist(),
    "coins": lambda: [secrets.randbelow(1000) for _ in range(5)],
    "fits": fitted,
}


@pytest.mark.parametrize("source", SOURCES)
def test_seeded_draws_are_the_same_in_every_run_and_never_repeat_within_one(source):
    runs = []
    for before in range(3):
        for _ in range(before):
            dc.Laplace(1000).perturb(0)  # nothing is left of what was drawn before
        with seeded():
            runs.append((SOURCES[source](), SOURCES[source]()))
    assert runs[0] == runs[1] == runs[2]
    assert runs[0][0] != runs[0][1]


def test_generators_with_their_own_seed_keep_it():
    expected = np.random.default_rng(5).random()
    with seeded():
        assert np.random.default_rng(5).random() == np.random.default_rng(seed=5).random() == expected


def test_seeded_noise_has_its_distribution_and_is_neither_omitted_nor_truncated():
    sample = dc.Gaussian(10**6).perturb(np.zeros(10_000, np.int64)) / 10**6
    assert stats.kstest(sample, stats.norm.cdf).pvalue > 0.001
    assert stats.kstest(sample, stats.norm(0, 1.1).cdf).pvalue < 0.001


def test_tests_use_seeded_noise_by_default():
    drawn = dc.Gaussian(10**6).perturb(np.zeros(4, np.int64)).tolist()
    with seeded():
        assert dc.Gaussian(10**6).perturb(np.zeros(4, np.int64)).tolist() == drawn
