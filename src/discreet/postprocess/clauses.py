"""ORDER BY, LIMIT and OFFSET over released tables."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from discreet.kernel.errors import Refused
from discreet.postprocess.environment import Env
from discreet.postprocess.sql_expression import ConstantOrigin, SqlExpr
from discreet.postprocess.type_conversion import null_unless_finite
from discreet.query.syntax.resolved_query import OrderTerm, ResolvedQuery
from discreet.query.syntax.syntax_tree import refuse

_MAX_ROW_LIMIT = 1_000_000_000


@dataclass(frozen=True)
class RowLimit:
    """LIMIT and OFFSET."""

    limit: int | None = None
    offset: int | None = None

    def __bool__(self) -> bool:
        return self.limit is not None or self.offset is not None

    @property
    def sql(self) -> str:
        """The clauses as SQL."""
        limit = f" LIMIT {self.limit}" if self.limit is not None else ""
        return limit + (f" OFFSET {self.offset}" if self.offset is not None else "")


def row_limit_of(query: ResolvedQuery) -> RowLimit:
    """Parse LIMIT, OFFSET and FETCH FIRST."""
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
    return RowLimit(row_count, None if offset is None else _constant_count(offset.expression, "OFFSET"))


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
