"""Audits of whole fits, thousands of each: what one person changes stays below the claim, and how near it comes."""

import math
import sys
from pathlib import Path

import numpy as np
import pytest

from discreet.learn import StandardScaler
from discreet.learn.linear_model.least_squares import LinearRegression
from discreet.learn.linear_model.logistic import LogisticRegression
from discreet.learn.mixture import GaussianMixture
from discreet.learn.naive_bayes import GaussianNB

sys.path.insert(0, str(Path(__file__).parents[2]))
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
