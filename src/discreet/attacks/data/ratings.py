"""Movie ratings, of which the attacker knows a few for each target."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from discreet.attacks.validation import id_array, random_generator, read_data_table, real_array, set_fields
from discreet.kernel.numbers import as_integer

RATINGS_FILE = "movielens_latest_small_ratings.parquet"


@dataclass(frozen=True, eq=False)
class Ratings:
    """Movie ratings (user, movie, stars, day), and how much the attacker knows about a target.

    The attacker knows `known` ratings of the target, `wrong` of them false; days are known to within `days`, or not at
    all. Users and movies are integers or texts; user ids serve only to score a release and are not seen by the attack.

    >>> ratings = Ratings(user=[8, 8, 9], movie=[5, 7, 5], stars=[4, 2.5, 3], day=[10, 11, 300], known=2)
    >>> ratings.user_count, ratings.movie_ids.tolist()
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
        columns = {name: id_array(getattr(self, name), name) for name in ("user", "movie")}
        columns |= {name: real_array(getattr(self, name), name) for name in ("stars", "day")}
        sizes = {column.shape for column in columns.values()}
        if len(sizes) > 1 or columns["user"].ndim != 1 or not columns["user"].size:
            raise ValueError("user, movie, stars and day must be lists of equal length with at least one rating")
        set_fields(self, columns)
        if len(set(zip(columns["user"].tolist(), columns["movie"].tolist(), strict=True))) < columns["user"].size:
            raise ValueError("user and movie: a user has rated a movie twice. Keep one of these ratings.")
        if not 0 <= as_integer(self.wrong, "wrong", 0) < as_integer(self.known, "known", 1):
            raise ValueError(f"wrong must be less than known ({self.known}), not {self.wrong}")
        if self.days is not None:
            as_integer(self.days, "days", 0)

    @property
    def user_count(self) -> int:
        """The number of users."""
        return len(self.user_ids)

    @cached_property
    def user_ids(self) -> np.ndarray:
        """The distinct user ids, sorted."""
        return np.unique(self.user)

    @cached_property
    def movie_ids(self) -> np.ndarray:
        """The distinct movie ids, sorted."""
        return np.unique(self.movie)

    @cached_property
    def star_values(self) -> np.ndarray:
        """The distinct numbers of stars, sorted."""
        return np.unique(self.stars)


def simulate_ratings(
    people: int = 400, *, known: int = 3, wrong: int = 0, days: int | None = None, random_state: int | None = None
) -> Ratings:
    """Simulate ratings: everybody has rated some popular movies and some that hardly anybody has seen.

    >>> simulate_ratings(50, random_state=0).user_count
    50
    """
    rng = random_generator(random_state)
    films = 5 * as_integer(people, "people", 1)
    popularity = 1 / np.arange(10, films + 10)
    quality = rng.normal(3.3, 0.6, films)
    blocks = []
    for person in range(people):
        seen = rng.choice(films, min(films, 20 + int(rng.gamma(1, 60))), replace=False, p=popularity / popularity.sum())
        stars = np.clip(np.round(2 * (quality[seen] + rng.normal(0, 0.9, len(seen)))) / 2, 0.5, 5)
        first = rng.integers(0, 3000)
        blocks.append(np.stack([np.full(len(seen), person), seen, stars, first + rng.integers(0, 400, len(seen))]))
    user, movie, stars, day = np.concatenate(blocks, axis=1)
    return Ratings(user.astype(int), movie.astype(int), stars, day, known, wrong, days)


def read_ratings(folder: Path, *, known: int = 3, wrong: int = 0, days: int | None = None) -> Ratings:
    """Read the MovieLens ratings of 610 people."""
    table = read_data_table(folder, RATINGS_FILE)
    day = np.asarray(table["timestamp"]).astype("datetime64[D]").astype(np.int64)
    user, movie, stars = (np.asarray(table[name]) for name in ("userId", "movieId", "rating"))
    return Ratings(user, movie, stars, day, known, wrong, days)
