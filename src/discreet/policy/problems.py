"""Everything that is wrong with a policy, gathered into one error: the place, the cause and the fix."""

import difflib
import re
from collections.abc import Iterable
from datetime import date, time
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from discreet.kernel.errors import PolicyError
from discreet.policy.marks import find_marks, mark_words
from discreet.policy.toml import KeyPath, key_lines

_MOST = 100  # lines in one error
_SECRET = re.compile(r"passw|passwd|pwd|secret|token|credential|api_?key", re.IGNORECASE)
_TYPES = {
    "bool_type": "true or false",
    "dict_type": "a section of keys",
    "model_type": "a section of keys",
    "list_type": "a list",
}


class Entry(BaseModel):
    """A part of the file: no unknown keys, no conversions, no change afterwards."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, arbitrary_types_allowed=True)


Model = TypeVar("Model", bound=Entry)


class Problems:
    """A growing list of what is wrong, each with its path of keys."""

    def __init__(self, name: str, text: str = "") -> None:
        self._name = name
        self._text = text
        self._found: list[tuple[KeyPath, str]] = []
        self._marked: set[KeyPath] = set()

    def note_marks(self, values: Any) -> None:
        """Note every value that a draft left to a human; nothing else is told about those."""
        for path in find_marks(values):
            self.add(path, mark_words(path))
            self._marked.add(path)

    def add(self, path: KeyPath, words: str) -> None:
        """Note one problem: a sentence for the cause, one for the fix."""
        if path not in self._marked:
            self._found.append((path, words))

    def read(self, model: type[Model], value: Any, path: KeyPath) -> Model | None:
        """Read one part of the file; None if something is wrong with it."""
        try:
            return model.model_validate(value)
        except ValidationError as error:
            for detail in error.errors(include_url=False):
                where = (*path, *detail["loc"])
                self.add(where, _words(model, where, detail))
            return None

    def stop_if_any(self) -> None:
        """Raise one PolicyError with all problems, in the order of the file."""
        if not self._found:
            return
        lines = key_lines(self._text)
        placed = sorted(((_line(path, lines), path, words) for path, words in self._found), key=lambda found: found[0])
        told = [self._sentence(*found) for found in placed[:_MOST]]
        if len(placed) > _MOST:
            told.append(f"{self._name}: and {len(placed) - _MOST} more.")
        raise PolicyError("\n".join(told))

    def _sentence(self, line: int, path: KeyPath, words: str) -> str:
        place = _place(path)
        return f"{self._name}{f', line {line}' if line else ''}: {f'{place}: ' if place else ''}{words}"


def shown(value: Any) -> str:
    """Show a value as it would be written in the file, at most 40 characters of it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return '"' + brief(value) + '"'
    if isinstance(value, list | tuple):
        return "a list"
    if isinstance(value, dict):
        return "a section of keys"
    return brief(value.isoformat() if isinstance(value, date | time) else str(value))


def brief(text: str) -> str:
    """Cut a text to 40 characters that fit on one line."""
    clean = "".join(letter if letter.isprintable() else "�" for letter in text[:41])
    return clean if len(clean) <= 40 else clean[:39] + "…"


def article(word: str) -> str:
    """Put a or an before a type's name."""
    return f"an {word}" if word == "integer" else f"a {word}"


def nearest(name: Any, known: Iterable[str]) -> str:
    """Return '; did you mean "x"?' if a known name is close, else a full stop."""
    names = {key.lower(): key for key in known}
    found = difflib.get_close_matches(str(name)[:100].lower(), names, n=1, cutoff=0.7)
    return f'; did you mean "{brief(names[found[0]])}"?' if found else "."


def _words(model: type[Entry], path: KeyPath, detail: Any) -> str:
    key, kind = brief(str(path[-1])) if path else "the file", detail["type"]
    if kind == "value_error":
        return str(detail["ctx"]["error"])
    if kind == "missing":
        return f"{key} is missing. {model.model_fields[key].description}"
    if kind == "extra_forbidden":
        return _unknown(model, key)
    if kind == "literal_error":
        known = re.findall(r"'([^']*)'", detail["ctx"]["expected"])
        choice = " or ".join(f'"{word}"' for word in known)
        return f"{key} must be {choice}, not {shown(detail['input'])}{nearest(detail['input'], known)}"
    if kind in _TYPES:
        return f"{key} must be {_TYPES[kind]}, not {shown(detail['input'])}."
    return f"{key}: {detail['msg']}."


def _unknown(model: type[Entry], key: str) -> str:
    if _SECRET.search(key):
        return f'unknown key "{key}". Credentials never belong in a policy: use the environment or a protected file.'
    known = [field.alias or name for name, field in model.model_fields.items()]
    near = nearest(key, known)
    return f'unknown key "{key}"{near}' + (f" Known keys: {', '.join(known)}." if near == "." else "")


def _line(path: KeyPath, lines: dict[KeyPath, int]) -> int:
    """Return the line of the path, or of the nearest section around it; 0 if none is known."""
    return next((lines[path[:end]] for end in range(len(path), 0, -1) if path[:end] in lines), 0)


def _place(path: KeyPath) -> str:
    match path:
        case ("tables", table, "columns", column, *_):
            return f"table {brief(str(table))}, column {brief(str(column))}"
        case ("tables", table, *_):
            return f"table {brief(str(table))}"
        case ("budget", "analysts", who, *_):
            return f"analyst {brief(str(who))}"
        case (("data" | "budget" | "tuning") as section, _, *_):
            return f"[{section}]"
    return ""
