"""Finite public domains: every value that an expression can have as a group, listed only when asked for.

An expression is computed over all values of the columns in it, where these are few; a part that reads a column without
a list of values (a timestamp, a real) has a list of its own where its operation gives one: EXTRACT, DATE_TRUNC, FLOOR,
CASE. Data may hold NULL whatever the policy says, so that COALESCE(x, 'none') lists 'none'; NULL itself is listed only
where declared values lead to it.
"""

import math
from collections.abc import Iterable, Mapping
from datetime import timedelta
from fractions import Fraction
from itertools import product
from typing import Any

from discreet.engines.evaluate import evaluate, finite
from discreet.kernel.expr import Call, Column, Constant, Expr, Type, Value
from discreet.sql.values.bound import Bound
from discreet.sql.values.ranges import range_of, truncate

Domain = tuple[Value, ...]

_MOST_VALUES = 1_000_000
_MOST_COMBINATIONS = 200_000
_MOST_WORK = 5_000_000  # operations in all, some seconds
_SECONDS = {  # the shortest that such a window can be
    **dict(zip(("second", "minute", "hour", "day", "week"), (1, 60, 3600, 86_400, 604_800), strict=True)),
    **dict(zip(("month", "quarter", "year"), (28 * 86_400, 90 * 86_400, 365 * 86_400), strict=True)),
}
_LONGER = {"month": 3, "quarter": 2, "year": 1}  # so many days longer than the shortest
# Engines may differ in the last digit of these, or take unlike times for patterns that a query brings along.
_NOT_COMPUTED = frozenset({"ln", "log10", "exp", "power", "like", "like_any_case", "matches"})
_MISSING: Any = object()  # a NULL that the column's list does not name


def domain_of(expr: Expr, columns: Mapping[str, Bound]) -> Domain | None:
    """Return every value that a group may have, in the order to show them; None if groups must be discovered.

    >>> age = Bound(Column("age", Type.INTEGER), Fraction(0), Fraction(39))
    >>> domain_of(Call("divide", (age.expr, Constant(10, Type.INTEGER))), {"age": age})
    (0, 1, 2, 3)
    """
    return _Finder(columns).domain(expr)


class _Finder:
    """Domains of an expression's parts, each found once."""

    def __init__(self, columns: Mapping[str, Bound]) -> None:
        self._columns = columns
        self._domains: dict[Expr, Domain | None] = {}
        self._leaves: dict[Expr, dict[Expr, Domain] | None] = {}
        self._work = _MOST_WORK

    def domain(self, expr: Expr) -> Domain | None:
        if expr not in self._domains:
            self._domains[expr] = self._find(expr)
        return self._domains[expr]

    def _find(self, expr: Expr) -> Domain | None:
        if isinstance(expr, Constant):
            return (expr.value,)
        if isinstance(expr, Column):
            return _listed(self._columns.get(expr.name, Bound(expr)))
        return (False, True) if expr.type is Type.BOOLEAN else self._result(expr)

    def _result(self, expr: Call) -> Domain | None:
        written = [arg.value for arg in _options(expr) if isinstance(arg, Constant)]
        if expr.op == "case" and len(written) == len(_options(expr)) and (None not in written or self._is_free(expr)):
            return _distinct(written)
        found = self._computed(expr)
        if found is None:
            return self._from_parts(expr)
        if expr.op not in ("case", "coalesce"):
            return found
        return _in_order(expr, (*(value for value in written if value is not None), *found))

    def _computed(self, expr: Expr) -> Domain | None:
        """Compute an expression over the product of its leaves' values, if these are not too many."""
        leaves = self._finite(expr)
        if not leaves:
            return None
        combinations = math.prod(len(values) + 1 for values in leaves.values())
        if combinations > _MOST_COMBINATIONS or combinations * expr.weight > self._work:
            return None
        self._work -= combinations * expr.weight
        names = {leaf: Column(f"leaf {place}", leaf.type) for place, leaf in enumerate(leaves)}
        whole, keys = _replaced(expr, names), [column.name for column in names.values()]
        found: dict[Value, None] = {}
        for row in product(*(values if None in values else (*values, _MISSING) for values in leaves.values())):
            plain = (None if value is _MISSING else value for value in row)
            value = finite(evaluate(whole, dict(zip(keys, plain, strict=True))))
            if value is not None or _MISSING not in row:
                found[value] = None
        return _ascending(found, expr.type)

    def _is_free(self, expr: Call) -> bool:
        """Tell whether a condition in it may come out either way whatever the others do: nothing is to be computed."""
        return any(isinstance(leaf, Call) and leaf.type is Type.BOOLEAN for leaf in self._finite(expr) or ())

    def _finite(self, expr: Expr) -> dict[Expr, Domain] | None:
        """Return the parts with a list of values that an expression is computed from; None if it needs others."""
        if expr not in self._leaves:
            self._leaves[expr] = self._find_leaves(expr)
        return self._leaves[expr]

    def _find_leaves(self, expr: Expr) -> dict[Expr, Domain] | None:
        if isinstance(expr, Constant):
            return {}
        if isinstance(expr, Call):
            parts = [self._finite(arg) for arg in expr.args]
            if expr.op not in _NOT_COMPUTED and all(part is not None for part in parts):
                return {leaf: values for part in parts if part for leaf, values in part.items()}
            values = (False, True) if expr.type is Type.BOOLEAN else self._from_parts(expr)
        else:
            values = self.domain(expr)
        return None if values is None else {expr: values}

    def _from_parts(self, expr: Call) -> Domain | None:
        """Return a list of values that contains all that an operation can give."""
        if expr.op in ("case", "coalesce", "least", "greatest"):
            return self._any_of(expr)
        if expr.op == "nullif":
            first = self.domain(expr.args[0])
            return None if first is None else _distinct((*first, None))
        facts = range_of(expr, self._columns)
        low, high = facts.low, facts.high
        if expr.op.startswith("trunc_"):
            return _windows(expr.op.removeprefix("trunc_"), low, high)
        if expr.type is Type.REAL:
            return _multiples(expr, low, high)
        return _between(expr.type, low, high)

    def _any_of(self, expr: Call) -> Domain | None:
        lists = [self.domain(arg) for arg in _options(expr)]
        if any(each is None for each in lists):
            return None if expr.type is Type.TEXT else _between(expr.type, *_ends(expr, self._columns))
        missing = None in (lists[-1] or ()) if expr.op == "coalesce" else any(None in (each or ()) for each in lists)
        found = [value for each in lists for value in each or () if value is not None]
        return _in_order(expr, (*found, None) if missing else found)


def _ends(expr: Expr, columns: Mapping[str, Bound]) -> tuple[Any, Any]:
    facts = range_of(expr, columns)
    return facts.low, facts.high


def _options(expr: Call) -> tuple[Expr, ...]:
    return (*expr.args[1:-1:2], expr.args[-1]) if expr.op == "case" else expr.args


def _in_order(expr: Call, values: Iterable[Value]) -> Domain:
    """Keep the values of a CASE of constants as they are written; sort others."""
    written = expr.op in ("case", "coalesce") and all(isinstance(arg, Constant) for arg in _options(expr))
    return _distinct(values) if written else _ascending(values, expr.type)


def _replaced(expr: Expr, names: Mapping[Expr, Column]) -> Expr:
    if expr in names:
        return names[expr]
    return Call(expr.op, tuple(_replaced(arg, names) for arg in expr.args)) if isinstance(expr, Call) else expr


def _distinct(values: Iterable[Value]) -> Domain:
    """Keep the first of equal values, and NULL at the end."""
    found = dict.fromkeys(values)
    missing = (None,) if None in found else ()
    return (*(value for value in found if value is not None), *missing)


def _ascending(values: Iterable[Value], kind: Type) -> Domain:
    """Sort values; texts stay in the order in which declared ones lead to them."""
    found = _distinct(values)
    if kind is Type.TEXT:
        return found
    return tuple(sorted(found, key=lambda value: (value is None, 0 if value is None else value)))


def _listed(bound: Bound) -> Domain | None:
    return bound.domain if bound.domain is not None else _between(bound.type, bound.low, bound.high)


def _between(kind: Type, low: Any, high: Any) -> Domain | None:
    """List all whole numbers or days of a range."""
    if kind is Type.BOOLEAN:
        return (False, True)
    if low is None or high is None or kind not in (Type.INTEGER, Type.DATE):
        return None
    if kind is Type.DATE:
        count = (high - low).days + 1
        return tuple(low + timedelta(days=day) for day in range(count)) if count <= _MOST_VALUES else None
    first, last = math.ceil(low), math.floor(high)
    return tuple(range(first, last + 1)) if last - first < _MOST_VALUES else None


def _multiples(expr: Call, low: Any, high: Any) -> Domain | None:
    """List what a real can be rounded to."""
    if expr.op not in ("floor", "ceil", "round", "sign") or low is None or high is None:
        return None
    digits = int(expr.args[1].value) if expr.op == "round" else 0  # type: ignore[union-attr,arg-type]
    step = 1 / Fraction(10) ** digits
    first, last = math.ceil(low / step), math.floor(high / step)
    if last - first >= _MOST_VALUES:
        return None
    return tuple(place / 10**digits if digits > 0 else float(place * step) for place in range(first, last + 1))


def _windows(window: str, low: Any, high: Any) -> Domain | None:
    """List the beginnings of all windows between two moments, the last one included."""
    if low is None or high is None or (high - low).total_seconds() > _SECONDS[window] * _MOST_VALUES:
        return None
    longest = timedelta(days=_LONGER.get(window, 0), seconds=_SECONDS[window])
    found, last = [truncate(window, low)], truncate(window, high)
    while found[-1] < last:
        following = found[-1] + longest
        found.append(truncate(window, following) if window in _LONGER else following)
    return tuple(found)
