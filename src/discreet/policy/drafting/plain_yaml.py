"""The plain part of YAML: mappings and lists by indentation, and single values on one line.

This is what metadata is written in. Anchors, tags, and texts or brackets over several lines are refused with their
line instead of being guessed at. Numbers with a point stay as they were written.
"""

import re
from dataclasses import dataclass
from typing import Any

from discreet.policy.toml import Real

_DEEPEST = 30
_QUOTED = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\'\'|[^\'])*\'')
_KEY = re.compile(r"""("(?:\\.|[^"\\])*"|'(?:''|[^'])*'|[^\s"'\[\]{},&*!|>%@`#?-][^\n]*?|-[^\s][^\n]*?)\s*:(?=\s|$)""")
_WHOLE = re.compile(r"[-+]?[0-9][0-9_]*")
_REAL = re.compile(r"[-+]?(?:[0-9][0-9_]*\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_WORDS = {
    **dict.fromkeys(("true", "yes", "on"), True),
    **dict.fromkeys(("false", "no", "off"), False),
    **dict.fromkeys(("null", "~", ""), None),
}
_FOREIGN = tuple("&*!|>%@`?")


@dataclass(frozen=True)
class _Line:
    number: int
    indent: int
    text: str


def read_yaml(text: str) -> Any:
    r"""Read plain YAML; ValueError names the line that is something else.

    >>> read_yaml("PUMS:\n  age: {type: int, upper: 1e2}  # years\n  keys: [a, 'b c']")
    {'PUMS': {'age': {'type': 'int', 'upper': Real(text='1e2')}, 'keys': ['a', 'b c']}}
    """
    lines = _lines(text)
    if not lines:
        return None
    value, rest = _block(lines, 0, 0)
    if rest < len(lines):
        raise ValueError(f"line {lines[rest].number}: the indentation fits nothing above it")
    return value


def _lines(text: str) -> list[_Line]:
    found: list[_Line] = []
    for number, raw in enumerate(text.splitlines(), 1):
        line = _without_comment(raw).rstrip()
        indent = len(line) - len(line.lstrip(" "))
        if line[indent:].startswith("\t"):
            raise ValueError(f"line {number}: a tab cannot indent in YAML")
        if line == "---" and not found:
            continue
        if line == "...":
            break
        if line == "---":
            raise ValueError(f"line {number}: only one document is read")
        if line:
            found.append(_Line(number, indent, line[indent:]))
    return found


def _without_comment(line: str) -> str:
    """Cut a line at a # that begins a word and is not inside quotes."""
    at, fresh = 0, True
    while at < len(line):
        if fresh and line[at] == "#":
            return line[:at]
        quoted = _QUOTED.match(line, at) if fresh and line[at] in "\"'" else None
        fresh = line[at] in " \t[{,:" and not quoted
        at = quoted.end() if quoted else at + 1
    return line


def _block(lines: list[_Line], at: int, depth: int) -> tuple[Any, int]:
    if depth > _DEEPEST:
        raise ValueError(f"line {lines[at].number}: nested too deeply")
    first = lines[at]
    if first.text == "-" or first.text.startswith("- "):
        return _sequence(lines, at, depth)
    if first.text.startswith("? ") or _KEY.match(first.text):
        return _mapping(lines, at, depth)
    return _value(first.text, first.number), at + 1


def _mapping(lines: list[_Line], at: int, depth: int) -> tuple[dict[str, Any], int]:
    found: dict[str, Any] = {}
    indent = lines[at].indent
    while at < len(lines) and lines[at].indent == indent:
        line = lines[at]
        if line.text.startswith("? "):
            name, at = str(_value(line.text[2:].strip(), line.number)), at + 1
            value, at = _apart(lines, at, line, depth)
        else:
            key = _KEY.match(line.text)
            if not key:
                raise ValueError(f"line {line.number}: no key with a colon")
            name = _unquoted(key[1], line.number) if key[1][0] in "\"'" else key[1]
            rest = line.text[key.end() :].strip()
            value, at = (_value(rest, line.number), at + 1) if rest else _nested(lines, at + 1, indent, depth)
        if name in found:
            raise ValueError(f"line {line.number}: a key comes twice")
        found[name] = value
    return found, at


def _apart(lines: list[_Line], at: int, key: _Line, depth: int) -> tuple[Any, int]:
    """Read the value of a key that stands on a line of its own, after a question mark; writers do so for "" keys."""
    if at == len(lines) or lines[at].indent != key.indent or not (lines[at].text + " ").startswith(": "):
        raise ValueError(f"line {key.number}: a key without a colon below it")
    return _behind(lines, at, depth)


def _behind(lines: list[_Line], at: int, depth: int) -> tuple[Any, int]:
    """Read what follows a dash or colon: a block of its own, as if it stood alone on its line, or what is below."""
    line = lines[at]
    rest = line.text[1:].lstrip()
    if not rest:
        return _nested(lines, at + 1, line.indent, depth)
    lines[at] = _Line(line.number, line.indent + len(line.text) - len(rest), rest)
    return _block(lines, at, depth + 1)


def _nested(lines: list[_Line], at: int, indent: int, depth: int) -> tuple[Any, int]:
    """Read what stands below a key: indented further, or a list at the same indentation, or nothing."""
    if at < len(lines):
        deeper = lines[at].indent > indent
        listed = lines[at].indent == indent and (lines[at].text + " ").startswith("- ")
        if deeper or listed:
            return _block(lines, at, depth + 1)
    return None, at


def _sequence(lines: list[_Line], at: int, depth: int) -> tuple[list[Any], int]:
    found: list[Any] = []
    indent = lines[at].indent
    while at < len(lines) and lines[at].indent == indent and (lines[at].text + " ").startswith("- "):
        value, at = _behind(lines, at, depth)
        found.append(value)
    return found, at


def _value(text: str, number: int) -> Any:
    value, rest = _flow(text, number, 0, "")
    if rest.strip():
        raise ValueError(f"line {number}: a value that is not on one line, or not plain")
    return value


def _flow(text: str, number: int, depth: int, ends: str) -> tuple[Any, str]:
    """Read one value, and return what follows it; inside brackets a plain value ends at one of `ends`."""
    if depth > _DEEPEST or text.startswith(_FOREIGN):
        raise ValueError(f"line {number}: something other than plain YAML")
    if text.startswith("["):
        return _flow_list(text[1:].lstrip(), number, depth)
    if text.startswith("{"):
        return _flow_mapping(text[1:].lstrip(), number, depth)
    if quoted := _QUOTED.match(text):
        return _unquoted(quoted[0], number), text[quoted.end() :].lstrip()
    size = next((place for place, letter in enumerate(text) if letter in ends), len(text))
    plain = text[:size].strip()
    if not ends and re.search(r":(?=\s|$)", plain):
        raise ValueError(f"line {number}: two keys on one line")
    return _plain(plain), text[size:]


def _flow_list(text: str, number: int, depth: int) -> tuple[list[Any], str]:
    found: list[Any] = []
    while not text.startswith("]"):
        value, text = _flow(text, number, depth + 1, ",]")
        found.append(value)
        text = _after(text, number, "]")
    return found, text[1:].lstrip()


def _flow_mapping(text: str, number: int, depth: int) -> tuple[dict[str, Any], str]:
    found: dict[str, Any] = {}
    while not text.startswith("}"):
        key, text = _flow(text, number, depth + 1, ":,}")
        if not text.startswith(":") or str(key) in found:
            raise ValueError(f"line {number}: braces that hold something other than keys and values")
        found[str(key)], text = _flow(text[1:].lstrip(), number, depth + 1, ",}")
        text = _after(text, number, "}")
    return found, text[1:].lstrip()


def _after(text: str, number: int, end: str) -> str:
    if text.startswith(","):
        return text[1:].lstrip()
    if not text.startswith(end):
        raise ValueError(f"line {number}: brackets that are not closed on their line")
    return text


def _unquoted(text: str, number: int) -> str:
    if text.startswith("'"):
        return text[1:-1].replace("''", "'")
    simple = {"n": "\n", "t": "\t", '"': '"', "\\": "\\", "/": "/", "0": "\0"}

    def escaped(found: re.Match[str]) -> str:
        if found[1] not in simple:
            raise ValueError(f"line {number}: an escape that is not plain")
        return simple[found[1]]

    return re.sub(r"\\(.)", escaped, text[1:-1])


def _plain(text: str) -> Any:
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if _WHOLE.fullmatch(text):
        return int(text.replace("_", "")) if len(text) < 400 else text
    return Real(text.replace("_", "")) if _REAL.fullmatch(text) else text
