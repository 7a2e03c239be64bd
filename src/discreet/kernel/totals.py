"""What is counted or added up in each group, and how much one row can add to it."""

from dataclasses import dataclass, field

from discreet.kernel.exact import whole
from discreet.kernel.expr import Expr, Type, Value, check_value
from discreet.kernel.grid import Grid
from discreet.kernel.relation import MOST

_MOST_CELLS = 1 << 20
_NO_TEXT = (Type.REAL, Type.TIMESTAMP)  # engines do not agree on how these are written


@dataclass(frozen=True)
class Count:
    """How many rows; with an expression, those where it is not NULL."""

    expr: Expr | None = None


@dataclass(frozen=True)
class Units:
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
        object.__setattr__(self, "shift", whole(self.shift, "shift", least=-MOST))


@dataclass(frozen=True)
class Values:
    """How many different values; of a unit with too many, some count, chosen by a hash of the unit and the value."""

    expr: Expr

    def __post_init__(self) -> None:
        if self.expr.type in _NO_TEXT:
            raise ValueError("different values are counted of integers, texts, dates and booleans alone")


@dataclass(frozen=True)
class Cells:
    """How many rows have each value of a list, or lie at each step of a grid, and in each branch of a tree above.

    The cells are the leaves of a tree of `depth` levels in which every node has `fan` children.
    """

    expr: Expr
    places: Grid | tuple[Value, ...]
    fan: int
    depth: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "fan", whole(self.fan, "fan", least=1))
        object.__setattr__(self, "depth", whole(self.depth, "depth", least=1))
        if isinstance(self.places, Grid):
            if self.expr.type not in (Type.INTEGER, Type.REAL):
                raise ValueError("a grid takes a number")
        elif len(set(self.places)) != len(self.places) or None in self.places:
            raise ValueError("places must be a list of values, none of them NULL or twice")
        else:
            for value in self.places:
                check_value(value, self.expr.type)
        if not 0 < self.size <= self.fan**self.depth <= _MOST_CELLS:
            raise ValueError(f"fan and depth must make a leaf for every cell, and at most {_MOST_CELLS:,} of them")

    @property
    def size(self) -> int:
        """How many cells there are."""
        return self.places.last - self.places.first + 1 if isinstance(self.places, Grid) else len(self.places)

    @property
    def first(self) -> int:
        """The step of the first cell."""
        return self.places.first if isinstance(self.places, Grid) else 0


@dataclass(frozen=True)
class Touched:
    """How many units, in all groups together, have more groups than the limit, or with `rows` more rows. One number."""

    rows: bool = True
    expr: None = field(init=False, default=None)


Total = Count | Units | Sum | Values | Cells | Touched
KINDS = (Count, Units, Sum, Values, Cells, Touched)


def highest(total: Total) -> int:
    """Return the largest absolute value that a row can add to a total; at least 1."""
    return max(1, *map(abs, _ends(total)))


def one_sign(total: Total) -> bool:
    """Tell whether no two rows can pull a total to different sides of zero."""
    low, high = _ends(total)
    return low >= 0 or high <= 0


def _ends(total: Total) -> tuple[int, int]:
    """Return the least and the greatest value that a row can add."""
    if not isinstance(total, Sum):
        return 0, 1
    low, high = total.grid.first, total.grid.last
    if total.power == 2:
        low, high = (0 if low <= 0 <= high else min(low * low, high * high)), max(low * low, high * high)
    return low - total.shift, high - total.shift
