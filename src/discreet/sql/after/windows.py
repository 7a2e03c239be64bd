"""Window functions above a release: they mix rows, so what they give has no margin."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlglot import exp

from discreet.sql.after.aggregates import Call, CallRule, checked, filtered, is_aggregate
from discreet.sql.after.casts import unified
from discreet.sql.after.clauses import ordering
from discreet.sql.after.env import Env, called
from discreet.sql.after.values import Kind, Value, mixed

_FURTHEST = 1_000_000


def window(node: exp.Window, env: Env, named: Mapping[str, exp.Window]) -> Value:
    """Return a window function over rows that stay as they are."""
    if type(node.this) in _ROW_FUNCTIONS:
        call, given = checked(node.this, env, _ROW_FUNCTIONS), list[Value]()
    elif is_aggregate(node.this):
        call, given = filtered(node.this, env)
    else:
        raise env.unknown(node.this)
    if not call.movable:
        raise env.refuse(node, f"{called(node.this)} cannot have OVER here", "Aggregate in an inner query, and join it")
    base = _base(node, env, named)
    parts = [env.value(each) for each in node.args.get("partition_by") or base.get("partition_by") or ()]
    order = node.args.get("order") or base.get("order")
    terms = [(env.value(each.this), ordering(each)) for each in order.expressions] if order is not None else []
    spec = node.args.get("spec") or base.get("spec")
    clauses = [
        f"PARTITION BY {', '.join(part.sql for part in parts)}" if parts else "",
        f"ORDER BY {', '.join(f'{term.sql} {how}' for term, how in terms)}" if terms else "",
        _frame(spec, env) if spec is not None else "",
    ]
    over = f"{call.sql} OVER ({' '.join(filter(None, clauses))})"
    given += [*parts, *(term for term, _ in terms)]
    return mixed(call.around.format(over), call.kind, *call.parts, *given, width=call.width)


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


def _ranking(name: str, kind: Kind) -> Callable[[Any, Env], Call]:
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


_ROW_FUNCTIONS: Mapping[type[exp.Expr], CallRule] = {
    exp.RowNumber: CallRule("", _ranking("row_number", Kind.INTEGER)),
    exp.Rank: CallRule("", _ranking("rank", Kind.INTEGER)),
    exp.DenseRank: CallRule("", _ranking("dense_rank", Kind.INTEGER)),
    exp.PercentRank: CallRule("", _ranking("percent_rank", Kind.REAL)),
    exp.CumeDist: CallRule("", _ranking("cume_dist", Kind.REAL)),
    exp.Ntile: CallRule("this", _tile),
    exp.Lag: CallRule("this offset default", _shifted),
    exp.Lead: CallRule("this offset default", _shifted),
    exp.FirstValue: CallRule("this", _chosen),
    exp.LastValue: CallRule("this", _chosen),
    exp.NthValue: CallRule("this offset", _chosen),
}
