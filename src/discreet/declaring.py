"""From tables in memory, and what their owner says of them in Python, to a policy.

Only names and types are taken from a table, and only from its schema. Who is protected, ranges and keys must be said:
found in the rows, they would tell of the rows. The policy is then read and checked like one from a file.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from os import PathLike, fspath
from typing import Any

import numpy as np

from discreet.answer_frames import FrameKind
from discreet.frames_in import Frame, frame_of
from discreet.kernel.errors import PolicyError
from discreet.kernel.loss import Budget
from discreet.policy import Policy
from discreet.policy.problems import article, brief, nearest
from discreet.policy.stored import stored_hazard
from discreet.policy.tables import find, spelled

_WHO = 'say who is protected: unit="patient" for a column that names them, unit="row" for single rows.'
_BUDGET = "budget: say how much may be learned in all, such as budget=1 or budget=(1, 1e-9); there is no default."
_COLUMNS = 'list the columns to ask about, such as {"cost": (0, 500), "ward": ["A", "B"]}; others do not exist.'
_SAY = (
    "Write (low, high), a list of its values, its type, or a dict as in a policy. They are never taken from the rows."
)
_ORDERED = ("integer", "real", "decimal", "date", "timestamp")


@dataclass(frozen=True, kw_only=True)
class Said:
    """What is said beside the tables, as it was given."""

    unit: Any
    budget: Any
    columns: Any
    groups: Any
    rows: Any
    public: Any
    ledger: Any
    name: Any
    version: Any


@dataclass(frozen=True)
class Declared:
    """The policy that was made, the rows of its tables, the kind of the first of them, and what to look at again."""

    policy: Policy
    rows: Mapping[str, object]
    kind: FrameKind
    doubts: tuple[str, ...] = ()


def declare(given: Any, table: str, said: Said) -> Declared:
    """Make the policy of one frame, called `table`, or of a dict of frames; PolicyError tells what is wrong.

    >>> import pyarrow as pa
    >>> words = {"unit": "patient", "columns": {"ward": ["A", "B"]}, "groups": 1, "rows": 1, "public": None}
    >>> rows = pa.table({"patient": [1], "ward": ["A"]})
    >>> said = Said(budget="1/2", ledger=None, name=None, version=None, **words)
    >>> declare(rows, "visits", said).policy.tables["visits"].unit
    Column(name='patient')
    """
    alone = not isinstance(given, Mapping)
    private = _frames({table: given} if alone else given, "table")
    public = _frames(said.public or {}, "public")
    for name in public:
        if spelled(private, name):
            raise PolicyError(f"public: there is also a private table {brief(name)}. Rename one of them.")
    if not private:
        raise PolicyError("frame: there is no table that protects anybody. Give at least one.")
    frames = {**private, **public}
    known = {"unit": private, "groups": private, "rows": private, "columns": frames}
    words = {word: _by_table(word, getattr(said, word), known[word], private, alone) for word in known}
    tables = {name: _private(name, frame, words) for name, frame in private.items()}
    tables |= {name: _public(name, frame, words["columns"]) for name, frame in public.items()}
    values = {"data": _data(said, private), "budget": _budget(said.budget), "tables": tables}
    rows = {name: frame.rows for name, frame in frames.items()}
    policy = Policy.of(values, name="open")
    return Declared(policy, rows, next(iter(private.values())).kind, tuple(_doubts(policy, frames)))


def _doubts(policy: Policy, frames: Mapping[str, Frame]) -> Iterator[str]:
    """Tell of columns that are declared as another type than they have, and may lose values by that."""
    for table, frame in frames.items():
        for column in policy.tables[table].columns.values():
            stored = find(frame.columns, column.name)
            reals = frame.kind is FrameKind.PANDAS and stored == "real"  # whole numbers, too, where some are missing
            if stored is None or reals or column.name.lower() in map(str.lower, frame.objects):
                continue
            if found := stored_hazard(table, column.name, stored, column.type):
                yield f"{found.place}: {found.message} {found.fix}"


def _frames(given: Any, argument: str) -> dict[str, Frame]:
    if not isinstance(given, Mapping):
        words = f"{argument}: give a dict of tables by their names, not {type(given).__name__}."
        raise PolicyError(words)
    for name in given:
        if not isinstance(name, str):
            raise PolicyError(f"{argument}: {brief(repr(name))} is no name for a table. Use a text.")
    return {name: frame_of(name, rows) for name, rows in given.items()}


def _by_table(
    word: str, value: Any, known: Mapping[str, Frame], private: Mapping[str, Frame], alone: bool
) -> dict[str, Any]:
    """Return what an argument says of each table: of the only one, of each by its name, or of all private ones."""
    if value is None:
        return {}
    if alone or (not isinstance(value, Mapping) and word != "columns"):
        return dict.fromkeys(private, value)
    if not isinstance(value, Mapping):
        raise PolicyError(f"columns: give a dict by the names of the tables. For each, {_COLUMNS}")
    for name in value:
        if spelled(known, str(name)) is None:
            raise PolicyError(f"{word}: there is no table {brief(repr(name))} that it fits{nearest(name, known)}")
    return {str(spelled(known, name)): entry for name, entry in value.items()}


def _data(said: Said, private: Mapping[str, Frame]) -> dict[str, Any]:
    given = {
        "name": said.name,
        "version": said.version,
        "ledger": fspath(said.ledger) if isinstance(said.ledger, PathLike) else said.ledger,
    }
    usual = {"name": next(iter(private)) if len(private) == 1 else "data", "ledger": ":memory:"}
    return usual | {word: value for word, value in given.items() if value is not None}


def _budget(given: Any) -> dict[str, Any]:
    match given:
        case Budget() if given.delta:
            return {"epsilon": given.epsilon, "delta": given.delta, "discover": given.discover / given.delta}
        case Budget():
            return {"epsilon": given.epsilon}
        case (epsilon, delta):
            return {"epsilon": epsilon, "delta": delta}
        case None | [*_]:
            raise PolicyError(_BUDGET)
    return {"epsilon": given}


def _private(table: str, frame: Frame, words: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    unit = words["unit"].get(table)
    if unit is None:
        raise PolicyError(f"unit: table {brief(table)}: {_WHO} Tables that protect nobody are given in public=….")
    if table not in words["columns"]:
        raise PolicyError(f"columns: table {brief(table)}: {_COLUMNS}")
    columns = _columns(table, frame, words["columns"][table])
    if isinstance(unit, str) and unit != "row" and spelled(columns, unit) is None:
        columns = {unit: {"type": _type(table, unit, frame, "unit")}, **columns}
    limits = {word: words[word][table] for word in ("groups", "rows") if words[word].get(table) is not None}
    return {"source": "frame", "unit": dict(unit) if isinstance(unit, Mapping) else unit, "columns": columns, **limits}


def _public(table: str, frame: Frame, columns: Mapping[str, Any]) -> dict[str, Any]:
    listed = {"columns": _columns(table, frame, columns[table])} if columns.get(table) is not None else {}
    return {"source": "frame", "public": True, **listed}


def _columns(table: str, frame: Frame, given: Any) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        raise PolicyError(f"columns: table {brief(table)}: {_COLUMNS}")
    for name in given:
        if not isinstance(name, str):
            raise PolicyError(
                f"columns: table {brief(table)}: {brief(repr(name))} is no name for a column. Use a text."
            )
    return {name: _column(table, name, entry, frame) for name, entry in given.items()}


def _column(table: str, name: str, entry: Any, frame: Frame) -> dict[str, Any]:
    """Return a column's entry as a policy has it."""
    match entry:
        case str():
            return {"type": entry}
        case {"type": _}:
            return {key: _plain(value) for key, value in entry.items()}
        case Mapping():
            return {"type": _type(table, name, frame, "columns"), **{key: _plain(entry[key]) for key in entry}}
        case tuple():
            kind = _type(table, name, frame, "columns")
            if kind in _ORDERED:
                return {"type": kind, "between": _plain(entry)}
            cause = f'a range does not fit {article(kind)} column. Name another type, {{"type": …, "between": […]}}'
        case list():
            kind = _type(table, name, frame, "columns")
            if len(entry) != 2 or kind not in _ORDERED:
                return {"type": kind, "in": _plain(entry)}
            cause = 'two values in a list may be keys or a range. Write (low, high), or {"in": [one, other]}'
        case _:
            cause = f"it is described by {type(entry).__name__}. {_SAY.removesuffix('.')}"
    raise PolicyError(f"columns: table {brief(table)}, column {brief(name)}: {cause}.")


def _type(table: str, name: str, frame: Frame, argument: str) -> str:
    """Return a column's type by its schema."""
    where = f"{argument}: table {brief(table)}"
    if spelled(frame.columns, name) is None:
        raise PolicyError(f'{where}: the frame has no column "{brief(name)}"{nearest(name, frame.columns)}')
    found = find(frame.columns, name)
    if found is None:
        raise PolicyError(
            f'{where}, column {brief(name)}: its schema does not say what it holds. Name it in columns: {{"type": …}}.'
        )
    return found


def _plain(value: Any) -> Any:
    """Return a value as a policy's reader knows it."""
    match value:
        case list() | tuple():
            return [_plain(each) for each in value]
        case np.generic():
            return value.item()
        case Decimal() if value.is_finite():
            return Fraction(value)
    return value
