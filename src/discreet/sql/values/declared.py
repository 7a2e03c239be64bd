"""Comparisons with values that the policy does not list: a mistake that the policy alone can show.

Only lists count (`in = […]`). Numbers may be stored outside a range (`between`), and conditions see them as they are
stored: `age = 999` may ask for those whose age is unknown.
"""

from collections.abc import Collection, Mapping
from difflib import get_close_matches
from math import prod

from sqlglot import exp

from discreet.engines.evaluate import evaluate
from discreet.kernel.errors import Refused
from discreet.kernel.expr import Call, Column, Constant, Expr, Type, Value, columns_of
from discreet.policy.problems import brief
from discreet.sql.places import refuse, written
from discreet.sql.values.bound import Bound
from discreet.sql.values.domains import domain_of

Lists = Mapping[str, Collection[Value]]  # by the names of the relation's columns

_MOST_COMPUTED = 100  # values of an expression, which are computed for each comparison
_DEEPEST = 5
_MOST_COMPARED = 1_000  # values among which a close one is looked for
_MOST_SHOWN = 10


class NotDeclared(Refused):
    """A value that a column or expression never has."""


def check_declared(value: Bound, other: Bound, lists: Lists, node: exp.Expr, clause: str) -> None:
    """Refuse an equality with a constant that an expression never has, as far as the policy lists its values."""
    if isinstance(value.expr, Constant):
        value, other = other, value
    if isinstance(value.expr, Constant) or not isinstance(other.expr, Constant) or other.expr.value is None:
        return
    listed = _values_of(value.expr, lists)
    if listed is not None and other.expr.value not in listed:
        cause = f"{_shown(other.expr.value)} is not a declared value of {_words(node)}"
        raise _refused(node, clause, cause, _nearest(other.expr.value, listed))


def check_pattern(value: Bound, pattern: Expr, lists: Lists, node: exp.Expr, clause: str) -> None:
    """Refuse LIKE with a pattern that no declared value matches; only patterns that are quick to try."""
    listed = _values_of(value.expr, lists) if isinstance(value.expr, Column) else None
    if listed is None or len(listed) > _MOST_COMPUTED or not isinstance(pattern, Call):
        return
    wanted = pattern.args[1]
    if not isinstance(wanted, Constant) or str(wanted.value).count("%") > 2:  # more take a regular expression long
        return
    if not any(evaluate(pattern, {value.expr.name: text}) for text in listed):  # type: ignore[union-attr]
        cause = f"no declared value of {_words(node)} matches {_shown(wanted.value)}"
        raise _refused(node, clause, cause, _nearest(str(wanted.value).strip("%"), listed))


def _refused(node: exp.Expr, clause: str, cause: str, hint: str) -> NotDeclared:
    return NotDeclared(str(refuse(node, clause, cause, hint)))


def _values_of(expr: Expr, lists: Lists) -> Collection[Value] | None:
    """Return every value that an expression can have; None if they are not declared, or too many to compute."""
    if isinstance(expr, Call) and expr.op == "clip" and isinstance(expr.args[0], Column):
        expr = expr.args[0]
    if isinstance(expr, Column):
        return lists.get(expr.name)
    names = columns_of(expr)
    if expr.type is Type.BOOLEAN or not names or not all(name in lists for name in names) or expr.depth > _DEEPEST:
        return None
    if prod(len(lists[name]) + 1 for name in names) > _MOST_COMPUTED:
        return None
    bounds = {name: Bound(Column(name, kind), domain=tuple(lists[name])) for name, kind in names.items()}
    return domain_of(expr, bounds)


def _words(node: exp.Expr) -> str:
    """Return how the query writes what is compared."""
    sides = [side for side in (node.args.get("this"), node.args.get("expression")) if isinstance(side, exp.Expr)]
    named = next((side for side in sides if side.find(exp.Column) is not None), node)
    return brief(written(named))


def _shown(value: Value) -> str:
    return f"'{brief(value)}'" if isinstance(value, str) else str(value)


def _nearest(value: Value, listed: Collection[Value]) -> str:
    texts = {str(each).lower(): _shown(each) for each in listed if each is not None}
    close = get_close_matches(str(value)[:100].lower(), texts, n=1, cutoff=0.6) if len(texts) <= _MOST_COMPARED else []
    if close:
        return f"Did you mean {texts[close[0]]}?"
    first = ", ".join(list(texts.values())[:_MOST_SHOWN])
    return f"The declared values are {first}{', …' if len(texts) > _MOST_SHOWN else ''}."
