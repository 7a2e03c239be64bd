"""Hints for functions that are not supported: another spelling, or what to write instead."""

from difflib import get_close_matches

from sqlglot import exp

from discreet.query.syntax.syntax_tree import is_aggregate

_HINTS = {
    **dict.fromkeys(("AVERAGE", "MEAN"), "Write AVG(x)."),
    **dict.fromkeys(("COUNT_DISTINCT", "COUNTD", "NUNIQUE"), "Write COUNT(DISTINCT x)."),
    "AGE": "Write EXTRACT(YEAR FROM AGE(end, start)), DATE_DIFF('month', start, end), or subtract dates.",
    "TO_CHAR": "Write EXTRACT(YEAR FROM x) or DATE_TRUNC('month', x).",
    "DATE_BIN": "Write DATE_TRUNC('hour', x).",
    "DAYOFWEEK": "Write EXTRACT(DOW FROM x).",
    "MAKE_DATE": "Write DATE '2010-01-31'.",
    "CONCAT_WS": "Write CONCAT(x, '-', y).",
}
FUNCTION_NAMES = (
    *("ABS", "CEIL", "CEILING", "CLIP", "EXP", "FLOOR", "GREATEST", "LEAST", "LN", "LOG", "LOG10", "MOD", "POWER"),
    *("ROUND", "SIGN", "SQRT", "TRUNC", "COALESCE", "NULLIF", "CAST", "CHAR_LENGTH", "CONCAT", "LEFT", "LENGTH"),
    *("INSTR", "LOWER", "LTRIM", "POSITION", "REGEXP_LIKE", "REPLACE", "RIGHT", "RTRIM", "SPLIT_PART", "STARTS_WITH"),
    *("STRPOS", "SUBSTR", "SUBSTRING", "TRIM", "UPPER", "WIDTH_BUCKET"),
    *("DATE_DIFF", "DATE_PART", "DATE_TRUNC", "EXTRACT"),
)
_AGGREGATE_NAMES = (
    *("AVG", "CORR", "COUNT", "COUNT_IF", "COVAR_POP", "COVAR_SAMP", "MAX", "MEDIAN", "MIN", "MODE", "QUANTILE"),
    *("REGR_INTERCEPT", "REGR_R2", "REGR_SLOPE", "STDDEV", "SUM", "VARIANCE"),
)


def function_hint(name: str) -> str | None:
    """Return what to write instead of an unknown function; None if nothing is similar.

    >>> function_hint("MEDAIN"), function_hint("average"), function_hint("XIRR")
    ('Did you mean MEDIAN?', 'Write AVG(x).', None)
    """
    if name.upper() in FUNCTION_NAMES:  # which is not supported in this place
        return None
    close = get_close_matches(name.upper(), (*FUNCTION_NAMES, *_AGGREGATE_NAMES), n=1, cutoff=0.75)
    return _HINTS.get(name.upper()) or (f"Did you mean {close[0]}?" if close else None)


def is_unknown_function(node: exp.Expr) -> bool:
    """Return whether a node calls a function that is neither supported nor an aggregate."""
    return isinstance(node, exp.Anonymous) and not is_aggregate(node) and node.name.upper() not in FUNCTION_NAMES
