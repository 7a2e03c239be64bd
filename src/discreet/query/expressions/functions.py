"""The functions supported on single rows.

A handler takes a node and an ExprReader, which binds the operands. RULES maps node types to handlers and the
arguments they support; a node with any other argument is refused.
"""

import re
from difflib import get_close_matches

from sqlglot import exp

from discreet.kernel.errors import Refused
from discreet.kernel.expr import Constant, Type
from discreet.query.expressions.bound_expr import BoundExpr
from discreet.query.expressions.coercion import BOOLEAN, INTEGER, REAL, TEXT, TYPE_NAMES, ExprReader, NodeHandler
from discreet.query.expressions.date_functions import (
    bind_add,
    bind_date,
    bind_date_add,
    bind_date_diff,
    bind_date_trunc,
    bind_extract,
    bind_subtract,
    date_part_function,
)
from discreet.query.expressions.text_functions import (
    affix_function,
    bind_concat,
    bind_left,
    bind_like,
    bind_like_escape,
    bind_position,
    bind_regexp,
    bind_replace,
    bind_right,
    bind_similar_to,
    bind_split_part,
    bind_substring,
    bind_trim,
)
from discreet.query.expressions.value_ranges import bound_call, bound_constant, is_null
from discreet.query.expressions.width_bucket import bind_width_bucket
from discreet.query.syntax.source_position import sql_of


def typed_function(op: str, kind: Type) -> NodeHandler:
    """Return the handler of a function whose arguments have a fixed type."""
    return lambda node, reader: bound_call(op, *(reader.bind_as(each, kind) for each in _operands(node)))


def _operands(node: exp.Expression) -> list[exp.Expression]:
    second = node.args.get("expression")
    return [node.this, *([] if second is None else [second]), *node.expressions]


def bind_round(node: exp.Expression, reader: ExprReader) -> BoundExpr:
    """Bind ROUND(x) and ROUND(x, n)."""
    digits = bound_constant(reader.constant_integer(node.args.get("decimals"), 0), INTEGER)
    return bound_call("round", reader.bind_as(node.this, REAL), digits)


def bind_trunc(node: exp.Expression, reader: ExprReader) -> BoundExpr:
    """Bind TRUNC(x) and TRUNC(x, n)."""
    value, digits = reader.bind_as(node.this, REAL), reader.constant_integer(node.args.get("decimals"), 0)
    if abs(digits) > 15:
        raise reader.refuse(node, "the number of digits is out of range", "Write a number from -15 to 15.")
    scale = bound_constant(10.0**digits, REAL)
    scaled = bound_call("multiply", value, scale) if digits else value
    whole_part = bound_call(
        "case",
        bound_call("less", scaled, bound_constant(0.0, REAL)),
        bound_call("ceil", scaled),
        bound_call("floor", scaled),
    )
    return bound_call("divide", whole_part, scale) if digits else whole_part


def bind_log(node: exp.Expression, reader: ExprReader) -> BoundExpr:
    """Bind LOG(x), base 10, and LOG(b, x), base b."""
    base, value = node.this, node.args.get("expression")
    if value is None or (isinstance(base, exp.Literal) and base.name == "10"):
        return bound_call("log10", reader.bind_as(base if value is None else value, REAL))
    return bound_call("divide", *(bound_call("ln", reader.bind_as(part, REAL)) for part in (value, base)))


def common_type_function(op: str) -> NodeHandler:
    """Return the handler of a function whose arguments have a common type."""

    def handle(node: exp.Expression, reader: ExprReader) -> BoundExpr:
        values = reader.bind_common_type(node, _operands(node))
        return bound_call(op, *values) if len(values) > 1 else values[0]

    return handle


def bind_clip(node: exp.Expression, reader: ExprReader) -> BoundExpr:
    """Bind CLIP(x, low, high)."""
    if len(node.expressions) != 3:
        raise reader.refuse(node, "CLIP takes a value and two bounds", "Write CLIP(x, 0, 100).")
    value, *ends = reader.bind_common_type(node, node.expressions)
    if value.type in (TEXT, BOOLEAN):
        raise reader.refuse(
            node, f"CLIP does not support type {TYPE_NAMES[value.type]}", "Use it on numbers, dates and timestamps."
        )
    if not all(isinstance(end.expr, Constant) and not is_null(end) for end in ends):
        raise reader.refuse(node, "the bounds of CLIP must be constants", "Write CLIP(x, 0, 100).")
    if ends[0].low > ends[1].low:  # type: ignore[operator]
        raise reader.refuse(node, "the bounds of CLIP are in the wrong order", "Write the lower bound first.")
    return bound_call("clip", value, *ends)


def _bind_anonymous(node: exp.Expression, reader: ExprReader) -> BoundExpr:
    if node.name.upper() == "CLIP":
        return bind_clip(node, reader)
    raise unknown_function_refusal(node, reader)


def sql_excerpt(node: exp.Expression) -> str:
    """Return at most 60 characters of an expression's SQL."""
    text = "".join(letter if letter.isprintable() else " " for letter in sql_of(node)[:61])
    return text if len(text) <= 60 else text[:59] + "…"


def unknown_function_refusal(node: exp.Expression, reader: ExprReader) -> Refused:
    """Return the refusal of an unsupported function, with a similar supported one as the hint."""
    match = re.match(r"\w+", sql_excerpt(node))
    name = (match[0] if match else node.key).upper()
    if isinstance(node, _VOLATILE) or name in _VOLATILE_NAMES:
        hint = "Write the date, time or number as a constant."
        return reader.refuse(node, f"{name} is not supported: its result changes from call to call", hint)
    close = get_close_matches(name, FUNCTION_NAMES, n=1, cutoff=0.75)
    hint = _HINTS.get(name) or (f"Did you mean {close[0]}?" if close else _DEFAULT_HINT)
    return reader.refuse(node, f"function {name} is not supported", hint)


_DEFAULT_HINT = (
    "Use arithmetic, CASE, LIKE, ROUND, EXTRACT, DATE_TRUNC, LOWER or SUBSTRING, or ask the owner to add such a column."
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
RULES: dict[type, tuple[NodeHandler, str]] = {
    **{
        kind: (typed_function(op, TEXT if op in ("lower", "upper", "length") else REAL), "this")
        for kind, op in _UNARY.items()
    },
    **{kind: (date_part_function(name), "this") for kind, name in _DATE_PARTS.items()},
    exp.Abs: (lambda node, reader: bound_call("abs", reader.bind_number(node.this)), "this"),
    exp.Round: (bind_round, "this decimals"),
    exp.Trunc: (bind_trunc, "this decimals"),
    exp.Log: (bind_log, "this expression"),
    exp.Pow: (typed_function("power", REAL), "this expression"),
    exp.Least: (common_type_function("least"), "this expressions ignore_nulls"),
    exp.Greatest: (common_type_function("greatest"), "this expressions ignore_nulls"),
    exp.Coalesce: (common_type_function("coalesce"), "this expressions"),
    exp.Nullif: (common_type_function("nullif"), "this expression"),
    exp.Trim: (bind_trim, "this expression position"),
    exp.Substring: (bind_substring, "this start length"),
    exp.Left: (bind_left, "this expression"),
    exp.Right: (bind_right, "this expression"),
    exp.StrPosition: (bind_position, "this substr"),
    exp.Replace: (bind_replace, "this expression replacement"),
    exp.SplitPart: (bind_split_part, "this delimiter part_index"),
    exp.WidthBucket: (bind_width_bucket, "this min_value max_value num_buckets threshold"),
    exp.Concat: (bind_concat, "expressions safe coalesce"),
    exp.Like: (bind_like, "this expression negate"),
    exp.ILike: (bind_like, "this expression negate"),
    exp.Escape: (bind_like_escape, "this expression"),
    exp.StartsWith: (affix_function("", "%"), "this expression"),
    exp.EndsWith: (affix_function("%", ""), "this expression"),
    exp.Contains: (affix_function("%", "%"), "this expression"),
    exp.RegexpLike: (bind_regexp, "this expression flag"),
    exp.RegexpILike: (bind_regexp, "this expression flag"),
    exp.SimilarTo: (bind_similar_to, "this expression"),
    exp.Extract: (bind_extract, "this expression"),
    exp.TimestampTrunc: (bind_date_trunc, "this unit"),
    exp.DateDiff: (bind_date_diff, "this expression unit"),
    exp.Date: (bind_date, "this"),
    exp.Add: (bind_add, "this expression"),
    exp.Sub: (bind_subtract, "this expression"),
    exp.DateAdd: (bind_date_add, "this expression"),
    exp.DateSub: (bind_date_add, "this expression"),
    exp.Anonymous: (_bind_anonymous, "this expressions"),
}
