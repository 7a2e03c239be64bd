"""A bound expression: a kernel expression with public facts about its values."""

from dataclasses import dataclass
from datetime import date, datetime
from fractions import Fraction

from discreet.kernel.expr import Expr, Type, Value

RangeEnd = Fraction | date | datetime


@dataclass(frozen=True)
class BoundExpr:
    """A kernel expression with public facts that improve accuracy; privacy does not depend on them.

    `low` and `high` bound a number, date or timestamp (either may be unknown); `step` is the declared rounding step;
    `domain` lists all possible group values in display order, including None if NULL forms a group; `unit_key_index`
    is the position of this column in the unit's key.
    """

    expr: Expr
    low: RangeEnd | None = None
    high: RangeEnd | None = None
    step: Fraction | None = None
    domain: tuple[Value, ...] | None = None
    unit_key_index: int | None = None

    @property
    def type(self) -> Type:
        """The type of its values."""
        return self.expr.type

    @property
    def has_range(self) -> bool:
        """Whether both ends of its range are known."""
        return self.low is not None and self.high is not None
