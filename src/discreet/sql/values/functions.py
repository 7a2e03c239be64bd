"""The functions that a query may use on single rows, with PostgreSQL's meaning and a value, or NULL, for every row.

A handler takes a node and a Reader, which reads the parts; RULES says which node each handler takes, and which of the
node's arguments it understands: a node with any other argument is refused.
"""

import re
from difflib import get_close_matches

from sqlglot import exp

from discreet.kernel.errors import Refused
from discreet.sql.places import written
from discreet.sql.values.bound import Bound
from discreet.sql.values.numbers import clipped, logarithm, rounded, several, simple, truncated
from discreet.sql.values.ranges import call
from discreet.sql.values.reading import REAL, TEXT, Handler, Reader
from discreet.sql.values.texts import (
    affixed,
    concat,
    escaped_like,
    left_part,
    like,
    matches,
    similar,
    substring,
    trimmed,
)
from discreet.sql.values.times import (
    added,
    date_add,
    date_diff,
    date_trunc,
    extracted,
    part_of_date,
    subtracted,
    to_date,
)


def _anonymous(node: exp.Expression, reader: Reader) -> Bound:
    if node.name.upper() == "CLIP":
        return clipped(node, reader)
    raise unknown(node, reader)


def shown(node: exp.Expression) -> str:
    """Show a part of the query, at most 60 characters of it."""
    text = "".join(letter if letter.isprintable() else " " for letter in written(node)[:61])
    return text if len(text) <= 60 else text[:59] + "…"


def unknown(node: exp.Expression, reader: Reader) -> Refused:
    """Return the refusal of a function that is not on the list, with the nearest one that is."""
    found = re.match(r"\w+", shown(node))
    name = (found[0] if found else node.key).upper()
    if isinstance(node, _VOLATILE) or name in _VOLATILE_NAMES:
        way_out = "Write the date, time or number as a constant."
        return reader.refuse(node, f"{name} would give another answer at another time", way_out)
    close = get_close_matches(name, NAMES, n=1, cutoff=0.75)
    way_out = _HINTS.get(name) or (f"Did you mean {close[0]}?" if close else _OTHERWISE)
    return reader.refuse(node, f"{name} is not among the functions that are safe for every row", way_out)


_OTHERWISE = (
    "Use arithmetic, CASE, LIKE, ROUND, EXTRACT, DATE_TRUNC, LOWER or SUBSTRING, or ask the owner for a column of it."
)
_VOLATILE = (
    exp.CurrentTimestamp,
    exp.CurrentDate,
    exp.CurrentTime,
    exp.CurrentDatetime,
    exp.Localtime,
    exp.Localtimestamp,
    exp.Rand,
    exp.Randn,
    exp.Uuid,
)
_VOLATILE_NAMES = (
    *("CLOCK_TIMESTAMP", "STATEMENT_TIMESTAMP", "TRANSACTION_TIMESTAMP", "TIMEOFDAY", "GETDATE", "SYSDATE", "TODAY"),
    *("UUID_GENERATE_V4", "RANDOM_NORMAL", "NEXTVAL", "SETSEED"),
)
_HINTS = {
    "AGE": "Subtract dates, CAST(x AS DATE) - CAST(y AS DATE), or write DATE_DIFF('year', x, y).",
    "TO_CHAR": "Write EXTRACT(YEAR FROM x) or DATE_TRUNC('month', x).",
    "POSITION": "Write x LIKE '%text%'.",
    "DATE_BIN": "Write DATE_TRUNC('hour', x).",
    "WIDTH_BUCKET": "Write FLOOR((x - low) / width).",
    "RIGHT": "Write x LIKE '%end', or SUBSTRING with constant positions.",
    "DAYOFWEEK": "Write EXTRACT(DOW FROM x).",
    "MAKE_DATE": "Write DATE '2010-01-31'.",
    "CONCAT_WS": "Write CONCAT(x, '-', y).",
}
NAMES = (
    *("ABS", "CEIL", "CEILING", "CLIP", "EXP", "FLOOR", "GREATEST", "LEAST", "LN", "LOG", "LOG10", "MOD", "POWER"),
    *("ROUND", "SIGN", "SQRT", "TRUNC", "COALESCE", "NULLIF", "CAST", "CHAR_LENGTH", "CONCAT", "LEFT", "LENGTH"),
    *("LOWER", "LTRIM", "REGEXP_LIKE", "RTRIM", "STARTS_WITH", "SUBSTR", "SUBSTRING", "TRIM", "UPPER"),
    *("DATE_DIFF", "DATE_PART", "DATE_TRUNC", "EXTRACT"),
)
_UNARY = {
    exp.Sign: "sign",
    exp.Floor: "floor",
    exp.Ceil: "ceil",
    exp.Sqrt: "sqrt",
    exp.Exp: "exp",
    exp.Ln: "ln",
    exp.Lower: "lower",
    exp.Upper: "upper",
    exp.Length: "length",
}
_DATE_PARTS = {
    exp.Year: "year",
    exp.Quarter: "quarter",
    exp.Month: "month",
    exp.Week: "week",
    exp.WeekOfYear: "week",
    exp.Day: "day",
    exp.DayOfMonth: "day",
    exp.DayOfYear: "doy",
    exp.Hour: "hour",
    exp.Minute: "minute",
    exp.Second: "second",
}
RULES: dict[type, tuple[Handler, str]] = {
    **{kind: (simple(op, TEXT if op in ("lower", "upper", "length") else REAL), "this") for kind, op in _UNARY.items()},
    **{kind: (part_of_date(name), "this") for kind, name in _DATE_PARTS.items()},
    exp.Abs: (lambda node, reader: call("abs", reader.number(node.this)), "this"),
    exp.Round: (rounded, "this decimals"),
    exp.Trunc: (truncated, "this decimals"),
    exp.Log: (logarithm, "this expression"),
    exp.Pow: (simple("power", REAL), "this expression"),
    exp.Least: (several("least"), "this expressions ignore_nulls"),
    exp.Greatest: (several("greatest"), "this expressions ignore_nulls"),
    exp.Coalesce: (several("coalesce"), "this expressions"),
    exp.Nullif: (several("nullif"), "this expression"),
    exp.Trim: (trimmed, "this expression position"),
    exp.Substring: (substring, "this start length"),
    exp.Left: (left_part, "this expression"),
    exp.Concat: (concat, "expressions safe coalesce"),
    exp.Like: (like, "this expression negate"),
    exp.ILike: (like, "this expression negate"),
    exp.Escape: (escaped_like, "this expression"),
    exp.StartsWith: (affixed("", "%"), "this expression"),
    exp.EndsWith: (affixed("%", ""), "this expression"),
    exp.Contains: (affixed("%", "%"), "this expression"),
    exp.RegexpLike: (matches, "this expression flag"),
    exp.RegexpILike: (matches, "this expression flag"),
    exp.SimilarTo: (similar, "this expression"),
    exp.Extract: (extracted, "this expression"),
    exp.TimestampTrunc: (date_trunc, "this unit"),
    exp.DateDiff: (date_diff, "this expression unit"),
    exp.Date: (to_date, "this"),
    exp.Add: (added, "this expression"),
    exp.Sub: (subtracted, "this expression"),
    exp.DateAdd: (date_add, "this expression"),
    exp.DateSub: (date_add, "this expression"),
    exp.Anonymous: (_anonymous, "this expressions"),
}
