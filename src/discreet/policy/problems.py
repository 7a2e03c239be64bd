"""The wording of policy errors: all mistakes and unfilled values, with line, cause and hint, in one PolicyError."""

import difflib
import re
from collections.abc import Iterable, Iterator
from datetime import date, time
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from discreet.html_page import make_printable
from discreet.kernel.errors import PolicyError
from discreet.policy.toml import KeyPath, key_lines

PLACEHOLDER = "FILL IN"

_HINTS = {
    "name": "Name the data set; the ledger records it under this name.",
    "source": 'Give the location of the data, such as "visits.parquet".',
    "unit": (
        "Name the column that identifies the people to protect, write { through, on } if rows belong to rows of "
        'another table, or "row" for single rows; in a public table, write public = true instead of unit, groups '
        "and rows."
    ),
    "public": "Write true only if the whole table could be published; otherwise write unit instead.",
    "epsilon": "Set the total privacy budget, such as 1.0; there is no default.",
    "groups": "Set the maximum number of groups that one unit contributes to, such as 3.",
    "rows": "Set the maximum number of rows that one unit contributes to a group, such as 10.",
    "type": "Write integer, real, decimal, boolean, text, date or timestamp.",
    "between": "Write the lowest and highest value from the meaning of the column, never from the data; or remove it.",
    "in": "List the possible values from the meaning of the column, never from the data; or remove it.",
}
_PLACEHOLDER_COMMENT = re.compile(rf"^[^\n]*#[^\n]*\b{PLACEHOLDER}\b", re.MULTILINE)


def find_placeholders(values: Any, path: KeyPath = ()) -> Iterator[KeyPath]:
    """Yield the path of each value still to be filled in; a list counts as one value."""
    if isinstance(values, dict):
        for key, value in values.items():
            yield from find_placeholders(value, (*path, key))
    elif isinstance(values, list | tuple):
        nested = [value for value in values if isinstance(value, dict | list | tuple)]
        texts = [value for value in values if type(value) is str]
        if any(text.startswith(PLACEHOLDER) for text in texts) or any(
            True for value in nested for _ in find_placeholders(value)
        ):
            yield path
    elif isinstance(values, str) and values.startswith(PLACEHOLDER):
        yield path


def placeholder_message(path: KeyPath) -> str:
    """Return the message for a value still to be filled in, with a hint."""
    key = str(path[-1]) if path else "the file"
    return f"{key} is still to be filled in. {_HINTS.get(key, 'See the comment beside it.')}"


def placeholder_comment_lines(text: str) -> list[int]:
    """Return the numbers of the lines whose comment still asks for a decision."""
    return [text.count("\n", 0, match.start()) + 1 for match in _PLACEHOLDER_COMMENT.finditer(text)]


_MAX_PROBLEMS = 100  # lines in one error
_SECRET_KEY = re.compile(r"passw|passwd|pwd|secret|token|credential|api_?key", re.IGNORECASE)
_EXPECTED_TYPES = {
    "bool_type": "true or false",
    "dict_type": "a section of keys",
    "model_type": "a section of keys",
    "list_type": "a list",
}


class Entry(BaseModel):
    """A section of the file: immutable, without unknown keys or conversions."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, arbitrary_types_allowed=True)


Model = TypeVar("Model", bound=Entry)


class Problems:
    """The mistakes found so far, each with its path of keys."""

    def __init__(self, name: str, text: str = "") -> None:
        self._file_name = name
        self._text = text
        self._problems: list[tuple[KeyPath, str]] = []
        self._placeholder_paths: set[KeyPath] = set()

    def add_placeholders(self, values: Any) -> None:
        """Add a problem for every value still to be filled in; other problems of these values are dropped."""
        for path in find_placeholders(values):
            self.add(path, placeholder_message(path))
            self._placeholder_paths.add(path)

    def add(self, path: KeyPath, message: str) -> None:
        """Add a problem: one sentence for the cause, one for the fix."""
        if path not in self._placeholder_paths:
            self._problems.append((path, message))

    def parse_entry(self, model: type[Model], value: Any, path: KeyPath) -> Model | None:
        """Parse one section; if it is invalid, add its problems and return None."""
        try:
            return model.model_validate(value)
        except ValidationError as error:
            for detail in error.errors(include_url=False):
                where = (*path, *detail["loc"])
                self.add(where, _error_message(model, where, detail))
            return None

    def raise_if_any(self) -> None:
        """Raise one PolicyError with all problems, in the order of the file."""
        if not self._problems:
            return
        lines = key_lines(self._text)
        located = sorted(
            ((_line_of_path(path, lines), path, message) for path, message in self._problems),
            key=lambda problem: problem[0],
        )
        messages = [self._format_problem(*problem) for problem in located[:_MAX_PROBLEMS]]
        if len(located) > _MAX_PROBLEMS:
            messages.append(f"{self._file_name}: and {len(located) - _MAX_PROBLEMS} more.")
        raise PolicyError("\n".join(messages))

    def _format_problem(self, line: int, path: KeyPath, message: str) -> str:
        location = _path_text(path)
        return f"{self._file_name}{f', line {line}' if line else ''}: {f'{location}: ' if location else ''}{message}"


def format_value(value: Any) -> str:
    """Format a value as in the file, shortened to 40 characters."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return '"' + shorten(value) + '"'
    if isinstance(value, list | tuple):
        return "a list"
    if isinstance(value, dict):
        return "a section of keys"
    return shorten(value.isoformat() if isinstance(value, date | time) else str(value))


def shorten(text: str) -> str:
    """Shorten a text to 40 printable characters."""
    clean = make_printable(text[:41])
    return clean if len(clean) <= 40 else clean[:39] + "…"


def with_article(word: str) -> str:
    """Put "a" or "an" before the name of a type."""
    return f"an {word}" if word == "integer" else f"a {word}"


def did_you_mean(name: Any, known: Iterable[str]) -> str:
    """Return '; did you mean "x"?' if a known name is close, else a full stop."""
    names = {key.lower(): key for key in known}
    matches = difflib.get_close_matches(str(name)[:100].lower(), names, n=1, cutoff=0.7)
    return f'; did you mean "{shorten(names[matches[0]])}"?' if matches else "."


def _error_message(model: type[Entry], path: KeyPath, detail: Any) -> str:
    key, kind = shorten(str(path[-1])) if path else "the file", detail["type"]
    if kind == "value_error":
        return str(detail["ctx"]["error"])
    if kind == "missing":
        return f"{key} is missing. {model.model_fields[key].description}"
    if kind == "extra_forbidden":
        return _unknown_key_message(model, key)
    if kind == "literal_error":
        known = re.findall(r"'([^']*)'", detail["ctx"]["expected"])
        choices = ", ".join(f'"{word}"' for word in known)
        near = did_you_mean(detail["input"], known)
        return f"{key} must be one of {choices}, not {format_value(detail['input'])}{near}"
    if kind in _EXPECTED_TYPES:
        return f"{key} must be {_EXPECTED_TYPES[kind]}, not {format_value(detail['input'])}."
    return f"{key}: {detail['msg']}."


def _unknown_key_message(model: type[Entry], key: str) -> str:
    if _SECRET_KEY.search(key):
        return f'unknown key "{key}". Credentials do not belong in a policy: use the environment or a protected file.'
    known = [field.alias or name for name, field in model.model_fields.items()]
    near = did_you_mean(key, known)
    return f'unknown key "{key}"{near}' + (f" Known keys: {', '.join(known)}." if near == "." else "")


def _line_of_path(path: KeyPath, lines: dict[KeyPath, int]) -> int:
    """Return the line of the path, or of the nearest enclosing section; 0 if unknown."""
    return next((lines[path[:end]] for end in range(len(path), 0, -1) if path[:end] in lines), 0)


def _path_text(path: KeyPath) -> str:
    match path:
        case ("tables", table, "columns", column, *_):
            return f"table {shorten(str(table))}, column {shorten(str(column))}"
        case ("tables", table, *_):
            return f"table {shorten(str(table))}"
        case ("budget", "analysts", who, *_):
            return f"analyst {shorten(str(who))}"
        case (("data" | "budget" | "tuning" | "release" | "server") as section, _, *_):
            return f"[{section}]"
    return ""
