"""The subset of YAML that metadata files use; anything else is refused with its line.

Anchors, tags, and strings or brackets that span several lines are not supported. The digits of floats are kept.
"""

import re
from dataclasses import dataclass
from typing import Any

from discreet.policy.toml import FloatText

_MAX_DEPTH = 30
_QUOTED = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\'\'|[^\'])*\'')
_KEY = re.compile(r"""("(?:\\.|[^"\\])*"|'(?:''|[^'])*'|[^\s"'\[\]{},&*!|>%@`#?-][^\n]*?|-[^\s][^\n]*?)\s*:(?=\s|$)""")
_INTEGER = re.compile(r"[-+]?[0-9][0-9_]*")
_FLOAT = re.compile(r"[-+]?(?:[0-9][0-9_]*\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_CONSTANTS = {
    **dict.fromkeys(("true", "yes", "on"), True),
    **dict.fromkeys(("false", "no", "off"), False),
    **dict.fromkeys(("null", "~", ""), None),
}
_UNSUPPORTED_INDICATORS = tuple("&*!|>%@`?")


@dataclass(frozen=True)
class _Line:
    number: int
    indent: int
    text: str


def read_yaml(text: str) -> Any:
    r"""Parse plain YAML; a ValueError names the line of anything else.

    >>> read_yaml("PUMS:\n  age: {type: int, upper: 1e2}  # years\n  keys: [a, 'b c']")
    {'PUMS': {'age': {'type': 'int', 'upper': FloatText(text='1e2')}, 'keys': ['a', 'b c']}}
    """
    lines = _split_lines(text)
    if not lines:
        return None
    value, rest = _parse_block(lines, 0, 0)
    if rest < len(lines):
        raise ValueError(f"line {lines[rest].number}: inconsistent indentation")
    return value


def _split_lines(text: str) -> list[_Line]:
    lines: list[_Line] = []
    for number, raw in enumerate(text.splitlines(), 1):
        line = _strip_comment(raw).rstrip()
        indent = len(line) - len(line.lstrip(" "))
        if line[indent:].startswith("\t"):
            raise ValueError(f"line {number}: tabs are not allowed as indentation in YAML")
        if line == "---" and not lines:
            continue
        if line == "...":
            break
        if line == "---":
            raise ValueError(f"line {number}: more than one document is not supported")
        if line:
            lines.append(_Line(number, indent, line[indent:]))
    return lines


def _strip_comment(line: str) -> str:
    """Cut a line at a # that starts a word outside quotes."""
    at, at_word_start = 0, True
    while at < len(line):
        if at_word_start and line[at] == "#":
            return line[:at]
        quoted = _QUOTED.match(line, at) if at_word_start and line[at] in "\"'" else None
        at_word_start = line[at] in " \t[{,:" and not quoted
        at = quoted.end() if quoted else at + 1
    return line


def _parse_block(lines: list[_Line], at: int, depth: int) -> tuple[Any, int]:
    if depth > _MAX_DEPTH:
        raise ValueError(f"line {lines[at].number}: nested too deeply")
    first = lines[at]
    if first.text == "-" or first.text.startswith("- "):
        return _parse_sequence(lines, at, depth)
    if first.text.startswith("? ") or _KEY.match(first.text):
        return _parse_mapping(lines, at, depth)
    return _parse_inline_value(first.text, first.number), at + 1


def _parse_mapping(lines: list[_Line], at: int, depth: int) -> tuple[dict[str, Any], int]:
    mapping: dict[str, Any] = {}
    indent = lines[at].indent
    while at < len(lines) and lines[at].indent == indent:
        line = lines[at]
        if line.text.startswith("? "):
            name, at = str(_parse_inline_value(line.text[2:].strip(), line.number)), at + 1
            value, at = _parse_explicit_value(lines, at, line, depth)
        else:
            key = _KEY.match(line.text)
            if not key:
                raise ValueError(f"line {line.number}: expected a key followed by a colon")
            name = _unquote(key[1], line.number) if key[1][0] in "\"'" else key[1]
            rest = line.text[key.end() :].strip()
            value, at = (
                (_parse_inline_value(rest, line.number), at + 1)
                if rest
                else _parse_nested(lines, at + 1, indent, depth)
            )
        if name in mapping:
            raise ValueError(f"line {line.number}: duplicate key")
        mapping[name] = value
    return mapping, at


def _parse_explicit_value(lines: list[_Line], at: int, key: _Line, depth: int) -> tuple[Any, int]:
    """Parse the value of an explicit key, "? key" on its own line, which some writers use for empty keys."""
    if at == len(lines) or lines[at].indent != key.indent or not (lines[at].text + " ").startswith(": "):
        raise ValueError(f"line {key.number}: expected a colon on the line after an explicit key")
    return _parse_after_indicator(lines, at, depth)


def _parse_after_indicator(lines: list[_Line], at: int, depth: int) -> tuple[Any, int]:
    """Parse the block after a dash or colon, on the same line or on the lines below."""
    line = lines[at]
    rest = line.text[1:].lstrip()
    if not rest:
        return _parse_nested(lines, at + 1, line.indent, depth)
    lines[at] = _Line(line.number, line.indent + len(line.text) - len(rest), rest)
    return _parse_block(lines, at, depth + 1)


def _parse_nested(lines: list[_Line], at: int, indent: int, depth: int) -> tuple[Any, int]:
    """Parse the block below a key: indented further, a list at the same indentation, or None."""
    if at < len(lines):
        is_deeper = lines[at].indent > indent
        is_sequence = lines[at].indent == indent and (lines[at].text + " ").startswith("- ")
        if is_deeper or is_sequence:
            return _parse_block(lines, at, depth + 1)
    return None, at


def _parse_sequence(lines: list[_Line], at: int, depth: int) -> tuple[list[Any], int]:
    items: list[Any] = []
    indent = lines[at].indent
    while at < len(lines) and lines[at].indent == indent and (lines[at].text + " ").startswith("- "):
        value, at = _parse_after_indicator(lines, at, depth)
        items.append(value)
    return items, at


def _parse_inline_value(text: str, line_number: int) -> Any:
    value, rest = _parse_flow_value(text, line_number, 0, "")
    if rest.strip():
        raise ValueError(f"line {line_number}: unexpected text after a value")
    return value


def _parse_flow_value(text: str, line_number: int, depth: int, terminators: str) -> tuple[Any, str]:
    """Return a value and the text after it; inside brackets, a plain value ends at one of `terminators`."""
    if depth > _MAX_DEPTH or text.startswith(_UNSUPPORTED_INDICATORS):
        raise ValueError(f"line {line_number}: unsupported YAML")
    if text.startswith("["):
        return _parse_flow_sequence(text[1:].lstrip(), line_number, depth)
    if text.startswith("{"):
        return _parse_flow_mapping(text[1:].lstrip(), line_number, depth)
    if quoted := _QUOTED.match(text):
        return _unquote(quoted[0], line_number), text[quoted.end() :].lstrip()
    size = next((index for index, letter in enumerate(text) if letter in terminators), len(text))
    plain = text[:size].strip()
    if not terminators and re.search(r":(?=\s|$)", plain):
        raise ValueError(f"line {line_number}: more than one key on a line")
    return _parse_plain_scalar(plain), text[size:]


def _parse_flow_sequence(text: str, line_number: int, depth: int) -> tuple[list[Any], str]:
    items: list[Any] = []
    while not text.startswith("]"):
        value, text = _parse_flow_value(text, line_number, depth + 1, ",]")
        items.append(value)
        text = _skip_separator(text, line_number, "]")
    return items, text[1:].lstrip()


def _parse_flow_mapping(text: str, line_number: int, depth: int) -> tuple[dict[str, Any], str]:
    mapping: dict[str, Any] = {}
    while not text.startswith("}"):
        key, text = _parse_flow_value(text, line_number, depth + 1, ":,}")
        if not text.startswith(":") or str(key) in mapping:
            raise ValueError(f"line {line_number}: braces must contain keys and values")
        mapping[str(key)], text = _parse_flow_value(text[1:].lstrip(), line_number, depth + 1, ",}")
        text = _skip_separator(text, line_number, "}")
    return mapping, text[1:].lstrip()


def _skip_separator(text: str, line_number: int, closing_bracket: str) -> str:
    if text.startswith(","):
        return text[1:].lstrip()
    if not text.startswith(closing_bracket):
        raise ValueError(f"line {line_number}: brackets must be closed on the same line")
    return text


def _unquote(text: str, line_number: int) -> str:
    if text.startswith("'"):
        return text[1:-1].replace("''", "'")
    simple = {"n": "\n", "t": "\t", '"': '"', "\\": "\\", "/": "/", "0": "\0"}

    def unescape(match: re.Match[str]) -> str:
        if match[1] not in simple:
            raise ValueError(f"line {line_number}: unsupported escape sequence")
        return simple[match[1]]

    return re.sub(r"\\(.)", unescape, text[1:-1])


def _parse_plain_scalar(text: str) -> Any:
    if text.lower() in _CONSTANTS:
        return _CONSTANTS[text.lower()]
    if _INTEGER.fullmatch(text):
        return int(text.replace("_", "")) if len(text) < 400 else text
    return FloatText(text.replace("_", "")) if _FLOAT.fullmatch(text) else text
