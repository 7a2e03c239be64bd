"""Refuse comparisons with values that are not in the policy's lists.

Only lists (`in = […]`) are checked. Stored numbers may lie outside a range (`between`), and conditions see the stored
values: `age = 999` may select rows whose age is unknown.
"""

from collections.abc import Collection, Mapping
from difflib import get_close_matches
from math import prod

from sqlglot import exp

from discreet.engines.column_usage import columns_of
from discreet.engines.reference.evaluate import evaluate
from discreet.kernel.errors import Refused
from discreet.kernel.expr import Call, Column, Constant, Expr, Type, Value
from discreet.policy.problems import shorten
from discreet.query.expressions.bound_expr import BoundExpr
from discreet.query.expressions.public_domains import domain_of
from discreet.query.syntax.syntax_tree import refuse, sql_of

DeclaredLists = Mapping[str, Collection[Value]]  # by column name in the relation

_MAX_COMPUTED = 100  # values of an expression, computed for each comparison
_MAX_DEPTH = 5
_MAX_COMPARED = 1_000  # values searched for a close match
_MAX_SHOWN = 10


class UndeclaredValue(Refused):
    """A comparison with a value that a column or expression never has."""


def check_declared(value: BoundExpr, other: BoundExpr, lists: DeclaredLists, node: exp.Expr, clause: str) -> None:
    """Refuse an equality with a constant that is not among the declared values of an expression."""
    if isinstance(value.expr, Constant):
        value, other = other, value
    if isinstance(value.expr, Constant) or not isinstance(other.expr, Constant) or other.expr.value is None:
        return
    declared = _possible_values(value.expr, lists)
    if declared is not None and other.expr.value not in declared:
        cause = f"{_format_value(other.expr.value)} is not a declared value of {_compared_sql(node)}"
        raise _undeclared_refusal(node, clause, cause, _nearest_hint(other.expr.value, declared))


def check_pattern(value: BoundExpr, pattern: Expr, lists: DeclaredLists, node: exp.Expr, clause: str) -> None:
    """Refuse LIKE with a pattern that no declared value matches; slow patterns are not checked."""
    declared = _possible_values(value.expr, lists) if isinstance(value.expr, Column) else None
    if declared is None or len(declared) > _MAX_COMPUTED or not isinstance(pattern, Call):
        return
    pattern_text = pattern.args[1]
    if (
        not isinstance(pattern_text, Constant) or str(pattern_text.value).count("%") > 2
    ):  # a regular expression with more wildcards is slow
        return
    if not any(evaluate(pattern, {value.expr.name: text}) for text in declared):  # type: ignore[union-attr]
        cause = f"no declared value of {_compared_sql(node)} matches {_format_value(pattern_text.value)}"
        raise _undeclared_refusal(node, clause, cause, _nearest_hint(str(pattern_text.value).strip("%"), declared))


def _undeclared_refusal(node: exp.Expr, clause: str, cause: str, hint: str) -> UndeclaredValue:
    return UndeclaredValue(str(refuse(node, clause, cause, hint)))


def _possible_values(expr: Expr, lists: DeclaredLists) -> Collection[Value] | None:
    """Return all possible values of an expression; None if they are not declared, or too many."""
    if isinstance(expr, Call) and expr.op == "clip" and isinstance(expr.args[0], Column):
        expr = expr.args[0]
    if isinstance(expr, Column):
        return lists.get(expr.name)
    names = columns_of(expr)
    if expr.type is Type.BOOLEAN or not names or not all(name in lists for name in names) or expr.depth > _MAX_DEPTH:
        return None
    if prod(len(lists[name]) + 1 for name in names) > _MAX_COMPUTED:
        return None
    bounds = {name: BoundExpr(Column(name, kind), domain=tuple(lists[name])) for name, kind in names.items()}
    return domain_of(expr, bounds)


def _compared_sql(node: exp.Expr) -> str:
    """Return the SQL of the compared expression."""
    sides = [side for side in (node.args.get("this"), node.args.get("expression")) if isinstance(side, exp.Expr)]
    named = next((side for side in sides if side.find(exp.Column) is not None), node)
    return shorten(sql_of(named))


def _format_value(value: Value) -> str:
    return f"'{shorten(value)}'" if isinstance(value, str) else str(value)


def _nearest_hint(value: Value, declared: Collection[Value]) -> str:
    texts = {str(each).lower(): _format_value(each) for each in declared if each is not None}
    close = get_close_matches(str(value)[:100].lower(), texts, n=1, cutoff=0.6) if len(texts) <= _MAX_COMPARED else []
    if close:
        return f"Did you mean {texts[close[0]]}?"
    first = ", ".join(list(texts.values())[:_MAX_SHOWN])
    return f"The declared values are {first}{', …' if len(texts) > _MAX_SHOWN else ''}."
