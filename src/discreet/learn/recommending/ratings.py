"""Ratings as rows: of one rating each, (item, rating), or of one person each, with a column for every item that counts.

Items are known by their places in a public list; one that is not on it has the place -1 and counts nowhere.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from discreet.kernel.summing import Rows
from discreet.learn.inputs import QueryRows
from discreet.learn.recommending.item_effects import PERSON, RATING
from discreet.learn.rows import Batch
from discreet.learn.session import Public

_INDEX = "__index_level_"  # what pandas adds when rows have labels


def columns_of(table: Any, count: int) -> list[np.ndarray]:
    """Return the columns of a frame, an Arrow table or an array."""
    if hasattr(table, "__arrow_c_stream__"):
        read = pa.RecordBatchReader.from_stream(table).read_all()
        named = [name for name in read.column_names if not name.startswith(_INDEX)]
        columns = [_values(read.column(name)) for name in named]
    else:
        array = np.asarray(table)
        columns = list(array.T) if array.ndim == 2 else []
    if len(columns) != count:
        raise ValueError(f"ratings must have {count} columns, not {len(columns)}")
    return columns


def _values(column: Any) -> np.ndarray:
    """Return a column's values; whole numbers stay whole if some are missing: as floats, long ones would merge."""
    if column.null_count and pa.types.is_integer(column.type):
        return np.array([np.nan if value is None else value for value in column.to_pylist()], object)
    return np.asarray(column.to_numpy())


def codes_of(items: Any, found: np.ndarray) -> np.ndarray:
    """Return the place of each found item in the public list, or -1.

    >>> codes_of(["heat", "alien"], np.array(["alien", "brazil", "heat"])).tolist()
    [1, -1, 0]
    """
    listed = np.asarray(items)
    order = np.argsort(listed, kind="stable")
    places = np.searchsorted(listed, found, sorter=order)
    nearest = order[np.minimum(places, len(order) - 1)]
    return np.where(listed[nearest] == found, nearest, -1)


def own_of(items: Any, own: Any) -> tuple[np.ndarray, np.ndarray]:
    """Read a person's own ratings, {item: rating} or pairs, as places and ratings; items not on the list are left out.

    >>> own_of(["heat", "alien"], {"alien": 4, "brazil": 5})
    (array([1]), array([4.]))
    """
    pairs = list(own.items()) if isinstance(own, Mapping) else [] if own is None else [tuple(pair) for pair in own]
    if not pairs:
        return np.zeros(0, np.int64), np.zeros(0)
    codes = codes_of(items, np.array([item for item, _ in pairs]))
    given = np.array([rating for _, rating in pairs], np.float64)
    kept = (codes >= 0) & np.isfinite(given)
    return codes[kept], given[kept]


class Layout:
    """Rows that are laid out anew for the next sum: by ratings, then by people, once it is known which items matter."""

    def __init__(self, rows: Rows) -> None:
        self.now = rows

    @property
    def low(self) -> np.ndarray:
        """The declared lower ends."""
        return self.now.low

    @property
    def high(self) -> np.ndarray:
        """The declared upper ends."""
        return self.now.high

    @property
    def grouped(self) -> bool:
        """Whether a unit may have several rows."""
        return self.now.grouped

    def batches(self, size: int) -> Iterator[Batch]:
        """Give the rows of the present layout."""
        return self.now.batches(size)


@dataclass(frozen=True)
class Queried:
    """The rows (item, rating) of a curator's query, with items as places in the list."""

    rows: QueryRows
    low: np.ndarray
    high: np.ndarray
    items: np.ndarray
    grouped: bool = True

    def batches(self, size: int) -> Iterator[Batch]:
        """Give the rows, moved into their ranges."""
        for numbers, places in self.rows.batches(size):
            coded = np.column_stack([codes_of(self.items, numbers[:, 0]), numbers[:, 1]])
            yield np.clip(coded, self.low, self.high), places


class People:
    """One row for each unit, with its ratings of some items, and NaN where it has none: of several, the last."""

    grouped = False

    def __init__(self, ratings: Rows, items: np.ndarray) -> None:
        self._ratings, self._column = ratings, np.full(int(ratings.high[0]) + 2, -1)
        self._column[items] = np.arange(len(items))  # the place -1 is the last: no column
        self.low, self.high = (np.full(len(items), float(end[1])) for end in (ratings.low, ratings.high))

    def batches(self, size: int) -> Iterator[Batch]:
        """Give people; all ratings of one are collected first, wherever they were cut."""
        rest: tuple[np.ndarray, np.ndarray] = np.zeros((0, 2)), np.zeros(0, np.int64)
        for numbers, found in self._ratings.batches(size):
            places = found if found is not None else np.arange(len(numbers)) + (rest[1].max(initial=-1) + 1)
            rows, units = np.concatenate([rest[0], numbers]), np.concatenate([rest[1], places])
            last = int(np.searchsorted(units, units[-1])) if len(units) else 0
            yield self._people(rows[:last], units[:last]), None
            rest = rows[last:], units[last:]
        yield self._people(*rest), None

    def _people(self, rows: np.ndarray, units: np.ndarray) -> np.ndarray:
        people = np.unique(units, return_inverse=True)[1]
        out = np.full((int(people.max(initial=-1)) + 1, len(self.low)), np.nan)
        columns = self._column[rows[:, 0].astype(np.int64)]
        kept = columns >= 0
        out[people[kept], columns[kept]] = rows[kept, 1]
        return out


def halves(rows: np.ndarray, public: Public) -> np.ndarray:
    """Divide a rating's weight of 1 between the two ends of the range."""
    low, third = public
    share = (rows[:, 1] - low) / (3 * third)
    out = np.empty((2, len(rows)))
    out[0], out[1] = 1 - share, share
    return out.T


def rated(rows: np.ndarray, public: Public) -> tuple[np.ndarray, np.ndarray]:
    """Give a rating's item a count, and how far it is from the mean, in thirds of the range and at most one."""
    low, third, level, count, weight = public
    item = rows[:, 0].astype(np.int64)
    places, values = np.empty((2, len(rows)), np.int64), np.empty((2, len(rows)))
    places[0], places[1] = item, np.where(item < 0, -1, item + count)
    values[0], values[1] = weight, np.clip((rows[:, 1] - low) / third - level, -1, 1)
    return places.T, values.T


def pairs(rows: np.ndarray, public: Public) -> np.ndarray:
    """Give every pair of a person's items the product of what is left over there, and a count.

    Left over is what neither the item's mean nor the person's own explains; it is taken to be at most a third.
    """
    low, third, base, weight = public
    size = len(base)
    rest, held = np.empty((size, len(rows))), np.empty((size, len(rows)))
    total, number = np.zeros(len(rows)), np.zeros(len(rows))
    for j in range(size):
        held[j] = np.isfinite(rows[:, j])
        rest[j] = np.where(held[j] > 0, (rows[:, j] - low) / third - base[j], 0)
        total += rest[j]
        number += held[j]
    usual = total / (number + RATING / PERSON)
    rest = np.clip((rest - usual) * held, -1, 1)
    out = np.empty((size * (size + 1), len(rows)))
    half, at = len(out) // 2, 0
    for j in range(size):
        for k in range(j, size):
            out[at], out[half + at] = rest[j] * rest[k], weight * held[j] * held[k]
            at += 1
    return out.T
