"""Audits of whole fits, thousands of each: what one person changes stays below the claim, and how near it comes."""

import math
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from discreet import audit
from discreet.kernel import model_release
from discreet.learn import ExplainableBoostingClassifier, ExplainableBoostingRegressor, StandardScaler
from discreet.learn.linear_model.least_squares import LinearRegression
from discreet.learn.linear_model.logistic import LogisticRegression
from discreet.learn.mixture import GaussianMixture
from discreet.learn.naive_bayes import GaussianNB

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.broken.learners import kept_by_rounding_alone
from tests.learn.audits import Data, audit_fits, without

pytestmark = pytest.mark.slow

BOX, DELTA = (-5, 5), 0.01
PURE = {"epsilon": 2, "bounds": BOX}
GAUSSIAN = {"epsilon": 4, "delta": DELTA, "bounds": BOX}
RNG = np.random.default_rng(17)
CROWD = RNG.normal(-2, 0.5, (40, 2))
OUTLIER = Data(np.concatenate([CROWD, [[5, 5]]]))
LONE_LABEL = Data(OUTLIER.X, np.array([0] * 40 + [1]))
FAR_TARGET = Data(OUTLIER.X[:, :1], OUTLIER.X[:, 1])
FIFTY_ROWS = Data(np.concatenate([CROWD, np.full((50, 2), 5.0)]), None, np.array([*range(40), *[40] * 50]))
FIFTY_LABELS = FIFTY_ROWS._replace(y=np.array([0] * 40 + [1] * 50))
EM = GaussianMixture(2, method="dp-em", n_iter=2, **GAUSSIAN)
CASES = {
    "scaler, pure": (StandardScaler(**PURE), OUTLIER, 5_000),
    "scaler, Gaussian": (StandardScaler(**GAUSSIAN), OUTLIER, 5_000),
    "scaler, fifty rows": (StandardScaler(**PURE), FIFTY_ROWS, 5_000),
    "naive Bayes, pure": (GaussianNB(classes=[0, 1], **PURE), LONE_LABEL, 1_000),
    "naive Bayes, Gaussian": (GaussianNB(classes=[0, 1], **GAUSSIAN), LONE_LABEL, 1_000),
    "naive Bayes, fifty rows": (GaussianNB(classes=[0, 1], **PURE), FIFTY_LABELS, 1_000),
    "logistic regression, pure": (LogisticRegression(classes=[0, 1], **PURE), LONE_LABEL, 1_000),
    "logistic regression, Gaussian": (LogisticRegression(classes=[0, 1], **GAUSSIAN), LONE_LABEL, 1_000),
    "regression": (LinearRegression(target_bounds=BOX, **PURE), FAR_TARGET, 1_000),
    "dp-em": (EM, OUTLIER, 1_000),
    "dp-em, fifty rows": (EM, FIFTY_ROWS, 1_000),
    "whitened": (GaussianMixture(2, **GAUSSIAN), OUTLIER, 400),
    "whitened, fifty rows": (GaussianMixture(2, **GAUSSIAN), FIFTY_ROWS, 400),
}


@pytest.mark.parametrize(("model", "data", "runs"), CASES.values(), ids=CASES)
def test_thousands_of_fits_disclose_no_more_about_one_person_than_they_claim(model, data, runs):
    gone = data.unit == data.unit[-1] if data.unit is not None else np.arange(len(data.X)) == len(data.X) - 1
    delta = float(model.delta)
    both = audit_fits(model, data, without(data, gone), pilot=runs // 5, runs=runs, delta=delta, missed=(0.05, 1e-10))
    mu = math.sqrt(2 * model.loss_.rho)
    for who, (likely, certain) in zip(("what comes out", "all that was drawn"), both, strict=True):
        shown = f"epsilon {likely.epsilon:.2f} of {model.epsilon}"
        shown += f", mu {likely.mu:.2f} of {mu:.2f}" if delta else ""
        print(f"{who}: {shown}")
        assert certain.epsilon <= model.epsilon
        assert not delta or certain.mu <= mu
    assert both[1][0].epsilon > 0  # the adversary who sees everything sees something, or it would be no test


# --- Half of the claim, proved: one canary far from the rest, in or out by a coin


def bayes(data, epsilon=1):
    return GaussianNB(epsilon=epsilon, bounds=BOX, classes=[0, 1]).fit(*data)


def line(data, epsilon=1):
    return LinearRegression(epsilon=epsilon, bounds=BOX, target_bounds=BOX).fit(*data)


def boosted(data, epsilon=1):
    return ExplainableBoostingClassifier(epsilon=epsilon, bounds=BOX, classes=[0, 1]).fit(*data)


def boosted_line(data, epsilon=1):
    return ExplainableBoostingRegressor(epsilon=epsilon, bounds=BOX, target_bounds=BOX).fit(*data)


def with_canary(x, y):
    """Return 300 people near zero, with target or label 0, and one with these values; and the same without the one."""
    crowd = RNG.normal(0, 0.01, (300, 1))
    return (np.append(crowd, [[x]], axis=0), np.append(np.zeros(300), y)), (crowd, np.zeros(300))


# The canary of the regression has the features of everybody else, so that nearly all that changes is one square.
CANARIES = {
    "naive Bayes": (bayes, with_canary(5, 1)),
    "linear regression": (line, with_canary(0, 5)),
    "boosting": (boosted, with_canary(5, 1)),
    "boosting of a regression": (boosted_line, with_canary(5, 5)),
}
each_fit = pytest.mark.parametrize(("fit", "data"), CANARIES.values(), ids=CANARIES)


def audit_canaries(fit, data, runs):
    """Return a function from a confidence to the audit of so many fits; the surest quarter of guesses counts."""
    adversary = audit.FitAdversary(fit, *data)
    included = RNG.random(runs) < 0.5
    scores = [adversary(data[0] if each else data[1]) for each in included]
    return lambda confidence: audit.one_run(
        scores, included, delta=0, guesses=runs // 4, claim=1, confidence=confidence
    )


@each_fit
def test_the_strongest_adversary_proves_half_of_the_claim_and_no_more_than_the_claim(fit, data):
    found = audit_canaries(fit, data, runs=5_000)
    print(f"{fit.__name__}: epsilon {found(0.95).epsilon_low:.2f} of 1 at 95 %; {found(0.95).event}")
    assert found(0.95).epsilon_low >= 0.5
    assert found(1 - 1e-9).holds


@each_fit
def test_a_learner_with_half_of_the_noise_is_refuted(fit, data):
    found = audit_canaries(partial(fit, epsilon=2), data, runs=1_200)
    print(f"{fit.__name__}, half of the noise: epsilon {found(0.95).epsilon_low:.2f}")
    assert not found(0.95).holds


@each_fit
def test_a_learner_that_does_not_clip_is_refuted(fit, data, monkeypatch):
    """A log-likelihood ratio of pure noise never exceeds epsilon: one that does refutes the claim with certainty."""
    adversary = audit.FitAdversary(fit, *data)

    def largest():
        return max(abs(adversary(each)) for each in data * 40)

    assert largest() <= 1 + 1e-9
    monkeypatch.setattr(model_release, "_clip_to_ball", kept_by_rounding_alone)
    assert largest() > 1 + 1e-9
