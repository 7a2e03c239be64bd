"""A bound expression: the kernel's expression, with what is publicly known of its values."""

from dataclasses import dataclass
from datetime import date, datetime
from fractions import Fraction

from discreet.kernel.expr import Expr, Type, Value

RangeEnd = Fraction | date | datetime


@dataclass(frozen=True)
class BoundExpr:
    """A kernel expression and public facts about it; they help accuracy, and privacy never depends on them.

    `low` and `high` enclose the values of a number, date or timestamp (one may be unknown); `step` is how finely the
    owner wants a number rounded; `domain` lists every value that a group may have, in the order to show them, with None
    if missing values are a group; `unit_key_index` is the place of this column in the unit's key.
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
