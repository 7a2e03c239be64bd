"""The scoreboard of Narayanan and Shmatikov (2008): find a user's record by a few known ratings."""

import math
from dataclasses import dataclass

import numpy as np

from discreet.attacks.data.register import Ratings

_RATING_SCALE, _DAY_SCALE = 1.5, 30.0  # how fast differences in rating and day reduce the score, as in the paper
_FALSE_POSITIVE_RATE = 0.05  # the share of non-members that the attacker accepts to name
_CALIBRATION_SIZE = 200  # records on which the attacker calibrates the threshold


@dataclass(frozen=True, eq=False)
class RatingMatrix:
    """Released stars and days, users × movies; NaN where there is no rating."""

    stars: np.ndarray
    days: np.ndarray

    @property
    def movie_weights(self) -> np.ndarray:
        """The weight of each movie: 1 / log(number of raters)."""
        raters = np.count_nonzero(~np.isnan(self.stars), axis=0)
        return np.asarray(1 / np.log(np.maximum(raters, 2)))


@dataclass(frozen=True, eq=False)
class AuxiliaryRatings:
    """The attacker's knowledge about one target: movies, their stars, and their days if known."""

    movies: np.ndarray
    stars: np.ndarray
    days: np.ndarray | None


def scoreboard_scores(matrix: RatingMatrix, weights: np.ndarray, auxiliary: AuxiliaryRatings) -> np.ndarray:
    """Score how well each user matches the known ratings: rare movies, similar stars and close days count more.

    >>> matrix = RatingMatrix(np.array([[4.0, np.nan], [1.0, 5.0]]), np.array([[1.0, np.nan], [1.0, 2.0]]))
    >>> known = AuxiliaryRatings(np.array([0, 1]), np.array([4.0, 5.0]), None)
    >>> scoreboard_scores(matrix, np.ones(2), known).round(2).tolist()
    [1.0, 1.14]
    """
    star_errors = np.abs(matrix.stars[:, auxiliary.movies] - auxiliary.stars)
    similarity = np.exp(-star_errors / _RATING_SCALE)
    if auxiliary.days is not None:
        similarity = similarity + np.exp(-np.abs(matrix.days[:, auxiliary.movies] - auxiliary.days) / _DAY_SCALE)
    return np.asarray(np.nansum(similarity * weights[auxiliary.movies], axis=1))


def eccentricity(scores: np.ndarray) -> float:
    """Return by how many standard deviations the best score leads the second.

    >>> round(eccentricity(np.array([0.0, 0.1, 2.0, 0.1])), 1)
    2.3
    """
    if scores.size < 2:
        return 0.0  # there is no second score
    second, first = np.partition(scores, -2)[-2:]
    return float((first - second) / max(float(scores.std()), 1e-12))


def is_consistent(matrix: RatingMatrix, auxiliary: AuxiliaryRatings, min_matches: int, days: int | None) -> np.ndarray:
    """Return which users match at least `min_matches` of the known ratings, with days at most `days` apart."""
    same = matrix.stars[:, auxiliary.movies] == auxiliary.stars
    if auxiliary.days is not None and days is not None:
        same &= np.abs(matrix.days[:, auxiliary.movies] - auxiliary.days) <= days
    return np.asarray(same.sum(axis=1) >= min_matches)


def eccentricity_threshold(matrix: RatingMatrix, data: Ratings, rng: np.random.Generator) -> float:
    """Return the eccentricity above which a user is named, calibrated on released records that are left out."""
    weights, eccentricities = matrix.movie_weights, []
    for user in rng.permutation(users_with_enough_ratings(matrix, data))[:_CALIBRATION_SIZE]:
        auxiliary = draw_auxiliary_ratings(data, matrix, int(user), rng)
        eccentricities.append(eccentricity(np.delete(scoreboard_scores(matrix, weights, auxiliary), user)))
    return float(np.quantile(eccentricities, 1 - _FALSE_POSITIVE_RATE)) if eccentricities else math.inf


def identify_user(scores: np.ndarray, consistent: np.ndarray, threshold: float) -> int | None:
    """Return the only consistent user, else the top-scoring user if the eccentricity exceeds the threshold.

    >>> scores = np.array([0.0, 1.9, 2.0, 0.1])
    >>> identify_user(scores, np.array([False, True, False, False]), threshold=1.0)
    1
    >>> identify_user(scores, np.zeros(4, bool), threshold=1.0) is None
    True
    """
    if np.count_nonzero(consistent) == 1:
        return int(np.argmax(consistent))
    return int(np.argmax(scores)) if eccentricity(scores) > threshold else None


def users_with_enough_ratings(matrix: RatingMatrix, data: Ratings) -> np.ndarray:
    """Return the users with at least `known` ratings and at least `wrong` movies that they have not rated."""
    rated = np.count_nonzero(~np.isnan(matrix.stars), axis=1)
    return np.flatnonzero((rated >= data.known) & (matrix.stars.shape[1] - rated >= data.wrong))


def rating_matrix(data: Ratings, movies_of: Ratings | None = None) -> RatingMatrix:
    """Return ratings as a users × movies matrix; the columns are the movies of these or of other ratings.

    >>> ratings = Ratings(user=[8, 9, 9], movie=[5, 5, 7], stars=[4, 2.5, 3], day=[10, 11, 300])
    >>> fewer = Ratings(user=[9], movie=[7], stars=[3], day=[300])
    >>> rating_matrix(fewer, ratings).stars
    array([[nan,  3.]])
    """
    movie_ids = (movies_of or data).movie_ids
    user, movie = positions_of_ids(data.user, data.user_ids), positions_of_ids(data.movie, movie_ids)
    if movie is None:
        raise ValueError("the defence's Ratings have unknown movies: keep the ids, or leave movies out")
    stars = np.full((data.user_count, len(movie_ids)), np.nan)
    days = stars.copy()
    stars[user, movie], days[user, movie] = data.stars, data.day
    return RatingMatrix(stars, days)


def positions_of_ids(ids: np.ndarray, sorted_ids: np.ndarray) -> np.ndarray | None:
    """Return the positions of these ids among sorted ids, or None if one is missing.

    >>> positions_of_ids(np.array([7, 5]), np.array([5, 6, 7])).tolist()
    [2, 0]
    >>> positions_of_ids(np.array(["7"]), np.array([5, 6, 7])) is None
    True
    """
    if ids.dtype.kind != sorted_ids.dtype.kind:
        return None
    positions = np.minimum(np.searchsorted(sorted_ids, ids), len(sorted_ids) - 1)
    return positions if bool((sorted_ids[positions] == ids).all()) else None


def draw_auxiliary_ratings(
    data: Ratings, matrix: RatingMatrix, target: int, rng: np.random.Generator
) -> AuxiliaryRatings:
    """Draw the attacker's knowledge: true ratings, some replaced by ratings that the target never gave."""
    rated = np.flatnonzero(~np.isnan(matrix.stars[target]))
    movies = rng.choice(rated, data.known, replace=False)
    stars, days = matrix.stars[target, movies], matrix.days[target, movies]
    if data.wrong:
        unseen = np.flatnonzero(np.isnan(matrix.stars[target]))
        movies[: data.wrong] = rng.choice(unseen, data.wrong, replace=False)
        stars[: data.wrong] = rng.choice(data.star_values, data.wrong)
    if data.days is None:
        return AuxiliaryRatings(movies, stars, None)
    return AuxiliaryRatings(movies, stars, days + rng.integers(-data.days, data.days + 1, len(days)))
