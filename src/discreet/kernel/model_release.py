"""Noisy sums for models: each unit's vector is clipped, put on a grid and summed in integers.

    rows ──► rule ──► one vector per row ──► one per unit, clipped to the ball ──► integers ──► sum + noise
             └──────────── a PartialSum over some of the rows: here, or where they are ────────────┘

A model defines the summands by a rule that sees one row at a time; it cannot influence the sensitivity of the sum.
"""

import math
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any, Protocol, runtime_checkable

import numpy as np

from discreet.kernel.errors import FAILED, LOG, Failed
from discreet.kernel.mechanism import Laplace
from discreet.kernel.numbers import Number, as_integer, as_positive, check_type
from discreet.kernel.reservation import CLIP_RADIUS, Noise, Reservation
from discreet.kernel.row_rule import RowRule, check_row_wise

MAX_UNITS = 1 << 42  # the sum of this many vectors of the ball fits in 64 bits
_BATCH_NUMBERS = 1 << 18  # numbers per batch, so that they stay in the processor's cache
_MAX_BATCH_ROWS, _MIN_BATCH_ROWS = 1 << 16, 1 << 11  # for wide rows, some thousand rows are worth the memory
_MAX_VECTOR_SIZE = 1 << 18  # numbers in a vector: rounding all of them must stay well inside the ball
Batch = tuple[np.ndarray, np.ndarray | None]  # rows, and the number of each row's unit


class RowSource(Protocol):
    """A source of rows that can be read several times."""

    @property
    def low(self) -> np.ndarray:
        """The declared lower bound of every column."""

    @property
    def high(self) -> np.ndarray:
        """The declared upper bound of every column."""

    @property
    def grouped(self) -> bool:
        """Whether a unit may have several rows; otherwise each row is its own unit."""

    def batches(self, size: int) -> Iterator[Batch]:
        """Yield rows, with ascending unit numbers if a unit may have several rows."""


@runtime_checkable
class RemoteRowSource(Protocol):
    """Rows that are summed where they are stored; only integers are returned."""

    def sum_units(self, part: "PartialSum") -> np.ndarray:
        """Split the rows, clamped to the part's ranges, by whole units; return the sum of the part over all shares."""


class Combine(Enum):
    """Whether a unit with several rows contributes their mean or their sum; rows and result are clipped to the ball."""

    MEAN = "mean"
    SUM = "sum"


def noisy_sum(  # noqa: PLR0913 - mostly keyword-only
    data: RowSource,
    rule: RowRule,
    public: tuple[Any, ...],
    *,
    size: int,
    radius: Number,
    reservation: Reservation,
    combine: Combine = Combine.MEAN,
) -> np.ndarray:
    """Return the noisy sum of every unit's vector; `rule(rows, public)` returns `size` numbers per row.

    A unit's vector is clipped to the radius: in l1 if the reservation's next noise is Laplace, in l2 if it is Gaussian.

    Claim: the result depends on the data only through the reservation's next noise, and one unit moves the integers
        that the noise is added to by at most CLIP_RADIUS in the norm of that noise.
    Proof: PartialSum. _sum_vectors computes a unit's vector from the integers of its rows, summed exactly, so that
        their order does not matter; _clip_to_ball compares its norm with CLIP_RADIUS in integers and drops vectors
        beyond it. Every failure has the same message.
    Needs: check_row_wise, PartialSum, _clip_to_ball, Reservation.take_noise, perturb; `public` contains nothing of the
        data except released values.
    Checked by: test_one_unit_moves_a_sum_by_the_ball_at_most, test_the_law_of_a_sum_on_neighbours_is_within_its_loss,
        test_batches_and_order_do_not_change_a_sum, test_a_failure_while_summing_says_nothing
    Seal: 2a8621f83f58
    """
    norm_bound = as_positive(radius, "radius")
    if as_integer(size, "size", minimum=1) > _MAX_VECTOR_SIZE:
        raise ValueError(f"size must be at most {_MAX_VECTOR_SIZE}")
    check_type(Combine, combine, "combine")
    noise = _take_noise(data, rule, public, reservation)
    steps = float(CLIP_RADIUS / norm_bound)
    l1 = isinstance(noise, Laplace)
    sum_batch = partial(_sum_vectors, size=size, steps=steps, l1=l1, grouped=data.grouped, combine=combine)
    return (
        noise.perturb(
            _sum_or_fail(data, PartialSum(rule, public, data.low, data.high, data.grouped, size, size, sum_batch))
        )
        / steps
    )


def noisy_histograms(  # noqa: PLR0913 - like noisy_sum
    data: RowSource, rule: RowRule, public: tuple[Any, ...], *, tables: int, cells: int, reservation: Reservation
) -> np.ndarray:
    """Return noisy counts, tables × cells; `rule(rows, public)` returns the cell of each row in each table.

    A unit has the weight 1 in every table, divided evenly among its rows; a cell outside of the table is not counted.

    Claim: as for noisy_sum.
    Proof: PartialSum. A unit of r rows adds floor(w/r) to one cell of each table for each row: at most w to a table, in
        l1 and so in l2, with tables·w <= CLIP_RADIUS for Laplace and tables·w² <= CLIP_RADIUS² for Gaussian noise. All
        are integers.
    Needs: check_row_wise, PartialSum, Reservation.take_noise, perturb; `public` contains nothing of the data except
        released values.
    Checked by: test_one_unit_moves_a_sum_by_the_ball_at_most, test_the_law_of_a_sum_on_neighbours_is_within_its_loss,
        test_batches_and_order_do_not_change_a_sum
    Seal: b8f7c60be43f
    """
    as_integer(tables, "tables", minimum=1)
    as_integer(cells, "cells", minimum=1)
    noise = _take_noise(data, rule, public, reservation)
    weight = CLIP_RADIUS // tables if isinstance(noise, Laplace) else math.isqrt(CLIP_RADIUS * CLIP_RADIUS // tables)
    sum_batch = partial(_count_cells, tables=tables, cells=cells, weight=weight)
    part = PartialSum(rule, public, data.low, data.high, data.grouped, tables * cells, tables, sum_batch)
    return noise.perturb(_sum_or_fail(data, part)).reshape(tables, cells) / weight


def noisy_sparse_sum(  # noqa: PLR0913 - like noisy_sum
    data: RowSource, rule: RowRule, public: tuple[Any, ...], *, size: int, radius: Number, reservation: Reservation
) -> np.ndarray:
    """Return the noisy sum of long sparse vectors.

    `rule(rows, public)` returns two arrays, rows × few: indices below `size`, and the numbers there. The numbers of a
    unit are added up and clipped to the radius as a whole; indices outside of the vector are not counted.

    Claim: as for noisy_sum.
    Proof: PartialSum. Each number is rounded to an integer; those of one unit at one index are added exactly; the
        unit's norm is that of these sums. Then as for noisy_sum, with the rounding of as many entries as the unit has.
    Needs: check_row_wise, PartialSum, Reservation.take_noise, perturb; `public` contains nothing of the data except
        released values.
    Checked by: test_one_unit_moves_a_sum_by_the_ball_at_most, test_the_law_of_a_sum_on_neighbours_is_within_its_loss,
        test_batches_and_order_do_not_change_a_sum
    Seal: daba92de9320
    """
    norm_bound = as_positive(radius, "radius")
    as_integer(size, "size", minimum=1)
    noise = _take_noise(data, rule, public, reservation)
    steps = float(CLIP_RADIUS / norm_bound)
    sum_batch = partial(_sum_sparse_vectors, size=size, steps=steps, l1=isinstance(noise, Laplace))
    return (
        noise.perturb(
            _sum_or_fail(data, PartialSum(rule, public, data.low, data.high, data.grouped, size, 8, sum_batch))
        )
        / steps
    )


@dataclass(frozen=True, eq=False)
class PartialSum:
    """The sum over a share of the rows, computed here or where they are: from whole units to a vector of integers.

    It consists of plain data and module-level functions, so that it can be sent. `length` is the length of the result,
    `width` the number of values per row on the way; `sum_batch` sums the output of the rule, given where units start.

    Claim: the parts of all shares add up to the sum of one vector of integers per unit, which is a function of the
        unit's own rows and of `public`, however the units are divided into shares and batches.
    Proof: no unit is in two shares (RemoteRowSource.sum_units; here there is one share), nor in two batches
        (_whole_unit_batches). `rule` gives each row the same result, whatever the other rows are (check_row_wise), and
        `sum_batch` works unit by unit. Integers are summed exactly, in any order: those of a batch in floats below
        2^53, as 2^33 vectors of the ball are, then in 64 bits, which hold those of MAX_UNITS units.
    Needs: check_row_wise; RemoteRowSource.sum_units divides by whole units, and there are at most MAX_UNITS of them.
    Checked by: test_shares_of_whole_units_add_up_to_the_same_integers, test_batches_and_order_do_not_change_a_sum,
        test_what_a_unit_adds_does_not_depend_on_others, test_so_many_units_as_are_allowed_fit_into_64_bits
    Seal: 389f79a86cba
    """

    rule: RowRule
    public: tuple[Any, ...]
    low: np.ndarray
    high: np.ndarray
    grouped: bool
    length: int
    width: int
    sum_batch: Callable[[Any, np.ndarray, int], np.ndarray]

    @property
    def batch_rows(self) -> int:
        """The preferred number of rows per batch."""
        rows = max(_BATCH_NUMBERS // self.width, min(_MIN_BATCH_ROWS, 32 * _BATCH_NUMBERS // self.width))
        return max(1, min(_MAX_BATCH_ROWS, rows))

    def __call__(self, batches: Iterable[Batch]) -> np.ndarray:
        """Return the sum over these units; warnings of numpy, which could disclose a row, are suppressed."""
        total = np.zeros(self.length, np.int64)
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for rows, starts in _whole_unit_batches(batches, grouped=self.grouped):
                output = self.rule(rows, self.public)  # kept alive until the next batch, so that its memory is reused
                total += self.sum_batch(output, starts, len(rows))
        return total


def _sum_vectors(  # noqa: PLR0913 - bound by partial
    output: Any, starts: np.ndarray, rows: int, *, size: int, steps: float, l1: bool, grouped: bool, combine: Combine
) -> np.ndarray:
    """Return the sum of vectors that are clipped to the ball, first per row, then per unit."""
    vectors = _clip_to_ball(_checked_output(output, (rows, size)) * steps, l1=l1)
    if grouped:  # even units with one row, so that their contribution does not depend on other units
        vectors = np.add.reduceat(vectors, starts, axis=0)
        if combine is Combine.MEAN:
            vectors /= _rows_per_unit(starts, rows)[:, np.newaxis]
        vectors = _clip_to_ball(vectors, l1=l1)
    return np.asarray(vectors.sum(axis=0).astype(np.int64))


def _count_cells(  # noqa: PLR0913 - bound by partial
    output: Any, starts: np.ndarray, rows: int, *, tables: int, cells: int, weight: int
) -> np.ndarray:
    """Return the cell counts of all tables; a unit has the weight `weight` in each."""
    cell_numbers = _checked_output(np.reshape(output, (rows, -1)), (rows, tables), np.int64)
    cell_numbers = np.where((cell_numbers >= 0) & (cell_numbers < cells), cell_numbers, cells)
    counts = _rows_per_unit(starts, rows)
    shares = np.repeat(weight // counts, counts).astype(np.float64)
    table_counts = [np.bincount(column, shares, cells + 1)[:cells] for column in cell_numbers.T]
    return np.concatenate(table_counts, dtype=np.int64, casting="unsafe")  # integers already


def _sum_sparse_vectors(  # noqa: PLR0913 - bound by partial
    output: Any, starts: np.ndarray, rows: int, *, size: int, steps: float, l1: bool
) -> np.ndarray:
    """Return the sum of sparse vectors, each unit's clipped to the ball."""
    indices, numbers = output
    indices = _checked_output(indices, (rows, np.shape(indices)[1]), np.int64)
    numbers = _checked_output(numbers, indices.shape) * steps
    numbers = np.rint(np.clip(np.where(np.isfinite(numbers), numbers, 0), -CLIP_RADIUS, CLIP_RADIUS))
    numbers[(indices < 0) | (indices >= size)] = 0
    units = np.repeat(np.arange(len(starts)), _rows_per_unit(starts, rows))
    keys = (units[:, np.newaxis] * size + np.clip(indices, 0, size - 1)).ravel()
    entries, where = np.unique(keys, return_inverse=True)
    sums, units = np.bincount(where, numbers.ravel()), entries // size
    sums = np.rint(sums * _clip_factors(sums, units, len(starts), l1=l1)[units])
    sums[~_is_in_ball(_unit_norms(sums, units, len(starts), l1=l1), l1=l1)[units]] = 0
    return np.bincount(entries % size, sums, size).astype(np.int64)


def _take_noise(data: RowSource, rule: RowRule, public: tuple[Any, ...], reservation: Reservation) -> Noise:
    """Check the rule, then take the next noise."""
    check_row_wise(rule, public, data.low, data.high)
    return check_type(Reservation, reservation, "reservation").take_noise()


def _whole_unit_batches(batches: Iterable[Batch], *, grouped: bool) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield rows with the indices where units start; the rows of one unit are never in two batches."""
    pending: tuple[np.ndarray, np.ndarray] | None = None
    for rows, unit_numbers in batches:
        if not len(rows):
            continue
        if not grouped or unit_numbers is None:
            yield np.asfortranarray(rows, np.float64), np.arange(len(rows))
            continue
        if pending is not None:
            rows, unit_numbers = np.concatenate([pending[0], rows]), np.concatenate([pending[1], unit_numbers])  # noqa: PLW2901
        if (np.diff(unit_numbers) < 0).any():
            raise ValueError("data: the rows of a unit must be consecutive")
        last = int(np.searchsorted(unit_numbers, unit_numbers[-1]))  # the last unit may continue in the next batch
        if last:
            yield np.asfortranarray(rows[:last], np.float64), _unit_starts(unit_numbers[:last])
        pending = rows[last:], unit_numbers[last:]
    if pending is not None:
        yield np.asfortranarray(pending[0], np.float64), _unit_starts(pending[1])


def _unit_starts(unit_numbers: np.ndarray) -> np.ndarray:
    return np.flatnonzero(np.concatenate([[True], np.diff(unit_numbers) != 0]))


def _rows_per_unit(starts: np.ndarray, rows: int) -> np.ndarray:
    return np.diff(np.append(starts, rows))


def _checked_output(output: Any, shape: tuple[int, ...], dtype: type = np.float64) -> np.ndarray:
    numbers = np.asarray(output)
    if numbers.shape != shape or numbers.dtype.kind not in ("i" if dtype is np.int64 else "fi"):
        raise TypeError(f"rule must return a numeric array of shape {shape}")
    return numbers.astype(dtype, copy=False)


def _clip_to_ball(vectors: np.ndarray, *, l1: bool) -> np.ndarray:
    """Clip vectors, in grid steps, to the ball and round them to integers; vectors that are not finite become zero.

    Claim: every returned vector consists of integers and has a norm of at most CLIP_RADIUS, exactly.
    Proof: vectors are shrunk in floats so that rounding leaves them inside, which matters only for accuracy. Afterwards
        the norm is computed from integers, exactly as long as it is below 2^53, and a sum above that is beyond
        CLIP_RADIUS² all the more; whatever is not surely inside becomes zero, including NaN, which compares false.
    Needs: nothing.
    Checked by: test_kept_vectors_are_whole_and_within_the_ball
    Seal: 240ffa83ed15
    """
    with np.errstate(all="ignore"):
        radius = _radius_before_rounding(vectors.shape[1], l1=l1)
        norms = _vector_norms(vectors, l1=l1)
        norms = norms if l1 else np.sqrt(norms)
        vectors *= np.where(norms <= radius, 1.0, radius / norms)[:, np.newaxis]
        np.rint(vectors, out=vectors)
        beyond = np.flatnonzero(~_is_in_ball(_vector_norms(vectors, l1=l1), l1=l1))
    if len(beyond):
        vectors[beyond] = 0
    return vectors


def _vector_norms(vectors: np.ndarray, *, l1: bool) -> np.ndarray:
    """Return the l1 or squared l2 norms, summed column by column, so that no norm depends on other rows."""
    total = np.zeros(len(vectors))
    for numbers in vectors.T:
        total += np.abs(numbers) if l1 else numbers * numbers
    return total


def _radius_before_rounding(size: Any, *, l1: bool) -> Any:
    """Return the largest norm from which rounding every entry stays in the ball."""
    return CLIP_RADIUS - 1 - (size / 2 if l1 else np.sqrt(size) / 2)


def _is_in_ball(norms: np.ndarray, *, l1: bool) -> np.ndarray:
    """Return which norms, l1 or squared l2, are within the ball; NaN is not."""
    return norms <= (CLIP_RADIUS if l1 else CLIP_RADIUS * CLIP_RADIUS)


def _unit_norms(numbers: np.ndarray, units: np.ndarray, count: int, *, l1: bool) -> np.ndarray:
    return np.bincount(units, np.abs(numbers) if l1 else numbers * numbers, count)


def _clip_factors(numbers: np.ndarray, units: np.ndarray, count: int, *, l1: bool) -> np.ndarray:
    """Return the factor by which each unit's numbers are multiplied."""
    norms = _unit_norms(numbers, units, count, l1=l1)
    norms = norms if l1 else np.sqrt(norms)
    radius = np.maximum(_radius_before_rounding(np.bincount(units, minlength=count), l1=l1), 1.0)
    return np.asarray(np.minimum(1.0, radius / np.maximum(norms, 1.0)))


def _sum_or_fail(data: RowSource, part: PartialSum) -> np.ndarray:
    """Sum over the data; every error has the same message, because its text may depend on the data."""
    try:
        total = data.sum_units(part) if isinstance(data, RemoteRowSource) else part(data.batches(part.batch_rows))
        if total.dtype == np.int64 and total.shape == (part.length,):
            return total
        LOG.error("a sum failed after it was charged: the result is %s of shape %s", total.dtype, total.shape)
    except Exception:  # noqa: BLE001 - see the docstring
        LOG.exception("a sum failed after it was charged")
    raise Failed(FAILED)
