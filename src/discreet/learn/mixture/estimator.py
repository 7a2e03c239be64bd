"""The Gaussian mixture as users hold it: settings in, parameters out; the methods are in modules of their own."""

from typing import Any, Literal, Self

import numpy as np
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from discreet.kernel.exact import Number
from discreet.kernel.ledger import Ledger
from discreet.learn.inputs import QueryRows, source_of, source_of_query
from discreet.learn.losses import REMOVAL, REPLACEMENT, FitLoss, replaces
from discreet.learn.mixture import dpem, input_noise, whitened
from discreet.learn.mixture.composition import Kind
from discreet.learn.mixture.density import as_full, log_densities, of_kind, sampled
from discreet.learn.mixture.dpem import Parameters
from discreet.learn.session import Session, Source, begin, check_neighbours


class GaussianMixture(DensityMixin, BaseEstimator):  # type: ignore[misc]
    """A mixture of Gaussians that tells of a population and hides each of its people.

    method="whitened" is the exact one to use: a noisy grid to start from, then noisy sums of what each component sees.
    "dp-em" is EM with noise on every parameter, for comparison, with three ways to compose its losses, and
    "input-noise" perturbs every row instead.

    >>> import numpy as np, discreet as dc
    >>> rng = np.random.default_rng(0)
    >>> places = np.concatenate([rng.normal([-3, 0], 1, (4000, 2)), rng.normal([3, 2], 1, (6000, 2))])
    >>> mixture = dc.learn.GaussianMixture(2, epsilon=1, delta=1e-6, bounds=(-10, 10)).fit(places)
    >>> bool(abs(mixture.means_[:, 0].min() + 3) < 0.5), mixture.predict([[3, 2]]).shape, mixture.loss_.neighbours
    (True, (1,), 'removal')
    """

    def __init__(  # noqa: PLR0913 - scikit-learn's way: every setting is a parameter
        self,
        n_components: int = 1,
        *,
        epsilon: Number,
        delta: Number,
        bounds: Any = None,
        method: Literal["whitened", "dp-em", "input-noise"] = "whitened",
        noise: Literal["gaussian", "laplace"] = "gaussian",
        composition: Kind = "zcdp",
        covariance_type: str = "full",
        n_iter: int | None = None,
        prior: dpem.Prior | None = None,
        neighbours: str = REMOVAL,
    ) -> None:
        self.n_components, self.epsilon, self.delta, self.bounds = n_components, epsilon, delta, bounds
        self.method, self.noise, self.composition = method, noise, composition
        self.covariance_type, self.n_iter, self.prior, self.neighbours = covariance_type, n_iter, prior, neighbours

    def fit(self, X: Any, y: Any = None, *, unit: Any = None, ledger: Ledger | None = None) -> Self:  # noqa: ARG002 - y is for Pipelines
        """Learn a mixture of the rows of X; rows with an equal `unit` are one person's, and weigh together as one."""
        return self._learn(source_of(self, X, unit=unit, ledger=ledger, least=2))

    def fit_rows(self, rows: QueryRows) -> Self:
        """Learn from the rows of a curator's query."""
        return self._learn(source_of_query(self, rows))

    def _learn(self, source: Source) -> Self:
        check_neighbours(source, self.neighbours)  # before the rows are counted, where their number is public
        of_kind(np.ones((1, 1, 1)), np.ones(1), self.covariance_type)  # stops at an unknown kind before it costs
        if self.method not in _METHODS:
            raise ValueError(f"method must be one of {', '.join(map(repr, _METHODS))}, not {self.method!r}")
        return _METHODS[self.method](self, source)

    def _keep(self, found: Parameters) -> None:
        order = np.argsort(-found.weights, kind="stable")
        self.weights_, self.means_ = found.weights[order], found.means[order]
        self.covariances_ = of_kind(found.covariances[order], self.weights_, self.covariance_type)
        self.n_components_ = len(np.unique(self.means_, axis=0))  # fewer, where noise hides that there are more

    def score_samples(self, X: Any) -> np.ndarray:
        """Return the log-density of every row of X."""
        return np.asarray(logsumexp(self._log_densities(X), axis=1))

    def score(self, X: Any, y: Any = None) -> float:  # noqa: ARG002 - y is for Pipelines
        """Return the mean log-density of X, exactly: of private data, use `evaluate`."""
        return float(self.score_samples(X).mean())

    def predict(self, X: Any) -> np.ndarray:
        """Return the most likely component of every row of X."""
        return np.asarray(self._log_densities(X).argmax(axis=1))

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of every component for every row of X."""
        logs = self._log_densities(X)
        return np.asarray(np.exp(logs - logsumexp(logs, axis=1, keepdims=True)))

    def sample(self, n_samples: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """Return points drawn from the mixture, with their components: data that belong to nobody."""
        check_is_fitted(self)
        return sampled(n_samples, self.weights_, self.means_, self._matrices(), np.random.default_rng())

    def _log_densities(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        return log_densities(X, self.weights_, self.means_, self._matrices())

    def _matrices(self) -> np.ndarray:
        return as_full(self.covariances_, self.covariance_type, *self.means_.shape)


def _whitened(model: GaussianMixture, source: Source) -> GaussianMixture:
    delta = 0 if model.noise == "laplace" else model.delta
    plan = whitened.plan(
        model.n_components,
        source.rows.low,
        source.rows.high,
        covariance_type=model.covariance_type,
        n_iter=model.n_iter,
    )
    session = begin(
        source,
        name=type(model).__name__,
        epsilon=model.epsilon,
        delta=delta,
        shares=plan.shares,
        neighbours=model.neighbours,
    )
    model._keep(whitened.fit(session, plan))  # noqa: SLF001 - its own module
    return session.finish(model)


def _dpem(model: GaussianMixture, source: Source) -> GaussianMixture:
    units = _number_of_units(source) if replaces(model.neighbours) else None
    plan = dpem.plan(
        model.n_components,
        source.rows.low,
        source.rows.high,
        epsilon=model.epsilon,
        delta=model.delta,
        noise=model.noise,
        composition=model.composition,
        iterations=10 if model.n_iter is None else model.n_iter,
        neighbours=model.neighbours,
        units=units,
        prior=model.prior,
    )
    session = Session(source, plan.noises, plan.loss, type(model).__name__, model.neighbours, model.delta)
    model._keep(dpem.fit(session, plan))  # noqa: SLF001
    return session.finish(model)


def _input_noise(model: GaussianMixture, source: Source) -> GaussianMixture:
    if source.ledger is not None or source.rows.grouped or not replaces(model.neighbours):
        raise ValueError(
            "method: noise on every row hides what a row says, not that it is there; it is for "
            "neighbours='replacement', single rows and no ledger"
        )
    plan = input_noise.plan(
        model.n_components, source.rows.low, source.rows.high, epsilon=model.epsilon, delta=model.delta
    )
    rows = np.concatenate([rows for rows, _ in source.rows.batches(1 << 16)])
    model._keep(input_noise.fit(rows, plan))  # noqa: SLF001
    model.loss_ = FitLoss(plan.loss, neighbours=REPLACEMENT, unit=source.unit)
    return model


def _number_of_units(source: Source) -> int:
    """Return how many units there are: public, where neighbours replace one."""
    found, last = 0, None
    for rows, places in source.rows.batches(1 << 16):
        if places is None:
            found += len(rows)
        elif len(places):
            found += int((np.diff(places) != 0).sum()) + int(last is None or places[0] != last)
            last = places[-1]
    return found


_METHODS = {"whitened": _whitened, "dp-em": _dpem, "input-noise": _input_noise}
