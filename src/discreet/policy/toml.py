"""TOML without rounding: parse policy files exactly, locate the lines of keys, and write values.

A float is kept as its digits in the file (`FloatText`), so that 0.1 is exactly one tenth; no binary float is ever
created.
"""

import json
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

from discreet.kernel.errors import PolicyError

KeyPath = tuple[str | int, ...]

_MAX_BYTES = 10_000_000
_DATA_FILE = re.compile(r"\.(?:parquet|pq|[ct]sv(?:\.gz)?|duckdb|ddb|db)$", re.IGNORECASE)
_ERROR_POSITION = re.compile(r"\s*\(at line (\d+), column \d+\)$")
_STRING_OR_COMMENT = (
    r'"""(?:\\.|[^\\])*?""""{0,2}'  # the closing quotes may follow up to two quotes of the text itself
    r"|'''.*?''''{0,2}"
    r'|"(?:\\.|[^"\\])*"'
    r"|'[^']*'"
    r"|#[^\n]*"
)
_TOKEN = re.compile(_STRING_OR_COMMENT + r"|\n|[\[\]{},=.]|[^\s\[\]{},=.#\"']+", re.DOTALL)
_LONG_LIST_LENGTH = 65_536  # characters
_STRING_OR_LIST = re.compile(  # strings and comments, which are skipped, or a flat list
    _STRING_OR_COMMENT + r"""|(\[(?:[^\[\]{}"'#]++|"(?:\\.|[^"\\\n])*+"|'[^'\n]*+')*+\])""", re.DOTALL
)
_NOT_JSON = re.compile(r"[\\\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\b(?:null|NaN|Infinity)\b")


@dataclass(frozen=True)
class FloatText:
    """The digits of a float, as written in the file."""

    text: str

    def __str__(self) -> str:
        return self.text


def read_policy_text(path: Path) -> str:
    """Read the text of a policy file."""
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_BYTES + 1)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        reason = getattr(error, "strerror", None) or "invalid name"
        raise PolicyError(f"{path}: cannot read the file ({reason}). Give the path of a TOML policy file.") from None
    if _DATA_FILE.search(path.name):
        hint = f"Draft a policy with `discreet init {path}`, or pass a table object to discreet.open, with unit=."
        raise PolicyError(f"{path}: this is data, not a policy. {hint}")
    if len(content) > _MAX_BYTES:
        raise PolicyError(
            f"{path}: larger than 10 MB. Move long lists of values to a public table, and refer to it with references."
        )
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise PolicyError(f"{path}, line {line}: not UTF-8. Save the file as UTF-8.") from None


def parse_toml(text: str, name: str) -> dict[str, Any]:
    """Parse TOML, keeping the digits of every float."""
    lists: dict[str, list[Any]] = {}
    try:
        values = tomllib.loads(_replace_long_lists(text, _long_list_parser(text, lists)), parse_float=_float_text)
        return _restore_lists(values, lists) if lists else values
    except tomllib.TOMLDecodeError as error:
        message = str(error)
        position = _ERROR_POSITION.search(message)
        line = int(position[1]) if position else text.count("\n") + 1
        cause = _ERROR_POSITION.sub("", message).removesuffix(" (at end of document)")
        raise PolicyError(f"{name}, line {line}: not valid TOML: {cause}. Correct the line.") from None
    except (ValueError, RecursionError):
        # tomllib gives no position for an integer of thousands of digits, nor for thousands of nested brackets.
        raise PolicyError(f"{name}: not valid TOML: a number is too long, or brackets are nested too deeply.") from None


def _replace_long_lists(text: str, replacement: Callable[[str], str | None]) -> str:
    """Replace long lists by short ones with the same number of line breaks."""

    def shorten_match(match: re.Match[str]) -> str:
        if match[1] is None or len(match[1]) < _LONG_LIST_LENGTH or (short := replacement(match[1])) is None:
            return match[0]
        return f"[{short}{chr(10) * match[1].count(chr(10))}]"

    return _STRING_OR_LIST.sub(shorten_match, text) if len(text) >= _LONG_LIST_LENGTH else text


def _long_list_parser(document: str, lists: dict[str, list[Any]]) -> Callable[[str], str | None]:
    """Return a function that parses a long list as JSON, which is much faster, and returns a stand-in number for it."""
    zeros = "0" * (1 + max(map(len, re.findall("0+", document)), default=0))  # more than any number in the text has

    def parse_list(text: str) -> str | None:
        if _NOT_JSON.search(text):
            return None
        try:
            items = json.loads(re.sub(r",\s*\]$", "]", text), parse_float=_float_text)
        except ValueError:  # dates, other number formats or single quotes
            return None
        stand_in = f"{len(lists)}.{zeros}"
        lists[stand_in] = items
        return stand_in

    return parse_list


def _restore_lists(value: Any, lists: dict[str, list[Any]]) -> Any:
    """Replace the stand-in numbers by their lists."""
    if isinstance(value, dict):
        return {key: _restore_lists(item, lists) for key, item in value.items()}
    if isinstance(value, list):
        only_item = value[0] if len(value) == 1 else None
        items = lists.get(only_item.text) if isinstance(only_item, FloatText) else None
        return [_restore_lists(item, lists) for item in value] if items is None else items
    return value


def _float_text(text: str) -> FloatText:
    return FloatText(text.replace("_", ""))


def key_lines(text: str) -> dict[KeyPath, int]:
    """Map every key and section of a TOML text, and every element of its shorter lists, to its first line.

    >>> key_lines('[a.b] # c = {d = 1}')
    {('a',): 1, ('a', 'b'): 1}
    """
    lines: dict[KeyPath, int] = {}
    tokens = _Tokens(_replace_long_lists(text, lambda _: ""))
    prefix: KeyPath = ()
    try:
        while tokens.now:
            if tokens.now == "\n":
                tokens.advance()
            elif tokens.now == "[":
                line = tokens.line
                prefix = tokens.read_key("]")
                _record_line(prefix, line, lines)
            else:
                _scan_entry(tokens, prefix, lines)
    except RecursionError:
        pass  # the lines found so far are correct; other problems are reported without a line
    return lines


class _Tokens:
    """The tokens of a TOML text with their lines; `now` is empty at the end."""

    def __init__(self, text: str) -> None:
        self._remaining = _tokenize(text)
        self.advance()

    def advance(self) -> str:
        """Return the current token and move to the next."""
        token = getattr(self, "now", "")
        self.now, self.line = next(self._remaining, ("", 0))
        return token

    def read_key(self, end: str) -> KeyPath:
        """Read a dotted key and the token `end` after it."""
        parts: list[str] = []
        while self.now and self.now != end:
            token = self.advance()
            if token not in ("[", "."):
                parts.append(_unquote(token))
        while self.now and self.now == end:  # [[a]] ends twice
            self.advance()
        return tuple(parts)


def _tokenize(text: str) -> Iterator[tuple[str, int]]:
    line, position = 1, 0
    for match in _TOKEN.finditer(text):
        line += text.count("\n", position, match.start())
        position = match.start()
        if not match[0].startswith("#"):
            yield match[0], line


def _unquote(word: str) -> str:
    return str(tomllib.loads(f"k={word}")["k"]) if word[0] in "\"'" else word


def _record_line(path: KeyPath, line: int, lines: dict[KeyPath, int]) -> None:
    for end in range(1, len(path) + 1):
        lines.setdefault(path[:end], line)


def _scan_entry(tokens: _Tokens, prefix: KeyPath, lines: dict[KeyPath, int]) -> None:
    line = tokens.line
    path = prefix + tokens.read_key("=")
    _record_line(path, line, lines)
    _scan_value(tokens, path, lines)


def _scan_value(tokens: _Tokens, path: KeyPath, lines: dict[KeyPath, int]) -> None:
    bracket = tokens.now
    if bracket not in ("[", "{"):
        while tokens.now and tokens.now not in ("\n", ",", "]", "}"):
            tokens.advance()
        return
    tokens.advance()
    index = 0
    while tokens.now and tokens.now not in ("]", "}"):
        if tokens.now in (",", "\n"):
            tokens.advance()
        elif bracket == "{":
            _scan_entry(tokens, path, lines)
        else:
            lines[(*path, index)] = tokens.line
            _scan_value(tokens, (*path, index), lines)
            index += 1
    tokens.advance()


_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def key_text(name: str) -> str:
    """Format a key, quoted if necessary.

    >>> key_text("ward"), key_text("Last Name")
    ('ward', '"Last Name"')
    """
    return name if _BARE_KEY.fullmatch(name) else value_text(name)


def value_text(value: Any) -> str:
    r"""Format a value as TOML.

    >>> value_text("a\tb"), value_text(Fraction(1, 8)), value_text(Fraction(1, 3)), value_text(True)
    ('"a\\tb"', '0.125', '"1/3"', 'true')
    """
    match value:
        case bool():
            return str(value).lower()
        case str():
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
        case int():
            return str(value)
        case Fraction():
            return _number_text(value)
        case datetime() | date():
            return value.isoformat()
    raise TypeError(f"value must be a string, number, boolean, date or time, not {type(value).__name__}")


def list_text(values: Iterable[Any]) -> str:
    """Format a list on one line."""
    return f"[{', '.join(map(value_text, values))}]"


def inline_text(entries: dict[str, str]) -> str:
    """Format an inline table from keys and formatted values."""
    return "{ " + ", ".join(f"{key_text(key)} = {text}" for key, text in entries.items()) + " }"


def _number_text(value: Fraction) -> str:
    """Format an exact decimal of up to 39 places, or else a quoted fraction, which policies parse exactly."""
    if 10**39 % value.denominator or (value.denominator == 1 and abs(value) >= 1 << 62):
        return f'"{value}"'
    return decimal_text(value)


def decimal_text(number: Fraction) -> str:
    """Return a number with a finite decimal expansion as digits, without an exponent.

    >>> decimal_text(Fraction(-1, 200)), decimal_text(Fraction(5000))
    ('-0.005', '5000')
    """
    places = next(count for count in range(number.denominator.bit_length()) if 10**count % number.denominator == 0)
    return f"{Decimal(f'{number.numerator * 10**places // number.denominator}e-{places}'):f}"
