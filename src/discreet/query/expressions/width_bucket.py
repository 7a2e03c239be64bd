"""WIDTH_BUCKET: the number of the bucket that a value falls into."""

from sqlglot import exp

from discreet.kernel.expr import Constant
from discreet.query.expressions.bound_expr import BoundExpr
from discreet.query.expressions.coercion import INTEGER, REAL, ExprReader
from discreet.query.expressions.value_ranges import bound_call, bound_constant, is_null

_MAX_BUCKETS = 100_000
_HINT = "Write WIDTH_BUCKET(x, 0, 100, 10), or WIDTH_BUCKET(x, ARRAY[10, 20, 50])."


def bind_width_bucket(node: exp.Expr, reader: ExprReader) -> BoundExpr:
    """Bind WIDTH_BUCKET(x, low, high, count) and WIDTH_BUCKET(x, ARRAY[thresholds])."""
    thresholds, size = node.args.get("threshold"), node.args.get("num_buckets")
    if (size is None) is (thresholds is None) or (size is None and not isinstance(thresholds, exp.Array)):
        raise reader.refuse(node, "WIDTH_BUCKET takes a number, two bounds and a number of buckets", _HINT)
    ends = (
        [node.args[name] for name in ("min_value", "max_value")] if thresholds is None else list(thresholds.expressions)
    )
    value, *bounds = reader.bind_common_type(node, [node.this, *ends])
    values = [bound.expr.value for bound in bounds if isinstance(bound.expr, Constant) and not is_null(bound)]
    if value.type not in (INTEGER, REAL) or not values or len(values) < len(bounds):
        raise reader.refuse(node, "WIDTH_BUCKET takes a number and constant bounds", _HINT)
    if thresholds is not None:
        if values != sorted(values):  # type: ignore[type-var]
            raise reader.refuse(node, "the thresholds must be sorted", "Write the lowest first.")
        return _count_thresholds(value, bounds)
    count = reader.constant_integer(size, 0)
    if not 1 <= count <= _MAX_BUCKETS or values[0] == values[1]:
        cause = f"WIDTH_BUCKET takes two different bounds, and from 1 to {_MAX_BUCKETS:,} buckets"
        raise reader.refuse(node, cause, _HINT)
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
