"""GaussianMixture: a private mixture, by one of three methods."""

from typing import Any, Literal, Self

import numpy as np
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from discreet.kernel.ledger import Ledger
from discreet.kernel.numbers import Number
from discreet.learn.fit_cost import REMOVAL, REPLACEMENT, FitLoss, is_substitution
from discreet.learn.fit_inputs import QueryRows, source_from_data, source_from_query
from discreet.learn.fit_session import FitSession, FitSource, check_neighbours, open_session
from discreet.learn.mixture import dp_em, input_noise, whitened_em
from discreet.learn.mixture.composition import CompositionKind
from discreet.learn.mixture.density import log_densities, sample_mixture, to_covariance_type, to_full_covariances
from discreet.learn.mixture.dp_em import GaussianMixtureParameters


class GaussianMixture(DensityMixin, BaseEstimator):  # type: ignore[misc]
    """A differentially private Gaussian mixture.

    method="whitened" is recommended: it starts from noisy marginal tables and takes EM steps on noisy clipped sums.
    "dp-em" (EM with noise on every parameter, under linear, advanced or zCDP composition) and "input-noise" (noise on
    every row) are for comparison.

    >>> import numpy as np, discreet as dc
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal([-3, 0], 1, (4000, 2)), rng.normal([3, 2], 1, (6000, 2))])
    >>> mixture = dc.learn.GaussianMixture(2, epsilon=1, delta=1e-6, bounds=(-10, 10)).fit(X)
    >>> bool(abs(mixture.means_[:, 0].min() + 3) < 0.5), mixture.predict([[3, 2]]).shape, mixture.loss_.neighbours
    (True, (1,), 'removal')
    """

    def __init__(  # noqa: PLR0913 - scikit-learn requires one parameter per setting
        self,
        n_components: int = 1,
        *,
        epsilon: Number,
        delta: Number,
        bounds: Any = None,
        method: Literal["whitened", "dp-em", "input-noise"] = "whitened",
        noise: Literal["gaussian", "laplace"] = "gaussian",
        composition: CompositionKind = "zcdp",
        covariance_type: str = "full",
        n_iter: int | None = None,
        prior: dp_em.MixturePrior | None = None,
        neighbours: str = REMOVAL,
    ) -> None:
        self.n_components, self.epsilon, self.delta, self.bounds = n_components, epsilon, delta, bounds
        self.method, self.noise, self.composition = method, noise, composition
        self.covariance_type, self.n_iter, self.prior, self.neighbours = covariance_type, n_iter, prior, neighbours

    def fit(self, X: Any, y: Any = None, *, unit: Any = None, ledger: Ledger | None = None) -> Self:  # noqa: ARG002 - y is for Pipelines
        """Fit the mixture to X; rows with the same `unit` together count as one row."""
        return self._fit_source(source_from_data(self, X, unit=unit, ledger=ledger, min_rows=2))

    def fit_rows(self, rows: QueryRows) -> Self:
        """Fit to the rows of a curator's query."""
        return self._fit_source(source_from_query(self, rows))

    def _fit_source(self, source: FitSource) -> Self:
        check_neighbours(source, self.neighbours)  # before units are counted for neighbours='replacement'
        to_covariance_type(np.ones((1, 1, 1)), np.ones(1), self.covariance_type)  # validates the type before the charge
        if self.method not in _METHODS:
            raise ValueError(f"method must be one of {', '.join(map(repr, _METHODS))}, not {self.method!r}")
        return _METHODS[self.method](self, source)

    def _set_fitted_attributes(self, parameters: GaussianMixtureParameters) -> None:
        order = np.argsort(-parameters.weights, kind="stable")
        self.weights_, self.means_ = parameters.weights[order], parameters.means[order]
        self.covariances_ = to_covariance_type(parameters.covariances[order], self.weights_, self.covariance_type)
        self.n_components_ = len(np.unique(self.means_, axis=0))  # fewer where noise dominates: see whitened_em.fit

    def score_samples(self, X: Any) -> np.ndarray:
        """Return the log-density of each row of X."""
        return np.asarray(logsumexp(self._log_densities(X), axis=1))

    def score(self, X: Any, y: Any = None) -> float:  # noqa: ARG002 - y is for Pipelines
        """Return the mean log-density of X, without noise; use `evaluate` on private data."""
        return float(self.score_samples(X).mean())

    def predict(self, X: Any) -> np.ndarray:
        """Return the most probable component of each row of X."""
        return np.asarray(self._log_densities(X).argmax(axis=1))

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each component for each row of X."""
        logs = self._log_densities(X)
        return np.asarray(np.exp(logs - logsumexp(logs, axis=1, keepdims=True)))

    def sample(self, n_samples: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """Return synthetic points sampled from the mixture, and their components."""
        check_is_fitted(self)
        return sample_mixture(n_samples, self.weights_, self.means_, self._full_covariances(), np.random.default_rng())

    def _log_densities(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        return log_densities(X, self.weights_, self.means_, self._full_covariances())

    def _full_covariances(self) -> np.ndarray:
        return to_full_covariances(self.covariances_, self.covariance_type, *self.means_.shape)


def _fit_whitened_em(model: GaussianMixture, source: FitSource) -> GaussianMixture:
    delta = 0 if model.noise == "laplace" else model.delta
    plan = whitened_em.plan(
        model.n_components,
        source.rows.low,
        source.rows.high,
        covariance_type=model.covariance_type,
        n_iter=model.n_iter,
    )
    session = open_session(
        source,
        name=type(model).__name__,
        epsilon=model.epsilon,
        delta=delta,
        shares=plan.shares,
        neighbours=model.neighbours,
    )
    model._set_fitted_attributes(whitened_em.fit(session, plan))  # noqa: SLF001 - its own module
    return session.finish(model)


def _fit_dp_em(model: GaussianMixture, source: FitSource) -> GaussianMixture:
    units = _count_units(source) if is_substitution(model.neighbours) else None
    plan = dp_em.plan(
        model.n_components,
        source.rows.low,
        source.rows.high,
        epsilon=model.epsilon,
        delta=model.delta,
        noise=model.noise,
        composition=model.composition,
        n_iterations=10 if model.n_iter is None else model.n_iter,
        neighbours=model.neighbours,
        n_units=units,
        prior=model.prior,
    )
    session = FitSession(source, plan.noises, plan.loss, type(model).__name__, model.neighbours, model.delta)
    model._set_fitted_attributes(dp_em.fit(session, plan))  # noqa: SLF001
    return session.finish(model)


def _fit_input_noise(model: GaussianMixture, source: FitSource) -> GaussianMixture:
    if source.ledger is not None or source.rows.grouped or not is_substitution(model.neighbours):
        raise ValueError(
            "method: 'input-noise' protects the values of a row, not its presence; it needs "
            "neighbours='replacement', no unit and no ledger"
        )
    plan = input_noise.plan(
        model.n_components,
        source.rows.low,
        source.rows.high,
        epsilon=model.epsilon,
        delta=model.delta,
        noise=model.noise,
    )
    rows = np.concatenate([rows for rows, _ in source.rows.batches(1 << 16)])
    model._set_fitted_attributes(input_noise.fit(rows, plan))  # noqa: SLF001
    model.loss_ = FitLoss(plan.loss, neighbours=REPLACEMENT, unit=source.unit)
    return model


def _count_units(source: FitSource) -> int:
    """Return the number of units, which is public when neighbours differ by replacement."""
    count, last = 0, None
    for rows, unit_numbers in source.rows.batches(1 << 16):
        if unit_numbers is None:
            count += len(rows)
        elif len(unit_numbers):
            count += int((np.diff(unit_numbers) != 0).sum()) + int(last is None or unit_numbers[0] != last)
            last = unit_numbers[-1]
    return count


_METHODS = {"whitened": _fit_whitened_em, "dp-em": _fit_dp_em, "input-noise": _fit_input_noise}
