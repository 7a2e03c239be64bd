"""Item effects and covariances from noisy counts and sums, shrunk according to the noise.

All values are in thirds of the rating range. Everything here is post-processing of released values.
"""

import numpy as np

# Typical variances of single ratings, of users' means and of items' means, on any rating scale.
RATING_VARIANCE, USER_VARIANCE, ITEM_VARIANCE = 4 / 9, 4 / 27, 1 / 15
_OVERALL_VARIANCE = 1 / 4  # prior variance of the overall mean around the middle of the range
_COUNT_GRID_POINTS = 96  # grid points for the posterior of a count
_ITEMS_PER_BATCH = 4096
_POPULARITY_EXPONENT = 1.5  # power law of popularity: few items are rated often, most are rated rarely
_BLOCKS = (32, 64, 128, 256)  # possible numbers of blocks of neighbouring items that share an effect
_MIN_BLOCK = 4  # items; smaller blocks are not worth it
_SHARED_VARIANCE_EXPONENT = -0.4  # variance of a block's effect, relative to an item's: its size to this power
_MEAN_MOVE_VARIANCE = 0.1**2  # prior variance of the difference between the means over ratings and over users
BLOCK_RATINGS = 1 / 6  # of the mean number of a user's ratings: blocks need less noise rather than all ratings
_MOST_USERS = 0.2  # share of users that count for the most rated item, after clipping
_KEPT, _KEPT_BY_BLOCKS = 0.5, 0.15  # share of all ratings that is left after active users are clipped


def shrunken_overall_mean(end_weights: np.ndarray, noise_sd: float) -> tuple[float, float]:
    """Return the overall mean and its variance, from the noisy weights of the lower and upper bound.

    >>> shrunken_overall_mean(np.array([250.0, 750.0]), noise_sd=1.0)[0]
    2.25
    """
    count = max(float(end_weights.sum()), noise_sd, 1e-9)
    share = float(np.clip(end_weights[1] / count, 0, 1))
    variance = 9 * (share**2 + (1 - share) ** 2) * (noise_sd / count) ** 2
    factor = _OVERALL_VARIANCE / (_OVERALL_VARIANCE + variance)
    return round(1.5 + factor * (3 * share - 1.5), 4), factor * variance


def shrunken_move(move: float, noise_sd: float, variance: float) -> tuple[float, float]:
    """Return how far the mean over ratings is from a first mean of this variance, and its remaining variance.

    >>> move, _ = shrunken_move(-0.1, noise_sd=0.01, variance=0.0)
    >>> round(move, 3)
    -0.099
    """
    prior = _MEAN_MOVE_VARIANCE + variance
    factor = prior / (prior + noise_sd**2)
    return factor * move, factor * noise_sd**2


def choose_blocks(n_items: int, n_users: float, n_ratings: float, sum_sd: float) -> int:
    """Return how many blocks of neighbouring items should share an effect: as many as there are items if noise allows.

    Effects of blocks vary less than those of items, but noise hides them less.

    >>> [choose_blocks(10_000, n_users=1000, n_ratings=100_000, sum_sd=sd) for sd in (2, 400)]
    [10000, 32]
    """
    # The counts of items follow a power law, whose mean is the geometric mean of both ends.
    mean_count, most = _KEPT * n_ratings / n_items, max(_MOST_USERS * n_users, _KEPT * n_ratings / n_items)
    counts = np.geomspace(mean_count**2 / most, most, _COUNT_GRID_POINTS)
    ratings = counts ** (2 - _POPULARITY_EXPONENT)  # of items with such counts
    gains = {n_items: float(ratings @ _explained(ITEM_VARIANCE, counts, sum_sd) / ratings.sum())}
    for blocks in _BLOCKS:
        if blocks * _MIN_BLOCK <= n_items:
            count = np.array(_KEPT_BY_BLOCKS * n_ratings / blocks)
            gains[blocks] = float(_explained(_block_variance(n_items / blocks), count, BLOCK_RATINGS * sum_sd))
    return max(gains, key=lambda blocks: gains[blocks])


def _explained(variance: float, counts: np.ndarray, sum_sd: float) -> np.ndarray:
    """Return the variance that effects of this prior variance explain, given noisy sums over these counts."""
    signal = variance * counts**2
    return np.asarray(variance * signal / (signal + sum_sd**2))


def _block_variance(block_size: float) -> float:
    return float(ITEM_VARIANCE * block_size**_SHARED_VARIANCE_EXPONENT)


def block_effects(
    sums: np.ndarray, sum_sd: float, counts: np.ndarray, count_sd: float, block_size: float
) -> np.ndarray:
    """Return the effects of blocks of items, whose variance is estimated; all are 0 if neighbours share nothing.

    They are relative to their common mean, which clipping of active users moves away from the mean over ratings.
    """
    size = np.maximum(counts, 2 * count_sd)
    sums = sums - size * sums.sum() / size.sum()
    excess = float((sums**2).mean() - sum_sd**2) / float((size**2).mean())
    variance = float(np.clip(excess, 0, 2 * _block_variance(block_size)))
    return np.asarray(variance * size * sums / (variance * size**2 + sum_sd**2))


def item_effects(
    counts: np.ndarray, count_sd: float, sums: np.ndarray, sum_sd: float, *, is_gaussian: bool
) -> np.ndarray:
    """Return the posterior mean of each item's effect, given its noisy count and noisy sum of deviations."""
    expected, expected_square = expected_counts(counts, count_sd, is_gaussian=is_gaussian)
    return np.asarray(
        ITEM_VARIANCE * expected * sums / (ITEM_VARIANCE * expected_square + RATING_VARIANCE * expected + sum_sd**2)
    )


def expected_counts(counts: np.ndarray, noise_sd: float, *, is_gaussian: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the posterior mean and mean square of each true count, given its noisy count and a power-law prior.

    For counts above ten noise deviations the prior is ignored.

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
    """Return the items' covariance, from noisy sums of products and noisy pair counts (upper triangles).

    Eigenvalues are soft-thresholded at the noise: those of a symmetric noise matrix are below twice the square root of
    its largest row sum of variances.
    """
    size = int(np.sqrt(2 * len(sums)))
    pair_counts = np.maximum(_symmetric_from_upper(counts, size), 0) + 2 * count_sd
    covariance = _symmetric_from_upper(sums, size) / pair_counts
    np.fill_diagonal(covariance, 0)  # the diagonal includes the variance of single ratings, which is not taste
    noise_sd = sum_sd / pair_counts
    values, vectors = np.linalg.eigh(covariance)
    shrunken = np.maximum(values - 2 * np.sqrt((noise_sd**2).sum(axis=1).max()), 0)
    return np.asarray((vectors * shrunken) @ vectors.T)


def _symmetric_from_upper(upper: np.ndarray, size: int) -> np.ndarray:
    out = np.zeros((size, size))
    out[np.triu_indices(size)] = upper
    return out + np.triu(out, 1).T
