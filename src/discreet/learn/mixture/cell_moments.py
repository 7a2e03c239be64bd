"""The mass, mean and covariance of Gaussians within the cells of a table of one or two columns.

Exact for one column. For two columns, exact along the first; given a cell of the first column, the second is taken as
normal with the exact mean and variance, which is nearly right for cells of any width.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

_FARTHEST = 37.0  # deviations: the density beyond is zero in float64
_MIN_MASS = 1e-300


class CellMoments(NamedTuple):
    """Masses (…, cells), conditional means relative to the Gaussian's (…, r, cells), covariances (…, r, r, cells)."""

    masses: np.ndarray
    deviations: np.ndarray
    covariances: np.ndarray


def interval_moments(edges: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return mass, mean and variance of a standard normal variable between consecutive edges, along the last axis.

    >>> mass, mean, variance = interval_moments(np.array([-np.inf, 0.0, np.inf]))
    >>> mass.round(3).tolist(), mean.round(3).tolist(), variance.round(3).tolist()
    ([0.5, 0.5], [-0.798, 0.798], [0.363, 0.363])
    """
    edges = np.clip(edges, -_FARTHEST, _FARTHEST)
    low, high = edges[..., :-1], edges[..., 1:]
    density = np.exp(edges * edges / -2) / math.sqrt(2 * math.pi)
    mass = np.maximum(np.diff(ndtr(edges)), _MIN_MASS)
    mean = np.clip(-np.diff(density) / mass, low, high)
    variance = np.clip(1 - np.diff(edges * density) / mass - mean * mean, 0, np.minimum(1, (high - low) ** 2 / 4))
    return mass, mean, variance


def cell_moments(edges: np.ndarray, means: np.ndarray, covariances: np.ndarray) -> CellMoments:
    """Return the moments of Gaussians (…, V, K) in the cells of V tables with these edges, (V, r, side + 1)."""
    first_sd = np.sqrt(covariances[..., 0, 0])[..., np.newaxis]
    mass, mean, variance = interval_moments((edges[:, np.newaxis, 0] - means[..., :1]) / first_sd)
    deviation, variance = first_sd * mean, first_sd**2 * variance  # (…, V, K, side)
    if means.shape[-1] == 1:
        return CellMoments(mass, deviation[..., np.newaxis, :], variance[..., np.newaxis, np.newaxis, :])
    slope = (covariances[..., 0, 1] / covariances[..., 0, 0])[..., np.newaxis]
    residual_variance = covariances[..., 1, 1, np.newaxis] - slope * covariances[..., 0, 1, np.newaxis]
    second_variance = np.maximum(residual_variance, 1e-9 * covariances[..., 1, 1, np.newaxis]) + slope**2 * variance
    second_sd = np.sqrt(second_variance)[..., np.newaxis]
    centres = (means[..., 1:] + slope * deviation)[..., np.newaxis]  # (…, V, K, side, 1)
    masses, within, shrinkage = interval_moments((edges[:, np.newaxis, 1, np.newaxis] - centres) / second_sd)
    masses = masses * mass[..., np.newaxis]
    shift, second = second_sd * within, second_sd**2 * shrinkage
    back = (slope * variance / second_variance)[..., np.newaxis]  # regression of the first column on the second
    first = variance[..., np.newaxis] - back**2 * (second_sd**2 - second)
    deviations = np.stack([deviation[..., np.newaxis] + back * shift, (slope * deviation)[..., np.newaxis] + shift], -3)
    both = back * second
    matrices = np.stack([np.stack([first, both], -3), np.stack([both, second], -3)], -4)
    return CellMoments(*(part.reshape(*part.shape[:-2], -1) for part in (masses, deviations, matrices)))
