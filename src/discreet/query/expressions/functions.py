"""The functions supported on single rows.

OPERATIONS has what computes the shared operations that are not one of the kernel's, and RULES how other nodes are read.
"""

import re
from collections.abc import Callable
from functools import partial

from sqlglot import exp

from discreet.kernel.errors import Refused
from discreet.kernel.expr import Constant
from discreet.query.expressions import text_functions
from discreet.query.expressions.bound_expr import BoundExpr
from discreet.query.expressions.date_functions import (
    bind_add,
    bind_date,
    bind_date_diff,
    bind_date_trunc,
    bind_extract,
    bind_subtract,
    date_part_function,
)
from discreet.query.expressions.operands import BOOLEAN, INTEGER, REAL, TEXT, TYPE_NAMES, ExprReader
from discreet.query.expressions.value_ranges import bound_call, bound_constant, is_null
from discreet.query.syntax.operations import VOLATILE, NodeRule, function_hint
from discreet.query.syntax.syntax_tree import refuse, sql_of

Compute = Callable[..., BoundExpr]  # from a node, its reader and operands to an operation that has several parts


def _round(_node: exp.Expr, _reader: ExprReader, value: BoundExpr, digits: int | None) -> BoundExpr:
    return bound_call("round", value, bound_constant(digits or 0, INTEGER))


def _trunc(node: exp.Expr, reader: ExprReader, value: BoundExpr, digits: int | None) -> BoundExpr:
    if digits and abs(digits) > 15:
        raise reader.refuse(node, "the number of digits is out of range", "Write a number from -15 to 15.")
    scale = bound_constant(10.0 ** (digits or 0), REAL)
    scaled = bound_call("multiply", value, scale) if digits else value
    whole_part = bound_call(
        "case",
        bound_call("less", scaled, bound_constant(0.0, REAL)),
        bound_call("ceil", scaled),
        bound_call("floor", scaled),
    )
    return bound_call("divide", whole_part, scale) if digits else whole_part


def _log(node: exp.Expr, _reader: ExprReader, base: BoundExpr, value: BoundExpr | None) -> BoundExpr:
    """Return LOG(x), base 10, or LOG(b, x), base b."""
    if value is None or (isinstance(node.this, exp.Literal) and node.this.name == "10"):
        return bound_call("log10", base if value is None else value)
    return bound_call("divide", bound_call("ln", value), bound_call("ln", base))


def _chosen(op: str) -> Compute:
    """Return what computes a choice among values; that among one value is the value."""
    return lambda _node, _reader, *values: bound_call(op, *values) if len(values) > 1 else values[0]


def bind_clip(node: exp.Expr, reader: ExprReader) -> BoundExpr:
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


_MAX_BUCKETS = 100_000
_BUCKET_HINT = "Write WIDTH_BUCKET(x, 0, 100, 10), or WIDTH_BUCKET(x, ARRAY[10, 20, 50])."


def bind_width_bucket(node: exp.Expr, reader: ExprReader) -> BoundExpr:
    """Bind WIDTH_BUCKET(x, low, high, count) and WIDTH_BUCKET(x, ARRAY[thresholds])."""
    thresholds, size = node.args.get("threshold"), node.args.get("num_buckets")
    if (size is None) is (thresholds is None) or (size is None and not isinstance(thresholds, exp.Array)):
        raise reader.refuse(node, "WIDTH_BUCKET takes a number, two bounds and a number of buckets", _BUCKET_HINT)
    ends = (
        [node.args[name] for name in ("min_value", "max_value")] if thresholds is None else list(thresholds.expressions)
    )
    value, *bounds = reader.bind_common_type(node, [node.this, *ends])
    values = [bound.expr.value for bound in bounds if isinstance(bound.expr, Constant) and not is_null(bound)]
    if value.type not in (INTEGER, REAL) or not values or len(values) < len(bounds):
        raise reader.refuse(node, "WIDTH_BUCKET takes a number and constant bounds", _BUCKET_HINT)
    if thresholds is not None:
        if values != sorted(values):  # type: ignore[type-var]
            raise reader.refuse(node, "the thresholds must be sorted", "Write the lowest first.")
        return _count_thresholds(value, bounds)
    count = reader.constant_integer(node.args["num_buckets"])
    if not 1 <= count <= _MAX_BUCKETS or values[0] == values[1]:
        cause = f"WIDTH_BUCKET takes two different bounds, and from 1 to {_MAX_BUCKETS:,} buckets"
        raise reader.refuse(node, cause, _BUCKET_HINT)
    low, high = bounds
    if abs(_constant_number(high) - _constant_number(low)) * count >= 1 << 63 and value.type is INTEGER:
        raise reader.refuse(node, "the bounds are too far apart", "Write CAST(x AS DOUBLE PRECISION).")
    return _equal_width_bucket(value, low, high, count)


def _equal_width_bucket(value: BoundExpr, low: BoundExpr, high: BoundExpr, count: int) -> BoundExpr:
    """Return the number of the bucket: 0 before the first bound, count + 1 from the second on, as PostgreSQL does."""
    width = _constant_number(high) - _constant_number(low)
    if width > 0:
        before, beyond = bound_call("less", value, low), bound_call("at_most", high, value)
        offset = bound_call("subtract", bound_call("clip", value, low, high), low)
    else:
        before, beyond = bound_call("less", low, value), bound_call("at_most", value, high)
        offset = bound_call("subtract", low, bound_call("clip", value, high, low))
    if value.type is INTEGER:
        scaled = bound_call("multiply", offset, bound_constant(count, INTEGER))
        index = bound_call("divide", scaled, bound_constant(int(abs(width)), INTEGER))
    else:
        share = bound_call("divide", offset, bound_constant(float(abs(width)), REAL))
        scaled = bound_call("multiply", share, bound_constant(float(count), REAL))
        index = bound_call("to_integer", bound_call("floor", scaled))
    zero, one, top, above = (bound_constant(number, INTEGER) for number in (0, 1, count - 1, count + 1))
    within = bound_call("add", bound_call("clip", index, zero, top), one)  # LEAST would ignore NULL
    return bound_call("case", before, zero, beyond, above, within)


def _constant_number(bound: BoundExpr) -> float:
    assert isinstance(bound.expr, Constant)
    assert isinstance(bound.expr.value, int | float)
    return bound.expr.value


def _count_thresholds(value: BoundExpr, thresholds: list[BoundExpr]) -> BoundExpr:
    """Return the number of thresholds that a value reaches."""
    numbers = [bound_constant(number, INTEGER) for number in range(len(thresholds))]
    branches = [
        part
        for threshold, number in zip(thresholds, numbers, strict=True)
        for part in (bound_call("less", value, threshold), number)
    ]
    reaches_last = bound_call("as_integer", bound_call("at_most", thresholds[-1], value))
    return bound_call("case", *branches, bound_call("add", numbers[-1], reaches_last))  # NULL stays NULL


def _bind_anonymous(node: exp.Expr, reader: ExprReader) -> BoundExpr:
    if node.name.upper() == "CLIP":
        return bind_clip(node, reader)
    raise unknown_function_refusal(node, reader.clause)


def sql_excerpt(node: exp.Expr) -> str:
    """Return at most 60 characters of an expression's SQL."""
    text = "".join(letter if letter.isprintable() else " " for letter in sql_of(node)[:61])
    return text if len(text) <= 60 else text[:59] + "…"


def unknown_function_refusal(node: exp.Expr, clause: str) -> Refused:
    """Return the refusal of an unsupported function, with a similar supported one as the hint."""
    match = re.match(r"\w+", sql_excerpt(node))
    name = (match[0] if match else node.key).upper()
    if isinstance(node, VOLATILE) or name in _VOLATILE_NAMES:
        hint = "Write the date, time or number as a constant."
        return refuse(node, clause, f"{name} is not supported: its result changes from call to call", hint)
    return refuse(node, clause, f"function {name} is not supported", function_hint(name) or _DEFAULT_HINT)


_DEFAULT_HINT = (
    "Use arithmetic, CASE, LIKE, ROUND, EXTRACT, DATE_TRUNC, LOWER or SUBSTRING, or ask the owner to add such a column."
)
_VOLATILE_NAMES = (
    *("CLOCK_TIMESTAMP", "STATEMENT_TIMESTAMP", "TRANSACTION_TIMESTAMP", "TIMEOFDAY", "GETDATE", "SYSDATE", "TODAY"),
    *("UUID_GENERATE_V4", "RANDOM_NORMAL", "NEXTVAL", "SETSEED"),
)
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
OPERATIONS: dict[str, Compute] = {
    "round": _round,
    "trunc": _trunc,
    "log": _log,
    **{op: _chosen(op) for op in ("coalesce", "least", "greatest")},
    **{op: partial(text_functions.trim, op) for op in ("trim", "trim_left", "trim_right")},
    **dict.fromkeys(("like", "ilike", "not_like", "not_ilike"), text_functions.like),
    "substring": text_functions.substring,
    "left": text_functions.left,
    "right": text_functions.right,
    "position": text_functions.position,
    "replace": text_functions.replace_text,
    "split_part": text_functions.split_part,
    "starts_with": lambda _node, _reader, text, part: text_functions.search("", "%", text, part),
    "ends_with": lambda _node, _reader, text, part: text_functions.search("%", "", text, part),
    "contains": lambda _node, _reader, text, part: text_functions.search("%", "%", text, part),
}


RULES: dict[type, NodeRule] = {
    **{kind: NodeRule("this", date_part_function(name)) for kind, name in _DATE_PARTS.items()},
    exp.WidthBucket: NodeRule("this min_value max_value num_buckets threshold", bind_width_bucket),
    exp.Concat: NodeRule("expressions safe coalesce", text_functions.bind_concat),
    exp.RegexpLike: NodeRule("this expression flag", text_functions.bind_regexp),
    exp.RegexpILike: NodeRule("this expression flag", text_functions.bind_regexp),
    exp.SimilarTo: NodeRule("this expression", text_functions.bind_similar_to),
    exp.Extract: NodeRule("this expression", bind_extract),
    exp.TimestampTrunc: NodeRule("this unit", bind_date_trunc),
    exp.DateDiff: NodeRule("this expression unit", bind_date_diff),
    exp.Date: NodeRule("this", bind_date),
    exp.Add: NodeRule("this expression", bind_add),
    exp.Sub: NodeRule("this expression", bind_subtract),
    exp.DateAdd: NodeRule("this expression", bind_add),
    exp.DateSub: NodeRule("this expression", bind_subtract),
    exp.Anonymous: NodeRule("this expressions", _bind_anonymous),
}
