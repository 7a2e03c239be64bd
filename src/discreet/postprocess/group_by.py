"""Aggregates and groups over released tables."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sqlglot import exp

from discreet.kernel.errors import Refused
from discreet.postprocess.environment import Env, Rules
from discreet.postprocess.from_tables import PlannedFrom, Rows, where_sql
from discreet.postprocess.sql_expression import (
    SqlExpr,
    SqlType,
    columns_read,
    mixed_expr,
    untracked_origin,
)
from discreet.postprocess.type_conversion import FINITE_SQL
from discreet.query.syntax.operations import NodeRule
from discreet.query.syntax.resolved_query import reference_of
from discreet.query.syntax.syntax_tree import NestedQuery, function_name, is_aggregate, quote_name


@dataclass(frozen=True)
class FunctionCall:
    """A call of an aggregate or window function, in parts, so that FILTER and OVER can be inserted.

    `allows_over` says whether it may be used as a window function, `selects` whether it selects one of its operands.
    """

    sql: str
    kind: SqlType
    operands: tuple[SqlExpr, ...] = ()
    wrapper: str = "{}"
    width: int = 0
    allows_over: bool = True
    selects: bool = False


def aggregate_expr(node: exp.Expr, env: Env) -> SqlExpr:
    """Translate an aggregate over the rows of a group."""
    call, filter_exprs = call_with_filter(node, env)
    selectors = [*filter_exprs, *(call.operands if call.selects else ())]
    return mixed_expr(call.wrapper.format(call.sql), call.kind, *call.operands, width=call.width, selectors=selectors)


def call_with_filter(node: exp.Expr, env: Env) -> tuple[FunctionCall, list[SqlExpr]]:
    """Return an aggregate call with its FILTER, and the expressions of the filter."""
    if not isinstance(node, exp.Filter):
        return allowed_call(node, env, _AGGREGATES), []
    if not is_aggregate(node.this):
        raise env.unknown_refusal(node.this)
    call, test = allowed_call(node.this, env, _AGGREGATES), env.condition(node.expression.this)
    return replace(call, sql=f"{call.sql} FILTER (WHERE {test.sql})"), [test]


def allowed_call(node: exp.Expr, env: Env, rules: Rules) -> FunctionCall:
    """Translate a call by a rule; calls and arguments without one are refused."""
    rule = rules.get(type(node))
    if rule is None:
        cause = f"{function_name(node)} is not supported"
        raise env.refuse(node, cause, "Use COUNT, SUM, AVG, MIN, MAX, STDDEV, VARIANCE, MEDIAN or PERCENTILE_CONT")
    env.check_arguments(node, rule.arguments)
    call: FunctionCall = rule.read(node, env)
    return call


def _count(node: exp.Count, env: Env) -> FunctionCall:
    if isinstance(node.this, exp.Star):
        return FunctionCall("count(*)", SqlType.INTEGER)
    distinct, inside = _split_distinct(node, env)
    operand = env.translate(inside)
    return FunctionCall(f"count({distinct}{operand.sql})", SqlType.INTEGER, (operand,), allows_over=not distinct)


def _split_distinct(node: exp.Expr, env: Env) -> tuple[str, exp.Expr]:
    inside = node.this
    if not isinstance(inside, exp.Distinct):
        return "", inside
    if len(inside.expressions) != 1 or inside.args.get("on"):
        raise env.refuse(node, f"{function_name(node)} takes DISTINCT with one expression", "Write one expression")
    return "DISTINCT ", inside.expressions[0]


def _sum(node: exp.Sum, env: Env) -> FunctionCall:
    distinct, inside = _split_distinct(node, env)
    operand = env.number(inside)
    if operand.kind in (SqlType.INTEGER, SqlType.WHOLE):
        return FunctionCall(
            f"sum({distinct}{operand.sql})",
            SqlType.WHOLE,
            (operand,),
            "TRY_CAST({} AS BIGINT)",
            allows_over=not distinct,
        )
    return FunctionCall(
        f"sum({distinct}CAST({operand.sql} AS DOUBLE))", operand.kind, (operand,), FINITE_SQL, allows_over=not distinct
    )


def _real_aggregate(name: str) -> Callable[[Any, Env], FunctionCall]:
    def read(node: exp.Func, env: Env) -> FunctionCall:
        distinct, inside = _split_distinct(node, env)
        operand = env.number(inside)
        kind = SqlType.REAL if operand.kind is SqlType.REAL else SqlType.NUMERIC
        return FunctionCall(
            f"{name}({distinct}CAST({operand.sql} AS DOUBLE))", kind, (operand,), FINITE_SQL, allows_over=not distinct
        )

    return read


def _extreme(node: exp.Func, env: Env) -> FunctionCall:
    operand = env.translate(node.this)
    if operand.kind in (SqlType.BOOLEAN, SqlType.UNKNOWN):
        raise env.refuse(node, f"{function_name(node)} of {operand.kind} is not supported", "Use BOOL_AND or BOOL_OR")
    return FunctionCall(f"{node.key}({operand.sql})", operand.kind, (operand,), width=operand.width, selects=True)


def _boolean_aggregate(name: str) -> Callable[[Any, Env], FunctionCall]:
    def read(node: exp.Func, env: Env) -> FunctionCall:
        operand = env.condition(node.this)
        return FunctionCall(f"{name}({operand.sql})", SqlType.BOOLEAN, (operand,))

    return read


def _quantile(operand: SqlExpr, at: float) -> FunctionCall:
    sql = f"quantile_cont(CAST({operand.sql} AS DOUBLE), {at!r})"
    return FunctionCall(sql, SqlType.REAL, (operand,), FINITE_SQL, allows_over=False, selects=at != 0.5)


def _within_group(node: exp.WithinGroup, env: Env) -> FunctionCall:
    function, order = node.this, node.expression.expressions
    share = function.this if isinstance(function, exp.PercentileCont | exp.PercentileDisc) else None
    if not isinstance(share, exp.Literal) or share.is_string or function.args.get("expression") or len(order) != 1:
        hint = "Write PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY n)"
        raise env.refuse(node, f"this {function_name(function)} is not supported", hint)
    at = float(share.name) if 0 <= float(share.name) <= 1 else -1.0
    if at < 0:
        raise env.refuse(node, "the fraction must be between 0 and 1", "Write 0.5 for the median")
    at = 1 - at if order[0].args.get("desc") else at
    operand = env.number(order[0].this)
    if isinstance(function, exp.PercentileDisc):
        return FunctionCall(
            f"quantile_disc({operand.sql}, {at!r})", operand.kind, (operand,), allows_over=False, selects=True
        )
    return _quantile(operand, at)


_AGGREGATES: Rules = {
    exp.Count: NodeRule("this big_int", _count),
    exp.Sum: NodeRule("this", _sum),
    exp.Avg: NodeRule("this", _real_aggregate("avg")),
    exp.Min: NodeRule("this", _extreme),
    exp.Max: NodeRule("this", _extreme),
    exp.Stddev: NodeRule("this", _real_aggregate("stddev_samp")),
    exp.StddevSamp: NodeRule("this", _real_aggregate("stddev_samp")),
    exp.StddevPop: NodeRule("this", _real_aggregate("stddev_pop")),
    exp.Variance: NodeRule("this", _real_aggregate("var_samp")),
    exp.VariancePop: NodeRule("this", _real_aggregate("var_pop")),
    exp.Median: NodeRule("this", lambda node, env: _quantile(env.number(node.this), 0.5)),
    exp.WithinGroup: NodeRule("this expression", _within_group),
    exp.LogicalAnd: NodeRule("this", _boolean_aggregate("bool_and")),
    exp.LogicalOr: NodeRule("this", _boolean_aggregate("bool_or")),
}


@dataclass(frozen=True)
class RowGroups:
    """Groups of rows: a subquery computes keys and aggregates, and the other clauses are computed from these.

    `aggregate_columns` grows while the other clauses are translated.
    """

    ref: str
    keys: tuple[SqlExpr, ...]
    begin: PlannedFrom
    rows: Rows
    row_env: Env
    aggregate_columns: list[SqlExpr] = field(default_factory=list)

    @property
    def env(self) -> Env:
        """The environment of clauses over groups."""
        return replace(self.row_env, replacement=self._replacement, column=self._ungrouped_column, draw=self._draw)

    @property
    def _draw(self) -> str | None:
        return f"{self.ref}.d" if self.rows.draw else None

    def groups_where(self, conditions: Sequence[SqlExpr]) -> Rows:
        """Return the groups that satisfy all conditions, once the other clauses are translated."""
        columns = [f"{value.sql} AS c{index}" for index, value in enumerate((*self.keys, *self.aggregate_columns))]
        keys = [str(place + 1) for place in range(len(self.keys))]
        if self.rows.draw:
            columns.append(f"{self.rows.draw} AS d")
            keys.append(self.rows.draw)
        by = f" GROUP BY {', '.join(keys)}" if keys else ""
        inner = f"SELECT {', '.join(columns or ['count(*) AS c0'])}{self.rows.sql}{by}"
        return Rows(
            f" FROM ({inner}) AS {self.ref}{where_sql(conditions)}",
            self._draw,
            self.rows.selected_by | columns_read(condition.origin for condition in conditions),
            is_single_row=not self.keys,
            identity=[f"CAST({self.ref}.c{index} AS VARCHAR)" for index in range(len(self.keys))],
        )

    def _replacement(self, node: exp.Expr, env: Env) -> SqlExpr | None:
        """Return the column of an aggregate or key; None for other expressions."""
        inside = replace(self.row_env, clause=env.clause)
        if is_aggregate(node):
            aggregated = aggregate_expr(node, inside)
            texts = [value.sql for value in self.aggregate_columns]
            if aggregated.sql not in texts:
                self.aggregate_columns.append(aggregated)
            index = len(self.keys) + (texts.index(aggregated.sql) if aggregated.sql in texts else len(texts))
            return replace(aggregated, sql=f"{self.ref}.c{index}")
        if not self.keys or not _may_be_key(node):
            return None
        try:
            expr = inside.translate(node)
        except Refused:
            return None
        return self._key_column(expr)

    def _key_column(self, expr: SqlExpr) -> SqlExpr | None:
        for index, key in enumerate(self.keys):
            if key.sql == expr.sql:
                return SqlExpr(f"{self.ref}.c{index}", key.kind, untracked_origin([key.origin]), key.width)
        return None

    def _ungrouped_column(self, node: exp.Column, env: Env) -> SqlExpr:
        if self.begin.column(reference_of(node)) is None:
            return self.row_env.column(node, env)
        cause = f"column {quote_name(node.name)} must appear in GROUP BY or be used in an aggregate function"
        raise env.refuse(node, cause, "Add it to GROUP BY, or aggregate it")


def _may_be_key(node: exp.Expr) -> bool:
    inside = list(node.walk())
    if any(isinstance(each, NestedQuery | exp.Window) or is_aggregate(each) for each in inside):
        return False
    return any(isinstance(each, exp.Column) for each in inside)
