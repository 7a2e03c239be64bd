"""Finite public domains: all values that an expression can have as a group key.

An expression is evaluated on all combinations of its columns' values, if these are few. Operations such as EXTRACT,
DATE_TRUNC, FLOOR and CASE have finite domains even on columns without one (timestamps, reals). Data may contain NULL
whatever the policy says, so the domain of COALESCE(x, 'none') includes 'none'; NULL itself is included only if
declared values lead to it.
"""

import math
from collections.abc import Iterable, Mapping
from datetime import timedelta
from fractions import Fraction
from functools import cache, lru_cache
from itertools import product
from typing import Any

from discreet.engines.reference.evaluate import evaluate, finite_or_null
from discreet.kernel.expr import Call, Column, Constant, Expr, Type, Value
from discreet.query.expressions.bound_expr import BoundExpr
from discreet.query.expressions.value_ranges import range_of, truncate

Domain = tuple[Value, ...]

_MAX_VALUES = 1_000_000
_MAX_COMBINATIONS = 200_000
_MAX_WORK = 5_000_000  # operations in total, a few seconds
_WINDOW_SECONDS = {  # the minimum length of a window
    **dict(zip(("second", "minute", "hour", "day", "week"), (1, 60, 3600, 86_400, 604_800), strict=True)),
    **dict(zip(("month", "quarter", "year"), (28 * 86_400, 90 * 86_400, 365 * 86_400), strict=True)),
}
_EXTRA_DAYS = {"month": 3, "quarter": 2, "year": 1}  # maximum days beyond the minimum length
# Engines may differ in the last digit of these, and patterns in a query may be slow.
NOT_EVALUATED = frozenset({"ln", "log10", "exp", "power", "like", "like_any_case", "matches"})
_UNLISTED_NULL: Any = object()  # a NULL that the column's domain does not list


def domain_of(expr: Expr, columns: Mapping[str, BoundExpr]) -> Domain | None:
    """Return all possible group values in display order; None if partition selection is needed.

    >>> age = BoundExpr(Column("age", Type.INTEGER), Fraction(0), Fraction(39))
    >>> domain_of(Call("divide", (age.expr, Constant(10, Type.INTEGER))), {"age": age})
    (0, 1, 2, 3)
    """
    return _DomainFinder(columns).domain(expr)


@lru_cache(maxsize=16)  # each may have 200,000 values
def _values_of(expr: Expr, leaves: tuple[Domain, ...]) -> Domain:
    """Return the values of an expression for all combinations of its columns "leaf 0", "leaf 1", …"""
    if _is_monotone(expr) and None not in leaves[0]:
        return _sorted_values(_monotone_values(expr, leaves[0]), expr.type)
    results: dict[Value, None] = {}
    for row in product(*(values if None in values else (*values, _UNLISTED_NULL) for values in leaves)):
        arguments = (None if value is _UNLISTED_NULL else value for value in row)
        value = finite_or_null(evaluate(expr, {f"leaf {index}": argument for index, argument in enumerate(arguments)}))
        if value is not None or _UNLISTED_NULL not in row:
            results[value] = None
    return _sorted_values(results, expr.type)


def _is_monotone(expr: Expr) -> bool:
    """Return whether an expression of one integer never falls where the integer rises."""
    if isinstance(expr, Column):
        return expr.type is Type.INTEGER
    if not isinstance(expr, Call) or expr.op not in ("floor", "to_real", "divide"):
        return False
    divisor = expr.args[-1]
    by_positive = isinstance(divisor, Constant) and isinstance(divisor.value, int) and divisor.value > 0
    return _is_monotone(expr.args[0]) and (expr.op != "divide" or by_positive)


def _monotone_values(expr: Expr, leaf: Domain) -> dict[Value, None]:
    """Return the values of a monotone expression: what lies between two equal ones need not be computed."""
    ascending = sorted(leaf)  # type: ignore[type-var]
    at = cache(lambda index: evaluate(expr, {"leaf 0": ascending[index]}))
    spans, results = [(0, len(ascending) - 1)], dict[Value, None]()
    while spans:
        first, last = spans.pop()
        results |= {at(first): None, at(last): None}
        if last - first > 1 and at(first) != at(last):
            middle = (first + last) // 2
            spans += [(first, middle), (middle, last)]
    return results


class _DomainFinder:
    """Computes the domains of subexpressions, each once."""

    def __init__(self, columns: Mapping[str, BoundExpr]) -> None:
        self._columns = columns
        self.domain = cache(self._find_domain)
        self._finite_leaves = cache(self._find_leaves)
        self._work = _MAX_WORK

    def _find_domain(self, expr: Expr) -> Domain | None:
        if isinstance(expr, Constant):
            return (expr.value,)
        if isinstance(expr, Column):
            return _column_domain(self._columns.get(expr.name, BoundExpr(expr)))
        return (False, True) if expr.type is Type.BOOLEAN else self._call_domain(expr)

    def _call_domain(self, expr: Call) -> Domain | None:
        constants = [arg.value for arg in _result_options(expr) if isinstance(arg, Constant)]
        if (
            expr.op == "case"
            and len(constants) == len(_result_options(expr))
            and (None not in constants or self._has_free_condition(expr))
        ):
            return _distinct_values(constants)
        enumerated = self._enumerate(expr)
        if enumerated is None:
            return self._covering_domain(expr)
        if expr.op not in ("case", "coalesce"):
            return enumerated
        return _ordered_values(expr, (*(value for value in constants if value is not None), *enumerated))

    def _enumerate(self, expr: Expr) -> Domain | None:
        """Evaluate an expression on the product of its leaves' domains, if it is small enough."""
        leaves = self._finite_leaves(expr)
        if not leaves:
            return None
        combinations = math.prod(len(values) + 1 for values in leaves.values())
        if combinations > _MAX_COMBINATIONS or combinations * expr.size > self._work:
            return None
        self._work -= combinations * expr.size
        names = {leaf: Column(f"leaf {index}", leaf.type) for index, leaf in enumerate(leaves)}
        return _values_of(_substitute(expr, names), tuple(leaves.values()))

    def _has_free_condition(self, expr: Call) -> bool:
        """Return whether a condition is independent of the others, so that enumeration gains nothing."""
        return any(isinstance(leaf, Call) and leaf.type is Type.BOOLEAN for leaf in self._finite_leaves(expr) or ())

    def _find_leaves(self, expr: Expr) -> dict[Expr, Domain] | None:
        """Return the subexpressions with finite domains that determine an expression; None if there are no such."""
        if isinstance(expr, Constant):
            return {}
        if isinstance(expr, Call):
            parts = [self._finite_leaves(arg) for arg in expr.args]
            if expr.op not in NOT_EVALUATED and all(part is not None for part in parts):
                return {leaf: values for part in parts if part for leaf, values in part.items()}
            values = (False, True) if expr.type is Type.BOOLEAN else self._covering_domain(expr)
        else:
            values = self.domain(expr)
        return None if values is None else {expr: values}

    def _covering_domain(self, expr: Call) -> Domain | None:
        """Return a superset of an operation's possible results."""
        if expr.op in ("case", "coalesce", "least", "greatest"):
            return self._options_domain(expr)
        if expr.op == "nullif":
            first = self.domain(expr.args[0])
            return None if first is None else _distinct_values((*first, None))
        facts = range_of(expr, self._columns)
        low, high = facts.low, facts.high
        if expr.op.startswith("trunc_"):
            return _window_starts(expr.op.removeprefix("trunc_"), low, high)
        if expr.type is Type.REAL:
            return _rounded_values(expr, low, high)
        return _range_values(expr.type, low, high)

    def _options_domain(self, expr: Call) -> Domain | None:
        lists, facts = [self.domain(arg) for arg in _result_options(expr)], range_of(expr, self._columns)
        if any(each is None for each in lists):
            return None if expr.type is Type.TEXT else _range_values(expr.type, facts.low, facts.high)
        missing = None in (lists[-1] or ()) if expr.op == "coalesce" else any(None in (each or ()) for each in lists)
        values_found = [value for each in lists for value in each or () if value is not None]
        return _ordered_values(expr, (*values_found, None) if missing else values_found)


def _result_options(expr: Call) -> tuple[Expr, ...]:
    return (*expr.args[1:-1:2], expr.args[-1]) if expr.op == "case" else expr.args


def _ordered_values(expr: Call, values: Iterable[Value]) -> Domain:
    """Return the values of a CASE over constants in written order, and other values sorted."""
    all_constant = expr.op in ("case", "coalesce") and all(isinstance(arg, Constant) for arg in _result_options(expr))
    return _distinct_values(values) if all_constant else _sorted_values(values, expr.type)


def _substitute(expr: Expr, names: Mapping[Expr, Column]) -> Expr:
    if expr in names:
        return names[expr]
    return Call(expr.op, tuple(_substitute(arg, names) for arg in expr.args)) if isinstance(expr, Call) else expr


def _distinct_values(values: Iterable[Value]) -> Domain:
    """Drop duplicates, and move NULL to the end."""
    distinct = dict.fromkeys(values)
    missing = (None,) if None in distinct else ()
    return (*(value for value in distinct if value is not None), *missing)


def _sorted_values(values: Iterable[Value], kind: Type) -> Domain:
    """Sort values; texts keep the order of the declared values they come from."""
    distinct = _distinct_values(values)
    if kind is Type.TEXT:
        return distinct
    return tuple(sorted(distinct, key=lambda value: (value is None, 0 if value is None else value)))


def _column_domain(bound: BoundExpr) -> Domain | None:
    return bound.domain if bound.domain is not None else _range_values(bound.type, bound.low, bound.high)


def _range_values(kind: Type, low: Any, high: Any) -> Domain | None:
    """List all integers or days of a range."""
    if kind is Type.BOOLEAN:
        return (False, True)
    if low is None or high is None or kind not in (Type.INTEGER, Type.DATE):
        return None
    if kind is Type.DATE:
        count = (high - low).days + 1
        return tuple(low + timedelta(days=day) for day in range(count)) if count <= _MAX_VALUES else None
    first, last = math.ceil(low), math.floor(high)
    if last - first < _MAX_COMBINATIONS:
        return _integers(first, last)
    return tuple(range(first, last + 1)) if last - first < _MAX_VALUES else None


@lru_cache(maxsize=16)
def _integers(first: int, last: int) -> Domain:
    return tuple(range(first, last + 1))


def _rounded_values(expr: Call, low: Any, high: Any) -> Domain | None:
    """List the values that a real can be rounded to."""
    if expr.op not in ("floor", "ceil", "round", "sign") or low is None or high is None:
        return None
    digits = int(expr.args[1].value) if expr.op == "round" else 0  # type: ignore[union-attr,arg-type]
    step = 1 / Fraction(10) ** digits
    first, last = math.ceil(low / step), math.floor(high / step)
    if last - first >= _MAX_VALUES:
        return None
    return tuple(index / 10**digits if digits > 0 else float(index * step) for index in range(first, last + 1))


def _window_starts(window: str, low: Any, high: Any) -> Domain | None:
    """List the starts of all windows between two moments, inclusive."""
    if low is None or high is None or (high - low).total_seconds() > _WINDOW_SECONDS[window] * _MAX_VALUES:
        return None
    longest = timedelta(days=_EXTRA_DAYS.get(window, 0), seconds=_WINDOW_SECONDS[window])
    starts, last = [truncate(window, low)], truncate(window, high)
    while starts[-1] < last:
        following = starts[-1] + longest
        starts.append(truncate(window, following) if window in _EXTRA_DAYS else following)
    return tuple(starts)
