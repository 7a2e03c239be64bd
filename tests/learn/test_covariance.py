"""Covariances and correlations: as scikit-learn's without noise, with margins that hold under it."""

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.covariance import EmpiricalCovariance as Exact

from discreet.learn import EmpiricalCovariance
from discreet.learn.covariance import _margins
from discreet.learn.scaled_moments import ScaledMoments

RNG = np.random.default_rng(21)
TRUE = 0.6 ** np.abs(np.subtract.outer(np.arange(4), np.arange(4)))
X = RNG.normal(size=(5000, 4)) @ np.linalg.cholesky(TRUE).T * [1, 20, 0.1, 3] + [5, 0, 1, -3]
BOUNDS = ([-5, -100, 0, -20], [15, 100, 2, 20])


@pytest.mark.parametrize("delta", [0, 1e-9])
def test_without_noise_it_is_the_empirical_covariance(delta):
    exact, model = Exact().fit(X), EmpiricalCovariance(epsilon=1_000_000, delta=delta, bounds=BOUNDS).fit(X)
    size = np.sqrt(np.diag(exact.covariance_))
    assert model.covariance_ / np.outer(size, size) == pytest.approx(exact.covariance_ / np.outer(size, size), abs=0.02)
    assert model.location_ / size == pytest.approx(exact.location_ / size, abs=0.01)
    assert model.correlation_ == pytest.approx(np.corrcoef(X.T), abs=0.01)
    assert model.correlation_margins_.max() < 0.01
    assert model.n_samples_ == pytest.approx(5000, rel=0.01)
    assert model.mahalanobis(X).mean() == pytest.approx(exact.mahalanobis(X).mean(), rel=0.05)
    assert model.score(X) == pytest.approx(exact.score(X), abs=0.05)
    assert model.get_precision() @ model.covariance_ == pytest.approx(np.eye(4), abs=1e-6)


@pytest.mark.parametrize("delta", [0, 1e-6])
def test_margins_of_correlations_hold(delta):
    above, exact = np.triu_indices(4, 1), np.corrcoef(X.T)
    inside = 0
    for _ in range(40):
        model = EmpiricalCovariance(epsilon=1, delta=delta, bounds=BOUNDS).fit(X)
        inside += (np.abs(model.correlation_ - exact) <= model.correlation_margins_)[above].sum()
        assert np.median(model.correlation_margins_[above]) < 0.4
    assert inside >= binom.ppf(1e-6, 40, 0.95) * 6  # the six of one fit are not independent


def test_margins_include_the_noise_in_products_variances_and_means():
    rng, sd, true, mean = np.random.default_rng(4), 0.02, np.array([[1, 0.9], [0.9, 1]]), np.array([0.9, -0.6])
    found = []
    for _ in range(2000):
        noise, shift = np.triu(rng.normal(0, sd, (2, 2))), rng.normal(0, sd, 2)
        noisy = true + noise + np.triu(noise, 1).T + np.outer(mean, mean) - np.outer(mean + shift, mean + shift)
        found.append(noisy[0, 1] / np.sqrt(noisy[0, 0] * noisy[1, 1]))
    moments = ScaledMoments(1e6, mean, np.full(2, sd), true, np.full((2, 2), sd))
    assert np.std(found) < _margins(moments, true, 1.0)[0, 1] < 1.3 * np.std(found)
    centred = ScaledMoments(1e6, 0 * mean, np.full(2, sd), true, np.full((2, 2), sd))
    assert sd * np.sqrt(1 + 0.9**2 / 2) < _margins(centred, true, 1.0)[0, 1] < 1.3 * sd


@pytest.mark.parametrize("rows", [X[:5], X[:100], X * 0])
def test_correlations_that_noise_hides_have_margins_over_all_values(rows):
    model = EmpiricalCovariance(epsilon=0.01, bounds=BOUNDS).fit(rows)
    ends = model.correlation_margins_ - np.abs(model.correlation_)
    assert (ends[np.triu_indices(4, 1)] > 0.99).all()
    assert np.linalg.eigvalsh(model.covariance_).min() > 0
    assert np.isfinite(model.get_precision()).all()
    assert (model.location_ >= BOUNDS[0]).all()
    assert (model.location_ <= BOUNDS[1]).all()


def test_correlations_are_those_of_people_if_they_have_several_rows():
    people = np.repeat(X[:1000], 5, axis=0)
    model = EmpiricalCovariance(epsilon=1000, bounds=BOUNDS).fit(people, unit=np.repeat(np.arange(1000), 5))
    assert model.n_samples_ == pytest.approx(1000, rel=0.05)
    assert model.correlation_ == pytest.approx(np.corrcoef(X[:1000].T), abs=0.03)
