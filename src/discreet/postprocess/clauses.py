"""ORDER BY, LIMIT, OFFSET and window functions over released tables."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from sqlglot import exp

from discreet.kernel.errors import Refused
from discreet.postprocess.environment import Env, Rules
from discreet.postprocess.group_by import FunctionCall, allowed_call, call_with_filter
from discreet.postprocess.sql_expression import ConstantOrigin, SqlExpr, SqlType, mixed_expr
from discreet.postprocess.type_conversion import coerce_together, null_unless_finite
from discreet.query.syntax.operations import NodeRule
from discreet.query.syntax.resolved_query import OrderTerm, ResolvedQuery
from discreet.query.syntax.syntax_tree import function_name, is_aggregate, refuse

_MAX_ROW_LIMIT = 1_000_000_000


def row_limits(query: ResolvedQuery) -> dict[str, int]:
    """Return the numbers of LIMIT or FETCH FIRST, and of OFFSET, by these words; without those that are not given."""
    limit, offset = query.limit, query.offset
    if isinstance(limit, exp.Fetch):
        options = limit.args.get("limit_options")
        if options is not None and (options.args.get("percent") or options.args.get("with_ties")):
            raise _limit_refusal(limit, "FETCH")
        row_count = 1 if limit.args.get("count") is None else _constant_count(limit.args["count"], "FETCH")
    elif limit is not None and any(given for name, given in limit.args.items() if name != "expression"):
        raise _limit_refusal(limit, "LIMIT")
    else:
        row_count = None if limit is None else _constant_count(limit.expression, "LIMIT")
    skipped = None if offset is None else _constant_count(offset.expression, "OFFSET")
    return {word: count for word, count in (("LIMIT", row_count), ("OFFSET", skipped)) if count is not None}


def _constant_count(node: exp.Expr, clause: str) -> int | None:
    if isinstance(node, exp.Null) or (isinstance(node, exp.Var) and node.name.upper() == "ALL"):
        return None
    plain = isinstance(node, exp.Literal) and not node.is_string and node.name.isdecimal()
    if not plain or len(node.name) > 10 or int(node.name) > _MAX_ROW_LIMIT:
        raise _limit_refusal(node, clause)
    return int(node.name)


def _limit_refusal(node: exp.Expr, clause: str) -> Refused:
    return refuse(node, clause, f"{clause} must be an integer of at most 1,000,000,000", f"Write {clause} 10")


def sort_direction(node: exp.Expr) -> str:
    """Return the direction of a term of ORDER BY; NULL sorts as the largest value, as in PostgreSQL."""
    down = bool(node.args.get("desc"))
    first = node.args.get("nulls_first")
    return f"{'DESC' if down else 'ASC'} NULLS {'FIRST' if (down if first is None else first) else 'LAST'}"


def order_values(terms: Sequence[OrderTerm], values: Sequence[SqlExpr], env: Env, *, distinct: bool) -> list[SqlExpr]:
    """Return the values that ORDER BY sorts by, given those of the SELECT list."""
    env = replace(env, clause="ORDER BY")
    return [
        values[term.index or 0] if term.expression is None else _order_value(term.expression, values, env, distinct)
        for term in terms
    ]


def _order_value(node: exp.Expr, values: Sequence[SqlExpr], env: Env, distinct: bool) -> SqlExpr:
    value = null_unless_finite(env.translate(node))
    if isinstance(value.origin, ConstantOrigin) or (distinct and value.sql not in [each.sql for each in values]):
        hint = "With DISTINCT, the expression must appear in the SELECT list" if distinct else "Order by a column"
        raise env.refuse(node, "cannot order by this expression", hint)
    return value


def order_terms(terms: Sequence[OrderTerm], values: Sequence[SqlExpr]) -> list[str]:
    """Return the terms of ORDER BY as SQL; a column of the result is sorted by its position."""
    return [
        f"{value.sql if term.index is None else term.index + 1} {sort_direction(term.node)}"
        for term, value in zip(terms, values, strict=True)
    ]


_MAX_OFFSET = 1_000_000


def window_expr(node: exp.Window, env: Env) -> SqlExpr:
    """Translate a window function."""
    if type(node.this) in _ROW_FUNCTIONS:
        call, other_exprs = allowed_call(node.this, env, _ROW_FUNCTIONS), list[SqlExpr]()
    elif is_aggregate(node.this):
        call, other_exprs = call_with_filter(node.this, env)
    else:
        raise env.unknown_refusal(node.this)
    if not call.allows_over:
        raise env.refuse(
            node, f"{function_name(node.this)} OVER (…) is not supported", "Aggregate in a subquery, and join it"
        )
    partition = [env.translate(each) for each in node.args.get("partition_by") or ()]
    keys = [*([env.draw] if env.draw else []), *(key.sql for key in partition)]
    order, spec = node.args.get("order"), node.args.get("spec")
    terms = (
        [(env.translate(expression.this), sort_direction(expression)) for expression in order.expressions]
        if order is not None
        else []
    )
    clauses = [
        f"PARTITION BY {', '.join(keys)}" if keys else "",
        f"ORDER BY {', '.join(f'{term.sql} {how}' for term, how in terms)}" if terms else "",
        _frame(spec, env) if spec is not None else "",
    ]
    over = f"{call.sql} OVER ({' '.join(filter(None, clauses))})"
    other_exprs += [*partition, *(term for term, _ in terms)]
    selectors = [*other_exprs, *(call.operands if call.selects else ())]
    return mixed_expr(call.wrapper.format(over), call.kind, *call.operands, width=call.width, selectors=selectors)


def _frame(spec: exp.Expr, env: Env) -> str:
    kind = str(spec.args.get("kind") or "").upper()
    if kind not in ("ROWS", "RANGE", "GROUPS") or spec.args.get("exclude"):
        raise env.refuse(spec, "this frame is not supported", "Write ROWS BETWEEN 3 PRECEDING AND CURRENT ROW")
    start = _frame_edge(spec, "start", kind, env)
    end = _frame_edge(spec, "end", kind, env) if spec.args.get("end") else "CURRENT ROW"
    return f"{kind} BETWEEN {start} AND {end}"


def _frame_edge(spec: exp.Expr, name: str, kind: str, env: Env) -> str:
    place, side = spec.args.get(name), str(spec.args.get(f"{name}_side") or "").upper()
    if isinstance(place, str) and place.upper() == "CURRENT ROW":
        return "CURRENT ROW"
    if side in ("PRECEDING", "FOLLOWING"):
        if isinstance(place, str) and place.upper() == "UNBOUNDED":
            return f"UNBOUNDED {side}"
        if isinstance(place, exp.Expr) and kind != "RANGE":
            return f"{env.constant_integer(place, most=_MAX_OFFSET)} {side}"
    raise env.refuse(spec, "this frame is not supported", "Write ROWS BETWEEN 3 PRECEDING AND CURRENT ROW")


def _rank_call(name: str, kind: SqlType) -> Callable[[Any, Env], FunctionCall]:
    return lambda *_: FunctionCall(f"{name}()", kind)


def _ntile(node: exp.Ntile, env: Env) -> FunctionCall:
    count = env.constant_integer(node.this, most=_MAX_OFFSET)
    if count < 1:
        raise env.refuse(node, "NTILE needs a number greater than zero", "Write NTILE(4)")
    return FunctionCall(f"ntile({count})", SqlType.INTEGER)


def _lag_or_lead(node: exp.Func, env: Env) -> FunctionCall:
    operands, kind = [env.translate(node.this)], None
    if node.args.get("default") is not None:
        operands, kind = coerce_together([*operands, env.translate(node.args["default"])], node, env.clause)
    offset = 1 if node.args.get("offset") is None else env.constant_integer(node.args["offset"], most=_MAX_OFFSET)
    arguments = ", ".join([operands[0].sql, str(offset), *(operand.sql for operand in operands[1:])])
    return FunctionCall(
        f"{node.key}({arguments})",
        kind or operands[0].kind,
        tuple(operands),
        width=max(operand.width for operand in operands),
    )


def _value_at(node: exp.Func, env: Env) -> FunctionCall:
    operand, offset = env.translate(node.this), node.args.get("offset")
    name = node.sql_name().lower()
    if offset is None:
        return FunctionCall(f"{name}({operand.sql})", operand.kind, (operand,), width=operand.width)
    index = env.constant_integer(offset, most=_MAX_OFFSET)
    if index < 1:
        raise env.refuse(node, "NTH_VALUE needs a position greater than zero", "Write NTH_VALUE(n, 1)")
    return FunctionCall(f"{name}({operand.sql}, {index})", operand.kind, (operand,), width=operand.width)


_ROW_FUNCTIONS: Rules = {
    exp.RowNumber: NodeRule("", _rank_call("row_number", SqlType.INTEGER)),
    exp.Rank: NodeRule("", _rank_call("rank", SqlType.INTEGER)),
    exp.DenseRank: NodeRule("", _rank_call("dense_rank", SqlType.INTEGER)),
    exp.PercentRank: NodeRule("", _rank_call("percent_rank", SqlType.REAL)),
    exp.CumeDist: NodeRule("", _rank_call("cume_dist", SqlType.REAL)),
    exp.Ntile: NodeRule("this", _ntile),
    exp.Lag: NodeRule("this offset default", _lag_or_lead),
    exp.Lead: NodeRule("this offset default", _lag_or_lead),
    exp.FirstValue: NodeRule("this", _value_at),
    exp.LastValue: NodeRule("this", _value_at),
    exp.NthValue: NodeRule("this offset", _value_at),
}
