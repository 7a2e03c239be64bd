"""Visits of people to sites, as a tracking cookie or a search log records them; simulated ones and check-ins."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from discreet.attacks.attack import Source
from discreet.attacks.validation import id_array, integer_array, read_data_table, require, set_fields

FILES = ("gowalla_nyc_checkins.parquet",)
_PEOPLE, _SITES, _DAYS = 400, 150, 14
_FAVOURITES, _DAILY_RATE, _OTHER_VISITS = 8, 0.5, 1.0
_MIN_WEEKS, _REAL_PEOPLE = 8, 500
_NANOSECONDS_PER_WEEK = 7 * 24 * 3600 * 10**9


@dataclass(frozen=True, eq=False)
class Visits:
    """Who visited which site on which day; `day` may be any period, such as the number of a week.

    >>> Visits(person=["ana", "ana", "bob"], day=[1, 2, 1], site=["news", "chess", "news"]).day
    array([1, 2, 1])
    """

    person: Any
    day: Any
    site: Any

    def __post_init__(self) -> None:
        columns = {"person": id_array(self.person, "person"), "site": id_array(self.site, "site")}
        columns["day"] = integer_array(self.day, "day")
        require(
            len({len(each) for each in columns.values()}) <= 1 and len(columns["day"]),
            "person, day and site must have the same length, at least one visit",
        )
        set_fields(self, **columns)


def simulate_visits(rng: np.random.Generator, people: int = _PEOPLE) -> Visits:
    """Simulate two weeks of people who visit their favourite sites on every other day, and other sites at times.

    >>> visits = simulate_visits(np.random.default_rng(0), people=50)
    >>> len(np.unique(visits.person)), int(visits.day.max())
    (50, 13)
    """
    popularity = 1 / np.arange(1, _SITES + 1)
    popularity /= popularity.sum()
    favourites = np.array([rng.choice(_SITES, _FAVOURITES, replace=False, p=popularity) for _ in range(people)])
    who, day, rank = np.nonzero(rng.random((people, _DAYS, _FAVOURITES)) < _DAILY_RATE)
    others = rng.poisson(_OTHER_VISITS, (people, _DAYS))
    more_who, more_day = (np.repeat(each, others.ravel()) for each in np.indices(others.shape).reshape(2, -1))
    return Visits(
        np.concatenate([who, more_who]),
        np.concatenate([day, more_day]),
        np.concatenate([favourites[who, rank], rng.choice(_SITES, more_who.size, p=popularity)]),
    )


def read_visits(folder: Path) -> Visits:
    """Read check-ins by week, of people with check-ins in several weeks."""
    table = read_data_table(folder, FILES[0], ["user", "time", "location"])
    user, place = (table[name].to_numpy() for name in ("user", "location"))
    week = table["time"].to_numpy().astype("datetime64[ns]").astype(np.int64) // _NANOSECONDS_PER_WEEK
    people, codes = np.unique(user, return_inverse=True)
    weeks = np.bincount(np.unique(np.stack([codes, week]), axis=1)[0], minlength=people.size)
    chosen = np.flatnonzero(weeks >= _MIN_WEEKS)[:_REAL_PEOPLE]
    is_chosen = np.isin(codes, chosen)
    return Visits(user[is_chosen], week[is_chosen], place[is_chosen])


VISITS = Source(
    Visits,
    "Visits(person, day, site)",
    simulate_visits,
    built_in=f"two weeks of {_PEOPLE} simulated people who visit {_SITES} sites",
    files=FILES,
    read=read_visits,
)
