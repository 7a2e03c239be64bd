"""Texts above a release: places, lengths and patterns are constants, and no text can grow without bound."""

from sqlglot import exp

from discreet.sql.after.casts import as_text, text_literal
from discreet.sql.after.env import Env, Rule, Rules
from discreet.sql.after.values import Kind, Value, made

_FURTHEST = 1_000_000
_MOST_WILDCARDS = 4  # the engine tries every way to divide a text among them


def _letters(node: exp.Func, env: Env) -> Value:
    part = env.text(node.this)
    return made(f"{node.key}({{0}})", Kind.TEXT, part, width=3 * part.width)


def _substring(node: exp.Substring, env: Env) -> Value:
    """Read a part of a text from a constant place; PostgreSQL counts places before the first too."""
    part, first, length = env.text(node.this), node.args.get("start"), node.args.get("length")
    start = 1 if first is None else env.whole(first, most=_FURTHEST)
    if length is None:
        return made(f"substring({{0}}, {max(start, 1)})", Kind.TEXT, part)
    count = env.whole(length, most=_FURTHEST)
    if count < 0:
        raise env.refuse(node, "the length of a text cannot be negative", "Write a length of at least 0")
    return made(f"substring({{0}}, {max(start, 1)}, {max(count + min(start, 1) - 1, 0)})", Kind.TEXT, part)


def _end(node: exp.Func, env: Env) -> Value:
    return made(
        f"{node.key}({{0}}, {env.whole(node.args['expression'], most=_FURTHEST)})", Kind.TEXT, env.text(node.this)
    )


def _trimmed(node: exp.Trim, env: Env) -> Value:
    name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(str(node.args.get("position") or "").upper(), "trim")
    letters = text_literal(" ") if node.args.get("expression") is None else env.constant_text(node.expression)
    part = env.text(node.this)
    return made(f"{name}({{0}}, {{1}})", Kind.TEXT, part, letters, width=part.width)


def _replaced(node: exp.Replace, env: Env) -> Value:
    part, old = env.text(node.this), env.constant_text(node.expression)
    new = env.constant_text(node.args["replacement"])
    return made("replace({0}, {1}, {2})", Kind.TEXT, part, old, new, width=part.width * max(1, new.width))


def _joined(node: exp.DPipe, env: Env) -> Value:
    one, other = env.value(node.this), env.value(node.expression)
    if not {one.kind, other.kind} & {Kind.TEXT, Kind.UNKNOWN}:
        raise env.refuse(node, f"|| joins texts, not {one.kind} and {other.kind}", "Use CAST(… AS text)")
    parts = [as_text(one), as_text(other)]
    return made("({0} || {1})", Kind.TEXT, *parts, width=parts[0].width + parts[1].width)


def _concatenated(node: exp.Func, env: Env) -> Value:
    parts = [_written(env.value(each)) for each in node.expressions]
    name = "concat_ws" if isinstance(node, exp.ConcatWs) else "concat"
    listed = ", ".join(f"{{{place}}}" for place in range(len(parts)))
    between = len(parts) * parts[0].width if name == "concat_ws" else 0
    return made(f"{name}({listed})", Kind.TEXT, *parts, width=sum(part.width for part in parts) + between)


def _written(value: Value) -> Value:
    """Return a value as CONCAT writes it: unlike CAST, it shortens true and false."""
    template = "CASE WHEN {0} THEN 't' WHEN NOT {0} THEN 'f' END"
    return made(template, Kind.TEXT, value, width=1) if value.kind is Kind.BOOLEAN else as_text(value)


def _position(node: exp.StrPosition, env: Env) -> Value:
    parts = (env.text(node.this), env.text(node.args["substr"]))
    return made("CAST(strpos({0}, {1}) AS BIGINT)", Kind.INTEGER, *parts)


def _starts(node: exp.StartsWith, env: Env) -> Value:
    return made("starts_with({0}, {1})", Kind.BOOLEAN, env.text(node.this), env.text(node.expression))


def _like(node: exp.Binary, env: Env, escape: str = "\\") -> Value:
    pattern = env.constant_text(node.expression)
    text = pattern.literal or ""
    if escape and text.replace(escape * 2, "").endswith(escape):
        raise env.refuse(node, "the pattern ends with its escape character", "Write it twice")
    if text.count("%") > _MOST_WILDCARDS:
        raise env.refuse(node, f"the pattern has more than {_MOST_WILDCARDS} %", "Use fewer")
    word = f"{'NOT ' if node.args.get('negate') else ''}{node.key.upper()}"
    parts = (env.text(node.this), pattern, as_text(text_literal(escape)))
    return made(f"({{0}} {word} {{1}} ESCAPE {{2}})", Kind.BOOLEAN, *parts)


def _escape(node: exp.Escape, env: Env) -> Value:
    letter = env.constant_text(node.expression).literal or ""
    if not isinstance(node.this, exp.Like | exp.ILike) or len(letter) > 1:
        raise env.refuse(node, "ESCAPE takes one character after LIKE", "Write LIKE 'a!%' ESCAPE '!'")
    return _like(node.this, env, letter)


TEXTS: Rules = {
    exp.Lower: Rule("this", _letters),
    exp.Upper: Rule("this", _letters),
    exp.Length: Rule("this", lambda node, env: made("length({0})", Kind.INTEGER, env.text(node.this))),
    exp.Substring: Rule("this start length", _substring),
    exp.Left: Rule("this expression", _end),
    exp.Right: Rule("this expression", _end),
    exp.Trim: Rule("this expression position", _trimmed),
    exp.Replace: Rule("this expression replacement", _replaced),
    exp.DPipe: Rule("this expression safe", _joined),
    exp.Concat: Rule("expressions safe coalesce", _concatenated),
    exp.ConcatWs: Rule("expressions safe coalesce", _concatenated),
    exp.StrPosition: Rule("this substr", _position),
    exp.StartsWith: Rule("this expression", _starts),
    exp.Like: Rule("this expression negate", _like),
    exp.ILike: Rule("this expression negate", _like),
    exp.Escape: Rule("this expression", _escape),
}
