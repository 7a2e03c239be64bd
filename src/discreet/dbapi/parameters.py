"""Bind values to placeholders: each becomes one literal, and the meaning of the rest of the text does not change.

Placeholders are found by the tokenizer that parses the query later, so a ? in a string, a name or a comment is not a
placeholder. The result is tokenized again and must have the same tokens, with literals in place of placeholders.
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
_NUMBER = re.compile(r"[1-9]\d{0,4}", re.ASCII)  # at most 65,535 parameters
_MAX_DIGITS = 400  # far more than any type holds
Token = tuple[TokenType, str]


class ArrayValue(list[Any]):
    """The elements of an array, as parameters of servers may be."""


@dataclass(frozen=True)
class Placeholder:
    """A placeholder: its start and end in the text, and its index or name among the parameters."""

    start: int
    end: int
    key: int | str


def bind(text: str, parameters: Sequence[Any] | Mapping[str, Any]) -> str:
    """Replace each ? by a value of a sequence, or each :name by a value of a mapping.

    >>> bind("SELECT COUNT(*) FROM visits WHERE ward = ? AND age > :a -- ?", ["O'Hara"])
    "SELECT COUNT(*) FROM visits WHERE ward =  'O''Hara'  AND age > :a -- ?"
    """
    if isinstance(parameters, Mapping):
        placeholders = _named_placeholders(text, parameters)
    elif isinstance(parameters, Sequence) and not isinstance(parameters, str | bytes):
        placeholders = _positional_placeholders(text, parameters)
    else:
        raise QuestionRefused("parameters: expected a list for the placeholder ?, or a dict for :name.")
    values = [parameters[placeholder.key] for placeholder in placeholders]  # type: ignore[index]
    return _replace(text, placeholders, values)


def bind_numbered(text: str, values: Sequence[Any]) -> str:
    """Replace each $1, $2 … by a value; a list becomes an array.

    >>> bind_numbered("SELECT COUNT(*) FROM visits WHERE ward = $1 OR age = $2 -- $1", ["A", 7])
    "SELECT COUNT(*) FROM visits WHERE ward =  'A'  OR age =  7  -- $1"
    """
    placeholders = numbered_placeholders(text)
    if len(values) < max((int(placeholder.key) for placeholder in placeholders), default=0):
        raise QuestionRefused("parameters: a placeholder has no value. Pass one value for each of $1, $2 and so on.")
    return _replace(text, placeholders, [values[int(placeholder.key) - 1] for placeholder in placeholders])


def numbered_placeholders(text: str) -> list[Placeholder]:
    """Return each $1, $2 … outside of strings, names and comments."""
    placeholders = [
        Placeholder(dollar.start, number.end + 1, int(number.text))
        for dollar, number in pairwise(tokenise(text))
        if dollar.token_type is TokenType.PARAMETER
        and text[dollar.start] == "$"
        and dollar.end + 1 == number.start
        and _NUMBER.fullmatch(number.text)
    ]
    if next(_question_marks(text), None) is not None and placeholders:
        raise QuestionRefused("parameters: the query has both ? and $1. Use $1, $2 and so on.")
    return placeholders


def _replace(text: str, placeholders: Sequence[Placeholder], values: Sequence[Any]) -> str:
    """Replace placeholders by the literals of values, and check that the rest of the text keeps its meaning."""
    if not placeholders:
        return text
    bound = _fill(text, placeholders, [_array_or_literal(value) for value in values])
    expected = _expected_tokens(tokenise(_fill(text, placeholders, ["?"] * len(placeholders))), values)
    if [(token.token_type, token.text) for token in tokenise(bound)] != list(expected):
        raise QuestionRefused("parameters: a placeholder is not separated from its context. Put spaces around it.")
    return bound


def refuse_bound_names(text: str, query: exp.Expr, parameters: Sequence[Any] | Mapping[str, Any]) -> None:
    """Refuse a bound query in which a string became a name, as sqlglot accepts it after FROM and AS."""
    values = parameters.values() if isinstance(parameters, Mapping) else parameters
    texts = {str.__str__(value) for value in values if isinstance(value, str)}
    quoted_names = (
        {token.text for token in tokenise(text) if token.token_type is TokenType.IDENTIFIER} if texts else set()
    )
    if any(name.quoted and name.this in texts - quoted_names for name in query.find_all(exp.Identifier)):
        raise QuestionRefused("parameters: a placeholder cannot replace the name of a table or column. Write the name.")


def literal(value: Any) -> str:
    """Return a value as an SQL literal.

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
        case datetime() if value == value and value.tzinfo is None:  # noqa: PLR0124 - pandas' NaT does not equal itself
            text = f"CAST('{value.isoformat(' ', 'microseconds')}' AS TIMESTAMP)"
        case date() if not isinstance(value, datetime):
            text = f"CAST('{value.isoformat()}' AS DATE)"
    if text is None:
        raise QuestionRefused(f"parameters: {_unsupported_value(value)}")
    return text


def _array_or_literal(value: Any) -> str:
    return f"ARRAY[{', '.join(map(literal, value))}]" if isinstance(value, ArrayValue) else literal(value)


def _python_scalar(value: Any) -> Any:
    """Convert a numpy scalar to a Python one of the same meaning, if there is one."""
    match value:
        case np.datetime64() if not np.isnat(value):
            day = value.astype("datetime64[D]")
            is_date = np.datetime_data(value.dtype)[0] in ("Y", "M", "W", "D")
            converted = (day if is_date else value.astype("datetime64[us]")).item()
            return value if isinstance(converted, int) else converted  # outside of the range of Python's dates
        case np.timedelta64():  # a np.integer, which the next case would accept
            return value
        case np.bool_() | np.integer() | np.floating():
            return value.item()
    return value


def _unsupported_value(value: Any) -> str:
    match value:
        case int() | float() | Decimal():
            return (
                "a number is not finite or too large. Pass None for NULL, and numbers within the range of the column."
            )
        case datetime():
            return "a datetime is NaT or has a time zone. Pass None for NULL, and local times in the data's time zone."
    kind = type(value).__name__
    return f"type {kind} is not supported. Pass None, bool, int, float, Decimal, str, date or datetime."


def _valid_text(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise QuestionRefused("parameters: a string contains a lone surrogate. Remove it.") from None
    if "\0" in text:
        raise QuestionRefused("parameters: a string contains a NUL character. Remove it.")
    return text


def _parenthesise_negative(text: str) -> str:
    return f"({text})" if text.startswith("-") else text


def _positional_placeholders(text: str, parameters: Sequence[Any]) -> list[Placeholder]:
    starts = list(_question_marks(text))
    if not starts and parameters:
        _refuse_other_styles(text)
    if len(starts) != len(parameters):
        raise QuestionRefused(
            f"parameters: the number of placeholders (?) is {len(starts)}, but the number of values is "
            f"{len(parameters)}. Pass one value for each."
        )
    return [Placeholder(start, start + 1, index) for index, start in enumerate(starts)]


def _question_marks(text: str) -> Iterator[int]:
    """Yield the position of each ? outside of strings, names and comments; some start longer tokens, such as ?::."""
    for token in tokenise(text):
        if text[token.start] == "?":
            yield from (token.start + offset for offset, char in enumerate(token.text) if char == "?")


def _named_placeholders(text: str, parameters: Mapping[str, Any]) -> list[Placeholder]:
    if next(_question_marks(text), None) is not None:
        raise QuestionRefused("parameters: the query has the placeholder ?, which needs a list, not a dict.")
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
                f"parameters: there is no value for :{placeholder.key}. Pass one, or write the value in the query."
            )
    return placeholders


def _refuse_other_styles(text: str) -> None:
    """Refuse %s and %(name)s, the placeholders of other drivers; a % in a string or before a space is not a
    placeholder.
    """
    adjacent = [(one.text, other.text.lower()) for one, other in pairwise(tokenise(text)) if one.end + 1 == other.start]
    if {("%", "s"), ("%", "(")} & set(adjacent):
        raise QuestionRefused(
            "parameters: the placeholder %s is not supported. Use ? with a list, or :name with a dict."
        )


def _fill(text: str, placeholders: Sequence[Placeholder], texts: Sequence[str]) -> str:
    """Replace the placeholders by texts, with spaces around them."""
    ends = [0, *(placeholder.end for placeholder in placeholders)]
    starts = [*(placeholder.start for placeholder in placeholders), len(text)]
    between = [text[end:start] for end, start in zip(ends, starts, strict=True)]
    return "".join(f"{piece} {value} " for piece, value in zip(between, texts, strict=False)) + between[-1]


def _expected_tokens(tokens: Sequence[Any], values: Sequence[Any]) -> Iterator[Token]:
    """Return the tokens of a text, with each placeholder replaced by the tokens of its value."""
    remaining = iter(values)
    for token in tokens:
        if token.token_type is not TokenType.PLACEHOLDER:
            yield token.token_type, token.text
            continue
        value = next(remaining)
        if isinstance(value, str):
            yield TokenType.STRING, str.__str__(value)
        else:
            yield from ((part.token_type, part.text) for part in tokenise(_array_or_literal(value)))
