"""Arithmetic above a release: integers stay integers, and what has no finite result is NULL."""

from sqlglot import exp

from discreet.sql.after.casts import as_number, finite
from discreet.sql.after.dates import MOMENTS, with_dates
from discreet.sql.after.env import Env, Rule, Rules
from discreet.sql.after.values import Kind, Value, constant, made

_SIGNS = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%", exp.IntDiv: "//"}
_CURVES = {
    exp.Sqrt: "sqrt",
    exp.Cbrt: "cbrt",
    exp.Exp: "exp",
    exp.Ln: "ln",
    exp.Log: "log",
    exp.Pow: "pow",
    exp.Sign: "sign",
    exp.Floor: "floor",
    exp.Ceil: "ceil",
}
_WHOLES = (Kind.INTEGER, Kind.WHOLE)


def _arithmetic(node: exp.Binary, env: Env) -> Value:
    sign, given = _SIGNS[type(node)], [env.value(node.this), env.value(node.expression)]
    if {each.kind for each in given} & {*MOMENTS, Kind.INTERVAL}:
        return with_dates(node, sign, given, env)
    parts, kind = env.numbers([node.this, node.expression], given)
    if kind is Kind.WHOLE and sign == "/":  # numeric in PostgreSQL: this division keeps its fraction
        parts, kind = [as_number(part, Kind.NUMERIC) for part in parts], Kind.NUMERIC
    if kind in _WHOLES:
        sign = "//" if sign == "/" else sign
        return made(f"TRY_CAST(CAST({{0}} AS HUGEINT) {sign} CAST({{1}} AS HUGEINT) AS BIGINT)", kind, *parts)
    if sign == "//":
        return finite(made("trunc({0} / {1})", kind, *parts))
    found = made(f"({{0}} {sign} {{1}})", kind, *parts)
    return finite(found) if sign in "/%" else found  # other overflows are caught where a column is shown


def _negative(node: exp.Neg, env: Env) -> Value:
    part = env.number(node.this)
    if part.kind in _WHOLES:
        return made("TRY_CAST(-CAST({0} AS HUGEINT) AS BIGINT)", part.kind, part)
    return made("(-{0})", part.kind, part)


def _absolute(node: exp.Abs, env: Env) -> Value:
    part = env.number(node.this)
    if part.kind in _WHOLES:
        return made("TRY_CAST(abs(CAST({0} AS HUGEINT)) AS BIGINT)", part.kind, part)
    return made("abs({0})", part.kind, part)


def _curve(node: exp.Func, env: Env) -> Value:
    """Functions of the reals, which are NULL outside their domain."""
    nodes = [node.args[name] for name in ("this", "expression") if node.args.get(name) is not None]
    parts, kind = env.numbers(nodes, [env.value(each) for each in nodes])
    kind = {Kind.WHOLE: Kind.NUMERIC, Kind.INTEGER: Kind.REAL}.get(kind, kind)
    name = "log10" if isinstance(node, exp.Log) and len(parts) == 1 else _CURVES[type(node)]
    listed = ", ".join(f"CAST({{{place}}} AS DOUBLE)" for place in range(len(parts)))
    return finite(made(f"CAST({name}({listed}) AS DOUBLE)", kind, *parts))


def _rounded(node: exp.Func, env: Env) -> Value:
    """ROUND and TRUNC; PostgreSQL rounds halves of a numeric away from zero, those of a double to the even number."""
    part, digits = env.number(node.this), node.args.get("decimals")
    if digits is not None:
        count = env.whole(digits, most=15)
        exact = part.kind if part.kind is Kind.REAL else Kind.NUMERIC
        if isinstance(node, exp.Round):
            return finite(made(f"round(CAST({{0}} AS DOUBLE), {count})", exact, part))
        return finite(made(f"(trunc(CAST({{0}} AS DOUBLE) * 1e{count}) / 1e{count})", exact, part))
    if part.kind is Kind.WHOLE:
        return part
    kind = Kind.REAL if part.kind is Kind.INTEGER else part.kind
    if isinstance(node, exp.Trunc):
        return made("trunc(CAST({0} AS DOUBLE))", kind, part)
    return made("round({0})" if kind is Kind.NUMERIC else "round_even(CAST({0} AS DOUBLE), 0)", kind, part)


def _clip(node: exp.Anonymous, env: Env) -> Value:
    if str(node.this).lower() != "clip" or len(node.expressions) != 3:
        raise env.unknown(node)
    parts, kind = env.numbers(node.expressions, [env.value(each) for each in node.expressions])
    return made("CASE WHEN {0} IS NOT NULL THEN least(greatest({0}, {1}), {2}) END", kind, *parts)


NUMERIC: Rules = {
    exp.Neg: Rule("this", _negative),
    exp.Abs: Rule("this", _absolute),
    exp.Round: Rule("this decimals", _rounded),
    exp.Trunc: Rule("this decimals", _rounded),
    exp.Pi: Rule("", lambda *_: constant("pi()", Kind.REAL)),
    exp.Anonymous: Rule("this expressions", _clip),
    **{kind: Rule("this expression typed safe", _arithmetic) for kind in _SIGNS},
    **{kind: Rule("this expression", _curve) for kind in _CURVES},
}
