"""The allow-list of row-wise operations on released tables.

No operation can fail on a value: undefined results are NULL, because post-processing runs after the charge.
"""

from sqlglot import exp

from discreet.postprocess.environment import Env, NodeRule, Rules
from discreet.postprocess.operators import LOGIC_RULES
from discreet.postprocess.sql_expression import SqlExpr, SqlType, compose_expr, constant_expr
from discreet.postprocess.type_conversion import as_number, as_text, coerce, null_unless_finite, text_literal
from discreet.query.syntax.source_position import quote_name

DATE_TYPES = (SqlType.DATE, SqlType.TIMESTAMP)
_UNITS = ("YEAR", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND")
_DATE_PARTS = ("year", "isoyear", "quarter", "month", "week", "day", "dow", "isodow", "doy", "hour", "minute")
_MAX_DAYS = 1_000_000
_MAX_POSITION = 1_000_000


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


DATE_RULES: Rules = {
    exp.Interval: NodeRule("this unit", _interval),
    exp.Extract: NodeRule("this expression", _extract),
    exp.TimestampTrunc: NodeRule("this unit", _date_trunc),
}


_OPERATORS = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%", exp.IntDiv: "//"}
_REAL_FUNCTIONS = {
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


def _negate(node: exp.Neg, env: Env) -> SqlExpr:
    operand = env.number(node.this)
    if operand.kind in _INTEGER_TYPES:
        return compose_expr("TRY_CAST(-CAST({0} AS HUGEINT) AS BIGINT)", operand.kind, operand)
    return compose_expr("(-{0})", operand.kind, operand)


def _abs(node: exp.Abs, env: Env) -> SqlExpr:
    operand = env.number(node.this)
    if operand.kind in _INTEGER_TYPES:
        return compose_expr("TRY_CAST(abs(CAST({0} AS HUGEINT)) AS BIGINT)", operand.kind, operand)
    return compose_expr("abs({0})", operand.kind, operand)


def _real_function(node: exp.Func, env: Env) -> SqlExpr:
    """Translate a real function; NULL outside its domain."""
    nodes = [node.args[name] for name in ("this", "expression") if node.args.get(name) is not None]
    operands, kind = env.common_numbers(nodes, [env.translate(each) for each in nodes])
    kind = {SqlType.WHOLE: SqlType.NUMERIC, SqlType.INTEGER: SqlType.REAL}.get(kind, kind)
    name = "log10" if isinstance(node, exp.Log) and len(operands) == 1 else _REAL_FUNCTIONS[type(node)]
    arguments = ", ".join(f"CAST({{{index}}} AS DOUBLE)" for index in range(len(operands)))
    return null_unless_finite(compose_expr(f"CAST({name}({arguments}) AS DOUBLE)", kind, *operands))


def _round_or_trunc(node: exp.Func, env: Env) -> SqlExpr:
    """Translate ROUND and TRUNC; PostgreSQL rounds ties of numeric away from zero, of double precision to even."""
    operand, digits = env.number(node.this), node.args.get("decimals")
    if digits is not None:
        count = env.constant_integer(digits, most=15)
        exact = operand.kind if operand.kind is SqlType.REAL else SqlType.NUMERIC
        if isinstance(node, exp.Round):
            return null_unless_finite(compose_expr(f"round(CAST({{0}} AS DOUBLE), {count})", exact, operand))
        return null_unless_finite(
            compose_expr(f"(trunc(CAST({{0}} AS DOUBLE) * 1e{count}) / 1e{count})", exact, operand)
        )
    if operand.kind is SqlType.WHOLE:
        return operand
    kind = SqlType.REAL if operand.kind is SqlType.INTEGER else operand.kind
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
    count = env.constant_integer(node.args.get("num_buckets"), most=_MAX_POSITION)
    if count < 1 or len(numbers) < 3:
        raise env.refuse(node, "the number of buckets must be positive", "Write WIDTH_BUCKET(x, 0, 100, 10)")
    index = f"CAST(least(floor({count} * (({{0}} - {{1}}) / ({{2}} - {{1}}))), {count - 1}) AS BIGINT) + 1"
    rising, falling = (
        f"CASE WHEN {{0}} {before} {{1}} THEN 0 WHEN {{0}} {beyond} {{2}} THEN {count + 1} ELSE {index} END"
        for before, beyond in (("<", ">="), (">", "<="))
    )
    template = f"CASE WHEN {{1}} < {{2}} THEN {rising} WHEN {{1}} > {{2}} THEN {falling} END"
    return compose_expr(template, SqlType.INTEGER, *numbers)


NUMERIC_RULES: Rules = {
    exp.Neg: NodeRule("this", _negate),
    exp.Abs: NodeRule("this", _abs),
    exp.Round: NodeRule("this decimals", _round_or_trunc),
    exp.Trunc: NodeRule("this decimals", _round_or_trunc),
    exp.Pi: NodeRule("", lambda *_: constant_expr("pi()", SqlType.REAL)),
    exp.WidthBucket: NodeRule("this min_value max_value num_buckets", _width_bucket),
    exp.Anonymous: NodeRule("this expressions", _clip),
    **{kind: NodeRule("this expression typed safe", _arithmetic) for kind in _OPERATORS},
    **{kind: NodeRule("this expression", _real_function) for kind in _REAL_FUNCTIONS},
}


_MAX_WILDCARDS = 4  # matching time grows exponentially with their number


def _change_case(node: exp.Func, env: Env) -> SqlExpr:
    operand = env.text(node.this)
    return compose_expr(f"{node.key}({{0}})", SqlType.TEXT, operand, width=3 * operand.width)


def _substring(node: exp.Substring, env: Env) -> SqlExpr:
    """Translate SUBSTRING with a constant start; positions before the first count, as in PostgreSQL."""
    operand, first, length = env.text(node.this), node.args.get("start"), node.args.get("length")
    start = 1 if first is None else env.constant_integer(first, most=_MAX_POSITION)
    if length is None:
        return compose_expr(f"substring({{0}}, {max(start, 1)})", SqlType.TEXT, operand)
    count = env.constant_integer(length, most=_MAX_POSITION)
    if count < 0:
        raise env.refuse(node, "negative substring length is not allowed", "Write 0 or more")
    return compose_expr(
        f"substring({{0}}, {max(start, 1)}, {max(count + min(start, 1) - 1, 0)})", SqlType.TEXT, operand
    )


def _left_or_right(node: exp.Func, env: Env) -> SqlExpr:
    return compose_expr(
        f"{node.key}({{0}}, {env.constant_integer(node.args['expression'], most=_MAX_POSITION)})",
        SqlType.TEXT,
        env.text(node.this),
    )


def _trim(node: exp.Trim, env: Env) -> SqlExpr:
    name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(str(node.args.get("position") or "").upper(), "trim")
    letters = text_literal(" ") if node.args.get("expression") is None else env.constant_text(node.expression)
    operand = env.text(node.this)
    return compose_expr(f"{name}({{0}}, {{1}})", SqlType.TEXT, operand, letters, width=operand.width)


def _replace(node: exp.Replace, env: Env) -> SqlExpr:
    operand, old = env.text(node.this), env.constant_text(node.expression)
    new = env.constant_text(node.args["replacement"])
    return compose_expr(
        "replace({0}, {1}, {2})", SqlType.TEXT, operand, old, new, width=operand.width * max(1, new.width)
    )


def _split_part(node: exp.SplitPart, env: Env) -> SqlExpr:
    delimiter = env.constant_text(node.args["delimiter"])
    number = env.constant_integer(node.args.get("part_index"), most=_MAX_POSITION)
    if not delimiter.literal or not number:
        cause = "SPLIT_PART takes a delimiter, and the number of a field"
        raise env.refuse(node, cause, "Write SPLIT_PART(x, '-', 1); -1 is the last field")
    operand = env.text(node.this)
    return compose_expr(f"split_part({{0}}, {{1}}, {number})", SqlType.TEXT, operand, delimiter, width=operand.width)


def _concatenate(node: exp.DPipe, env: Env) -> SqlExpr:
    one, other = env.translate(node.this), env.translate(node.expression)
    if not {one.kind, other.kind} & {SqlType.TEXT, SqlType.UNKNOWN}:
        raise env.refuse(node, f"operator is not supported: {one.kind} || {other.kind}", "Use CAST(… AS text)")
    operands = [as_text(one), as_text(other)]
    return compose_expr("({0} || {1})", SqlType.TEXT, *operands, width=operands[0].width + operands[1].width)


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


def _position(node: exp.StrPosition, env: Env) -> SqlExpr:
    operands = (env.text(node.this), env.text(node.args["substr"]))
    return compose_expr("CAST(strpos({0}, {1}) AS BIGINT)", SqlType.INTEGER, *operands)


def _starts_with(node: exp.StartsWith, env: Env) -> SqlExpr:
    return compose_expr("starts_with({0}, {1})", SqlType.BOOLEAN, env.text(node.this), env.text(node.expression))


def _like(node: exp.Binary, env: Env, escape: str = "\\") -> SqlExpr:
    pattern = env.constant_text(node.expression)
    text = pattern.literal or ""
    if escape and text.replace(escape * 2, "").endswith(escape):
        raise env.refuse(node, "the pattern must not end with its escape character", "Write the character twice")
    if text.count("%") > _MAX_WILDCARDS:
        raise env.refuse(node, f"the pattern has more than {_MAX_WILDCARDS} wildcards (%)", "Use fewer")
    word = f"{'NOT ' if node.args.get('negate') else ''}{node.key.upper()}"
    operands = (env.text(node.this), pattern, as_text(text_literal(escape)))
    return compose_expr(f"({{0}} {word} {{1}} ESCAPE {{2}})", SqlType.BOOLEAN, *operands)


def _escape(node: exp.Escape, env: Env) -> SqlExpr:
    letter = env.constant_text(node.expression).literal or ""
    if not isinstance(node.this, exp.Like | exp.ILike) or len(letter) > 1:
        raise env.refuse(node, "ESCAPE takes one character, after LIKE", "Write LIKE 'a!%' ESCAPE '!'")
    return _like(node.this, env, letter)


TEXT_RULES: Rules = {
    exp.Lower: NodeRule("this", _change_case),
    exp.Upper: NodeRule("this", _change_case),
    exp.Length: NodeRule("this", lambda node, env: compose_expr("length({0})", SqlType.INTEGER, env.text(node.this))),
    exp.Substring: NodeRule("this start length", _substring),
    exp.Left: NodeRule("this expression", _left_or_right),
    exp.Right: NodeRule("this expression", _left_or_right),
    exp.Trim: NodeRule("this expression position", _trim),
    exp.Replace: NodeRule("this expression replacement", _replace),
    exp.SplitPart: NodeRule("this delimiter part_index", _split_part),
    exp.DPipe: NodeRule("this expression safe", _concatenate),
    exp.Concat: NodeRule("expressions safe coalesce", _concat),
    exp.ConcatWs: NodeRule("expressions safe coalesce", _concat),
    exp.StrPosition: NodeRule("this substr", _position),
    exp.StartsWith: NodeRule("this expression", _starts_with),
    exp.Like: NodeRule("this expression negate", _like),
    exp.ILike: NodeRule("this expression negate", _like),
    exp.Escape: NodeRule("this expression", _escape),
}


RULES: Rules = {**LOGIC_RULES, **NUMERIC_RULES, **TEXT_RULES, **DATE_RULES}
