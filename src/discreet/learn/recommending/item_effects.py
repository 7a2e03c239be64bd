"""How well items are rated, from noisy counts and sums: what the noise makes doubtful is drawn towards the mean.

All is in thirds of the ratings' range. Nothing here sees data: the numbers were released before.
"""

import numpy as np

# Variances that ratings on any scale roughly have, of single ratings, of people's means and of items' means.
RATING, PERSON, ITEM = 4 / 9, 4 / 27, 1 / 15
_OVERALL = 1 / 4  # variance of the overall mean around the middle of the range, before anything is known
_POINTS = 96  # of a count's possible values
_AT_ONCE = 4096  # items
_HEAVY = 1.5  # popularity falls with about this power: few items are rated often, most hardly ever


def overall(halves: np.ndarray, noise: float) -> tuple[float, float]:
    """Return the overall mean and its variance, from the noisy weights of the lower and the upper end.

    >>> overall(np.array([250.0, 750.0]), noise=1.0)[0]
    2.25
    """
    count = max(float(halves.sum()), noise, 1e-9)
    share = float(np.clip(halves[1] / count, 0, 1))
    doubt = 9 * (share**2 + (1 - share) ** 2) * (noise / count) ** 2
    kept = _OVERALL / (_OVERALL + doubt)
    return round(1.5 + kept * (3 * share - 1.5), 4), kept * doubt


def item_effects(
    counts: np.ndarray, count_noise: float, sums: np.ndarray, sum_noise: float, *, normal: bool
) -> np.ndarray:
    """Return the expected deviation of each item's mean, given its noisy count and its noisy sum of deviations."""
    number, square = expected_counts(counts, count_noise, normal=normal)
    return np.asarray(ITEM * number * sums / (ITEM * square + RATING * number + sum_noise**2))


def expected_counts(counts: np.ndarray, noise: float, *, normal: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean and the mean square of each true count, given the noisy one and how popularity usually falls.

    A count ten times as large as its noise speaks for itself.

    >>> number, _ = expected_counts(np.array([-3.0, 500.0]), noise=2.0, normal=True)
    >>> bool(1 <= number[0] < 3), bool(abs(number[1] - 500) < 1)
    (True, True)
    """
    values = np.geomspace(1, max(20 * noise, 10), _POINTS)
    means = np.stack([counts, counts**2 + noise**2])
    doubtful = np.flatnonzero(counts < max(10 * noise, 1))
    for start in range(0, len(doubtful), _AT_ONCE):
        part = doubtful[start : start + _AT_ONCE]
        away = np.abs(counts[part, np.newaxis] - values) / noise
        logs = (-(away**2) / 2 if normal else -np.sqrt(2) * away) + (1 - _HEAVY) * np.log(values)
        chances = np.exp(logs - logs.max(axis=1, keepdims=True))
        chances /= chances.sum(axis=1, keepdims=True)
        means[:, part] = (chances * values).sum(axis=1), (chances * values**2).sum(axis=1)
    return means[0], means[1]


def liked_together(sums: np.ndarray, sum_noise: float, counts: np.ndarray, count_noise: float) -> np.ndarray:
    """Return the items' covariance, from noisy sums of products and noisy weights of the pairs (upper triangle).

    Only what stands out of the noise is kept: the eigenvalues of a symmetric matrix of noise are below twice the
    root of the largest row of variances, and by so much the others are lowered.
    """
    size = int(np.sqrt(2 * len(sums)))
    together = np.maximum(_square(counts, size), 0) + 2 * count_noise
    covariance = _square(sums, size) / together
    np.fill_diagonal(covariance, 0)  # a rating's own variance is no taste
    noise = sum_noise / together
    values, vectors = np.linalg.eigh(covariance)
    lowered = np.maximum(values - 2 * np.sqrt((noise**2).sum(axis=1).max()), 0)
    return np.asarray((vectors * lowered) @ vectors.T)


def _square(upper: np.ndarray, size: int) -> np.ndarray:
    out = np.zeros((size, size))
    out[np.triu_indices(size)] = upper
    return out + np.triu(out, 1).T
