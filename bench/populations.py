"""Populations whose units contribute very different numbers of rows: simulated, and from the public data sets."""

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from bench import shop

LARGEST_VALUE = 1000
_SPECIALTIES, _LONGEST_STAY, _SHOP_ROWS = 73, 14, 1_000_000


@dataclass(frozen=True)
class Population:
    """Rows of units in cells, each with a value from 0 to `largest`."""

    name: str
    unit: np.ndarray
    cell: np.ndarray
    cells: int
    value: np.ndarray
    largest: int = LARGEST_VALUE

    def truth(self, statistic):
        return np.bincount(self.cell, self.value if statistic == "SUM" else None, self.cells)

    @cached_property
    def contributions(self):
        """The unit (from 0), the cell, the rows and the sum of values of each pair of unit and cell that occurs."""
        _, unit = np.unique(self.unit, return_inverse=True)
        pairs, place, rows = np.unique(unit * self.cells + self.cell, return_inverse=True, return_counts=True)
        return pairs // self.cells, pairs % self.cells, rows, np.bincount(place, self.value)


def skewed_values(rng, count):
    """Return values of which most are near 20 and few near the largest."""
    return np.minimum(np.exp(rng.normal(3, 0.8, count)), LARGEST_VALUE).astype(np.int64)


def declared_sets():
    """Yield populations with the bounds (groups, rows) that somebody would declare for them."""
    rng = np.random.default_rng(71_518)
    stays = np.where(rng.random(71_518) < 0.77, 1, 1 + rng.geometric(0.55, 71_518))
    unit = np.repeat(np.arange(len(stays)), stays)
    value = np.minimum(rng.geometric(0.23, len(unit)), _LONGEST_STAY)
    again = rng.random(len(unit)) < np.where(stays[unit] > 2, 0.25, 0.08)
    yield Population("hospital stays by readmission", unit, again.astype(np.int64), 2, value, _LONGEST_STAY), (2, 3)
    usual = np.minimum(rng.geometric(0.08, len(stays)) - 1, _SPECIALTIES - 1)
    other = rng.integers(0, _SPECIALTIES, len(unit))
    ward = np.where(rng.random(len(unit)) < 0.6, usual[unit], other)
    yield Population("hospital stays by specialty", unit, ward, _SPECIALTIES, value, _LONGEST_STAY), (2, 3)
    if folder := os.environ.get("DISCREET_DATA"):
        table = pq.read_table(Path(folder) / "gowalla_world_1k_users_checkins.parquet")
        lat, lon = (table[name].to_numpy() for name in ("lat", "lon"))
        cell = (np.floor((lat + 90) / 30) * 12 + np.floor((lon + 180) / 30)).astype(np.int64) % 72
        user = table["user"].to_numpy()
        yield Population("check-ins by 30° cell, 1,000 people", user, cell, 72, skewed_values(rng, len(user))), (2, 10)
    sales = pq.read_table(shop.make(Path(".bench"), _SHOP_ROWS, _SHOP_ROWS // 20) / "sales.parquet")
    user, amount = sales["user"].to_numpy(), sales["amount"].to_numpy().round().astype(np.int64)
    for name, cells, bounds in (("category", shop.CATEGORIES, (20, 10)), ("city", shop.CITIES, (5, 10))):
        yield Population(f"sales by {name}", user, sales[name].to_numpy(), cells, amount, 500), bounds


def heavy_tailed_sets():
    """Yield simulated populations of 50,000 to 500,000 units, and the check-ins in New York."""
    rng = np.random.default_rng(20_261_118)
    sizes = {
        "log-normal, sigma 1.5, 50,000": np.ceil(np.exp(rng.normal(1, 1.5, 50_000))),
        "Pareto, alpha 1.5, 100,000": np.floor(rng.random(100_000) ** (-1 / 1.5)),
        "Pareto, alpha 2.5, 500,000": np.floor(rng.random(500_000) ** (-1 / 2.5)),
    }
    for name, size in sizes.items():
        unit = np.repeat(np.arange(len(size)), size.astype(np.int64))
        value = skewed_values(rng, len(unit))
        yield Population(f"{name}, total", unit, np.zeros_like(unit), 1, value)
        yield Population(f"{name}, 20 even cells", unit, rng.integers(0, 20, len(unit)), 20, value)
        home = np.searchsorted(np.cumsum(1 / np.arange(1, 101)), rng.random(len(size)) * 5.187)
        stays = rng.random(len(unit)) < 0.8
        cell = np.where(stays, home[unit], rng.integers(0, 100, len(unit)))
        yield Population(f"{name}, 100 cells, 4 of 5 at home", unit, cell, 100, value)
    if folder := os.environ.get("DISCREET_DATA"):
        table = pq.read_table(Path(folder) / "gowalla_nyc_checkins.parquet")
        user, lon = table["user"].to_numpy(), table["lon"].to_numpy()
        seconds = table["time"].to_numpy().astype("datetime64[s]").astype(np.int64)
        value = skewed_values(rng, len(user))
        yield Population("check-ins in New York, total", user, np.zeros_like(seconds), 1, value)
        yield Population("check-ins in New York by weekday", user, (seconds // 86_400 + 3) % 7, 7, value)
        yield Population("check-ins in New York by hour", user, seconds // 3600 % 24, 24, value)
        west = np.searchsorted(np.quantile(lon, np.arange(1, 10) / 10), lon)
        yield Population("check-ins in New York by area", user, west, 10, value)


def small_sets():
    """Yield the film ratings of 610 people."""
    if folder := os.environ.get("DISCREET_DATA"):
        ratings = pq.read_table(Path(folder) / "movielens_latest_small_ratings.parquet")
        user, stars = ratings["userId"].to_numpy(), (2 * ratings["rating"].to_numpy()).astype(np.int64)
        yield Population("film ratings by stars, 610 people", user, stars - 1, 10, stars, 10)
        yield Population("film ratings, total", user, np.zeros_like(stars), 1, stars, 10)
