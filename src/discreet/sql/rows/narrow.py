"""What a condition tells about the rows that it keeps: smaller ranges, fewer groups, no missing values.

Only the question's own constants are used, so that all of this is public. A range that a condition would leave empty
stays as it was: stored values may lie outside what is declared, and are clipped into it where they are added.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from fractions import Fraction
from functools import cache

from discreet.engines.evaluate import evaluate
from discreet.kernel.expr import Call, Column, Constant, Expr, Type, Value, columns_of
from discreet.sql.rows.scope import Known, Values, View
from discreet.sql.values.bound import End
from discreet.sql.values.domains import domain_of

_MOST_TRIED = 10_000  # values of a column that a condition is tried on
_NOT_TRIED = frozenset({"ln", "log10", "exp", "power", "like", "like_any_case", "matches"})  # engines may differ
_BEFORE = {
    Type.INTEGER: Fraction(1),
    Type.REAL: Fraction(0),
    Type.DATE: timedelta(days=1),
    Type.TIMESTAMP: timedelta(microseconds=1),
}


def narrowed(views: Sequence[View], condition: Expr) -> tuple[View, ...]:
    """Return what is known of the columns once a condition holds."""
    parts = condition.args if isinstance(condition, Call) and condition.op == "and" else (condition,)
    for part in parts:
        columns = list(columns_of(part))
        if isinstance(part, Call) and part.op == "and":
            views = narrowed(views, part)
        elif len(columns) == 1:
            views = tuple(replace(view, columns=tuple(_known(each, part) for each in view.columns)) for view in views)
    return tuple(views)


def _known(known: Known, condition: Expr) -> Known:
    name = known.column.name
    if name not in columns_of(condition):
        return known
    least, most = _ends(condition, known.column)
    found = _within(known, least, most)
    if not _tried(condition):
        return found
    if evaluate(condition, {name: None}) is not True:
        found = replace(found, sure=True, null=False)
    return replace(found, values=_kept(known, found, condition))


def _within(known: Known, least: End | None, most: End | None) -> Known:
    """Return a column between two ends, either of which may be unknown."""
    low = _inner(known.bound.low if known.least is None else known.least, least, max)
    high = _inner(known.bound.high if known.most is None else known.most, most, min)
    if low is not None and high is not None and low > high:  # type: ignore[operator]
        return known
    found = replace(known, least=low, most=high)
    if low is None or high is None:
        return found
    return replace(found, bound=replace(known.bound, low=low, high=high))


def _inner(before: End | None, now: End | None, choose: object) -> End | None:
    if before is None or now is None:
        return before if now is None else now
    return choose((before, now))  # type: ignore[operator, no-any-return]


def _ends(condition: Expr, column: Column) -> tuple[End | None, End | None]:
    """Return the ends that a comparison with constants gives."""
    match condition:
        case Call("at_most", (Constant(value), Column())) | Call("less", (Constant(value), Column())):
            return _end(value, column.type, 1 if condition.op == "less" else 0), None
        case Call("at_most", (Column(), Constant(value))) | Call("less", (Column(), Constant(value))):
            return None, _end(value, column.type, -1 if condition.op == "less" else 0)
        case Call("equal", (Column(), Constant(value)) | (Constant(value), Column())):
            return _end(value, column.type, 0), _end(value, column.type, 0)
        case Call("one_of", (Column(), *constants)):
            ends = [_end(each.value, column.type, 0) for each in constants if isinstance(each, Constant)]
            return (min(ends), max(ends)) if ends and None not in ends else (None, None)  # type: ignore[type-var]
    return None, None


def _end(value: Value, kind: Type, beyond: int) -> End | None:
    """Return a constant as an end; `beyond` moves it past itself, to the next value of its type."""
    if kind not in _BEFORE or value is None or isinstance(value, str | bool):
        return None
    try:
        end = value if isinstance(value, date | datetime) else Fraction(str(value))
        moved: End = end + beyond * _BEFORE[kind]  # type: ignore[operator]
    except OverflowError:
        return None
    return moved


def _tried(condition: Expr) -> bool:
    """Tell whether a condition means the same in plain Python as in every engine."""
    if not isinstance(condition, Call):
        return True
    return condition.op not in _NOT_TRIED and all(map(_tried, condition.args))


def _kept(before: Known, now: Known, condition: Expr) -> Values:
    """Return the values that a condition leaves, found when they are asked for."""
    name = before.column.name

    @cache
    def values() -> tuple[Value, ...] | None:
        listed = before.values()
        if listed is None:
            listed = domain_of(now.column, {name: now.bound})
            if listed is None or len(listed) > _MOST_TRIED:
                return None
        if len(listed) > _MOST_TRIED:
            return listed
        return tuple(value for value in listed if evaluate(condition, {name: value}) is True) or listed

    return values
