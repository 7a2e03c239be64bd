"""Build a policy from data frames and the arguments of open().

Only column names and types are taken from a frame, and only from its schema. The privacy unit, ranges and keys must be
declared, because inferring them from the rows would disclose information about the rows. The policy is then checked
like one from a file.
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

_UNIT_HINT = 'declare the privacy unit: unit="patient" for the column that identifies it, unit="row" for single rows.'
_BUDGET_HINT = "budget: there is no default. Declare the total, for example budget=1 or budget=(1, 1e-9)."
_COLUMNS_HINT = (
    'declare the columns to query, for example {"cost": (0, 500), "ward": ["A", "B"]}; others cannot be queried.'
)
_COLUMN_HINT = (
    "Write (low, high), a list of values, a type, or a dict as in a policy. They are never taken from the rows."
)
_ORDERED_TYPES = ("integer", "real", "decimal", "date", "timestamp")


@dataclass(frozen=True, kw_only=True)
class OpenArguments:
    """The arguments of open() that replace a policy, as they were passed."""

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
    """A policy built from frames, the rows of its tables, the library of the first frame, and warnings about types."""

    policy: Policy
    rows: Mapping[str, object]
    frame_kind: FrameKind
    type_warnings: tuple[str, ...] = ()


def policy_from_frames(data: Any, table: str, arguments: OpenArguments) -> FramePolicy:
    """Build the policy of one frame, named `table`, or of a dict of frames.

    >>> import pyarrow as pa
    >>> declared = {"unit": "patient", "columns": {"ward": ["A", "B"]}, "groups": 1, "rows": 1, "public": None}
    >>> rows = pa.table({"patient": [1], "ward": ["A"]})
    >>> arguments = OpenArguments(budget="1/2", ledger=None, name=None, version=None, **declared)
    >>> policy_from_frames(rows, "visits", arguments).policy.tables["visits"].unit
    ColumnUnit(name='patient')
    """
    single = not isinstance(data, Mapping)
    private = _inspect_frames({table: data} if single else data, "table")
    public = _inspect_frames(arguments.public or {}, "public")
    for name in public:
        if declared_name(private, name):
            raise PolicyError(f"public: there is a private table {shorten(name)}, too. Rename one of them.")
    if not private:
        raise PolicyError("frame: there is no private table. Pass at least one.")
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
    """Yield a warning for each column whose declared type differs from the stored one and may lose values."""
    for table, frame in frames.items():
        for column in policy.tables[table].columns.values():
            stored = find_by_name(frame.columns, column.name)
            # pandas stores integers with missing values as floats
            may_be_integers = frame.frame_kind is FrameKind.PANDAS and stored == "real"
            if stored is None or may_be_integers or column.name.lower() in map(str.lower, frame.object_columns):
                continue
            if hazard := stored_type_hazard(table, column.name, stored, column.type):
                yield f"{hazard.location}: {hazard.message} {hazard.hint}"


def _inspect_frames(tables: Any, argument: str) -> dict[str, InputFrame]:
    if not isinstance(tables, Mapping):
        raise PolicyError(f"{argument}: expected a dict {{name: frame}}, not {type(tables).__name__}.")
    for name in tables:
        if not isinstance(name, str):
            raise PolicyError(f"{argument}: {shorten(repr(name))} is not a table name. Use a string.")
    return {name: inspect_frame(name, rows) for name, rows in tables.items()}


def _argument_by_table(
    argument: str, value: Any, allowed_tables: Mapping[str, InputFrame], private: Mapping[str, InputFrame], single: bool
) -> dict[str, Any]:
    """Return an argument's value per table: given for the only table, by table name, or for all private tables."""
    if value is None:
        return {}
    if single or (not isinstance(value, Mapping) and argument != "columns"):
        return dict.fromkeys(private, value)
    if not isinstance(value, Mapping):
        raise PolicyError(f"columns: expected a dict by table name. For each table, {_COLUMNS_HINT}")
    for name in value:
        if declared_name(allowed_tables, str(name)) is None:
            raise PolicyError(
                f"{argument}: it does not apply to a table {shorten(repr(name))}{did_you_mean(name, allowed_tables)}"
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
            f"unit: table {shorten(table)}: {_UNIT_HINT} Pass non-private tables as public={{name: frame}}."
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
                f"columns: table {shorten(table)}: {shorten(repr(name))} is not a column name. Use a string."
            )
    return {name: _column_entry(table, name, entry, frame) for name, entry in columns.items()}


def _column_entry(table: str, name: str, entry: Any, frame: InputFrame) -> dict[str, Any]:
    """Return a column's entry in the form that a policy uses."""
    match entry:
        case str():
            return {"type": entry}
        case {"type": _}:
            return {key: _policy_value(value) for key, value in entry.items()}
        case Mapping():
            kind = _listed_type(_column_type(table, name, frame, "columns"), entry.get("in"))
            return {"type": kind, **{key: _policy_value(entry[key]) for key in entry}}
        case tuple():
            kind = _column_type(table, name, frame, "columns")
            if kind in _ORDERED_TYPES:
                return {"type": kind, "between": _policy_value(entry)}
            cause = f'{with_article(kind)} column cannot have a range. Declare the type: {{"type": …, "between": […]}}'
        case list():
            kind = _listed_type(_column_type(table, name, frame, "columns"), entry)
            if len(entry) != 2 or kind not in _ORDERED_TYPES or (kind == "integer" and _are_neighbours(entry)):
                return {"type": kind, "in": _policy_value(entry)}
            cause = 'a list of two values is ambiguous. Write (low, high) for a range, {"in": [first, second]} for keys'
        case _:
            cause = f"{type(entry).__name__} is not a declaration. {_COLUMN_HINT.removesuffix('.')}"
    raise PolicyError(f"columns: table {shorten(table)}, column {shorten(name)}: {cause}.")


def _listed_type(kind: str, values: Any) -> str:
    """Return the type of a column with listed values; pandas stores integers with missing values as reals."""
    return "integer" if kind == "real" and isinstance(values, list) and _are_integers(values) else kind


def _are_neighbours(values: list[Any]) -> bool:
    """Return whether two values are all integers between them, so that a list and a range mean the same."""
    return _are_integers(values) and abs(int(values[0]) - int(values[1])) == 1


def _are_integers(values: list[Any]) -> bool:
    return all(isinstance(value, int | np.integer) and not isinstance(value, bool) for value in values)


def _column_type(table: str, name: str, frame: InputFrame, argument: str) -> str:
    """Return a column's type from the schema of its frame."""
    where = f"{argument}: table {shorten(table)}"
    if declared_name(frame.columns, name) is None:
        raise PolicyError(f'{where}: column "{shorten(name)}" does not exist{did_you_mean(name, frame.columns)}')
    type_name = find_by_name(frame.columns, name)
    if type_name is None:
        raise PolicyError(
            f'{where}, column {shorten(name)}: the schema has no type that a policy knows. Declare one: {{"type": …}}.'
        )
    return type_name


def _policy_value(value: Any) -> Any:
    """Return a value as the policy parser expects it."""
    match value:
        case list() | tuple():
            return [_policy_value(item) for item in value]
        case np.generic():
            return value.item()
        case Decimal() if value.is_finite():
            return Fraction(value)
    return value
