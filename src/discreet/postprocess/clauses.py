"""The clauses of a SELECT over released tables: SELECT list, GROUP BY, ORDER BY and LIMIT."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from discreet.postprocess.environment import Env
from discreet.postprocess.group_by import PlainRows, aggregates_in
from discreet.postprocess.name_resolution import PlannedColumn, Scope, matches_name, output_name
from discreet.postprocess.sql_expression import ConstantOrigin, SqlExpr
from discreet.postprocess.type_conversion import null_unless_finite
from discreet.query.syntax.source_position import quote_name, refuse
from discreet.query.syntax.syntax_tree import MAX_COLUMNS

_MAX_ROW_LIMIT = 1_000_000_000
_HINTS = {
    "locks": "Leave out FOR UPDATE",
    "sample": "Leave out TABLESAMPLE",
    "recursive": "Write each step as a query of its own",
    "into": "Leave out INTO",
}


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


def check_arguments(node: exp.Expr, allowed: str, clause: str) -> None:
    """Refuse a node with arguments that are not allowed."""
    surplus = [name for name, argument in node.args.items() if argument and name not in allowed.split()]
    if surplus:
        given = node.args[surplus[0]]
        feature = (given if isinstance(given, str) else surplus[0].strip("_").replace("_", " ")).upper()
        raise refuse(node, clause, f"{feature} is not supported here", _HINTS.get(surplus[0], "Leave it out"))


def row_limit_of(node: exp.Expr) -> RowLimit:
    """Parse LIMIT, OFFSET and FETCH FIRST."""
    limit, offset = node.args.get("limit"), node.args.get("offset")
    if isinstance(limit, exp.Fetch):
        options = limit.args.get("limit_options")
        if options is not None:
            check_arguments(options, "rows", "FETCH")
        row_count = 1 if limit.args.get("count") is None else _constant_count(limit.args["count"], "FETCH")
    elif limit is not None:
        check_arguments(limit, "expression", "LIMIT")
        row_count = _constant_count(limit.expression, "LIMIT")
    else:
        row_count = None
    if offset is not None:
        check_arguments(offset, "expression", "OFFSET")
    return RowLimit(row_count, None if offset is None else _constant_count(offset.expression, "OFFSET"))


def _constant_count(node: exp.Expr, clause: str) -> int | None:
    if isinstance(node, exp.Null) or (isinstance(node, exp.Var) and node.name.upper() == "ALL"):
        return None
    plain = isinstance(node, exp.Literal) and not node.is_string and node.name.isdecimal()
    if not plain or len(node.name) > 10 or int(node.name) > _MAX_ROW_LIMIT:
        raise refuse(node, clause, f"{clause} must be an integer of at most 1,000,000,000", f"Write {clause} 10")
    return int(node.name)


def named_windows(node: exp.Expr) -> Mapping[str, exp.Window]:
    """Return the windows of the WINDOW clause by name."""
    windows: dict[str, exp.Window] = {}
    for window in node.args.get("windows") or ():
        check_arguments(window, "this partition_by order spec", "WINDOW")
        windows[window.this.name.lower()] = window
    return windows


def is_distinct(node: exp.Expr) -> bool:
    """Return whether a SELECT has DISTINCT."""
    distinct = node.args.get("distinct")
    if distinct is not None and distinct.args.get("on"):
        hint = "Use QUALIFY row_number() OVER (PARTITION BY … ORDER BY …) = 1"
        raise refuse(distinct, "SELECT", "DISTINCT ON is not supported", hint)
    return distinct is not None


def order_nodes(node: exp.Expr) -> list[exp.Expr]:
    """Return the terms of ORDER BY."""
    order = node.args.get("order")
    if order is None:
        return []
    check_arguments(order, "expressions", "ORDER BY")
    for term in order.expressions:
        check_arguments(term, "this desc nulls_first", "ORDER BY")
    return list(order.expressions)


def ordinal_index(node: exp.Expr, most: int, clause: str) -> int | None:
    """Return the index in the SELECT list for a position in ORDER BY or GROUP BY; None if it is not a number."""
    if not isinstance(node, exp.Literal) or node.is_string:
        return None
    if not node.name.isdecimal() or len(node.name) > 9 or not 1 <= int(node.name) <= most:
        raise refuse(
            node,
            clause,
            f"{clause} position {node.name[:20]} is not in the SELECT list",
            f"Write a position from 1 to {most}",
        )
    return int(node.name) - 1


def sort_direction(node: exp.Expr) -> str:
    """Return the direction of a term of ORDER BY; NULL sorts as the largest value, as in PostgreSQL."""
    down = bool(node.args.get("desc"))
    first = node.args.get("nulls_first")
    return f"{'DESC' if down else 'ASC'} NULLS {'FIRST' if (down if first is None else first) else 'LAST'}"


@dataclass(frozen=True)
class OutputItem:
    """One entry of a SELECT list: an expression, or a column from *."""

    name: str
    node: exp.Expr | None
    column: SqlExpr | None = None


def output_items(node: exp.Select, scope: Scope) -> list[OutputItem]:
    """Return the SELECT list with * expanded."""
    items: list[OutputItem] = []
    for expression in node.expressions:
        star = (
            expression
            if isinstance(expression, exp.Star)
            else expression.this
            if isinstance(expression, exp.Column)
            else None
        )
        if isinstance(star, exp.Star):
            check_arguments(star, "", "SELECT")
            items += [OutputItem(named.name, None, named.value) for named in scope.expand_star(expression, "SELECT")]
        else:
            items.append(
                OutputItem(
                    output_name(expression), expression.this if isinstance(expression, exp.Alias) else expression
                )
            )
    if not 0 < len(items) <= MAX_COLUMNS:
        raise refuse(node, "SELECT", f"the SELECT list has {len(items)} columns", f"Select between 1 and {MAX_COLUMNS}")
    return items


def group_key_exprs(group: exp.Expr | None, items: Sequence[OutputItem], rows: PlainRows) -> list[SqlExpr]:
    """Return the keys of GROUP BY: expressions, positions or aliases of the SELECT list, or ALL."""
    if group is None:
        return []
    check_arguments(group, "expressions all", "GROUP BY")
    env = replace(rows.env, clause="GROUP BY")
    if group.args.get("all"):
        plain_items = [item for item in items if item.node is None or not aggregates_in(item.node)]
        return [_item_expr(item, env) for item in plain_items]
    return [_group_key(expression, items, rows.scope, env) for expression in group.expressions]


def _group_key(node: exp.Expr, items: Sequence[OutputItem], scope: Scope, env: Env) -> SqlExpr:
    index = ordinal_index(node, len(items), "GROUP BY")
    if index is not None:
        return _item_expr(items[index], env)
    if isinstance(node, exp.Column) and node.args.get("table") is None and not scope.find_columns(node):
        named = [item for item in items if matches_name(node.this, item.name)]
        if len(named) == 1:
            return _item_expr(named[0], env)
    return env.translate(node)


def _item_expr(item: OutputItem, env: Env) -> SqlExpr:
    return item.column if item.column is not None else env.translate(item.node)


def order_terms(
    node: exp.Expr, items: Sequence[OutputItem], values: Sequence[SqlExpr], env: Env, *, distinct: bool
) -> list[str]:
    """Return the terms of ORDER BY; names and positions of the SELECT list take precedence over expressions."""
    terms, column_sqls = [], [value.sql for value in values]
    env = replace(env, clause="ORDER BY")
    for ordered in order_nodes(node):
        term = ordered.this
        index = ordinal_index(term, len(items), "ORDER BY")
        if index is None and isinstance(term, exp.Column) and term.args.get("table") is None:
            named = [at for at, item in enumerate(items) if matches_name(term.this, item.name)]
            if len({column_sqls[at] for at in named}) > 1:
                raise env.refuse(
                    term,
                    f"column reference {quote_name(term.name)} is ambiguous",
                    "Write the column's position instead",
                )
            index = named[0] if named else None
        if index is None:
            value = null_unless_finite(env.translate(term))
            if isinstance(value.origin, ConstantOrigin) or (distinct and value.sql not in column_sqls):
                hint = (
                    "With DISTINCT, the expression must appear in the SELECT list" if distinct else "Order by a column"
                )
                raise env.refuse(term, "cannot order by this expression", hint)
            terms.append(f"{value.sql} {sort_direction(ordered)}")
        else:
            terms.append(f"{index + 1} {sort_direction(ordered)}")
    return terms


def order_position(node: exp.Expr, fields: Sequence[PlannedColumn]) -> str:
    """Return the column position of an ORDER BY term after UNION, INTERSECT or EXCEPT."""
    index = ordinal_index(node, len(fields), "ORDER BY")
    if index is None and isinstance(node, exp.Column) and node.args.get("table") is None:
        index = next((at for at, field in enumerate(fields) if matches_name(node.this, field.name)), None)
    if index is None:
        raise refuse(
            node, "ORDER BY", "after UNION, ORDER BY takes only column names and positions", "Write ORDER BY 1"
        )
    return str(index + 1)
