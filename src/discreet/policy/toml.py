"""The policy file as text: reading it without rounding a number, and finding the line of a key.

A float in the file is kept as the digits that were written (`Real`), so that 0.1 is one tenth and 1e-9 exactly
that; no binary float is ever made.
"""

import json
import re
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from discreet.kernel.errors import PolicyError

KeyPath = tuple[str | int, ...]

_LARGEST = 10_000_000  # bytes
_AT_LINE = re.compile(r"\s*\(at line (\d+), column \d+\)$")
_TEXT = (
    r'"""(?:\\.|[^\\])*?""""{0,2}'  # a closing run may hold two quotes of the text itself
    r"|'''.*?''''{0,2}"
    r'|"(?:\\.|[^"\\])*"'
    r"|'[^']*'"
    r"|#[^\n]*"
)
_TOKEN = re.compile(_TEXT + r"|\n|[\[\]{},=.]|[^\s\[\]{},=.#\"']+", re.DOTALL)
_LONG = 65_536  # characters
_LIST = re.compile(  # texts and comments, which are passed over, or a list of single values
    _TEXT + r"""|(\[(?:[^\[\]{}"'#]++|"(?:\\.|[^"\\\n])*+"|'[^'\n]*+')*+\])""", re.DOTALL
)
_NOT_JSON = re.compile(r"[\\\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\b(?:null|NaN|Infinity)\b")


@dataclass(frozen=True)
class Real:
    """A number with a point or an exponent, as it was written."""

    text: str

    def __str__(self) -> str:
        return self.text


def read_text(path: Path) -> str:
    """Read a policy file, or say why it cannot be one."""
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST + 1)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        why = getattr(error, "strerror", None) or "the name is not valid"
        raise PolicyError(f"{path}: cannot be read ({why}). Give the path of a policy file in TOML.") from None
    if len(content) > _LARGEST:
        raise PolicyError(
            f"{path}: larger than 10 MB. Keep long lists of keys in a public table, and name it with references."
        )
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise PolicyError(f"{path}, line {line}: not UTF-8. Save the file with that encoding.") from None


def read_values(text: str, name: str) -> dict[str, Any]:
    """Read TOML; every number with a point stays as it was written."""
    lists: dict[str, list[Any]] = {}
    try:
        values = tomllib.loads(_shortened(text, _read_list(text, lists)), parse_float=_real)
        return _with_lists(values, lists) if lists else values
    except tomllib.TOMLDecodeError as error:
        words = str(error)
        found = _AT_LINE.search(words)
        line = int(found[1]) if found else text.count("\n") + 1
        cause = _AT_LINE.sub("", words).removesuffix(" (at end of document)")
        raise PolicyError(f"{name}, line {line}: not valid TOML: {cause}. Correct the line.") from None
    except (ValueError, RecursionError):
        # Python gives no place for an integer of thousands of digits, nor for thousands of nested brackets.
        raise PolicyError(
            f"{name}: not valid TOML: a number is too long or brackets are nested too deeply. Write it shorter."
        ) from None


def _shortened(text: str, instead: Callable[[str], str | None]) -> str:
    """Put something short where long lists stand, with as many line breaks."""

    def shorter(match: re.Match[str]) -> str:
        if match[1] is None or len(match[1]) < _LONG or (short := instead(match[1])) is None:
            return match[0]
        return f"[{short}{chr(10) * match[1].count(chr(10))}]"

    return _LIST.sub(shorter, text) if len(text) >= _LONG else text


def _read_list(whole: str, lists: dict[str, list[Any]]) -> Callable[[str], str | None]:
    """Read long lists as JSON where that means the same, many times as fast; a number is left in their place."""
    zeros = "0" * (1 + max(map(len, re.findall("0+", whole)), default=0))  # no number in the text has so many

    def read(text: str) -> str | None:
        if _NOT_JSON.search(text):
            return None
        try:
            found = json.loads(re.sub(r",\s*\]$", "]", text), parse_float=_real)
        except ValueError:  # other kinds of values, of numbers or of quotation marks
            return None
        place = f"{len(lists)}.{zeros}"
        lists[place] = found
        return place

    return read


def _with_lists(value: Any, lists: dict[str, list[Any]]) -> Any:
    """Put the lists where their numbers stand."""
    if isinstance(value, dict):
        return {key: _with_lists(each, lists) for key, each in value.items()}
    if isinstance(value, list):
        alone = value[0] if len(value) == 1 else None
        found = lists.get(alone.text) if isinstance(alone, Real) else None
        return [_with_lists(each, lists) for each in value] if found is None else found
    return value


def _real(text: str) -> Real:
    return Real(text.replace("_", ""))


def key_lines(text: str) -> dict[KeyPath, int]:
    """Map every key, every element of a list that is not long, and every section of a TOML text to its first line.

    >>> key_lines('[a.b] # c = {d = 1}')
    {('a',): 1, ('a', 'b'): 1}
    """
    lines: dict[KeyPath, int] = {}
    tokens = _Tokens(_shortened(text, lambda _: ""))
    prefix: KeyPath = ()
    try:
        while tokens.now:
            if tokens.now == "\n":
                tokens.step()
            elif tokens.now == "[":
                line = tokens.line
                prefix = tokens.key("]")
                _note(prefix, line, lines)
            else:
                _entry(tokens, prefix, lines)
    except RecursionError:
        pass  # what was found so far is right; other places are told without a line
    return lines


class _Tokens:
    """The words of a TOML text with their lines; `now` is empty at the end."""

    def __init__(self, text: str) -> None:
        self._rest = _words(text)
        self.step()

    def step(self) -> str:
        """Return the present word and go to the next."""
        before = getattr(self, "now", "")
        self.now, self.line = next(self._rest, ("", 0))
        return before

    def key(self, end: str) -> KeyPath:
        """Read a dotted key and the sign that ends it."""
        parts: list[str] = []
        while self.now and self.now != end:
            word = self.step()
            if word not in ("[", "."):
                parts.append(_unquoted(word))
        while self.now and self.now == end:  # [[a]] ends twice
            self.step()
        return tuple(parts)


def _words(text: str) -> Iterator[tuple[str, int]]:
    line, seen = 1, 0
    for match in _TOKEN.finditer(text):
        line += text.count("\n", seen, match.start())
        seen = match.start()
        if not match[0].startswith("#"):
            yield match[0], line


def _unquoted(word: str) -> str:
    return str(tomllib.loads(f"k={word}")["k"]) if word[0] in "\"'" else word


def _note(path: KeyPath, line: int, lines: dict[KeyPath, int]) -> None:
    for end in range(1, len(path) + 1):
        lines.setdefault(path[:end], line)


def _entry(tokens: _Tokens, prefix: KeyPath, lines: dict[KeyPath, int]) -> None:
    line = tokens.line
    path = prefix + tokens.key("=")
    _note(path, line, lines)
    _value(tokens, path, lines)


def _value(tokens: _Tokens, path: KeyPath, lines: dict[KeyPath, int]) -> None:
    opened = tokens.now
    if opened not in ("[", "{"):
        while tokens.now and tokens.now not in ("\n", ",", "]", "}"):
            tokens.step()
        return
    tokens.step()
    index = 0
    while tokens.now and tokens.now not in ("]", "}"):
        if tokens.now in (",", "\n"):
            tokens.step()
        elif opened == "{":
            _entry(tokens, path, lines)
        else:
            lines[(*path, index)] = tokens.line
            _value(tokens, (*path, index), lines)
            index += 1
    tokens.step()
