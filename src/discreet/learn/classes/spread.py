"""Where features lie and how far they spread, learned privately first: what is learned next then needs less room."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.learn.bounds import Ends
from discreet.learn.session import Public, Session

CAP = 4.0  # deviations: what is farther off counts as this far
CELLS = 16  # of a histogram of lengths
_SQUARE = 0.5  # weight of a square beside the number itself
_COUNT = 0.2  # weight of a row as such, of its usual length
_USUAL, _UNSURE = 0.2**2, 0.03**2  # a variance, of features within [-1, 1], and how sure that is: both squared
_LEAST = 0.5**2  # of the features' usual variance: no feature is taken to have less


@dataclass(frozen=True)
class Spread:
    """The centre and the deviation of every feature, and the number of units with the deviation of its noise."""

    centre: np.ndarray
    scale: np.ndarray
    count: float
    count_sd: float

    def around_zero(self) -> "Spread":
        """Return it with all centres at zero."""
        return Spread(np.zeros_like(self.centre), np.hypot(self.centre, self.scale), self.count, self.count_sd)


def spread_of(session: Session, ends: Ends) -> Spread:
    """Return where features lie, from two draws: how long rows are, and their sums and squares.

    Both shrink towards what features have in common, by as much as noise hides: features that cannot be told apart
    are better taken to be alike.
    """
    low, high = ends
    d = len(low)
    zero = (low <= 0) & (high >= 0)
    origin = np.where(zero, 0.0, (low + high) / 2)  # data that have a zero are often near it
    reach = np.maximum(high - origin, origin - low)
    norm = 2 if session.is_gaussian else 1
    longest = float(d ** (1 / norm))
    lengths = Lengths(session, (origin, reach, 0.0, longest, norm))
    radius = 1.2 * lengths.quantile(0.7, usual=0.35)
    weight = _COUNT * radius
    ball = math.hypot(radius, weight) if session.is_gaussian else radius + weight
    sd = session.sd(ball)
    total = session.sum(_powers, (origin, reach, weight), size=1 + 2 * d, radius=ball)
    count, count_sd = weighed([lengths.count, total[0] / weight], [lengths.count_sd, sd / weight])
    total, sd = total[1:] / count, sd / count
    mean, left = _shrunk_means(total[:d], sd)
    variance = _shrunk_variances(total[d:] / _SQUARE - mean**2, (sd / _SQUARE) ** 2 + 4 * mean**2 * left)
    return Spread(origin + reach * mean, reach * np.sqrt(variance), count, count_sd)


def weighed(counts: Sequence[float], deviations: Sequence[float]) -> tuple[float, float]:
    """Return the best of several noisy counts of the same units, at least 1, and its deviation."""
    precision = 1 / np.square(deviations)
    return max(float(np.sum(counts * precision) / precision.sum()), 1.0), float(precision.sum() ** -0.5)


def without(noise: np.ndarray, squares: np.ndarray) -> float:
    """Return the mean of squares beyond what the noise's variance explains, carefully: one standard error less."""
    # The variance of a square of Laplace noise is 5 times its squared variance; of Gaussian noise, 2 times.
    return float(np.mean(squares - noise) - np.mean(noise) * np.sqrt(5 / squares.size))


def _shrunk_means(means: np.ndarray, sd: float) -> tuple[np.ndarray, float]:
    """Return means drawn to their own mean, and the variance that is left in each."""
    middle = np.clip(means.mean(), -1, 1)
    between = max(float(means.var()) - sd**2, 0.02**2)
    kept = between / (between + sd**2)
    return np.clip(middle + (means - middle) * kept, -1, 1), kept * sd**2


def _shrunk_variances(raw: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """Return variances drawn to a common one, and that to the usual one."""
    precision = len(raw) / max(float(noise.mean()), 1e-15)
    common = (raw.mean() * precision + _USUAL / _UNSURE) / (precision + 1 / _UNSURE)
    common = max(float(common), _UNSURE)
    between = max(without(noise, (raw - raw.mean()) ** 2), (0.3 * common) ** 2)
    return np.clip(common + (raw - common) * between / (between + noise), _LEAST * common, 1.0)


class Lengths:
    """A noisy histogram of how long rows are, in an l1 or l2 norm, once features are centred and scaled.

    `public` is (centre, scale, threshold, longest, norm).
    """

    def __init__(self, session: Session, public: Public) -> None:
        self.longest, self.sd = float(public[3]), session.sd()
        self.counts = session.histogram(_length, public, cells=CELLS)
        self.count, self.count_sd = float(self.counts.sum()), self.sd * CELLS**0.5

    def quantile(self, share: float, usual: float) -> float:
        """Return a length that this share of the rows does not exceed; near `usual`·longest where noise hides it."""
        seen = np.maximum(self.counts - self.sd, 0)
        seen[int(usual * CELLS)] += 2 * self.sd
        upto = np.concatenate([[0.0], np.cumsum(seen) / seen.sum()])
        return float(np.interp(share, upto, np.linspace(0, self.longest, CELLS + 1)))


def centred(rows: np.ndarray, centre: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Return features as rows, in deviations from their centres; the target, a last column, is left out."""
    away = (rows[:, : len(centre)].T - centre[:, np.newaxis]) / scale[:, np.newaxis]
    return np.asarray(np.clip(away, -CAP, CAP))


def beyond(threshold: float, numbers: np.ndarray) -> np.ndarray:
    """Return by how much numbers exceed a threshold, on either side of zero."""
    return np.asarray(numbers - np.clip(numbers, -threshold, threshold)) if threshold else numbers


def added(numbers: np.ndarray, axis: int = 0) -> np.ndarray:
    """Add up along an axis, one after the other: numpy's own sums depend on how many rows there are."""
    return np.asarray(np.take(np.add.accumulate(numbers, axis=axis), -1, axis=axis))


def _length(rows: np.ndarray, public: tuple[Any, ...]) -> np.ndarray:
    centre, scale, threshold, longest, norm = public
    far = np.abs(beyond(threshold, centred(rows, centre, scale)))
    length = added(far) if norm == 1 else np.sqrt(added(far * far))
    return np.asarray(np.minimum(length * (CELLS / longest), CELLS - 1), np.int64)


def _powers(rows: np.ndarray, public: tuple[Any, ...]) -> np.ndarray:
    origin, reach, weight = public
    d = len(origin)
    out = np.empty((1 + 2 * d, len(rows)))
    out[0] = weight
    out[1 : d + 1] = centred(rows, origin, reach)
    out[d + 1 :] = _SQUARE * out[1 : d + 1] ** 2
    return out.T
