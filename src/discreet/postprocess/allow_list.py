"""The allow-list of row-wise operations on released tables.

No operation can fail on a value: undefined results are NULL, because post-processing runs after the charge.
"""

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

from sqlglot import exp

from discreet.postprocess.environment import Env, Rules
from discreet.postprocess.sql_expression import SqlExpr, SqlType, compose_expr, constant_expr
from discreet.postprocess.type_conversion import (
    as_number,
    as_text,
    cast,
    coerce,
    null_unless_finite,
    number_literal,
    text_literal,
)
from discreet.query.syntax.constants import parse_number
from discreet.query.syntax.operations import NodeRule, operation_rules
from discreet.query.syntax.syntax_tree import NestedQuery, quote_name

Compute = Callable[..., SqlExpr]  # from a node, its environment and operands to the result of an operation

DATE_TYPES = (SqlType.DATE, SqlType.TIMESTAMP)
_UNITS = ("YEAR", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND")
_DATE_PARTS = ("year", "isoyear", "quarter", "month", "week", "day", "dow", "isodow", "doy", "hour", "minute")
_MAX_DAYS = 1_000_000
_MAX_BUCKETS = 1_000_000
_MAX_CASE_LENGTH = 100_000  # characters of the conditions of one CASE
_MAX_WILDCARDS = 4  # matching time grows exponentially with their number


def date_arithmetic(node: exp.Binary, sign: str, operands: list[SqlExpr], env: Env) -> SqlExpr:
    """Return a sum or difference that involves dates."""
    one, other = operands
    if sign == "-" and other.literal is not None and one.kind in DATE_TYPES:
        other = coerce(other, one.kind, node, env.clause)
    match one.kind, sign, other.kind:
        case SqlType.DATE, "-", SqlType.DATE:
            return compose_expr("CAST({0} - {1} AS BIGINT)", SqlType.INTEGER, one, other)
        case ((SqlType.DATE | SqlType.TIMESTAMP), "-", (SqlType.DATE | SqlType.TIMESTAMP)):
            timestamps = [coerce(each, SqlType.TIMESTAMP, node, env.clause) for each in (one, other)]
            return compose_expr("({0} - {1})", SqlType.INTERVAL, *timestamps)
        case ((SqlType.DATE | SqlType.TIMESTAMP), ("+" | "-"), SqlType.INTERVAL):
            return compose_expr(f"CAST({{0}} {sign} {{1}} AS TIMESTAMP)", SqlType.TIMESTAMP, one, other)
        case SqlType.DATE, ("+" | "-"), SqlType.INTEGER:
            return compose_expr(
                f"CAST({{0}} {sign} {env.constant_integer(node.expression, most=_MAX_DAYS)} AS DATE)", SqlType.DATE, one
            )
    cause = f"operator is not supported: {one.kind} {sign} {other.kind}"
    raise env.refuse(node, cause, "Add a constant number of days to a date, or an interval such as INTERVAL '1 month'")


def _interval(node: exp.Interval, env: Env) -> SqlExpr:
    unit = node.args["unit"].name.upper().removesuffix("S") if node.args.get("unit") else ""
    number = node.this.name if isinstance(node.this, exp.Literal) else ""
    if unit not in _UNITS or not number.removeprefix("-").isdecimal() or len(number) > 6:
        raise env.refuse(node, "this interval is not supported", "Write one number and one unit: INTERVAL '3 months'")
    return constant_expr(f"INTERVAL ({int(number)}) {unit}", SqlType.INTERVAL)


def _extract(node: exp.Extract, env: Env) -> SqlExpr:
    field, moment = node.this.name.lower(), env.translate(node.expression)
    if moment.kind not in (DATE_TYPES if field != "epoch" else (*DATE_TYPES, SqlType.INTERVAL)):
        raise env.refuse(node, f"cannot extract {quote_name(field)} from {moment.kind}", "Use a date or a timestamp")
    if field == "epoch":
        return compose_expr("CAST(epoch({0}) AS DOUBLE)", SqlType.NUMERIC, moment)
    if field == "second":
        return compose_expr("(date_part('microseconds', CAST({0} AS TIMESTAMP)) / 1e6)", SqlType.NUMERIC, moment)
    if field not in _DATE_PARTS:
        hint = f"Supported: {', '.join(_DATE_PARTS)}, second, epoch"
        raise env.refuse(node, f"EXTRACT does not support {quote_name(field)}", hint)
    return compose_expr(f"CAST(date_part('{field}', CAST({{0}} AS TIMESTAMP)) AS BIGINT)", SqlType.WHOLE, moment)


def _date_trunc(node: exp.TimestampTrunc, env: Env) -> SqlExpr:
    unit, moment = node.args["unit"].name.lower(), env.translate(node.this)
    if unit.upper() not in (*_UNITS, "QUARTER") or moment.kind not in DATE_TYPES:
        raise env.refuse(node, "date_trunc takes a unit and a date", "Write date_trunc('month', a date)")
    return compose_expr(f"CAST(date_trunc('{unit}', CAST({{0}} AS TIMESTAMP)) AS TIMESTAMP)", SqlType.TIMESTAMP, moment)


_OPERATORS = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%", exp.IntDiv: "//"}
_INTEGER_TYPES = (SqlType.INTEGER, SqlType.WHOLE)


def _arithmetic(node: exp.Binary, env: Env) -> SqlExpr:
    sign, operands = _OPERATORS[type(node)], [env.translate(node.this), env.translate(node.expression)]
    if {each.kind for each in operands} & {*DATE_TYPES, SqlType.INTERVAL}:
        return date_arithmetic(node, sign, operands, env)
    coerced, kind = env.common_numbers([node.this, node.expression], operands)
    if kind is SqlType.WHOLE and sign == "/":  # numeric in PostgreSQL, so the division does not truncate
        coerced, kind = [as_number(operand, SqlType.NUMERIC) for operand in coerced], SqlType.NUMERIC
    if kind in _INTEGER_TYPES:
        sign = "//" if sign == "/" else sign
        return compose_expr(f"TRY_CAST(CAST({{0}} AS HUGEINT) {sign} CAST({{1}} AS HUGEINT) AS BIGINT)", kind, *coerced)
    if sign == "//":
        return null_unless_finite(compose_expr("trunc({0} / {1})", kind, *coerced))
    result = compose_expr(f"({{0}} {sign} {{1}})", kind, *coerced)
    return null_unless_finite(result) if sign in "/%" else result  # other overflows are handled in the output columns


def _by_type(whole: str, real: str) -> Compute:
    """Return what computes an operation on integers by one template, and on other numbers by another."""
    return lambda _node, _env, operand: compose_expr(
        whole if operand.kind in _INTEGER_TYPES else real, operand.kind, operand
    )


def _real_function(name: str) -> Compute:
    """Return what computes a real function; NULL outside its domain."""

    def compute(node: exp.Func, env: Env, *given: SqlExpr | None) -> SqlExpr:
        values = [value for value in given if value is not None]
        operands, kind = env.common_numbers([node] * len(values), values)
        kind = {SqlType.WHOLE: SqlType.NUMERIC, SqlType.INTEGER: SqlType.REAL}.get(kind, kind)
        function = "log10" if name == "log" and len(operands) == 1 else name
        arguments = ", ".join(f"CAST({{{index}}} AS DOUBLE)" for index in range(len(operands)))
        return null_unless_finite(compose_expr(f"CAST({function}({arguments}) AS DOUBLE)", kind, *operands))

    return compute


def _round_or_trunc(node: exp.Func, env: Env, value: SqlExpr, digits: int | None) -> SqlExpr:
    """Translate ROUND and TRUNC; PostgreSQL rounds ties of numeric away from zero, of double precision to even."""
    (operand,), kind = env.common_numbers([node], [value])
    if digits is not None:
        exact = kind if kind is SqlType.REAL else SqlType.NUMERIC
        template = f"round(CAST({{0}} AS DOUBLE), {digits})"
        if isinstance(node, exp.Trunc):
            template = f"(trunc(CAST({{0}} AS DOUBLE) * 1e{digits}) / 1e{digits})"
        return null_unless_finite(compose_expr(template, exact, operand))
    if kind is SqlType.WHOLE:
        return operand
    kind = SqlType.REAL if kind is SqlType.INTEGER else kind
    if isinstance(node, exp.Trunc):
        return compose_expr("trunc(CAST({0} AS DOUBLE))", kind, operand)
    return compose_expr(
        "round({0})" if kind is SqlType.NUMERIC else "round_even(CAST({0} AS DOUBLE), 0)", kind, operand
    )


def _clip(node: exp.Anonymous, env: Env) -> SqlExpr:
    if str(node.this).lower() != "clip" or len(node.expressions) != 3:
        raise env.unknown_refusal(node)
    operands, kind = env.common_numbers(
        node.expressions, [env.translate(expression) for expression in node.expressions]
    )
    return compose_expr("CASE WHEN {0} IS NOT NULL THEN least(greatest({0}, {1}), {2}) END", kind, *operands)


def _width_bucket(node: exp.WidthBucket, env: Env) -> SqlExpr:
    """Translate WIDTH_BUCKET(x, low, high, count); NULL if the bounds are equal."""
    nodes = [node.this, *(node.args.get(name) for name in ("min_value", "max_value"))]
    numbers = [as_number(env.number(each), SqlType.REAL) for each in nodes if each is not None]
    count = env.constant_integer(node.args.get("num_buckets"), most=_MAX_BUCKETS)
    if count < 1 or len(numbers) < 3:
        raise env.refuse(node, "the number of buckets must be positive", "Write WIDTH_BUCKET(x, 0, 100, 10)")
    index = f"CAST(least(floor({count} * (({{0}} - {{1}}) / ({{2}} - {{1}}))), {count - 1}) AS BIGINT) + 1"
    rising, falling = (
        f"CASE WHEN {{0}} {before} {{1}} THEN 0 WHEN {{0}} {beyond} {{2}} THEN {count + 1} ELSE {index} END"
        for before, beyond in (("<", ">="), (">", "<="))
    )
    template = f"CASE WHEN {{1}} < {{2}} THEN {rising} WHEN {{1}} > {{2}} THEN {falling} END"
    return compose_expr(template, SqlType.INTEGER, *numbers)


def _change_case(node: exp.Func, _env: Env, operand: SqlExpr) -> SqlExpr:
    return compose_expr(f"{node.key}({{0}})", SqlType.TEXT, operand, width=3 * operand.width)


def _substring(node: exp.Substring, env: Env, text: SqlExpr, start: int | None, length: int | None) -> SqlExpr:
    """Translate SUBSTRING; positions before the first count, as in PostgreSQL."""
    start = 1 if start is None else start
    if length is None:
        return compose_expr(f"substring({{0}}, {max(start, 1)})", SqlType.TEXT, text)
    if length < 0:
        raise env.refuse(node, "negative substring length is not allowed", "Write 0 or more")
    return compose_expr(f"substring({{0}}, {max(start, 1)}, {max(length + min(start, 1) - 1, 0)})", SqlType.TEXT, text)


def _left_or_right(node: exp.Func, _env: Env, text: SqlExpr, size: int) -> SqlExpr:
    return compose_expr(f"{node.key}({{0}}, {size})", SqlType.TEXT, text)


def _trim(name: str) -> Compute:
    return lambda _node, _env, text, letters: compose_expr(
        f"{name}({{0}}, {{1}})", SqlType.TEXT, text, text_literal(letters or " "), width=text.width
    )


def _replace(_node: exp.Replace, _env: Env, text: SqlExpr, old: str, new: str) -> SqlExpr:
    width = text.width * max(1, len(new))
    return compose_expr("replace({0}, {1}, {2})", SqlType.TEXT, text, text_literal(old), text_literal(new), width=width)


def _split_part(node: exp.SplitPart, env: Env, text: SqlExpr, delimiter: str, number: int) -> SqlExpr:
    if not delimiter or not number:
        cause = "SPLIT_PART takes a delimiter, and the number of a field"
        raise env.refuse(node, cause, "Write SPLIT_PART(x, '-', 1); -1 is the last field")
    template = f"split_part({{0}}, {{1}}, {number})"
    return compose_expr(template, SqlType.TEXT, text, text_literal(delimiter), width=text.width)


def _join(node: exp.DPipe, env: Env, first: SqlExpr, *others: SqlExpr) -> SqlExpr:
    joined = first
    for other in others:
        if not {joined.kind, other.kind} & {SqlType.TEXT, SqlType.UNKNOWN}:
            cause = f"operator is not supported: {joined.kind} || {other.kind}"
            raise env.refuse(node, cause, "Use CAST(… AS text)")
        operands = [as_text(joined), as_text(other)]
        width = operands[0].width + operands[1].width
        joined = compose_expr("({0} || {1})", SqlType.TEXT, *operands, width=width)
    return joined


def _concat(node: exp.Func, env: Env) -> SqlExpr:
    operands = [_concat_operand(env.translate(expression)) for expression in node.expressions]
    name = "concat_ws" if isinstance(node, exp.ConcatWs) else "concat"
    arguments = ", ".join(f"{{{index}}}" for index in range(len(operands)))
    between = len(operands) * operands[0].width if name == "concat_ws" else 0
    return compose_expr(
        f"{name}({arguments})", SqlType.TEXT, *operands, width=sum(operand.width for operand in operands) + between
    )


def _concat_operand(value: SqlExpr) -> SqlExpr:
    """Return a value as text for CONCAT, which writes booleans as t and f."""
    template = "CASE WHEN {0} THEN 't' WHEN NOT {0} THEN 'f' END"
    return compose_expr(template, SqlType.TEXT, value, width=1) if value.kind is SqlType.BOOLEAN else as_text(value)


def _like(node: exp.Binary, env: Env, text: SqlExpr, pattern: str, escape: str) -> SqlExpr:
    if pattern.count("%") > _MAX_WILDCARDS:
        raise env.refuse(node, f"the pattern has more than {_MAX_WILDCARDS} wildcards (%)", "Use fewer")
    word = f"{'NOT ' if node.args.get('negate') else ''}{node.key.upper()}"
    template = f"({{0}} {word} {{1}} ESCAPE {{2}})"
    return compose_expr(template, SqlType.BOOLEAN, text, text_literal(pattern), text_literal(escape))


def _literal(node: exp.Literal, env: Env) -> SqlExpr:
    if node.is_string:
        return text_literal(node.name)
    try:
        return number_literal(parse_number(node.name))
    except ValueError:
        cause = f"invalid number {quote_name(node.name)}"
        raise env.refuse(node, cause, "Write a number such as 12, 1.5 or 1e6") from None


def _cast(node: exp.Cast, env: Env) -> SqlExpr:
    return cast(env.translate(node.this), node.args["to"], node, env.clause)


def _in(node: exp.In, env: Env) -> SqlExpr:
    return _SHARED[exp.In].read(node, env) if node.args.get("query") is None else env.subquery(node, env)


def _in_list(_node: exp.In, _env: Env, *operands: SqlExpr) -> SqlExpr:
    choices = ", ".join(f"{{{index}}}" for index in range(1, len(operands)))
    return compose_expr(f"({{0}} IN ({choices}))", SqlType.BOOLEAN, *operands)


def _case(node: exp.Case, env: Env) -> Any:
    if node.this is not None and len(env.translate(node.this).sql) * len(node.args["ifs"]) > _MAX_CASE_LENGTH:
        raise env.refuse(node, "the expression is too large", "Compute the operand of CASE in a subquery")
    return _SHARED[exp.Case].read(node, env)


def _branches(node: exp.Case, _env: Env, *parts: SqlExpr) -> SqlExpr:
    count = len(node.args["ifs"])
    whens = " ".join(f"WHEN {{{index}}} THEN {{{count + index}}}" for index in range(count))
    final = f" ELSE {{{2 * count}}}" if len(parts) > 2 * count else ""
    return compose_expr(f"CASE {whens}{final} END", parts[-1].kind, *parts)


def _choice(node: exp.Func, _env: Env, *operands: SqlExpr) -> SqlExpr:
    """Translate COALESCE, LEAST and GREATEST; the last two ignore NULL in DuckDB as in PostgreSQL."""
    arguments = ", ".join(f"{{{index}}}" for index in range(len(operands)))
    return compose_expr(f"{node.key}({arguments})", operands[0].kind, *operands)


def _chain(word: str) -> Compute:
    return lambda _node, _env, *operands: reduce(
        lambda one, other: compose_expr(f"({{0}} {word} {{1}})", SqlType.BOOLEAN, one, other), operands
    )


def _window(node: exp.Window, env: Env) -> SqlExpr:
    if env.window is None:
        raise env.refuse(node, "window functions are not allowed here", "Compute it in a subquery, or use QUALIFY")
    return env.window(node, env)


def _template(sql: str, kind: SqlType) -> Compute:
    return lambda _node, _env, *operands: compose_expr(sql, kind, *operands)


_OPERATIONS: dict[str, Compute] = {
    **{
        name: _template(f"({{0}} {word} {{1}})", SqlType.BOOLEAN)
        for name, word in (
            *(("equal", "="), ("not_equal", "<>"), ("less", "<"), ("at_most", "<="), ("greater", ">")),
            *(("at_least", ">="), ("same", "IS NOT DISTINCT FROM"), ("not_same", "IS DISTINCT FROM")),
        )
    },
    **{
        f"is_{no}{truth}": _template(f"({{0}} {same} {truth.upper()})", SqlType.BOOLEAN)
        for no, same in (("", "IS NOT DISTINCT FROM"), ("not_", "IS DISTINCT FROM"))
        for truth in ("true", "false")
    },
    "is_null": _template("({0} IS NULL)", SqlType.BOOLEAN),
    "is_not_null": _template("({0} IS NOT NULL)", SqlType.BOOLEAN),
    "not": _template("(NOT {0})", SqlType.BOOLEAN),
    "and": _chain("AND"),
    "or": _chain("OR"),
    "between": _template("({0} BETWEEN {1} AND {2})", SqlType.BOOLEAN),
    "in": _in_list,
    "case": _branches,
    **dict.fromkeys(("coalesce", "least", "greatest"), _choice),
    "nullif": lambda _node, _env, one, other: compose_expr(
        "CASE WHEN {0} = {1} THEN NULL ELSE {0} END", one.kind, one, other
    ),
    "negate": _by_type("TRY_CAST(-CAST({0} AS HUGEINT) AS BIGINT)", "(-{0})"),
    "abs": _by_type("TRY_CAST(abs(CAST({0} AS HUGEINT)) AS BIGINT)", "abs({0})"),
    **{name: _real_function(name) for name in ("sign", "floor", "ceil", "sqrt", "exp", "ln", "log")},
    "power": _real_function("pow"),
    **dict.fromkeys(("round", "trunc"), _round_or_trunc),
    **dict.fromkeys(("lower", "upper"), _change_case),
    "length": _template("length({0})", SqlType.INTEGER),
    "substring": _substring,
    **dict.fromkeys(("left", "right"), _left_or_right),
    "trim": _trim("trim"),
    "trim_left": _trim("ltrim"),
    "trim_right": _trim("rtrim"),
    "replace": _replace,
    "split_part": _split_part,
    "join": _join,
    "position": _template("CAST(strpos({0}, {1}) AS BIGINT)", SqlType.INTEGER),
    **{name: _template(f"{name}({{0}}, {{1}})", SqlType.BOOLEAN) for name in ("starts_with", "ends_with", "contains")},
    **dict.fromkeys(("like", "ilike", "not_like", "not_ilike"), _like),
}


def _apply(operation: str, node: exp.Expr, env: Env, operands: Sequence[Any]) -> SqlExpr:
    return _OPERATIONS[operation](node, env, *operands)


_SHARED = operation_rules(_apply)
RULES: Rules = {
    **_SHARED,
    exp.Column: NodeRule("this table", lambda node, env: env.column(node, env)),
    exp.Literal: NodeRule("this is_string", _literal),
    exp.Null: NodeRule("", lambda *_: constant_expr("NULL", SqlType.UNKNOWN)),
    exp.Boolean: NodeRule("this", lambda node, _: constant_expr("TRUE" if node.this else "FALSE", SqlType.BOOLEAN)),
    exp.Cast: NodeRule("this to", _cast),
    exp.TryCast: NodeRule("this to safe", _cast),
    NestedQuery: NodeRule("query", lambda node, env: env.subquery(node, env)),
    exp.Exists: NodeRule("this", lambda node, env: env.subquery(node, env)),
    exp.Window: NodeRule("this partition_by order spec alias over", _window),
    exp.In: NodeRule("this expressions query", _in),
    exp.Case: NodeRule("this ifs default", _case),
    exp.Cbrt: NodeRule("this", lambda node, env: _real_function("cbrt")(node, env, env.translate(node.this))),
    exp.Pi: NodeRule("", lambda *_: constant_expr("pi()", SqlType.REAL)),
    exp.WidthBucket: NodeRule("this min_value max_value num_buckets", _width_bucket),
    exp.Anonymous: NodeRule("this expressions", _clip),
    **{kind: NodeRule("this expression typed safe", _arithmetic) for kind in _OPERATORS},
    exp.Concat: NodeRule("expressions safe coalesce", _concat),
    exp.ConcatWs: NodeRule("expressions safe coalesce", _concat),
    exp.Interval: NodeRule("this unit", _interval),
    exp.Extract: NodeRule("this expression", _extract),
    exp.TimestampTrunc: NodeRule("this unit", _date_trunc),
}
