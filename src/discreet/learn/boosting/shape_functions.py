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

    `unit` is the usual size of effects; the prior's variance is relative to its square. A filter for each variance that
    is tried follows the same observations, and their means are averaged by how well each predicted the observations.
    """

    weights: np.ndarray
    prior: np.ndarray
    unit: float
    _means: np.ndarray = field(init=False)  # variances × bins
    _covariances: np.ndarray = field(init=False)
    _log_likelihoods: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self._means = np.zeros((len(_SCALES), len(self.weights)))
        self._covariances = self._scales[:, np.newaxis, np.newaxis] * self.prior
        self._log_likelihoods = np.zeros(len(_SCALES))

    @property
    def _scales(self) -> np.ndarray:
        return np.asarray(self.unit**2 * _SCALES)

    @property
    def _filter_weights(self) -> np.ndarray:
        likelihoods = np.exp(self._log_likelihoods - self._log_likelihoods.max())
        return np.asarray(likelihoods / likelihoods.sum())

    @property
    def values(self) -> np.ndarray:
        """The effect per bin."""
        return np.asarray(self._filter_weights @ self._means)

    def update(self, gradient: np.ndarray, gradient_sd: float, curvature: np.ndarray, round_number: int) -> None:
        """Move the values according to a noisy gradient (the sum of residuals per bin) and its expected curvature."""
        step_limit = _MAX_STEP * self.unit
        observed, variance = self.values + gradient / curvature, (gradient_sd / curvature) ** 2
        for k, scale in enumerate(self._scales):
            covariance = self._covariances[k]
            if round_number:
                covariance = covariance + _REMAINING**round_number * scale * self.prior
            predicted, surprise = covariance + np.diag(variance), observed - self._means[k]
            solved = np.linalg.solve(predicted, np.column_stack([surprise, covariance]))
            self._log_likelihoods[k] -= 0.5 * float(np.linalg.slogdet(predicted)[1] + surprise @ solved[:, 0])
            self._means[k] += np.clip(covariance @ solved[:, 0], -step_limit, step_limit)
            self._covariances[k] = covariance - covariance @ solved[:, 1:]

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
        weights, apart = self._filter_weights, self._means - self.values
        covariance = np.tensordot(weights, self._covariances, 1) + (apart.T * weights) @ apart
        centring = np.eye(len(self.weights)) - self.weights / self.weights.sum()
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
