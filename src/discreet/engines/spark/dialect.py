"""Spark's SQL for the kernel's operations; each is total: it yields a value or NULL and never raises.

Spark fails on integer overflow, division by zero and invalid casts; Sail, which runs the same SQL, continues with a
wrong number. `try_` functions, or a CASE around what may fail, avoid both. The sign of a real zero may differ, but
never shows in a result.

INEXACT_OPERATIONS are those that Java computes with a different last bit than C. Where such a value is exactly on the
boundary of a grid step or a condition, totals may differ from those of other engines.
"""

import math
import sys
from collections.abc import Sequence

from discreet.engines.common_sql import (
    COMMON_OPERATIONS,
    case_when,
    constant_integer,
    in_list,
    largest_double_where,
    nearest_step,
)
from discreet.engines.size_limit import check_size
from discreet.engines.spark.literals import constant, real_literal, requote_names, text_literal
from discreet.engines.spark.text_functions import like, like_any_case, lower, matches, unsupported_pattern, upper
from discreet.kernel.expr import MAX_TEXT_LENGTH, Constant, Expr, Type
from discreet.kernel.sqlgen.dialect import Dialect, Operation

INEXACT_OPERATIONS = frozenset({"ln", "log10", "exp", "power"})

_INFINITY = "CAST('Infinity' AS DOUBLE)"
_INTEGER_PATTERN = r"\A[+-]?[0-9]{1,18}\z"
_REAL_PATTERN = r"\A[+-]?(?:[0-9]{1,100}(?:[.][0-9]{0,100})?|[.][0-9]{1,100})(?:[eE][+-]?(?:0?[0-9]{1,2}|1[0-9]{2}))?\z"
_DATE_PATTERN = "(?:000[1-9]|00[1-9][0-9]|0[1-9][0-9]{2}|[1-9][0-9]{3})-[0-9]{2}-[0-9]{2}"  # no year 0
_TIME_PATTERN = "(?:[01][0-9]|2[0-3]):[0-9]{2}(?::[0-9]{2}(?:[.][0-9]{1,6})?)?"  # no 24:00, which is the next day
_DATE_RANGE = "DATE'0001-01-01' AND DATE'9999-12-31'"
_TIMESTAMP_RANGE = "TIMESTAMP_NTZ'0001-01-01 00:00:00' AND TIMESTAMP_NTZ'9999-12-31 23:59:59.999999'"


def _cast_if_matches(pattern: str, sql_type: str) -> str:
    """Return SQL that casts a text if it matches the pattern; Spark itself would accept more, such as 'now'."""
    return case_when(f"{{0}} RLIKE {text_literal(pattern)}", f"TRY_CAST({{0}} AS {sql_type})")


def _floor_or_ceil(function: str) -> str:
    """Return SQL for FLOOR or CEIL; from 2^53 on all doubles are integers, and Spark's result has only 64 bits."""
    return f"CASE WHEN ABS({{0}}) < {real_literal(2.0**53)} THEN CAST({function}({{0}}) AS DOUBLE) ELSE {{0}} END"


def _divide(args: Sequence[str], exprs: Sequence[Expr]) -> str:
    """Return SQL for a division; for a constant divisor, only the branch taken: Spark might fail to plan the others."""
    a, b = args
    is_integer = exprs[0].type is Type.INTEGER
    quotient, negated = f"{a} {'DIV' if is_integer else '/'} {b}", f"TRY_SUBTRACT(0L, {a})" if is_integer else f"-{a}"
    if not isinstance(exprs[1], Constant):
        return f"CASE WHEN {b} = -1 THEN {negated} WHEN {b} <> 0 THEN {quotient} END"
    if not exprs[1].value:
        return f"CAST(NULL AS {_TYPES[exprs[0].type]})"
    return negated if exprs[1].value == -1 else quotient


def _round(args: Sequence[str], exprs: Sequence[Expr]) -> str:
    """Return SQL that rounds to decimal places with two roundings, and handles overflow like the reference."""
    x, places = args[0], constant_integer(exprs[1])
    factor = real_literal(float(10 ** abs(places)))
    if places == 0:
        return f"ROUND({x}, 0)"
    if places > 0:
        return f"CASE WHEN {_overflows_when_rounded(x, places)} THEN {x} ELSE ROUND({x} * {factor}, 0) / {factor} END"
    overflows = _overflows_when_rounded(x, places)
    return f"CASE WHEN {overflows} THEN {real_literal(0.0)} ELSE ROUND({x} / {factor}, 0) * {factor} END"


def _overflows_when_rounded(x: str, places: int) -> str:
    """Return a condition for a finite real whose rounded value is not finite."""
    factor, largest = float(10 ** abs(places)), sys.float_info.max
    safe = largest_double_where(lambda size: math.isfinite(size * factor if places > 0 else size / factor * factor))
    if safe == largest:
        return "FALSE"
    return f"ABS({x}) BETWEEN {real_literal(math.nextafter(safe, math.inf))} AND {real_literal(largest)}"


def _substring(args: Sequence[str], exprs: Sequence[Expr]) -> str:
    return f"SUBSTRING({args[0]}, {constant_integer(exprs[1])}, {constant_integer(exprs[2])})"


def _shift_within(shift_sql: str, range_sql: str) -> Operation:
    def operation(args: Sequence[str], exprs: Sequence[Expr]) -> str:
        shifted = shift_sql.format(args[0], constant_integer(exprs[1]))
        return case_when(f"{shifted} BETWEEN {range_sql}", shifted)

    return operation


_OPERATIONS: dict[str, str | Operation] = {
    **COMMON_OPERATIONS,
    "add i": "TRY_ADD({0}, {1})",
    "subtract i": "TRY_SUBTRACT({0}, {1})",
    "multiply i": "TRY_MULTIPLY({0}, {1})",
    "divide": _divide,
    "modulo": "TRY_MOD({0}, CASE WHEN {1} = -1 THEN 1L ELSE {1} END)",  # Sail fails on MIN % -1
    "negate i": "TRY_SUBTRACT(0L, {0})",
    "abs i": "CASE WHEN {0} >= 0 THEN {0} ELSE TRY_SUBTRACT(0L, {0}) END",
    "add": "{0} + {1}",
    "subtract": "{0} - {1}",
    "multiply": "{0} * {1}",
    "sign": f"NANVL(SIGN({{0}}), {real_literal(0.0)})",
    "floor": _floor_or_ceil("FLOOR"),
    "ceil": _floor_or_ceil("CEIL"),
    "round": _round,
    "sqrt": case_when("{0} >= 0", "SQRT({0})"),
    "ln": case_when("{0} > 0", "LN({0})"),
    "log10": case_when("{0} > 0", "LOG10({0})"),
    "exp": case_when("{0} <= 709", "EXP(GREATEST({0}, -708D))"),
    # Sail fails on a negative power of zero.
    "power": (
        f"CASE WHEN ABS({{0}}) < {_INFINITY} AND ABS({{1}}) < {_INFINITY} AND ({{0}} <> 0 OR {{1}} >= 0) THEN CASE "
        "WHEN ABS(POW({0}, {1})) < 1e-307D THEN 0D WHEN ABS(POW({0}, {1})) <= 1e307D THEN POW({0}, {1}) END END"
    ),
    "to_real": "CAST({0} AS DOUBLE)",
    # The cast turns 2^63 into 2^63 - 1; adding and subtracting 1 turns this into NULL.
    "to_integer": "TRY_SUBTRACT(TRY_ADD(TRY_CAST(BROUND({0}, 0) AS BIGINT), 1L), 1L)",
    "as_integer": "CAST({0} AS BIGINT)",
    "read_integer": _cast_if_matches(_INTEGER_PATTERN, "BIGINT"),
    "read_real": _cast_if_matches(_REAL_PATTERN, "DOUBLE"),
    "read_date": _cast_if_matches(rf"\A{_DATE_PATTERN}\z", "DATE"),
    "read_timestamp": _cast_if_matches(rf"\A{_DATE_PATTERN}[ T]{_TIME_PATTERN}\z", "TIMESTAMP_NTZ"),
    "write_integer": "CAST({0} AS STRING)",
    "write_boolean": "CAST({0} AS STRING)",
    "write_date": "CAST({0} AS STRING)",
    "one_of": "{0} IN ({rest})",
    "one_of r": "{0} + 0D IN ({rest})",  # in a long list, -0.0 does not equal 0.0
    "nullif": "CASE WHEN {0} = {1} THEN NULL ELSE {0} END",
    "lower": lower,
    "upper": upper,
    "trim": "TRIM({0})",
    "trim_left": "LTRIM({0})",
    "trim_right": "RTRIM({0})",
    "length": "CAST(LENGTH({0}) AS BIGINT)",
    "part": _substring,
    "keep_last": "RIGHT({0}, CAST({1} AS INT))",
    "drop_last": "SUBSTRING({0}, 1, GREATEST(LENGTH({0}) - CAST({1} AS INT), 0))",
    "position": "CAST(LOCATE({1}, {0}) AS BIGINT)",
    "replace": f"SUBSTRING(REPLACE({{0}}, {{1}}, {{2}}), 1, {MAX_TEXT_LENGTH})",
    "split_part": "SPLIT_PART({0}, {2}, CAST({1} AS INT))",
    "like": like,
    "like_any_case": like_any_case,
    "matches": matches,
    **{
        part: f"CAST({part}({{0}}) AS BIGINT)"
        for part in ("year", "quarter", "month", "day", "hour", "minute", "second")
    },
    "week": "CAST(weekofyear({0}) AS BIGINT)",
    "dow": "CAST(dayofweek({0}) - 1 AS BIGINT)",
    "isodow": "CAST((dayofweek({0}) + 5) % 7 + 1 AS BIGINT)",
    "doy": "CAST(dayofyear({0}) AS BIGINT)",
    # Not DATE_TRUNC, which converts to a time zone and back.
    "trunc_year": "CAST(MAKE_DATE(year({0}), 1, 1) AS TIMESTAMP_NTZ)",
    "trunc_quarter": "CAST(MAKE_DATE(year({0}), quarter({0}) * 3 - 2, 1) AS TIMESTAMP_NTZ)",
    "trunc_month": "CAST(MAKE_DATE(year({0}), month({0}), 1) AS TIMESTAMP_NTZ)",
    "trunc_week": "CAST(DATE_SUB(CAST({0} AS DATE), (dayofweek({0}) + 5) % 7) AS TIMESTAMP_NTZ)",
    "trunc_day": "CAST(CAST({0} AS DATE) AS TIMESTAMP_NTZ)",
    "trunc_hour": "CAST(CAST({0} AS DATE) AS TIMESTAMP_NTZ) + MAKE_DT_INTERVAL(0, hour({0}), 0, 0)",
    "trunc_minute": "{0} - MAKE_DT_INTERVAL(0, 0, 0, EXTRACT(SECOND FROM {0}))",
    "trunc_second": "{0} - MAKE_DT_INTERVAL(0, 0, 0, EXTRACT(SECOND FROM {0}) % 1)",
    "to_timestamp": "CAST({0} AS TIMESTAMP_NTZ)",
    "days_between": "CAST(DATEDIFF({1}, {0}) AS BIGINT)",
    "add_days": _shift_within("DATE_ADD({0}, {1})", _DATE_RANGE),
    "add_seconds": _shift_within("{0} + INTERVAL '{1}' SECOND", _TIMESTAMP_RANGE),
}

_TYPES = {
    Type.INTEGER: "BIGINT",
    Type.REAL: "DOUBLE",
    Type.BOOLEAN: "BOOLEAN",
    Type.TEXT: "STRING",
    Type.DATE: "DATE",
    Type.TIMESTAMP: "TIMESTAMP_NTZ",
}


def _min_or_max(function: str, value: str, _kind: Type) -> str:
    """Return MIN or MAX; a unit column is qualified, because HAVING might take it for an alias of the SELECT."""
    table = "w." if value.startswith('".u') else ""
    return f"{function}({table}{value})"


_DECIMAL_SUM = "SUM(CAST({0} AS DECIMAL(28, 0)))"
# Not TRY_CAST: if Sail compares a TRY_CAST with a number, it compares the original value, even if the cast is NULL.
_SUM_OR_NULL = case_when(
    f"{_DECIMAL_SUM} BETWEEN -9223372036854775808 AND 9223372036854775807", f"CAST({_DECIMAL_SUM} AS BIGINT)"
)


def _spark_dialect() -> Dialect:
    """Return Spark's SQL.

    Claim: every operation yields a value or NULL and never raises, integers are exact, and a constant is its value; a
        search takes a bounded time, or is refused.
    Proof: integers are computed by `try_` functions, which give NULL outside 64 bits; divisors are compared with 0 and
        -1 first. Doubles follow IEEE; functions get only arguments that are allowed. A text is cast with TRY_CAST and
        only after a pattern has accepted it, and split at a number other than 0. Shifted dates and times are compared
        with the calendar's ends. A text literal has letters, digits and a few signs, or the digits of its bytes.
        unsupported_pattern bounds searches.
    Needs: COMMON_OPERATIONS, case_when, constant, real_literal, text_literal, requote_names, lower, upper, like,
        like_any_case, matches, unsupported_pattern, largest_double_where, check_size, in_list, nearest_step.
    Checked by: test_spark_sql_equals_the_reference, test_spark_sql_never_raises_because_of_a_row,
        test_a_constant_ends_where_it_should, test_no_text_takes_more_matching_steps_than_computed
    """
    return Dialect(
        _OPERATIONS,
        _TYPES,
        constant,
        check_size,
        in_list(constant),
        nearest_step(
            case_when(
                f"ABS(CAST({{value}} AS DOUBLE)) < {_INFINITY}",
                "FLOOR(LEAST(GREATEST(CAST({value} AS DOUBLE), {low}), {high}) / {step} + 0.5D)",
            ),
            constant,
        ),
        finite_or_null=f"({case_when(f'ABS({{value}}) < {_INFINITY}', '{value} + 0D')})",
        quotient="{0} DIV {1}",
        sign="(CASE WHEN {0} < 0 THEN -1 ELSE 1 END)",
        sum_or_null=_SUM_OR_NULL,
        min_or_max=_min_or_max,
        materialized="",
        finish_select=requote_names,
        unsupported_reason=unsupported_pattern,
        max_nesting=100,  # some 150 levels may overflow the stack of its parser
        max_listed=100_000,  # which Spark parses in a few seconds
    )


SPARK = _spark_dialect()
