"""What differs between SQL engines, as one record of templates."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from discreet.kernel.expr import Call, Expr, Type, Value

_LONG_LIST = 100  # constants of a list

Operation = Callable[[Sequence[str], Sequence[Expr]], str]  # of texts; the expressions tell which are constants


GridFloats = tuple[float, float, float]  # low, high and step of a grid


class GroupCountStrategy(Enum):
    """How an engine finds in how many groups a unit is."""

    JOIN = "join"  # the few units with too many are gathered and joined
    WINDOW = "window"  # counted over the unit's rows, which lie together: one shuffle


def quote_name(name: str) -> str:
    """Write a name so that it can be nothing else."""
    return '"' + name.replace('"', '""') + '"'


def write_min_or_max(function: str, value: str, _kind: Type) -> str:
    """Write the least (MIN) or the greatest (MAX) of a group's values."""
    return f"{function}({value})"


def write_null_safe_equal(one: str, other: str, _kind: Type) -> str:
    """Write that two values are equal, or both NULL."""
    return f"{one} IS NOT DISTINCT FROM {other}"


def _unchanged_sql(sql: str) -> str:
    return sql


def _no_reason(_call: Call) -> str:
    return ""


@dataclass(frozen=True)
class Dialect:
    """How one engine writes operations, constants, and the few things of SELECT that differ.

    Whole numbers that `quotient`, `right_shift` and `sign` get are of 64 bits, and only the last may get negative ones.
    """

    operations: Mapping[str, str | Operation]  # by name, or by name and the type of the first argument: "add i"
    types: Mapping[Type, str]
    constant: Callable[[Value, Type], str]
    grid_step: (
        str | Callable[[str, GridFloats], str]
    )  # the nearest step of {value}, from {low} to {high}, by {step}; or NULL
    finite_or_null: str  # {value}, or NULL if it is not finite; zero has one sign
    quotient: str = "{0} // {1}"
    right_shift: str = "{0} >> {1}"
    sign: str = "SIGN({0})"
    bigint_sum: str = "CAST(SUM({0}) AS BIGINT)"  # of whole numbers whose sum surely fits; NULL of none
    sum_or_null: str = "TRY_CAST(SUM({0}) AS BIGINT)"  # the same, or NULL where 64 bits do not hold it
    text_hash: str = "MD5({0})"
    min_or_max: Callable[[str, str, Type], str] = write_min_or_max
    materialized: str = "MATERIALIZED "  # of a WITH that is named twice
    group_count_strategy: GroupCountStrategy = GroupCountStrategy.JOIN
    null_safe_equal: Callable[[str, str, Type], str] = write_null_safe_equal
    array_constant: Callable[[Sequence[Value], Type], str] | None = (
        None  # constants as one array, where that is quicker
    )
    optimization_fence: str = ""  # ends a SELECT whose columns would be computed anew wherever they are named
    colocate_hint: str = ""  # a hint that brings the rows with equal {units} to one place
    compute_once: str = ""  # {value} with {columns} computed once, where an operation names an argument more often
    table_source: Callable[[str], str] = quote_name  # what stands after FROM for a table
    finish_select: Callable[[str], str] = _unchanged_sql  # what is done to a whole SELECT
    unsupported_reason: Callable[[Call], str] = (
        _no_reason  # why an operation cannot be computed here as elsewhere, if it cannot
    )
    max_listed: int | None = None  # so many constants may be listed in one column

    def write_in_list(self, text: str, values: Sequence[Value], kind: Type) -> str:
        """Write that a value is one of those that are listed."""
        if self.array_constant is not None and len(values) > _LONG_LIST:
            return f"{text} = ANY({self.array_constant(values, kind)})"
        return f"{text} IN ({', '.join(self.constant(value, kind) for value in values)})"

    @property
    def sum_or_zero(self) -> str:
        """The sum of whole numbers that surely fits; 0 of none."""
        return f"COALESCE({self.bigint_sum}, 0)"
