"""Input perturbation: every row is perturbed once, and a mixture is fitted to the noisy rows.

Each person can add the noise at home, so that not even the learner sees the rows (the local model). The noise per row
does not decrease with the number of rows, so this is a baseline for DP-EM, not a recommended method.
One noisy row per row discloses the number of rows: the guarantee is for the *replacement* of a row, and does not
protect its presence.
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from discreet.kernel.loss import Loss
from discreet.kernel.mechanism import Gaussian, Laplace, Sensitivity
from discreet.kernel.numbers import Number, as_integer
from discreet.kernel.reservation import CLIP_RADIUS
from discreet.learn.fit_cost import REPLACEMENT
from discreet.learn.mixture.dp_em import GaussianMixtureParameters, UnitBall, random_start, unit_ball_around
from discreet.learn.mixture.noisy_em import NoiseModel, fit_noisy_rows
from discreet.privacy.calibration import gaussian_for, laplace_for

_STARTS = 8  # random ones; choosing the best on noisy rows is post-processing


@dataclass(frozen=True)
class InputNoisePlan:
    """Everything that is fixed before data is read; `loss` is for the replacement of one row, charged by the caller."""

    n_components: int
    unit_ball: UnitBall
    variance_floor: float
    noise: Gaussian | Laplace
    loss: Loss
    neighbours: str = REPLACEMENT

    @property
    def noise_variance(self) -> float:
        """The variance of the noise in each column of a row, in ball units."""
        scale = float(self.noise.scale / CLIP_RADIUS)
        return 2 * scale**2 if isinstance(self.noise, Laplace) else scale**2

    def draw_noise(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        """Return noise of this distribution for simulated rows; the noise of real rows is exact."""
        scale = float(self.noise.scale / CLIP_RADIUS)
        return rng.laplace(0, scale, shape) if isinstance(self.noise, Laplace) else rng.normal(0, scale, shape)


def plan(  # noqa: PLR0913 - all choices are keyword arguments
    n_components: int,
    low: np.ndarray,
    high: np.ndarray,
    *,
    epsilon: Number,
    delta: Number,
    noise: Literal["gaussian", "laplace"] = "gaussian",
    variance_floor: float = 1e-3,
) -> InputNoisePlan:
    """Return the plan of a fit that is (epsilon, delta)-DP for the replacement of one row (Laplace noise: delta is 0).

    Claim: replacing one row changes its integers by at most the diameter of the ball.
    Proof: they are within ±_max_steps(d), so the squares of the d differences add up to at most 4·d·_max_steps(d)².
    Checked by: test_noisy_rows_hide_the_diameter_of_the_ball
    """
    d = len(low)
    sensitivity, is_laplace = row_sensitivity(d), noise == "laplace"
    return InputNoisePlan(
        as_integer(n_components, "n_components", minimum=1),
        unit_ball_around(low, high),
        variance_floor,
        laplace_for(sensitivity, epsilon) if is_laplace else gaussian_for(sensitivity, epsilon, delta),
        Loss(epsilon, delta=0 if is_laplace else delta),
    )


def row_sensitivity(d: int) -> Sensitivity:
    """Return the sensitivity, in steps, of a row of d numbers in the ball to its substitution.

    >>> row_sensitivity(1).l2_squared == (2 * CLIP_RADIUS) ** 2
    True
    """
    return Sensitivity.of_norms(l1=2 * d * _max_steps(d), l2_squared=4 * d * _max_steps(d) ** 2)


def _max_steps(d: int) -> int:
    return math.isqrt(CLIP_RADIUS * CLIP_RADIUS // d)


def noisy_rows(rows: np.ndarray, plan: InputNoisePlan) -> np.ndarray:
    """Return each row once, in ball units, with noise; missing values become the centre."""
    max_steps = _max_steps(rows.shape[1])
    with np.errstate(invalid="ignore"):
        steps = np.rint((rows - plan.unit_ball.centre) / plan.unit_ball.radius * CLIP_RADIUS)
    whole_steps = np.clip(np.nan_to_num(steps, posinf=max_steps, neginf=-max_steps), -max_steps, max_steps).astype(
        np.int64
    )
    return np.asarray(plan.noise.perturb(whole_steps) / CLIP_RADIUS)


def fit(rows: np.ndarray, plan: InputNoisePlan) -> GaussianMixtureParameters:
    """Return a mixture in data units from noisy rows only."""
    return fit_noisy(noisy_rows(rows, plan), plan)


def fit_noisy(noisy: np.ndarray, plan: InputNoisePlan) -> GaussianMixtureParameters:
    """Return a mixture in data units from the noisy rows of this plan, by EM that knows the variance of the noise."""
    d = noisy.shape[1]
    starts = [random_start(plan.n_components, d) for _ in range(_STARTS)]
    noise = NoiseModel(plan.noise_variance, plan.draw_noise, plan.variance_floor / (3 * d))
    found, side = fit_noisy_rows(noisy, starts, noise), 1 / math.sqrt(d)
    return plan.unit_ball.to_data(found._replace(means=np.clip(found.means, -side, side)))
