"""Noisy means and covariances of all columns, released together in units of their scales.

A column may be sparse (nearly always zero), as one-hot columns are: its mean absolute deviation then says little about
its non-zero values, and its variance may be below the noise. Therefore scales are root mean squares with a floor at the
noise, and values are not clamped any further.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.learn.fit_session import FitSession
from discreet.learn.moments import (
    ColumnLocation,
    fill_pair_products,
    noise_norm,
    shrink_to_common_mean,
    shrinkage_factor,
    symmetric_from_upper,
)

_COUNT_WEIGHT = 0.15  # weight of the count, relative to all products together
_NORMAL_MEAN_ABS = np.sqrt(2 / np.pi)  # E|z| of a standard normal z
_RADIUS_FACTORS = (1.5, 2.0, 3.0, 4.0, 8.0, 16.0, 32.0, 64.0)
_RADIUS_SHARE = 0.2  # clipping radius of the squares, relative to the largest possible norm
# Prior mean and deviation of mean squares, and the deviation between columns, in squared half ranges.
_PRIOR_SQUARE, _PRIOR_SQUARE_SD, _BETWEEN_SQUARES_SD = 0.15, 0.15, 0.1
_NOISE_SHARE_IN_SCALE = 0.15  # share of the noise added to a mean square, so that constant columns do not look wide
_MIN_SQUARE = 1e-9


@dataclass(frozen=True)
class ScaledMoments:
    """Means and covariances of columns in units of their scales, with the noise in both, and the noisy count."""

    count: float
    mean: np.ndarray
    mean_sd: np.ndarray
    covariance: np.ndarray
    covariance_sd: np.ndarray


def expected_variances_and_scales(
    session: FitSession, location: ColumnLocation, weight: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the expected variances in squared scales, and the scales relative to half a range, from one release."""
    radius = _RADIUS_SHARE * noise_norm(session, weight)
    noise_sd = session.sd(radius) / location.count / weight
    total = session.sum(
        _squared_deviations, (location.centre, location.half_range, weight), size=len(weight), radius=radius
    )
    shrunken, remaining_sd = shrink_to_common_mean(
        total / location.count / weight,
        noise_sd,
        prior=(_PRIOR_SQUARE, _PRIOR_SQUARE_SD),
        between_sd=_BETWEEN_SQUARES_SD,
    )
    square = np.clip(location.count_reliability * shrunken + (1 - location.count_reliability) * _PRIOR_SQUARE, 0, 1)
    scale_squared = np.clip(square + _NOISE_SHARE_IN_SCALE * remaining_sd, _MIN_SQUARE, 1)
    return square / scale_squared, np.sqrt(scale_squared)


def noisy_moments(  # noqa: PLR0913, PLR0917 - weights and limits of one release
    session: FitSession,
    location: ColumnLocation,
    scale: np.ndarray,
    product_weights: np.ndarray,
    mean_weights: np.ndarray,
    max_noise: float,
) -> ScaledMoments:
    """Return the noisy products of all columns, released together with their means and the count.

    The radius is enlarged, so that fewer rows are clipped, while noise · sqrt(factor) in the correlations of normal
    columns stays below `max_noise`.

    A product has the larger weight of its two columns; the weights of means are relative to all products together.
    """
    d = len(scale)
    weights = _entry_weights(session, product_weights, mean_weights)
    usual_sizes = np.concatenate(
        [
            weights[:1],
            weights[1 : d + 1] * _usual_column_size(session),
            weights[d + 1 :] * _usual_product_sizes(session, d),
        ]
    )
    radius = float(np.sqrt((usual_sizes**2).sum()) if session.is_gaussian else usual_sizes.sum())
    max_factor = max_noise * location.count / (session.sd(radius) * np.sqrt(d))
    radius_factor = max((factor for factor in _RADIUS_FACTORS if factor**1.5 <= max_factor), default=1.0)
    sd = session.sd(radius_factor * radius)
    public = location.centre, scale, weights
    total = session.sum(_weighted_moments, public, size=len(weights), radius=radius_factor * radius) / weights
    # A clipped row is scaled as a whole, including its presence; so the divisor is the sum of the clipped weights.
    count = max(float(total[0]), 2 * sd / weights[0], 10.0)
    noise_sd = sd / count / weights[1:]
    mean = total[1 : d + 1] / count * shrinkage_factor(location.centre_sd / scale, noise_sd[:d])
    covariance = symmetric_from_upper(total[d + 1 :] / count, d) - np.outer(mean, mean)
    return ScaledMoments(count, mean, noise_sd[:d], covariance, symmetric_from_upper(noise_sd[d:], d))


def _entry_weights(session: FitSession, product_weights: np.ndarray, mean_weights: np.ndarray) -> np.ndarray:
    """Return the weights of the summed entries: presence, columns, products of two columns."""
    d = len(product_weights)
    first, second = np.triu_indices(d)
    pairs = np.maximum(product_weights[first], product_weights[second])
    if session.is_gaussian:
        pairs = pairs * np.where(first == second, 1, np.sqrt(2))  # preserves the Frobenius norm
    size = noise_norm(session, pairs * _usual_product_sizes(session, d))
    return np.concatenate([[_COUNT_WEIGHT * size], mean_weights * size, pairs])


def _usual_column_size(session: FitSession) -> float:
    """Return the typical size of a normal column in the norm of the noise."""
    return 1.0 if session.is_gaussian else float(_NORMAL_MEAN_ABS)


def _usual_product_sizes(session: FitSession, d: int) -> np.ndarray:
    """Return the typical sizes of the products of two columns."""
    first, second = np.triu_indices(d)
    if session.is_gaussian:
        return np.where(first == second, np.sqrt(3), 1.0)
    return np.where(first == second, 1.0, _NORMAL_MEAN_ABS**2)


def _squared_deviations(rows: np.ndarray, public: tuple[Any, ...]) -> np.ndarray:
    centre, half_range, weight = public
    deviations = (rows.T - centre[:, np.newaxis]) / half_range[:, np.newaxis]
    return np.asarray((deviations * deviations * weight[:, np.newaxis]).T)


def _weighted_moments(rows: np.ndarray, public: tuple[Any, ...]) -> np.ndarray:
    """Return each row's presence, columns and products of pairs of columns, weighted."""
    centre, scale, weights = public
    d = len(scale)
    out = np.empty((len(weights), len(rows)))
    z = (rows.T - centre[:, np.newaxis]) / scale[:, np.newaxis]
    out[0] = 1
    out[1 : d + 1] = z
    fill_pair_products(z, out[d + 1 :])
    out *= weights[:, np.newaxis]
    return out.T
