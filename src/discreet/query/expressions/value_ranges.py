"""Public ranges of expressions, by exact interval arithmetic, and their natural steps.

An unknown end is None. Arithmetic on reals is exact, so that 0.1 + 0.2 is 0.3; ranges of approximated functions are
widened outward. A quotient of reals has a range only if the divisor's range excludes zero. Privacy does not depend
on ranges, because summed values are clamped.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from fractions import Fraction
from itertools import product
from typing import Any

from discreet.engines.reference.evaluate import evaluate
from discreet.kernel.expr import MAX_TEXT_LENGTH, Call, Column, Constant, Expr, Type, Value
from discreet.query.expressions.bound_expr import BoundExpr

Interval = tuple[Any, Any]  # two Fractions, dates or timestamps; None if unbounded

NUMERIC = (Type.INTEGER, Type.REAL)
DATE_PARTS = {
    "quarter": (1, 4),
    "month": (1, 12),
    "week": (1, 53),
    "day": (1, 31),
    "dow": (0, 6),
    "isodow": (1, 7),
    "doy": (1, 366),
    "hour": (0, 23),
    "minute": (0, 59),
    "second": (0, 59),
}
_UNBOUNDED: Interval = (None, None)
_ZERO, _ONE, _HALF = Fraction(0), Fraction(1), Fraction(1, 2)
_INT64 = 1 << 63
_MAX_END = Fraction(10) ** 300  # no grid can represent a larger range
_MAX_DENOMINATOR_BITS = 256  # ends with larger denominators are rounded outward to a double
_SLACK = Fraction(1, 1 << 40)  # far above the error of any engine's exp, ln or power, far below any step
_MAX_GRID_STEPS = 1 << 40  # the most integer steps that a grid can have
_PATTERNS = ("like", "like_any_case", "matches")  # not evaluated here: a query's pattern may be slow


def bound_constant(value: Value, kind: Type) -> BoundExpr:
    """Return a constant with its range.

    >>> bound_constant(0.1, Type.REAL).high
    Fraction(1, 10)
    """
    end = value if isinstance(value, date) else None
    if isinstance(value, int | float) and kind in NUMERIC:
        return BoundExpr(Constant(value, kind), Fraction(str(value)), Fraction(str(value)))
    return BoundExpr(Constant(value, kind), end, end)


def is_null(bound: BoundExpr) -> bool:
    """Return whether an expression is the constant NULL."""
    return isinstance(bound.expr, Constant) and bound.expr.value is None


def bound_call(op: str, *args: BoundExpr) -> BoundExpr:
    """Return an operation with the range of its result; operations on constants are evaluated.

    >>> bound_call("divide", bound_constant(7, Type.INTEGER), bound_constant(-2, Type.INTEGER)).expr
    Constant(value=-3, type=<Type.INTEGER: 'i'>)
    """
    bound = _with_range(Call(op, tuple(arg.expr for arg in args)), args)
    if op in _PATTERNS or not all(isinstance(arg.expr, Constant) for arg in args):
        return bound
    if bound.type is Type.REAL and (op in _INTERVAL_RULES or op == "divide") and not any(map(is_null, args)):
        low, high = _interval(bound)  # exact, where doubles would round
        return bound if low is None or low != high else bound_constant(float(low), Type.REAL)
    return bound_constant(evaluate(bound.expr, {}), bound.type)


def range_of(expr: Expr, columns: Mapping[str, BoundExpr]) -> BoundExpr:
    """Return an expression with the range that follows from its columns' ranges."""
    if isinstance(expr, Column):
        return columns.get(expr.name, BoundExpr(expr))
    if isinstance(expr, Constant):
        return bound_constant(expr.value, expr.type)
    return _with_range(expr, [range_of(arg, columns) for arg in expr.args])


def truncate(window: str, moment: datetime) -> datetime:
    """Return the start of the window that contains a moment.

    >>> truncate("week", datetime(2010, 1, 1, 12))
    datetime.datetime(2009, 12, 28, 0, 0)
    """
    start = evaluate(Call(f"trunc_{window}", (Constant(moment, Type.TIMESTAMP),)), {})
    assert isinstance(start, datetime)
    return start


def _interval(bound: BoundExpr) -> Interval:
    return bound.low, bound.high


def _with_range(expr: Call, args: Sequence[BoundExpr]) -> BoundExpr:
    interval = _UNBOUNDED
    if expr.op in _OPERAND_RULES:
        interval = _OPERAND_RULES[expr.op](args)
    elif expr.op in DATE_PARTS:
        interval = Fraction(DATE_PARTS[expr.op][0]), Fraction(DATE_PARTS[expr.op][1])
    elif expr.op.startswith("trunc_"):
        interval = _monotone(lambda moment: truncate(expr.op.removeprefix("trunc_"), moment))(_interval(args[0]))
    elif expr.op in _INTERVAL_RULES:
        interval = _INTERVAL_RULES[expr.op](*map(_interval, args))
    low, high = _representable(interval, expr.type) if expr.type in NUMERIC else interval
    return BoundExpr(expr, low, high, _step(expr, args, low, high))


def _representable(interval: Interval, kind: Type) -> Interval:
    """Drop ends that overflow the type: engines return NULL there, and sums cannot use them."""
    least, most = (-_INT64, _INT64 - 1) if kind is Type.INTEGER else (-_MAX_END, _MAX_END)
    low, high = (end if end is not None and least <= end <= most else None for end in interval)
    return _shorten_end(low, -math.inf), _shorten_end(high, math.inf)


def _shorten_end(end: Fraction | None, outward: float) -> Fraction | None:
    """Round an end outward to a double if its denominator is large, which bounds the size of nested products."""
    if end is None or end.denominator.bit_length() <= _MAX_DENOMINATOR_BITS:
        return end
    return Fraction(math.nextafter(float(end), outward))


def _apply_if_known(function: Callable[..., Any], *ends: Any) -> Any:
    """Apply a function if all ends are known."""
    try:
        return None if any(end is None for end in ends) else function(*ends)
    except OverflowError:  # a date beyond the year 9999, an exponential beyond a double
        return None


def _monotone(function: Callable[[Any], Any]) -> Callable[..., Interval]:
    return lambda a: (_apply_if_known(function, a[0]), _apply_if_known(function, a[1]))


def _hull(values: Sequence[Any]) -> Interval:
    return _UNBOUNDED if not values or any(value is None for value in values) else (min(values), max(values))


def _add(a: Interval, b: Interval) -> Interval:
    return _apply_if_known(lambda x, y: x + y, a[0], b[0]), _apply_if_known(lambda x, y: x + y, a[1], b[1])


def _negate(a: Interval) -> Interval:
    return _apply_if_known(lambda x: -x, a[1]), _apply_if_known(lambda x: -x, a[0])


def _multiply(a: Interval, b: Interval) -> Interval:
    return _hull([_apply_if_known(lambda x, y: x * y, x, y) for x, y in product(a, b)])


def _divide(args: Sequence[BoundExpr]) -> Interval:
    a, b = map(_interval, args)
    if args[0].type is Type.INTEGER:
        return _integer_quotient(a, b)
    return _UNBOUNDED if None in b or b[0] <= 0 <= b[1] else _multiply(a, (1 / b[1], 1 / b[0]))


def _integer_quotient(a: Interval, b: Interval) -> Interval:
    """Return the range of an integer quotient: divisors are at least 1 in absolute value, results truncated."""
    least, most = (-_INT64 if b[0] is None else b[0]), (_INT64 if b[1] is None else b[1])
    divisors = {end for end in (least, most, -_ONE, _ONE) if end and least <= end <= most}
    return _hull([_apply_if_known(lambda x, y: Fraction(math.trunc(x / y)), x, y) for x, y in product(a, divisors)])


def _modulo(a: Interval, b: Interval) -> Interval:
    """Return the range of a remainder, which has the sign of the dividend and is smaller than the divisor."""
    below = None if None in b else max(abs(b[0]), abs(b[1])) - 1
    if below is None or below < 0:
        return _UNBOUNDED
    low = -below if a[0] is None else max(-below, min(a[0], _ZERO))
    return low, below if a[1] is None else min(below, max(a[1], _ZERO))


def _abs(a: Interval) -> Interval:
    if None in a:
        return _ZERO, None
    return (_ZERO if a[0] <= 0 <= a[1] else min(map(abs, a))), max(map(abs, a))


def _sign(a: Interval) -> Interval:
    low, high = (None if x is None else Fraction((x > 0) - (x < 0)) for x in a)
    return -_ONE if low is None else low, _ONE if high is None else high


def _round(a: Interval, digits: Interval = (0, 0)) -> Interval:
    """Round both ends, ties outward, because engines may break them either way."""
    scale = Fraction(10) ** int(digits[0])
    low = _apply_if_known(lambda x: math.ceil(x * scale - _HALF) / scale, a[0])
    return low, _apply_if_known(lambda x: math.floor(x * scale + _HALF) / scale, a[1])


def _monotone_function(
    compute: Callable[[float], float], least: Fraction, size: int, exact: Callable[[Fraction, Fraction], bool]
) -> Callable[[Interval], Interval]:
    """Return the rule of an increasing function defined from `least`; results below `size` have an absolute error."""

    def end(x: Fraction, sign: int) -> Fraction:
        value = Fraction(compute(float(x)))
        return value if exact(value, x) else value + sign * max(abs(value), Fraction(size)) * _SLACK

    def interval(a: Interval) -> Interval:
        if a[1] is not None and a[1] < least:
            return _UNBOUNDED
        low = None if a[0] is None or a[0] < least else a[0]
        return _apply_if_known(lambda x: end(x, -1), low), _apply_if_known(lambda x: end(x, 1), a[1])

    return interval


def _is_power_of_ten(y: Fraction, x: Fraction) -> bool:
    return y.denominator == 1 and Fraction(10) ** int(y) == x


_TINY = 1 / _MAX_END
_ln = _monotone_function(math.log, _TINY, 1, lambda _, x: x == 1)
_log10 = _monotone_function(math.log10, _TINY, 1, _is_power_of_ten)
_sqrt_interval = _monotone_function(math.sqrt, _ZERO, 0, lambda y, x: y * y == x)
_exp_interval = _monotone_function(math.exp, -_MAX_END, 0, lambda _, x: x == 0)


def _sqrt(a: Interval) -> Interval:
    return _sqrt_interval((_ZERO if a[0] is None else max(a[0], _ZERO), a[1]))


def _exp(a: Interval) -> Interval:
    low, high = _exp_interval(a)
    return _ZERO if low is None else low, high


def _power(a: Interval, b: Interval) -> Interval:
    """Return the range of a power; extremes are at corners if the base is nonnegative or the exponent an integer."""
    if None in a or None in b or (b[0] < 0 and a[0] <= 0 <= a[1]):
        return _UNBOUNDED
    if b[0] == b[1] and b[0].denominator == 1:
        corners = [(x, b[0]) for x in (*a, *([_ZERO] if a[0] < 0 < a[1] else []))]
    elif a[0] >= 0:
        corners = list(product(a, b))
    else:
        return _UNBOUNDED
    intervals = [_apply_if_known(_power_interval, x, y) for x, y in corners]
    return _hull([pair and pair[0] for pair in intervals])[0], _hull([pair and pair[1] for pair in intervals])[1]


def _power_interval(x: Fraction, y: Fraction) -> Interval:
    if y.denominator == 1 and abs(y) <= 64:
        return x ** int(y), x ** int(y)
    value = Fraction(math.pow(float(x), float(y)))
    return value - value * _SLACK, value + value * _SLACK


def _days_between(a: Interval, b: Interval) -> Interval:
    """Return the range of the number of days from the first to the second."""
    return tuple(_apply_if_known(lambda x, y: Fraction((y - x).days), *ends) for ends in ((a[1], b[0]), (a[0], b[1])))


def _shift(unit: str) -> Callable[[Interval, Interval], Interval]:
    return lambda a, b: _monotone(lambda moment: moment + timedelta(**{unit: int(b[0])}))(a)


def _union(args: Sequence[BoundExpr]) -> Interval:
    ends = [_interval(arg) for arg in args if not is_null(arg)]
    return _hull([low for low, _ in ends])[0], _hull([high for _, high in ends])[1]


def _least(args: Sequence[BoundExpr]) -> Interval:
    """Return the range of LEAST, which ignores NULL, so only a constant's value is a certain upper bound."""
    low, high = _union(args)
    return low, min([end for end in (high, *_constant_ends(args)) if end is not None], default=None)


def _greatest(args: Sequence[BoundExpr]) -> Interval:
    low, high = _union(args)
    return max([end for end in (low, *_constant_ends(args)) if end is not None], default=None), high


def _constant_ends(args: Sequence[BoundExpr]) -> list[Any]:
    return [arg.low for arg in args if isinstance(arg.expr, Constant)]


def _clip(args: Sequence[BoundExpr]) -> Interval:
    value, (low, _), (_, high) = map(_interval, args)
    if low is None:
        return _UNBOUNDED
    return tuple(
        min(max(otherwise if end is None else end, low), high)
        for end, otherwise in zip(value, (low, high), strict=True)
    )


def _inside(args: Sequence[BoundExpr]) -> Interval:
    value, (low, _), (_, high) = map(_interval, args)
    if low is None:
        return _UNBOUNDED
    low, high = low if value[0] is None else max(value[0], low), high if value[1] is None else min(value[1], high)
    return (low, high) if low <= high else _UNBOUNDED


_OPERAND_RULES: dict[str, Callable[[Sequence[BoundExpr]], Interval]] = {
    "case": lambda args: _union([*args[1:-1:2], args[-1]]),
    "coalesce": _union,
    "nullif": lambda args: _interval(args[0]),
    "least": _least,
    "greatest": _greatest,
    "clip": _clip,
    "inside": _inside,
    "divide": _divide,
}
_INTERVAL_RULES: dict[str, Callable[..., Interval]] = {
    "add": _add,
    "subtract": lambda a, b: _add(a, _negate(b)),
    "multiply": _multiply,
    "modulo": _modulo,
    "negate": _negate,
    "abs": _abs,
    "sign": _sign,
    "floor": _monotone(lambda x: Fraction(math.floor(x))),
    "ceil": _monotone(lambda x: Fraction(math.ceil(x))),
    "round": _round,
    "sqrt": _sqrt,
    "ln": _ln,
    "log10": _log10,
    "exp": _exp,
    "power": _power,
    "to_real": lambda a: a,
    "to_integer": _round,
    "as_integer": lambda _: (_ZERO, _ONE),
    "length": lambda _: (_ZERO, None),
    "position": lambda *_: (_ZERO, Fraction(MAX_TEXT_LENGTH)),
    "year": _monotone(lambda moment: Fraction(moment.year)),
    "to_date": _monotone(lambda moment: moment.date()),
    "to_timestamp": _monotone(lambda day: datetime.combine(day, time.min)),
    "days_between": _days_between,
    "add_days": _shift("days"),
    "add_seconds": _shift("seconds"),
}


def _step(expr: Call, args: Sequence[BoundExpr], low: Any, high: Any) -> Fraction | None:
    """Return the natural step of a result, if it follows from its operands."""
    if expr.type not in NUMERIC or low is None or high is None:
        return None
    step = _STEP_RULES[expr.op](args) if expr.op in _STEP_RULES else None
    if step is None and expr.type is Type.INTEGER and max(abs(low), abs(high)) < _MAX_GRID_STEPS:
        return _ONE
    return step


def _common_step(args: Sequence[BoundExpr]) -> Fraction | None:
    """Return the finest of several steps, if all other steps and all constants are multiples of it."""
    sizes = [abs(_interval(arg)[0] or 0) if isinstance(arg.expr, Constant) else arg.step for arg in args]
    finest = min((arg.step for arg in args if arg.step), default=None)
    fits = finest is not None and all(size is not None and size % finest == 0 for size in sizes)
    return finest if fits else None


def _variable_step(args: Sequence[BoundExpr]) -> Fraction | None:
    return _common_step([arg for arg in args if not isinstance(arg.expr, Constant)])


def _scaled_step(value: BoundExpr, factor: BoundExpr) -> Fraction | None:
    size: Fraction = abs(_interval(factor)[0] or _ZERO)
    return value.step * size if isinstance(factor.expr, Constant) and size and value.step else None


def _divided_step(value: BoundExpr, divisor: BoundExpr) -> Fraction | None:
    size: Fraction = abs(_interval(divisor)[0] or _ZERO)
    fits = value.type is Type.REAL and isinstance(divisor.expr, Constant) and size and value.step
    return value.step / size if fits and value.step else None


_STEP_RULES: dict[str, Callable[[Sequence[BoundExpr]], Fraction | None]] = {
    **dict.fromkeys(("add", "subtract"), _common_step),
    **dict.fromkeys(("negate", "abs", "to_real", "nullif", "clip", "inside"), lambda args: args[0].step),
    **dict.fromkeys(("least", "greatest", "coalesce"), _variable_step),
    **dict.fromkeys(("floor", "ceil", "sign"), lambda _: _ONE),
    "case": lambda args: _variable_step([*args[1:-1:2], args[-1]]),
    "round": lambda args: 1 / Fraction(10) ** int(_interval(args[1])[0]),
    "multiply": lambda args: _scaled_step(*args) or _scaled_step(*reversed(args)),
    "divide": lambda args: _divided_step(*args),
}
