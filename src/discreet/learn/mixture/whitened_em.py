"""The recommended private mixture: initialisation from noisy tables, then rounds of EM on noisy sums of clipped points.

    column tables ─► cells ─► pair tables ─► best initial mixture, perhaps with a background ─► EM rounds ─► background

In a round, each row is whitened and clipped to a radius for each component; its responsibilities, first and second
moments form one vector in the unit ball, and one noisy sum updates all components. The updates are shrunk according to
the noise. If a unit has several rows, the session averages them, so sums are over units rather than rows.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce

import numpy as np

from discreet.kernel.numbers import as_integer
from discreet.learn.mixture.background import MAX_SHARE, add_background, hidden_share, merge_most_similar
from discreet.learn.mixture.density import COVARIANCE_TYPES, to_covariance_type, to_full_covariances
from discreet.learn.mixture.dp_em import GaussianMixtureParameters
from discreet.learn.mixture.initialisation import best_initial_mixture
from discreet.learn.mixture.marginals import (
    MIN_VARIANCE,
    MarginalTables,
    NoisySession,
    PublicValues,
    draw_marginal_tables,
)
from discreet.learn.mixture.shrinkage import (
    clip_for_noise,
    component_moments,
    floor_eigenvalues,
    grow_covariances,
    shrunken_update,
)

_MIN_ROUNDS, _MAX_DEFAULT_ROUNDS, _ROUNDS_BY_COLUMNS = 3, 5, 50  # fewer rounds if a round has many noisy numbers
_TABLES_SHARES = (1, 1, 8)  # tables of single columns, twice, and of pairs
_ROUNDS_SHARE, _ROUNDS_SHARE_OF_MANY_COLUMNS, _MANY_COLUMNS = 15, 30, 11  # of all rounds, beside those of the tables
_COMPARISON_SHARE, _MAX_COMPARED_COLUMNS = 1, 8  # of comparing the initial mixture with one that has a background
_MAX_GAIN, _GAIN_NOISE = 10.0, 0.05  # of a unit's log-likelihood; accepted deviation of the mean, if it can be reached
_GROWTH = Fraction(3, 2)  # of the share of a round: the last ones decide the noise in the result
_LONG_STEP, _WEAK_NOISE = 1.5, 0.03  # EM converges slowly; longer steps, where noise adds less squared error than this
_SIGNIFICANT = 2.0  # noise deviations of the gain by a background
_MIN_SIZE_TO_NOISE = 6.0  # minimum size of a component, in noise deviations, to be updated
_MIN_WEIGHT = 1e-3
_MAX_COMPONENTS, _MAX_ROUNDS = 256, 100


@dataclass(frozen=True)
class WhitenedPlan:
    """Everything that is fixed before data is read."""

    candidates: tuple[int, ...]
    low: np.ndarray
    high: np.ndarray
    covariance_type: str
    rounds: int

    @property
    def compares_background(self) -> bool:
        """Whether the initial mixture is compared with one that has a background; in more columns both are rough."""
        return len(self.low) <= _MAX_COMPARED_COLUMNS

    @property
    def shares(self) -> tuple[Fraction, ...]:
        """The budget shares of the releases, in order."""
        share = _ROUNDS_SHARE if len(self.low) < _MANY_COLUMNS else _ROUNDS_SHARE_OF_MANY_COLUMNS
        growth = [_GROWTH**index for index in range(self.rounds)]
        before = (*_TABLES_SHARES, _COMPARISON_SHARE) if self.compares_background else _TABLES_SHARES
        return (*map(Fraction, before), *(share * part / sum(growth) for part in growth))


def plan(
    n_components: int | Sequence[int],
    low: np.ndarray,
    high: np.ndarray,
    *,
    covariance_type: str = "full",
    n_iter: int | None = None,
) -> WhitenedPlan:
    """Return the plan of a fit; several numbers of components are compared on the released tables, at no extra cost.

    >>> len(plan([1, 2, 3], np.zeros(2), np.ones(2)).shares)
    9
    """
    choices = tuple(n_components) if isinstance(n_components, Sequence | np.ndarray) else (n_components,)
    candidates = tuple(sorted({as_integer(choice, "n_components", minimum=1) for choice in choices}))
    if not candidates:
        raise ValueError("n_components must contain at least one number")
    if candidates[-1] > _MAX_COMPONENTS:
        raise ValueError(
            f"n_components must be at most {_MAX_COMPONENTS}: with more, noise would dominate each component"
        )
    if covariance_type not in COVARIANCE_TYPES:
        raise ValueError(
            f"covariance_type must be one of {', '.join(map(repr, COVARIANCE_TYPES))}, not {covariance_type!r}"
        )
    low, high = np.array(low, np.float64), np.array(high, np.float64)
    if n_iter is not None and as_integer(n_iter, "n_iter", minimum=1) > _MAX_ROUNDS:
        raise ValueError(f"n_iter must be at most {_MAX_ROUNDS}: the rounds share the budget")
    default_rounds = max(_MIN_ROUNDS, min(_MAX_DEFAULT_ROUNDS, _ROUNDS_BY_COLUMNS // len(low)))
    rounds = default_rounds if n_iter is None else as_integer(n_iter, "n_iter", minimum=1)
    return WhitenedPlan(candidates, low, high, covariance_type, rounds)


def fit(session: NoisySession, plan: WhitenedPlan) -> GaussianMixtureParameters:
    """Return a mixture in data units, computed from the session's releases only."""
    tables = draw_marginal_tables(session, plan.low, plan.high)
    # One Gaussian is always a candidate: it beats several components that cannot be distinguished from noise.
    start = best_initial_mixture(tables, {1, *plan.candidates})
    mixture = _constrain(GaussianMixtureParameters(start.weights, start.means, start.covariances), plan)
    if plan.compares_background:
        mixture = _better_with_background(session, plan, mixture, tables)
    for rounds_left in reversed(range(plan.rounds)):
        mixture = _em_round(session, plan, mixture, tables.total, _LONG_STEP if rounds_left else 1.0)
    if plan.covariance_type != "tied":  # a background as narrow as the other components would be none
        mixture = _constrain(merge_most_similar(add_background(mixture, hidden_share(tables))), plan)
    return _to_data_units(
        mixture if len(mixture.weights) in plan.candidates else _repeat_component(mixture, min(plan.candidates)), plan
    )


def _repeat_component(one: GaussianMixtureParameters, times: int) -> GaussianMixtureParameters:
    """Return a mixture of `times` copies of one Gaussian."""
    return GaussianMixtureParameters(np.full(times, 1 / times), *(np.repeat(part, times, axis=0) for part in one[1:]))


def _to_data_units(mixture: GaussianMixtureParameters, plan: WhitenedPlan) -> GaussianMixtureParameters:
    """Return a mixture in data units from one in the unit cube."""
    weights, means, covariances = mixture
    length = plan.high - plan.low
    return GaussianMixtureParameters(weights, plan.low + means * length, covariances * np.outer(length, length))


def _constrain(mixture: GaussianMixtureParameters, plan: WhitenedPlan) -> GaussianMixtureParameters:
    """Return the mixture with covariances of the plan's type, above the floor, and means within the bounds."""
    weights, means, covariances = mixture
    constrained = to_full_covariances(
        to_covariance_type(covariances, weights, plan.covariance_type), plan.covariance_type, *means.shape
    )
    return GaussianMixtureParameters(weights, np.clip(means, 0, 1), floor_eigenvalues(constrained, MIN_VARIANCE))


def _better_with_background(
    session: NoisySession, plan: WhitenedPlan, mixture: GaussianMixtureParameters, tables: MarginalTables
) -> GaussianMixtureParameters:
    """Return the mixture, or the one with a background if a noisy sum shows that units are more likely under it."""
    several = len(mixture.weights) > 1
    trial = _constrain(add_background(merge_most_similar(mixture), MAX_SHARE), plan) if several else mixture
    sd = session.sd()
    public = (
        *_density_values(plan, mixture),
        *_density_values(plan, trial),
        min(_MAX_GAIN, _GAIN_NOISE * tables.total / sd),
    )
    (gain,) = session.sum(likelihood_gains, public, size=1, radius=1)
    return trial if gain > _SIGNIFICANT * sd else mixture


def _em_round(
    session: NoisySession, plan: WhitenedPlan, mixture: GaussianMixtureParameters, total: float, step_length: float
) -> GaussianMixtureParameters:
    """Return the mixture after one noisy round of EM."""
    components, d = mixture.means.shape
    factors = np.linalg.cholesky(mixture.covariances)
    n_entries, sd = _entries(d), session.sd()
    clips = [clip_for_noise(weight * total, sd, d, in_l2=session.is_gaussian) for weight in mixture.weights]
    public = (
        *_density_values(plan, mixture),
        [(clip.radius, clip.outer_radius) for clip in clips],
        [clip.block_weights for clip in clips],
    )
    sums = session.sum(component_sums, public, size=components * n_entries, radius=1).reshape(components, n_entries)
    means, covariances = mixture.means.copy(), mixture.covariances.copy()
    for k, clip in enumerate(clips):
        moments = component_moments(sums[k], d, clip)
        if moments.size < _MIN_SIZE_TO_NOISE * sd / clip.block_weights[0]:
            continue  # dominated by noise
        shift, growth = shrunken_update(moments, sd, clip)
        weak = n_entries * (sd / (clip.block_weights[2] * moments.size)) ** 2 < _WEAK_NOISE
        step = step_length if weak else 1.0
        means[k] += step * factors[k] @ _limit_norm(shift, math.sqrt(2 * d))
        covariances[k] = grow_covariances(factors[k], step * growth)
    sizes = sums[:, 0] / [clip.block_weights[0] for clip in clips]
    sizes = np.maximum(sizes, max(_MIN_WEIGHT * sizes.sum(), 1e-9))
    return _constrain(GaussianMixtureParameters(sizes / sizes.sum(), means, covariances), plan)


def _limit_norm(shift: np.ndarray, max_norm: float) -> np.ndarray:
    return np.asarray(shift * min(1.0, max_norm / max(float(np.linalg.norm(shift)), 1e-300)))


def _density_values(plan: WhitenedPlan, mixture: GaussianMixtureParameters) -> PublicValues:
    """Return the parameters of the density of rows in data units, up to a constant that all mixtures share."""
    white = np.linalg.inv(np.linalg.cholesky(mixture.covariances))
    log_peaks = np.log(mixture.weights) + np.log(np.diagonal(white, axis1=1, axis2=2)).sum(axis=1)
    length = plan.high - plan.low
    return log_peaks, plan.low + mixture.means * length, white / length


def likelihood_gains(rows: np.ndarray, public: PublicValues) -> np.ndarray:
    """Return how much more likely each row is under the second mixture, (n, 1): the logarithm, clipped to ±1 limit."""
    first, second = (
        _responsibilities(log_peaks, _whitened_points(rows, means, white)[1])[1]
        for log_peaks, means, white in (public[:3], public[3:6])
    )
    limit = public[6]
    return np.asarray(np.clip((second - first) / limit, -1, 1)[:, np.newaxis])


def component_sums(rows: np.ndarray, public: PublicValues) -> np.ndarray:
    """Return r, r·z, r·zzᵀ and r·b, weighted, for each component, with responsibility r and clipped whitened point z.

    zzᵀ is its lower triangle, off the diagonal times sqrt(2), which preserves the Frobenius norm; b is the squared norm
    beyond the radius and up to the outer one, divided by sqrt(d). The weights put the whole vector into the unit ball,
    in l2 or l1.
    """
    log_peaks, means, white, radii, block_weights = public
    components, d = means.shape
    n_entries = _entries(d)
    points, squares = _whitened_points(rows, means, white)
    shares, _ = _responsibilities(log_peaks, squares)
    out = np.empty((components * n_entries, len(rows)))
    for k, columns in enumerate(points):
        block = iter(out[k * n_entries : (k + 1) * n_entries])
        (radius, outer_radius), (of_share, of_first, of_second, of_beyond) = radii[k], block_weights[k]
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
        beyond = np.clip(squares[k], radius**2, outer_radius**2) - radius**2
        np.multiply(shares[k] * (of_beyond / math.sqrt(d)), beyond, out=next(block))
    return out.T


def _entries(d: int) -> int:
    """Return the number of entries of a component's block."""
    return 2 + d + d * (d + 1) // 2


def _whitened_points(
    rows: np.ndarray, means: np.ndarray, white: np.ndarray
) -> tuple[list[list[np.ndarray]], list[np.ndarray]]:
    """Return the columns of white·(x - mean) for each component, with a lower triangular white; and squared norms."""
    points = []
    for mean, matrix in zip(means, white, strict=True):
        deviations = [rows[:, j] - mean[j] for j in range(len(mean))]
        points.append([reduce(np.add, [deviations[j] * matrix[i, j] for j in range(i + 1)]) for i in range(len(mean))])
    return points, [reduce(np.add, [column * column for column in columns]) for columns in points]


def _responsibilities(log_peaks: np.ndarray, squares: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return the responsibility of each component for each row, (K, n), and the log-density of each row."""
    logs = np.array([log_peak - square / 2 for log_peak, square in zip(log_peaks, squares, strict=True)])
    top = logs.max(axis=0)
    logs -= top
    np.exp(logs, out=logs)
    total = reduce(np.add, logs)  # a fixed order of additions; that of .sum() may differ for a single row
    return logs / total, top + np.log(total)
