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

from discreet.kernel.exact import whole
from discreet.learn.mixture.density import KINDS, as_full, of_kind
from discreet.learn.mixture.dpem import Parameters
from discreet.learn.mixture.shrinkage import Clip, change_of, clip_at, floored, grown, read
from discreet.learn.mixture.start import best_start
from discreet.learn.mixture.tables import Draws, Public, Windows, draw_tables

_ROUNDS = 5
_FOR_WINDOWS, _FOR_TABLES, _FOR_ROUNDS = 5, 35, 60  # hundredths of the price
_INSIDE = 0.95  # the share of a component's points that the clip leaves where they are
_BOLD = 1.5  # EM is slow; longer steps in the same direction converge too
_VISIBLE = 6.0  # standard deviations by which a component's size must stand out to change it
_LEAST_WEIGHT = 1e-3
_MOST, _MOST_ROUNDS = 256, 100
_LEAST_VARIANCE = 1e-10  # of the declared range, squared


@dataclass(frozen=True)
class Plan:
    """All that is fixed before any data: the draws' shares of the price, and what is made of the draws."""

    candidates: tuple[int, ...]
    low: np.ndarray
    high: np.ndarray
    covariance_type: str
    rounds: int

    @property
    def shares(self) -> tuple[Fraction, ...]:
        """How the price is divided over the draws, in order."""
        rounds = [Fraction(_FOR_ROUNDS, self.rounds)] * self.rounds
        return (Fraction(_FOR_WINDOWS), Fraction(_FOR_TABLES), *rounds)


def plan(
    n_components: int | Sequence[int],
    low: np.ndarray,
    high: np.ndarray,
    *,
    covariance_type: str = "full",
    n_iter: int | None = None,
) -> Plan:
    """Return the plan of a fit; of several numbers of components, the tables choose, at no further price.

    >>> len(plan([1, 2, 3], np.zeros(2), np.ones(2)).shares)
    7
    """
    several = tuple(n_components) if isinstance(n_components, Sequence | np.ndarray) else (n_components,)
    candidates = tuple(sorted({whole(each, "n_components", least=1) for each in several}))
    if not candidates:
        raise ValueError("n_components: name at least one number")
    if candidates[-1] > _MOST:
        raise ValueError(f"n_components must be at most {_MOST}: so many would be lost in the noise of each other")
    if covariance_type not in KINDS:
        raise ValueError(f"covariance_type must be one of {', '.join(map(repr, KINDS))}, not {covariance_type!r}")
    low, high = np.array(low, np.float64), np.array(high, np.float64)
    if n_iter is not None and whole(n_iter, "n_iter", least=1) > _MOST_ROUNDS:
        raise ValueError(f"n_iter must be at most {_MOST_ROUNDS}: each round gets a part of the price")
    return Plan(candidates, low, high, covariance_type, _ROUNDS if n_iter is None else whole(n_iter, "n_iter", least=1))


def fit(session: Draws, plan: Plan) -> Parameters:
    """Return a mixture in data units, made of nothing but what the session released."""
    tables, windows = draw_tables(session, plan.low, plan.high)
    # One Gaussian is always a candidate: more components, of which nothing is to be seen, would be worse than it.
    start = best_start(tables, {1, *plan.candidates})
    now = _valid(Parameters(start.weights, *_in_cube(start.means, start.covariances, windows)), plan)
    for left in reversed(range(plan.rounds)):
        now = _round(session, plan, now, _BOLD if left else 1.0)
    return _in_data(now if len(now.weights) in plan.candidates else _copied(now, min(plan.candidates)), plan)


def _copied(one: Parameters, times: int) -> Parameters:
    """Return one Gaussian as a mixture of several that are the same."""
    return Parameters(np.full(times, 1 / times), *(np.repeat(part, times, axis=0) for part in one[1:]))


def _in_data(mixture: Parameters, plan: Plan) -> Parameters:
    """Return a mixture of the unit cube in data units."""
    weights, means, covariances = mixture
    length = plan.high - plan.low
    return Parameters(weights, plan.low + means * length, covariances * np.outer(length, length))


def _in_cube(means: np.ndarray, covariances: np.ndarray, windows: Windows) -> tuple[np.ndarray, np.ndarray]:
    """Return what stands in the windows' units in those of the unit cube."""
    return windows.begin + (means + 0.5) * windows.length, covariances * np.outer(windows.length, windows.length)


def _valid(mixture: Parameters, plan: Plan) -> Parameters:
    """Return the mixture with covariances of the plan's kind, above the floor, and means in the declared bounds."""
    weights, means, covariances = mixture
    kept = as_full(of_kind(covariances, weights, plan.covariance_type), plan.covariance_type, *means.shape)
    return Parameters(weights, np.clip(means, 0, 1), floored(kept, _LEAST_VARIANCE))


def _round(session: Draws, plan: Plan, now: Parameters, boldness: float) -> Parameters:
    """Return the mixture after one noisy round of EM."""
    components, d = now.means.shape
    clip = clip_at(_INSIDE, d, in_l2=session.is_gaussian)
    factors = np.linalg.cholesky(now.covariances)
    numbers, sd = 1 + d + d * (d + 1) // 2, session.sd()
    public = _public(plan, now, factors, clip)
    sums = session.sum(component_sums, public, size=components * numbers, radius=1).reshape(components, numbers)
    means, covariances = now.means.copy(), now.covariances.copy()
    for k in range(components):
        seen = read(sums[k], d, clip)
        if seen.size < _VISIBLE * sd / clip.weights[0]:
            continue  # nothing but noise
        shift, growth = change_of(seen, sd, clip)
        means[k] += boldness * factors[k] @ _at_most(shift, 2.0)
        covariances[k] = grown(factors[k], boldness * growth)
    sizes = np.maximum(sums[:, 0], max(_LEAST_WEIGHT * sums[:, 0].sum(), 1e-9))
    return _valid(Parameters(sizes / sizes.sum(), means, covariances), plan)


def _at_most(shift: np.ndarray, length: float) -> np.ndarray:
    return np.asarray(shift * min(1.0, length / max(float(np.linalg.norm(shift)), 1e-300)))


def _public(plan: Plan, now: Parameters, factors: np.ndarray, clip: Clip) -> Public:
    """Return what the rule needs, in data units, so that it looks at the rows as they are."""
    white = np.linalg.inv(factors)
    heights = np.log(now.weights) + np.log(np.diagonal(white, axis1=1, axis2=2)).sum(axis=1)
    length = plan.high - plan.low
    return heights, plan.low + now.means * length, white / length, clip.radius, clip.weights


def component_sums(rows: np.ndarray, public: Public) -> np.ndarray:
    """Return for every component a row's share, share·z and share·zzᵀ, of its clipped whitened point z, weighted.

    Of zzᵀ it is the lower triangle, off the diagonal times sqrt(2), which keeps Frobenius' norm. The weights put the
    whole vector into the unit ball: of l2, or of l1 if they were made for it.
    """
    heights, means, white, radius, (of_share, of_first, of_second) = public
    components, d = means.shape
    numbers = 1 + d + d * (d + 1) // 2
    points = [_whitened(rows, means[k], white[k]) for k in range(components)]
    squares = [reduce(np.add, [column * column for column in columns]) for columns in points]
    shares = _shares(heights, squares)
    out = np.empty((components * numbers, len(rows)))
    for k, columns in enumerate(points):
        block = iter(out[k * numbers : (k + 1) * numbers])
        nearer = np.minimum(1.0, radius / np.sqrt(np.maximum(squares[k], 1e-300)))
        np.multiply(shares[k], of_share, out=next(block))
        weighted = shares[k] * nearer
        for column in columns:
            np.multiply(weighted * of_first, column, out=next(block))
        weighted *= nearer
        for i, column in enumerate(columns):
            single, double = weighted * of_second * column, weighted * (of_second * math.sqrt(2)) * column
            for j in range(i + 1):
                np.multiply(single if i == j else double, columns[j], out=next(block))
    return out.T


def _whitened(rows: np.ndarray, mean: np.ndarray, white: np.ndarray) -> list[np.ndarray]:
    """Return the columns of white·(x - mean), for a lower triangular white."""
    apart = [rows[:, j] - mean[j] for j in range(len(mean))]
    return [reduce(np.add, [apart[j] * white[i, j] for j in range(i + 1)]) for i in range(len(mean))]


def _shares(heights: np.ndarray, squares: list[np.ndarray]) -> np.ndarray:
    """Return how much of each row every component explains: (K, n)."""
    logs = np.array([height - square / 2 for height, square in zip(heights, squares, strict=True)])
    logs -= logs.max(axis=0)
    np.exp(logs, out=logs)
    return np.asarray(logs / reduce(np.add, logs))  # in the components' order, which .sum() may change for one row
