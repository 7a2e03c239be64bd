"""Totals: what a question counts or sums, and the largest contribution of one row."""

from dataclasses import dataclass, field

from discreet.kernel.errors import require
from discreet.kernel.expr import Expr, Type, Value, check_value
from discreet.kernel.grid import Grid
from discreet.kernel.numbers import check_type, store_integer
from discreet.kernel.relation import MAX_SUM

_MAX_CELLS = 1 << 20


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
    """The sum of (x^power - shift) over the grid indices x of an expression; power is 1 or 2.

    `max_term` bounds a unit's sum in one group, in steps; None: the sum of `rows` rows of the largest contribution.
    """

    expr: Expr
    grid: Grid
    power: int = 1
    shift: int = 0
    max_term: int | None = None

    def __post_init__(self) -> None:
        require(
            self.expr.type in (Type.INTEGER, Type.REAL) and self.power in (1, 2),
            "a sum needs a numeric expression, and power 1 or 2",
        )
        require(
            check_type(Grid, self.grid, "grid").max_abs_index ** self.power < MAX_SUM
            and abs(store_integer(self, "shift", minimum=-MAX_SUM)) < MAX_SUM,
            "the square of a step or the shift could exceed 64 bits. Use a larger step.",
        )
        if self.max_term is not None:
            store_integer(self, "max_term")


@dataclass(frozen=True)
class CountDistinct:
    """The number of distinct values; of a unit above the bounds, some count, chosen by a hash of unit and value."""

    expr: Expr

    def __post_init__(self) -> None:
        require(
            self.expr.type not in (Type.REAL, Type.TIMESTAMP),  # engines convert these to text differently
            "count distinct supports only integer, text, date and boolean",
        )


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
        leaves = store_integer(self, "branching") ** min(store_integer(self, "depth"), 64)  # 2^64 is too many already
        if isinstance(self.domain, Grid):
            require(self.expr.type in (Type.INTEGER, Type.REAL), "a grid needs a numeric expression")
        else:
            require(
                len(set(self.domain)) == len(self.domain) and None not in self.domain,
                "domain must list distinct values without NULL",
            )
            check_values(self.domain, self.expr)
        require(
            0 < self.cell_count <= leaves <= _MAX_CELLS and self.depth <= 64,
            f"branching and depth must give a leaf for every cell, and at most {_MAX_CELLS:,} leaves",
        )

    @property
    def cell_count(self) -> int:
        """The number of cells."""
        return self.domain.last - self.domain.first + 1 if isinstance(self.domain, Grid) else len(self.domain)


@dataclass(frozen=True)
class SelectionWeight:
    """The weight of a key in partition selection: a unit with k keys adds 1/sqrt(k) to each of them."""

    expr: None = field(init=False, default=None)


Total = Count | CountUnits | Sum | CountDistinct | HistogramTree | SelectionWeight


def max_abs_contribution(total: Total) -> int:
    """Return the largest absolute value that a row can contribute to a total; at least 1.

    Claim: no row contributes more to a total, before it is weighted.
    Proof: a row is one row, unit, value or cell, or else x^power - shift for a grid index x from `first` to `last`.
        This is monotone in x, or on each side of x = 0: its extremes are at the ends, and at zero between them.
    Needs: Grid.index, Grid.first, Grid.last.
    Checked by: test_no_row_adds_more_than_max_abs_contribution, test_a_unit_attains_the_sensitivity
    """
    if not isinstance(total, Sum):
        return 1
    values = [total.grid.first, total.grid.last]
    if total.power == 2:
        values = [x * x for x in values] + [0] * (values[0] < 0 < values[1])
    return max(1, *(abs(value - total.shift) for value in values))


def check_values(values: tuple[Value, ...], expr: Expr) -> None:
    """Raise an error unless all values have the type of an expression."""
    for value in values:
        check_value(value, expr.type)
