"""Ratings of movies, real and made up, and how much an attacker knows of them."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from discreet.attacks.checking import generator
from discreet.attacks.tables.folders import real_table
from discreet.attacks.tables.reading import finite_numbers, ids
from discreet.kernel.exact import whole

FILE = "movielens_latest_small_ratings.parquet"


@dataclass(frozen=True, eq=False)
class Ratings:
    """Ratings of movies: by whom, of what, how many stars, on which day; and how much the attacker knows of a target.

    The attacker knows `known` of the target's ratings. Of these, `wrong` are made up. Days are known up to `days`
    more or less, or not at all. Users and movies are whole numbers or texts, by which a release that lacks some of them
    is compared with the owner's ratings; the attack itself never looks at a user's.

    >>> ratings = Ratings(user=[8, 8, 9], movie=[5, 7, 5], stars=[4, 2.5, 3], day=[10, 11, 300], known=2)
    >>> ratings.users, ratings.movie_ids.tolist()
    (2, [5, 7])
    """

    user: Any
    movie: Any
    stars: Any
    day: Any
    known: int = 3
    wrong: int = 0
    days: int | None = None

    def __post_init__(self) -> None:
        columns = {name: ids(getattr(self, name), name) for name in ("user", "movie")}
        columns |= {name: finite_numbers(getattr(self, name), name) for name in ("stars", "day")}
        sizes = {column.shape for column in columns.values()}
        if len(sizes) > 1 or columns["user"].ndim != 1 or not columns["user"].size:
            raise ValueError("user, movie, stars and day must be lists of one length, with at least one rating")
        for name, column in columns.items():
            object.__setattr__(self, name, column)
        if len(set(zip(columns["user"].tolist(), columns["movie"].tolist(), strict=True))) < columns["user"].size:
            raise ValueError("user and movie: somebody has rated a movie twice. Keep one of these ratings.")
        if not 0 <= whole(self.wrong, "wrong", 0) < whole(self.known, "known", 1):
            raise ValueError(f"wrong must be less than known, {self.known}, not {self.wrong}")
        if self.days is not None:
            whole(self.days, "days", 0)

    @property
    def users(self) -> int:
        """How many people have rated."""
        return len(self.user_ids)

    @cached_property
    def user_ids(self) -> np.ndarray:
        """Who has rated, sorted."""
        return np.unique(self.user)

    @cached_property
    def movie_ids(self) -> np.ndarray:
        """What was rated, sorted."""
        return np.unique(self.movie)

    @cached_property
    def scale(self) -> np.ndarray:
        """The different stars that were given, sorted."""
        return np.unique(self.stars)


def made_up_ratings(
    people: int = 400, *, known: int = 3, wrong: int = 0, days: int | None = None, random_state: int | None = None
) -> Ratings:
    """Make up ratings: everybody has seen some of the films that all see, and some that hardly anybody does.

    >>> made_up_ratings(50, random_state=0).users
    50
    """
    rng = generator(random_state)
    films = 5 * whole(people, "people", 1)
    popular = 1 / np.arange(10, films + 10)
    quality = rng.normal(3.3, 0.6, films)
    columns: list[list[np.ndarray]] = [[], [], [], []]
    for person in range(people):
        seen = rng.choice(films, min(films, 20 + int(rng.gamma(1, 60))), replace=False, p=popular / popular.sum())
        stars = np.clip(np.round(2 * (quality[seen] + rng.normal(0, 0.9, len(seen)))) / 2, 0.5, 5)
        first = rng.integers(0, 3000)
        made = (np.full(len(seen), person), seen, stars, first + rng.integers(0, 400, len(seen)))
        for column, each in zip(columns, made, strict=True):
            column.append(each)
    user, movie, stars, day = map(np.concatenate, columns)
    return Ratings(user, movie, stars, day, known, wrong, days)


def read_ratings(folder: Path, *, known: int = 3, wrong: int = 0, days: int | None = None) -> Ratings:
    """Read the ratings of 610 people."""
    table = real_table(folder, FILE)
    day = np.asarray(table["timestamp"]).astype("datetime64[D]").astype(np.int64)
    user, movie, stars = (np.asarray(table[name]) for name in ("userId", "movieId", "rating"))
    return Ratings(user, movie, stars, day, known, wrong, days)
