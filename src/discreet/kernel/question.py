"""Questions: totals of a relation by group, with contribution bounds and hence a sensitivity.

A unit's contributions to a total, one term per group, are scaled down together into a norm ball. This is cheaper than
sampling rows or groups, and deterministic.
"""

from dataclasses import dataclass
from math import isqrt, prod

from discreet.kernel.ball import WEIGHT_BITS, Ball, Norm, ball_for
from discreet.kernel.errors import require
from discreet.kernel.expr import NamedExprs, Value, check_columns_exist, derived_schema
from discreet.kernel.mechanism import Sensitivity
from discreet.kernel.numbers import check_type, store_integer
from discreet.kernel.relation import MAX_SUM, Relation
from discreet.kernel.totals import (
    Count,
    CountUnits,
    HistogramTree,
    SelectionWeight,
    Sum,
    Total,
    check_values,
    max_abs_contribution,
)

GroupKey = tuple[Value, ...]

_MAX_CONTRIBUTION = 1 << 42  # of a unit in a group, so that its product with a weight fits in 64 bits
_MAX_KEYS = 1_000_000
_MAX_TOTALS = 200


@dataclass(frozen=True)
class ContributionBounds:
    """Contribution bounds of a unit: terms of `rows` rows in each of `groups` groups give the radius of the ball.

    With `cap_rows` a term is first limited to that of `rows` rows; without it, one group may take up the whole radius.
    """

    groups: int
    rows: int
    norm: Norm = Norm.L1
    cap_rows: bool = False

    def __post_init__(self) -> None:
        for name in ("groups", "rows"):
            require(store_integer(self, name) <= _MAX_CONTRIBUTION, f"{name} must be at most 2^42")
        check_type(Norm, self.norm, "norm")
        check_type(bool, self.cap_rows, "cap_rows")


@dataclass(frozen=True)
class PublicGroups:
    """Public keys: all combinations of one value per column; exactly these are shown."""

    domains: tuple[tuple[Value, ...], ...]

    def __post_init__(self) -> None:
        require(
            all(domain and len(set(domain)) == len(domain) for domain in self.domains),
            "domains must list distinct values, at least one per key",
        )
        require(
            self.key_count <= _MAX_KEYS,
            f"domains must have at most {_MAX_KEYS:,} combinations, not {self.key_count:,}",
        )

    @property
    def key_count(self) -> int:
        """The number of keys."""
        return prod(map(len, self.domains))


@dataclass(frozen=True)
class SelectedGroups:
    """Keys from the data, shown above a threshold; a unit in more than `max_groups` groups does not count for it.

    Keys that were `shown` in an earlier round are left out of the next one.
    """

    max_groups: int
    shown: tuple[GroupKey, ...] = ()

    def __post_init__(self) -> None:
        store_integer(self, "max_groups")


@dataclass(frozen=True)
class Question:
    """Totals of a relation by group.

    >>> from discreet.kernel.expr import Column, Type
    >>> from discreet.kernel.relation import Scan, UnitKey
    >>> user = Column("user", Type.INTEGER)
    >>> visits = Scan("visits", (user,), UnitKey((user,)), max_rows=10**9)
    >>> Question(visits, (), PublicGroups(()), ContributionBounds(groups=1, rows=20), (Count(),)).sensitivity().l1
    20

    Claim: no number of an engine exceeds 64 bits, whatever the rows, as long as there are at most `max_rows`.
    Proof: a step, its square and the shift are below 2^62 (Sum). Let `max` be max_abs_contribution(total). Sums of row
        values, over a unit's rows or all rows, are at most max_rows·max < 2^62. A term that keeps its full weight of
        2^20 is at most _largest_term <= 2^42, one with a smaller weight has a product below 2^20 times the radius
        (Ball.weight_numerator), and sums of |y| or y² are below 2^63 (ball_for). With a cap, the remainder of a sum's
        division by m <= max_rows, times rows, is below max_rows·rows < 2^62. A selection weight is at most 2^bits, the
        root of 4^bits <= 2^40. `fraction_bits` more bits keep these products within their limits, since each is the
        number by which the limit exceeds the product.
    Needs: Sum, max_abs_contribution, Question.fraction_bits, Question.ball_of, Ball.weight_numerator, ball_for,
        ContributionBounds, store_integer; `max_rows` is a bound on the number of rows.
    Checked by: test_no_intermediate_value_exceeds_64_bits, test_too_wide_a_sum_is_refused,
        test_a_square_or_a_shift_that_could_exceed_64_bits_is_refused
    """

    relation: Relation
    by: NamedExprs
    groups: PublicGroups | SelectedGroups
    bounds: ContributionBounds
    totals: tuple[Total, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.relation, Relation):
            raise TypeError(f"relation must be a Relation, not {type(self.relation).__name__}")
        check_type(ContributionBounds, self.bounds, "bounds")
        derived_schema(self.by, self.relation.shape.schema)
        for total in self.totals:
            self._check_total(total)
        require(0 < len(self.totals) <= _MAX_TOTALS, f"a question must have 1 to {_MAX_TOTALS} totals")
        if isinstance(self.groups, PublicGroups):
            require(len(self.groups.domains) == len(self.by), "domains must have one list of values per key")
            for (_, key), domain in zip(self.by, self.groups.domains, strict=True):
                check_values(domain, key)
        else:
            require(
                not check_type(SelectedGroups, self.groups, "groups").shown or len(self.totals) == 1,
                "a later round of partition selection has no other totals",
            )
        # Without a threshold, keys from the data would be disclosed.
        require(
            [isinstance(total, SelectionWeight) for total in self.totals]
            == [isinstance(self.groups, SelectedGroups) and bool(self.by), *[False] * (len(self.totals) - 1)],
            "partition selection needs a key, and a selection weight as the first total; nothing else has one",
        )

    def _check_total(self, total: Total) -> None:
        """Raise an error unless this is a total of existing columns, none of whose sums can exceed 64 bits."""
        if not isinstance(total, Total):
            raise TypeError(f"totals must not contain {type(total).__name__}")
        if total.expr is not None:
            check_columns_exist(total.expr, self.relation.shape.schema)
        require(
            not (self.bounds.cap_rows and isinstance(total, Sum) and total.max_term),
            "max_term needs a ball of the sum itself, so rows must not be capped",
        )
        most = max_abs_contribution(total)
        require(
            self.relation.shape.max_rows * max(most, self.max_rows_per_group) < MAX_SUM
            and self._largest_term(total) <= _MAX_CONTRIBUTION,
            "the sum could exceed 64 bits. Use a larger step, a lower rows_max, or fewer rows per unit.",
        )
        self.ball_of(total)

    @property
    def needs_clipping(self) -> bool:
        """Whether contributions must be clipped; not if each unit has only one row, or each row is its own unit."""
        return self.relation.shape.unit is not None and self.relation.shape.max_rows_per_unit != 1

    @property
    def max_groups_per_unit(self) -> int | None:
        """Maximum number of groups of a unit before clipping; None if unbounded."""
        limits = [self.relation.shape.max_rows_per_unit]
        limits += [self.groups.key_count] if isinstance(self.groups, PublicGroups) else []
        return min((limit for limit in limits if limit is not None), default=None)

    @property
    def needs_l0_clipping(self) -> bool:
        """Whether units can be in more groups than the bound."""
        most = self.max_groups_per_unit
        return self.needs_clipping and (most is None or most > self.bounds.groups)

    @property
    def l0_bound(self) -> int:
        """Maximum number of groups one unit contributes to (l0 bound).

        Claim: a unit that is not clipped by groups has rows in at most this many groups.
        Proof: each row is in one group, and only public groups count if they are listed; so `max_groups_per_unit`
            bounds their number. With clipping by groups, a unit in more than bounds.groups groups is clipped.
        Needs: PublicGroups.key_count, Question.needs_l0_clipping, Question.max_groups_per_unit, ContributionBounds.
        Checked by: test_the_l0_bound_is_at_most_the_number_of_listed_keys,
            test_removing_a_unit_moves_totals_by_at_most_the_sensitivity
        """
        return self.bounds.groups if self.needs_l0_clipping else (self.max_groups_per_unit or 1)

    @property
    def max_selection_keys(self) -> int:
        """Maximum number of keys of a unit that counts in partition selection."""
        assert isinstance(self.groups, SelectedGroups)
        return min(self.groups.max_groups, self.max_groups_per_unit or self.groups.max_groups)

    @property
    def max_rows_per_group(self) -> int:
        """Maximum number of rows one unit contributes to a group."""
        rows, shape = self.bounds.rows, self.relation.shape
        return min(rows, shape.max_rows_per_unit or rows, shape.max_rows)

    def caps_terms(self, total: Total) -> bool:
        """Return whether a unit's term in one group is at most that of `rows` rows, or one for a unit."""
        return self.bounds.cap_rows or not isinstance(total, Count | Sum)

    def max_term(self, total: Total) -> int:
        """Return the term of a unit with `rows` rows of the largest contribution, or of one unit, in one group.

        A sum can have a limit of its own instead, unless terms are capped by rows.
        """
        if isinstance(total, Sum) and total.max_term is not None:
            return total.max_term
        counts_units = isinstance(total, CountUnits | SelectionWeight)
        return (1 if counts_units else self.max_rows_per_group) * max_abs_contribution(total)

    def _largest_term(self, total: Total) -> int:
        """Return a bound on the term of a unit within the bounds, whatever the number of its groups."""
        return self.max_term(total) * (1 if self.caps_terms(total) else self.bounds.groups)

    def needs_ball(self, total: Total) -> bool:
        """Return whether the terms of a unit may exceed the ball although each of them is limited."""
        if not isinstance(total, Count | CountUnits | Sum):
            return False
        return self.needs_l0_clipping if self.caps_terms(total) else self.needs_clipping and self._max_terms > 1

    @property
    def _max_terms(self) -> int:
        return self.max_groups_per_unit or self.relation.shape.max_rows

    def term_bits(self, total: Total) -> int:
        """Return the number of fractional bits of a unit's terms before they are weighted."""
        return self.fraction_bits(total) if isinstance(total, Sum) and self.caps_terms(total) else 0

    def weighs_by_rows(self, total: Total) -> bool:
        """Return whether a unit's weight is that of its row counts, so that a mean has one weight above and below."""
        return self.bounds.cap_rows and isinstance(total, Count | Sum)

    def ball_of(self, total: Total) -> Ball | None:
        """Return the ball that determines a unit's weight: of its terms, or of its row counts; None if not needed."""
        if not self.needs_ball(total):
            return None
        measured = Count() if self.weighs_by_rows(total) else total
        size, largest_sum = self.max_term(measured), self.relation.shape.max_rows * max_abs_contribution(measured)
        return ball_for(self.bounds.norm, size, self.l0_bound, max_sum=largest_sum, max_terms=self._max_terms)

    def fraction_bits(self, total: Total) -> int:
        """Return the number of fractional bits of a total, which keep small weights from being rounded to zero."""
        # In a cell even a single row may have a weight below 1, in partition selection every unit with two keys.
        has_weights = self.needs_ball(total) or (
            self.needs_clipping and isinstance(total, HistogramTree | SelectionWeight)
        )
        if not has_weights:
            return 0
        most, rows = max_abs_contribution(total), self.relation.shape.max_rows
        headroom = min(_MAX_CONTRIBUTION // self._largest_term(total), (MAX_SUM - 1) // (rows * most))
        return min(WEIGHT_BITS, headroom.bit_length() - 1)

    def sensitivity_of(self, total: Total) -> Sensitivity:
        """Return the sensitivity of one total as a vector over all groups.

        Claim: removing a unit's rows moves the totals by at most this in l1 and in squared l2.
        Proof: the relation preserves ownership, so only terms of this unit change. Without clipping it has at most
            `max_rows_per_unit` rows, each of which moves one group by at most `max` = max_abs_contribution(total): one
            group with all of them is the worst. With clipping let size be max_term. Terms of a unit are scaled into the
            ball with an l1 norm of l0_bound·size, or a squared l2 norm of l0_bound·size², and truncated towards zero;
            k terms have an l1 norm of at most sqrt(k) times their l2 norm. With cap_rows the weight scales the unit's
            row counts, each at most rows, into the ball of counts; a term is at most max times the row count of its
            group, so the same weight scales the terms into a ball that is larger by max, and size is rows·max, as no
            sum has a limit of its own then. Without a ball there are at
            most `l0_bound` terms, each at most size. CountDistinct: at most rows values of a unit count in a group and
            groups·rows in total, each as one or nothing; squared l2 is largest with rows in each of groups groups.
            HistogramTree: on each level the weights of a group's nodes sum to at most size, or groups/k of that in
            k > groups groups, and their squares to at most the square of that. SelectionWeight: a unit with k keys
            adds floor(sqrt(size²/k)) to each, so at most size² in squared l2 and size·sqrt(k) in l1, with k at most
            `max_selection_keys`, or nothing.
        Needs: Scan, Where, Derive, JoinPublic, JoinOnUnit, SemiJoinOnUnit, PerUnit, NumberRows, Union,
            max_abs_contribution, Count, CountUnits, Sum, CountDistinct, HistogramTree, SelectionWeight,
            Question.l0_bound, Question.max_rows_per_group, Question.max_term, Question.ball_of,
            Question.weighs_by_rows, ball_for, Ball.weight_numerator, Question.max_selection_keys,
            Question.fraction_bits, select_counts_and_sums, select_cell_counts, select_distinct_counts,
            select_key_weights.
        Checked by: test_removing_a_unit_moves_totals_by_at_most_the_sensitivity, test_the_engine_equals_the_reference,
            test_removing_a_unit_moves_cells_and_distinct_values_by_at_most_the_sensitivity,
            test_a_unit_attains_the_sensitivity
        """
        bits = self.fraction_bits(total)
        if not self.needs_clipping:
            one_level = Sensitivity(1, (self.relation.shape.max_rows_per_unit or 1) * max_abs_contribution(total))
        elif isinstance(total, SelectionWeight):
            one_level = Sensitivity.of_norms(isqrt(self.max_selection_keys << 2 * bits), 1 << 2 * bits)
        else:
            groups, size = self.l0_bound, self.max_term(total) << bits
            one_level = Sensitivity(groups, size)
            if self.needs_ball(total) and self.bounds.norm is Norm.L1:
                one_level = Sensitivity.of_norms(groups * size, (groups * size) ** 2)
            elif self.needs_ball(total):
                square = groups * size**2
                one_level = Sensitivity.of_norms(isqrt(square * self._max_terms), square)
        depth = total.depth if isinstance(total, HistogramTree) else 1
        return Sensitivity.of_norms(depth * one_level.l1, depth * one_level.l2_squared)

    def sensitivity(self) -> Sensitivity:
        """Return the sensitivity of all totals together, each in its own steps.

        Claim: it bounds l1 and squared l2 for the removal of a unit.
        Proof: l1 and squared l2 of the parts add up.
        Needs: Question.sensitivity_of.
        Checked by: test_norms_of_several_totals_add
        """
        parts = [self.sensitivity_of(total) for total in self.totals]
        return Sensitivity.of_norms(sum(part.l1 for part in parts), sum(part.l2_squared for part in parts))
