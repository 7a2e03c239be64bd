"""Aggregates above a release: they mix rows, so what they give has no margin."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from sqlglot import exp

from discreet.sql.after.casts import FINITE
from discreet.sql.after.env import Env, called
from discreet.sql.after.values import Kind, Value, mixed


@dataclass(frozen=True)
class Call:
    """A call of an aggregate or window function, in the parts between which FILTER and OVER come.

    `movable` says that it may have OVER.
    """

    sql: str
    kind: Kind
    parts: tuple[Value, ...] = ()
    around: str = "{}"
    width: int = 0
    movable: bool = True


@dataclass(frozen=True)
class CallRule:
    """How a call is read, and which of its arguments may be there."""

    arguments: str
    read: Callable[[Any, Env], Call]


def is_aggregate(node: exp.Expr) -> bool:
    """Tell whether a node is a call of an aggregate function, with FILTER or WITHIN GROUP if it has them."""
    if isinstance(node, exp.Filter | exp.WithinGroup):
        return is_aggregate(node.this)
    if isinstance(node, exp.Anonymous):
        return str(node.this).lower() == "every"
    return isinstance(node, exp.AggFunc)


def own_aggregates(node: exp.Expr) -> list[exp.Expr]:
    """Return the aggregates of an expression, without those of inner queries and the functions of windows."""
    found, waiting = [], [node]
    while waiting:
        each = waiting.pop()
        if isinstance(each, exp.Window):
            inside = each.this.this if isinstance(each.this, exp.Filter) else each.this
            waiting += [
                *inside.iter_expressions(),
                *(part for part in each.iter_expressions() if part is not each.this),
            ]
        elif is_aggregate(each):
            found.append(each)
        elif not isinstance(each, exp.Query):
            waiting += each.iter_expressions()
    return found


def aggregate(node: exp.Expr, env: Env) -> Value:
    """Return an aggregate over the rows of a group."""
    call, given = filtered(node, env)
    return mixed(call.around.format(call.sql), call.kind, *call.parts, *given, width=call.width)


def filtered(node: exp.Expr, env: Env) -> tuple[Call, list[Value]]:
    """Return the call of an aggregate with its FILTER, and what the filter reads."""
    if not isinstance(node, exp.Filter):
        return checked(node, env, _AGGREGATES), []
    if not is_aggregate(node.this):
        raise env.unknown(node.this)
    call, test = checked(node.this, env, _AGGREGATES), env.condition(node.expression.this)
    return replace(call, sql=f"{call.sql} FILTER (WHERE {test.sql})"), [test]


def checked(node: exp.Expr, env: Env, known: Mapping[type[exp.Expr], CallRule]) -> Call:
    """Return a call that is on a list, with no argument that is not."""
    rule = known.get(type(node))
    if rule is None:
        cause = f"{called(node)} is not on the list of aggregates above a release"
        raise env.refuse(node, cause, "Use COUNT, SUM, AVG, MIN, MAX, STDDEV, VARIANCE, MEDIAN or PERCENTILE_CONT")
    surplus = [name for name, given in node.args.items() if given and name not in rule.arguments.split()]
    if surplus:
        cause = f"{called(node)} with {surplus[0].strip('_')} is not supported"
        raise env.refuse(node, cause, "Leave that part out")
    return rule.read(node, env)


def _count(node: exp.Count, env: Env) -> Call:
    if isinstance(node.this, exp.Star):
        return Call("count(*)", Kind.INTEGER)
    distinct, inside = _distinct(node, env)
    part = env.value(inside)
    return Call(f"count({distinct}{part.sql})", Kind.INTEGER, (part,), movable=not distinct)


def _distinct(node: exp.Expr, env: Env) -> tuple[str, exp.Expr]:
    inside = node.this
    if not isinstance(inside, exp.Distinct):
        return "", inside
    if len(inside.expressions) != 1 or inside.args.get("on"):
        raise env.refuse(node, f"{called(node)} takes DISTINCT with one expression", "Write one expression")
    return "DISTINCT ", inside.expressions[0]


def _sum(node: exp.Sum, env: Env) -> Call:
    distinct, inside = _distinct(node, env)
    part = env.number(inside)
    if part.kind in (Kind.INTEGER, Kind.WHOLE):
        return Call(f"sum({distinct}{part.sql})", Kind.WHOLE, (part,), "TRY_CAST({} AS BIGINT)", movable=not distinct)
    return Call(f"sum({distinct}CAST({part.sql} AS DOUBLE))", part.kind, (part,), FINITE, movable=not distinct)


def _real(name: str) -> Callable[[Any, Env], Call]:
    def read(node: exp.Func, env: Env) -> Call:
        distinct, inside = _distinct(node, env)
        part = env.number(inside)
        kind = Kind.REAL if part.kind is Kind.REAL else Kind.NUMERIC
        return Call(f"{name}({distinct}CAST({part.sql} AS DOUBLE))", kind, (part,), FINITE, movable=not distinct)

    return read


def _extreme(node: exp.Func, env: Env) -> Call:
    part = env.value(node.this)
    if part.kind in (Kind.BOOLEAN, Kind.UNKNOWN):
        raise env.refuse(node, f"{called(node)} of {part.kind} is not supported", "Use BOOL_AND or BOOL_OR")
    return Call(f"{node.key}({part.sql})", part.kind, (part,), width=part.width)


def _truth(name: str) -> Callable[[Any, Env], Call]:
    def read(node: exp.Func, env: Env) -> Call:
        part = env.condition(node.this)
        return Call(f"{name}({part.sql})", Kind.BOOLEAN, (part,))

    return read


def _every(node: exp.Anonymous, env: Env) -> Call:
    if len(node.expressions) != 1:
        raise env.refuse(node, "EVERY takes one condition", "Write EVERY(n > 0)")
    part = env.condition(node.expressions[0])
    return Call(f"bool_and({part.sql})", Kind.BOOLEAN, (part,))


def _median(node: exp.Median, env: Env) -> Call:
    part = env.number(node.this)
    return Call(f"quantile_cont(CAST({part.sql} AS DOUBLE), 0.5)", Kind.REAL, (part,), FINITE, movable=False)


def _within_group(node: exp.WithinGroup, env: Env) -> Call:
    function, order = node.this, node.expression.expressions
    share = function.this if isinstance(function, exp.PercentileCont | exp.PercentileDisc) else None
    if not isinstance(share, exp.Literal) or share.is_string or function.args.get("expression") or len(order) != 1:
        way_out = "Write PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY n)"
        raise env.refuse(node, f"this {called(function)} is not supported", way_out)
    at = float(share.name) if 0 <= float(share.name) <= 1 else -1.0
    if at < 0:
        raise env.refuse(node, "the share must lie between 0 and 1", "Write 0.5 for the median")
    at = 1 - at if order[0].args.get("desc") else at
    part = env.number(order[0].this)
    if isinstance(function, exp.PercentileDisc):
        return Call(f"quantile_disc({part.sql}, {at!r})", part.kind, (part,), movable=False)
    return Call(f"quantile_cont(CAST({part.sql} AS DOUBLE), {at!r})", Kind.REAL, (part,), FINITE, movable=False)


_AGGREGATES: Mapping[type[exp.Expr], CallRule] = {
    exp.Count: CallRule("this big_int", _count),
    exp.Sum: CallRule("this", _sum),
    exp.Avg: CallRule("this", _real("avg")),
    exp.Min: CallRule("this", _extreme),
    exp.Max: CallRule("this", _extreme),
    exp.Stddev: CallRule("this", _real("stddev_samp")),
    exp.StddevSamp: CallRule("this", _real("stddev_samp")),
    exp.StddevPop: CallRule("this", _real("stddev_pop")),
    exp.Variance: CallRule("this", _real("var_samp")),
    exp.VariancePop: CallRule("this", _real("var_pop")),
    exp.Median: CallRule("this", _median),
    exp.WithinGroup: CallRule("this expression", _within_group),
    exp.LogicalAnd: CallRule("this", _truth("bool_and")),
    exp.LogicalOr: CallRule("this", _truth("bool_or")),
    exp.Anonymous: CallRule("this expressions", _every),
}
