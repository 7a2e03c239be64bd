"""Values in the places of marks: each becomes one literal, and nothing else of the text changes its meaning.

Marks are found by the tokenizer that reads the question later, so that a ? in a text, a name or a comment is none. What
comes out is tokenized once more, and must be what went in, with literals for marks.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np
from sqlglot import TokenType, exp

from discreet.dbapi.errors import QuestionRefused
from discreet.sql.text import tokenise

_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_LARGEST = 400  # digits: far more than any type holds
Token = tuple[TokenType, str]


@dataclass(frozen=True)
class Mark:
    """Where a value goes: the letters from start to end, and its place or name among the parameters."""

    start: int
    end: int
    key: int | str


def bind(text: str, parameters: Sequence[Any] | Mapping[str, Any]) -> str:
    """Put a sequence's values in the places of ?, or a mapping's in those of :name.

    >>> bind("SELECT COUNT(*) FROM visits WHERE ward = ? AND age > :a -- ?", ["O'Hara"])
    "SELECT COUNT(*) FROM visits WHERE ward =  'O''Hara'  AND age > :a -- ?"
    """
    if isinstance(parameters, Mapping):
        marks = _named(text, parameters)
    elif isinstance(parameters, Sequence) and not isinstance(parameters, str | bytes):
        marks = _in_order(text, parameters)
    else:
        raise QuestionRefused("parameters: give a list for marks like ?, or a dict for marks like :name.")
    if not marks:
        return text
    values = [parameters[mark.key] for mark in marks]  # type: ignore[index]
    bound = _filled(text, marks, [literal(value) for value in values])
    wanted = _replaced(tokenise(_filled(text, marks, ["?"] * len(marks))), values)
    if [(token.token_type, token.text) for token in tokenise(bound)] != list(wanted):
        raise QuestionRefused("parameters: a value cannot stand where its mark does. Put blanks around the mark.")
    return bound


def check_values(text: str, query: exp.Expr, parameters: Sequence[Any] | Mapping[str, Any]) -> None:
    """Refuse a bound question in which a text became a name, as sqlglot has it after FROM and AS."""
    values = parameters.values() if isinstance(parameters, Mapping) else parameters
    texts = {str.__str__(value) for value in values if isinstance(value, str)}
    written = {token.text for token in tokenise(text) if token.token_type is TokenType.IDENTIFIER} if texts else set()
    if any(name.quoted and name.this in texts - written for name in query.find_all(exp.Identifier)):
        raise QuestionRefused("parameters: a mark stands where a name must be. Write the name itself.")


def literal(value: Any) -> str:
    """Write a value as SQL.

    >>> literal(None), literal(-5), literal("it's"), literal(date(2026, 1, 31))
    ('NULL', '(-5)', "'it''s'", "CAST('2026-01-31' AS DATE)")
    """
    text: str | None = None
    match value := _plain(value):
        case None:
            text = "NULL"
        case bool():
            text = "TRUE" if value else "FALSE"
        case int() if value.bit_length() <= 3 * _LARGEST:
            text = _number(int.__repr__(value))
        case float() if math.isfinite(value):
            text = _number(float.__repr__(value))
        case Decimal() if value.is_finite() and abs(value.adjusted()) <= _LARGEST and len(str(value)) <= _LARGEST:
            text = _number(f"{value:f}")
        case str():
            text = "'" + _checked(str.__str__(value)).replace("'", "''") + "'"
        case datetime() if value == value and value.tzinfo is None:  # noqa: PLR0124 - pandas' NaT is not itself
            text = f"CAST('{value.isoformat(' ', 'microseconds')}' AS TIMESTAMP)"
        case date() if not isinstance(value, datetime):
            text = f"CAST('{value.isoformat()}' AS DATE)"
    if text is None:
        raise QuestionRefused(f"parameters: {_wrong(value)}")
    return text


def _plain(value: Any) -> Any:
    """Return one of numpy's scalars as Python's own, if it means the same there."""
    match value:
        case np.datetime64() if not np.isnat(value):
            day = value.astype("datetime64[D]")
            whole = np.datetime_data(value.dtype)[0] in ("Y", "M", "W", "D")
            found = (day if whole else value.astype("datetime64[us]")).item()
            return value if isinstance(found, int) else found  # Python has no name for times so far away
        case np.timedelta64():  # a kind of whole number to numpy
            return value
        case np.bool_() | np.integer() | np.floating():
            return value.item()
    return value


def _wrong(value: Any) -> str:
    match value:
        case int() | float() | Decimal():
            return "a number is not finite, or too large. Give NULL as None, and numbers that the columns can hold."
        case datetime():
            return "a time has a zone, or is missing. Give local times of the data's time zone, and NULL as None."
    kind = type(value).__name__
    return f"a value is of type {kind}. Give None, bool, int, float, Decimal, str, date or datetime."


def _checked(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise QuestionRefused("parameters: a text holds half a character (a lone surrogate). Take it out.") from None
    if "\0" in text:
        raise QuestionRefused("parameters: a text holds a NUL character. Take it out.")
    return text


def _number(text: str) -> str:
    return f"({text})" if text.startswith("-") else text


def _in_order(text: str, parameters: Sequence[Any]) -> list[Mark]:
    starts = list(_question_marks(text))
    if not starts and parameters:
        _refuse_foreign(text)
    if len(starts) != len(parameters):
        raise QuestionRefused(
            f"parameters: {len(starts)} marks (?) stand in the question, and {len(parameters)} values were given. "
            "Give one for each."
        )
    return [Mark(start, start + 1, place) for place, start in enumerate(starts)]


def _question_marks(text: str) -> Iterator[int]:
    """Find each ? that is no part of a text, name or comment; some begin longer signs, such as ?:: and ?|."""
    for token in tokenise(text):
        if text[token.start] == "?":
            yield from (token.start + at for at, sign in enumerate(token.text) if sign == "?")


def _named(text: str, parameters: Mapping[str, Any]) -> list[Mark]:
    if next(_question_marks(text), None) is not None:
        raise QuestionRefused("parameters: the question has marks like ?, and a dict was given. Give a list.")
    found = tokenise(text)
    marks = [
        Mark(colon.start, name.end + 1, text[name.start : name.end + 1])
        for colon, name in pairwise(found)
        if colon.token_type is TokenType.COLON
        and colon.end + 1 == name.start
        and _NAME.fullmatch(text[name.start : name.end + 1])
    ]
    if not marks and parameters:
        _refuse_foreign(text)
    for mark in marks:
        if mark.key not in parameters:
            raise QuestionRefused(
                f"parameters: there is no value for :{mark.key}. Give one, or write the value itself."
            )
    return marks


def _refuse_foreign(text: str) -> None:
    """Refuse %s and %(name)s, the marks of other drivers; a % in a text, or with a blank behind it, is none."""
    signs = [(one.text, other.text.lower()) for one, other in pairwise(tokenise(text)) if one.end + 1 == other.start]
    if {("%", "s"), ("%", "(")} & set(signs):
        raise QuestionRefused("parameters: %s is no mark here. Use ? for values in their order, or :name for a dict.")


def _filled(text: str, marks: Sequence[Mark], words: Sequence[str]) -> str:
    """Return the text with words in the places of the marks, and blanks around them."""
    ends = [0, *(mark.end for mark in marks)]
    starts = [*(mark.start for mark in marks), len(text)]
    between = [text[end:start] for end, start in zip(ends, starts, strict=True)]
    return "".join(f"{piece} {word} " for piece, word in zip(between, words, strict=False)) + between[-1]


def _replaced(found: Sequence[Any], values: Sequence[Any]) -> Iterator[Token]:
    """Return the tokens of a text, with those of each value in the place of its mark."""
    waiting = iter(values)
    for token in found:
        if token.token_type is not TokenType.PLACEHOLDER:
            yield token.token_type, token.text
            continue
        value = next(waiting)
        if isinstance(value, str):
            yield TokenType.STRING, str.__str__(value)
        else:
            yield from ((part.token_type, part.text) for part in tokenise(literal(value)))
