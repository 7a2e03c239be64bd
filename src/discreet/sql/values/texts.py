"""Functions on texts: parts, joins and patterns."""

import re
from collections.abc import Sequence

from sqlglot import exp

from discreet.kernel.expr import Constant
from discreet.sql.values.bound import Bound
from discreet.sql.values.declared import check_pattern
from discreet.sql.values.ranges import call, is_null, known
from discreet.sql.values.reading import BOOLEAN, DATE, INTEGER, KINDS, LONGEST, REAL, TEXT, Handler, Reader


def trimmed(node: exp.Expression, reader: Reader) -> Bound:
    """Read TRIM, LTRIM and RTRIM of spaces."""
    letters = node.args.get("expression")
    if letters is not None and reader.constant(letters, TEXT) != " ":
        raise reader.refuse(node, "only spaces can be trimmed", "Leave the characters out.")
    position = str(node.args.get("position") or "BOTH").upper()
    op = {"BOTH": "trim", "LEADING": "trim_left", "TRAILING": "trim_right"}[position]
    return call(op, reader.need(node.this, TEXT))


def part(node: exp.Expression, reader: Reader, text: Bound, start: int, size: int) -> Bound:
    """Return a part of a text; positions before the first count, as in PostgreSQL."""
    if size < 0:
        raise reader.refuse(node, "the length of a part must not be negative", "Write a number from 0.")
    end = min(start + size, LONGEST + 1)
    start = max(start, 1)
    return call("part", text, known(start, INTEGER), known(max(end - start, 0), INTEGER))


def substring(node: exp.Expression, reader: Reader) -> Bound:
    """Read SUBSTRING(text, start, size)."""
    text, start = reader.need(node.this, TEXT), reader.whole(node.args.get("start"), 1)
    return part(node, reader, text, start, reader.whole(node.args.get("length"), 2 * LONGEST + abs(start)))


def left_part(node: exp.Expression, reader: Reader) -> Bound:
    """Read LEFT(text, size)."""
    return part(node, reader, reader.need(node.this, TEXT), 1, reader.whole(node.expression, 0))


def written(node: exp.Expression, reader: Reader, found: Bound) -> Bound:
    """Return a value as text."""
    op = {INTEGER: "write_integer", BOOLEAN: "write_boolean", DATE: "write_date"}.get(found.type)
    if found.type is TEXT or is_null(found):
        return reader.turned(node, found, TEXT)
    if op is None:
        way_out = "Use ROUND and CAST to an integer first." if found.type is REAL else "Use EXTRACT, or CAST to a date."
        raise reader.refuse(node, f"{KINDS[found.type]} has no text that every engine writes alike", way_out)
    return call(op, found)


def joined(texts: Sequence[Bound]) -> Bound:
    """Return texts one after the other; NULL if one is."""
    return call("join", *texts) if len(texts) > 1 else texts[0]


def concat(node: exp.Expression, reader: Reader) -> Bound:
    """CONCAT passes over NULL."""
    texts = [(each, reader.bind(each)) for each in node.expressions]
    for each, found in texts:
        if found.type is BOOLEAN:
            raise reader.refuse(each, "CONCAT does not take true or false", "Write CASE WHEN x THEN 't' ELSE 'f' END.")
    kept = [written(each, reader, found) for each, found in texts if not is_null(found)]
    empty = known("", TEXT)
    filled = [each if isinstance(each.expr, Constant) else call("coalesce", each, empty) for each in kept]
    return joined(filled or [empty])


def _pattern(text: str, escape: str) -> str:
    """Write a LIKE pattern with a backslash before what is meant literally, and nowhere else."""
    found, letters = "", iter(text)
    for letter in letters:
        if letter == escape:
            following = next(letters, "")
            if not following:
                raise ValueError("the pattern ends with its escape character")
            found += _literally(following)
        else:
            found += letter if letter in "%_" else _literally(letter)
    return found


def _literally(letter: str) -> str:
    return "\\" + letter if letter in "%_\\" else letter


def like(node: exp.Expression, reader: Reader, escape: str = "\\") -> Bound:
    """Read LIKE or ILIKE with a constant pattern."""
    op = "like" if isinstance(node, exp.Like) else "like_any_case"
    text, pattern = reader.need(node.this, TEXT), str(reader.constant(node.expression, TEXT))
    found = call(op, text, known(_pattern(pattern, escape), TEXT))
    check_pattern(text, found.expr, reader.lists, node, reader.clause)
    return call("not", found) if node.args.get("negate") else found


def escaped_like(node: exp.Expression, reader: Reader) -> Bound:
    """Read LIKE … ESCAPE."""
    letter = str(reader.constant(node.expression, TEXT))
    if type(node.this) not in (exp.Like, exp.ILike) or len(letter) > 1:
        raise reader.refuse(node, "ESCAPE takes one character, after LIKE or ILIKE", "Use a backslash instead.")
    return like(node.this, reader, letter)


def affixed(before: str, after: str) -> Handler:
    """Return the reader of a function that looks for a constant at an end of a text, or in it."""

    def handle(node: exp.Expression, reader: Reader) -> Bound:
        text, found = reader.need(node.this, TEXT), str(reader.constant(node.expression, TEXT))
        return call("like", text, known(before + "".join(map(_literally, found)) + after, TEXT))

    return handle


def matches(node: exp.Expression, reader: Reader) -> Bound:
    """Read a regular expression."""
    text, pattern = reader.need(node.this, TEXT), str(reader.constant(node.expression, TEXT))
    given = node.args.get("flag")
    flag = "" if given is None else str(reader.constant(given, TEXT))
    if flag not in ("", "c", "i"):
        raise reader.refuse(node, "only the flags i and c are understood", "Leave the flags out.")
    if not isinstance(node, exp.RegexpILike) and flag != "i":
        return call("matches", text, known(pattern, TEXT))
    if "[" in pattern and pattern != pattern.lower():
        cause = "a class with capitals cannot be matched in any case"
        raise reader.refuse(node, cause, "Write [classes] in lower case.")
    return call("matches", call("lower", text), known(pattern.lower(), TEXT))


def similar(node: exp.Expression, reader: Reader) -> Bound:
    """Read SIMILAR TO: the whole text, with % and _ as in LIKE and the rest as in a regular expression."""
    pattern = str(reader.constant(node.expression, TEXT))
    special = {"%": ".*", "_": ".", ".": "\\.", "^": "\\^", "$": "\\$", "\\%": "%", "\\_": "_"}
    tokens = re.findall(r"\\.|\[[^\]]*\]|.", pattern, re.DOTALL)
    inside = "".join(special.get(token, token) for token in tokens)
    return call("matches", reader.need(node.this, TEXT), known(f"^({inside})$", TEXT))
