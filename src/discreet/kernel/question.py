"""Questions: totals of a relation by group, with contribution bounds and hence a sensitivity.

A unit with more than `rows` rows in a group is scaled down to the weight of so many, and one in more than `groups`
groups to the weight of so many groups: cheaper than choosing some, with the same expectation and no chance in it.
"""

from dataclasses import dataclass, field
from math import prod

from discreet.kernel.expr import Expr, Type, Value, check_value, expanded_size
from discreet.kernel.grid import Grid
from discreet.kernel.mechanism import Sensitivity
from discreet.kernel.numbers import as_integer
from discreet.kernel.relation import MAX_SUM, MAX_WORK, NamedExprs, Relation, check_columns_exist, derived_schema

_MAX_CELLS = 1 << 20
_NO_PORTABLE_TEXT = (Type.REAL, Type.TIMESTAMP)  # engines do not agree on how these are written


@dataclass(frozen=True)
class Count:
    """How many rows; with an expression, those where it is not NULL."""

    expr: Expr | None = None


@dataclass(frozen=True)
class CountUnits:
    """How many units; with an expression, those with a row where it is not NULL."""

    expr: Expr | None = None


@dataclass(frozen=True)
class Sum:
    """The sum of an expression's steps on a grid, of their first or second power, each less a constant."""

    expr: Expr
    grid: Grid
    power: int = 1
    shift: int = 0

    def __post_init__(self) -> None:
        if self.expr.type not in (Type.INTEGER, Type.REAL) or self.power not in (1, 2):
            raise ValueError("a sum takes a number, and its first or second power")
        object.__setattr__(self, "shift", as_integer(self.shift, "shift", minimum=-MAX_SUM))


@dataclass(frozen=True)
class CountDistinct:
    """How many different values; of a unit with too many, some count, chosen by a hash of the unit and the value."""

    expr: Expr

    def __post_init__(self) -> None:
        if self.expr.type in _NO_PORTABLE_TEXT:
            raise ValueError("different values are counted of integers, texts, dates and booleans alone")


@dataclass(frozen=True)
class HistogramTree:
    """How many rows have each value of a list, or lie at each step of a grid, and in each branch of a tree above.

    The cells are the leaves of a tree of `depth` levels in which every node has `branching` children.
    """

    expr: Expr
    domain: Grid | tuple[Value, ...]
    branching: int
    depth: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "branching", as_integer(self.branching, "branching", minimum=1))
        object.__setattr__(self, "depth", as_integer(self.depth, "depth", minimum=1))
        if isinstance(self.domain, Grid):
            if self.expr.type not in (Type.INTEGER, Type.REAL):
                raise ValueError("a grid takes a number")
        elif len(set(self.domain)) != len(self.domain) or None in self.domain:
            raise ValueError("places must be a list of values, none of them NULL or twice")
        else:
            for value in self.domain:
                check_value(value, self.expr.type)
        if not 0 < self.cell_count <= self.branching**self.depth <= _MAX_CELLS:
            raise ValueError(f"fan and depth must make a leaf for every cell, and at most {_MAX_CELLS:,} of them")

    @property
    def cell_count(self) -> int:
        """How many cells there are."""
        return self.domain.last - self.domain.first + 1 if isinstance(self.domain, Grid) else len(self.domain)

    @property
    def first_step(self) -> int:
        """The step of the first cell."""
        return self.domain.first if isinstance(self.domain, Grid) else 0


@dataclass(frozen=True)
class ClippedUnits:
    """How many units, in all groups together, have more groups than the limit, or with `by_rows` more rows. One number."""

    by_rows: bool = True
    expr: None = field(init=False, default=None)


Total = Count | CountUnits | Sum | CountDistinct | HistogramTree | ClippedUnits
TOTAL_TYPES = (Count, CountUnits, Sum, CountDistinct, HistogramTree, ClippedUnits)


def max_abs_contribution(total: Total) -> int:
    """Return the largest absolute value that a row can add to a total; at least 1."""
    return max(1, *map(abs, _contribution_range(total)))


def has_one_sign(total: Total) -> bool:
    """Tell whether no two rows can pull a total to different sides of zero."""
    low, high = _contribution_range(total)
    return low >= 0 or high <= 0


def _contribution_range(total: Total) -> tuple[int, int]:
    """Return the least and the greatest value that a row can add."""
    if not isinstance(total, Sum):
        return 0, 1
    low, high = total.grid.first, total.grid.last
    if total.power == 2:
        low, high = (0 if low <= 0 <= high else min(low * low, high * high)), max(low * low, high * high)
    return low - total.shift, high - total.shift


__all__ = [
    "WEIGHT_BITS",
    "ClippedUnits",
    "ContributionBounds",
    "Count",
    "CountDistinct",
    "CountUnits",
    "HistogramTree",
    "PublicGroups",
    "Question",
    "SelectedGroups",
    "Sum",
    "Total",
    "max_abs_contribution",
]

WEIGHT_BITS = 20  # the weight of a unit in many groups is a whole number of 2^-20
_MAX_CONTRIBUTION = 1 << 42  # a unit's weight in a group, so that its product with such a number fits in 64 bits
_MAX_KEYS = 1_000_000
_MAX_TOTALS = 200


@dataclass(frozen=True)
class ContributionBounds:
    """How much a unit may weigh: as much as so many groups, and in each as much as so many rows."""

    groups: int
    rows: int

    def __post_init__(self) -> None:
        for name in ("groups", "rows"):
            value = as_integer(getattr(self, name), name, minimum=1)
            if value > _MAX_CONTRIBUTION:
                raise ValueError(f"{name} must be at most 2^42")
            object.__setattr__(self, name, value)


@dataclass(frozen=True)
class PublicGroups:
    """Keys that the question itself lists: all combinations of one value per column, each shown, and no other."""

    domains: tuple[tuple[Value, ...], ...]

    def __post_init__(self) -> None:
        if any(not domain or len(set(domain)) != len(domain) for domain in self.domains):
            raise ValueError("domains must list values, none of them twice")
        if self.key_count > _MAX_KEYS:
            raise ValueError(f"domains: at most {_MAX_KEYS:,} keys can be listed, not {self.key_count:,}")

    @property
    def key_count(self) -> int:
        """How many keys there are."""
        return prod(map(len, self.domains))


@dataclass(frozen=True)
class SelectedGroups:
    """Keys found in the data, shown above a threshold; a unit in more than `max_groups` groups has no say in which."""

    max_groups: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "max_groups", as_integer(self.max_groups, "max_groups", minimum=1))


@dataclass(frozen=True)
class Question:
    """Totals of a relation by groups.

    >>> from discreet.kernel.expr import Column, Type
    >>> from discreet.kernel.relation import Own, Scan
    >>> user = Column("user", Type.INTEGER)
    >>> visits = Scan("visits", (user,), Own((user,)), max_groups=10**9)
    >>> Question(visits, (), PublicGroups(()), ContributionBounds(groups=1, rows=20), (Count(),)).sensitivity().l1
    20
    """

    relation: Relation
    by: NamedExprs
    groups: PublicGroups | SelectedGroups
    bounds: ContributionBounds
    totals: tuple[Total, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.relation, Relation):
            raise TypeError("relation must be a relation")
        schema = self.relation.shape.schema
        derived_schema(self.by, schema)
        for total in self.totals:
            if not isinstance(total, TOTAL_TYPES):
                raise TypeError("totals must be Count, Units, Sum, Values, Cells or Touched")
            if total.expr is not None:
                check_columns_exist(total.expr, schema)
            self._check_overflow(total)
        exprs = [*(key for _, key in self.by), *(total.expr for total in self.totals if total.expr is not None)]
        shape = self.relation.shape
        if shape.work + sum(expanded_size(expr, shape.column_sizes) for expr in exprs) > MAX_WORK:
            raise ValueError("there is too much to compute for each row: write less")
        if not 0 < len(self.totals) <= _MAX_TOTALS:
            raise ValueError(f"a question has from 1 to {_MAX_TOTALS} totals")
        if isinstance(self.groups, PublicGroups):
            self._check_keys(self.groups)
        elif self.totals[0] != CountUnits() or not self.by:
            raise ValueError("to discover groups, the first total must count their units")
        if any(isinstance(total, ClippedUnits) for total in self.totals) and not self.needs_clipping:
            raise ValueError("no limit can touch a unit that has one row")

    @property
    def needs_clipping(self) -> bool:
        """Whether a unit's rows have to be gathered and bounded; not if it has only one, or each row is a unit."""
        return self.relation.shape.unit is not None and self.relation.shape.max_rows_per_unit != 1

    @property
    def max_groups_per_unit(self) -> int | None:
        """In how many groups a unit can be at most, before it is bounded; None if nobody knows."""
        limits = [self.relation.shape.max_rows_per_unit] if self.relation.shape.max_rows_per_unit is not None else []
        return min([*limits, self.groups.key_count] if isinstance(self.groups, PublicGroups) else limits, default=None)

    @property
    def needs_l0_clipping(self) -> bool:
        """Whether units can be in more groups than the limit."""
        return self.needs_clipping and (
            self.max_groups_per_unit is None or self.max_groups_per_unit > self.bounds.groups
        )

    @property
    def l0_bound(self) -> int:
        """As many groups as a unit can weigh."""
        return self.bounds.groups if self.needs_l0_clipping else (self.max_groups_per_unit or 1)

    @property
    def max_rows_per_group(self) -> int:
        """As many rows as a unit can weigh in a group."""
        return min(
            self.bounds.rows, self.relation.shape.max_rows_per_unit or self.bounds.rows, self.relation.shape.max_rows
        )

    def fraction_bits(self, total: Total) -> int:
        """Return how many binary places a total has below its step, so that a small weight is not lost."""
        headroom = (
            _MAX_CONTRIBUTION // (self.max_count_per_group(total) * max_abs_contribution(total)),
            (MAX_SUM - 1) // (self.relation.shape.max_rows * max_abs_contribution(total)),
        )
        if isinstance(total, CountDistinct | ClippedUnits) or not self.needs_clipping:
            return 0
        # A single row may weigh less than one in a cell; elsewhere only a unit in too many groups has such weights.
        return (
            min(WEIGHT_BITS, min(headroom).bit_length() - 1)
            if self.needs_l0_clipping or isinstance(total, HistogramTree)
            else 0
        )

    def max_count_per_group(self, total: Total) -> int:
        """Return how many rows, or units, a unit counts for in a group."""
        return 1 if isinstance(total, CountUnits | ClippedUnits) else self.max_rows_per_group

    def sensitivity_of(self, total: Total) -> Sensitivity:
        """Return how far one unit can move the vector of this total over all groups.

        Claim: removing a unit's rows moves the totals by at most groups·size in l1 and groups·size² in squared l2.
        Proof: each row of the relation depends on its own unit's rows alone, so only terms of this unit change.
            Unbounded: the unit has at most `max_rows_per_unit` rows, each moves one group by at most highest(total); groups = 1,
            size = copies·highest covers them wherever they are. Bounded: its term in a group is at most rows·highest,
            since m of its values sum to at most m·highest and are scaled by rows/m where m > rows; in k > groups
            groups each term is multiplied by at most groups/k and truncated towards zero, so that k terms have
            l1 <= groups·size and squared l2 <= groups²·size²/k <= groups·size². With k <= groups there are at most
            `l0_bound` terms. Values: a unit's different values number at most rows in a group and groups·rows in all,
            each adds one or nothing; at most `rows` in each of them is farthest, with squared l2 groups·rows². Cells:
            a row is in one cell of each level, with the weight that it has in a count; the weights of a group's cells
            have the l1 of its count, and a squared l2 of at most its square, on each of `depth` levels. Touched: a
            unit is one or none.
        Needs: the relations' ownership, Grid.index, render and gather (the engine computes exactly these terms).
        Checked by: test_removing_a_unit_moves_totals_by_at_most_the_sensitivity, test_the_engine_equals_the_reference,
            test_removing_a_unit_moves_cells_values_and_touched_by_at_most_the_sensitivity
        Seal: 786e76bcaed3
        """
        if isinstance(total, ClippedUnits):
            return Sensitivity(1, 1)
        if not self.needs_clipping:
            per_level = Sensitivity(1, (self.relation.shape.max_rows_per_unit or 1) * max_abs_contribution(total))
        else:
            per_level = Sensitivity(
                self.l0_bound,
                self.max_count_per_group(total) * max_abs_contribution(total) << self.fraction_bits(total),
            )
        levels = total.depth if isinstance(total, HistogramTree) else 1
        return per_level if levels == 1 else Sensitivity.of_norms(levels * per_level.l1, levels * per_level.l2_squared)

    def sensitivity(self, *, substitution: bool = False) -> Sensitivity:
        """Return how far one unit can move all totals together, each in its own steps.

        Claim: a bound of l1 and squared l2 for removing a unit, or for replacing it by another.
        Proof: norms of the parts add. Replacing removes one unit and adds another: twice the l1. In a group where
            both are, a term moves by at most the width of its values (one size if they have one sign, else two); where
            one is, by at most its size: squared l2 is at most the larger of twice the one and once the other. Two
            units may be in two cells of one group, so cells are like groups.
        Needs: sensitivity_of.
        Checked by: test_replacing_a_unit_costs_a_count_once_and_a_histogram_twice
        Seal: b7ae91384ab7
        """
        parts = [
            self._substitution_sensitivity(total) if substitution else self.sensitivity_of(total)
            for total in self.totals
        ]
        return Sensitivity.of_norms(sum(part.l1 for part in parts), sum(part.l2_squared for part in parts))

    def _substitution_sensitivity(self, total: Total) -> Sensitivity:
        removal = self.sensitivity_of(total)
        width = 1 if has_one_sign(total) else 2
        if (
            isinstance(self.groups, PublicGroups)
            and self.groups.key_count == 1
            and not isinstance(total, HistogramTree)
        ):
            return Sensitivity(1, width * removal.l1)
        return Sensitivity.of_norms(2 * removal.l1, max(2, width * width) * removal.l2_squared)

    def _check_keys(self, groups: PublicGroups) -> None:
        if len(groups.domains) != len(self.by):
            raise ValueError("domains must list the values of every key")
        for (_, key), domain in zip(self.by, groups.domains, strict=True):
            for value in domain:
                check_value(value, key.type)

    def _check_overflow(self, total: Total) -> None:
        """Stop if any sum on the way could exceed 64 bits, with as many rows as the owner allows."""
        rows, max_abs = self.relation.shape.max_rows, max_abs_contribution(total)
        if (
            rows * max_abs >= MAX_SUM
            or self.max_count_per_group(total) * max_abs > _MAX_CONTRIBUTION
            or rows * self.max_rows_per_group >= MAX_SUM
        ):
            raise ValueError("the sum could exceed 64 bits: use a coarser step, a lower rows_max, or fewer rows a unit")
