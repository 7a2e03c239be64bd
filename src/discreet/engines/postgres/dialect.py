"""PostgreSQL's SQL (13 and newer) for the kernel's operations; each is total: a value or NULL, and never an error.

PostgreSQL raises an error on everything out of range, so every operation checks its arguments first.
NULLIF(smaller(x, c), c) is NULL where x >= c: functions like float8smaller, which implement MIN and MAX, are NULL if an
argument is. No object is created on the server. Columns of a source are texts of at most 64 kB with the collation C
(TRIM fails on texts of a hundred MB), and finite dates and timestamps in the years 1 to 9999, in a UTF-8 database.
"""

import math
from collections.abc import Sequence
from datetime import date, datetime, timedelta

from discreet.engines.common_sql import COMMON_OPERATIONS, constant_integer, in_list
from discreet.engines.postgres import float_arithmetic as reals
from discreet.engines.postgres import text_functions as texts
from discreet.engines.size_limit import check_size
from discreet.kernel.expr import MAX_TEXT_LENGTH, Call, Constant, Expr, Type, Value
from discreet.kernel.sqlgen.dialect import Dialect, Operation
from discreet.kernel.sqlgen.expr_sql import fill_operation

_MIN_INT64, _MAX_INT64 = -(1 << 63), (1 << 63) - 1
_BELOW_INT64 = math.nextafter(float(_MIN_INT64), -math.inf)
_LONG_LIST = 100  # constants
_ABOVE_709 = math.nextafter(709, math.inf)


def _null_from(function: str, value: str, bound: str) -> str:
    """Return a value, or NULL where it reaches the bound: from below for a `smaller` function, else from above."""
    return f"NULLIF({function}({value}, {bound}), {bound})"


def _integer_operation(operator: str, safe_size: int) -> str:
    """Return SQL for an operation on integers, in NUMERIC if one of them is large."""
    size = f"BETWEEN -{safe_size} AND {safe_size}"
    exact = _numeric_to_bigint(f"CAST({{0}} AS NUMERIC) {operator} {{1}}")
    return f"CASE WHEN {{0}} {size} AND {{1}} {size} THEN {{0}} {operator} {{1}} ELSE {exact} END"


def _numeric_to_bigint(numeric: str) -> str:
    """Return SQL that casts a NUMERIC to BIGINT, or NULL on overflow."""
    in_range = _null_from(
        "numeric_smaller", _null_from("numeric_larger", numeric, f"{_MIN_INT64 - 1}"), f"{_MAX_INT64 + 1}"
    )
    return f"CAST({in_range} AS BIGINT)"


def _substring(args: Sequence[str], exprs: Sequence[Expr]) -> str:
    return f"SUBSTR({args[0]}, {constant_integer(exprs[1])}, {constant_integer(exprs[2])})"


def _split_part(args: Sequence[str], exprs: Sequence[Expr]) -> str:
    text, _, delimiter = args
    number = constant_integer(exprs[1])
    if number > 0:
        return f"SPLIT_PART({text}, {delimiter}, {number})"
    # PostgreSQL 13 counts from the start only. No array has a place 0 or less.
    fields = f"STRING_TO_ARRAY({text}, {delimiter})"
    return f"CASE WHEN {text} IS NOT NULL THEN COALESCE(({fields})[CARDINALITY({fields}) + {number + 1}], '') END"


def _concatenate(args: Sequence[str], _: Sequence[Expr]) -> str:
    # Also truncate the arguments: the concatenation of two valid texts may exceed PostgreSQL's limit.
    parts = " || ".join(f"SUBSTR({arg}, 1, {MAX_TEXT_LENGTH})" for arg in args)
    return f"SUBSTR({parts}, 1, {MAX_TEXT_LENGTH})"


_CALENDAR_RANGES: dict[str, tuple[date, date, timedelta]] = {
    "date": (date(1, 1, 1), date(9999, 12, 31), timedelta(days=1)),
    "timestamp": (
        datetime(1, 1, 1),  # noqa: DTZ001 - timestamps are local
        datetime(9999, 12, 31, 23, 59, 59, 999999),  # noqa: DTZ001
        timedelta(microseconds=1),
    ),
}


def _add_days(args: Sequence[str], exprs: Sequence[Expr]) -> str:
    days = constant_integer(exprs[1])
    return _shift_within_calendar(args[0], "date", timedelta(days=days), f"{days}")


def _add_seconds(args: Sequence[str], exprs: Sequence[Expr]) -> str:
    seconds = constant_integer(exprs[1])
    return _shift_within_calendar(args[0], "timestamp", timedelta(seconds=seconds), f"INTERVAL '{seconds} seconds'")


def _shift_within_calendar(value: str, kind: str, by: timedelta, text: str) -> str:
    """Return SQL that shifts a date or timestamp, or NULL where that leaves the calendar."""
    first, last, step = _CALENDAR_RANGES[kind]
    try:
        if by > timedelta(0):
            value = _null_from(f"{kind}_smaller", value, f"{kind.upper()} '{last - by + step}'")
        elif by < timedelta(0):
            value = _null_from(f"{kind}_larger", value, f"{kind.upper()} '{first - by - step}'")
    except OverflowError:
        return f"CAST(NULL AS {kind.upper()})"
    return f"{value} + {text}"


def _one_of(args: Sequence[str], exprs: Sequence[Expr]) -> str:
    constants = [expr.value for expr in exprs[1:] if isinstance(expr, Constant)]
    return _in_list(args[0], constants, exprs[0].type)


_OPERATIONS: dict[str, str | Operation] = {
    **COMMON_OPERATIONS,
    "add i": _integer_operation("+", 1 << 61),
    "subtract i": _integer_operation("-", 1 << 61),
    "multiply i": _integer_operation("*", 1 << 31),
    "divide i": f"CAST(NULLIF(DIV(CAST({{0}} AS NUMERIC), NULLIF({{1}}, 0)), {_MAX_INT64 + 1}) AS BIGINT)",
    "modulo": "{0} % NULLIF({1}, 0)",
    "negate i": f"-NULLIF({{0}}, CAST('{_MIN_INT64}' AS BIGINT))",
    "abs i": f"ABS(NULLIF({{0}}, CAST('{_MIN_INT64}' AS BIGINT)))",
    "add": reals.ADD,
    "subtract": reals.SUBTRACT,
    "multiply": reals.MULTIPLY,
    "divide": reals.DIVIDE,
    "sign": "SIGN({0})",
    "floor": "FLOOR({0})",
    "ceil": "CEIL({0})",
    "round": reals.round_to_places,
    "sqrt": f"SQRT({_null_from('float8larger', '{0}', reals.float_literal(-5e-324))})",
    "ln": f"LN({_null_from('float8larger', '{0}', '0')})",
    "log10": f"LOG({_null_from('float8larger', '{0}', '0')})",
    "exp": f"EXP(float8larger({_null_from('float8smaller', '{0}', reals.float_literal(_ABOVE_709))}, -708))",
    "power": reals.POWER,
    "to_real": "CAST({0} AS DOUBLE PRECISION)",
    "to_integer": "CAST({} AS BIGINT)".format(
        _null_from(
            "float8smaller",
            _null_from("float8larger", "{0}", reals.float_literal(_BELOW_INT64)),
            reals.float_literal(float(_MAX_INT64)),
        )
    ),
    "as_integer": "CAST(CAST({0} AS INTEGER) AS BIGINT)",
    "read_integer": texts.cast_if_matches(texts.INTEGER_PATTERN, "BIGINT"),
    "read_real": texts.cast_if_matches(texts.REAL_PATTERN, "DOUBLE PRECISION"),
    "read_date": texts.cast_if_matches(texts.DATE_PATTERN, "DATE"),
    "read_timestamp": texts.cast_if_matches(texts.TIMESTAMP_PATTERN, "TIMESTAMP"),
    "write_integer": 'CAST({0} AS TEXT) COLLATE "C"',
    "write_boolean": 'CAST({0} AS TEXT) COLLATE "C"',
    "write_date": "TO_CHAR(CAST({0} AS TIMESTAMP), 'YYYY-MM-DD') COLLATE \"C\"",
    "one_of": _one_of,
    "nullif": "NULLIF({0}, {1})",
    "lower": texts.lower,
    "upper": texts.upper,
    "trim": "BTRIM({0}, ' ')",
    "trim_left": "LTRIM({0}, ' ')",
    "trim_right": "RTRIM({0}, ' ')",
    "length": "CAST(CHAR_LENGTH({0}) AS BIGINT)",
    "join": _concatenate,
    "part": _substring,
    "keep_last": "RIGHT({0}, CAST({1} AS INTEGER))",
    "drop_last": "LEFT({0}, -CAST({1} AS INTEGER))",
    "position": "CAST(STRPOS({0}, {1}) AS BIGINT)",
    "replace": f"SUBSTR(REPLACE({{0}}, {{1}}, {{2}}), 1, {MAX_TEXT_LENGTH})",
    "split_part": _split_part,
    "like": texts.like,
    "like_any_case": texts.like_any_case,
    "matches": texts.matches,
    **{
        part: f"CAST(FLOOR(DATE_PART('{part}', {{0}})) AS BIGINT)"
        for part in ("year", "quarter", "month", "week", "day", "dow", "isodow", "doy", "hour", "minute", "second")
    },
    **{
        f"trunc_{window}": f"DATE_TRUNC('{window}', {{0}})"
        for window in ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
    },
    "to_timestamp": "CAST({0} AS TIMESTAMP)",
    "days_between": "CAST({1} - {0} AS BIGINT)",
    "add_days": _add_days,
    "add_seconds": _add_seconds,
}

_TYPES = {
    Type.INTEGER: "BIGINT",
    Type.REAL: "DOUBLE PRECISION",
    Type.BOOLEAN: "BOOLEAN",
    Type.TEXT: "TEXT",
    Type.DATE: "DATE",
    Type.TIMESTAMP: "TIMESTAMP",
}


def _constant(value: Value, kind: Type) -> str:
    match value:
        case bool():
            return f"CAST('{str(value).lower()}' AS BOOLEAN)"  # GROUP BY does not accept a bare TRUE
        case str():
            return texts.collated_literal(value)
        case datetime():
            return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
        case date():
            return f"DATE '{value.isoformat()}'"
    return f"CAST('{value!r}' AS {_TYPES[kind]})"


_NULL_SUBSTITUTES: dict[Type, Value] = {
    Type.INTEGER: 0,
    Type.REAL: 0.0,
    Type.BOOLEAN: False,
    Type.TEXT: "",
    Type.DATE: _CALENDAR_RANGES["date"][0],
    Type.TIMESTAMP: _CALENDAR_RANGES["timestamp"][0],
}


def _null_safe_equal(one: str, other: str, kind: Type) -> str:
    """Return SQL for "equal or both NULL" in a form that hash joins support."""
    substitute = _constant(_NULL_SUBSTITUTES[kind], kind)
    return f"COALESCE({one}, {substitute}) = COALESCE({other}, {substitute}) AND ({one} IS NULL) = ({other} IS NULL)"


def _in_list(text: str, values: Sequence[Value], kind: Type) -> str:
    """Return SQL for a value in a list, which is an array if it is long: PostgreSQL plans that faster."""
    if len(values) > _LONG_LIST:
        return f"{text} = ANY(CAST({texts.array_literal(values)} AS {_TYPES[kind]}[]))"
    return in_list(_constant)(text, values, kind)


def _min_or_max(function: str, value: str, kind: Type) -> str:
    if kind is Type.BOOLEAN:
        return f"{'BOOL_AND' if function == 'MIN' else 'BOOL_OR'}({value})"
    return f"{function}({value})"


def _compute_once(operation: str | Operation) -> Operation:
    """Return an operation that computes an argument once even if its SQL repeats it, so that SQL does not grow."""

    def write(args: Sequence[str], exprs: Sequence[Expr]) -> str:
        marks = [f"\0{index}\0" for index in range(len(args))]
        text = fill_operation(operation, marks, exprs)
        repeated = [
            index for index, expr in enumerate(exprs) if isinstance(expr, Call) and text.count(marks[index]) > 1
        ]
        # No column of a table has a name that begins with a dot.
        columns = ", ".join(f'{args[index]} AS ".a{index}"' for index in repeated)
        named_args = [f'z.".a{index}"' if index in repeated else arg for index, arg in enumerate(args)]
        value = fill_operation(operation, named_args, exprs)
        return f"SELECT {value} FROM (SELECT {columns} OFFSET 0) AS z" if repeated else value  # noqa: S608

    return write


def _postgres_dialect() -> Dialect:
    """Return PostgreSQL's SQL.

    Claim: every operation yields a value or NULL and never raises, integers are exact, and a constant is its value.
    Proof: PostgreSQL raises outside the range of a type, so an argument is compared first, or becomes NULL by
        _null_from: sums of integers up to 2^61 and products up to 2^31 fit, larger ones are computed as NUMERIC; the
        calendar's ends are shifted in Python. Reals are those of float_arithmetic. A text is cast only if a pattern
        that matches nothing but valid values has matched it, and split at a number above 0, or as an array. What is
        computed once is of the same row. Literals do not depend on a setting of the server.
    Needs: COMMON_OPERATIONS, ADD, SUBTRACT, MULTIPLY, DIVIDE, POWER, round_to_places, cast_if_matches,
        text_literal, array_literal, lower, upper, like, like_any_case, matches, shorten_names,
        check_size, in_list, _compute_once.
    Checked by: test_postgresql_equals_the_reference, test_postgresql_never_raises_because_of_a_row,
        test_settings_of_the_server_change_nothing
    """
    return Dialect(
        {name: _compute_once(operation) for name, operation in _OPERATIONS.items()},
        _TYPES,
        _constant,
        check_size,
        _in_list,
        reals.nearest_step,
        finite_or_null=f"({reals.finite_or_null('{value}')} + '0')",
        quotient="{0} / {1}",
        sign="CASE WHEN {0} < 0 THEN -1 ELSE 1 END",
        sum_or_null=_numeric_to_bigint("SUM({0})"),
        text_hash='MD5({0}) COLLATE "C"',
        min_or_max=_min_or_max,
        null_safe_equal=_null_safe_equal,
        optimization_fence=" OFFSET 0",
        finish_select=texts.shorten_names,
    )


POSTGRES = _postgres_dialect()
