"""Parts of SQL, and rules of casts, that the dialects of all engines share."""

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from functools import lru_cache

from discreet.engines.portable_regex import check_regex
from discreet.kernel.expr import Constant, Expr, Type, Value
from discreet.kernel.sqlgen.dialect import GridFloats, Operation

Cast = Callable[[str], str]

MAX_PARSED_LENGTH = 400  # characters of a text that is parsed as a number or a timestamp
# What a text must look like to be cast. Spaces around it are ignored; the syntax means the same to every engine.
INTEGER_TEXT = " *[+-]?[0-9]{1,19}([.]0*)? *"
REAL_TEXT = " *[+-]?([0-9]+([.][0-9]*)?|[.][0-9]+)([eE][+-]?[0-9]{1,3})? *"
TIME_TEXT = "[ T]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9]([.][0-9]{1,9})?)?"
ZONE_TEXT = "(Z|[+-](0[0-9]|1[0-5])(:?[0-5][0-9])?)"
DEFAULT_TYPES = {
    **dict.fromkeys(("integer", "narrow", "wide"), Type.INTEGER),
    **dict.fromkeys(("real", "decimal"), Type.REAL),
    "boolean": Type.BOOLEAN,
    **dict.fromkeys(("text", "label", "collated"), Type.TEXT),
    "date": Type.DATE,
    **dict.fromkeys(("local", "other local", "instant"), Type.TIMESTAMP),
}


def _case(args: Sequence[str], _: Sequence[Expr]) -> str:
    pairs = zip(args[:-1:2], args[1:-1:2], strict=True)
    return f"CASE {' '.join(f'WHEN {when} THEN {then}' for when, then in pairs)} ELSE {args[-1]} END"


def _pairwise(function: str) -> Operation:
    """Return LEAST or GREATEST in pairs: DuckDB can fail to copy a plan with the same column twice among many."""

    def operation(args: Sequence[str], _: Sequence[Expr]) -> str:
        while len(args) > 2:
            pairs = [args[start : start + 2] for start in range(0, len(args), 2)]
            args = [f"({function}({', '.join(pair)}))" if len(pair) == 2 else pair[0] for pair in pairs]
        return f"{function}({', '.join(args)})"

    return operation


# The operations whose SQL is the same on every engine; all of them are total.
COMMON_OPERATIONS: Mapping[str, str | Operation] = {
    "and": lambda args, _: " AND ".join(args),
    "or": lambda args, _: " OR ".join(args),
    "case": _case,
    "negate": "-{0}",
    "abs": "ABS({0})",
    "least": _pairwise("LEAST"),
    "greatest": _pairwise("GREATEST"),
    "clip": "CASE WHEN {0} < {1} THEN {1} WHEN {0} > {2} THEN {2} ELSE {0} END",
    "inside": "CASE WHEN {0} BETWEEN {1} AND {2} THEN {0} END",
    "equal": "{0} = {1}",
    "less": "{0} < {1}",
    "at_most": "{0} <= {1}",
    "not": "NOT {0}",
    "is_null": "{0} IS NULL",
    "coalesce": "COALESCE({all})",
    "sign i": "CAST(SIGN({0}) AS BIGINT)",
    "to_date": "CAST({0} AS DATE)",
}


def in_list(constant: Callable[[Value, Type], str]) -> Callable[[str, Sequence[Value], Type], str]:
    """Return SQL that tests whether a value is in a list of constants; a long list of consecutive ones is a range."""

    def write(text: str, values: Sequence[Value], kind: Type) -> str:
        if is_range(values):
            return f"{text} BETWEEN {constant(min(values), kind)} AND {constant(max(values), kind)}"  # type: ignore[type-var]
        return f"{text} IN ({', '.join(constant(value, kind) for value in values)})"

    return write


def is_range(values: Sequence[Value]) -> bool:
    """Whether at least three distinct values are all integers, or all days, from the first to the last.

    >>> is_range((3, 1, 2)), is_range((1, 2, 4)), is_range((1, 2))
    (True, False, False)
    """
    kinds = {type(value) for value in values}
    if len(values) < 3 or kinds not in ({int}, {date}):
        return False
    steps = [value.toordinal() if isinstance(value, date) else value for value in values]
    return max(steps) - min(steps) == len(values) - 1  # type: ignore[operator,type-var]


def nearest_step(template: str, constant: Callable[[Value, Type], str]) -> Callable[[str, GridFloats], str]:
    """Return SQL for the index of the grid step nearest to {value}, for a grid from {low} to {high} with {step}."""

    def write_step(value: str, grid: GridFloats) -> str:
        low, high, step = (constant(end, Type.REAL) for end in grid)
        return template.format(value=value, low=low, high=high, step=step)

    return write_step


def case_when(condition: str, value: str) -> str:
    """Return a value, or NULL where the condition is not true."""
    return f"CASE WHEN {condition} THEN {value} END"


def cast_to(kind: str) -> Cast:
    """Return a cast that cannot fail."""
    return lambda x: f"CAST({x} AS {kind})"


def bit_to_boolean(x: str) -> str:
    """Return the boolean of 0 or 1, or NULL."""
    return f"CASE WHEN {x} = 0 THEN FALSE WHEN {x} = 1 THEN TRUE END"


def word_to_boolean(word: str) -> str:
    """Return the boolean of a word in lower case without spaces around it, or NULL."""
    return (
        f"CASE WHEN {word} IN ('true', 't', 'yes', 'y', '1') THEN TRUE "
        f"WHEN {word} IN ('false', 'f', 'no', 'n', '0') THEN FALSE END"
    )


def is_short(x: str) -> str:
    """Return the condition that a text is short enough to be parsed."""
    return f"LENGTH({x}) <= {MAX_PARSED_LENGTH}"


def constant_integer(expr: Expr) -> int:
    """Return the value of an argument that must be a constant integer."""
    assert isinstance(expr, Constant)
    assert isinstance(expr.value, int)
    return expr.value


def constant_text(expr: Expr) -> str:
    """Return the value of an argument that must be a constant text."""
    assert isinstance(expr, Constant)
    return str(expr.value)


def constant_regex(expr: Expr) -> str:
    """Return the value of an argument that must be a constant regular expression; ValueError unless it is portable.

    Claim: no engine is given a regular expression that check_regex does not accept.
    Proof: `matches` is the only operation with one, and each dialect writes it with what this function returns.
    Needs: check_regex, constant_text.
    Checked by: test_no_dialect_writes_a_pattern_that_engines_read_differently
    """
    text = constant_text(expr)
    check_regex(text)
    return text


@lru_cache(maxsize=2)
def changed_letters(change: Callable[[str], str]) -> Mapping[str, str]:
    """Return all characters that a change of case changes, with their replacements."""
    letters = map(chr, (*range(0xD800), *range(0xE000, 0x110000)))
    return {letter: changed for letter in letters if (changed := change(letter)) != letter}


def largest_double_where(holds: Callable[[float], bool]) -> float:
    """Return the largest positive double for which a monotone condition holds, if it holds for 1.

    >>> largest_double_where(lambda x: x * 10 < math.inf)
    1.7976931348623158e+307
    """
    low, high = 1.0, math.inf
    while math.nextafter(low, high) < high:
        middle = max(low + (min(high, sys.float_info.max) - low) / 2, math.nextafter(low, high))
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
