"""Ratings of movies, real and made up, and how much an attacker knows of them."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from discreet.attacks.tables.folders import real_table
from discreet.kernel.exact import whole

FILE = "movielens_latest_small_ratings.parquet"
STARS = np.arange(1, 11) / 2


@dataclass(frozen=True, eq=False)
class Ratings:
    """Ratings of movies: by whom, of what, how many stars, on which day; and how much the attacker knows of a target.

    The attacker knows `known` of the target's ratings. Of these, `wrong` are made up. Days are known up to `days`
    more or less, or not at all.

    >>> Ratings(user=[0, 0, 1], movie=[5, 7, 5], stars=[4, 2.5, 3], day=[10, 11, 300], known=2).users
    2
    """

    user: Any
    movie: Any
    stars: Any
    day: Any
    known: int = 3
    wrong: int = 0
    days: int | None = None

    def __post_init__(self) -> None:
        columns = {name: np.asarray(getattr(self, name)) for name in ("user", "movie", "stars", "day")}
        sizes = {column.shape for column in columns.values()}
        if len(sizes) > 1 or columns["user"].ndim != 1 or not columns["user"].size:
            raise ValueError("user, movie, stars and day must be lists of one length, with at least one rating")
        for name in ("user", "movie"):  # numbers 0, 1, ... in the order of the ids
            columns[name] = np.unique(columns[name], return_inverse=True)[1]
        for name, column in columns.items():
            object.__setattr__(self, name, column)
        if not 0 <= whole(self.wrong, "wrong", 0) < whole(self.known, "known", 1):
            raise ValueError(f"wrong must be less than known, {self.known}, not {self.wrong}")
        if self.days is not None:
            whole(self.days, "days", 0)

    @property
    def users(self) -> int:
        """How many people have rated."""
        return int(self.user.max()) + 1


def made_up_ratings(
    people: int = 400, *, known: int = 3, wrong: int = 0, days: int | None = None, random_state: int | None = None
) -> Ratings:
    """Make up ratings: everybody has seen some of the films that all see, and some that hardly anybody does.

    >>> made_up_ratings(50, random_state=0).users
    50
    """
    rng = np.random.default_rng(random_state)
    films = 5 * people
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
