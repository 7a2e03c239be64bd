"""The private mixture to use: a start from noisy tables, then a few rounds of EM on noisy, whitened, clipped sums.

    columns' tables ─► windows ─► pairs' tables ─► best start (free; one Gaussian, if no more is to be seen) ─► rounds

In a round every component looks at each row in its own whitened units, moved to within a radius; the row's shares,
first and second moments are one vector of the unit ball, and one noisy sum tells all components what to become. Of what
it says, only the part that stands out of the noise is believed. With units of several rows, a unit's rows are averaged
by the session: the sums then speak of people, of whom there are fewer than rows.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce

import numpy as np

from discreet.kernel.numbers import as_integer
from discreet.learn.mixture.density import COVARIANCE_TYPES, to_covariance_type, to_full_covariances
from discreet.learn.mixture.dp_em import GaussianMixtureParameters
from discreet.learn.mixture.initialisation import best_initial_mixture
from discreet.learn.mixture.marginals import NoisySession, PublicValues, Windows, draw_marginal_tables
from discreet.learn.mixture.shrinkage import (
    ClipEffect,
    clip_at_quantile,
    component_moments,
    floor_eigenvalues,
    grow_covariances,
    shrunken_update,
)

_ROUNDS = 5
_WINDOWS_PERCENT, _MARGINALS_PERCENT, _ROUNDS_PERCENT = 5, 35, 60  # hundredths of the price
_UNCLIPPED_SHARE = 0.95  # the share of a component's points that the clip leaves where they are
_STEP_LENGTH = 1.5  # EM is slow; longer steps in the same direction converge too
_MIN_SIZE_TO_NOISE = 6.0  # standard deviations by which a component's size must stand out to change it
_MIN_WEIGHT = 1e-3
_MAX_COMPONENTS, _MAX_ROUNDS = 256, 100
_MIN_VARIANCE = 1e-10  # of the declared range, squared


@dataclass(frozen=True)
class WhitenedPlan:
    """All that is fixed before any data: the draws' shares of the price, and what is made of the draws."""

    candidates: tuple[int, ...]
    low: np.ndarray
    high: np.ndarray
    covariance_type: str
    rounds: int

    @property
    def shares(self) -> tuple[Fraction, ...]:
        """How the price is divided over the draws, in order."""
        rounds = [Fraction(_ROUNDS_PERCENT, self.rounds)] * self.rounds
        return (Fraction(_WINDOWS_PERCENT), Fraction(_MARGINALS_PERCENT), *rounds)


def plan(
    n_components: int | Sequence[int],
    low: np.ndarray,
    high: np.ndarray,
    *,
    covariance_type: str = "full",
    n_iter: int | None = None,
) -> WhitenedPlan:
    """Return the plan of a fit; of several numbers of components, the tables choose, at no further price.

    >>> len(plan([1, 2, 3], np.zeros(2), np.ones(2)).shares)
    7
    """
    choices = tuple(n_components) if isinstance(n_components, Sequence | np.ndarray) else (n_components,)
    candidates = tuple(sorted({as_integer(choice, "n_components", minimum=1) for choice in choices}))
    if not candidates:
        raise ValueError("n_components: name at least one number")
    if candidates[-1] > _MAX_COMPONENTS:
        raise ValueError(
            f"n_components must be at most {_MAX_COMPONENTS}: so many would be lost in the noise of each other"
        )
    if covariance_type not in COVARIANCE_TYPES:
        raise ValueError(
            f"covariance_type must be one of {', '.join(map(repr, COVARIANCE_TYPES))}, not {covariance_type!r}"
        )
    low, high = np.array(low, np.float64), np.array(high, np.float64)
    if n_iter is not None and as_integer(n_iter, "n_iter", minimum=1) > _MAX_ROUNDS:
        raise ValueError(f"n_iter must be at most {_MAX_ROUNDS}: each round gets a part of the price")
    return WhitenedPlan(
        candidates, low, high, covariance_type, _ROUNDS if n_iter is None else as_integer(n_iter, "n_iter", minimum=1)
    )


def fit(session: NoisySession, plan: WhitenedPlan) -> GaussianMixtureParameters:
    """Return a mixture in data units, made of nothing but what the session released."""
    tables, windows = draw_marginal_tables(session, plan.low, plan.high)
    # One Gaussian is always a candidate: more components, of which nothing is to be seen, would be worse than it.
    start = best_initial_mixture(tables, {1, *plan.candidates})
    mixture = _constrain(
        GaussianMixtureParameters(start.weights, *_to_unit_cube(start.means, start.covariances, windows)), plan
    )
    for rounds_left in reversed(range(plan.rounds)):
        mixture = _em_round(session, plan, mixture, _STEP_LENGTH if rounds_left else 1.0)
    return _to_data_units(
        mixture if len(mixture.weights) in plan.candidates else _repeat_component(mixture, min(plan.candidates)), plan
    )


def _repeat_component(one: GaussianMixtureParameters, times: int) -> GaussianMixtureParameters:
    """Return one Gaussian as a mixture of several that are the same."""
    return GaussianMixtureParameters(np.full(times, 1 / times), *(np.repeat(part, times, axis=0) for part in one[1:]))


def _to_data_units(mixture: GaussianMixtureParameters, plan: WhitenedPlan) -> GaussianMixtureParameters:
    """Return a mixture of the unit cube in data units."""
    weights, means, covariances = mixture
    length = plan.high - plan.low
    return GaussianMixtureParameters(weights, plan.low + means * length, covariances * np.outer(length, length))


def _to_unit_cube(means: np.ndarray, covariances: np.ndarray, windows: Windows) -> tuple[np.ndarray, np.ndarray]:
    """Return what stands in the windows' units in those of the unit cube."""
    return windows.begin + (means + 0.5) * windows.length, covariances * np.outer(windows.length, windows.length)


def _constrain(mixture: GaussianMixtureParameters, plan: WhitenedPlan) -> GaussianMixtureParameters:
    """Return the mixture with covariances of the plan's kind, above the floor, and means in the declared bounds."""
    weights, means, covariances = mixture
    constrained = to_full_covariances(
        to_covariance_type(covariances, weights, plan.covariance_type), plan.covariance_type, *means.shape
    )
    return GaussianMixtureParameters(weights, np.clip(means, 0, 1), floor_eigenvalues(constrained, _MIN_VARIANCE))


def _em_round(
    session: NoisySession, plan: WhitenedPlan, mixture: GaussianMixtureParameters, step_length: float
) -> GaussianMixtureParameters:
    """Return the mixture after one noisy round of EM."""
    components, d = mixture.means.shape
    clip = clip_at_quantile(_UNCLIPPED_SHARE, d, in_l2=session.is_gaussian)
    factors = np.linalg.cholesky(mixture.covariances)
    n_entries, sd = 1 + d + d * (d + 1) // 2, session.sd()
    public = _public_values(plan, mixture, factors, clip)
    sums = session.sum(component_sums, public, size=components * n_entries, radius=1).reshape(components, n_entries)
    means, covariances = mixture.means.copy(), mixture.covariances.copy()
    for k in range(components):
        moments = component_moments(sums[k], d, clip)
        if moments.size < _MIN_SIZE_TO_NOISE * sd / clip.block_weights[0]:
            continue  # nothing but noise
        shift, growth = shrunken_update(moments, sd, clip)
        means[k] += step_length * factors[k] @ _limit_norm(shift, 2.0)
        covariances[k] = grow_covariances(factors[k], step_length * growth)
    sizes = np.maximum(sums[:, 0], max(_MIN_WEIGHT * sums[:, 0].sum(), 1e-9))
    return _constrain(GaussianMixtureParameters(sizes / sizes.sum(), means, covariances), plan)


def _limit_norm(shift: np.ndarray, max_norm: float) -> np.ndarray:
    return np.asarray(shift * min(1.0, max_norm / max(float(np.linalg.norm(shift)), 1e-300)))


def _public_values(
    plan: WhitenedPlan, mixture: GaussianMixtureParameters, factors: np.ndarray, clip: ClipEffect
) -> PublicValues:
    """Return what the rule needs, in data units, so that it looks at the rows as they are."""
    white = np.linalg.inv(factors)
    log_peaks = np.log(mixture.weights) + np.log(np.diagonal(white, axis1=1, axis2=2)).sum(axis=1)
    length = plan.high - plan.low
    return log_peaks, plan.low + mixture.means * length, white / length, clip.radius, clip.block_weights


def component_sums(rows: np.ndarray, public: PublicValues) -> np.ndarray:
    """Return for every component a row's share, share·z and share·zzᵀ, of its clipped whitened point z, weighted.

    Of zzᵀ it is the lower triangle, off the diagonal times sqrt(2), which keeps Frobenius' norm. The weights put the
    whole vector into the unit ball: of l2, or of l1 if they were made for it.
    """
    log_peaks, means, white, radius, (of_share, of_first, of_second) = public
    components, d = means.shape
    n_entries = 1 + d + d * (d + 1) // 2
    points = [_whitened_columns(rows, means[k], white[k]) for k in range(components)]
    squares = [reduce(np.add, [column * column for column in columns]) for columns in points]
    shares = _responsibilities(log_peaks, squares)
    out = np.empty((components * n_entries, len(rows)))
    for k, columns in enumerate(points):
        block = iter(out[k * n_entries : (k + 1) * n_entries])
        clip_factor = np.minimum(1.0, radius / np.sqrt(np.maximum(squares[k], 1e-300)))
        np.multiply(shares[k], of_share, out=next(block))
        weighted = shares[k] * clip_factor
        for column in columns:
            np.multiply(weighted * of_first, column, out=next(block))
        weighted *= clip_factor
        for i, column in enumerate(columns):
            single, double = weighted * of_second * column, weighted * (of_second * math.sqrt(2)) * column
            for j in range(i + 1):
                np.multiply(single if i == j else double, columns[j], out=next(block))
    return out.T


def _whitened_columns(rows: np.ndarray, mean: np.ndarray, white: np.ndarray) -> list[np.ndarray]:
    """Return the columns of white·(x - mean), for a lower triangular white."""
    deviations = [rows[:, j] - mean[j] for j in range(len(mean))]
    return [reduce(np.add, [deviations[j] * white[i, j] for j in range(i + 1)]) for i in range(len(mean))]


def _responsibilities(log_peaks: np.ndarray, squares: list[np.ndarray]) -> np.ndarray:
    """Return how much of each row every component explains: (K, n)."""
    logs = np.array([log_peak - square / 2 for log_peak, square in zip(log_peaks, squares, strict=True)])
    logs -= logs.max(axis=0)
    np.exp(logs, out=logs)
    return np.asarray(logs / reduce(np.add, logs))  # in the components' order, which .sum() may change for one row
