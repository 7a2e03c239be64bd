"""Rows with noise that each person adds at home, and mixtures that are learned from them."""

from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self

import numpy as np

from discreet.kernel.numbers import Number, as_integer
from discreet.learn.bounds import parse_bounds
from discreet.learn.fit_cost import REPLACEMENT, FitLoss
from discreet.learn.mixture import GaussianMixture, input_noise


@dataclass(frozen=True)
class NoisyRows:
    """Noise for rows of declared bounds, added at home, so that nobody else ever sees a row (the local model).

    The noise is Gaussian, and a row is (epsilon, delta)-DP; or Laplace with a delta of 0, and it is epsilon-DP. Both
    hide which row a person has, not that there is one.

    >>> rows = np.random.default_rng(0).normal([3, -2], 1, (5000, 2))
    >>> noise = NoisyRows.for_bounds(([-5, -5], [5, 5]), epsilon=10, delta="1e-6")
    >>> sent = noise.perturb(rows)              # on the devices
    >>> mixture = noise.fit_mixture(sent, 1)    # by somebody who knows the noise, but no row
    >>> bool(abs(mixture.means_[0] - [3, -2]).max() < 0.5), noise.loss.neighbours
    (True, 'replacement')
    """

    epsilon: Number
    delta: Number
    _plan: input_noise.InputNoisePlan = field(repr=False)
    _bounds: tuple[np.ndarray, np.ndarray] = field(repr=False)

    @classmethod
    def for_bounds(cls, bounds: Any, *, epsilon: Number, delta: Number) -> Self:
        """Return the noise for rows whose columns have these declared bounds, as lists of numbers."""
        low, high = parse_bounds(bounds, max(np.size(end) for end in bounds))
        noise: Literal["gaussian", "laplace"] = "gaussian" if delta else "laplace"
        return cls(
            epsilon, delta, input_noise.plan(1, low, high, epsilon=epsilon, delta=delta, noise=noise), (low, high)
        )

    @property
    def loss(self) -> FitLoss:
        """The privacy loss of a row, for its replacement by any other."""
        return FitLoss(self._plan.loss, neighbours=REPLACEMENT, unit="row", at_delta=self.delta)

    @property
    def deviation(self) -> np.ndarray:
        """The standard deviation of the noise in each column."""
        low, high = self._bounds
        return np.asarray(np.sqrt(self._plan.noise_variance) * self._plan.unit_ball.radius * np.ones_like(high - low))

    def perturb(self, rows: Any) -> np.ndarray:
        """Return the rows with noise; values are clamped to their bounds before."""
        ball = self._plan.unit_ball
        return np.asarray(input_noise.noisy_rows(self._matrix(rows), self._plan) * ball.radius + ball.centre)

    def fit_mixture(self, noisy: Any, n_components: int) -> GaussianMixture:
        """Return the mixture of the rows without noise, by EM that knows the covariance of the noise.

        This reads noisy rows only, and costs nothing more.
        """
        count, ball = as_integer(n_components, "n_components", minimum=1), self._plan.unit_ball
        rows = (self._matrix(noisy) - ball.centre) / ball.radius
        model = GaussianMixture(
            count,
            epsilon=self.epsilon,
            delta=self.delta,
            bounds=self._bounds,
            method="input-noise",
            noise="gaussian" if self.delta else "laplace",
            neighbours=REPLACEMENT,
        )
        model._set_fitted_attributes(input_noise.fit_noisy(rows, replace(self._plan, n_components=count)))  # noqa: SLF001
        model.n_features_in_, model.loss_ = rows.shape[1], self.loss
        return model

    def _matrix(self, rows: Any) -> np.ndarray:
        matrix = np.asarray(rows, np.float64)
        if matrix.ndim != 2 or matrix.shape[1] != len(self._bounds[0]) or len(matrix) < 1:
            raise ValueError(f"rows must be a table with {len(self._bounds[0])} columns and at least one row")
        return matrix
