"""DuckDB's SQL for the kernel's operations; each is total: it yields a value or NULL and never raises."""

import math
from collections.abc import Sequence
from datetime import date, datetime

from discreet.engines.common_sql import COMMON_OPERATIONS, case_when, constant_regex, in_list, nearest_step
from discreet.engines.size_limit import check_size
from discreet.kernel.expr import MAX_TEXT_LENGTH, Column, Constant, Expr, Type, Value
from discreet.kernel.sqlgen.dialect import Dialect, Operation
from discreet.kernel.sqlgen.expr_sql import fill_operation

_INTEGER_PATTERN = "'[+-]?[0-9]{{1,18}}'"
_REAL_PATTERN = "'[+-]?([0-9]{{1,100}}(\\.[0-9]{{0,100}})?|\\.[0-9]{{1,100}})([eE][+-]?(0?[0-9]{{1,2}}|1[0-9]{{2}}))?'"
_DATE_PATTERN = "(000[1-9]|00[1-9][0-9]|0[1-9][0-9]{{2}}|[1-9][0-9]{{3}})-[0-9]{{2}}-[0-9]{{2}}"  # no year 0
_TIME_PATTERN = "([01][0-9]|2[0-3]):[0-9]{{2}}(:[0-9]{{2}}(\\.[0-9]{{1,6}})?)?"  # no 24:00, which is the next day
_DATE_RANGE = "DATE '0001-01-01' AND DATE '9999-12-31'"
_TIMESTAMP_RANGE = "TIMESTAMP '0001-01-01 00:00:00' AND TIMESTAMP '9999-12-31 23:59:59.999999'"


def _power(texts: Sequence[str], exprs: Sequence[Expr]) -> str:
    power = f"POW({', '.join(texts)})"
    not_finite = "".join(
        f"NOT ISFINITE({text}) OR " for text, expr in zip(texts, exprs, strict=True) if not isinstance(expr, Constant)
    )
    return f"CASE WHEN {not_finite}ABS({power}) > 1e307 THEN NULL WHEN ABS({power}) < 1e-307 THEN 0 ELSE {power} END"


_OPERATIONS: dict[str, str | Operation] = {
    **COMMON_OPERATIONS,
    "join": lambda texts, _: f"SUBSTRING({' || '.join(texts)}, 1, {MAX_TEXT_LENGTH})",
    # 128 bits hold every sum, difference and product of 64-bit integers; overflow on the way back becomes NULL.
    "add i": "TRY_CAST(CAST({0} AS HUGEINT) + {1} AS BIGINT)",
    "subtract i": "TRY_CAST(CAST({0} AS HUGEINT) - {1} AS BIGINT)",
    "multiply i": "TRY_CAST(CAST({0} AS HUGEINT) * {1} AS BIGINT)",
    "divide i": case_when("{1} <> 0", "TRY_CAST(CAST({0} AS HUGEINT) // {1} AS BIGINT)"),
    "modulo": case_when("{1} <> 0", "CAST(CAST({0} AS HUGEINT) % {1} AS BIGINT)"),
    "negate i": "TRY_CAST(-CAST({0} AS HUGEINT) AS BIGINT)",
    "abs i": "TRY_CAST(ABS(CAST({0} AS HUGEINT)) AS BIGINT)",
    "add": "{0} + {1}",
    "subtract": "{0} - {1}",
    "multiply": "{0} * {1}",
    "divide": case_when("{1} <> 0", "{0} / {1}"),
    "sign": "CAST(SIGN({0}) AS DOUBLE)",
    "floor": "FLOOR({0})",
    "ceil": "CEIL({0})",
    "round": "ROUND({0}, CAST({1} AS INTEGER))",
    "sqrt": case_when("{0} >= 0", "SQRT({0})"),
    "ln": case_when("{0} > 0", "LN({0})"),
    "log10": case_when("{0} > 0", "LOG10({0})"),
    "exp": case_when("{0} <= 709", "EXP(GREATEST({0}, -708))"),
    "power": _power,
    "to_real": "CAST({0} AS DOUBLE)",
    "to_integer": "TRY_CAST(ROUND_EVEN({0}, 0) AS BIGINT)",
    "as_integer": "CAST({0} AS BIGINT)",
    "read_integer": case_when(f"REGEXP_FULL_MATCH({{0}}, {_INTEGER_PATTERN})", "TRY_CAST({0} AS BIGINT)"),
    "read_real": case_when(f"REGEXP_FULL_MATCH({{0}}, {_REAL_PATTERN})", "TRY_CAST({0} AS DOUBLE)"),
    "read_date": case_when(f"REGEXP_FULL_MATCH({{0}}, '{_DATE_PATTERN}')", "TRY_CAST({0} AS DATE)"),
    "read_timestamp": case_when(
        f"REGEXP_FULL_MATCH({{0}}, '{_DATE_PATTERN}[ T]{_TIME_PATTERN}')", "TRY_CAST({0} AS TIMESTAMP)"
    ),
    "write_integer": "CAST({0} AS VARCHAR)",
    "write_boolean": "CAST({0} AS VARCHAR)",
    "write_date": "CAST({0} AS VARCHAR)",
    "one_of": "{0} IN ({rest})",
    "nullif": "NULLIF({0}, {1})",
    "lower": "LOWER({0})",
    "upper": "UPPER({0})",
    "trim": "TRIM({0}, ' ')",
    "trim_left": "LTRIM({0}, ' ')",
    "trim_right": "RTRIM({0}, ' ')",
    "length": "LENGTH({0})",
    "part": "SUBSTRING({0}, {1}, {2})",
    "keep_last": "RIGHT({0}, {1})",
    "drop_last": "LEFT({0}, -{1})",
    "position": "STRPOS({0}, {1})",
    "replace": f"SUBSTRING(REPLACE({{0}}, {{1}}, {{2}}), 1, {MAX_TEXT_LENGTH})",
    "split_part": "SPLIT_PART({0}, {2}, {1})",
    "like": "{0} LIKE {1} ESCAPE '\\'",
    "like_any_case": "{0} ILIKE {1} ESCAPE '\\'",
    "matches": lambda texts, exprs: f"REGEXP_MATCHES({texts[0]}, {_constant(constant_regex(exprs[1]), Type.TEXT)})",
    **{
        part: f"CAST(EXTRACT({part} FROM {{0}}) AS BIGINT)"  # EXTRACT from a NULL is a DOUBLE
        for part in ("year", "quarter", "month", "week", "day", "dow", "isodow", "doy", "hour", "minute", "second")
    },
    **{
        f"trunc_{window}": f"CAST(DATE_TRUNC('{window}', {{0}}) AS TIMESTAMP)"
        for window in ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
    },
    "to_timestamp": "CAST({0} AS TIMESTAMP)",
    "days_between": "CAST({1} - {0} AS BIGINT)",
    "add_days": case_when(f"{{0}} + CAST({{1}} AS INTEGER) BETWEEN {_DATE_RANGE}", "{0} + CAST({1} AS INTEGER)"),
    "add_seconds": case_when(f"{{0}} + TO_SECONDS({{1}}) BETWEEN {_TIMESTAMP_RANGE}", "{0} + TO_SECONDS({1})"),
}

_TYPES = {
    Type.INTEGER: "BIGINT",
    Type.REAL: "DOUBLE",
    Type.BOOLEAN: "BOOLEAN",
    Type.TEXT: "VARCHAR",
    Type.DATE: "DATE",
    Type.TIMESTAMP: "TIMESTAMP",
}


def _constant(value: Value, kind: Type) -> str:
    match value:
        case bool():
            return "TRUE" if value else "FALSE"
        case float():
            assert math.isfinite(value)
            return f"CAST('{value!r}' AS DOUBLE)"  # the shortest text that parses to this double
        case str():
            return "'" + value.replace("'", "''") + "'"
        case datetime():
            return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
        case date():
            return f"DATE '{value.isoformat()}'"
    return f"CAST('{value}' AS {_TYPES[kind]})"


def opaque(column: str) -> str:
    """Return a column as an operand of an expression.

    Claim: its value is that of the column, and DuckDB does not know its minimum, its maximum, or whether it has NULL.
    Proof: TRY returns the value of its operand, or NULL where that fails; a column does not, nor does the expression
        that DuckDB may put in its place, as operations are total. DuckDB 2.0 propagates no statistics through TRY. It
        simplifies other expressions by the statistics of their columns, and errs: where these make a condition
        constant, CASE WHEN p IS NULL THEN 'B' END = 'A' fails with an internal error.
    Needs: nothing.
    Checked by: test_statistics_do_not_reach_expressions, test_no_plan_fails_depending_on_the_rows
    """
    return f"TRY({column})"


def _on_opaque_columns(operation: str | Operation) -> Operation:
    """Return an operation whose operands that are columns are opaque."""
    return lambda texts, exprs: fill_operation(
        operation,
        [opaque(text) if isinstance(expr, Column) else text for text, expr in zip(texts, exprs, strict=True)],
        exprs,
    )


def _duckdb_dialect() -> Dialect:
    """Return DuckDB's SQL.

    Claim: every operation yields a value or NULL and never raises, integers are exact, and a constant is its value.
    Proof: integers are computed in 128 bits, which hold every sum, difference and product of 64-bit ones, and TRY_CAST
        gives NULL outside 64 bits; divisors are compared with 0 first. Doubles follow IEEE and do not raise, except
        that SQRT, LN, LOG10, EXP and POW get only arguments that are allowed or finite. A text is cast after a pattern
        has accepted it, and with TRY_CAST. A text is split at a number other than 0. Dates and times that are shifted
        are compared with the calendar's ends. Regular expressions are portable. Quotes in a text are doubled, and
        nothing else ends a literal. Columns in expressions are opaque, so a plan follows from the SQL; the conditions
        on bare columns, which the kernel writes, are comparisons with constants and tests for NULL.
    Needs: COMMON_OPERATIONS, case_when, constant_regex, check_size, in_list, nearest_step, opaque, fill_operation.
    Checked by: test_the_engine_equals_the_reference, test_duckdb_never_raises_because_of_a_row,
        test_a_constant_cannot_inject_sql
    """
    return Dialect(
        {name: _on_opaque_columns(operation) for name, operation in _OPERATIONS.items()},
        _TYPES,
        _constant,
        check_size,
        in_list(_constant),
        nearest_step(
            case_when(
                f"ISFINITE(CAST({opaque('{value}')} AS DOUBLE))",
                f"CAST(FLOOR(LEAST(GREATEST(CAST({opaque('{value}')} AS DOUBLE), {{low}}), {{high}}) / {{step}} + 0.5)"
                " AS BIGINT)",
            ),
            _constant,
        ),
        finite_or_null=f"(CASE WHEN ISFINITE({opaque('{value}')}) THEN {opaque('{value}')} + 0.0 END)",
        sum_in_group="COALESCE(CAST(SUM_NO_OVERFLOW({0}) AS BIGINT), 0)",  # 12 % faster; wraps outside 64 bits
    )


DUCKDB = _duckdb_dialect()
