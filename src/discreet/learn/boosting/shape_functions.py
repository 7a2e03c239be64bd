"""The effect of one feature on the score: an estimate per bin, from noisy gradients and a prior.

Each release shows the gradient of the loss in every bin, with noise of known variance. Divided by the curvature, it is
a noisy observation of how far the effect is from its optimum, which a Kalman filter combines with earlier ones.
"""

import math
from dataclasses import dataclass, field

import numpy as np

_SMOOTH_SHARE = 0.5  # prior variance of a smooth deviation; the rest is that of a straight line
_SMOOTH_RANGE = 0.375  # distance, in shares of the units, at which a smooth deviation is correlated by 1/e
_SCALES = 4.0 ** np.arange(-6, 2)  # prior variances that are tried, in squared units of the score
_REMAINING = 0.5  # share of the prior variance by which the optimum moves, per round, as other effects change
_MAX_STEP = 2.0  # maximum change of an effect per release, in units of the score
# Twice the 1.96 of a known normal: bins, curvature and the other effects are noisy too. Measured by simulation.
_MARGIN_DEVIATIONS = 3.92


@dataclass
class ShapeFunction:
    """The effect of a feature: `values` per bin, of which the first is for missing values or other categories.

    `unit` is the usual size of effects; the prior's variance is relative to its square.
    """

    weights: np.ndarray
    prior: np.ndarray
    unit: float
    values: np.ndarray = field(init=False)
    _covariance: np.ndarray | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.values = np.zeros(len(self.weights))

    def update(self, gradient: np.ndarray, gradient_sd: float, curvature: np.ndarray, round_number: int) -> None:
        """Move the values according to a noisy gradient (the sum of residuals per bin) and its expected curvature."""
        observed, variance = gradient / curvature, (gradient_sd / curvature) ** 2
        if self._covariance is None:
            self.prior = self.prior * _expected_scale(self.prior, observed, variance, self.unit)
            self._covariance = self.prior
        else:
            self._covariance = self._covariance + _REMAINING**round_number * self.prior
        gain = np.linalg.solve(self._covariance + np.diag(variance), self._covariance).T
        self.values = self.values + np.clip(gain @ observed, -_MAX_STEP * self.unit, _MAX_STEP * self.unit)
        self._covariance = self._covariance - gain @ self._covariance

    @property
    def mean(self) -> float:
        """The mean effect over the units."""
        return float(self.weights @ self.values / self.weights.sum())

    @property
    def centred(self) -> np.ndarray:
        """The effect minus its mean over the units."""
        return self.values - self.mean

    @property
    def margins(self) -> np.ndarray:
        """Approximate 95 % margins of the centred effect: how far privacy noise and shrinkage may have moved it."""
        covariance = self.prior * self.unit**2 if self._covariance is None else self._covariance
        centring = np.eye(len(self.values)) - self.weights / self.weights.sum()
        return _MARGIN_DEVIATIONS * np.sqrt(np.maximum(np.diag(centring @ covariance @ centring.T), 0))


def ordered_prior(weights: np.ndarray) -> np.ndarray:
    """Return the prior covariance of a numeric feature's effect: smooth along the quantiles; missing values apart."""
    share = weights[1:] / weights[1:].sum()
    position = np.cumsum(share) - share / 2
    line = (position - 0.5) * math.sqrt(12)
    smooth = np.exp(-np.abs(position[:, np.newaxis] - position) / _SMOOTH_RANGE)
    prior = np.eye(len(weights))
    prior[1:, 1:] = _SMOOTH_SHARE * smooth + (1 - _SMOOTH_SHARE) * np.outer(line, line)
    return prior


def unordered_prior(weights: np.ndarray) -> np.ndarray:
    """Return the prior covariance of a categorical feature's effect: independent categories."""
    return np.eye(len(weights))


def _expected_scale(prior: np.ndarray, observed: np.ndarray, variance: np.ndarray, unit: float) -> float:
    """Return the expected variance of the prior after the first noisy observation; all scales were equally likely."""

    def log_likelihood(scale: float) -> float:
        covariance = scale * prior + np.diag(variance)
        return -0.5 * float(np.linalg.slogdet(covariance)[1] + observed @ np.linalg.solve(covariance, observed))

    scales = unit**2 * _SCALES
    likelihood = np.array([log_likelihood(float(scale)) for scale in scales])
    weights = np.exp(likelihood - likelihood.max())
    return float(weights @ scales / weights.sum())
