"""TOML without rounding: parse policy files exactly, locate the lines of keys, and write values.

A float in the file is kept as the digits that were written (`FloatText`), so that 0.1 is one tenth and 1e-9 exactly
that; no binary float is ever made.
"""

import json
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import date, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

from discreet.kernel.errors import PolicyError

KeyPath = tuple[str | int, ...]

_MAX_BYTES = 10_000_000  # bytes
_ERROR_POSITION = re.compile(r"\s*\(at line (\d+), column \d+\)$")
_STRING_OR_COMMENT = (
    r'"""(?:\\.|[^\\])*?""""{0,2}'  # a closing run may hold two quotes of the text itself
    r"|'''.*?''''{0,2}"
    r'|"(?:\\.|[^"\\])*"'
    r"|'[^']*'"
    r"|#[^\n]*"
)
_TOKEN = re.compile(_STRING_OR_COMMENT + r"|\n|[\[\]{},=.]|[^\s\[\]{},=.#\"']+", re.DOTALL)
_LONG_LIST_LENGTH = 65_536  # characters
_STRING_OR_LIST = re.compile(  # texts and comments, which are passed over, or a list of single values
    _STRING_OR_COMMENT + r"""|(\[(?:[^\[\]{}"'#]++|"(?:\\.|[^"\\\n])*+"|'[^'\n]*+')*+\])""", re.DOTALL
)
_NOT_JSON = re.compile(r"[\\\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\b(?:null|NaN|Infinity)\b")


@dataclass(frozen=True)
class FloatText:
    """A number with a point or an exponent, as it was written."""

    text: str

    def __str__(self) -> str:
        return self.text


def read_policy_text(path: Path) -> str:
    """Read a policy file, or say why it cannot be one."""
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_BYTES + 1)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        reason = getattr(error, "strerror", None) or "the name is not valid"
        raise PolicyError(f"{path}: cannot be read ({reason}). Give the path of a policy file in TOML.") from None
    if len(content) > _MAX_BYTES:
        raise PolicyError(
            f"{path}: larger than 10 MB. Keep long lists of keys in a public table, and name it with references."
        )
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise PolicyError(f"{path}, line {line}: not UTF-8. Save the file with that encoding.") from None


def parse_toml(text: str, name: str) -> dict[str, Any]:
    """Read TOML; every number with a point stays as it was written."""
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
        # Python gives no place for an integer of thousands of digits, nor for thousands of nested brackets.
        raise PolicyError(
            f"{name}: not valid TOML: a number is too long or brackets are nested too deeply. Write it shorter."
        ) from None


def _replace_long_lists(text: str, replacement: Callable[[str], str | None]) -> str:
    """Put something short where long lists stand, with as many line breaks."""

    def shorten_match(match: re.Match[str]) -> str:
        if match[1] is None or len(match[1]) < _LONG_LIST_LENGTH or (short := replacement(match[1])) is None:
            return match[0]
        return f"[{short}{chr(10) * match[1].count(chr(10))}]"

    return _STRING_OR_LIST.sub(shorten_match, text) if len(text) >= _LONG_LIST_LENGTH else text


def _long_list_parser(document: str, lists: dict[str, list[Any]]) -> Callable[[str], str | None]:
    """Read long lists as JSON where that means the same, many times as fast; a number is left in their place."""
    zeros = "0" * (1 + max(map(len, re.findall("0+", document)), default=0))  # no number in the text has so many

    def parse_list(text: str) -> str | None:
        if _NOT_JSON.search(text):
            return None
        try:
            items = json.loads(re.sub(r",\s*\]$", "]", text), parse_float=_float_text)
        except ValueError:  # other kinds of values, of numbers or of quotation marks
            return None
        stand_in = f"{len(lists)}.{zeros}"
        lists[stand_in] = items
        return stand_in

    return parse_list


def _restore_lists(value: Any, lists: dict[str, list[Any]]) -> Any:
    """Put the lists where their numbers stand."""
    if isinstance(value, dict):
        return {key: _restore_lists(item, lists) for key, item in value.items()}
    if isinstance(value, list):
        only_item = value[0] if len(value) == 1 else None
        items = lists.get(only_item.text) if isinstance(only_item, FloatText) else None
        return [_restore_lists(each, lists) for each in value] if items is None else items
    return value


def _float_text(text: str) -> FloatText:
    return FloatText(text.replace("_", ""))


def key_lines(text: str) -> dict[KeyPath, int]:
    """Map every key, every element of a list that is not long, and every section of a TOML text to its first line.

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
        pass  # what was found so far is right; other places are told without a line
    return lines


class _Tokens:
    """The words of a TOML text with their lines; `now` is empty at the end."""

    def __init__(self, text: str) -> None:
        self._remaining = _tokenize(text)
        self.advance()

    def advance(self) -> str:
        """Return the present word and go to the next."""
        before = getattr(self, "now", "")
        self.now, self.line = next(self._remaining, ("", 0))
        return before

    def read_key(self, end: str) -> KeyPath:
        """Read a dotted key and the sign that ends it."""
        parts: list[str] = []
        while self.now and self.now != end:
            word = self.advance()
            if word not in ("[", "."):
                parts.append(_unquote(word))
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
    """Write a key, in quotes if it needs them.

    >>> key_text("ward"), key_text("Last Name")
    ('ward', '"Last Name"')
    """
    return name if _BARE_KEY.fullmatch(name) else value_text(name)


def value_text(value: Any) -> str:
    r"""Write a value of the policy.

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
    raise TypeError(f"value must be a text, number, boolean, date or time, not {type(value).__name__}")


def list_text(values: Iterable[Any]) -> str:
    """Write a list on one line."""
    return f"[{', '.join(map(value_text, values))}]"


def inline_text(entries: dict[str, str]) -> str:
    """Write keys and their texts as an inline table."""
    return "{ " + ", ".join(f"{key_text(key)} = {text}" for key, text in entries.items()) + " }"


def _number_text(value: Fraction) -> str:
    """Write an exact decimal if there is a short one, else a fraction in quotes, which policies read as exactly."""
    if value.denominator == 1:
        return str(value.numerator) if abs(value) < 1 << 62 else f'"{value}"'
    digits = next((places for places in range(1, 40) if 10**places % value.denominator == 0), None)
    if digits is None:
        return f'"{value}"'
    whole = abs(value.numerator) * 10**digits // value.denominator
    text = f"{whole // 10**digits}.{whole % 10**digits:0{digits}d}"
    return f"-{text}" if value < 0 else text
