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
from discreet.query.syntax.parse import tokenise

_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_MAX_DIGITS = 400  # digits: far more than any type holds
Token = tuple[TokenType, str]


@dataclass(frozen=True)
class Placeholder:
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
        placeholders = _named_placeholders(text, parameters)
    elif isinstance(parameters, Sequence) and not isinstance(parameters, str | bytes):
        placeholders = _positional_placeholders(text, parameters)
    else:
        raise QuestionRefused("parameters: give a list for marks like ?, or a dict for marks like :name.")
    if not placeholders:
        return text
    values = [parameters[mark.key] for mark in placeholders]  # type: ignore[index]
    bound = _fill(text, placeholders, [literal(value) for value in values])
    expected = _expected_tokens(tokenise(_fill(text, placeholders, ["?"] * len(placeholders))), values)
    if [(token.token_type, token.text) for token in tokenise(bound)] != list(expected):
        raise QuestionRefused("parameters: a value cannot stand where its mark does. Put blanks around the mark.")
    return bound


def refuse_bound_names(text: str, query: exp.Expr, parameters: Sequence[Any] | Mapping[str, Any]) -> None:
    """Refuse a bound question in which a text became a name, as sqlglot has it after FROM and AS."""
    values = parameters.values() if isinstance(parameters, Mapping) else parameters
    texts = {str.__str__(value) for value in values if isinstance(value, str)}
    quoted_names = (
        {token.text for token in tokenise(text) if token.token_type is TokenType.IDENTIFIER} if texts else set()
    )
    if any(name.quoted and name.this in texts - quoted_names for name in query.find_all(exp.Identifier)):
        raise QuestionRefused("parameters: a mark stands where a name must be. Write the name itself.")


def literal(value: Any) -> str:
    """Write a value as SQL.

    >>> literal(None), literal(-5), literal("it's"), literal(date(2026, 1, 31))
    ('NULL', '(-5)', "'it''s'", "CAST('2026-01-31' AS DATE)")
    """
    text: str | None = None
    match value := _python_scalar(value):
        case None:
            text = "NULL"
        case bool():
            text = "TRUE" if value else "FALSE"
        case int() if value.bit_length() <= 3 * _MAX_DIGITS:
            text = _parenthesise_negative(int.__repr__(value))
        case float() if math.isfinite(value):
            text = _parenthesise_negative(float.__repr__(value))
        case Decimal() if value.is_finite() and abs(value.adjusted()) <= _MAX_DIGITS and len(str(value)) <= _MAX_DIGITS:
            text = _parenthesise_negative(f"{value:f}")
        case str():
            text = "'" + _valid_text(str.__str__(value)).replace("'", "''") + "'"
        case datetime() if value == value and value.tzinfo is None:  # noqa: PLR0124 - pandas' NaT is not itself
            text = f"CAST('{value.isoformat(' ', 'microseconds')}' AS TIMESTAMP)"
        case date() if not isinstance(value, datetime):
            text = f"CAST('{value.isoformat()}' AS DATE)"
    if text is None:
        raise QuestionRefused(f"parameters: {_unsupported_value(value)}")
    return text


def _python_scalar(value: Any) -> Any:
    """Return one of numpy's scalars as Python's own, if it means the same there."""
    match value:
        case np.datetime64() if not np.isnat(value):
            day = value.astype("datetime64[D]")
            is_date = np.datetime_data(value.dtype)[0] in ("Y", "M", "W", "D")
            converted = (day if is_date else value.astype("datetime64[us]")).item()
            return value if isinstance(converted, int) else converted  # Python has no name for times so far away
        case np.timedelta64():  # a kind of whole number to numpy
            return value
        case np.bool_() | np.integer() | np.floating():
            return value.item()
    return value


def _unsupported_value(value: Any) -> str:
    match value:
        case int() | float() | Decimal():
            return "a number is not finite, or too large. Give NULL as None, and numbers that the columns can hold."
        case datetime():
            return "a time has a zone, or is missing. Give local times of the data's time zone, and NULL as None."
    kind = type(value).__name__
    return f"a value is of type {kind}. Give None, bool, int, float, Decimal, str, date or datetime."


def _valid_text(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise QuestionRefused("parameters: a text holds half a character (a lone surrogate). Take it out.") from None
    if "\0" in text:
        raise QuestionRefused("parameters: a text holds a NUL character. Take it out.")
    return text


def _parenthesise_negative(text: str) -> str:
    return f"({text})" if text.startswith("-") else text


def _positional_placeholders(text: str, parameters: Sequence[Any]) -> list[Placeholder]:
    starts = list(_question_marks(text))
    if not starts and parameters:
        _refuse_other_styles(text)
    if len(starts) != len(parameters):
        raise QuestionRefused(
            f"parameters: {len(starts)} marks (?) stand in the question, and {len(parameters)} values were given. "
            "Give one for each."
        )
    return [Placeholder(start, start + 1, place) for place, start in enumerate(starts)]


def _question_marks(text: str) -> Iterator[int]:
    """Find each ? that is no part of a text, name or comment; some begin longer signs, such as ?:: and ?|."""
    for token in tokenise(text):
        if text[token.start] == "?":
            yield from (token.start + at for at, sign in enumerate(token.text) if sign == "?")


def _named_placeholders(text: str, parameters: Mapping[str, Any]) -> list[Placeholder]:
    if next(_question_marks(text), None) is not None:
        raise QuestionRefused("parameters: the question has marks like ?, and a dict was given. Give a list.")
    tokens = tokenise(text)
    placeholders = [
        Placeholder(colon.start, name.end + 1, text[name.start : name.end + 1])
        for colon, name in pairwise(tokens)
        if colon.token_type is TokenType.COLON
        and colon.end + 1 == name.start
        and _NAME.fullmatch(text[name.start : name.end + 1])
    ]
    if not placeholders and parameters:
        _refuse_other_styles(text)
    for placeholder in placeholders:
        if placeholder.key not in parameters:
            raise QuestionRefused(
                f"parameters: there is no value for :{placeholder.key}. Give one, or write the value itself."
            )
    return placeholders


def _refuse_other_styles(text: str) -> None:
    """Refuse %s and %(name)s, the marks of other drivers; a % in a text, or with a blank behind it, is none."""
    signs = [(one.text, other.text.lower()) for one, other in pairwise(tokenise(text)) if one.end + 1 == other.start]
    if {("%", "s"), ("%", "(")} & set(signs):
        raise QuestionRefused("parameters: %s is no mark here. Use ? for values in their order, or :name for a dict.")


def _fill(text: str, placeholders: Sequence[Placeholder], texts: Sequence[str]) -> str:
    """Return the text with words in the places of the marks, and blanks around them."""
    ends = [0, *(mark.end for mark in placeholders)]
    starts = [*(mark.start for mark in placeholders), len(text)]
    between = [text[end:start] for end, start in zip(ends, starts, strict=True)]
    return "".join(f"{piece} {word} " for piece, word in zip(between, texts, strict=False)) + between[-1]


def _expected_tokens(tokens: Sequence[Any], values: Sequence[Any]) -> Iterator[Token]:
    """Return the tokens of a text, with those of each value in the place of its mark."""
    remaining = iter(values)
    for token in tokens:
        if token.token_type is not TokenType.PLACEHOLDER:
            yield token.token_type, token.text
            continue
        value = next(remaining)
        if isinstance(value, str):
            yield TokenType.STRING, str.__str__(value)
        else:
            yield from ((part.token_type, part.text) for part in tokenise(literal(value)))
