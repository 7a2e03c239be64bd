"""Build a policy from data frames and the arguments of open(). Only the schemas are read, no row.

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

from discreet.answer.frames import FrameKind
from discreet.curator.frame_schema import InputFrame, inspect_frame
from discreet.kernel.errors import PolicyError
from discreet.kernel.loss import Budget
from discreet.policy import Policy
from discreet.policy.declarations import declared_name, find_by_name
from discreet.policy.file_hazards import stored_type_hazard
from discreet.policy.problems import did_you_mean, shorten, with_article

_UNIT_HINT = 'say who is protected: unit="patient" for a column that names them, unit="row" for single rows.'
_BUDGET_HINT = "budget: say how much may be learned in all, such as budget=1 or budget=(1, 1e-9); there is no default."
_COLUMNS_HINT = 'list the columns to ask about, such as {"cost": (0, 500), "ward": ["A", "B"]}; others do not exist.'
_COLUMN_HINT = (
    "Write (low, high), a list of its values, its type, or a dict as in a policy. They are never taken from the rows."
)
_ORDERED_TYPES = ("integer", "real", "decimal", "date", "timestamp")


@dataclass(frozen=True, kw_only=True)
class OpenArguments:
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
class FramePolicy:
    """The policy that was made, the rows of its tables, the kind of the first of them, and what to look at again."""

    policy: Policy
    rows: Mapping[str, object]
    frame_kind: FrameKind
    type_warnings: tuple[str, ...] = ()


def policy_from_frames(data: Any, table: str, arguments: OpenArguments) -> FramePolicy:
    """Make the policy of one frame, called `table`, or of a dict of frames; PolicyError tells what is wrong.

    >>> import pyarrow as pa
    >>> words = {"unit": "patient", "columns": {"ward": ["A", "B"]}, "groups": 1, "rows": 1, "public": None}
    >>> rows = pa.table({"patient": [1], "ward": ["A"]})
    >>> arguments = OpenArguments(budget="1/2", ledger=None, name=None, version=None, **words)
    >>> policy_from_frames(rows, "visits", arguments).policy.tables["visits"].unit
    Column(name='patient')
    """
    single = not isinstance(data, Mapping)
    private = _inspect_frames({table: data} if single else data, "table")
    public = _inspect_frames(arguments.public or {}, "public")
    for name in public:
        if declared_name(private, name):
            raise PolicyError(f"public: there is also a private table {shorten(name)}. Rename one of them.")
    if not private:
        raise PolicyError("frame: there is no table that protects anybody. Give at least one.")
    frames = {**private, **public}
    allowed_tables = {"unit": private, "groups": private, "rows": private, "columns": frames}
    table_arguments = {
        argument: _argument_by_table(argument, getattr(arguments, argument), allowed_tables[argument], private, single)
        for argument in allowed_tables
    }
    tables = {name: _private_table(name, frame, table_arguments) for name, frame in private.items()}
    tables |= {name: _public_table(name, frame, table_arguments["columns"]) for name, frame in public.items()}
    values = {"data": _data_section(arguments, private), "budget": _budget_section(arguments.budget), "tables": tables}
    rows = {name: frame.rows for name, frame in frames.items()}
    policy = Policy.from_dict(values, name="open")
    return FramePolicy(policy, rows, next(iter(private.values())).frame_kind, tuple(_type_warnings(policy, frames)))


def _type_warnings(policy: Policy, frames: Mapping[str, InputFrame]) -> Iterator[str]:
    """Tell of columns that are declared as another type than they have, and may lose values by that."""
    for table, frame in frames.items():
        for column in policy.tables[table].columns.values():
            stored = find_by_name(frame.columns, column.name)
            may_be_integers = (
                frame.frame_kind is FrameKind.PANDAS and stored == "real"
            )  # whole numbers, too, where some are missing
            if stored is None or may_be_integers or column.name.lower() in map(str.lower, frame.object_columns):
                continue
            if hazard := stored_type_hazard(table, column.name, stored, column.type):
                yield f"{hazard.location}: {hazard.message} {hazard.hint}"


def _inspect_frames(tables: Any, argument: str) -> dict[str, InputFrame]:
    if not isinstance(tables, Mapping):
        message = f"{argument}: give a dict of tables by their names, not {type(tables).__name__}."
        raise PolicyError(message)
    for name in tables:
        if not isinstance(name, str):
            raise PolicyError(f"{argument}: {shorten(repr(name))} is no name for a table. Use a text.")
    return {name: inspect_frame(name, rows) for name, rows in tables.items()}


def _argument_by_table(
    argument: str, value: Any, allowed_tables: Mapping[str, InputFrame], private: Mapping[str, InputFrame], single: bool
) -> dict[str, Any]:
    """Return what an argument says of each table: of the only one, of each by its name, or of all private ones."""
    if value is None:
        return {}
    if single or (not isinstance(value, Mapping) and argument != "columns"):
        return dict.fromkeys(private, value)
    if not isinstance(value, Mapping):
        raise PolicyError(f"columns: give a dict by the names of the tables. For each, {_COLUMNS_HINT}")
    for name in value:
        if declared_name(allowed_tables, str(name)) is None:
            raise PolicyError(
                f"{argument}: there is no table {shorten(repr(name))} that it fits{did_you_mean(name, allowed_tables)}"
            )
    return {str(declared_name(allowed_tables, name)): entry for name, entry in value.items()}


def _data_section(arguments: OpenArguments, private: Mapping[str, InputFrame]) -> dict[str, Any]:
    given = {
        "name": arguments.name,
        "version": arguments.version,
        "ledger": fspath(arguments.ledger) if isinstance(arguments.ledger, PathLike) else arguments.ledger,
    }
    defaults = {"name": next(iter(private)) if len(private) == 1 else "data", "ledger": ":memory:"}
    return defaults | {key: value for key, value in given.items() if value is not None}


def _budget_section(budget: Any) -> dict[str, Any]:
    match budget:
        case Budget() if budget.delta:
            return {"epsilon": budget.epsilon, "delta": budget.delta, "discover": budget.discover / budget.delta}
        case Budget():
            return {"epsilon": budget.epsilon}
        case (epsilon, delta):
            return {"epsilon": epsilon, "delta": delta}
        case None | [*_]:
            raise PolicyError(_BUDGET_HINT)
    return {"epsilon": budget}


def _private_table(table: str, frame: InputFrame, table_arguments: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    unit = table_arguments["unit"].get(table)
    if unit is None:
        raise PolicyError(
            f"unit: table {shorten(table)}: {_UNIT_HINT} Tables that protect nobody are given in public=…."
        )
    if table not in table_arguments["columns"]:
        raise PolicyError(f"columns: table {shorten(table)}: {_COLUMNS_HINT}")
    columns = _column_entries(table, frame, table_arguments["columns"][table])
    if isinstance(unit, str) and unit != "row" and declared_name(columns, unit) is None:
        columns = {unit: {"type": _column_type(table, unit, frame, "unit")}, **columns}
    bounds = {
        key: table_arguments[key][table] for key in ("groups", "rows") if table_arguments[key].get(table) is not None
    }
    return {"source": "frame", "unit": dict(unit) if isinstance(unit, Mapping) else unit, "columns": columns, **bounds}


def _public_table(table: str, frame: InputFrame, columns: Mapping[str, Any]) -> dict[str, Any]:
    column_section = (
        {"columns": _column_entries(table, frame, columns[table])} if columns.get(table) is not None else {}
    )
    return {"source": "frame", "public": True, **column_section}


def _column_entries(table: str, frame: InputFrame, columns: Any) -> dict[str, Any]:
    if not isinstance(columns, Mapping):
        raise PolicyError(f"columns: table {shorten(table)}: {_COLUMNS_HINT}")
    for name in columns:
        if not isinstance(name, str):
            raise PolicyError(
                f"columns: table {shorten(table)}: {shorten(repr(name))} is no name for a column. Use a text."
            )
    return {name: _column_entry(table, name, entry, frame) for name, entry in columns.items()}


def _column_entry(table: str, name: str, entry: Any, frame: InputFrame) -> dict[str, Any]:
    """Return a column's entry as a policy has it."""
    match entry:
        case str():
            return {"type": entry}
        case {"type": _}:
            return {key: _policy_value(value) for key, value in entry.items()}
        case Mapping():
            return {
                "type": _column_type(table, name, frame, "columns"),
                **{key: _policy_value(entry[key]) for key in entry},
            }
        case tuple():
            kind = _column_type(table, name, frame, "columns")
            if kind in _ORDERED_TYPES:
                return {"type": kind, "between": _policy_value(entry)}
            cause = (
                f'a range does not fit {with_article(kind)} column. Name another type, {{"type": …, "between": […]}}'
            )
        case list():
            kind = _column_type(table, name, frame, "columns")
            if len(entry) != 2 or kind not in _ORDERED_TYPES:
                return {"type": kind, "in": _policy_value(entry)}
            cause = 'two values in a list may be keys or a range. Write (low, high), or {"in": [one, other]}'
        case _:
            cause = f"it is described by {type(entry).__name__}. {_COLUMN_HINT.removesuffix('.')}"
    raise PolicyError(f"columns: table {shorten(table)}, column {shorten(name)}: {cause}.")


def _column_type(table: str, name: str, frame: InputFrame, argument: str) -> str:
    """Return a column's type by its schema."""
    where = f"{argument}: table {shorten(table)}"
    if declared_name(frame.columns, name) is None:
        raise PolicyError(f'{where}: the frame has no column "{shorten(name)}"{did_you_mean(name, frame.columns)}')
    type_name = find_by_name(frame.columns, name)
    if type_name is None:
        raise PolicyError(
            f'{where}, column {shorten(name)}: its schema does not say what it holds. Name it in columns: {{"type": …}}.'
        )
    return type_name


def _policy_value(value: Any) -> Any:
    """Return a value as a policy's reader knows it."""
    match value:
        case list() | tuple():
            return [_policy_value(item) for item in value]
        case np.generic():
            return value.item()
        case Decimal() if value.is_finite():
            return Fraction(value)
    return value
