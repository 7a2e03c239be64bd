"""How well items are rated, from noisy counts and sums: what the noise makes doubtful is drawn towards the mean.

All is in thirds of the ratings' range. Nothing here sees data: the numbers were released before.
"""

import numpy as np

# Variances that ratings on any scale roughly have, of single ratings, of people's means and of items' means.
RATING_VARIANCE, USER_VARIANCE, ITEM_VARIANCE = 4 / 9, 4 / 27, 1 / 15
_OVERALL_VARIANCE = 1 / 4  # variance of the overall mean around the middle of the range, before anything is known
_COUNT_GRID_POINTS = 96  # of a count's possible values
_ITEMS_PER_BATCH = 4096  # items
_POPULARITY_EXPONENT = 1.5  # popularity falls with about this power: few items are rated often, most hardly ever


def shrunken_overall_mean(end_weights: np.ndarray, noise_sd: float) -> tuple[float, float]:
    """Return the overall mean and its variance, from the noisy weights of the lower and the upper end.

    >>> shrunken_overall_mean(np.array([250.0, 750.0]), noise_sd=1.0)[0]
    2.25
    """
    count = max(float(end_weights.sum()), noise_sd, 1e-9)
    share = float(np.clip(end_weights[1] / count, 0, 1))
    variance = 9 * (share**2 + (1 - share) ** 2) * (noise_sd / count) ** 2
    factor = _OVERALL_VARIANCE / (_OVERALL_VARIANCE + variance)
    return round(1.5 + factor * (3 * share - 1.5), 4), factor * variance


def item_effects(
    counts: np.ndarray, count_sd: float, sums: np.ndarray, sum_sd: float, *, is_gaussian: bool
) -> np.ndarray:
    """Return the expected deviation of each item's mean, given its noisy count and its noisy sum of deviations."""
    expected, expected_square = expected_counts(counts, count_sd, is_gaussian=is_gaussian)
    return np.asarray(
        ITEM_VARIANCE * expected * sums / (ITEM_VARIANCE * expected_square + RATING_VARIANCE * expected + sum_sd**2)
    )


def expected_counts(counts: np.ndarray, noise_sd: float, *, is_gaussian: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean and the mean square of each true count, given the noisy one and how popularity usually falls.

    A count ten times as large as its noise speaks for itself.

    >>> expected, _ = expected_counts(np.array([-3.0, 500.0]), noise_sd=2.0, is_gaussian=True)
    >>> bool(1 <= expected[0] < 3), bool(abs(expected[1] - 500) < 1)
    (True, True)
    """
    values = np.geomspace(1, max(20 * noise_sd, 10), _COUNT_GRID_POINTS)
    means = np.stack([counts, counts**2 + noise_sd**2])
    uncertain = np.flatnonzero(counts < max(10 * noise_sd, 1))
    for start in range(0, len(uncertain), _ITEMS_PER_BATCH):
        part = uncertain[start : start + _ITEMS_PER_BATCH]
        distance = np.abs(counts[part, np.newaxis] - values) / noise_sd
        logs = (-(distance**2) / 2 if is_gaussian else -np.sqrt(2) * distance) + (1 - _POPULARITY_EXPONENT) * np.log(
            values
        )
        posterior = np.exp(logs - logs.max(axis=1, keepdims=True))
        posterior /= posterior.sum(axis=1, keepdims=True)
        means[:, part] = (posterior * values).sum(axis=1), (posterior * values**2).sum(axis=1)
    return means[0], means[1]


def taste_covariance(sums: np.ndarray, sum_sd: float, counts: np.ndarray, count_sd: float) -> np.ndarray:
    """Return the items' covariance, from noisy sums of products and noisy weights of the pairs (upper triangle).

    Only what stands out of the noise is kept: the eigenvalues of a symmetric matrix of noise are below twice the
    root of the largest row of variances, and by so much the others are lowered.
    """
    size = int(np.sqrt(2 * len(sums)))
    pair_counts = np.maximum(_symmetric_from_upper(counts, size), 0) + 2 * count_sd
    covariance = _symmetric_from_upper(sums, size) / pair_counts
    np.fill_diagonal(covariance, 0)  # a rating's own variance is no taste
    noise_sd = sum_sd / pair_counts
    values, vectors = np.linalg.eigh(covariance)
    shrunken = np.maximum(values - 2 * np.sqrt((noise_sd**2).sum(axis=1).max()), 0)
    return np.asarray((vectors * shrunken) @ vectors.T)


def _symmetric_from_upper(upper: np.ndarray, size: int) -> np.ndarray:
    out = np.zeros((size, size))
    out[np.triu_indices(size)] = upper
    return out + np.triu(out, 1).T
