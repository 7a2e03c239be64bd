"""Noisy counts, centres and deviations of columns, and shrinkage of noisy estimates."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.learn.bounds import BoundArrays
from discreet.learn.fit_session import FitSession

_COUNT_WEIGHT = 0.2  # weight of a unit's presence, relative to all of its columns
_RADIUS_SHARE = 0.35  # clipping radius, relative to the largest possible norm
_PRIOR_DEVIATION = 0.35  # prior mean absolute deviation, in half ranges
_MIN_DEVIATION_RANGE = 1e-4, 0.02  # limits of the minimum deviation, in half ranges; between them, it is the noise


@dataclass(frozen=True)
class ColumnLocation:
    """Noisy count and centres of columns; `half_range` is the largest possible distance from the middle or centre.

    `count_reliability` is 0 if noise dominates the count, and near 1 if it is accurate; `centre_sd` is the remaining
    noise in the centres.
    """

    count: float
    count_reliability: float
    centre: np.ndarray
    centre_sd: np.ndarray
    half_range: np.ndarray


@dataclass(frozen=True)
class ColumnSummary:
    """Noisy count, centres and mean absolute deviations of columns; the `_sd` fields are the remaining noise.

    `count_reliability` is 0 if noise dominates the count, and near 1 if it is accurate.
    """

    count: float
    count_reliability: float
    centre: np.ndarray
    centre_sd: np.ndarray
    mean_abs_deviation: np.ndarray
    mean_abs_deviation_sd: np.ndarray

    @property
    def normal_variance(self) -> np.ndarray:
        """The variances of normal distributions with these mean absolute deviations."""
        return self.mean_abs_deviation**2 * (np.pi / 2)


def summarise_columns(
    session: FitSession, bounds: BoundArrays, weight: np.ndarray, known_centre: np.ndarray | None = None
) -> ColumnSummary:
    """Return count, centres and deviations from two releases; a column's relative noise is 1/weight."""
    location = locate_columns(session, bounds, weight, known_centre)
    radius = _RADIUS_SHARE * noise_norm(session, weight)
    noise_sd = session.sd(radius) / location.count / weight
    total = session.sum(
        _absolute_deviations, (location.centre, location.half_range / weight), size=len(weight), radius=radius
    )
    scaled, remaining_sd = shrink_to_common_mean(
        total / location.count / weight, noise_sd, prior=(_PRIOR_DEVIATION, 0.15), between_sd=0.2
    )
    narrowest = np.clip(remaining_sd, *_MIN_DEVIATION_RANGE)
    scaled = np.clip(
        location.count_reliability * scaled + (1 - location.count_reliability) * _PRIOR_DEVIATION, narrowest, 1
    )
    return ColumnSummary(
        location.count,
        location.count_reliability,
        location.centre,
        location.centre_sd,
        scaled * location.half_range,
        remaining_sd * location.half_range,
    )


def locate_columns(
    session: FitSession, bounds: BoundArrays, weight: np.ndarray, known_centre: np.ndarray | None = None
) -> ColumnLocation:
    """Return count and centres from one release; with a known centre, the release is a count only."""
    middle, half_range = (bounds[0] + bounds[1]) / 2, (bounds[1] - bounds[0]) / 2
    if known_centre is None:
        return _locate_by_means(session, middle, half_range, weight)
    sd = session.sd()
    count, reliability = usable_count(float(session.sum(_ones, (), size=1, radius=1)[0]), sd)
    return ColumnLocation(
        count,
        reliability,
        known_centre,
        np.zeros(len(known_centre)),
        np.maximum(bounds[1] - known_centre, known_centre - bounds[0]),
    )


def noise_norm(session: FitSession, vector: Any) -> float:
    """Return the norm of a vector: l2 if the next release has Gaussian noise, else l1."""
    return float(np.sqrt(np.square(vector).sum()) if session.is_gaussian else np.abs(vector).sum())


def shrinkage_factor(prior_sd: np.ndarray, noise_sd: np.ndarray) -> np.ndarray:
    """Return the shrinkage factor prior² / (prior² + noise²)."""
    return np.asarray(prior_sd**2 / (prior_sd**2 + noise_sd**2 + np.finfo(float).tiny))


def fill_pair_products(rows: np.ndarray, out: np.ndarray) -> None:
    """Fill `out` with the products of all pairs i ≤ j of rows, in the order of numpy.triu_indices."""
    at = 0
    for i in range(len(rows)):
        np.multiply(rows[i], rows[i:], out=out[at : at + len(rows) - i])
        at += len(rows) - i


def symmetric_from_upper(values: np.ndarray, size: int) -> np.ndarray:
    """Return the symmetric matrix whose upper triangle holds the values."""
    matrix = np.zeros((size, size))
    matrix[np.triu_indices(size)] = values
    return matrix + np.triu(matrix, 1).T


def _locate_by_means(
    session: FitSession, middle: np.ndarray, half_range: np.ndarray, weight: np.ndarray
) -> ColumnLocation:
    count_weight = _COUNT_WEIGHT * noise_norm(session, weight)
    radius = noise_norm(session, [count_weight, noise_norm(session, weight)])
    sd = session.sd(radius)
    total = session.sum(
        _count_and_offsets, (middle, half_range / weight, count_weight), size=1 + len(half_range), radius=radius
    )
    count, reliability = usable_count(float(total[0] / count_weight), sd / count_weight)
    scaled, remaining_sd = shrink_to_common_mean(
        total[1:] / count / weight, sd / count / weight, prior=(0.0, 0.4), between_sd=0.4
    )
    return ColumnLocation(
        count,
        reliability,
        middle + reliability * half_range * np.clip(scaled, -1, 1),
        half_range * remaining_sd,
        half_range,
    )


def usable_count(noisy_count: float, sd: float) -> tuple[float, float]:
    """Return a count to divide by, at least two noise deviations and 10, and its reliability from 0 to 1."""
    reliability = max(0.0, 1 - (sd / noisy_count) ** 2) if noisy_count > 0 else 0.0
    return max(noisy_count, 2 * sd, 10.0), reliability


def shrink_to_common_mean(
    values: np.ndarray, noise_sd: np.ndarray, *, prior: tuple[float, float], between_sd: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return noisy values shrunk towards their common mean, and the remaining noise.

    `prior` is the prior mean and deviation of the common mean; `between_sd` is the prior deviation of values around it.
    """
    prior_mean, prior_sd = prior
    weight = 1 / (between_sd**2 + noise_sd**2)
    common = ((weight * values).sum() + prior_mean / prior_sd**2) / (weight.sum() + 1 / prior_sd**2)
    observed_variance = float((weight * ((values - common) ** 2 - noise_sd**2)).sum() / weight.sum())
    estimated_sd = np.sqrt(np.clip(observed_variance, (between_sd / 8) ** 2, (2 * between_sd) ** 2))
    factor = shrinkage_factor(estimated_sd, noise_sd)
    return common + factor * (values - common), np.sqrt(factor) * noise_sd


def _ones(rows: np.ndarray, _: tuple[Any, ...]) -> np.ndarray:
    return np.ones((len(rows), 1))


def _count_and_offsets(rows: np.ndarray, public: tuple[Any, ...]) -> np.ndarray:
    middle, scale, count_weight = public
    out = np.empty((1 + len(scale), len(rows)))
    out[0] = count_weight
    np.divide(rows.T - middle[:, np.newaxis], scale[:, np.newaxis], out=out[1:])
    return out.T


def _absolute_deviations(rows: np.ndarray, public: tuple[Any, ...]) -> np.ndarray:
    centre, scale = public
    return np.asarray((np.abs(rows.T - centre[:, np.newaxis]) / scale[:, np.newaxis]).T)
