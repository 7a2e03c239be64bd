"""What is asked: totals over groups of rows, each unit with a bounded weight, and therefore with a sensitivity.

A unit with more than `rows` rows in a group is scaled down to the weight of so many, and one in more than `groups`
groups to the weight of so many groups: cheaper than choosing some, with the same expectation and no chance in it.
"""

from dataclasses import dataclass
from math import prod

from discreet.kernel.exact import whole
from discreet.kernel.expr import Value, check_value, weigh
from discreet.kernel.mechanism import Sensitivity
from discreet.kernel.relation import MOST, MOST_WORK, Named, Relation, check_reads, checked
from discreet.kernel.totals import KINDS, Cells, Count, Sum, Total, Touched, Units, Values, highest, one_sign

__all__ = [
    "WEIGHT_BITS",
    "Cells",
    "Count",
    "Discover",
    "Limit",
    "Public",
    "Question",
    "Sum",
    "Total",
    "Touched",
    "Units",
    "Values",
    "highest",
]

WEIGHT_BITS = 20  # the weight of a unit in many groups is a whole number of 2^-20
_HIGHEST = 1 << 42  # a unit's weight in a group, so that its product with such a number fits in 64 bits
_MOST_KEYS = 1_000_000
_MOST_TOTALS = 200


@dataclass(frozen=True)
class Limit:
    """How much a unit may weigh: as much as so many groups, and in each as much as so many rows."""

    groups: int
    rows: int

    def __post_init__(self) -> None:
        for name in ("groups", "rows"):
            value = whole(getattr(self, name), name, least=1)
            if value > _HIGHEST:
                raise ValueError(f"{name} must be at most 2^42")
            object.__setattr__(self, name, value)


@dataclass(frozen=True)
class Public:
    """Keys that the question itself lists: all combinations of one value per column, each shown, and no other."""

    domains: tuple[tuple[Value, ...], ...]

    def __post_init__(self) -> None:
        if any(not domain or len(set(domain)) != len(domain) for domain in self.domains):
            raise ValueError("domains must list values, none of them twice")
        if self.size > _MOST_KEYS:
            raise ValueError(f"domains: at most {_MOST_KEYS:,} keys can be listed, not {self.size:,}")

    @property
    def size(self) -> int:
        """How many keys there are."""
        return prod(map(len, self.domains))


@dataclass(frozen=True)
class Discover:
    """Keys found in the data, shown above a threshold; a unit in more than `most` groups has no say in which."""

    most: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "most", whole(self.most, "most", least=1))


@dataclass(frozen=True)
class Question:
    """Totals of a relation by groups.

    >>> from discreet.kernel.expr import Column, Type
    >>> from discreet.kernel.relation import Own, Scan
    >>> user = Column("user", Type.INTEGER)
    >>> visits = Scan("visits", (user,), Own((user,)), most=10**9)
    >>> Question(visits, (), Public(()), Limit(groups=1, rows=20), (Count(),)).sensitivity().l1
    20
    """

    relation: Relation
    by: Named
    groups: Public | Discover
    limit: Limit
    totals: tuple[Total, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.relation, Relation):
            raise TypeError("relation must be a relation")
        schema = self.relation.shape.schema
        checked(self.by, schema)
        for total in self.totals:
            if not isinstance(total, KINDS):
                raise TypeError("totals must be Count, Units, Sum, Values, Cells or Touched")
            if total.expr is not None:
                check_reads(total.expr, schema)
            self._check_fits(total)
        read = [*(key for _, key in self.by), *(total.expr for total in self.totals if total.expr is not None)]
        shape = self.relation.shape
        if shape.work + sum(weigh(expr, shape.weights) for expr in read) > MOST_WORK:
            raise ValueError("there is too much to compute for each row: write less")
        if not 0 < len(self.totals) <= _MOST_TOTALS:
            raise ValueError(f"a question has from 1 to {_MOST_TOTALS} totals")
        if isinstance(self.groups, Public):
            self._check_keys(self.groups)
        elif self.totals[0] != Units() or not self.by:
            raise ValueError("to discover groups, the first total must count their units")
        if any(isinstance(total, Touched) for total in self.totals) and not self.bounded:
            raise ValueError("no limit can touch a unit that has one row")

    @property
    def bounded(self) -> bool:
        """Whether a unit's rows have to be gathered and bounded; not if it has only one, or each row is a unit."""
        return self.relation.shape.unit is not None and self.relation.shape.copies != 1

    @property
    def reach(self) -> int | None:
        """In how many groups a unit can be at most, before it is bounded; None if nobody knows."""
        known = [self.relation.shape.copies] if self.relation.shape.copies is not None else []
        return min([*known, self.groups.size] if isinstance(self.groups, Public) else known, default=None)

    @property
    def scaled(self) -> bool:
        """Whether units can be in more groups than the limit."""
        return self.bounded and (self.reach is None or self.reach > self.limit.groups)

    @property
    def spread(self) -> int:
        """As many groups as a unit can weigh."""
        return self.limit.groups if self.scaled else (self.reach or 1)

    @property
    def rows(self) -> int:
        """As many rows as a unit can weigh in a group."""
        return min(self.limit.rows, self.relation.shape.copies or self.limit.rows, self.relation.shape.rows)

    def bits(self, total: Total) -> int:
        """Return how many binary places a total has below its step, so that a small weight is not lost."""
        room = (
            _HIGHEST // (self.weight(total) * highest(total)),
            (MOST - 1) // (self.relation.shape.rows * highest(total)),
        )
        if isinstance(total, Values | Touched) or not self.bounded:
            return 0
        # A single row may weigh less than one in a cell; elsewhere only a unit in too many groups has such weights.
        return min(WEIGHT_BITS, min(room).bit_length() - 1) if self.scaled or isinstance(total, Cells) else 0

    def weight(self, total: Total) -> int:
        """Return how many rows, or units, a unit counts for in a group."""
        return 1 if isinstance(total, Units | Touched) else self.rows

    def sensitivity_of(self, total: Total) -> Sensitivity:
        """Return how far one unit can move the vector of this total over all groups.

        Claim: removing a unit's rows moves the totals by at most groups·size in l1 and groups·size² in squared l2.
        Proof: each row of the relation depends on its own unit's rows alone, so only terms of this unit change.
            Unbounded: the unit has at most `copies` rows, each moves one group by at most highest(total); groups = 1,
            size = copies·highest covers them wherever they are. Bounded: its term in a group is at most rows·highest,
            since m of its values sum to at most m·highest and are scaled by rows/m where m > rows; in k > groups
            groups each term is multiplied by at most groups/k and truncated towards zero, so that k terms have
            l1 <= groups·size and squared l2 <= groups²·size²/k <= groups·size². With k <= groups there are at most
            `spread` terms. Values: a unit's different values number at most rows in a group and groups·rows in all,
            each adds one or nothing; at most `rows` in each of them is farthest, with squared l2 groups·rows². Cells:
            a row is in one cell of each level, with the weight that it has in a count; the weights of a group's cells
            have the l1 of its count, and a squared l2 of at most its square, on each of `depth` levels. Touched: a
            unit is one or none.
        Needs: the relations' ownership, Grid.index, render and gather (the engine computes exactly these terms).
        Checked by: test_removing_a_unit_moves_totals_by_at_most_the_sensitivity, test_the_engine_equals_the_reference,
            test_removing_a_unit_moves_cells_values_and_touched_by_at_most_the_sensitivity
        Seal: 56d8b74117d8
        """
        if isinstance(total, Touched):
            return Sensitivity(1, 1)
        if not self.bounded:
            one = Sensitivity(1, (self.relation.shape.copies or 1) * highest(total))
        else:
            one = Sensitivity(self.spread, self.weight(total) * highest(total) << self.bits(total))
        levels = total.depth if isinstance(total, Cells) else 1
        return one if levels == 1 else Sensitivity.of_norms(levels * one.l1, levels * one.l2_squared)

    def sensitivity(self, *, replacing: bool = False) -> Sensitivity:
        """Return how far one unit can move all totals together, each in its own steps.

        Claim: a bound of l1 and squared l2 for removing a unit, or for replacing it by another.
        Proof: norms of the parts add. Replacing removes one unit and adds another: twice the l1. In a group where
            both are, a term moves by at most the width of its values (one size if they have one sign, else two); where
            one is, by at most its size: squared l2 is at most the larger of twice the one and once the other. Two
            units may be in two cells of one group, so cells are like groups.
        Needs: sensitivity_of.
        Checked by: test_replacing_a_unit_costs_a_count_once_and_a_histogram_twice
        Seal: 62f222a85ba5
        """
        parts = [self._replaced(total) if replacing else self.sensitivity_of(total) for total in self.totals]
        return Sensitivity.of_norms(sum(part.l1 for part in parts), sum(part.l2_squared for part in parts))

    def _replaced(self, total: Total) -> Sensitivity:
        one = self.sensitivity_of(total)
        width = 1 if one_sign(total) else 2
        if isinstance(self.groups, Public) and self.groups.size == 1 and not isinstance(total, Cells):
            return Sensitivity(1, width * one.l1)
        return Sensitivity.of_norms(2 * one.l1, max(2, width * width) * one.l2_squared)

    def _check_keys(self, groups: Public) -> None:
        if len(groups.domains) != len(self.by):
            raise ValueError("domains must list the values of every key")
        for (_, key), domain in zip(self.by, groups.domains, strict=True):
            for value in domain:
                check_value(value, key.type)

    def _check_fits(self, total: Total) -> None:
        """Stop if any sum on the way could exceed 64 bits, with as many rows as the owner allows."""
        rows, top = self.relation.shape.rows, highest(total)
        if rows * top >= MOST or self.weight(total) * top > _HIGHEST or rows * self.rows >= MOST:
            raise ValueError("the sum could exceed 64 bits: use a coarser step, a lower rows_max, or fewer rows a unit")
