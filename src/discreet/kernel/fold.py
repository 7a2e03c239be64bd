"""How all of a unit's rows become one value."""

from dataclasses import dataclass
from enum import Enum

from discreet.kernel.expr import Expr, Type
from discreet.kernel.grid import Grid


class Fold(Enum):
    """How a unit's values become one."""

    ROWS = "rows"  # how many rows; takes no expression
    COUNT = "count"  # how many are not NULL
    DISTINCT = "distinct"  # how many different ones
    LEAST = "least"
    GREATEST = "greatest"
    SUM = "sum"  # of integers; NULL where 64 bits do not hold it
    STEPS = "steps"  # of numbers moved onto a grid: how many steps in all


@dataclass(frozen=True)
class Folded:
    """One value for a unit, from all of its rows."""

    fold: Fold
    expr: Expr | None = None
    grid: Grid | None = None

    def __post_init__(self) -> None:
        fits = (self.expr is None) is (self.fold is Fold.ROWS) and (self.grid is None) is not (self.fold is Fold.STEPS)
        kind = Type.INTEGER if self.expr is None else self.expr.type
        number = self.fold is Fold.STEPS and kind is Type.REAL
        fits = fits and (kind is Type.INTEGER or number or self.fold not in (Fold.SUM, Fold.STEPS))
        if not fits:
            raise ValueError(f"{self.fold.value} takes other arguments")

    @property
    def type(self) -> Type:
        """The type of the result."""
        kept = self.expr is not None and self.fold in (Fold.LEAST, Fold.GREATEST)
        return self.expr.type if kept and self.expr else Type.INTEGER
