"""Constants, comparisons, conditions and CASE over released tables."""

from sqlglot import exp

from discreet.postprocess.environment import Env, NodeRule, Rules
from discreet.postprocess.sql_expression import SqlExpr, SqlType, compose_expr, constant_expr
from discreet.postprocess.type_conversion import cast, coerce_together, number_literal, text_literal
from discreet.query.syntax.resolved_query import NestedQuery
from discreet.query.syntax.source_position import quote_name

_MAX_CASE_LENGTH = 100_000  # characters of the conditions of one CASE
_COMPARISONS = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.NullSafeEQ: "IS NOT DISTINCT FROM",
    exp.NullSafeNEQ: "IS DISTINCT FROM",
}


def _literal(node: exp.Literal, env: Env) -> SqlExpr:
    if node.is_string:
        return text_literal(node.name)
    number = number_literal(node.name)
    if number is None:
        raise env.refuse(node, f"invalid number {quote_name(node.name)}", "Write a number such as 12, 1.5 or 1e6")
    return number


def _cast(node: exp.Cast, env: Env) -> SqlExpr:
    return cast(env.translate(node.this), node.args["to"], node, env.clause)


def _comparison(node: exp.Binary, env: Env) -> SqlExpr:
    operands, _ = coerce_together([env.translate(node.this), env.translate(node.expression)], node, env.clause)
    return compose_expr(f"({{0}} {_COMPARISONS[type(node)]} {{1}})", SqlType.BOOLEAN, *operands)


def _connective(node: exp.Connector, env: Env) -> SqlExpr:
    word = "AND" if isinstance(node, exp.And) else "OR"
    return compose_expr(
        f"({{0}} {word} {{1}})", SqlType.BOOLEAN, env.condition(node.this), env.condition(node.expression)
    )


def _is(node: exp.Is, env: Env) -> SqlExpr:
    no = "NOT " if node.args.get("negate") else ""
    if isinstance(node.expression, exp.Null):
        return compose_expr(f"({{0}} IS {no}NULL)", SqlType.BOOLEAN, env.translate(node.this))
    if isinstance(node.expression, exp.Boolean):
        truth = "TRUE" if node.expression.this else "FALSE"
        same = "IS DISTINCT FROM" if no else "IS NOT DISTINCT FROM"
        return compose_expr(f"({{0}} {same} {truth})", SqlType.BOOLEAN, env.condition(node.this))
    raise env.refuse(node, "this use of IS is not supported", "Use IS NULL, IS TRUE or IS FALSE")


def _between(node: exp.Between, env: Env) -> SqlExpr:
    operands, _ = coerce_together(
        [env.translate(node.args[name]) for name in ("this", "low", "high")], node, env.clause
    )
    return compose_expr("({0} BETWEEN {1} AND {2})", SqlType.BOOLEAN, *operands)


def _in(node: exp.In, env: Env) -> SqlExpr:
    if node.args.get("query") is not None:
        return env.subquery(node, env)
    if not node.expressions:
        raise env.refuse(node, "the IN list is empty", "Write IN (…) with constants")
    operands, _ = coerce_together(
        [env.translate(expression) for expression in (node.this, *node.expressions)], node, env.clause
    )
    choices = ", ".join(f"{{{index}}}" for index in range(1, len(operands)))
    return compose_expr(f"({{0}} IN ({choices}))", SqlType.BOOLEAN, *operands)


def _case(node: exp.Case, env: Env) -> SqlExpr:
    branches, last = node.args["ifs"], node.args.get("default")
    if any({name for name, given in branch.args.items() if given} - {"this", "true"} for branch in branches):
        raise env.refuse(node, "this form of CASE is not supported", "Write CASE WHEN … THEN … ELSE … END")
    conditions = _case_conditions(node, env)
    nodes = [branch.args["true"] for branch in branches] + ([last] if last is not None else [])
    results, kind = coerce_together([env.translate(each) for each in nodes], node, env.clause)
    count = len(conditions)
    whens = " ".join(f"WHEN {{{index}}} THEN {{{count + index}}}" for index in range(count))
    final = f" ELSE {{{2 * count}}}" if last is not None else ""
    return compose_expr(f"CASE {whens}{final} END", kind, *conditions, *results)


def _case_conditions(node: exp.Case, env: Env) -> list[SqlExpr]:
    if node.this is None:
        return [env.condition(branch.this) for branch in node.args["ifs"]]
    operand = env.translate(node.this)
    if len(operand.sql) * len(node.args["ifs"]) > _MAX_CASE_LENGTH:
        raise env.refuse(node, "the expression is too large", "Compute the operand of CASE in a subquery")
    pairs = [
        coerce_together([operand, env.translate(branch.this)], branch, env.clause)[0] for branch in node.args["ifs"]
    ]
    return [compose_expr("({0} = {1})", SqlType.BOOLEAN, *pair) for pair in pairs]


def _choice_function(node: exp.Func, env: Env) -> SqlExpr:
    """Translate COALESCE, LEAST and GREATEST; the last two ignore NULL in DuckDB as in PostgreSQL."""
    operands, kind = coerce_together(
        [env.translate(expression) for expression in (node.this, *node.expressions)], node, env.clause
    )
    arguments = ", ".join(f"{{{index}}}" for index in range(len(operands)))
    return compose_expr(f"{node.key}({arguments})", kind, *operands)


def _null_if(node: exp.Nullif, env: Env) -> SqlExpr:
    operands, kind = coerce_together([env.translate(node.this), env.translate(node.expression)], node, env.clause)
    return compose_expr("CASE WHEN {0} = {1} THEN NULL ELSE {0} END", kind, *operands)


def _window(node: exp.Window, env: Env) -> SqlExpr:
    if env.window is None:
        raise env.refuse(node, "window functions are not allowed here", "Compute it in a subquery, or use QUALIFY")
    return env.window(node, env)


LOGIC_RULES: Rules = {
    exp.Column: NodeRule("this table", lambda node, env: env.column(node, env)),
    exp.Literal: NodeRule("this is_string", _literal),
    exp.Null: NodeRule("", lambda *_: constant_expr("NULL", SqlType.UNKNOWN)),
    exp.Boolean: NodeRule("this", lambda node, _: constant_expr("TRUE" if node.this else "FALSE", SqlType.BOOLEAN)),
    exp.Paren: NodeRule("this", lambda node, env: env.translate(node.this)),
    exp.Cast: NodeRule("this to", _cast),
    exp.TryCast: NodeRule("this to safe", _cast),
    NestedQuery: NodeRule("query", lambda node, env: env.subquery(node, env)),
    exp.Exists: NodeRule("this", lambda node, env: env.subquery(node, env)),
    exp.Window: NodeRule("this partition_by order spec alias over", _window),
    exp.Not: NodeRule("this", lambda node, env: compose_expr("(NOT {0})", SqlType.BOOLEAN, env.condition(node.this))),
    exp.And: NodeRule("this expression", _connective),
    exp.Or: NodeRule("this expression", _connective),
    exp.Is: NodeRule("this expression negate", _is),
    exp.Between: NodeRule("this low high", _between),
    exp.In: NodeRule("this expressions query", _in),
    exp.Case: NodeRule("this ifs default", _case),
    exp.Coalesce: NodeRule("this expressions", _choice_function),
    exp.Least: NodeRule("this expressions ignore_nulls", _choice_function),
    exp.Greatest: NodeRule("this expressions ignore_nulls", _choice_function),
    exp.Nullif: NodeRule("this expression", _null_if),
    **{kind: NodeRule("this expression", _comparison) for kind in _COMPARISONS},
}
