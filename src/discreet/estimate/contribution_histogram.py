"""Contribution histograms: the number of units by the norm of their contribution, as releases of their own.

A histogram is an ordinary question with one row per unit, hence with a sensitivity of 1. The answer's report on
clipping is computed from it, and with automatic bounds the radius of the ball is chosen from it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt, sqrt

from discreet.kernel.ball import Norm
from discreet.kernel.question import ContributionBounds, Question
from discreet.kernel.totals import Count, CountUnits, Sum

OCTAVE, HALF_OCTAVE = 4, 2  # by which the squared norms of buckets grow
# The total that a histogram is about: of a unit's rows in each group, of the groups it is in, or of its sum in each.
Measured = Count | CountUnits | Sum


@dataclass(frozen=True)
class HistogramTarget:
    """A release that a histogram is about, and the radius to which it clips contributions (None: not chosen yet)."""

    release: str
    radius: float | None


@dataclass(frozen=True)
class ContributionHistogram:
    """What a release measures whose groups are the numbers of buckets.

    Bucket j has units whose norm is at least `lows[j]` and below the next of them, to thirteen digits; the last bucket
    is open. The norm is that of a unit's terms of the `measured` total, of a sum in steps. It has a fixed `share` of
    the cost of the query.
    """

    measured: Measured
    lows: tuple[float, ...]
    share: Fraction
    targets: tuple[HistogramTarget, ...]


@dataclass(frozen=True)
class PossibleContribution:
    """Maximum groups of a unit, and maximum rows in one of them, before clipping; None if unbounded."""

    groups: int | None = None
    rows: int | None = None

    def within(self, groups: int, rows: int) -> tuple[int, int]:
        """Return bounds on groups and rows, or what is possible if that is less."""
        return min(groups, self.groups or groups), min(rows, self.rows or rows)

    def squared_norm(self, norm: Norm, max_rows: int) -> int:
        """Return the largest square of the norm of the row counts of a unit with at most `max_rows` rows."""
        if self.groups is None or self.rows is None:
            return max_rows**2
        return min(max_rows**2, _squared_norm(self.groups, self.rows, norm))


UNBOUNDED = PossibleContribution()


@dataclass(frozen=True)
class AutomaticBounds:
    """Which contribution bounds of a release are chosen from a histogram, and whether that has been done.

    `key` identifies the release in another plan of the same query. A `blind` choice was made without a histogram that
    could tell: then the `declared` bounds are used, if the policy has numbers for all that is chosen.
    """

    key: str
    groups: bool
    rows: bool
    declared: "ChosenBounds | None" = None
    chosen: bool = False
    blind: bool = False

    @property
    def uses_declared(self) -> bool:
        """Whether the choice was blind, and the bounds are the declared ones."""
        return self.blind and self.declared is not None


@dataclass(frozen=True)
class ChosenBounds:
    """Contribution bounds that were chosen from a histogram, or blindly if it was too noisy.

    `sums` has the largest term of each sum with a ball of its own (limited_sums), in steps.
    """

    groups: int
    rows: int
    blind: bool = False
    sums: tuple[int, ...] = ()


def limited_sums(question: Question, automatic: AutomaticBounds | None) -> tuple[int, ...]:
    """Return the indices of the sums whose largest term is chosen automatically, whatever the number of their rows."""
    if automatic is None or not automatic.rows or question.bounds.cap_rows:
        return ()
    return tuple(index for index, total in enumerate(question.totals) if isinstance(total, Sum))


def squared_radius(bounds: ContributionBounds) -> int:
    """Return the square of the radius of the ball, as a norm of row counts.

    >>> squared_radius(ContributionBounds(2, 4, Norm.L2)), squared_radius(ContributionBounds(2, 4, Norm.L1))
    (32, 64)
    """
    return _squared_norm(bounds.groups, bounds.rows, bounds.norm)


def _squared_norm(groups: int, rows: int, norm: Norm) -> int:
    return rows**2 * (groups if norm is Norm.L2 else groups**2)


def effective_bounds(question: Question) -> ContributionBounds:
    """Return the contribution bounds that a question applies: its own, or what is possible if that is less."""
    bounds = question.bounds
    return ContributionBounds(question.l0_bound, question.max_rows_per_group, bounds.norm, bounds.cap_rows)


def bucket_ends(norm: Norm, radius: int, top: int) -> tuple[int, ...]:
    """Return the lower ends of buckets above a radius, as squared l2 norms or as l1 norms, in steps of sqrt(2).

    The radius and `top` are squared norms.

    >>> bucket_ends(Norm.L2, 16, 100), bucket_ends(Norm.L1, 16, 100)
    ((17, 32, 64), (5, 6, 8))
    """
    return _ends(norm, (radius + 1, *(radius * HALF_OCTAVE**power for power in range(1, 128))), top)


def octave_ends(norm: Norm, top: int) -> tuple[int, ...]:
    """Return the lower ends of buckets of all norms, in steps of 2: in smaller ones, noise would hide more.

    >>> octave_ends(Norm.L2, 64), octave_ends(Norm.L1, 64)
    ((1, 4, 16, 64), (1, 2, 4, 8))
    """
    return _ends(norm, (OCTAVE**power for power in range(64)), top)


def _ends(norm: Norm, squares: Iterable[int], top: int) -> tuple[int, ...]:
    first, *others = squares
    kept = [first, *(square for square in others if first < square <= top)]
    ends = kept if norm is Norm.L2 else [isqrt(square - 1) + 1 for square in kept]
    return tuple(dict.fromkeys(ends))


def start_of_buckets(ends: Sequence[int], norm: Norm, factor: int) -> int:
    """Return the squared norm from which the squared lower ends grow by this factor, before they are rounded up.

    >>> start_of_buckets((17, 32, 64), Norm.L2, HALF_OCTAVE), start_of_buckets((3, 4, 6, 8), Norm.L1, HALF_OCTAVE)
    (16, 8)
    """
    squares = ends if norm is Norm.L2 else [end * end for end in ends]
    return min(int(square // factor**index) for index, square in enumerate(squares))


def as_measured(square: int, norm: Norm) -> float:
    """Return a squared norm as a histogram measures norms: an l2 norm stays squared, an l1 norm does not."""
    return float(square) if norm is Norm.L2 else sqrt(square)


def norm_of(end: int, norm: Norm) -> float:
    """Return the norm for the end of a bucket."""
    return sqrt(end) if norm is Norm.L2 else float(end)


def bounds_for_radius(
    radius: float, norm: Norm, *, groups: int | None = None, rows: int | None = None
) -> tuple[int, int]:
    """Return the contribution bounds (groups, rows) of a ball of at least this radius; those that are given stay.

    An l2 radius is rounded up to a power of sqrt(2) and is rows·sqrt(groups); an l1 radius is rows·groups.

    >>> bounds_for_radius(8, Norm.L2), bounds_for_radius(8 * 2**0.5, Norm.L2), bounds_for_radius(8, Norm.L2, groups=4)
    ((1, 8), (2, 8), (4, 4))
    >>> bounds_for_radius(8, Norm.L2, rows=1), bounds_for_radius(8, Norm.L1), bounds_for_radius(8, Norm.L1, groups=3)
    ((64, 1), (1, 8), (3, 3))
    """
    if norm is Norm.L1:
        whole = _round_up(radius)
        if rows is not None:
            return groups or -(-whole // rows), rows
        return groups or 1, -(-whole // (groups or 1))
    square = 1 << _round_up_power(radius)
    if rows is not None:
        return groups or -(-square // rows**2), rows
    if groups is not None:
        return groups, isqrt((square - 1) // groups) + 1
    power = square.bit_length() - 1
    return 1 + power % 2, 1 << power // 2


_SLACK = 1 - 1e-9  # a radius on the ladder is a float


def _round_up(radius: float) -> int:
    return max(1, -int(-radius * _SLACK // 1))


def _round_up_power(radius: float) -> int:
    """Return the smallest power of sqrt(2) that is at least a radius."""
    return next(power for power in range(128) if sqrt(2.0**power) >= radius * _SLACK)


def merge_targets(histograms: Sequence[ContributionHistogram]) -> ContributionHistogram:
    """Return equal histograms as one that is about all of their targets, for the largest of their shares."""
    first = histograms[0]
    targets = dict.fromkeys(target for histogram in histograms for target in histogram.targets)
    share = max(histogram.share for histogram in histograms)
    return ContributionHistogram(first.measured, first.lows, share, tuple(targets))
