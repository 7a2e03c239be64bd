"""PCA: principal axes from noisy second moments; columns with variances below the noise are left out."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from discreet.kernel.ledger import Ledger
from discreet.kernel.numbers import Number, as_integer
from discreet.learn.bounds import BoundArrays
from discreet.learn.fit_cost import REMOVAL
from discreet.learn.fit_inputs import QueryRows, source_from_data, source_from_query
from discreet.learn.fit_session import FitSession, FitSource, open_model_session
from discreet.learn.moments import (
    ColumnSummary,
    fill_pair_products,
    shrinkage_factor,
    summarise_columns,
    symmetric_from_upper,
)

_TINY = np.finfo(float).tiny
_MAX_COLUMNS = 256  # at most this many columns have their products summed
_FIRST_AXIS_SHARE = 0.25  # prior share of the variance along the first axis
# Factors on the typical norm for the clipping radius, and the share of the variance that clipping then loses: a larger
# radius helps only where the noise is small.
_RADIUS_FACTORS = ((1, 0.012), (2, 0.004), (4, 0.0015), (8, 5e-4), (16, 2e-4), (32, 7e-5), (64, 0.0))
_FIRST_MOMENT_WEIGHT = 0.1  # weight of the first moments, which correct the centre, relative to the second moments
_MIN_SHRINKAGE_FACTOR = 0.3  # minimum factor of the first moments for correcting the second moments with them
_PRIOR_CORRELATION_SQUARED = 0.4  # prior squared correlation of two selected columns
_PRIOR_VARIANCE_ERROR_SQUARED = (
    0.5  # prior relative error, squared, of a variance estimated from the mean absolute deviation
)


@dataclass(frozen=True)
class PrincipalAxes:
    """Orthonormal directions by decreasing variance; `noise_eigenvalue` is the variance that noise alone can cause."""

    count: float
    mean: np.ndarray
    mean_abs_deviation: np.ndarray
    directions: np.ndarray
    variances: np.ndarray
    noise_eigenvalue: float
    total_variance: float

    @property
    def denoised_variances(self) -> np.ndarray:
        """The variances less the upward bias that noise causes in the eigenvalues above it."""
        added = self.noise_eigenvalue**2 / np.maximum(self.variances, self.noise_eigenvalue + _TINY)
        return np.asarray(np.maximum(self.variances - added, 0))

    @property
    def deviations(self) -> np.ndarray:
        """The standard deviation along each axis, kept above zero whatever the noise."""
        variances = np.maximum(self.denoised_variances, 0.1 * self.variances)
        usual_variance = float((self.mean_abs_deviation**2).max()) * np.pi / 2
        variances[0] = max(variances[0], 0.3 * usual_variance)
        return np.asarray(np.sqrt(variances))


def principal_axes(
    session: FitSession, bounds: BoundArrays, min_axes: int, known_centre: np.ndarray | None = None
) -> PrincipalAxes:
    """Return at least `min_axes` axes, from three releases: means, mean absolute deviations and products of columns."""
    return axes_of_columns(
        session, summarise_columns(session, bounds, (bounds[1] - bounds[0]) / 2, known_centre), min_axes
    )


def axes_of_columns(session: FitSession, summary: ColumnSummary, min_axes: int) -> PrincipalAxes:
    """Return at least `min_axes` axes from one release of products, given centres and deviations."""
    columns, radius_factor = _select_columns(session, summary, min_axes)
    mean_shift, second_moments, noise_sd = _noisy_moments(session, summary, columns, radius_factor)
    mean = summary.centre.copy()
    mean[columns] += mean_shift
    covariance, remaining_sd = _shrink_covariance(
        second_moments, noise_sd, summary.normal_variance[columns], summary.count_reliability
    )
    variances, vectors = np.linalg.eigh(covariance)
    directions = np.zeros((len(mean), len(columns)))
    directions[columns] = vectors[:, ::-1]
    other_variance = np.delete(summary.normal_variance, columns).sum()
    return PrincipalAxes(
        summary.count,
        mean,
        summary.mean_abs_deviation,
        directions,
        np.maximum(variances[::-1], 0),
        remaining_sd * np.sqrt(len(columns)),
        float(np.trace(covariance) + other_variance),
    )


def _noisy_moments(
    session: FitSession, summary: ColumnSummary, columns: np.ndarray, radius_factor: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the shift of the columns' means from their centres, their second moments, and the noise in the latter."""
    m = len(columns)
    off_diagonal_weight = np.sqrt(2) if session.is_gaussian else 1.0  # preserves the Frobenius norm
    weight, radius = _weight_and_radius(session, summary.mean_abs_deviation[columns], radius_factor)
    sd = session.sd(radius) / summary.count
    public = summary.centre, columns, weight, off_diagonal_weight
    total = session.sum(_offsets_and_products, public, size=m + m * (m + 1) // 2, radius=radius) / summary.count
    off_diagonal, shift_sd = ~np.eye(m, dtype=bool), sd / weight
    shift = summary.count_reliability * total[:m] / weight
    shrinkage = shrinkage_factor(summary.centre_sd[columns], np.full(m, shift_sd))
    second_moments = symmetric_from_upper(total[m:], m) / np.where(off_diagonal, off_diagonal_weight, 1)
    if shrinkage.mean() > _MIN_SHRINKAGE_FACTOR:  # otherwise an error in the centre looks like an axis
        second_moments -= np.outer(shift, shift) - shift_sd**2 * np.eye(m)
    return shrinkage * shift, second_moments, np.where(off_diagonal, sd / off_diagonal_weight, sd)


def _select_columns(session: FitSession, summary: ColumnSummary, min_axes: int) -> tuple[np.ndarray, int]:
    """Return the columns whose products exceed their noise, and the radius factor; a function of released values."""
    order = np.argsort(-summary.mean_abs_deviation)
    m = np.arange(1, len(order) + 1)
    captured_variance = np.cumsum(summary.normal_variance[order])
    usual_norm = (
        captured_variance
        if session.is_gaussian
        else _pair_product_sum(
            np.cumsum(summary.mean_abs_deviation[order]), np.cumsum(summary.mean_abs_deviation[order] ** 2)
        )
    )
    noise = session.sd() * usual_norm * np.sqrt(m) / summary.count
    best = (-1.0, 1, 1)
    for radius_factor, hidden_share in _RADIUS_FACTORS:
        usable_variance = (
            captured_variance
            * np.maximum(1 - (radius_factor * noise / (_FIRST_AXIS_SHARE * captured_variance)) ** 2, 0)
            * (1 - hidden_share)
        )
        best = max(best, (float(usable_variance.max()), int(np.argmax(usable_variance)) + 1, radius_factor))
    return np.sort(order[: max(min_axes, min(best[1], _MAX_COLUMNS))]), best[2]


def _weight_and_radius(session: FitSession, mean_abs_deviation: np.ndarray, radius_factor: int) -> tuple[float, float]:
    """Return the weight of the first moments and the clipping radius."""
    if session.is_gaussian:
        square = radius_factor * np.pi / 2 * float((mean_abs_deviation**2).sum())
        weight = _FIRST_MOMENT_WEIGHT * np.sqrt(square / radius_factor)
        return float(weight), float(np.sqrt(square**2 + weight**2 * square))
    weight = _FIRST_MOMENT_WEIGHT * float(mean_abs_deviation.sum())
    pairs = radius_factor * float(_pair_product_sum(mean_abs_deviation.sum(), (mean_abs_deviation**2).sum()))
    return weight, pairs + np.sqrt(radius_factor) * weight * float(mean_abs_deviation.sum())


def _pair_product_sum(total: Any, squares: Any) -> Any:
    """Return Σ_{i≤j} x_i·x_j from Σx and Σx²."""
    return (total**2 + squares) / 2


def _shrink_covariance(
    second_moments: np.ndarray, noise_sd: np.ndarray, variance: np.ndarray, reliability: float
) -> tuple[np.ndarray, float]:
    """Return the covariance with each entry shrunk according to its noise, and the remaining noise."""
    variance_scale = np.sqrt(np.outer(variance, variance))
    shrinkage = reliability * shrinkage_factor(np.sqrt(_PRIOR_CORRELATION_SQUARED) * variance_scale, noise_sd)
    covariance = shrinkage * second_moments
    noisy_variance = np.diag(second_moments)
    diagonal_shrinkage = reliability * shrinkage_factor(
        np.sqrt(_PRIOR_VARIANCE_ERROR_SQUARED) * variance, np.diag(noise_sd)
    )
    np.fill_diagonal(covariance, variance + diagonal_shrinkage * (noisy_variance - variance))
    return covariance, float(np.sqrt(np.mean((shrinkage * noise_sd) ** 2)))


def _offsets_and_products(rows: np.ndarray, public: tuple[Any, ...]) -> np.ndarray:
    """Return each row's centred columns and the products of all pairs of them."""
    centre, columns, weight, off_diagonal_weight = public
    m = len(columns)
    z = rows.T[columns] - centre[columns, np.newaxis]
    out = np.empty((m + m * (m + 1) // 2, len(rows)))
    np.multiply(z, weight, out=out[:m])
    fill_pair_products(z, out[m:])
    if off_diagonal_weight != 1:
        first, second = np.triu_indices(m)
        out[m:][first != second] *= off_diagonal_weight
    return out.T


_SHARES = ("0.15", "0.1", "0.75")  # budget shares: means, mean absolute deviations, products


class PCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Finds the principal components, as scikit-learn's PCA does.

    >>> x = np.random.default_rng(0).normal(size=(100_000, 1))
    >>> pca = PCA(1, epsilon=1, bounds=(-5, 5)).fit(np.hstack([x, 0.1 - x]))
    >>> bool(abs(pca.components_[0] @ [1, -1]) > 1.4), pca.loss_
    (True, Loss(epsilon=1, rho=1/2, for the removal of one row))
    """

    def __init__(  # noqa: PLR0913 - scikit-learn requires one parameter per setting
        self,
        n_components: int | None = None,
        *,
        epsilon: Number,
        delta: Number = 0,
        bounds: Any = None,
        whiten: bool = False,
        centered: bool = False,
        neighbours: str = REMOVAL,
    ) -> None:
        self.n_components, self.whiten, self.centered = n_components, whiten, centered
        self.epsilon, self.delta, self.bounds, self.neighbours = epsilon, delta, bounds, neighbours

    def fit(self, X: Any, y: Any = None, *, unit: Any = None, ledger: Ledger | None = None) -> Self:  # noqa: ARG002 - y is for Pipelines
        """Fit the components of X; rows with the same `unit` together count as one row."""
        return self._fit_source(source_from_data(self, X, unit=unit, ledger=ledger))

    def fit_rows(self, rows: QueryRows) -> Self:
        """Fit to the rows of a curator's query."""
        return self._fit_source(source_from_query(self, rows))

    def _fit_source(self, source: FitSource) -> Self:
        bounds = source.rows.low, source.rows.high
        n_columns = len(bounds[0])
        n_components = (
            n_columns if self.n_components is None else as_integer(self.n_components, "n_components", minimum=1)
        )
        if n_components > n_columns:
            raise ValueError(f"n_components must be at most {n_columns}, the number of columns, not {n_components}")
        session = open_model_session(self, source, _SHARES)
        axes = principal_axes(
            session, bounds, min_axes=n_components, known_centre=np.zeros(n_columns) if self.centered else None
        )
        self._set_fitted_attributes(axes, n_components)
        return session.finish(self)

    def _set_fitted_attributes(self, axes: PrincipalAxes, n_components: int) -> None:
        components = axes.directions.T[:n_components]
        largest = np.abs(components).argmax(axis=1)
        self.components_ = components * np.sign(components[np.arange(n_components), largest])[:, np.newaxis]
        self.mean_, self.n_components_, self.n_samples_ = axes.mean, n_components, axes.count
        self.explained_variance_ = axes.denoised_variances[:n_components]
        explained = float(self.explained_variance_.sum())
        total = max(axes.total_variance, explained, np.finfo(float).tiny)
        self.explained_variance_ratio_ = self.explained_variance_ / total
        self.singular_values_ = np.sqrt(self.explained_variance_ * max(axes.count - 1, 1.0))
        n_other_columns = axes.directions.shape[0] - n_components
        self.noise_variance_ = (total - explained) / n_other_columns if n_other_columns else 0.0

    def transform(self, X: Any) -> np.ndarray:
        """Return the coordinates of the rows along the components."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        return np.asarray((X - self.mean_) @ self.components_.T / self._component_scale())

    def inverse_transform(self, X: Any) -> np.ndarray:
        """Return the rows with these coordinates along the components."""
        check_is_fitted(self)
        return np.asarray(np.asarray(X, np.float64) * self._component_scale() @ self.components_ + self.mean_)

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def _component_scale(self) -> Any:
        if not self.whiten:
            return 1.0
        smallest_variance = np.finfo(float).eps * (self.explained_variance_.max() + np.finfo(float).tiny)
        return np.sqrt(np.maximum(self.explained_variance_, smallest_variance))
