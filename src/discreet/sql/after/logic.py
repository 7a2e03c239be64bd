"""Constants, comparisons, conditions and choices above a release."""

from sqlglot import exp

from discreet.sql.after.casts import cast, number_literal, text_literal, unified
from discreet.sql.after.env import Env, Rule, Rules
from discreet.sql.after.values import Kind, Value, constant, made
from discreet.sql.places import quoted

_MANY = 100_000  # characters of the tests of one CASE
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


def _literal(node: exp.Literal, env: Env) -> Value:
    if node.is_string:
        return text_literal(node.name)
    found = number_literal(node.name)
    if found is None:
        raise env.refuse(node, f"{quoted(node.name)} is not a number", "Write it like 12, 1.5 or 1e6")
    return found


def _cast(node: exp.Cast, env: Env) -> Value:
    return cast(env.value(node.this), node.args["to"], node, env.clause)


def _comparison(node: exp.Binary, env: Env) -> Value:
    parts, _ = unified([env.value(node.this), env.value(node.expression)], node, env.clause)
    return made(f"({{0}} {_COMPARISONS[type(node)]} {{1}})", Kind.BOOLEAN, *parts)


def _connected(node: exp.Connector, env: Env) -> Value:
    word = "AND" if isinstance(node, exp.And) else "OR"
    return made(f"({{0}} {word} {{1}})", Kind.BOOLEAN, env.condition(node.this), env.condition(node.expression))


def _is(node: exp.Is, env: Env) -> Value:
    no = "NOT " if node.args.get("negate") else ""
    if isinstance(node.expression, exp.Null):
        return made(f"({{0}} IS {no}NULL)", Kind.BOOLEAN, env.value(node.this))
    if isinstance(node.expression, exp.Boolean):
        truth = "TRUE" if node.expression.this else "FALSE"
        same = "IS DISTINCT FROM" if no else "IS NOT DISTINCT FROM"
        return made(f"({{0}} {same} {truth})", Kind.BOOLEAN, env.condition(node.this))
    raise env.refuse(node, "this IS is not supported", "Use IS NULL, IS TRUE or IS FALSE")


def _between(node: exp.Between, env: Env) -> Value:
    parts, _ = unified([env.value(node.args[name]) for name in ("this", "low", "high")], node, env.clause)
    return made("({0} BETWEEN {1} AND {2})", Kind.BOOLEAN, *parts)


def _in(node: exp.In, env: Env) -> Value:
    if node.args.get("query") is not None:
        return env.query(node, env)
    if not node.expressions:
        raise env.refuse(node, "IN has nothing to compare with", "Write IN (…) with constants")
    parts, _ = unified([env.value(each) for each in (node.this, *node.expressions)], node, env.clause)
    listed = ", ".join(f"{{{place}}}" for place in range(1, len(parts)))
    return made(f"({{0}} IN ({listed}))", Kind.BOOLEAN, *parts)


def _case(node: exp.Case, env: Env) -> Value:
    branches, last = node.args["ifs"], node.args.get("default")
    if any({name for name, given in each.args.items() if given} - {"this", "true"} for each in branches):
        raise env.refuse(node, "this CASE is not supported", "Write CASE WHEN … THEN … ELSE … END")
    tests = _tests(node, env)
    nodes = [each.args["true"] for each in branches] + ([last] if last is not None else [])
    results, kind = unified([env.value(each) for each in nodes], node, env.clause)
    count = len(tests)
    whens = " ".join(f"WHEN {{{place}}} THEN {{{count + place}}}" for place in range(count))
    final = f" ELSE {{{2 * count}}}" if last is not None else ""
    return made(f"CASE {whens}{final} END", kind, *tests, *results)


def _tests(node: exp.Case, env: Env) -> list[Value]:
    if node.this is None:
        return [env.condition(each.this) for each in node.args["ifs"]]
    operand = env.value(node.this)
    if len(operand.sql) * len(node.args["ifs"]) > _MANY:
        raise env.refuse(node, "the expression is too large", "Compute what CASE compares in an inner query")
    pairs = [unified([operand, env.value(each.this)], each, env.clause)[0] for each in node.args["ifs"]]
    return [made("({0} = {1})", Kind.BOOLEAN, *pair) for pair in pairs]


def _one_of(node: exp.Func, env: Env) -> Value:
    """COALESCE, LEAST and GREATEST; the last two leave NULLs out, in DuckDB as in PostgreSQL."""
    parts, kind = unified([env.value(each) for each in (node.this, *node.expressions)], node, env.clause)
    listed = ", ".join(f"{{{place}}}" for place in range(len(parts)))
    return made(f"{node.key}({listed})", kind, *parts)


def _null_if(node: exp.Nullif, env: Env) -> Value:
    parts, kind = unified([env.value(node.this), env.value(node.expression)], node, env.clause)
    return made("CASE WHEN {0} = {1} THEN NULL ELSE {0} END", kind, *parts)


def _window(node: exp.Window, env: Env) -> Value:
    if env.window is None:
        raise env.refuse(node, "a window function cannot stand here", "Compute it in an inner query, or use QUALIFY")
    return env.window(node, env)


LOGIC: Rules = {
    exp.Column: Rule("this table", lambda node, env: env.column(node, env)),
    exp.Literal: Rule("this is_string", _literal),
    exp.Null: Rule("", lambda *_: constant("NULL", Kind.UNKNOWN)),
    exp.Boolean: Rule("this", lambda node, _: constant("TRUE" if node.this else "FALSE", Kind.BOOLEAN)),
    exp.Paren: Rule("this", lambda node, env: env.value(node.this)),
    exp.Cast: Rule("this to", _cast),
    exp.TryCast: Rule("this to safe", _cast),
    exp.Subquery: Rule("this with_", lambda node, env: env.query(node, env)),
    exp.Exists: Rule("this", lambda node, env: env.query(node, env)),
    exp.Window: Rule("this partition_by order spec alias over", _window),
    exp.Not: Rule("this", lambda node, env: made("(NOT {0})", Kind.BOOLEAN, env.condition(node.this))),
    exp.And: Rule("this expression", _connected),
    exp.Or: Rule("this expression", _connected),
    exp.Is: Rule("this expression negate", _is),
    exp.Between: Rule("this low high", _between),
    exp.In: Rule("this expressions query", _in),
    exp.Case: Rule("this ifs default", _case),
    exp.Coalesce: Rule("this expressions", _one_of),
    exp.Least: Rule("this expressions ignore_nulls", _one_of),
    exp.Greatest: Rule("this expressions ignore_nulls", _one_of),
    exp.Nullif: Rule("this expression", _null_if),
    **{kind: Rule("this expression", _comparison) for kind in _COMPARISONS},
}
