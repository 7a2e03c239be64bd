"""Hazards outside the policy text: its ledger and data files, and columns stored as another type."""

import glob
import os
import tomllib
from collections.abc import Iterator
from pathlib import Path

from discreet.policy.column_domains import DeclaredColumn
from discreet.policy.declarations import DeclaredTable
from discreet.policy.hazard_rules import Hazard, make_hazard
from discreet.policy.model import Policy
from discreet.policy.problems import placeholder_comment_lines, shorten, with_article

_MAX_FILES = 100
_MAX_POLICY_BYTES = 1_000_000  # larger files in the folder are skipped
_OTHERS_READ, _OTHERS_WRITE, _OTHERS_ENTER = 0o004, 0o002, 0o001


def find_file_hazards(policy: Policy, text: str = "") -> list[Hazard]:
    """Return the hazards of a policy's files, and of the comments in its own `text`.

    >>> policy = Policy.from_dict({
    ...     "data": {"name": "visits", "ledger": ":memory:"}, "budget": {"epsilon": 1},
    ...     "tables": {"visits": {"source": "none.csv", "unit": "who", "columns": {"who": {"type": "integer"}}}},
    ... })
    >>> [hazard.id for hazard in find_file_hazards(policy)]
    ['D022']
    """
    return [*_ledger_hazards(policy), *_source_hazards(policy), *_comment_hazards(text)]


def local_files(source: str) -> list[Path] | None:
    """Return the files of a source from `Policy.sources`; None if it is a name or a URL."""
    path = Path(source)
    if not path.is_absolute():
        return None
    if path.parent.is_file():
        return [path.parent]  # a table in a DuckDB file
    paths = [path] if path.exists() else map(Path, sorted(glob.glob(source, recursive=True)))  # noqa: PTH207
    return [file for file in paths if file.is_file()]


def _ledger_hazards(policy: Policy) -> Iterator[Hazard]:
    ledger = policy.ledger_location
    if not isinstance(ledger, Path) or policy.data.ledger == ":memory:":
        return
    for other, name in _policies_sharing_ledger(policy, ledger):
        yield make_hazard("D019", section="[data]", other=shorten(other.name), name=shorten(name))
    if ledger.parent.is_dir() and _is_reachable_by_others(ledger.parent):
        mode = ledger.parent.stat().st_mode
        if mode & _OTHERS_WRITE:
            yield make_hazard("D020", section="[data]", act="change and remove files in")
        elif mode & _OTHERS_READ:
            yield make_hazard("D020", section="[data]", act="list")


def _policies_sharing_ledger(policy: Policy, ledger: Path) -> Iterator[tuple[Path, str]]:
    """Yield the policies in the folder that use the same ledger for another data set, with its name."""
    for file in sorted(policy.base.glob("*.toml"))[:_MAX_FILES]:
        try:
            values = tomllib.loads(file.read_text()) if file.stat().st_size <= _MAX_POLICY_BYTES else {}
        except (OSError, ValueError, RecursionError):
            continue
        data = values.get("data")
        if not isinstance(data, dict) or not isinstance(values.get("tables"), dict):
            continue
        if policy.dataset and data.get("population") == policy.account:
            continue
        name, ledger_path = data.get("name"), file.parent / str(data.get("ledger", "ledger.sqlite"))
        is_same_ledger = os.path.abspath(ledger_path) == os.path.abspath(ledger)  # noqa: PTH100 - without ".."
        if is_same_ledger and isinstance(name, str) and name != policy.data.name:
            yield file, name


def _source_hazards(policy: Policy) -> Iterator[Hazard]:
    for name, source in policy.sources().items():
        files = local_files(source)
        if files is None:
            continue
        if not files:
            yield make_hazard("D022", name, source=source)
        elif not policy.tables[name].public and any(map(_is_readable_by_others, files[:_MAX_FILES])):
            yield make_hazard("D021", name)


def _is_readable_by_others(file: Path) -> bool:
    return bool(file.stat().st_mode & _OTHERS_READ) and _is_reachable_by_others(file)


def _is_reachable_by_others(path: Path) -> bool:
    """Whether other accounts can enter every folder above the path."""
    if os.name != "posix":
        return False  # file modes do not show it elsewhere
    return all(folder.stat().st_mode & _OTHERS_ENTER for folder in path.resolve().parents)


def _comment_hazards(text: str) -> Iterator[Hazard]:
    lines = placeholder_comment_lines(text)
    if lines:
        line_list = ", ".join(map(str, lines[:10])) + (", …" if len(lines) > 10 else "")
        yield make_hazard("D024", section="comments", lines=f"line{'s' if len(lines) > 1 else ''} {line_list}")


_NUMERIC_TYPES = ("integer", "real", "decimal")


def stored_type_hazard(table: str, column: str, stored: str, declared: str) -> Hazard | None:
    """Return the hazard of a column whose stored values may become NULL in the declared type; None if they cannot.

    >>> print(stored_type_hazard("visits", "day", "text", "date"))  # doctest: +ELLIPSIS
    D025 table visits, column day: it is stored as text but read as a date, so any value that cannot be converted ...
    >>> stored_type_hazard("visits", "cost", "integer", "real")
    """
    lost = _lost_values(stored, declared)
    if lost is None:
        return None
    return make_hazard("D025", table, column, stored=stored, read=with_article(declared), lost=lost)


_CSV_FORMS = {
    "integer": "a whole number such as 12",
    "real": "a number such as 12.5, with a point",
    "decimal": "a number such as 12.5, with a point",
    "boolean": "true, false, yes, no, 1 or 0",
    "date": "a date such as 2026-12-31",
    "timestamp": "a time such as 2026-12-31 18:30:00",
    "text": "a text",
}
_NOTABLE_SHARE = 0.01  # a few values, perhaps of one person, are not reported


def csv_value_hazard(table: DeclaredTable, column: DeclaredColumn, counts: tuple[int, int, int]) -> Hazard | None:
    """Return the hazard of a column of a CSV file, from its numbers of rows, of values, and of values that convert."""
    rows, values, converted = counts
    is_unit = column.name == table.unit_column
    whole = rows if is_unit else values
    lost = whole - converted
    if lost <= _NOTABLE_SHARE * whole:
        return None
    share = "more than half" if lost > whole / 2 else f"more than {_NOTABLE_SHARE * 100:.0f} %"
    return make_hazard(
        "D029" if is_unit else "D028", table.name, column.name, share=share, form=_CSV_FORMS[column.type]
    )


def _lost_values(stored: str, declared: str) -> str | None:
    if stored == "text" and declared != "text":
        return "any value that cannot be converted"
    if stored in _NUMERIC_TYPES and declared == "boolean":
        return "any number other than 0 and 1"
    if stored in ("real", "decimal") and declared == "integer":
        return "any number with a fractional part"
    return None
