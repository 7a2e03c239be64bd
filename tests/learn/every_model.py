"""One of every estimator, with data that it can learn from; nearly without noise, where scikit-learn looks."""

import numpy as np

from discreet.learn import StandardScaler

NEARLY_EXACT = {"epsilon": 100_000, "bounds": (-20, 20)}  # scikit-learn's checks know nothing of noise
MODELS = [StandardScaler(**NEARLY_EXACT)]

RNG = np.random.default_rng(0)
X = RNG.normal(0, 1, (300, 3))
Y = (X[:, 0] > 0).astype(int)
UNITS = RNG.integers(0, 90, 300)


def name_of(model):
    return type(model).__name__
