"""Functions on text: substrings, concatenation and patterns."""

import re
from collections.abc import Sequence

from sqlglot import exp

from discreet.engines.portable_regex import check_regex
from discreet.kernel.expr import MAX_GROWTH, Constant
from discreet.query.expressions.bound_expr import BoundExpr
from discreet.query.expressions.operands import (
    BOOLEAN,
    DATE,
    INTEGER,
    MAX_TEXT_LENGTH,
    REAL,
    TEXT,
    TYPE_NAMES,
    ExprReader,
    check_pattern,
)
from discreet.query.expressions.value_ranges import bound_call, bound_constant, is_null


def trim(op: str, node: exp.Expr, reader: ExprReader, text: BoundExpr, letters: str | None) -> BoundExpr:
    """Return TRIM, LTRIM or RTRIM of spaces."""
    if letters not in (None, " "):
        raise reader.refuse(node, "only spaces can be trimmed", "Leave out the characters to trim.")
    return bound_call(op, text)


def text_part(node: exp.Expr, reader: ExprReader, text: BoundExpr, start: int, size: int) -> BoundExpr:
    """Return a substring; positions before the first count towards its length, as in PostgreSQL."""
    if size < 0:
        raise reader.refuse(node, "negative substring length is not allowed", "Write 0 or more.")
    end = min(start + size, MAX_TEXT_LENGTH + 1)
    start = max(start, 1)
    return bound_call("part", text, bound_constant(start, INTEGER), bound_constant(max(end - start, 0), INTEGER))


def substring(node: exp.Expr, reader: ExprReader, text: BoundExpr, start: int | None, length: int | None) -> BoundExpr:
    """Return SUBSTRING(text, start, length)."""
    start = 1 if start is None else start
    return text_part(node, reader, text, start, 2 * MAX_TEXT_LENGTH + abs(start) if length is None else length)


def left(node: exp.Expr, reader: ExprReader, text: BoundExpr, size: int) -> BoundExpr:
    """Return LEFT(text, size); a negative size leaves out as many characters at the end, as in PostgreSQL."""
    if size < 0:
        return bound_call("drop_last", text, bound_constant(-size, INTEGER))
    return text_part(node, reader, text, 1, size)


def right(node: exp.Expr, reader: ExprReader, text: BoundExpr, size: int) -> BoundExpr:
    """Return RIGHT(text, size); a negative size leaves out as many characters at the start, as in PostgreSQL."""
    if size > 0:
        return bound_call("keep_last", text, bound_constant(size, INTEGER))
    return text_part(node, reader, text, 1 - size, 2 * MAX_TEXT_LENGTH if size else 0)


def position(_node: exp.Expr, _reader: ExprReader, text: BoundExpr, part: str) -> BoundExpr:
    """Return POSITION(part IN text), STRPOS(text, part) or INSTR(text, part)."""
    if not part:  # at the first place of every text
        return bound_call("as_integer", bound_call("at_most", bound_constant("", TEXT), text))
    return bound_call("position", text, bound_constant(part, TEXT))


def replace_text(node: exp.Expr, reader: ExprReader, text: BoundExpr, old: str, new: str) -> BoundExpr:
    """Return REPLACE(text, old, new)."""
    if old and len(new) > MAX_GROWTH * len(old):
        cause = f"the replacement must not be more than {MAX_GROWTH} times as long as the text that it replaces"
        raise reader.refuse(node, cause, "Write a shorter one.")
    return bound_call("replace", text, bound_constant(old, TEXT), bound_constant(new, TEXT)) if old else text


def split_part(node: exp.Expr, reader: ExprReader, text: BoundExpr, delimiter: str, number: int) -> BoundExpr:
    """Return SPLIT_PART(text, delimiter, number); without a delimiter, the whole text is one field."""
    if number == 0:
        raise reader.refuse(node, "field position must not be zero", "Write 1 for the first field, or -1 for the last.")
    if not delimiter:
        return text if abs(number) == 1 else text_part(node, reader, text, 1, 0)
    return bound_call("split_part", text, bound_constant(number, INTEGER), bound_constant(delimiter, TEXT))


def as_text(node: exp.Expr, reader: ExprReader, bound: BoundExpr) -> BoundExpr:
    """Return a value as text."""
    op = {INTEGER: "write_integer", BOOLEAN: "write_boolean", DATE: "write_date"}.get(bound.type)
    if bound.type is TEXT or is_null(bound):
        return reader.coerce(node, bound, TEXT)
    if op is None:
        hint = "Use ROUND and CAST to an integer first." if bound.type is REAL else "Use EXTRACT, or CAST to a date."
        raise reader.refuse(
            node, f"cannot cast type {TYPE_NAMES[bound.type]} to text, because engines format it differently", hint
        )
    return bound_call(op, bound)


def concatenate(texts: Sequence[BoundExpr]) -> BoundExpr:
    """Return the concatenation; NULL if any text is NULL."""
    return bound_call("join", *texts) if len(texts) > 1 else texts[0]


def bind_concat(node: exp.Expr, reader: ExprReader) -> BoundExpr:
    """Bind CONCAT, which ignores NULL."""
    texts = [(operand, reader.bind(operand)) for operand in node.expressions]
    for each, bound in texts:
        if bound.type is BOOLEAN:
            raise reader.refuse(
                each, "CONCAT does not support type boolean", "Write CASE WHEN x THEN 't' ELSE 'f' END."
            )
    texts_given = [as_text(node, reader, text) for node, text in texts if not is_null(text)]
    empty = bound_constant("", TEXT)
    filled = [each if isinstance(each.expr, Constant) else bound_call("coalesce", each, empty) for each in texts_given]
    return concatenate(filled or [empty])


def _normalise_pattern(text: str, escape: str) -> str:
    """Return a LIKE pattern with a backslash before literal wildcards and backslashes only."""
    normalised, letters = "", iter(text)
    for letter in letters:
        if letter == escape:
            normalised += _escape_letter(next(letters))
        else:
            normalised += letter if letter in "%_" else _escape_letter(letter)
    return normalised


def _escape_letter(letter: str) -> str:
    return "\\" + letter if letter in "%_\\" else letter


def like(node: exp.Expr, reader: ExprReader, text: BoundExpr, pattern: str, escape: str) -> BoundExpr:
    """Return LIKE or ILIKE."""
    op = "like" if isinstance(node, exp.Like) else "like_any_case"
    matched = bound_call(op, text, bound_constant(_normalise_pattern(pattern, escape), TEXT))
    check_pattern(text, matched.expr, reader.lists, node, reader.clause)
    return bound_call("not", matched) if node.args.get("negate") else matched


def search(before: str, after: str, text: BoundExpr, literal: str) -> BoundExpr:
    """Return whether a text has a constant between what these patterns match: in it, or at one end of it."""
    return bound_call("like", text, bound_constant(before + "".join(map(_escape_letter, literal)) + after, TEXT))


def bind_regexp(node: exp.Expr, reader: ExprReader) -> BoundExpr:
    """Bind a regular-expression match."""
    text, pattern = reader.bind_as(node.this, TEXT), reader.constant_text(node.expression)
    flag_node = node.args.get("flag")
    flag = "" if flag_node is None else reader.constant_text(flag_node)
    if flag not in ("", "c", "i"):
        raise reader.refuse(node, "only the flags i and c are supported", "Leave the flags out.")
    if not isinstance(node, exp.RegexpILike) and flag != "i":
        return _bound_match(text, pattern)
    if "[" in pattern and pattern != pattern.lower():
        cause = "upper-case letters in a character class cannot be matched case-insensitively"
        raise reader.refuse(node, cause, "Write [classes] in lower case.")
    return _bound_match(bound_call("lower", text), pattern.lower())


def bind_similar_to(node: exp.Expr, reader: ExprReader) -> BoundExpr:
    """Bind SIMILAR TO, which matches the whole text with LIKE wildcards and regular-expression operators."""
    pattern = reader.constant_text(node.expression)
    special = {"%": ".*", "_": ".", ".": "\\.", "^": "\\^", "$": "\\$", "\\%": "%", "\\_": "_"}
    tokens = re.findall(r"\\.|\[[^\]]*\]|.", pattern, re.DOTALL)
    inside = "".join(special.get(token, token) for token in tokens)
    check_regex(inside)  # on its own: brackets of the pattern must not close the one around it
    return _bound_match(reader.bind_as(node.this, TEXT), f"^({inside})$")


def _bound_match(text: BoundExpr, pattern: str) -> BoundExpr:
    """Return a match of a pattern, which each engine would refuse, too, but without naming its position."""
    constant = bound_constant(pattern, TEXT)
    check_regex(pattern)
    return bound_call("matches", text, constant)
