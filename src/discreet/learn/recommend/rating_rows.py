"""Ratings as rows: one per rating, (item, rating), or one per person, with a column for each selected item.

Items are coded by their index in the public list; an item that is not listed has the code -1 and is ignored.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from discreet.engines.row_sums import RowSource
from discreet.learn.fit_inputs import QueryRows
from discreet.learn.fit_session import PublicValues
from discreet.learn.recommend.item_effects import RATING_VARIANCE, USER_VARIANCE
from discreet.learn.row_sources import RowBatch

_PANDAS_INDEX_PREFIX = "__index_level_"  # index columns that pandas adds


def read_columns(table: Any, count: int) -> list[np.ndarray]:
    """Return the `count` columns of a frame, an Arrow table or an array."""
    if hasattr(table, "__arrow_c_stream__"):
        arrow_table = pa.RecordBatchReader.from_stream(table).read_all()
        names = [name for name in arrow_table.column_names if not name.startswith(_PANDAS_INDEX_PREFIX)]
        columns = [_column_values(arrow_table.column(name)) for name in names]
    else:
        array = np.asarray(table)
        columns = list(array.T) if array.ndim == 2 else []
    if len(columns) != count:
        raise ValueError(f"ratings must have {count} columns, not {len(columns)}")
    return columns


def _column_values(column: Any) -> np.ndarray:
    """Return a column's values; integers with NULLs stay integers, since large ones would collide as floats."""
    if column.null_count and pa.types.is_integer(column.type):
        return np.array([np.nan if value is None else value for value in column.to_pylist()], object)
    return np.asarray(column.to_numpy())


def item_codes(items: Any, rated: np.ndarray) -> np.ndarray:
    """Return the index of each rated item in the public list, or -1.

    >>> item_codes(["heat", "alien"], np.array(["alien", "brazil", "heat"])).tolist()
    [1, -1, 0]
    """
    listed = np.asarray(items)
    order = np.argsort(listed, kind="stable")
    positions = np.searchsorted(listed, rated, sorter=order)
    nearest = order[np.minimum(positions, len(order) - 1)]
    return np.where(listed[nearest] == rated, nearest, -1)


def read_own_ratings(items: Any, own: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the item codes and ratings of a person's own ratings, given as {item: rating} or pairs.

    >>> read_own_ratings(["heat", "alien"], {"alien": 4, "brazil": 5})
    (array([1]), array([4.]))
    """
    pairs = list(own.items()) if isinstance(own, Mapping) else [] if own is None else [tuple(pair) for pair in own]
    if not pairs:
        return np.zeros(0, np.int64), np.zeros(0)
    codes = item_codes(items, np.array([item for item, _ in pairs]))
    ratings = np.array([rating for _, rating in pairs], np.float64)
    valid = (codes >= 0) & np.isfinite(ratings)
    return codes[valid], ratings[valid]


class SwitchableRows:
    """Rows whose layout can be replaced between releases: first one row per rating, then one per person."""

    def __init__(self, rows: RowSource) -> None:
        self.current = rows

    @property
    def low(self) -> np.ndarray:
        """The declared lower bounds."""
        return self.current.low

    @property
    def high(self) -> np.ndarray:
        """The declared upper bounds."""
        return self.current.high

    @property
    def grouped(self) -> bool:
        """Whether a unit may have several rows."""
        return self.current.grouped

    def batches(self, size: int) -> Iterator[RowBatch]:
        """Yield the rows of the current layout."""
        return self.current.batches(size)


@dataclass(frozen=True)
class QueryRatings:
    """The rows (item, rating) of a curator's query, with items as codes."""

    rows: QueryRows
    low: np.ndarray
    high: np.ndarray
    items: np.ndarray
    grouped: bool = True

    def batches(self, size: int) -> Iterator[RowBatch]:
        """Yield the rows, clamped to their bounds."""
        for values, unit_numbers in self.rows.batches(size):
            coded = np.column_stack([item_codes(self.items, values[:, 0]), values[:, 1]])
            yield np.clip(coded, self.low, self.high), unit_numbers


class RatingsByUnit:
    """One row per unit with its ratings of the selected items: the largest rating of each, or NaN."""

    grouped = False

    def __init__(self, ratings: RowSource, items: np.ndarray) -> None:
        self._ratings, self._column_of_item = ratings, np.full(int(ratings.high[0]) + 2, -1)
        self._column_of_item[items] = np.arange(len(items))  # code -1 is the last entry: no column
        self.low, self.high = (np.full(len(items), float(end[1])) for end in (ratings.low, ratings.high))

    def batches(self, size: int) -> Iterator[RowBatch]:
        """Yield one row per unit; ratings of a unit that span batches are collected first."""
        pending: tuple[np.ndarray, np.ndarray] = np.zeros((0, 2)), np.zeros(0, np.int64)
        for values, given_numbers in self._ratings.batches(size):
            unit_numbers = (
                given_numbers
                if given_numbers is not None
                else np.arange(len(values)) + (pending[1].max(initial=-1) + 1)
            )
            rows, units = np.concatenate([pending[0], values]), np.concatenate([pending[1], unit_numbers])
            last = int(np.searchsorted(units, units[-1])) if len(units) else 0
            yield self._pivot(rows[:last], units[:last]), None
            pending = rows[last:], units[last:]
        yield self._pivot(*pending), None

    def _pivot(self, rows: np.ndarray, units: np.ndarray) -> np.ndarray:
        unit_rows = np.unique(units, return_inverse=True)[1]
        out = np.full((int(unit_rows.max(initial=-1)) + 1, len(self.low)), np.nan)
        columns = self._column_of_item[rows[:, 0].astype(np.int64)]
        listed = columns >= 0
        # Of several ratings of an item the largest: the order of a unit's rows is the engine's, and may change.
        np.fmax.at(out, (unit_rows[listed], columns[listed]), rows[listed, 1])
        return out


def split_between_bounds(rows: np.ndarray, public: PublicValues) -> np.ndarray:
    """Split a rating's weight of 1 between the lower and upper bound."""
    low, third = public
    share = (rows[:, 1] - low) / (3 * third)
    out = np.empty((2, len(rows)))
    out[0], out[1] = 1 - share, share
    return out.T


def count_and_deviation(rows: np.ndarray, public: PublicValues) -> np.ndarray:
    """Return a rating's weighted presence and its deviation from a mean, in thirds of the range."""
    low, third, user_mean, count_weight = public
    out = np.empty((2, len(rows)))
    out[0], out[1] = count_weight, (rows[:, 1] - low) / third - user_mean
    return out.T


def item_entries(rows: np.ndarray, public: PublicValues) -> tuple[np.ndarray, np.ndarray]:
    """Return an item's count and its deviation from the mean, in thirds of the range, clamped to ±1.

    Both are at the index of the item's block, the first among the counts, the second among the deviations.
    """
    low, third, overall_mean, count_weight, n_items, blocks = public
    block = rows[:, 0].astype(np.int64) * blocks // n_items  # -1 for an item that is not listed
    values = np.empty((2, len(rows)))
    values[0], values[1] = count_weight, np.clip((rows[:, 1] - low) / third - overall_mean, -1, 1)
    return np.array([block, block]).T, values.T


def item_pair_entries(rows: np.ndarray, public: PublicValues) -> np.ndarray:
    """Return the products of residuals and the counts for all pairs of a person's items.

    A residual is a rating less the item's and the person's means, clamped to ± a third of the range.
    """
    low, third, base, count_weight = public
    size = len(base)
    residuals, has_rating = np.empty((size, len(rows))), np.empty((size, len(rows)))
    total, n_ratings = np.zeros(len(rows)), np.zeros(len(rows))
    for j in range(size):
        has_rating[j] = np.isfinite(rows[:, j])
        residuals[j] = np.where(has_rating[j] > 0, (rows[:, j] - low) / third - base[j], 0)
        total += residuals[j]
        n_ratings += has_rating[j]
    user_effect = total / (n_ratings + RATING_VARIANCE / USER_VARIANCE)
    residuals = np.clip((residuals - user_effect) * has_rating, -1, 1)
    out = np.empty((size * (size + 1), len(rows)))
    half, at = len(out) // 2, 0
    for j in range(size):
        for k in range(j, size):
            out[at], out[half + at] = residuals[j] * residuals[k], count_weight * has_rating[j] * has_rating[k]
            at += 1
    return out.T
