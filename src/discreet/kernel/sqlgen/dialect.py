"""The differences between SQL engines, as one record of templates."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from discreet.kernel.expr import Call, Expr, Type, Value
from discreet.kernel.question import Question
from discreet.kernel.relation import PerUnit, Relation

# Gets the SQL of the arguments, and the arguments, some of which are constants.
Operation = Callable[[Sequence[str], Sequence[Expr]], str]
GridFloats = tuple[float, float, float]  # low, high and step of a grid


def quote_name(name: str) -> str:
    """Return a quoted identifier."""
    return '"' + name.replace('"', '""') + '"'


@dataclass(frozen=True)
class Dialect:
    """The SQL of one engine for operations, constants, and the parts of SELECT that differ.

    `quotient`, `right_shift` and `sign` get 64-bit integers; only `sign` may get negative ones.

    Claim: the defaults are exact on integers and never raise.
    Proof: the only divisors are counts of rows or groups that exist, so not 0. Question keeps every product that is
        shifted and every bigint_sum below 2^63, PerUnit those of a grid; sum_or_null gives NULL where a sum does not
        fit. sum_in_group may wrap: m rows of at most max each then have m·max >= 2^63, so their sum is still at most
        m·max. Names, which may be anything, are quoted, and quotes in them doubled. Without stored_groups, no table is
        read in place of a node's own rows.
    Needs: Question, PerUnit, quote_name.
    Checked by: test_operations_on_integers_are_exact, test_sums_of_integers_are_exact,
        test_a_sum_that_does_not_fit_is_null, test_the_engine_equals_the_reference, test_a_name_cannot_inject_sql,
        test_only_integers_are_counted_and_summed
    """

    operations: Mapping[str, str | Operation]  # by name, or by name and the type of the first argument: "add i"
    types: Mapping[Type, str]
    constant: Callable[[Value, Type], str]
    check_size: Callable[[Question | Relation, "Dialect"], None]  # ValueError if its SQL would be too long
    write_in_list: Callable[[str, Sequence[Value], Type], str]  # whether a value is in a list of constants
    grid_step: Callable[[str, GridFloats], str]  # the index of the grid step nearest to a value, or NULL
    finite_or_null: str  # {value}, or NULL if it is not finite; without negative zero
    quotient: str = "{0} // {1}"
    right_shift: str = "{0} >> {1}"
    sign: str = "SIGN({0})"
    bigint_sum: str = "CAST(SUM({0}) AS BIGINT)"  # of integers whose sum surely fits; NULL if there are none
    sum_or_zero: str = "COALESCE(CAST(SUM({0}) AS BIGINT), 0)"  # the same, or 0 if there are none
    sum_in_group: str = ""  # the same, over the rows of one unit in one group, if another is faster there
    sum_or_null: str = "TRY_CAST(SUM({0}) AS BIGINT)"  # of any integers; NULL if it does not fit in 64 bits
    text_hash: str = "MD5({0})"
    min_or_max: Callable[[str, str, Type], str] = lambda function, value, _kind: f"{function}({value})"
    materialized: str = "MATERIALIZED "  # for a WITH query that is used twice
    # A table with the rows of select_groups for a question, or a SELECT of the rows of a PerUnit; "" if none is stored.
    stored_groups: Callable[[Question | PerUnit], str] = lambda _node: ""
    # Values that are equal, or both NULL.
    null_safe_equal: Callable[[str, str, Type], str] = lambda one, other, _kind: f"{one} IS NOT DISTINCT FROM {other}"
    optimization_fence: str = ""  # ends a SELECT whose computed columns must not be inlined
    table_source: Callable[[str], str] = quote_name  # a table in FROM
    finish_select: Callable[[str], str] = str  # applied to a complete SELECT
    unsupported_reason: Callable[[Call], str] = lambda _call: ""  # why an operation is not supported; "" if it is
    max_listed: int | None = None  # maximum number of constants in a list
    max_nesting: int = 200  # levels of subqueries and expressions; DuckDB parses 1,000, of which one may take four
