"""A few known ratings find a person's whole record: the scoreboard of Narayanan and Shmatikov (2008)."""

import math
from dataclasses import dataclass

import numpy as np

from discreet.attacks.tables.ratings import Ratings
from discreet.attacks.tables.reading import places

_RATING_SCALE, _DAY_SCALE = 1.5, 30.0  # how fast a rating and a day that differ count less, as in the paper
_FALSE = 0.05  # of those who are not in the data, the share that an attacker is ready to name
_TRIED = 200  # records on which the attacker tries how far strangers lead


@dataclass(frozen=True, eq=False)
class Record:
    """What an outsider sees: the stars and days of every user (rows) for every movie, NaN where there is no rating."""

    stars: np.ndarray
    days: np.ndarray

    @property
    def weights(self) -> np.ndarray:
        """How much a movie tells: the less, the more people have rated it."""
        raters = np.count_nonzero(~np.isnan(self.stars), axis=0)
        weights: np.ndarray = 1 / np.log(np.maximum(raters, 2))
        return weights


@dataclass(frozen=True, eq=False)
class Knowledge:
    """What the attacker knows about one target: movies, their stars, and days or None."""

    movies: np.ndarray
    stars: np.ndarray
    days: np.ndarray | None


def scoreboard(record: Record, weights: np.ndarray, known: Knowledge) -> np.ndarray:
    """Score every user by how well what is known fits: rare movies, near stars and near days count more.

    >>> record = Record(np.array([[4.0, np.nan], [1.0, 5.0]]), np.array([[1.0, np.nan], [1.0, 2.0]]))
    >>> scoreboard(record, np.ones(2), Knowledge(np.array([0, 1]), np.array([4.0, 5.0]), None)).round(2).tolist()
    [1.0, 1.14]
    """
    off = np.abs(record.stars[:, known.movies] - known.stars)
    fit = np.exp(-off / _RATING_SCALE)
    if known.days is not None:
        fit = fit + np.exp(-np.abs(record.days[:, known.movies] - known.days) / _DAY_SCALE)
    scores: np.ndarray = np.nansum(fit * weights[known.movies], axis=1)
    return scores


def lead(scores: np.ndarray) -> float:
    """Return by how many standard deviations the best score leads the second.

    >>> round(lead(np.array([0.0, 0.1, 2.0, 0.1])), 1)
    2.3
    """
    if scores.size < 2:
        return 0.0  # there is nobody to lead
    second, first = np.partition(scores, -2)[-2:]
    return float((first - second) / max(float(scores.std()), 1e-12))


def fitting(record: Record, known: Knowledge, least: int, days: int | None) -> np.ndarray:
    """Return who has given at least so many of the known ratings, with days that differ by no more than `days`."""
    same = record.stars[:, known.movies] == known.stars
    if known.days is not None and days is not None:
        same &= np.abs(record.days[:, known.movies] - known.days) <= days
    return np.asarray(same.sum(axis=1) >= least)


def enough_lead(record: Record, data: Ratings, rng: np.random.Generator) -> float:
    """Return the lead from which on somebody is named, tried out with released records that are left out."""
    weights, leads = record.weights, []
    for each in rng.permutation(with_enough(record, data))[:_TRIED]:
        known = knowledge_of(data, record, int(each), rng)
        leads.append(lead(np.delete(scoreboard(record, weights, known), each)))
    return float(np.quantile(leads, 1 - _FALSE)) if leads else math.inf


def name(scores: np.ndarray, fits: np.ndarray, enough: float) -> int | None:
    """Return who is named: the only one whom all fits, or else the best by the scoreboard if the lead is enough.

    >>> scores = np.array([0.0, 1.9, 2.0, 0.1])
    >>> name(scores, np.array([False, True, False, False]), enough=1.0), name(scores, np.zeros(4, bool), enough=1.0)
    (1, None)
    """
    if np.count_nonzero(fits) == 1:
        return int(np.argmax(fits))
    return int(np.argmax(scores)) if lead(scores) > enough else None


def with_enough(record: Record, data: Ratings) -> np.ndarray:
    """Return which users have so many ratings as an attacker knows, and so many movies left as are known wrongly."""
    rated = np.count_nonzero(~np.isnan(record.stars), axis=1)
    return np.flatnonzero((rated >= data.known) & (record.stars.shape[1] - rated >= data.wrong))


def record_of(data: Ratings, like: Ratings | None = None) -> Record:
    """Return ratings as a table of their users by the movies of these or of other ratings.

    >>> ratings = Ratings(user=[8, 9, 9], movie=[5, 5, 7], stars=[4, 2.5, 3], day=[10, 11, 300])
    >>> fewer = Ratings(user=[9], movie=[7], stars=[3], day=[300])
    >>> record_of(fewer, ratings).stars
    array([[nan,  3.]])
    """
    user, movie = places(data.user, data.user_ids), places(data.movie, (like or data).movie_ids)
    if movie is None:
        raise ValueError("the defence's Ratings have movies that it was not given: keep the ids, or leave movies out")
    stars = np.full((data.users, len((like or data).movie_ids)), np.nan)
    days = stars.copy()
    stars[user, movie], days[user, movie] = data.stars, data.day
    return Record(stars, days)


def knowledge_of(data: Ratings, record: Record, target: int, rng: np.random.Generator) -> Knowledge:
    """Draw what the attacker knows: true ratings, some of them replaced by others that the target never gave."""
    rated = np.flatnonzero(~np.isnan(record.stars[target]))
    movies = rng.choice(rated, data.known, replace=False)
    stars, days = record.stars[target, movies], record.days[target, movies]
    if data.wrong:
        unseen = np.flatnonzero(np.isnan(record.stars[target]))
        movies[: data.wrong] = rng.choice(unseen, data.wrong, replace=False)
        stars[: data.wrong] = rng.choice(data.scale, data.wrong)
    if data.days is None:
        return Knowledge(movies, stars, None)
    return Knowledge(movies, stars, days + rng.integers(-data.days, data.days + 1, len(days)))
