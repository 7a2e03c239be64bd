"""The adversary of a fit: it never sees more than a sound fit claims, and it sees through every broken one."""

import numpy as np
import pytest

from discreet import audit
from discreet.engines.row_sums import sums_observed_by
from discreet.kernel import model_release
from discreet.learn import (
    ExplainableBoostingClassifier,
    ExplainableBoostingRegressor,
    GaussianNB,
    LinearRegression,
    StandardScaler,
)
from discreet.learn.linear_model.logistic import LogisticRegression
from tests.broken.learners import kept_by_rounding_alone

CROWD = np.zeros((600, 1))
OUTLIER = np.append(CROWD, [[5.0]], axis=0)


def scaled(X, epsilon=1):
    return StandardScaler(epsilon=epsilon, bounds=(-5, 5)).fit(X)


def labels(X):
    return (X[:, 0] > 0).astype(int)


def bayes(X, epsilon=1, **more):
    return GaussianNB(epsilon=epsilon, bounds=(-5, 5), classes=[0, 1], **more).fit(X, labels(X))


def line(X, epsilon=1, **more):
    return LinearRegression(epsilon=epsilon, bounds=(-5, 5), target_bounds=(-5, 5), **more).fit(X, X[:, 0])


def boosted(X, epsilon=1, **more):
    return ExplainableBoostingClassifier(epsilon=epsilon, bounds=(-5, 5), classes=[0, 1], max_bins=2, **more).fit(
        X, labels(X)
    )


def boosted_line(X, epsilon=1, **more):
    model = ExplainableBoostingRegressor(epsilon=epsilon, bounds=(-5, 5), target_bounds=(-5, 5), max_bins=2, **more)
    return model.fit(X, X[:, 0])


FITS = {"scaler": scaled, "naive Bayes": bayes, "regression": line, "boosting": boosted, "boosted line": boosted_line}


def scores(fit, times, D=OUTLIER, D2=CROWD):
    adversary = audit.FitAdversary(fit, D, D2)
    return np.array([adversary(data) for data in (D, D2) for _ in range(times)])


@pytest.mark.parametrize("fit", FITS.values(), ids=FITS)
def test_no_fit_of_a_sound_learner_discloses_more_than_its_claim(fit):
    """With Laplace noise, the log-likelihood ratio of one run is a privacy loss, and never exceeds epsilon."""
    found = scores(fit, 12)
    assert (np.abs(found) <= 1 + 1e-9).all()
    assert np.abs(found).max() > 0.2  # the adversary sees something


def test_rows_of_one_person_are_replayed_as_one_unit():
    unit = np.append(np.arange(600), np.full(9, 600))

    def fit(data):
        X, who = data
        return StandardScaler(epsilon=1, bounds=(-5, 5)).fit(X, unit=who)

    here = np.append(CROWD, np.full((9, 1), 5.0), axis=0), unit
    found = scores(fit, 10, here, (CROWD, unit[:600]))
    assert 0.2 < np.abs(found).max() <= 1 + 1e-9


def test_half_of_the_noise_is_seen():
    assert np.abs(scores(lambda X: scaled(X, epsilon=2), 25)).max() > 1


def test_statistics_that_are_released_twice_under_one_charge_are_seen():
    def twice(X):
        scaled(X)
        return scaled(X)

    assert np.abs(scores(twice, 25)).max() > 1


def test_a_sum_that_is_not_clipped_is_seen(monkeypatch):
    assert np.abs(scores(bayes, 10)).max() <= 1 + 1e-9
    monkeypatch.setattr(model_release, "_clip_to_ball", kept_by_rounding_alone)
    assert np.abs(scores(bayes, 10)).max() > 1


def test_bounds_and_bins_from_the_data_are_seen_with_certainty():
    def from_the_data(X):
        return StandardScaler(epsilon=1, bounds=(-1, 1.1 * X.max() + 1)).fit(X)

    def more_sums_for_outliers(X):
        return boosted(X, rounds=2 if X.max() > 1 else 1)

    for fit in (from_the_data, more_sums_for_outliers):
        found = scores(fit, 2)
        assert (found[:2] > 1e8).all()
        assert (found[2:] < -1e8).all()


def test_a_broken_learner_is_refuted_by_an_audit_and_a_sound_one_is_not():
    for epsilon, holds in ((4, True), (8, False)):
        adversary = audit.FitAdversary(lambda X, epsilon=epsilon: scaled(X, epsilon), OUTLIER[590:], CROWD[590:])
        result = audit.measure(adversary, adversary.D, adversary.D2, claim=2 if not holds else 4, runs=60)
        assert result.holds == holds


def test_an_observer_is_left_behind_even_after_an_error():
    with pytest.raises(ZeroDivisionError), sums_observed_by(lambda *_: 1 / 0):
        scaled(CROWD)
    assert scaled(CROWD).n_samples_seen_ > 0


def test_fits_with_gaussian_noise_are_replayed_too():
    adversary = audit.FitAdversary(
        lambda X: LogisticRegression(epsilon=1, delta=1e-5, bounds=(-5, 5), classes=[0, 1]).fit(X, labels(X)),
        OUTLIER,
        CROWD,
    )
    found = [adversary(OUTLIER) for _ in range(5)]
    assert np.isfinite(found).all()
    assert len(set(found)) == 5
