"""What differs between engines, as one record of texts. {0}, {1}, … are the arguments, {all} a list of them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from discreet.kernel.expr import Call, Expr, Type, Value

_LONG = 100  # constants of a list

Operation = Callable[[Sequence[str], Sequence[Expr]], str]  # of texts; the expressions tell which are constants


Ends = tuple[float, float, float]  # low, high and step of a grid


class Spread(Enum):
    """How an engine finds in how many groups a unit is."""

    JOIN = "join"  # the few units with too many are gathered and joined
    WINDOW = "window"  # counted over the unit's rows, which lie together: one shuffle


def quoted(name: str) -> str:
    """Write a name so that it can be nothing else."""
    return '"' + name.replace('"', '""') + '"'


def least_or_greatest(function: str, value: str, _kind: Type) -> str:
    """Write the least (MIN) or the greatest (MAX) of a group's values."""
    return f"{function}({value})"


def not_distinct(one: str, other: str, _kind: Type) -> str:
    """Write that two values are equal, or both NULL."""
    return f"{one} IS NOT DISTINCT FROM {other}"


def _as_it_is(sql: str) -> str:
    return sql


def _none(_call: Call) -> str:
    return ""


@dataclass(frozen=True)
class Dialect:
    """How one engine writes operations, constants, and the few things of SELECT that differ.

    Whole numbers that `quotient`, `shifted` and `sign` get are of 64 bits, and only the last may get negative ones.
    """

    operations: Mapping[str, str | Operation]  # by name, or by name and the type of the first argument: "add i"
    types: Mapping[Type, str]
    constant: Callable[[Value, Type], str]
    steps: str | Callable[[str, Ends], str]  # the nearest step of {value}, from {low} to {high}, by {step}; or NULL
    finite: str  # {value}, or NULL if it is not finite; zero has one sign
    quotient: str = "{0} // {1}"
    shifted: str = "{0} >> {1}"
    sign: str = "SIGN({0})"
    summed: str = "CAST(SUM({0}) AS BIGINT)"  # of whole numbers whose sum surely fits; NULL of none
    fitted: str = "TRY_CAST(SUM({0}) AS BIGINT)"  # the same, or NULL where 64 bits do not hold it
    hashed: str = "MD5({0})"
    extreme: Callable[[str, str, Type], str] = least_or_greatest
    computed_once: str = "MATERIALIZED "  # of a WITH that is named twice
    spread: Spread = Spread.JOIN
    same: Callable[[str, str, Type], str] = not_distinct
    long_list: Callable[[Sequence[Value], Type], str] | None = None  # constants as one array, where that is quicker
    apart: str = ""  # ends a SELECT whose columns would be computed anew wherever they are named
    together: str = ""  # a hint that brings the rows with equal {units} to one place
    once: str = ""  # {value} with {columns} computed once, where an operation names an argument more often
    source: Callable[[str], str] = quoted  # what stands after FROM for a table
    finish: Callable[[str], str] = _as_it_is  # what is done to a whole SELECT
    gap: Callable[[Call], str] = _none  # why an operation cannot be computed here as elsewhere, if it cannot
    most_listed: int | None = None  # so many constants may be listed in one column

    def among(self, text: str, values: Sequence[Value], kind: Type) -> str:
        """Write that a value is one of those that are listed."""
        if self.long_list is not None and len(values) > _LONG:
            return f"{text} = ANY({self.long_list(values, kind)})"
        return f"{text} IN ({', '.join(self.constant(value, kind) for value in values)})"

    @property
    def total(self) -> str:
        """The sum of whole numbers that surely fits; 0 of none."""
        return f"COALESCE({self.summed}, 0)"
