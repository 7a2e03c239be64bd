"""The contribution histogram: bounds and an estimate of the clipping bias, and the choice of a radius.

The histogram counts units by the norm of their contribution to a count: the l2 norm if the noise is Gaussian, the l1
norm if it is Laplace. Everything here is post-processing of noisy counts, so floats are safe.
"""

import math
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist

import numpy as np

from discreet.answer.bias import Bias
from discreet.estimate.intervals import JointNoise
from discreet.kernel.mechanism import Gaussian, Laplace

_TAIL = 0.05  # bounds hold with 95 % confidence
_TAIL_DECAY = 0.8  # ratio of the probabilities of failure of a prefix and of the next shorter one
_STEP = math.sqrt(2)  # ratio of the ends of a bucket above the ladder
_VISIBLE = 2.0  # a bucket with fewer deviations of noise is empty as far as can be told
_SIMILAR = 0.001

# Choice of a radius. These constants were tuned by simulation, on populations of the same kinds as those of
# bench/bounds.py, whose figures were seen meanwhile; no guarantee rests on them.
_LARGE_PEAK = 10.0  # deviations of noise in the largest octave from which the decline of the tail can be fitted
_CLEAR = 3.0  # deviations of noise in the octaves before those that are extrapolated
_FITTED = 5  # octaves before the last clear one whose decline is extrapolated, with all that follow
_MISFIT, _DRIFT = 0.15, 0.07  # relative error of a fit in the last clear octave; more per square of octaves below it
_LEAST_DECLINE, _FAR = 0.7, 5  # of the logarithm per octave, so many octaves up: faster for norms of a finite mean
_FEWEST_UNITS = 0.25  # a tail ends where it has fewer units than this
_UNLIKELY = 16.0  # logarithm of the likelihood ratio from which a fit is left out
_EXTENSION = 6  # octaves above the ladder that a tail may reach
_SLOPES = np.arange(-0.6, 6.2, 0.2)
_CURVATURES = np.array([0, 0.02, 0.05, 0.12, 0.3, 0.8, 2.0])
_GROWTHS = np.array([-1.0, -0.5, 0, 0.5, 1.0])  # of the curvature, as a power of the norm
_WIDTHS = np.array([0.5, 0.75, 1.0, 1.5, 2.0, 2.75])  # of log-normal norms, in octaves
_LOCATION_DECAY = 7.5  # octaves over which the prior of a location falls by a factor of e
_SMALL_BIAS = 0.5  # deviations of noise that the middle forecast of the bias may have


@dataclass(frozen=True, eq=False)
class ContributionBuckets:
    """Noisy numbers of units, by the norm of their contribution."""

    lows: tuple[float, ...]  # lower end of each bucket, as a norm of row counts, increasing; the last bucket is open
    counts: np.ndarray  # noisy numbers of units (int64)
    noise: Laplace | Gaussian  # of each count

    def __post_init__(self) -> None:
        if len(self.lows) != len(self.counts) or not len(self.lows):
            raise ValueError("lows and counts must have the same length, at least 1")
        if not (np.diff(self.lows) > 0).all() or self.lows[0] <= 0:
            raise ValueError("lows must be positive and increasing")

    @property
    def deviation(self) -> float:
        """Standard deviation of the noise of each count."""
        return float(self.noise.scale) * (math.sqrt(2) if isinstance(self.noise, Laplace) else 1.0)

    @property
    def radii(self) -> np.ndarray:
        """Radii that a ball is chosen from: in steps of sqrt(2), from the first lower end up to the last octave's."""
        return np.asarray(self.lows[0] * 2.0 ** (np.arange(2 * int(self.octaves[-1]) + 1) / 2))

    @property
    def octaves(self) -> np.ndarray:
        """The octave of each bucket: norms from each power of two to the next, in units of the first lower end."""
        return np.floor(np.log2(np.array(self.lows) / self.lows[0]) + 1e-9).astype(np.int64)


class RadiusGoal(Enum):
    """What a radius is chosen for: how many times the bias counts beside the noise."""

    # Counts and sums: the bias stays below half the noise's deviation, so that margins of error hold. Where it falls
    # like radius^-a, the least error has a bias of 1 / (times * sqrt(a)) deviations. For Pareto norms a is alpha - 1:
    # half a deviation at alpha = 1.16, where a fifth of the units has four fifths of the rows, and less above.
    MARGINS = 5.0
    ERROR = 1.0  # the least total error, also where the margin then misses much of it
    MEANS = 0.25  # clipping removes rows from the numerator and the denominator alike


@dataclass(frozen=True)
class RadiusChoice:
    """A radius, and whether the histogram was too noisy to see how contributions decline."""

    radius: float
    blind: bool


def clipped_rows(buckets: ContributionBuckets, radius: float, most: float | None = None, candidates: int = 1) -> Bias:
    """Return how many rows were removed, over all groups, by clipping contributions to the radius: Σ (norm - radius)+.

    The bounds hold whatever the data. `most` is a declared limit on the norm of a contribution, without which there is
    no upper bound. If the radius was chosen from this histogram, `candidates` is the number of radii that it was
    chosen from. The estimate assumes that norms are log-uniform within a bucket, and omits invisible buckets.

    >>> buckets = ContributionBuckets((4.0, 8.0, 16.0), np.array([700, 300, 50]), Gaussian(10))
    >>> bias = clipped_rows(buckets, radius=4, most=32)
    >>> round(bias.low), round(bias.estimate), round(bias.high)
    (1502, 4456, 8426)
    """
    tail = _TAIL / candidates if most is None else _TAIL / candidates / 2
    low = _lower_bound(buckets, radius, tail)
    ends = _upper_ends(buckets.lows, most)
    high = None if most is None else max(low, _upper_bound(buckets, np.maximum(ends - radius, 0), tail))
    estimate = max(low, _visible_excess(buckets, radius, ends))
    return Bias(low, estimate if high is None else min(estimate, high), high)


def _lower_bound(buckets: ContributionBuckets, radius: float, tail: float) -> float:
    """Return the largest of the lower bounds from all prefixes of the buckets, each unit at its bucket's lower end.

    Long prefixes get a smaller part of the probability of failure, because noise in a high bucket can be mistaken for
    billions of rows.
    """
    lows, counts = np.array(buckets.lows), buckets.counts.astype(float)
    above = np.flatnonzero(lows > radius)
    weights, totals = lows[above] - radius, np.cumsum((lows[above] - radius) * counts[above])
    tails = _TAIL_DECAY ** np.arange(len(above))
    tails *= tail / tails.sum() if len(above) else 1.0
    # A quantile is at least that of the largest weight alone. The most promising prefixes first: few are computed.
    limits = totals - _single_quantiles(buckets, tails) * weights
    bound = 0.0
    for place in np.argsort(-limits).tolist():
        if limits[place] <= bound:
            break
        bound = max(bound, float(totals[place]) - _quantile(buckets, weights[: place + 1], float(tails[place])))
    return bound


def _single_quantiles(buckets: ContributionBuckets, tails: np.ndarray) -> np.ndarray:
    """Return a value that the noise of one count exceeds with at least each of these probabilities."""
    scale = float(buckets.noise.scale)
    if isinstance(buckets.noise, Laplace):
        return np.asarray(-scale * np.log(2 * tails))
    return scale * np.array([NormalDist().inv_cdf(1 - tail) for tail in tails.tolist()])


def _upper_bound(buckets: ContributionBuckets, weights: np.ndarray, tail: float) -> float:
    """Return an upper bound on Σ weight·count."""
    used = weights > 0
    return max(0.0, float(weights[used] @ buckets.counts[used]) + _quantile(buckets, weights[used], tail))


def _quantile(buckets: ContributionBuckets, weights: np.ndarray, tail: float) -> float:
    """Return a value that the noise of Σ weight·count exceeds with at most this probability.

    It is a norm of the weights (JointNoise.quantile), so a sum of quantiles bounds the quantile of a sum. Weights of
    similar size are taken together: partial fractions of very different scales would cancel.
    """
    if not len(weights):
        return 0.0
    similar = weights > _SIMILAR * weights.max()
    one, parts = JointNoise.from_parts((buckets.noise, Fraction(1))), int(similar.sum())
    noise = JointNoise(one.distribution, one.scales * parts, one.slacks * parts)
    return float(noise.quantile(2 * tail, *weights[similar])[0]) + _quantile(buckets, weights[~similar], tail)


def _upper_ends(lows: tuple[float, ...], most: float | None) -> np.ndarray:
    """Return the upper ends of the buckets, 0 for those above the limit; without one, the last is a guess."""
    if most is None:
        return np.array([*lows[1:], lows[-1] * _STEP])
    return np.where(np.array(lows) < most, np.minimum([*lows[1:], math.inf], most), 0.0)


def _log_uniform_excess(lows: np.ndarray, ends: np.ndarray, radius: np.ndarray | float) -> np.ndarray:
    """Return the mean of (norm - radius)+ if the logarithm of the norm is uniform between the ends."""
    ends = np.maximum(ends, lows * (1 + 1e-9))
    reached = np.clip(radius, lows, ends)
    return np.asarray((ends - reached - radius * np.log(ends / reached)) / np.log(ends / lows))


def _visible_excess(buckets: ContributionBuckets, radius: float, ends: np.ndarray) -> float:
    """Return the estimate of Σ (norm - radius)+ over the buckets from the radius up to two empty ones in a row.

    On a ladder of 60 buckets, noise that looks like a unit occurs somewhere above every contribution in one of three
    histograms, and a single unit up there would outweigh all others.
    """
    reached = np.flatnonzero(ends > radius)
    first = int(reached[0]) - 1 if len(reached) else len(ends)
    last = _last_visible(buckets.counts > _VISIBLE * buckets.deviation, first)
    seen = slice(first + 1, last + 1)
    excess = _log_uniform_excess(np.array(buckets.lows)[seen], ends[seen], radius)
    return float(np.maximum(buckets.counts[seen], 0) @ excess)


def _last_visible(visible: np.ndarray, last: int) -> int:
    """Return the last visible place before two invisible ones in a row, beginning at a place that counts as visible."""
    for place in range(last + 1, len(visible)):
        if visible[place]:
            last = place
        elif place == last + 2:
            break
    return last


@dataclass(frozen=True, eq=False)
class BiasForecast:
    """The clipping bias of a cell at each radius of the ladder, for each of many fitted tails with their weights."""

    radii: np.ndarray
    biases: np.ndarray  # fits × radii
    weights: np.ndarray  # of the fits, with sum 1
    blind: bool

    def quantile(self, probability: float) -> np.ndarray:
        """Return a quantile of the bias at each radius, over the weighted fits."""
        order = np.argsort(self.biases, axis=0)
        reached = np.cumsum(self.weights[order], axis=0) >= probability * (1 - 1e-9)
        places = np.take_along_axis(order, np.argmax(reached, axis=0)[None], axis=0)
        return np.asarray(np.take_along_axis(self.biases, places, axis=0)[0])


def choose_radius(buckets: ContributionBuckets, noise_ratio: float, cells: int, goal: RadiusGoal) -> RadiusChoice:
    """Choose a radius in steps of sqrt(2), for noise of deviation noise_ratio·radius in each cell.

    Few units, but large ones, decide about the bias, and they are too few to be visible. So the decline of the visible
    tail is extrapolated: many curves are fitted and weighted by their likelihood. The radius minimises the mean over
    the curves of the logarithm of the error, in which the bias counts as often as the goal says; a logarithm limits the
    influence of unlikely curves. For margins, the bias is also at most half the noise's deviation on most curves. If
    the histogram is blind (forecast_bias), the bias counts at most once.

    >>> lows = tuple(2.0**place for place in range(12))
    >>> counts = np.array([round(75_000 * 0.25**place) for place in range(12)])
    >>> choice = choose_radius(ContributionBuckets(lows, counts, Gaussian(22)), 5.1, 1, RadiusGoal.MARGINS)
    >>> round(choice.radius), choice.blind
    (256, False)
    """
    forecast = forecast_bias(buckets, cells)
    times = min(1.0, goal.value) if forecast.blind else goal.value
    noise = noise_ratio * forecast.radii
    errors = forecast.weights @ np.log(np.hypot(times * forecast.biases, noise))
    if goal is RadiusGoal.MARGINS and not forecast.blind:
        is_small = forecast.weights @ (forecast.biases <= _SMALL_BIAS * noise) >= 0.5
        errors[:-1][~is_small[:-1]] = math.inf  # the last radius is left if there is no other
    return RadiusChoice(float(forecast.radii[np.argmin(errors)]), forecast.blind)


def forecast_bias(buckets: ContributionBuckets, cells: int) -> BiasForecast:
    """Forecast the clipping bias of a cell from the visible decline of contributions.

    The bias of a cell is bounded as if all contributions had the same direction: Σ (norm - radius)+ divided by the
    root of the number of cells in l2, by their number in l1. If not even the largest octave is clearly visible, the
    histogram is blind: log-normal norms are fitted to all octaves instead of the decline.

    >>> lows = tuple(2 ** (place / 2) for place in range(24))
    >>> counts = np.array([round(50_000 * 0.5**place) for place in range(24)])
    >>> forecast = forecast_bias(ContributionBuckets(lows, counts, Gaussian(22)), 1)
    >>> bool(forecast.quantile(0.5)[0] > 100_000 > forecast.quantile(0.5)[8] > 1_000)
    True
    """
    octaves, variance = _octaves(buckets)
    blind = bool((octaves < _LARGE_PEAK * np.sqrt(variance)).all())
    fitted, weights = _fit_locations(octaves, variance) if blind else _fit_decline(octaves, variance)
    radii, lows = buckets.radii, buckets.lows[0] * 2.0 ** np.arange(fitted.shape[1])
    directions = cells if isinstance(buckets.noise, Laplace) else math.sqrt(cells)
    biases = fitted @ _log_uniform_excess(lows[:, None], 2 * lows[:, None], radii) / directions
    return BiasForecast(radii, biases, weights, blind)


def _octaves(buckets: ContributionBuckets) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of units by octave, and the variance of their noise.

    Norms of few rows are roots of integers or integers, which fill narrower buckets unevenly.
    """
    octave = buckets.octaves
    return np.bincount(octave, buckets.counts), np.maximum(np.bincount(octave), 1) * buckets.deviation**2


def _fit_decline(counts: np.ndarray, variance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Fit declines to the last clear octaves and all above; what is clear stays as it is.

    Returns possible numbers of units (fits × octaves, also above the ladder), and the weights of the fits.
    """
    peak = int(np.argmax(counts))
    last = _last_visible(counts > _CLEAR * np.sqrt(variance), peak)
    first = max(peak, last - _FITTED)
    shapes = _declining_shapes(len(counts) + _EXTENSION - first)
    misfit = (_MISFIT + _DRIFT * np.arange(last - first, -1, -1) ** 2) * np.maximum(counts[first : last + 1], 0)
    fit_variance = variance[first:].copy()
    fit_variance[: last + 1 - first] += misfit**2
    fitted, weights = _weighted_fits(shapes, counts[first:], fit_variance)
    seen = np.broadcast_to(np.maximum(counts[: last + 1], 0), (len(fitted), last + 1))
    return np.concatenate([seen, fitted[:, last + 1 - first :]], axis=1), weights


@lru_cache(maxsize=8)
def _declining_shapes(octaves: int) -> np.ndarray:
    """Return the shapes of tails (shapes × octaves).

    The logarithm declines by a slope and a curvature, which grows or falls like a power of the norm: Pareto's tail has
    no curvature, a log-normal one has a constant one, an exponential one grows with the norm; and it falls where a
    log-normal body has a Pareto tail.
    """
    slopes, curvatures, growths = (grid.reshape(-1, 1) for grid in np.meshgrid(_SLOPES, _CURVATURES, _GROWTHS))
    rates = np.where(growths == 0, 1e-4, growths) * math.log(2)  # a constant curvature is the limit of small rates
    declining = (slopes + 2 * curvatures * np.expm1(rates * _FAR) / rates >= _LEAST_DECLINE).ravel()
    places = np.arange(octaves)
    bends = 2 * (np.expm1(rates * places) - rates * places) / rates**2
    return np.asarray(np.exp(-(slopes * places + curvatures * bends))[declining])


def _fit_locations(counts: np.ndarray, variance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Fit log-normal norms of every location and several widths; lower locations are likelier beforehand."""
    locations, widths = (grid.reshape(-1, 1) for grid in np.meshgrid(np.arange(0, len(counts), 0.5), _WIDTHS))
    shapes = np.exp(-0.5 * ((np.arange(len(counts) + _EXTENSION) - locations) / widths) ** 2)
    return _weighted_fits(shapes, counts, variance, -locations[:, 0] / _LOCATION_DECAY)


def _weighted_fits(
    shapes: np.ndarray, counts: np.ndarray, variance: np.ndarray, log_prior: np.ndarray | float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """Scale each shape to the counts, never below zero, and weight it by its likelihood.

    Each shape ends where less than a fraction of a unit remains.
    """
    observed = shapes[:, : len(counts)]
    sizes = np.maximum((observed / variance) @ counts / ((observed**2 / variance).sum(axis=1)), 0)
    fitted = sizes[:, None] * shapes
    log_weights = log_prior - 0.5 * ((counts - fitted[:, : len(counts)]) ** 2 / variance).sum(axis=1)
    likely = log_weights > log_weights.max() - _UNLIKELY
    fitted, weights = fitted[likely], np.exp(log_weights[likely] - log_weights.max())
    remaining = np.flip(np.cumsum(np.flip(fitted, axis=1), axis=1), axis=1)
    return np.where(remaining >= _FEWEST_UNITS, fitted, 0.0), weights / weights.sum()
