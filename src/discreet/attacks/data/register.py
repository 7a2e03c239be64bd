"""Patients without names, and a public register that lists most of them: simulated, or synthetic ones from files."""

from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from discreet.attacks.attack import Source
from discreet.attacks.data.patients import (
    CONDITIONS,
    PATIENTS,
    Patients,
    draw_birth_dates,
    draw_conditions,
    zip_codes,
)
from discreet.attacks.validation import (
    Seed,
    arrow_table,
    id_array,
    integer_array,
    random_generator,
    read_data_table,
    real_array,
    require,
    require_columns,
    require_type,
    set_fields,
)
from discreet.kernel.numbers import as_integer

_FILES = ("linkage_synthetic_demographic.parquet", "linkage_synthetic_medical.parquet")
_PATIENT_COUNT = 4000
_ZIP_COUNT = 400
_UNREGISTERED_SHARE = 0.1  # the share of patients who are not in the register
_OTHERS_PER_PATIENT = 0.5  # people in the register who are not patients, per patient
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
        require(
            len(sizes) <= 1 and columns["user"].ndim == 1 and columns["user"].size,
            "user, movie, stars and day must be lists of equal length with at least one rating",
        )
        set_fields(self, **columns)
        require(
            len(set(zip(columns["user"].tolist(), columns["movie"].tolist(), strict=True))) >= columns["user"].size,
            "user and movie: a user has rated a movie twice. Keep one of these ratings.",
        )
        require(
            0 <= as_integer(self.wrong, "wrong", 0) < as_integer(self.known, "known", 1),
            f"wrong must be less than known ({self.known}), not {self.wrong}",
        )
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


@dataclass(frozen=True, eq=False)
class Register:
    """Patients, and a public list of people (`people`) with the same quasi-identifiers.

    `who` is the row in `people` of each patient, or -1: the true links, used only for scoring.

    >>> table = pa.table({"age": [30, 41], "condition": ["flu", "no"]})
    >>> town = pa.table({"name": ["Ana", "Bob", "Eva"], "age": [41, 30, 30]})
    >>> Register(Patients(table, "age", "condition"), town, who=[1, 0]).who
    array([1, 0])
    """

    patients: Patients
    people: Any
    who: Any

    def __post_init__(self) -> None:
        require_type(self.patients, Patients, PATIENTS.written, "patients")
        people = arrow_table(self.people, "people")
        require_columns(people, self.patients.quasi, "people, which needs all columns of quasi")
        who = integer_array(self.who, "who")
        require(
            who.shape == (self.patients.table.num_rows,) and who.min() >= -1 and who.max() < people.num_rows,
            "who must have one entry per patient: the row number in people, or -1 for patients who are not listed",
        )
        set_fields(self, people=people.select(self.patients.quasi), who=who)


def simulate_register(patients: int = 135_000, random_state: Seed = None) -> Register:
    """Simulate patients with zip code, birth date and sex, and a voter roll that lists most of them.

    >>> register = simulate_register(1000, random_state=0)
    >>> register.people.num_rows, register.patients.quasi
    (1400, ['zip', 'born', 'sex'])
    """
    rng = random_generator(random_state)
    patients = as_integer(patients, "patients", 10)
    unregistered = round(patients * _UNREGISTERED_SHARE)
    count = patients + round(patients * _OTHERS_PER_PATIENT)
    zips, ages = rng.integers(_ZIP_COUNT, size=count), rng.integers(18, 91, size=count)
    everybody = pa.table({
        "zip": zip_codes(zips),
        "born": draw_birth_dates(ages, rng),
        "sex": np.array(["F", "M"])[rng.integers(2, size=count)],
    })  # fmt: skip
    condition = np.array(CONDITIONS)[draw_conditions(zips[:patients], ages[:patients], rng)]
    table = everybody.slice(0, patients).append_column("condition", pa.array(condition))
    order = rng.permutation(np.arange(unregistered, count))  # the order of the roll must not reveal the links
    who = np.full(count, -1)
    who[order] = np.arange(len(order))
    return Register(Patients(table, ["zip", "born", "sex"], "condition"), everybody.take(order), who[:patients])


def read_register(folder: Path) -> Register:
    """Read 30,000 synthetic patients and the list of the same people."""
    people = read_data_table(folder, _FILES[0], ["ID", "Gender", "Age", "Zip"])
    medical = read_data_table(folder, _FILES[1], ["ID", "Diagnosis"])
    numbered = people.append_column("place", pa.array(np.arange(people.num_rows)))
    patients = medical.join(numbered, "ID", join_type="inner")  # the hospital also knows the exact age and zip code
    who = np.asarray(patients["place"])
    return Register(Patients(patients, ["Gender", "Age", "Zip"], "Diagnosis"), people, who)


REGISTER = Source(
    (Register, Ratings),
    "Register(patients, people, who) or Ratings(user, movie, ...)",
    lambda rng: simulate_register(_PATIENT_COUNT, deepcopy(rng)),  # the game's draws do not depend on the data
    built_in=f"{_PATIENT_COUNT:,} simulated patients with zip code, birth date and sex, and a voter roll",
    files=_FILES,
    read=read_register,
)
