"""Hazards around a policy: where its ledger and its sources lie on this machine. No row is read."""

import glob
import os
import tomllib
from collections.abc import Iterator
from pathlib import Path

from discreet.policy.marks import commented_marks
from discreet.policy.policy import Policy
from discreet.policy.problems import brief
from discreet.policy.rules import Hazard, hazard

_MOST_FILES = 100
_LARGEST = 1_000_000  # bytes of another policy in the folder
_OTHERS_READ, _OTHERS_WRITE, _OTHERS_ENTER = 0o004, 0o002, 0o001


def place_hazards(policy: Policy, text: str = "") -> list[Hazard]:
    """Return what to ask about a policy's files; `text` is that of the policy itself, whose comments may have marks.

    >>> policy = Policy.of({
    ...     "data": {"name": "visits", "ledger": ":memory:"}, "budget": {"epsilon": 1},
    ...     "tables": {"visits": {"source": "none.csv", "unit": "who", "columns": {"who": {"type": "integer"}}}},
    ... })
    >>> [hazard.id for hazard in place_hazards(policy)]
    ['D022']
    """
    return [*_of_ledger(policy), *_of_sources(policy), *_of_comments(text)]


def local_files(source: str) -> list[Path] | None:
    """Return the files of a source as `Policy.sources` tells it; None if it is a name or a URL."""
    path = Path(source)
    if not path.is_absolute():
        return None
    if path.parent.is_file():
        return [path.parent]  # a table in a DuckDB file
    found = [path] if path.exists() else map(Path, sorted(glob.glob(source, recursive=True)))  # noqa: PTH207
    return [file for file in found if file.is_file()]


def _of_ledger(policy: Policy) -> Iterator[Hazard]:
    ledger = policy.ledger
    if not isinstance(ledger, Path) or policy.data.ledger == ":memory:":
        return
    for other, name in _neighbours(policy, ledger):
        yield hazard("D019", section="[data]", other=brief(other.name), name=brief(name))
    if ledger.parent.is_dir() and _reachable(ledger.parent):
        mode = ledger.parent.stat().st_mode
        if mode & _OTHERS_WRITE:
            yield hazard("D020", section="[data]", act="change and remove files in")
        elif mode & _OTHERS_READ:
            yield hazard("D020", section="[data]", act="look into")


def _neighbours(policy: Policy, ledger: Path) -> Iterator[tuple[Path, str]]:
    """Find policies in the folder that keep another data set in the same ledger."""
    for file in sorted(policy.base.glob("*.toml"))[:_MOST_FILES]:
        try:
            values = tomllib.loads(file.read_text()) if file.stat().st_size <= _LARGEST else {}
        except (OSError, ValueError, RecursionError):
            continue
        data = values.get("data")
        if not isinstance(data, dict) or not isinstance(values.get("tables"), dict):
            continue
        name, place = data.get("name"), file.parent / str(data.get("ledger", "ledger.sqlite"))
        same = os.path.abspath(place) == os.path.abspath(ledger)  # noqa: PTH100 - without ".."
        if same and isinstance(name, str) and name != policy.data.name:
            yield file, name


def _of_sources(policy: Policy) -> Iterator[Hazard]:
    for name, source in policy.sources().items():
        files = local_files(source)
        if files is None:
            continue
        if not files:
            yield hazard("D022", name, source=source)
        elif not policy.tables[name].public and any(map(_readable, files[:_MOST_FILES])):
            yield hazard("D021", name)


def _readable(file: Path) -> bool:
    return bool(file.stat().st_mode & _OTHERS_READ) and _reachable(file)


def _reachable(path: Path) -> bool:
    """Whether other accounts may enter every folder above; on other systems than POSIX modes do not tell."""
    if os.name != "posix":
        return False
    return all(folder.stat().st_mode & _OTHERS_ENTER for folder in path.resolve().parents)


def _of_comments(text: str) -> Iterator[Hazard]:
    lines = commented_marks(text)
    if lines:
        shown = ", ".join(map(str, lines[:10])) + (", …" if len(lines) > 10 else "")
        yield hazard("D024", section="comments", lines=f"line{'s' if len(lines) > 1 else ''} {shown}")
