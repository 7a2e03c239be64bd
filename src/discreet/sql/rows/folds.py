"""Aggregates of one unit's rows: exact, because they stay private."""

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction

from sqlglot import exp

from discreet.kernel.expr import Call, Constant, Expr, Type
from discreet.kernel.fold import Fold, Folded
from discreet.sql.asked.aggregates import check_arguments, kept_when
from discreet.sql.asked.calls import function_name, kept
from discreet.sql.asked.grids import Scale, steps_grid
from discreet.sql.asked.groups import domain_in
from discreet.sql.places import refuse
from discreet.sql.rows.owners import part_of
from discreet.sql.rows.scope import Rows, Values, held, nothing, stored, value_of, without_clip
from discreet.sql.values.bound import Bound

_ONE = Constant(1, Type.INTEGER)
_ENDS: dict[type[exp.Expr], Fold] = {
    exp.Min: Fold.LEAST,
    exp.Max: Fold.GREATEST,
    exp.LogicalAnd: Fold.LEAST,
    exp.LogicalOr: Fold.GREATEST,
}
Made = Callable[[tuple[Expr, ...]], Expr]


def _first(parts: tuple[Expr, ...]) -> Expr:
    return parts[0]


@dataclass(frozen=True)
class Gathered:
    """What an aggregate of one unit is made of, how, and what is publicly known of it."""

    parts: tuple[Folded, ...]
    fact: Bound
    made: Made = _first
    values: Values = field(default=nothing)
    null: bool = False
    sure: bool = False
    least: Fraction | None = None


def fold(node: exp.Expr, rows: Rows) -> Gathered:
    """Read an aggregate call over the rows of one unit."""
    call, when = kept_when(node, rows)
    check_arguments(call)
    if isinstance(call, exp.Count):
        return _count(call, rows, when)
    if type(call) in _ENDS:
        return _end(call, rows, when)
    if isinstance(call, exp.Sum | exp.Avg) and not isinstance(call.this, exp.Distinct):
        return _total(call, rows, when)
    way_out = "There are COUNT, COUNT(DISTINCT …), MIN, MAX, SUM, AVG, BOOL_AND and BOOL_OR."
    raise refuse(call, "SELECT", f"{function_name(call)} per unit is not supported", way_out)


def _fact(expr: Expr, low: Fraction | None = None, high: Fraction | None = None) -> Bound:
    return Bound(expr, low, high)


def _count(call: exp.Count, rows: Rows, when: Expr | None) -> Gathered:
    if isinstance(call.this, exp.Star):
        folded = Folded(Fold.ROWS) if when is None else Folded(Fold.COUNT, kept(_ONE, when))
        return Gathered((folded,), _fact(_ONE), sure=True, least=Fraction(when is None))
    distinct = isinstance(call.this, exp.Distinct)
    nodes = call.this.expressions if isinstance(call.this, exp.Distinct) else [call.this]
    if len(nodes) != 1 or isinstance(nodes[0], exp.Tuple) or call.expressions:
        raise refuse(call, "COUNT", "COUNT takes one expression here", "Count one column, or *.")
    bound = value_of(nodes[0], stored(rows.views, "COUNT"), "COUNT")
    folded = Folded(Fold.DISTINCT if distinct else Fold.COUNT, kept(bound.expr, when))
    domain = domain_in(bound.expr, rows.by_column()) if distinct else None
    most = None if domain is None else Fraction(len(domain))
    return Gathered((folded,), _fact(_ONE, None if most is None else Fraction(0), most), sure=True, least=Fraction(0))


def _end(call: exp.Expr, rows: Rows, when: Expr | None) -> Gathered:
    name = function_name(call)
    bound = value_of(call.this, held(rows.views, name), name)
    known, expr = rows.by_column(), without_clip(bound.expr)
    folded = Folded(_ENDS[type(call)], kept(bound.expr, when))
    fact = Bound(bound.expr, bound.low, bound.high, bound.step, unit=part_of(expr, known))
    return Gathered(
        (folded,), fact, values=lambda: domain_in(expr, known), null=fact.unit is not None and when is not None
    )


def _total(call: exp.Expr, rows: Rows, when: Expr | None) -> Gathered:
    name = function_name(call)
    bound = value_of(call.this, held(rows.views, name), name)
    expr = kept(without_clip(bound.expr), when)
    if bound.type is Type.INTEGER:
        folded, step = Folded(Fold.SUM, kept(bound.expr, when)), None
    elif bound.type is not Type.REAL:
        raise refuse(call, name, f"{name} takes a number", "Write CASE WHEN … THEN 1 ELSE 0 END.")
    elif isinstance(bound.low, Fraction) and isinstance(bound.high, Fraction):
        grid = steps_grid(Scale.of(bound.low, bound.high, bound.step, bound.type), rows.relation.shape.rows)
        folded, step = Folded(Fold.STEPS, expr, grid), grid.step
    else:
        cause = f"{name} of reals needs a public range, and none is known"
        raise refuse(call, name, cause, f"Write {name}(CLIP(…, low, high)) with ends that you choose.")
    if isinstance(call, exp.Avg):
        count = Folded(Fold.COUNT, expr)
        return Gathered((folded, count), Bound(_ONE, bound.low, bound.high), lambda parts: _mean(parts, step))
    return Gathered((folded,), _reach(bound, rows), lambda parts: _worth(parts[0], step))


def _reach(bound: Bound, rows: Rows) -> Bound:
    """Return the range of a unit's sum, if a unit has a known number of rows at most."""
    copies = rows.relation.shape.copies
    if copies is None or not isinstance(bound.low, Fraction) or not isinstance(bound.high, Fraction):
        return Bound(bound.expr)
    return Bound(bound.expr, min(bound.low, bound.low * copies), max(bound.high, bound.high * copies))


def _worth(total: Expr, step: Fraction | None) -> Expr:
    """Return a number of steps as what they are worth."""
    if step is None:
        return total
    return Call("multiply", (Call("to_real", (total,)), Constant(float(step), Type.REAL)))


def _mean(parts: tuple[Expr, ...], step: Fraction | None) -> Expr:
    total = _worth(parts[0], step)
    total = total if total.type is Type.REAL else Call("to_real", (total,))
    return Call("divide", (total, Call("to_real", (parts[1],))))
