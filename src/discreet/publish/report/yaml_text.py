"""Write plain data as YAML that every reader understands: mappings, lists, texts, numbers, booleans and null."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

_BARE_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_BLOCK_TEXT = re.compile(
    r"[^\s\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff][^\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff]*\S"
)
_RESERVED_KEYS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})


def write_yaml(data: Mapping[str, Any]) -> str:
    """Return a mapping as YAML.

    >>> print(write_yaml({"name": "wards: 2026", "delta": 1e-9, "authors": ["Ana"], "parts": {"a": None}}), end="")
    name: "wards: 2026"
    delta: 1.0e-09
    authors:
      - "Ana"
    parts:
      a: null
    """
    return "".join(f"{line}\n" for line in _mapping_lines(data, ""))


def _mapping_lines(data: Mapping[str, Any], indent: str) -> Iterator[str]:
    for key, value in data.items():
        name = key if _BARE_KEY.fullmatch(key) and key.lower() not in _RESERVED_KEYS else _quoted(key)
        yield from _entry_lines(f"{indent}{name}:", value, indent)


def _entry_lines(start: str, value: Any, indent: str) -> Iterator[str]:
    inner = f"{indent}  "
    if isinstance(value, Mapping) and value:
        yield start
        yield from _mapping_lines(value, inner)
    elif isinstance(value, list | tuple) and value:
        yield start
        for item in value:
            yield from _item_lines(item, inner)
    elif isinstance(value, str) and "\n" in value and _BLOCK_TEXT.fullmatch(value):
        yield f"{start} |-"
        yield from (f"{inner}{line}" if line else "" for line in value.split("\n"))
    else:
        yield f"{start} {_scalar(value)}"


def _item_lines(item: Any, indent: str) -> Iterator[str]:
    if isinstance(item, Mapping) and item:
        lines = list(_mapping_lines(item, f"{indent}  "))
        yield f"{indent}- {lines[0].removeprefix(f'{indent}  ')}"
        yield from lines[1:]
    else:
        yield f"{indent}- {_scalar(item)}"


def _scalar(value: Any) -> str:
    match value:
        case str():
            return _quoted(value)
        case None | bool() | int():
            return json.dumps(value)
        case float():
            return _float_text(value)
        case Mapping():
            return "{}"
        case list() | tuple():
            return "[]" if not value else f"[{', '.join(map(_scalar, value))}]"
    raise TypeError(f"value must be plain data, not {type(value).__name__}")


def _float_text(value: float) -> str:
    """Write a float with a point, without which some readers take an exponent for text."""
    text = json.dumps(value, allow_nan=False)
    mantissa, e, exponent = text.partition("e")
    return f"{mantissa}{'' if '.' in mantissa else '.0'}{e}{exponent}"


def _quoted(text: str) -> str:
    """Write a text in double quotes; what may not stand in YAML is escaped."""
    printable = json.dumps(text, ensure_ascii=False)
    return re.sub(r"[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]", lambda match: f"\\u{ord(match[0]):04x}", printable)
