"""The functions whose mutants were all tried: tests/slow/mutation_record.json, which tools/mutate.py writes.

A function is settled if each of its mutants was noticed by a test or is listed as a survivor. Its digest is that of the
keys of its mutants, each with whether it is listed. A key covers the code of the function and what is changed in it,
so the digest changes with the code, with what the tool changes, and with the list.

It does not cover the tests, nor the functions that are called. They change in nearly every commit, and with them
hardly anything would ever be settled. So the record says that the tests of some earlier day noticed a mutant;
`make slow` tries a random sample of all mutants again, whatever is recorded.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from mutate_edits import Mutant

PATH = Path(__file__).resolve().parent.parent / "tests" / "slow" / "mutation_record.json"
_OUTSIDE = "-"  # of functions


@dataclass(frozen=True)
class Settled:
    """A function whose mutants were all tried."""

    digest: str
    noticed: int
    listed: int


Record = dict[str, dict[str, Settled]]  # by module and function


def read() -> Record:
    """Return the record."""
    stored = json.loads(PATH.read_text(encoding="utf-8")) if PATH.exists() else {}
    return {module: {name: Settled(*entry) for name, entry in found.items()} for module, found in stored.items()}


def write(record: Record) -> None:
    """Write the record, one function a line."""
    PATH.write_text(text_of(record), encoding="utf-8")


def text_of(record: Record) -> str:
    """Return the file's text."""
    modules = []
    for module, found in sorted(record.items()):
        lines = [
            f"  {json.dumps(name)}: {json.dumps([each.digest, each.noticed, each.listed])}"
            for name, each in sorted(found.items())
        ]
        modules.append(f" {json.dumps(module)}: {{\n" + ",\n".join(lines) + "\n }")
    return "{\n" + ",\n".join(modules) + "\n}\n"


def by_function(mutants: Iterable[Mutant]) -> dict[tuple[str, str], list[Mutant]]:
    """Return the mutants of each function that is not in another one, by module and name."""
    found: dict[tuple[str, str], list[Mutant]] = {}
    for mutant in mutants:
        name = mutant.place[0] if mutant.place else _OUTSIDE
        found.setdefault((mutant.module, name), []).append(mutant)
    return found


def digest_of(mutants: Iterable[Mutant], lists: Callable[[Mutant], bool]) -> str:
    """Return the digest of a function with these mutants."""
    text = "\n".join(f"{mutant.key} {lists(mutant)}" for mutant in mutants)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def current(record: Record, mutants: Iterable[Mutant], lists: Callable[[Mutant], bool]) -> dict[str, Settled]:
    """Return the entries of functions that have not changed since, by the key of each of their mutants."""
    found = {}
    for (module, name), group in by_function(mutants).items():
        entry = record.get(module, {}).get(name)
        if entry and entry.digest == digest_of(group, lists):
            found |= dict.fromkeys((mutant.key for mutant in group), entry)
    return found


def updated(
    record: Record, mutants: Iterable[Mutant], results: Mapping[str, str | None], lists: Callable[[Mutant], bool]
) -> Record:
    """Return the record with the functions that results settle, and without those that changed or have a survivor."""
    found: Record = {}
    for (module, name), group in by_function(mutants).items():
        tried = [mutant for mutant in group if mutant.key in results]
        survived = [mutant for mutant in tried if results[mutant.key] is None]
        if not all(map(lists, survived)):
            continue
        entry = record.get(module, {}).get(name)
        digest = digest_of(group, lists)
        if len(tried) == len(group):
            entry = Settled(digest, len(group) - len(survived), len(survived))
        if entry and entry.digest == digest:
            found.setdefault(module, {})[name] = entry
    return found
