"""Where people are, in kilometres: a crowd, and a few who are far from everybody else. Made up, or of New York."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from discreet.attacks.checking import file_in, generator
from discreet.attacks.models.inputs import matrix
from discreet.kernel.exact import positive

CHECKINS = "gowalla_nyc_checkins.parquet"
_SOUTH, _WEST = 40.4774, -74.2589  # the corner of the file's map, which is public
_DEGREE = 111.2  # kilometres of one degree of latitude


@dataclass(frozen=True)
class City:
    """Places of a crowd and of lone people: two numbers each, kilometres from 0 to `side` in both directions.

    >>> City(crowd=[[1, 1], [1, 2]], loners=[[9, 9]], side=10).apart.round(2).tolist()
    [10.63]
    """

    crowd: Any
    loners: Any
    side: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "side", float(positive(self.side, "side")))
        for name in ("crowd", "loners"):
            places, _ = matrix(getattr(self, name), name)
            if places.ndim != 2 or places.shape[1] != 2 or not len(places):
                raise ValueError(f"{name} must be places of two numbers each, at least one place")
            if not ((places >= 0) & (places <= self.side)).all():
                raise ValueError(f"{name} must lie from 0 to side = {self.side} in both directions")
            object.__setattr__(self, name, places)

    @property
    def apart(self) -> np.ndarray:
        """How far each lone person is from the nearest other person, in kilometres."""
        others = np.concatenate([self.crowd, self.loners])
        far = np.linalg.norm(self.loners[:, None] - others, axis=2)
        far[np.arange(len(self.loners)), len(self.crowd) + np.arange(len(self.loners))] = np.inf
        return np.asarray(far.min(axis=1))


def city(loners: int = 12, people: int = 1200, *, random_state: int | None = None) -> City:
    """Make up a city of 40 km: six quarters full of people, and lone people kilometres away from all of them.

    >>> made = city(random_state=0)
    >>> len(made.loners), bool(made.apart.min() > 2)
    (12, True)
    """
    rng, side = generator(random_state), 40.0
    centres, widths = rng.uniform(8, 32, (6, 2)), rng.uniform(0.4, 1.5, 6)
    found: list[np.ndarray] = []
    while len(found) < loners:
        place = rng.uniform(0, side, 2)
        far = np.linalg.norm(np.array([*centres, *found]) - place, axis=1)
        if (far > np.append(3 + 3 * widths, np.full(len(found), 3))).all():
            found.append(place)
    quarter = rng.integers(6, size=people)  # drawn last, so that the lone people are the same for any crowd
    crowd = np.clip(centres[quarter] + widths[quarter, None] * rng.normal(size=(people, 2)), 0, side)
    return City(crowd, np.array(found), side)


def load(folder: Path, loners: int = 12) -> City:
    """Read where each user of Gowalla in New York was last; the lone people are the farthest from all others."""
    import pyarrow.parquet as pq  # noqa: PLC0415 - half of the time that importing an attack takes

    table = pq.read_table(file_in(folder, CHECKINS), columns=["user", "time", "lat", "lon"]).sort_by(
        [("user", "ascending"), ("time", "descending")]
    )
    _, last = np.unique(table["user"].to_numpy(), return_index=True)
    north = (table["lat"].to_numpy()[last] - _SOUTH) * _DEGREE
    east = (table["lon"].to_numpy()[last] - _WEST) * _DEGREE * np.cos(np.radians(_SOUTH))
    places = np.column_stack([east, north]).clip(0)
    order = np.argsort(-_alone(places), kind="stable")
    return City(places[order[loners:]], places[order[:loners]], side=50.0)


def _alone(places: np.ndarray) -> np.ndarray:
    from scipy.spatial import cKDTree  # noqa: PLC0415 - an extra

    return np.asarray(cKDTree(places).query(places, k=2)[0][:, 1])
