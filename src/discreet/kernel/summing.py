"""The models' only door: what each unit adds is kept within a ball, put on a grid and summed in integers, with noise.

    rows ──► rule ──► a vector for each row ──► one for each unit, in the ball ──► integers ──► sum + noise
             └──────────────── a Part of the rows: here, or where they are ────────────────┘

A model says what to sum, by a rule that sees one row at a time; it cannot say how far one unit moves the sum.
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
from discreet.kernel.exact import Number, positive, typed, whole
from discreet.kernel.mechanism import Laplace
from discreet.kernel.purse import STEPS, Noise, Purse
from discreet.kernel.rowwise import Rule, check_row_wise

MOST_UNITS = 1 << 42  # so many vectors of the ball add up to less than 64 bits hold
_AT_ONCE = 1 << 18  # numbers that are worked on at once: they stay in the processor's cache
_MOST_ROWS, _ENOUGH_ROWS = 1 << 16, 1 << 11  # with many numbers a row, some thousand rows are worth the memory
_LARGEST = 1 << 18  # numbers in a vector: rounding each must not fill the ball
Batch = tuple[np.ndarray, np.ndarray | None]  # rows, and the place of each row's unit


class Rows(Protocol):
    """Where rows come from, as often as they are wanted."""

    @property
    def low(self) -> np.ndarray:
        """The declared lower end of every column."""

    @property
    def high(self) -> np.ndarray:
        """The declared upper end of every column."""

    @property
    def grouped(self) -> bool:
        """Whether a unit may have several rows; otherwise each row is a unit of its own."""

    def batches(self, size: int) -> Iterator[Batch]:
        """Give rows, with the place of each row's unit, ascending, if a unit may have several."""


@runtime_checkable
class Remote(Protocol):
    """Rows that stay where they are: a part of the work goes to them, and integers come back."""

    def summed(self, part: "Part") -> np.ndarray:
        """Divide the rows, moved into the part's ranges, by whole units; return the sum of the part of each share."""


class Combine(Enum):
    """What a unit with several rows adds: their mean or their sum; each row, and the result, is kept in the ball."""

    MEAN = "mean"
    SUM = "sum"


def noisy_sum(  # noqa: PLR0913 - what is summed, of what, how far each may go, and who pays
    data: Rows,
    rule: Rule,
    public: tuple[Any, ...],
    *,
    size: int,
    radius: Number,
    purse: Purse,
    combine: Combine = Combine.MEAN,
) -> np.ndarray:
    """Return the noisy sum of every unit's vector; `rule(rows, public)` gives `size` numbers for each row.

    A unit's vector is kept within the radius: in l1 if the purse's next noise is Laplace, in l2 if it is Gaussian.

    Claim: the result depends on the data only through the purse's next noise, and one unit moves the integers that
        the noise is added to by at most STEPS in the norm of that noise.
    Proof: Part. _vectors gives a unit's vector by its rows' whole numbers, summed exactly, so that their order does
        not matter; _kept compares its norm with STEPS in whole numbers and leaves out what is beyond. Whatever fails
        has one text.
    Needs: check_row_wise, Part, _kept, Purse.take, perturb; that `public` holds nothing of the data but what was
        released.
    Checked by: test_one_unit_moves_a_sum_by_the_ball_at_most, test_the_law_of_a_sum_on_neighbours_is_within_its_loss,
        test_batches_and_order_do_not_change_a_sum, test_a_failure_while_summing_says_nothing
    Seal: 9a4663929a60
    """
    length = positive(radius, "radius")
    if whole(size, "size", least=1) > _LARGEST:
        raise ValueError(f"size must be at most {_LARGEST}")
    typed(Combine, combine, "combine")
    noise = _drawn(data, rule, public, purse)
    steps = float(STEPS / length)
    l1 = isinstance(noise, Laplace)
    adds = partial(_vectors, size=size, steps=steps, l1=l1, grouped=data.grouped, combine=combine)
    return noise.perturb(_read(data, Part(rule, public, data.low, data.high, data.grouped, size, size, adds))) / steps


def noisy_histograms(  # noqa: PLR0913 - as noisy_sum
    data: Rows, rule: Rule, public: tuple[Any, ...], *, tables: int, cells: int, purse: Purse
) -> np.ndarray:
    """Return noisy counts, tables × cells; `rule(rows, public)` gives the cell of each row in each table.

    A unit weighs 1 in every table, spread evenly over its rows; a cell outside of the table counts nowhere.

    Claim: as noisy_sum.
    Proof: Part. A unit of r rows adds floor(w/r) to one cell of each table for each row: at most w to a table, in l1
        and so in l2, with tables·w <= STEPS for Laplace and tables·w² <= STEPS² for Gaussian noise. All are integers.
    Needs: check_row_wise, Part, Purse.take, perturb; that `public` holds nothing of the data but what was released.
    Checked by: test_one_unit_moves_a_sum_by_the_ball_at_most, test_the_law_of_a_sum_on_neighbours_is_within_its_loss,
        test_batches_and_order_do_not_change_a_sum
    Seal: d5f3edb3606a
    """
    whole(tables, "tables", least=1)
    whole(cells, "cells", least=1)
    noise = _drawn(data, rule, public, purse)
    weight = STEPS // tables if isinstance(noise, Laplace) else math.isqrt(STEPS * STEPS // tables)
    adds = partial(_cells, tables=tables, cells=cells, weight=weight)
    part = Part(rule, public, data.low, data.high, data.grouped, tables * cells, tables, adds)
    return noise.perturb(_read(data, part)).reshape(tables, cells) / weight


def noisy_sparse_sum(  # noqa: PLR0913 - as noisy_sum
    data: Rows, rule: Rule, public: tuple[Any, ...], *, size: int, radius: Number, purse: Purse
) -> np.ndarray:
    """Return the noisy sum of long vectors of which each row has a few numbers, at the places that the rule names.

    `rule(rows, public)` gives two arrays, rows × few: places below `size`, and the numbers there. The numbers of a
    unit are added up and kept within the radius as a whole; places outside of the vector count nowhere.

    Claim: as noisy_sum.
    Proof: Part. Each number becomes an integer on its own; those of one unit at one place are added exactly; the
        unit's norm is that of these sums. Then as noisy_sum, with the rounding of as many places as the unit has.
    Needs: check_row_wise, Part, Purse.take, perturb; that `public` holds nothing of the data but what was released.
    Checked by: test_one_unit_moves_a_sum_by_the_ball_at_most, test_the_law_of_a_sum_on_neighbours_is_within_its_loss,
        test_batches_and_order_do_not_change_a_sum
    Seal: 60cf56431bdd
    """
    length = positive(radius, "radius")
    whole(size, "size", least=1)
    noise = _drawn(data, rule, public, purse)
    steps = float(STEPS / length)
    adds = partial(_entries, size=size, steps=steps, l1=isinstance(noise, Laplace))
    return noise.perturb(_read(data, Part(rule, public, data.low, data.high, data.grouped, size, 8, adds))) / steps


@dataclass(frozen=True, eq=False)
class Part:
    """What is done with a share of the rows, here or where they are: whole units in, a vector of integers out.

    It is plain data and functions of modules, so that it can be sent. `length` is how many integers come out, `width`
    how many numbers a row has on the way; `adds` sums what the rule said of some rows, given where units begin.

    Claim: the parts of all shares add up to the sum of one vector of whole numbers for each unit, which is a function
        of the unit's own rows and of `public`, however the units are divided into shares and batches.
    Proof: no unit is in two shares (Remote.summed; here there is one share), nor in two batches (_units). `rule` gives
        each row the same, whatever is beside it (check_row_wise), and `adds` works unit by unit. Integers are
        summed exactly, in any order: those of a batch in floats below 2^53, as 2^33 vectors of the ball are, then in
        64 bits, which hold those of MOST_UNITS units.
    Needs: check_row_wise; that Remote.summed divides by whole units and that there are at most MOST_UNITS of them.
    Checked by: test_shares_of_whole_units_add_up_to_the_same_integers, test_batches_and_order_do_not_change_a_sum,
        test_what_a_unit_adds_does_not_depend_on_others, test_so_many_units_as_are_allowed_fit_into_64_bits
    Seal: fa987db3a99d
    """

    rule: Rule
    public: tuple[Any, ...]
    low: np.ndarray
    high: np.ndarray
    grouped: bool
    length: int
    width: int
    adds: Callable[[Any, np.ndarray, int], np.ndarray]

    @property
    def at_once(self) -> int:
        """How many rows are best given at a time."""
        many = max(_AT_ONCE // self.width, min(_ENOUGH_ROWS, 32 * _AT_ONCE // self.width))
        return max(1, min(_MOST_ROWS, many))

    def __call__(self, batches: Iterable[Batch]) -> np.ndarray:
        """Return the sum of what these units add; no warning of numpy tells of a row."""
        total = np.zeros(self.length, np.int64)
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for rows, starts in _units(batches, grouped=self.grouped):
                told = self.rule(rows, self.public)  # held until the next is there, or memory would come and go
                total += self.adds(told, starts, len(rows))
        return total


def _vectors(  # noqa: PLR0913 - of what, and how
    told: Any, starts: np.ndarray, rows: int, *, size: int, steps: float, l1: bool, grouped: bool, combine: Combine
) -> np.ndarray:
    """Sum vectors that are kept in the ball, row by row and then unit by unit."""
    vectors = _kept(_numbers(told, (rows, size)) * steps, l1=l1)
    if grouped:  # also units of one row, or what they add would depend on whether others have more
        vectors = np.add.reduceat(vectors, starts, axis=0)
        if combine is Combine.MEAN:
            vectors /= _counts(starts, rows)[:, np.newaxis]
        vectors = _kept(vectors, l1=l1)
    return np.asarray(vectors.sum(axis=0).astype(np.int64))


def _cells(  # noqa: PLR0913 - of what, and how
    told: Any, starts: np.ndarray, rows: int, *, tables: int, cells: int, weight: int
) -> np.ndarray:
    """Count in the cells of some tables; a unit weighs `weight` in each."""
    found = _numbers(np.reshape(told, (rows, -1)), (rows, tables), np.int64)
    found = np.where((found >= 0) & (found < cells), found, cells)
    counts = _counts(starts, rows)
    shares = np.repeat(weight // counts, counts).astype(np.float64)
    each = [np.bincount(column, shares, cells + 1)[:cells] for column in found.T]
    return np.concatenate(each, dtype=np.int64, casting="unsafe")  # whole numbers


def _entries(  # noqa: PLR0913 - of what, and how
    told: Any, starts: np.ndarray, rows: int, *, size: int, steps: float, l1: bool
) -> np.ndarray:
    """Sum long vectors, of which a row has a few numbers; each unit's is kept in the ball."""
    places, numbers = told
    places = _numbers(places, (rows, np.shape(places)[1]), np.int64)
    numbers = _numbers(numbers, places.shape) * steps
    numbers = np.rint(np.clip(np.where(np.isfinite(numbers), numbers, 0), -STEPS, STEPS))
    numbers[(places < 0) | (places >= size)] = 0
    units = np.repeat(np.arange(len(starts)), _counts(starts, rows))
    keys = (units[:, np.newaxis] * size + np.clip(places, 0, size - 1)).ravel()
    held, where = np.unique(keys, return_inverse=True)
    sums, units = np.bincount(where, numbers.ravel()), held // size
    sums = np.rint(sums * _factor(sums, units, len(starts), l1=l1)[units])
    sums[~_inside(_norms(sums, units, len(starts), l1=l1), l1=l1)[units]] = 0
    return np.bincount(held % size, sums, size).astype(np.int64)


def _drawn(data: Rows, rule: Rule, public: tuple[Any, ...], purse: Purse) -> Noise:
    """Take the next noise, if the rule may be used at all."""
    check_row_wise(rule, public, data.low, data.high)
    return typed(Purse, purse, "purse").take()


def _units(batches: Iterable[Batch], *, grouped: bool) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Give rows with the place at which each unit begins; the rows of one unit are never in two batches."""
    kept: tuple[np.ndarray, np.ndarray] | None = None
    for rows, places in batches:
        if not len(rows):
            continue
        if not grouped or places is None:
            yield np.asfortranarray(rows, np.float64), np.arange(len(rows))
            continue
        if kept is not None:
            rows, places = np.concatenate([kept[0], rows]), np.concatenate([kept[1], places])  # noqa: PLW2901
        if (np.diff(places) < 0).any():
            raise ValueError("data: the rows of one unit must follow each other")
        last = int(np.searchsorted(places, places[-1]))  # it may go on in the next batch
        if last:
            yield np.asfortranarray(rows[:last], np.float64), _starts(places[:last])
        kept = rows[last:], places[last:]
    if kept is not None:
        yield np.asfortranarray(kept[0], np.float64), _starts(kept[1])


def _starts(places: np.ndarray) -> np.ndarray:
    return np.flatnonzero(np.concatenate([[True], np.diff(places) != 0]))


def _counts(starts: np.ndarray, rows: int) -> np.ndarray:
    return np.diff(np.append(starts, rows))


def _numbers(told: Any, shape: tuple[int, ...], dtype: type = np.float64) -> np.ndarray:
    numbers = np.asarray(told)
    if numbers.shape != shape or numbers.dtype.kind not in ("i" if dtype is np.int64 else "fi"):
        raise TypeError(f"rule must give an array of shape {shape}")
    return numbers.astype(dtype, copy=False)


def _kept(vectors: np.ndarray, *, l1: bool) -> np.ndarray:
    """Return vectors, in steps, as whole numbers within the ball; what is not finite becomes zero.

    Claim: every vector that is returned consists of whole numbers and has a norm of at most STEPS, exactly.
    Proof: they are shrunk in floats so that rounding leaves them inside; but that is only for accuracy. Afterwards the
        norm is computed of whole numbers, exactly as long as it is below 2^53, and a sum that passes that is beyond
        STEPS² all the more; whatever is not surely inside becomes zero, also NaN, which is inside of nothing.
    Needs: nothing.
    Checked by: test_kept_vectors_are_whole_and_within_the_ball
    Seal: 7fed9c1d9ac4
    """
    with np.errstate(all="ignore"):
        room = _room(vectors.shape[1], l1=l1)
        norms = _lengths(vectors, l1=l1)
        norms = norms if l1 else np.sqrt(norms)
        vectors *= np.where(norms <= room, 1.0, room / norms)[:, np.newaxis]
        np.rint(vectors, out=vectors)
        beyond = np.flatnonzero(~_inside(_lengths(vectors, l1=l1), l1=l1))
    if len(beyond):
        vectors[beyond] = 0
    return vectors


def _lengths(vectors: np.ndarray, *, l1: bool) -> np.ndarray:
    """Return the l1 norms, or the squared l2 norms, number after number, so that each is the same beside any other."""
    total = np.zeros(len(vectors))
    for numbers in vectors.T:
        total += np.abs(numbers) if l1 else numbers * numbers
    return total


def _room(size: Any, *, l1: bool) -> Any:
    """Return how far a vector may go so that rounding each of its numbers leaves it in the ball."""
    return STEPS - 1 - (size / 2 if l1 else np.sqrt(size) / 2)


def _inside(norms: np.ndarray, *, l1: bool) -> np.ndarray:
    """Tell which norms, l1 or squared l2, are within the ball; NaN is not."""
    return norms <= (STEPS if l1 else STEPS * STEPS)


def _norms(numbers: np.ndarray, units: np.ndarray, count: int, *, l1: bool) -> np.ndarray:
    return np.bincount(units, np.abs(numbers) if l1 else numbers * numbers, count)


def _factor(numbers: np.ndarray, units: np.ndarray, count: int, *, l1: bool) -> np.ndarray:
    """Return by how much each unit's numbers must be multiplied."""
    norms = _norms(numbers, units, count, l1=l1)
    norms = norms if l1 else np.sqrt(norms)
    room = np.maximum(_room(np.bincount(units, minlength=count), l1=l1), 1.0)
    return np.asarray(np.minimum(1.0, room / np.maximum(norms, 1.0)))


def _read(data: Rows, part: Part) -> np.ndarray:
    """Read the data; whatever goes wrong then may depend on them, and has one text."""
    try:
        total = data.summed(part) if isinstance(data, Remote) else part(data.batches(part.at_once))
        if total.dtype == np.int64 and total.shape == (part.length,):
            return total
        LOG.error("a sum failed after it was charged: %s of %s came back", total.dtype, total.shape)
    except Exception:  # noqa: BLE001 - as the docstring says
        LOG.exception("a sum failed after it was charged")
    raise Failed(FAILED)
