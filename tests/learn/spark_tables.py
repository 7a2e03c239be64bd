"""The same rows on Spark and locally, on which models must fit identically, bit for bit."""

import numpy as np
import pyarrow as pa

from discreet.engines.spark.vector_sums import SparkRows
from discreet.kernel.mechanism import Gaussian, Laplace
from discreet.learn import (
    PCA,
    ExplainableBoostingClassifier,
    ExplainableBoostingRegressor,
    GaussianMixture,
    GaussianNB,
    KMeans,
    LinearRegression,
    LogisticRegression,
    StandardScaler,
)
from discreet.learn.fit_session import fitted_attributes
from discreet.learn.mixture import dp_em

MODELS = {
    "whitened": lambda: GaussianMixture(3, epsilon=4, delta=1e-6),
    "whitened-laplace": lambda: GaussianMixture(2, epsilon=4, delta=0, noise="laplace"),
    "dp-em": lambda: GaussianMixture(2, epsilon=4, delta=1e-6, method="dp-em", n_iter=2),
    "kmeans": lambda: KMeans(3, epsilon=4),
    "linear": lambda: LinearRegression(epsilon=4),
    "logistic": lambda: LogisticRegression(epsilon=4),
    "boosting": lambda: ExplainableBoostingClassifier(epsilon=4, classes=[0, 1], rounds=2),
    "boosted-line": lambda: ExplainableBoostingRegressor(epsilon=4, rounds=2),
    "bayes": lambda: GaussianNB(epsilon=4, classes=[0, 1]),
    "pca": lambda: PCA(2, epsilon=4),
    "scaler": lambda: StandardScaler(epsilon=4),
}


def seeded(monkeypatch):
    """Make noise, and random starts, that are the same in every fit that begins with a call of what is returned."""
    rng = [np.random.default_rng(0)]
    start = dp_em.random_start(2, 2)._replace(means=np.array([[-0.3, 0.1], [0.4, -0.2]]))
    monkeypatch.setattr(dp_em, "random_start", lambda components, d: start)

    def perturb(mechanism, values):
        return values + np.rint(rng[0].laplace(0, float(mechanism.scale), values.shape)).astype(np.int64)

    monkeypatch.setattr(Laplace, "perturb", perturb)
    monkeypatch.setattr(Gaussian, "perturb", perturb)

    def begin():
        rng[0] = np.random.default_rng(0)

    return begin


def crowd(rows=6000, people=1500, seed=0):
    """Three places that people go to, how much each visit costs, and whether it was by day; some values are beyond."""
    rng = np.random.default_rng(seed)
    person = rng.zipf(1.7, rows) % people
    place = person % 3
    x = rng.normal([-4, 0, 5], 1, (rows, 3))[np.arange(rows), place]
    y = rng.normal([2, -3, 1], 1.5, (rows, 3))[np.arange(rows), place]
    price = np.clip(2 * x - y + rng.normal(0, 1, rows), -30, 30)
    day = (x + rng.normal(0, 2, rows) > 0).astype(np.int64)
    return pa.table({"person": [f"p{each}" for each in person], "x": x * 3, "y": y, "price": price, "day": day})


ENDS = {"x": (-10.0, 10.0), "y": (-10.0, 10.0), "price": (-30.0, 30.0), "day": (0.0, 1.0)}
TARGETS = {"boosting": "day", "boosted-line": "price", "linear": "price", "logistic": "day", "bayes": "day"}


class Here:
    """The rows of a query, as an estimator gets them from an engine that gives batches."""

    ledger, by, question, protects = None, "owner", "SELECT …", "visitor"

    def __init__(self, table, name, *, grouped=True):
        self.names = ("x", "y", *([TARGETS[name]] if name in TARGETS else []))
        self.bounds = tuple(ENDS[name] for name in self.names)
        units = np.asarray(table["person"]) if grouped else np.arange(len(table))
        codes = np.unique(units, return_inverse=True)[1]
        order = np.argsort(codes, kind="stable")
        self._numbers = np.column_stack([table[name].to_numpy().astype(float) for name in self.names])[order]
        self._places = codes[order]

    def batches(self, size):
        low, high = np.array(self.bounds).T
        for start in range(0, len(self._numbers), size):
            cut = slice(start, start + size)
            yield np.clip(self._numbers[cut], low, high), self._places[cut]


class There(Here):
    """The same rows on Spark, as an estimator gets them from an engine that sums."""

    def __init__(self, table, name, spark, *, grouped=True, spread=lambda frame: frame):
        super().__init__(table, name, grouped=grouped)
        frame = spread(spark.createDataFrame(table)).select(*(["person"] if grouped else []), *self.names)
        self.rows = SparkRows(frame, units=int(grouped), numbers=len(self.names))
        self.passes = 0

    def sum_units(self, part):
        self.passes += 1
        return self.rows.sums(part, self.bounds)

    def batches(self, size):
        raise AssertionError("the rows left Spark")


def learned(model):
    """Everything that a fit left behind, as plain data."""
    return {name: value for name, value in fitted_attributes(model).items() if name != "loss_"}
