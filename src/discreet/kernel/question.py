"""Questions: totals of a relation by group, with contribution bounds and hence a sensitivity.

A unit with more than `rows` rows in a group is scaled down to the weight of `rows` rows, and one in more than `groups`
groups to the weight of `groups` groups. This is cheaper than sampling, has the same expectation, and is deterministic.
"""

from dataclasses import dataclass, field
from math import prod

from discreet.kernel.expr import Expr, Type, Value, check_value, expanded_size
from discreet.kernel.grid import Grid
from discreet.kernel.mechanism import Sensitivity
from discreet.kernel.numbers import as_integer
from discreet.kernel.relation import MAX_SUM, MAX_WORK, NamedExprs, Relation, check_columns_exist, derived_schema

_MAX_CELLS = 1 << 20
_NO_PORTABLE_TEXT = (Type.REAL, Type.TIMESTAMP)  # engines convert these to text differently


@dataclass(frozen=True)
class Count:
    """The number of rows; with an expression, of those where it is not NULL."""

    expr: Expr | None = None


@dataclass(frozen=True)
class CountUnits:
    """The number of units; with an expression, of those with a row where it is not NULL."""

    expr: Expr | None = None


@dataclass(frozen=True)
class Sum:
    """The sum of (x^power - shift) over the grid indices x of an expression; power is 1 or 2."""

    expr: Expr
    grid: Grid
    power: int = 1
    shift: int = 0

    def __post_init__(self) -> None:
        if self.expr.type not in (Type.INTEGER, Type.REAL) or self.power not in (1, 2):
            raise ValueError("a sum needs a numeric expression, and power 1 or 2")
        object.__setattr__(self, "shift", as_integer(self.shift, "shift", minimum=-MAX_SUM))


@dataclass(frozen=True)
class CountDistinct:
    """The number of distinct values; of a unit above the bounds, some count, chosen by a hash of unit and value."""

    expr: Expr

    def __post_init__(self) -> None:
        if self.expr.type in _NO_PORTABLE_TEXT:
            raise ValueError("count distinct supports only integer, text, date and boolean")


@dataclass(frozen=True)
class HistogramTree:
    """The number of rows for each value of a list or step of a grid, and for each node of a tree above them.

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
                raise ValueError("a grid needs a numeric expression")
        elif len(set(self.domain)) != len(self.domain) or None in self.domain:
            raise ValueError("domain must list distinct values without NULL")
        else:
            for value in self.domain:
                check_value(value, self.expr.type)
        if not 0 < self.cell_count <= self.branching**self.depth <= _MAX_CELLS:
            raise ValueError(f"branching and depth must give a leaf for every cell, and at most {_MAX_CELLS:,} leaves")

    @property
    def cell_count(self) -> int:
        """The number of cells."""
        return self.domain.last - self.domain.first + 1 if isinstance(self.domain, Grid) else len(self.domain)

    @property
    def first_step(self) -> int:
        """The grid index of the first cell."""
        return self.domain.first if isinstance(self.domain, Grid) else 0


@dataclass(frozen=True)
class ClippedUnits:
    """The number of units above the bound on groups or, with `by_rows`, rows per group; one number for all groups."""

    by_rows: bool = True
    expr: None = field(init=False, default=None)


Total = Count | CountUnits | Sum | CountDistinct | HistogramTree | ClippedUnits
TOTAL_TYPES = (Count, CountUnits, Sum, CountDistinct, HistogramTree, ClippedUnits)


def max_abs_contribution(total: Total) -> int:
    """Return the largest absolute value that a row can contribute to a total; at least 1."""
    return max(1, *map(abs, _contribution_range(total)))


def has_one_sign(total: Total) -> bool:
    """Return whether all contributions to a total have the same sign."""
    low, high = _contribution_range(total)
    return low >= 0 or high <= 0


def _contribution_range(total: Total) -> tuple[int, int]:
    """Return the least and the greatest value that a row can contribute."""
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

WEIGHT_BITS = 20  # weights of clipped units are multiples of 2^-20
_MAX_CONTRIBUTION = 1 << 42  # of a unit in a group, so that its product with a weight fits in 64 bits
_MAX_KEYS = 1_000_000
_MAX_TOTALS = 200


@dataclass(frozen=True)
class ContributionBounds:
    """Contribution bounds of a unit: maximum groups (l0) and maximum rows per group."""

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
    """Public keys: all combinations of one value per column; exactly these are shown."""

    domains: tuple[tuple[Value, ...], ...]

    def __post_init__(self) -> None:
        if any(not domain or len(set(domain)) != len(domain) for domain in self.domains):
            raise ValueError("domains must list distinct values, at least one per key")
        if self.key_count > _MAX_KEYS:
            raise ValueError(f"domains must have at most {_MAX_KEYS:,} combinations, not {self.key_count:,}")

    @property
    def key_count(self) -> int:
        """The number of keys."""
        return prod(map(len, self.domains))


@dataclass(frozen=True)
class SelectedGroups:
    """Keys from the data, shown above a threshold; a unit in more than `max_groups` groups does not count for it."""

    max_groups: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "max_groups", as_integer(self.max_groups, "max_groups", minimum=1))


@dataclass(frozen=True)
class Question:
    """Totals of a relation by group.

    >>> from discreet.kernel.expr import Column, Type
    >>> from discreet.kernel.relation import Scan, UnitKey
    >>> user = Column("user", Type.INTEGER)
    >>> visits = Scan("visits", (user,), UnitKey((user,)), max_rows=10**9)
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
            raise TypeError(f"relation must be a Relation, not {type(self.relation).__name__}")
        schema = self.relation.shape.schema
        derived_schema(self.by, schema)
        for total in self.totals:
            if not isinstance(total, TOTAL_TYPES):
                raise TypeError(f"totals must not contain {type(total).__name__}")
            if total.expr is not None:
                check_columns_exist(total.expr, schema)
            self._check_overflow(total)
        exprs = [*(key for _, key in self.by), *(total.expr for total in self.totals if total.expr is not None)]
        shape = self.relation.shape
        if shape.work + sum(expanded_size(expr, shape.column_sizes) for expr in exprs) > MAX_WORK:
            raise ValueError("the query computes too much per row. Simplify it.")
        if not 0 < len(self.totals) <= _MAX_TOTALS:
            raise ValueError(f"a question must have 1 to {_MAX_TOTALS} totals")
        if isinstance(self.groups, PublicGroups):
            self._check_keys(self.groups)
        elif self.totals[0] != CountUnits() or not self.by:
            raise ValueError("partition selection needs a key, and a count of units as the first total")
        if any(isinstance(total, ClippedUnits) for total in self.totals) and not self.needs_clipping:
            raise ValueError("no unit can be clipped, because each has one row")

    @property
    def needs_clipping(self) -> bool:
        """Whether contributions must be clipped; not if each unit has only one row, or each row is its own unit."""
        return self.relation.shape.unit is not None and self.relation.shape.max_rows_per_unit != 1

    @property
    def max_groups_per_unit(self) -> int | None:
        """Maximum number of groups of a unit before clipping; None if unbounded."""
        limits = [self.relation.shape.max_rows_per_unit] if self.relation.shape.max_rows_per_unit is not None else []
        return min([*limits, self.groups.key_count] if isinstance(self.groups, PublicGroups) else limits, default=None)

    @property
    def needs_l0_clipping(self) -> bool:
        """Whether units can be in more groups than the bound."""
        return self.needs_clipping and (
            self.max_groups_per_unit is None or self.max_groups_per_unit > self.bounds.groups
        )

    @property
    def l0_bound(self) -> int:
        """Maximum number of groups one unit contributes to (l0 bound)."""
        return self.bounds.groups if self.needs_l0_clipping else (self.max_groups_per_unit or 1)

    @property
    def max_rows_per_group(self) -> int:
        """Maximum number of rows one unit contributes to a group."""
        return min(
            self.bounds.rows, self.relation.shape.max_rows_per_unit or self.bounds.rows, self.relation.shape.max_rows
        )

    def fraction_bits(self, total: Total) -> int:
        """Return the number of fractional bits of a total, which keep small weights from being rounded to zero."""
        headroom = (
            _MAX_CONTRIBUTION // (self.max_count_per_group(total) * max_abs_contribution(total)),
            (MAX_SUM - 1) // (self.relation.shape.max_rows * max_abs_contribution(total)),
        )
        if isinstance(total, CountDistinct | ClippedUnits) or not self.needs_clipping:
            return 0
        # In a cell even a single row may have a weight below 1; elsewhere only a unit in too many groups does.
        return (
            min(WEIGHT_BITS, min(headroom).bit_length() - 1)
            if self.needs_l0_clipping or isinstance(total, HistogramTree)
            else 0
        )

    def max_count_per_group(self, total: Total) -> int:
        """Return the maximum count that one unit contributes to a group."""
        return 1 if isinstance(total, CountUnits | ClippedUnits) else self.max_rows_per_group

    def sensitivity_of(self, total: Total) -> Sensitivity:
        """Return the sensitivity of one total as a vector over all groups.

        Claim: removing a unit's rows moves the totals by at most groups·size in l1 and groups·size² in squared l2.
        Proof: each row of the relation depends on its own unit's rows alone, so only terms of this unit change. Let
            `max` be max_abs_contribution(total). Without clipping: the unit has at most `max_rows_per_unit` rows, each
            of which moves one group by at most max; groups = 1, size = max_rows_per_unit·max covers them wherever they
            are. With clipping: its term in a group is at most rows·max, since m of its values sum to at most m·max and
            are scaled by rows/m where m > rows; in k > groups groups each term is multiplied by at most groups/k and
            truncated towards zero, so that k terms have l1 <= groups·size and squared l2 <= groups²·size²/k <=
            groups·size². With k <= groups there are at most `l0_bound` terms. CountDistinct: at most rows of a unit's
            distinct values count in a group and groups·rows in total, each adds one or nothing; the extreme case is
            `rows` in each of `groups` groups, with squared l2 groups·rows². HistogramTree: a row is in one cell of each
            level, with the weight that it has in a count; the weights of a group's cells have the l1 of its count, and
            a squared l2 of at most its square, on each of `depth` levels. ClippedUnits: a unit adds one or nothing.
        Needs: the ownership of relations, Grid.index; select_counts_and_sums, select_cell_counts and
            select_distinct_counts (the engine computes exactly these terms).
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
        """Return the sensitivity of all totals together, each in its own steps.

        Claim: it bounds l1 and squared l2 for the removal of a unit or, with `substitution`, for its replacement.
        Proof: l1 and squared l2 of the parts add up. A substitution removes one unit and adds another: twice the l1. In
            a group that contains both, a term moves by at most the width of its values (one size if they have one sign,
            else two); in a group with one of them, by at most its size: squared l2 is at most the larger of twice the
            latter and once the former. Two units may be in two cells of one group, so cells are like groups.
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
            raise ValueError("domains must have one list of values per key")
        for (_, key), domain in zip(self.by, groups.domains, strict=True):
            for value in domain:
                check_value(value, key.type)

    def _check_overflow(self, total: Total) -> None:
        """Raise ValueError if any intermediate sum could exceed 64 bits, given the maximum number of rows."""
        rows, max_abs = self.relation.shape.max_rows, max_abs_contribution(total)
        if (
            rows * max_abs >= MAX_SUM
            or self.max_count_per_group(total) * max_abs > _MAX_CONTRIBUTION
            or rows * self.max_rows_per_group >= MAX_SUM
        ):
            raise ValueError(
                "the sum could exceed 64 bits. Use a larger step, a lower rows_max, or fewer rows per unit."
            )
