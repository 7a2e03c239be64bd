"""Locations of a crowd and of lone people in a city: your own, simulated ones, or the check-ins of Gowalla's users."""

from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from discreet.attacks.attack import Source
from discreet.attacks.validation import Seed, float_matrix, random_generator, read_data_table, require, set_fields
from discreet.kernel.numbers import as_positive

_FILE = "gowalla_nyc_checkins.parquet"
_SOUTH, _WEST = 40.4774, -74.2589  # the public corner of the map
_KM_PER_DEGREE = 111.2  # of latitude


@dataclass(frozen=True)
class City:
    """Locations of a crowd and of lone people, in kilometres from 0 to `side` in both directions.

    >>> City(crowd=[[1, 1], [1, 2]], loners=[[9, 9]], side=10).isolation.round(2).tolist()
    [10.63]
    """

    crowd: Any
    loners: Any
    side: float

    def __post_init__(self) -> None:
        side, places = float(as_positive(self.side, "side")), {}
        for name in ("crowd", "loners"):
            places[name], _ = float_matrix(getattr(self, name), name)
            require(
                places[name].ndim == 2 and places[name].shape[1] == 2 and len(places[name]),
                f"{name} must be at least one location of two numbers",
            )
            require(
                ((places[name] >= 0) & (places[name] <= side)).all(),
                f"{name} must be from 0 to side = {side} in both directions",
            )
        set_fields(self, side=side, **places)

    @property
    def isolation(self) -> np.ndarray:
        """The distance of each lone person to the nearest other person, in kilometres."""
        others = np.concatenate([self.crowd, self.loners])
        distances = np.linalg.norm(self.loners[:, None] - others, axis=2)
        distances[np.arange(len(self.loners)), len(self.crowd) + np.arange(len(self.loners))] = np.inf
        return np.asarray(distances.min(axis=1))


def simulate_city(loners: int = 12, people: int = 1200, *, random_state: Seed = None) -> City:
    """Simulate a city of 40 km with six dense quarters, and lone people kilometres away from them.

    >>> city = simulate_city(random_state=0)
    >>> len(city.loners), bool(city.isolation.min() > 2)
    (12, True)
    """
    rng, side = random_generator(random_state), 40.0
    centres, widths = rng.uniform(8, 32, (6, 2)), rng.uniform(0.4, 1.5, 6)
    lone_places: list[np.ndarray] = []
    while len(lone_places) < loners:
        place = rng.uniform(0, side, 2)
        distances = np.linalg.norm(np.array([*centres, *lone_places]) - place, axis=1)
        if (distances > np.append(3 + 3 * widths, np.full(len(lone_places), 3))).all():
            lone_places.append(place)
    quarter = rng.integers(6, size=people)  # drawn last, so that the lone people do not depend on the crowd
    crowd = np.clip(centres[quarter] + widths[quarter, None] * rng.normal(size=(people, 2)), 0, side)
    return City(crowd, np.array(lone_places), side)


def read_city(folder: Path, loners: int = 12) -> City:
    """Read the last check-in of each Gowalla user in New York; the lone people are the farthest from all others."""
    from scipy.spatial import cKDTree  # noqa: PLC0415 - an extra

    table = read_data_table(folder, _FILE, ["user", "time", "lat", "lon"])
    table = table.sort_by([("user", "ascending"), ("time", "descending")])
    _, last = np.unique(table["user"].to_numpy(), return_index=True)
    north = (table["lat"].to_numpy()[last] - _SOUTH) * _KM_PER_DEGREE
    east = (table["lon"].to_numpy()[last] - _WEST) * _KM_PER_DEGREE * np.cos(np.radians(_SOUTH))
    places = np.column_stack([east, north]).clip(0)
    order = np.argsort(-cKDTree(places).query(places, k=2)[0][:, 1], kind="stable")
    return City(places[order[loners:]], places[order[:loners]], side=50.0)


CITY = Source(
    City,
    "City(crowd, loners, side)",
    lambda rng: simulate_city(random_state=deepcopy(rng)),  # the game is drawn with the same numbers as other cities'
    built_in="a simulated city with 300 people and up to 12 lone people",
    files=(_FILE,),
    read=read_city,
)
