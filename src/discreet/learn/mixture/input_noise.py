"""Noise on the input instead: every row is perturbed once, and an ordinary mixture is fitted to the noisy rows.

The noise does not shrink with the number of rows as that of a sum does, so this is what DP-EM is compared with, rather
than a method to choose. Who publishes one noisy row for each row also tells how many there are and that each is
there: the guarantee is for a row that is *replaced*, and nothing hides the presence of one.
"""

import math
import warnings
from dataclasses import dataclass

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

from discreet.kernel.calibration import gaussian_for
from discreet.kernel.exact import Number, whole
from discreet.kernel.loss import Loss
from discreet.kernel.mechanism import Gaussian, Sensitivity
from discreet.kernel.purse import STEPS
from discreet.learn.losses import REPLACEMENT
from discreet.learn.mixture.dpem import Frame, Parameters, frame_around, random_start


@dataclass(frozen=True)
class Plan:
    """What is fixed before any data; `loss` is for the replacement of one row, and the caller charges it."""

    components: int
    frame: Frame
    floor: float
    noise: Gaussian
    loss: Loss
    neighbours: str = REPLACEMENT


def plan(  # noqa: PLR0913 - every choice is made here, by its name
    n_components: int,
    low: np.ndarray,
    high: np.ndarray,
    *,
    epsilon: Number,
    delta: Number,
    floor: float = 1e-3,
) -> Plan:
    """Return the plan of a fit that is (epsilon, delta)-DP where one row is replaced by another.

    Claim: one row's integers move by at most the diameter of the ball.
    Proof: they lie within ±_reach(d), so that the squares of d differences add up to at most 4·d·_reach(d)².
    Checked by: test_noisy_rows_hide_the_diameter_of_the_ball
    """
    d = len(low)
    noise = gaussian_for(moved(d), epsilon, delta)
    frame = frame_around(low, high)
    return Plan(whole(n_components, "n_components", least=1), frame, floor, noise, Loss(epsilon, None, delta))


def moved(d: int) -> Sensitivity:
    """Return how far a row of d numbers in the ball moves, in steps, when another replaces it.

    >>> moved(1).l2_squared == (2 * STEPS) ** 2
    True
    """
    return Sensitivity.of_norms(l1=2 * d * _reach(d), l2_squared=4 * d * _reach(d) ** 2)


def _reach(d: int) -> int:
    return math.isqrt(STEPS * STEPS // d)


def noisy_rows(rows: np.ndarray, plan: Plan) -> np.ndarray:
    """Return each row once, in the ball's units, with noise; a number that is missing counts as the middle."""
    reach = _reach(rows.shape[1])
    with np.errstate(invalid="ignore"):
        steps = np.rint((rows - plan.frame.centre) / plan.frame.radius * STEPS)
    whole_steps = np.clip(np.nan_to_num(steps, posinf=reach, neginf=-reach), -reach, reach).astype(np.int64)
    return np.asarray(plan.noise.perturb(whole_steps) / STEPS)


def fit(rows: np.ndarray, plan: Plan) -> Parameters:
    """Return a mixture in data units, from noisy rows alone; what the noise adds to the covariances is taken away."""
    noisy = noisy_rows(rows, plan)
    variance = float(plan.noise.scale / STEPS) ** 2
    start = random_start(plan.components, rows.shape[1])
    # Begun as a mixture within the bounds that the noise has widened: k-means would only cut the noise into pieces.
    precisions = np.linalg.inv(start.covariances + variance * np.eye(rows.shape[1]))
    model = GaussianMixture(
        plan.components, weights_init=start.weights, means_init=start.means, precisions_init=precisions
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # what it has found by then is as private
        model.fit(noisy)
    found = Parameters(model.weights_, model.means_, model.covariances_)
    return plan.frame.outside(_deconvolved(found, plan, variance, len(rows)))


def _deconvolved(found: Parameters, plan: Plan, variance: float, rows: int) -> Parameters:
    """Return the mixture whose points, with noise of this variance, look like the one that was found."""
    d = len(plan.frame.centre)
    side = 1 / math.sqrt(d)
    # A variance that is smaller than the noise's own chance error was not seen.
    error = variance * np.sqrt(2 / np.maximum(found.weights * rows, 2))
    least = np.clip(error, plan.floor / (3 * d), 1.0)[:, None]
    values, vectors = np.linalg.eigh(found.covariances)  # the noise is round: it adds to every eigenvalue alike
    left = np.clip(values - variance, least, 1.0)
    covariances = (vectors * left[:, None, :]) @ vectors.transpose(0, 2, 1)
    return Parameters(found.weights, np.clip(found.means, -side, side), covariances)
