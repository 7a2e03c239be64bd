"""The differences between SQL engines, as one record of templates."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from discreet.kernel.expr import Call, Expr, Type, Value

_LONG_LIST = 100  # constants in a list

Operation = Callable[
    [Sequence[str], Sequence[Expr]], str
]  # gets the SQL of the arguments, and the arguments, some of which are constants


GridFloats = tuple[float, float, float]  # low, high and step of a grid


class GroupCountStrategy(Enum):
    """How an engine counts the groups of a unit."""

    JOIN = "join"  # units above the bound are aggregated and joined
    WINDOW = "window"  # a window function over the unit's rows: one shuffle


def quote_name(name: str) -> str:
    """Return a quoted identifier."""
    return '"' + name.replace('"', '""') + '"'


def write_min_or_max(function: str, value: str, _kind: Type) -> str:
    """Return the SQL of MIN or MAX."""
    return f"{function}({value})"


def write_null_safe_equal(one: str, other: str, _kind: Type) -> str:
    """Return the SQL for values that are equal, or both NULL."""
    return f"{one} IS NOT DISTINCT FROM {other}"


def _unchanged_sql(sql: str) -> str:
    return sql


def _no_reason(_call: Call) -> str:
    return ""


@dataclass(frozen=True)
class Dialect:
    """The SQL of one engine for operations, constants, and the parts of SELECT that differ.

    `quotient`, `right_shift` and `sign` get 64-bit integers; only `sign` may get negative ones.
    """

    operations: Mapping[str, str | Operation]  # by name, or by name and the type of the first argument: "add i"
    types: Mapping[Type, str]
    constant: Callable[[Value, Type], str]
    # The index of the grid step nearest to {value}, for a grid from {low} to {high} with {step}; or NULL.
    grid_step: str | Callable[[str, GridFloats], str]
    finite_or_null: str  # {value}, or NULL if it is not finite; without negative zero
    quotient: str = "{0} // {1}"
    right_shift: str = "{0} >> {1}"
    sign: str = "SIGN({0})"
    bigint_sum: str = "CAST(SUM({0}) AS BIGINT)"  # of integers whose sum surely fits; NULL if there are none
    sum_or_null: str = "TRY_CAST(SUM({0}) AS BIGINT)"  # the same, or NULL if it does not fit in 64 bits
    text_hash: str = "MD5({0})"
    min_or_max: Callable[[str, str, Type], str] = write_min_or_max
    materialized: str = "MATERIALIZED "  # for a WITH query that is used twice
    group_count_strategy: GroupCountStrategy = GroupCountStrategy.JOIN
    null_safe_equal: Callable[[str, str, Type], str] = write_null_safe_equal
    array_constant: Callable[[Sequence[Value], Type], str] | None = None  # constants as an array, if that is faster
    optimization_fence: str = ""  # ends a SELECT whose computed columns must not be inlined
    colocate_hint: str = ""  # a hint that co-locates rows with equal {units}
    compute_once: str = ""  # {value} with {columns} computed once, for operations that repeat an argument
    table_source: Callable[[str], str] = quote_name  # a table in FROM
    finish_select: Callable[[str], str] = _unchanged_sql  # applied to a complete SELECT
    unsupported_reason: Callable[[Call], str] = _no_reason  # why an operation is not supported; "" if it is
    max_listed: int | None = None  # maximum number of constants in a list

    def write_in_list(self, text: str, values: Sequence[Value], kind: Type) -> str:
        """Return the SQL of a test whether a value is in a list."""
        if self.array_constant is not None and len(values) > _LONG_LIST:
            return f"{text} = ANY({self.array_constant(values, kind)})"
        return f"{text} IN ({', '.join(self.constant(value, kind) for value in values)})"

    @property
    def sum_or_zero(self) -> str:
        """The sum of integers that surely fits; 0 if there are none."""
        return f"COALESCE({self.bigint_sum}, 0)"
