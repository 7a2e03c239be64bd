"""Aggregates and window functions above a release: they mix rows, so what they give has no margin."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from discreet.sql.after_casts import FINITE, unified
from discreet.sql.after_env import Env, called
from discreet.sql.after_values import Kind, Value, mixed

_FURTHEST = 1_000_000


@dataclass(frozen=True)
class Call:
    """A call of an aggregate or window function, in the parts between which FILTER and OVER come."""

    sql: str
    kind: Kind
    parts: tuple[Value, ...] = ()
    around: str = "{}"
    width: int = 0


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
    call, given = _filtered(node, env)
    return mixed(call.around.format(call.sql), call.kind, *call.parts, *given, width=call.width)


def window(node: exp.Window, env: Env, named: Mapping[str, exp.Window]) -> Value:
    """Return a window function over rows that stay as they are."""
    if type(node.this) in _ROW_FUNCTIONS:
        call, given = _checked(node.this, env, _ROW_FUNCTIONS), list[Value]()
    elif is_aggregate(node.this):
        call, given = _filtered(node.this, env)
    else:
        raise env.unknown(node.this)
    if "DISTINCT" in call.sql[:20] or "quantile" in call.sql[:20]:
        raise env.refuse(node, f"{called(node.this)} cannot have OVER here", "Aggregate in an inner query, and join it")
    base = _base(node, env, named)
    parts = [env.value(each) for each in node.args.get("partition_by") or base.get("partition_by") or ()]
    order = node.args.get("order") or base.get("order")
    terms = [(env.value(each.this), ordering(each)) for each in order.expressions] if order is not None else []
    if call.sql.startswith(("lag", "lead", "ntile")) and not terms:
        raise env.refuse(node, f"{called(node.this)} needs an order", "Write OVER (ORDER BY …)")
    spec = node.args.get("spec") or base.get("spec")
    clauses = [
        f"PARTITION BY {', '.join(part.sql for part in parts)}" if parts else "",
        f"ORDER BY {', '.join(f'{term.sql} {how}' for term, how in terms)}" if terms else "",
        _frame(spec, env) if spec is not None else "",
    ]
    over = f"{call.sql} OVER ({' '.join(filter(None, clauses))})"
    given += [*parts, *(term for term, _ in terms)]
    return mixed(call.around.format(over), call.kind, *call.parts, *given, width=call.width)


def ordering(node: exp.Expr) -> str:
    """Return the direction of a term of ORDER BY; NULL is larger than everything, as in PostgreSQL."""
    down = bool(node.args.get("desc"))
    first = node.args.get("nulls_first")
    return f"{'DESC' if down else 'ASC'} NULLS {'FIRST' if (down if first is None else first) else 'LAST'}"


def _base(node: exp.Window, env: Env, named: Mapping[str, exp.Window]) -> Mapping[str, Any]:
    alias = node.args.get("alias")
    if alias is None:
        return {}
    name = alias.name.lower()
    if name not in named:
        raise env.refuse(node, f"there is no window {name}", "Name it with WINDOW … AS (…)")
    return named[name].args


def _frame(spec: exp.Expr, env: Env) -> str:
    kind = str(spec.args.get("kind") or "").upper()
    if kind not in ("ROWS", "RANGE", "GROUPS") or spec.args.get("exclude"):
        raise env.refuse(spec, "this frame is not supported", "Write ROWS BETWEEN 3 PRECEDING AND CURRENT ROW")
    start = _edge(spec, "start", kind, env)
    end = _edge(spec, "end", kind, env) if spec.args.get("end") else "CURRENT ROW"
    return f"{kind} BETWEEN {start} AND {end}"


def _edge(spec: exp.Expr, name: str, kind: str, env: Env) -> str:
    place, side = spec.args.get(name), str(spec.args.get(f"{name}_side") or "").upper()
    if isinstance(place, str) and place.upper() == "CURRENT ROW":
        return "CURRENT ROW"
    if side in ("PRECEDING", "FOLLOWING"):
        if isinstance(place, str) and place.upper() == "UNBOUNDED":
            return f"UNBOUNDED {side}"
        if isinstance(place, exp.Expr) and kind != "RANGE":
            return f"{env.whole(place, most=_FURTHEST)} {side}"
    raise env.refuse(spec, "this frame is not supported", "Write ROWS BETWEEN 3 PRECEDING AND CURRENT ROW")


def _filtered(node: exp.Expr, env: Env) -> tuple[Call, list[Value]]:
    if not isinstance(node, exp.Filter):
        return _checked(node, env, _AGGREGATES), []
    if not is_aggregate(node.this):
        raise env.unknown(node.this)
    call, test = _checked(node.this, env, _AGGREGATES), env.condition(node.expression.this)
    filtered = f"{call.sql} FILTER (WHERE {test.sql})"
    return Call(filtered, call.kind, call.parts, call.around, call.width), [test]


def _checked(node: exp.Expr, env: Env, known: "Mapping[type[exp.Expr], _Rule]") -> Call:
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
    return Call(f"count({distinct}{part.sql})", Kind.INTEGER, (part,))


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
        return Call(f"sum({distinct}{part.sql})", Kind.WHOLE, (part,), "TRY_CAST({} AS BIGINT)")
    return Call(f"sum({distinct}CAST({part.sql} AS DOUBLE))", part.kind, (part,), FINITE)


def _real(name: str) -> "Callable[[Any, Env], Call]":
    def read(node: exp.Func, env: Env) -> Call:
        distinct, inside = _distinct(node, env)
        part = env.number(inside)
        kind = Kind.REAL if part.kind is Kind.REAL else Kind.NUMERIC
        return Call(f"{name}({distinct}CAST({part.sql} AS DOUBLE))", kind, (part,), FINITE)

    return read


def _extreme(node: exp.Func, env: Env) -> Call:
    part = env.value(node.this)
    if part.kind in (Kind.BOOLEAN, Kind.UNKNOWN):
        raise env.refuse(node, f"{called(node)} of {part.kind} is not supported", "Use BOOL_AND or BOOL_OR")
    return Call(f"{node.key}({part.sql})", part.kind, (part,), width=part.width)


def _truth(name: str) -> "Callable[[Any, Env], Call]":
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
    return Call(f"quantile_cont(CAST({part.sql} AS DOUBLE), 0.5)", Kind.REAL, (part,), FINITE)


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
        return Call(f"quantile_disc({part.sql}, {at!r})", part.kind, (part,))
    return Call(f"quantile_cont(CAST({part.sql} AS DOUBLE), {at!r})", Kind.REAL, (part,), FINITE)


def _ranking(name: str, kind: Kind) -> "Callable[[Any, Env], Call]":
    return lambda *_: Call(f"{name}()", kind)


def _tile(node: exp.Ntile, env: Env) -> Call:
    count = env.whole(node.this, most=_FURTHEST)
    if count < 1:
        raise env.refuse(node, "NTILE takes a number above 0", "Write NTILE(4)")
    return Call(f"ntile({count})", Kind.INTEGER)


def _shifted(node: exp.Func, env: Env) -> Call:
    parts, kind = [env.value(node.this)], None
    if node.args.get("default") is not None:
        parts, kind = unified([*parts, env.value(node.args["default"])], node, env.clause)
    offset = 1 if node.args.get("offset") is None else env.whole(node.args["offset"], most=_FURTHEST)
    listed = ", ".join([parts[0].sql, str(offset), *(part.sql for part in parts[1:])])
    return Call(f"{node.key}({listed})", kind or parts[0].kind, tuple(parts), width=_widest(parts))


def _chosen(node: exp.Func, env: Env) -> Call:
    part, offset = env.value(node.this), node.args.get("offset")
    name = node.sql_name().lower()
    if offset is None:
        return Call(f"{name}({part.sql})", part.kind, (part,), width=part.width)
    place = env.whole(offset, most=_FURTHEST)
    if place < 1:
        raise env.refuse(node, "NTH_VALUE counts from 1", "Write NTH_VALUE(n, 1)")
    return Call(f"{name}({part.sql}, {place})", part.kind, (part,), width=part.width)


def _widest(parts: Sequence[Value]) -> int:
    return max(part.width for part in parts)


@dataclass(frozen=True)
class _Rule:
    arguments: str
    read: Callable[[Any, Env], Call]


_AGGREGATES: Mapping[type[exp.Expr], _Rule] = {
    exp.Count: _Rule("this big_int", _count),
    exp.Sum: _Rule("this", _sum),
    exp.Avg: _Rule("this", _real("avg")),
    exp.Min: _Rule("this", _extreme),
    exp.Max: _Rule("this", _extreme),
    exp.Stddev: _Rule("this", _real("stddev_samp")),
    exp.StddevSamp: _Rule("this", _real("stddev_samp")),
    exp.StddevPop: _Rule("this", _real("stddev_pop")),
    exp.Variance: _Rule("this", _real("var_samp")),
    exp.VariancePop: _Rule("this", _real("var_pop")),
    exp.Median: _Rule("this", _median),
    exp.WithinGroup: _Rule("this expression", _within_group),
    exp.LogicalAnd: _Rule("this", _truth("bool_and")),
    exp.LogicalOr: _Rule("this", _truth("bool_or")),
    exp.Anonymous: _Rule("this expressions", _every),
}
_ROW_FUNCTIONS: Mapping[type[exp.Expr], _Rule] = {
    exp.RowNumber: _Rule("", _ranking("row_number", Kind.INTEGER)),
    exp.Rank: _Rule("", _ranking("rank", Kind.INTEGER)),
    exp.DenseRank: _Rule("", _ranking("dense_rank", Kind.INTEGER)),
    exp.PercentRank: _Rule("", _ranking("percent_rank", Kind.REAL)),
    exp.CumeDist: _Rule("", _ranking("cume_dist", Kind.REAL)),
    exp.Ntile: _Rule("this", _tile),
    exp.Lag: _Rule("this offset default", _shifted),
    exp.Lead: _Rule("this offset default", _shifted),
    exp.FirstValue: _Rule("this", _chosen),
    exp.LastValue: _Rule("this", _chosen),
    exp.NthValue: _Rule("this offset", _chosen),
}
