"""Noisy sums for models: each unit's vector is clipped, put on a grid and summed in integers.

    rows ──► rule ──► one vector per row ──► one per unit, clipped to the ball ──► integers ──► sum + noise
             └──────────── a PartialSum over some of the rows: here, or where they are ────────────┘

A model defines the summands by a rule that sees one row at a time; it cannot influence the sensitivity of the sum.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from types import FunctionType
from typing import Any

import numpy as np

from discreet.kernel.errors import require, run_charged
from discreet.kernel.mechanism import Laplace
from discreet.kernel.numbers import Number, as_integer, as_positive, check_type
from discreet.kernel.reservation import CLIP_RADIUS, Noise, Reservation

MAX_UNITS = 1 << 42  # the sum of this many vectors of the ball fits in 64 bits
_TEST_POINTS = 23  # odd, and not a multiple of a vector width
Batch = tuple[np.ndarray, np.ndarray | None]  # rows, and the number of each row's unit, from 0
RowRule = Callable[[np.ndarray, tuple[Any, ...]], Any]


@dataclass(frozen=True)
class SummableRows:
    """Rows to sum: the declared bounds of their columns, whether a unit may have several rows, and how to sum them.

    `sum_units` splits the rows, clamped to the bounds, by whole units, and returns the sum of a part over all shares.
    """

    low: np.ndarray
    high: np.ndarray
    grouped: bool
    sum_units: "Callable[[PartialSum], np.ndarray]"


class Combine(Enum):
    """Whether a unit with several rows contributes their mean or their sum."""

    MEAN = "mean"
    SUM = "sum"


def noisy_sum(  # noqa: PLR0913 - mostly keyword-only
    data: SummableRows,
    rule: RowRule,
    public: tuple[Any, ...],
    *,
    size: int,
    radius: Number,
    reservation: Reservation,
    combine: Combine = Combine.MEAN,
    blocks: tuple[int, ...] = (),
) -> np.ndarray:
    """Return the noisy sum of every unit's vector of `size` numbers, clipped to the radius.

    `rule(rows, public)` returns the vectors, rows × size; or, of sparse vectors, indices, rows × k, and the numbers
    there, rows × k or × 1: then a vector consists of k `blocks` of these lengths, or of equal length without them, and
    column j has indices into block j. An index outside of its block is not counted. The norm is l1 if the reservation's
    next noise is Laplace, else l2.

    Claim: the result depends on the data only through the reservation's next noise, and one unit moves the integers
        that the noise is added to by at most CLIP_RADIUS in the norm of that noise.
    Proof: PartialSum sums one vector of integers of the ball for every unit (_next_sum).
    Needs: PartialSum, _next_sum, Laplace.perturb, Gaussian.perturb.
    Checked by: test_one_unit_moves_a_sum_by_the_ball_at_most,
        test_the_distribution_of_a_sum_on_neighbours_is_within_its_loss, test_batches_and_order_do_not_change_a_sum,
        test_a_failure_while_summing_says_nothing
    """
    exact, noise, steps = _next_sum(
        data, rule, public, size=size, radius=radius, reservation=reservation, combine=combine, blocks=blocks
    )
    return noise.perturb(exact) / steps


def noisy_distance(  # noqa: PLR0913 - mostly keyword-only
    data: SummableRows,
    rule: RowRule,
    public: tuple[Any, ...],
    target: np.ndarray,
    *,
    radius: Number,
    reservation: Reservation,
) -> float:
    """Return the noisy l1 distance between a public `target`, integers in grid steps, and the sum of sparse vectors.

    Rules are those of noisy_sum. The numbers of a unit's rows are added up, and its vector is clipped in l1.

    Claim: the result depends on the data only through the reservation's next noise, and one unit moves the integer that
        the noise is added to by at most CLIP_RADIUS.
    Proof: removing a unit moves the sum by a vector v with an l1 norm of at most CLIP_RADIUS, and the distance from a
        fixed target by at most |v|_1, by the triangle inequality. The sum of MAX_UNITS units has an l1 norm of at most
        2^62, the target one below 2^61, so the distance fits in 64 bits.
    Needs: PartialSum, _next_sum, Laplace.perturb, Gaussian.perturb; `target` contains nothing of the data except
        released values.
    Checked by: test_one_unit_moves_a_distance_by_the_radius_at_most,
        test_the_distribution_of_a_distance_on_neighbours_is_within_its_loss
    """
    require(target.dtype == np.int64 and sum(map(abs, target.tolist())) < 1 << 61, "target must be small integers")
    exact, noise, steps = _next_sum(
        data, rule, public, size=target.size, radius=radius, reservation=reservation, combine=Combine.SUM, l1=True
    )
    return noise.perturb(int(np.abs(exact - target).sum())) / steps


def _next_sum(  # noqa: PLR0913 - as noisy_sum
    data: SummableRows,
    rule: RowRule,
    public: tuple[Any, ...],
    *,
    size: int,
    radius: Number,
    reservation: Reservation,
    combine: Combine,
    blocks: tuple[int, ...] = (),
    l1: bool = False,
) -> tuple[np.ndarray, Noise, float]:
    """Return an exact sum, the noise to add and the steps per unit of the rule's numbers.

    Claim: nothing is raised that depends on private rows but a fixed message, and the noise is taken from the
        reservation, so that no other sum gets it. The ball is that of the noise, or the l1 ball.
    Proof: the rule is checked before the noise is taken; every failure after that has the same message (run_charged).
    Needs: PartialSum, check_row_wise, Reservation, Reservation.take_noise, run_charged; `public` contains nothing of
        the data except released values.
    Checked by: test_a_failure_while_summing_says_nothing, test_a_reservation_allows_what_was_charged_and_no_more
    """
    steps = float(CLIP_RADIUS / as_positive(radius, "radius"))
    as_integer(size, "size", minimum=1)
    require(not blocks or (min(blocks) > 0 and sum(blocks) == size), "blocks must have `size` numbers together")
    check_type(Combine, combine, "combine")
    width = check_row_wise(rule, public, data.low, data.high)
    noise = check_type(Reservation, reservation, "reservation").take_noise()
    part = PartialSum(
        rule,
        public,
        data.low,
        data.high,
        data.grouped,
        size,
        width,
        steps,
        l1=l1 or isinstance(noise, Laplace),
        combine=combine,
        blocks=blocks,
    )
    return run_charged("a sum", lambda: _checked_sum(data, part)), noise, steps


def _checked_sum(data: SummableRows, part: "PartialSum") -> np.ndarray:
    total = data.sum_units(part)
    if total.dtype != np.int64 or total.shape != (part.size,):  # numpy would repeat a single integer
        raise TypeError(f"the sum is {total.dtype} of shape {total.shape}")
    return total


@dataclass(frozen=True, eq=False)
class PartialSum:
    """The sum over a share of the rows, computed here or where they are stored: whole units to a vector of integers.

    It consists of plain data, so that it can be sent. `size` is the length of the result, `width` how many numbers the
    rule returns per row; they are multiplied by `steps`.

    Claim: the parts of all shares add up to the sum of one vector of integers per unit, in the ball of radius
        CLIP_RADIUS (in l1 or l2), which is a function of the unit's own rows and of `public`, however the units are
        divided into shares and batches.
    Proof: no unit is in two shares (SummableRows), nor in two batches (_with_unit_starts). `rule` gives each row the
        same result, whatever the other rows are. _sum_vectors and _sum_entries add the integers of a unit's rows
        exactly, so that their order does not matter, and leave a vector in the ball. Integers are summed exactly: those
        of a batch in floats below 2^53, as 2^33 vectors of the ball are, then in 64 bits, which hold those of
        MAX_UNITS units.
    Needs: check_row_wise, _sum_vectors, _sum_entries, _with_unit_starts; sum_units divides by whole units and computes
        alike everywhere, and there are at most MAX_UNITS units.
    Checked by: test_partial_sums_of_whole_units_add_up_to_the_same_integers,
        test_batches_and_order_do_not_change_a_sum, test_what_a_unit_adds_does_not_depend_on_others,
        test_sums_of_the_maximum_number_of_units_fit_into_64_bits,
        test_rows_of_several_per_unit_need_the_number_of_each_unit
    """

    rule: RowRule
    public: tuple[Any, ...]
    low: np.ndarray
    high: np.ndarray
    grouped: bool
    size: int
    width: int
    steps: float
    l1: bool
    combine: Combine
    blocks: tuple[int, ...] = ()

    def __call__(self, batches: Iterable[Batch]) -> np.ndarray:
        """Return the sum over these units; warnings of numpy, which could disclose a row, are suppressed."""
        total = np.zeros(self.size, np.int64)
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for rows, starts in _with_unit_starts(batches, grouped=self.grouped):
                counts = np.diff(np.append(starts, len(rows)))
                output = self.rule(rows, self.public)  # kept alive until the next batch, so that its memory is reused
                total += (
                    _sum_entries(self, counts, *output)
                    if isinstance(output, tuple)
                    else _sum_vectors(self, counts, output, starts)
                ).astype(np.int64)
        return total


def _with_unit_starts(batches: Iterable[Batch], *, grouped: bool) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield rows with the indices where units start; an error unless each unit's rows are consecutive, in one batch."""
    last_unit = -1
    for rows, units in batches:
        numbers = units if grouped else np.arange(len(rows)) + last_unit + 1
        if numbers is None or len(numbers) != len(rows):
            raise ValueError("data: if a unit may have several rows, each row must have the number of its unit")
        steps = np.diff(numbers, prepend=last_unit)
        if (steps[:1] <= 0).any() or (steps < 0).any():
            raise ValueError("data: the rows of a unit must be consecutive and in one batch")
        if len(rows):
            last_unit = numbers[-1]
            yield np.asfortranarray(rows, np.float64), np.flatnonzero(steps)


def _sum_vectors(part: PartialSum, counts: np.ndarray, output: Any, starts: np.ndarray) -> np.ndarray:
    """Return the sum of vectors that are clipped to the ball, first per row, then per unit."""
    vectors = _clip_to_ball(_checked_output(output, (counts.sum(), part.size)) * part.steps, l1=part.l1)
    if part.grouped:  # even units with one row, so that their contribution does not depend on other units
        vectors = np.add.reduceat(vectors, starts, axis=0)
        if part.combine is Combine.MEAN:
            vectors /= counts[:, np.newaxis]
        vectors = _clip_to_ball(vectors, l1=part.l1)
    return np.asarray(vectors.sum(axis=0))


def _sum_entries(part: PartialSum, counts: np.ndarray, indices: Any, numbers: Any) -> np.ndarray:
    """Return the sum of sparse vectors, each unit's clipped to the ball.

    Claim: one vector of integers of the ball is added for each unit, a function of its own rows.
    Proof: a row has at most one number in each block, so the norm of its vector is at most that of its numbers. If each
        of the r rows of each unit is within an r-th of the ball, all units are in the ball by the triangle inequality,
        and _sum_clipped_entries would change none of them. Else it clips.
    Needs: _sum_clipped_entries, _vector_norms, _is_in_ball, _checked_output.
    Checked by: test_one_unit_moves_a_sum_by_the_ball_at_most, test_what_a_unit_adds_does_not_depend_on_others,
        test_a_batch_with_a_clipped_unit_counts_the_others_alike
    """
    shape = int(counts.sum()), np.shape(indices)[1]
    rows_of_unit = np.repeat(counts, counts) if part.grouped else np.ones(1)
    lengths = np.array(part.blocks or [part.size // shape[1]] * shape[1])
    indices = _checked_output(indices, shape, np.int64)
    indices = np.where((indices >= 0) & (indices < lengths), indices, lengths)  # the last is not counted
    numbers = _checked_output(numbers, (shape[0], np.shape(numbers)[1])) * part.steps
    numbers = np.rint(np.clip(np.where(np.isfinite(numbers), numbers, 0), -CLIP_RADIUS, CLIP_RADIUS))
    if part.combine is Combine.MEAN:
        numbers = np.trunc(numbers / rows_of_unit[:, np.newaxis])
    norms = _vector_norms(numbers, l1=part.l1) * (shape[1] // numbers.shape[1])
    numbers = np.broadcast_to(numbers, shape)
    if _is_in_ball(norms * rows_of_unit * (1 if part.l1 else rows_of_unit), l1=part.l1).all():
        columns = zip(indices.T, numbers.T, lengths + 1, strict=True)
        return np.concatenate([*(np.bincount(*column)[:-1] for column in columns), np.zeros(part.size - lengths.sum())])
    return _sum_clipped_entries(part, np.repeat(np.arange(len(counts)), counts), indices, numbers, lengths)


def _sum_clipped_entries(
    part: PartialSum, units: np.ndarray, indices: np.ndarray, numbers: np.ndarray, lengths: np.ndarray
) -> np.ndarray:
    """Sum the numbers per unit and index, clip each unit's vector to the ball, and return the sum of all units.

    Claim: the norm of a unit's integers is at most CLIP_RADIUS, exactly; a vector in the ball is not changed.
    Proof: as for _clip_to_ball, with norms per unit; each index of a unit occurs once, after np.unique.
    Needs: _is_in_ball, _shrink_factors.
    Checked by: test_one_unit_moves_a_sum_by_the_ball_at_most,
        test_the_ball_holds_even_if_the_shrinking_of_sparse_vectors_is_wrong
    """
    keys = units[:, np.newaxis] * part.size + indices % lengths + np.cumsum(lengths) - lengths
    entries, position = np.unique(keys, return_inverse=True)
    sums = np.bincount(position.ravel(), np.where(indices < lengths, numbers, 0).ravel())
    units, places = np.divmod(entries, part.size)
    norms = np.bincount(units, np.abs(sums) if part.l1 else sums * sums)
    shrink = np.where(_is_in_ball(norms, l1=part.l1), 1.0, _shrink_factors(norms, np.bincount(units), l1=part.l1))
    sums = np.rint(sums * shrink[units])
    norms = np.bincount(units, np.abs(sums) if part.l1 else sums * sums)
    sums[~_is_in_ball(norms, l1=part.l1)[units]] = 0
    return np.bincount(places, sums, part.size)


def _clip_to_ball(vectors: np.ndarray, *, l1: bool) -> np.ndarray:
    """Clip vectors, in grid steps, to the ball and round them to integers; vectors that are not finite become zero.

    Claim: every returned vector consists of integers and has a norm of at most CLIP_RADIUS, exactly.
    Proof: vectors are shrunk in floats so that rounding leaves them inside, which matters only for accuracy. Afterwards
        the norm is computed from integers, exactly as long as it is below 2^53, and a sum above that is beyond
        CLIP_RADIUS² all the more; whatever is not surely inside becomes zero, including NaN, which compares false.
    Needs: _vector_norms, _is_in_ball, _shrink_factors.
    Checked by: test_clipped_vectors_are_integers_within_the_ball
    """
    vectors *= _shrink_factors(_vector_norms(vectors, l1=l1), vectors.shape[1], l1=l1)[:, np.newaxis]
    np.rint(vectors, out=vectors)
    vectors[~_is_in_ball(_vector_norms(vectors, l1=l1), l1=l1)] = 0
    return vectors


def _vector_norms(vectors: np.ndarray, *, l1: bool) -> np.ndarray:
    """Return the l1 or squared l2 norms, summed column by column, so that no norm depends on other rows."""
    total = np.zeros(len(vectors))
    for numbers in vectors.T:
        total += np.abs(numbers) if l1 else numbers * numbers
    return total


def _shrink_factors(norms: np.ndarray, sizes: Any, *, l1: bool) -> np.ndarray:
    """Return factors that leave vectors with these norms in the ball even after each of their numbers is rounded."""
    radius = np.maximum(CLIP_RADIUS - 1 - (sizes / 2 if l1 else np.sqrt(sizes) / 2), 0)
    return np.asarray(np.minimum(1.0, radius / (norms if l1 else np.sqrt(norms))))


def _is_in_ball(norms: np.ndarray, *, l1: bool) -> np.ndarray:
    """Return which norms, l1 or squared l2, are within the ball; NaN is not."""
    return norms <= (CLIP_RADIUS if l1 else CLIP_RADIUS * CLIP_RADIUS)


def _checked_output(output: Any, shape: tuple[int, ...], dtype: type = np.float64) -> np.ndarray:
    numbers = np.asarray(output)
    if numbers.shape != shape or numbers.dtype.kind not in ("i" if dtype is np.int64 else "fi"):
        raise TypeError(f"rule must return a numeric array of shape {shape}")
    return numbers.astype(dtype, copy=False)


def check_row_wise(rule: RowRule, public: tuple[Any, ...], low: np.ndarray, high: np.ndarray) -> int:
    """Return how many numbers a rule gives per row; raise an error unless each row's are the same whatever the others.

    Claim: a rule that passes is a plain function, as are those that it is given in `public`; its only inputs are rows
        and `public`. On the test points of the declared box, each row's result does not depend on the number, the order
        or the values of the others, to the last bit.
    Proof: no closure, no defaults; the same points are evaluated all at once, in reverse, together with others and one
        by one, and the results are compared bit by bit. The points are public, so an error discloses nothing. This is
        a test, not a proof that the rule is row-wise everywhere; the tests of every model repeat it on many points.
    Needs: _test_points, _apply_rule.
    Checked by: test_a_rule_that_mixes_rows_is_stopped_before_anything_is_charged, test_a_rule_cannot_capture_data
    """
    for function in (rule, *filter(callable, public)):
        if not isinstance(function, FunctionType) or any(
            (function.__closure__, function.__defaults__, function.__kwdefaults__)
        ):
            raise TypeError("rule must be a module-level function without closure or defaults; pass values in `public`")
    points, order = _test_points(low, high), np.arange(_TEST_POINTS)
    expected = _apply_rule(rule, points, public)
    batches = (order[::-1], np.concatenate([order, order[::3], order]), *(order[[row]] for row in (0, 1, 7, -1)))
    if any(_apply_rule(rule, points[rows], public).tobytes() != expected[rows].tobytes() for rows in batches):
        raise ValueError("rule: the result of a row depends on other rows. Use elementwise operations on columns only.")
    return len(expected[0])


def _test_points(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return points of the box that do not depend on data: its ends, its middle, and scattered points."""
    rows, columns = np.ogrid[:_TEST_POINTS, : len(low)]
    points = low + (0.618033988749895 * rows + 0.7548776662466927 * columns) % 1 * (high - low)
    points[0], points[1], points[2] = low, high, (low + high) / 2
    return np.asarray(points)


def _apply_rule(rule: RowRule, points: np.ndarray, public: tuple[Any, ...]) -> np.ndarray:
    """Return the results of a rule, one row per point; several arrays are put side by side."""
    with np.errstate(all="ignore"):
        output = rule(np.asfortranarray(points), public)
    parts = output if isinstance(output, tuple) else (output,)
    require(all(np.shape(part)[:1] == (len(points),) for part in parts), "rule must return one result per row")
    return np.concatenate([np.reshape(part, (len(points), -1)).astype(np.float64) for part in parts], axis=1)
