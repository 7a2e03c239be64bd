"""Input perturbation: every row is perturbed once, and an ordinary mixture is fitted to the noisy rows.

The noise per row does not decrease with the number of rows, so this is a baseline for DP-EM, not a recommended method.
One noisy row per row discloses the number of rows: the guarantee is for the *replacement* of a row, and does not
protect its presence.
"""

import math
import warnings
from dataclasses import dataclass

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

from discreet.kernel.loss import Loss
from discreet.kernel.mechanism import Gaussian, Sensitivity
from discreet.kernel.numbers import Number, as_integer
from discreet.kernel.reservation import CLIP_RADIUS
from discreet.learn.fit_cost import REPLACEMENT
from discreet.learn.mixture.dp_em import GaussianMixtureParameters, UnitBall, random_start, unit_ball_around
from discreet.privacy.calibration import gaussian_for


@dataclass(frozen=True)
class InputNoisePlan:
    """Everything that is fixed before data is read; `loss` is for the replacement of one row, charged by the caller."""

    n_components: int
    unit_ball: UnitBall
    variance_floor: float
    noise: Gaussian
    loss: Loss
    neighbours: str = REPLACEMENT


def plan(  # noqa: PLR0913 - all choices are keyword arguments
    n_components: int,
    low: np.ndarray,
    high: np.ndarray,
    *,
    epsilon: Number,
    delta: Number,
    variance_floor: float = 1e-3,
) -> InputNoisePlan:
    """Return the plan of a fit that is (epsilon, delta)-DP for the replacement of one row.

    Claim: replacing one row changes its integers by at most the diameter of the ball.
    Proof: they are within ±_max_steps(d), so the squares of the d differences add up to at most 4·d·_max_steps(d)².
    Checked by: test_noisy_rows_hide_the_diameter_of_the_ball
    """
    d = len(low)
    noise = gaussian_for(row_sensitivity(d), epsilon, delta)
    unit_ball = unit_ball_around(low, high)
    return InputNoisePlan(
        as_integer(n_components, "n_components", minimum=1),
        unit_ball,
        variance_floor,
        noise,
        Loss(epsilon, None, delta),
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
    """Return a mixture in data units from noisy rows only; the noise variance is subtracted from the covariances."""
    noisy = noisy_rows(rows, plan)
    variance = float(plan.noise.scale / CLIP_RADIUS) ** 2
    start = random_start(plan.n_components, rows.shape[1])
    # Start with a random mixture within the bounds, convolved with the noise: k-means would only partition the noise.
    precisions = np.linalg.inv(start.covariances + variance * np.eye(rows.shape[1]))
    model = GaussianMixture(
        plan.n_components, weights_init=start.weights, means_init=start.means, precisions_init=precisions
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # privacy does not depend on convergence
        model.fit(noisy)
    noisy_mixture = GaussianMixtureParameters(model.weights_, model.means_, model.covariances_)
    return plan.unit_ball.to_data(_deconvolve(noisy_mixture, plan, variance, len(rows)))


def _deconvolve(
    noisy_mixture: GaussianMixtureParameters, plan: InputNoisePlan, variance: float, n_rows: int
) -> GaussianMixtureParameters:
    """Return the mixture that, convolved with noise of this variance, gives `noisy_mixture`."""
    d = len(plan.unit_ball.centre)
    side = 1 / math.sqrt(d)
    # A variance below the sampling error of the noise is not resolved.
    error = variance * np.sqrt(2 / np.maximum(noisy_mixture.weights * n_rows, 2))
    min_variances = np.clip(error, plan.variance_floor / (3 * d), 1.0)[:, None]
    values, vectors = np.linalg.eigh(noisy_mixture.covariances)  # spherical noise adds equally to every eigenvalue
    eigenvalues = np.clip(values - variance, min_variances, 1.0)
    covariances = (vectors * eigenvalues[:, None, :]) @ vectors.transpose(0, 2, 1)
    return GaussianMixtureParameters(noisy_mixture.weights, np.clip(noisy_mixture.means, -side, side), covariances)
