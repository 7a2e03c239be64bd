"""Whole fits, with somebody and without them: what comes out, and what was drawn, tells no more than was claimed."""

import math

import numpy as np
import pytest
from scipy import stats

from discreet.learn import StandardScaler
from discreet.learn.kmeans import KMeans
from discreet.learn.linear import LinearRegression
from discreet.learn.logistic import LogisticRegression
from discreet.learn.mixture import GaussianMixture
from discreet.learn.naive_bayes import GaussianNB
from discreet.learn.pca import PCA
from tests.learn.audits import (
    MISSED,
    Data,
    audit,
    audit_fits,
    draws_of,
    epsilon_low,
    judged,
    learned,
    least,
    residuals,
    spent,
    without,
)

BOX = (-5, 5)
DELTA = 0.01
PURE = {"epsilon": 0.25, "bounds": BOX}  # little, so that few fits can show more
GAUSSIAN = {"epsilon": 0.25, "delta": DELTA, "bounds": BOX}
RNG = np.random.default_rng(11)
CROWD = RNG.normal(-2, 0.5, (20, 2))
OUTLIER = Data(np.concatenate([CROWD, [[5, 5]]]))
LONE_LABEL = Data(OUTLIER.X, np.array([0] * 20 + [1]))
FAR_TARGET = Data(OUTLIER.X[:, :1], OUTLIER.X[:, 1])
FIFTY_ROWS = Data(np.concatenate([CROWD, np.full((50, 2), 5.0)]), None, np.array([*range(20), *[20] * 50]))
FIFTY_LABELS = FIFTY_ROWS._replace(y=np.array([0] * 20 + [1] * 50))
MIXTURE = GaussianMixture(1, **GAUSSIAN)
EM = GaussianMixture(2, method="dp-em", n_iter=2, **GAUSSIAN)
CASES = {
    "scaler, pure": (StandardScaler(**PURE), OUTLIER, 200),
    "scaler, Gaussian": (StandardScaler(**GAUSSIAN), OUTLIER, 200),
    "naive Bayes, pure": (GaussianNB(classes=[0, 1], **PURE), LONE_LABEL, 60),
    "naive Bayes, Gaussian": (GaussianNB(classes=[0, 1], **GAUSSIAN), LONE_LABEL, 60),
    "logistic regression": (LogisticRegression(classes=[0, 1], **PURE), LONE_LABEL, 60),
    "regression": (LinearRegression(target_bounds=BOX, **PURE), FAR_TARGET, 60),
    "dp-em": (EM, OUTLIER, 60),
    "whitened": (MIXTURE, OUTLIER, 50),
    "scaler, fifty rows": (StandardScaler(**PURE), FIFTY_ROWS, 200),
    "naive Bayes, fifty rows": (GaussianNB(classes=[0, 1], **PURE), FIFTY_LABELS, 60),
    "dp-em, fifty rows": (EM, FIFTY_ROWS, 60),
}
MORE_CASES = {
    **CASES,
    "whitened, two": (GaussianMixture(2, **GAUSSIAN), OUTLIER, 0),
    "whitened, Laplace": (GaussianMixture(2, noise="laplace", **GAUSSIAN), OUTLIER, 0),
    "whitened, fifty rows": (GaussianMixture(2, **GAUSSIAN), FIFTY_ROWS, 0),
    "dp-em, Laplace": (GaussianMixture(2, method="dp-em", noise="laplace", n_iter=2, **GAUSSIAN), OUTLIER, 0),
    "logistic regression, Gaussian": (LogisticRegression(classes=[0, 1], **GAUSSIAN), LONE_LABEL, 0),
    "regression, Gaussian, fifty rows": (
        LinearRegression(target_bounds=BOX, **GAUSSIAN),
        FIFTY_ROWS._replace(y=FIFTY_ROWS.X[:, 1]),
        0,
    ),
    "principal components": (PCA(1, **PURE), OUTLIER, 0),
    "principal components, Gaussian": (PCA(1, **GAUSSIAN), OUTLIER, 0),
    "k-means": (KMeans(2, **PURE), OUTLIER, 0),
    "k-means, Gaussian, fifty rows": (KMeans(2, **GAUSSIAN), FIFTY_ROWS, 0),
}
every_case = pytest.mark.parametrize(("model", "data", "runs"), CASES.values(), ids=CASES)
every_fit = pytest.mark.parametrize(("model", "data", "_"), MORE_CASES.values(), ids=MORE_CASES)


def last_person(data):
    return data.unit == data.unit[-1] if data.unit is not None else np.arange(len(data.X)) == len(data.X) - 1


@every_case
def test_fits_tell_no_more_of_an_outlier_than_they_claim(model, data, runs):
    there = without(data, last_person(data))
    delta = float(model.delta)
    assert epsilon_low(runs, 0, runs, delta=delta, missed=MISSED / 6) > model.epsilon  # so many fits could show more
    for seen in audit_fits(model, data, there, pilot=runs // 3, runs=runs, delta=delta):
        assert seen.epsilon <= model.epsilon
        if delta:
            assert seen.mu <= math.sqrt(2 * model.loss_.rho)


@every_fit
def test_the_draws_of_a_fit_cost_no_more_than_its_loss(model, data, _):
    """The cost along the path that a fit took, in exact fractions: what one person moved, and by how much noise."""
    there = without(data, last_person(data))
    rows = [draws_of(model, each)[0].rows for each in (data, there)]
    for each in (data, there) * 3:
        epsilon, rho = spent(draws_of(model, each), *rows)
        assert 0 < rho <= model.loss_.rho
        if model.loss_.epsilon is not None:
            assert epsilon <= model.loss_.epsilon


@every_fit
def test_every_draw_gets_the_noise_that_was_paid_for_and_its_own(model, data, _):
    rows = draws_of(model, data)[0].rows
    found = [(draw, noise) for _ in range(6) for draw, noise in noises_of(model, data, rows)]
    for kind, law in (("Laplace", stats.laplace), ("Gaussian", stats.norm)):
        seen = [noise for draw, noise in found if type(draw.noise).__name__ == kind]
        if seen:
            assert stats.kstest(np.concatenate(seen), law.cdf).pvalue > MISSED / 100
    beginnings = [tuple(np.round(noise[:3], 9)) for _, noise in found if len(noise) > 2]  # fewer may agree by chance
    assert len(set(beginnings)) == len(beginnings) > 5


def noises_of(model, data, rows):
    draws = draws_of(model, data)
    return zip(draws, residuals(draws, rows), strict=True)


def test_labels_that_were_not_named_are_counted_and_a_lone_one_is_hardly_ever_a_class():
    X = np.concatenate([RNG.normal(-2, 1, (300, 1)), RNG.normal(2, 1, (300, 1)), [[5.0]]])
    y = np.array([0] * 300 + [1] * 300 + [7])
    model = GaussianNB(epsilon=5, bounds=BOX)
    shown = sum(7 in model.fit(X, y).classes_ for _ in range(60))
    # A threshold that empty labels exceed once in 256,000 times is exceeded by a lone person e^0.5 times as often.
    assert least(shown, 60, MISSED) <= math.exp(0.5) / 256_000


# --- The audit itself is right


def test_an_audit_finds_nearly_all_that_plain_noise_loses_and_no_more():
    rng = np.random.default_rng(3)
    for scale, epsilon in ((1.0, 1.0), (0.5, 2.0)):
        seen = audit(lambda at, b=scale: [rng.laplace(at, b)], 0.0, 1.0, pilot=3000, runs=30_000)
        assert 0.8 * epsilon < seen.epsilon <= epsilon
    seen = audit(lambda at: [rng.normal(at, 0.5), 7.0], 0.0, 1.0, pilot=3000, runs=30_000)
    assert 0.9 * 2 < seen.mu <= 2


def test_an_audit_finds_somebody_who_is_known_by_the_scatter():
    rng = np.random.default_rng(4)
    seen = audit(lambda spread: rng.normal(0, spread, 20), 1.0, 2.0, pilot=300, runs=600)
    assert seen.epsilon > 2


def test_a_delta_is_taken_off():
    here, there = np.r_[np.ones(50), np.zeros(950)], np.zeros(1000)
    tried = [here, there]
    assert judged(tried, tried, delta=0.1, missed=0.05).epsilon == 0
    assert judged(tried, tried, delta=0.0, missed=0.05).epsilon > 1
    assert epsilon_low(900, 100, 1000, delta=0.2, missed=0.025) == pytest.approx(
        math.log((0.8797 - 0.2) / 0.1203), abs=1e-3
    )


def test_all_that_a_fit_gives_is_looked_at():
    model = StandardScaler(**PURE).fit(CROWD)
    assert len(learned(model)) == 1 + 1 + 2 * 3  # rows, columns; means, variances, scales
    assert {model.mean_[0], model.var_[1], model.n_samples_seen_} <= set(learned(model))
