"""One instance of every estimator, nearly without noise for scikit-learn's checks, and data to fit."""

import numpy as np

from discreet.learn import (
    PCA,
    EmpiricalCovariance,
    ExplainableBoostingClassifier,
    ExplainableBoostingRegressor,
    GaussianMixture,
    GaussianNB,
    KMeans,
    LinearRegression,
    LogisticRegression,
    StandardScaler,
)

NEARLY_EXACT = {"epsilon": 100_000, "bounds": (-20, 20)}  # scikit-learn's checks know nothing of noise
MODELS = [
    EmpiricalCovariance(**NEARLY_EXACT),
    ExplainableBoostingClassifier(rounds=8, **NEARLY_EXACT),
    ExplainableBoostingRegressor(target_bounds=(-200, 200), rounds=8, **NEARLY_EXACT),
    GaussianMixture(2, delta=0, **NEARLY_EXACT),
    GaussianNB(**NEARLY_EXACT),
    KMeans(2, **NEARLY_EXACT),
    LinearRegression(target_bounds=(-200, 200), **NEARLY_EXACT),
    LogisticRegression(**NEARLY_EXACT),
    PCA(2, **NEARLY_EXACT),
    StandardScaler(**NEARLY_EXACT),
]

RNG = np.random.default_rng(0)
X = RNG.normal(0, 1, (300, 3))
Y = (X[:, 0] > 0).astype(int)
UNITS = RNG.integers(0, 90, 300)


def name_of(model):
    return type(model).__name__
