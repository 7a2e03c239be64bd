"""From the file's values to the parts of a policy: every part is read apart, so that one mistake hides no other."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from discreet.policy.columns import ColumnEntry, Declared, References
from discreet.policy.entries import Analyst, Data, PolicyEntry, Spending, TableEntry, ThroughEntry, TuningEntry
from discreet.policy.problems import Problems, brief, nearest, shown
from discreet.policy.tables import Table, spelled
from discreet.policy.toml import KeyPath
from discreet.policy.units import Column, ColumnInWindow, Public, Row, Through, Unit
from discreet.policy.values import identifier

_WHO = 'Say who is protected: unit = "column" for people, unit = "row" for single rows, public = true for nobody.'


@dataclass(frozen=True)
class Draft:
    """A table that may have mistakes: a wrong unit, or a wrong column, is None."""

    entry: TableEntry
    unit: Unit | Public | None
    columns: Mapping[str, Declared | None]

    def table(self, name: str, drafts: "Mapping[str, Draft | None]") -> Table:
        """Return the table, once nothing is wrong with it; names are spelled as they were declared."""
        assert self.unit is not None
        alone = 1 if isinstance(self.unit, Row) else None  # a row is in one group, once
        return Table(
            name=name,
            source=self.entry.source,
            unit=_spelled_unit(self.unit, drafts),
            groups=self.entry.groups or alone,
            rows=self.entry.rows or alone,
            rows_max=self.entry.rows_max,
            columns=MappingProxyType(
                {key: _spelled_domain(column, drafts) for key, column in self.columns.items() if column}
            ),
        )


@dataclass(frozen=True)
class Parts:
    """What was read; a part that is wrong is None."""

    data: Data | None
    spending: Spending | None
    drafts: Mapping[str, Draft | None]
    tuning: TuningEntry | None


def _spelled_unit(unit: Unit | Public, drafts: Mapping[str, Draft | None]) -> Unit | Public:
    if not isinstance(unit, Through):
        return unit
    table, key = _spelled_column(unit.table, unit.key, drafts)
    return Through(table, unit.on, key)


def _spelled_domain(column: Declared, drafts: Mapping[str, Draft | None]) -> Declared:
    if not isinstance(column.domain, References):
        return column
    return replace(column, domain=References(*_spelled_column(column.domain.table, column.domain.column, drafts)))


def _spelled_column(table: str, column: str, drafts: Mapping[str, Draft | None]) -> tuple[str, str]:
    name = spelled(drafts, table) or table
    draft = drafts[name]
    return name, (spelled(draft.columns, column) if draft else None) or column


def read_parts(values: Mapping[str, Any], problems: Problems) -> Parts:
    """Read every part of the file, noting what is wrong."""
    problems.read(PolicyEntry, values, ())
    data, budget, tables = (values.get(section) for section in ("data", "budget", "tables"))
    tuning = values.get("tuning", {})
    return Parts(
        problems.read(Data, data, ("data",)) if isinstance(data, dict) else None,
        _read_spending(budget, problems) if isinstance(budget, dict) else None,
        _read_tables(tables, problems) if isinstance(tables, dict) else {},
        problems.read(TuningEntry, tuning, ("tuning",)) if isinstance(tuning, dict) else None,
    )


def _read_spending(raw: dict[str, Any], problems: Problems) -> Spending | None:
    path: KeyPath = ("budget", "analysts")
    spending = problems.read(Spending, raw, ("budget",))
    listed = raw.get("analysts", {})
    found = {who: problems.read(Analyst, entry, (*path, who)) for who, entry in _items(listed)}
    analysts = {who: analyst for who, analyst in found.items() if analyst}
    return spending.model_copy(update={"analysts": MappingProxyType(analysts)}) if spending else None


def _items(value: Any) -> Iterable[tuple[str, Any]]:
    return value.items() if isinstance(value, dict) else ()


def _read_tables(raw: dict[str, Any], problems: Problems) -> dict[str, Draft | None]:
    if not raw:
        problems.add(("tables",), "there is no table. Add a section [tables.NAME] for each.")
    _check_names(raw, ("tables",), "table", problems)
    for name in raw:
        if "." in name:
            problems.add(("tables", name), f'name "{brief(name)}" must not contain a dot. Choose another name.')
    return {name: _read_table(entry, ("tables", name), problems) for name, entry in raw.items()}


def _check_names(names: Iterable[str], path: KeyPath, what: str, problems: Problems) -> None:
    seen: dict[str, str] = {}
    for name in names:
        try:
            identifier(name, "name")
        except ValueError as error:
            problems.add((*path, name), f"{error} Choose another name for the {what}.")
        other = seen.setdefault(name.lower(), name)
        if other != name:
            problems.add((*path, name), f'"{brief(other)}" has the same name: case does not count. Rename one of them.')


def _read_table(raw: Any, path: KeyPath, problems: Problems) -> Draft | None:
    listed = raw.get("columns", {}) if isinstance(raw, dict) else {}
    _check_names((name for name, _ in _items(listed)), (*path, "columns"), "column", problems)
    columns = {
        name: column.declared(name) if (column := problems.read(ColumnEntry, entry, (*path, "columns", name))) else None
        for name, entry in _items(listed)
    }
    entry = problems.read(TableEntry, raw, path)
    return Draft(entry, _read_unit(entry, columns, path, problems), columns) if entry else None


def _read_unit(
    entry: TableEntry, columns: Mapping[str, Declared | None], path: KeyPath, problems: Problems
) -> Unit | Public | None:
    if entry.public:
        for key in sorted(entry.model_fields_set & {"unit", "window", "time", "groups", "rows"}):
            problems.add(
                (*path, key), f"{key} does not fit a public table, which protects nobody. Leave out {key}, or public."
            )
        return Public()
    if not columns:
        problems.add(path, "columns is missing: a column that is not listed does not exist. List those to ask about.")
    match entry.unit:
        case None:
            problems.add(path, f"unit is missing. {_WHO}")
        case dict() as through:
            _check_no_window(entry, path, "has the window of the table it leads to", problems)
            return _read_through(through, columns, path, problems)
        case "row":
            _check_no_window(entry, path, "is smaller than any window", problems)
            if spelled(columns, "row"):
                problems.add(
                    (*path, "unit"), 'unit "row" is also a column. Rename the column, so that it is clear who is meant.'
                )
            return Row()
        case str() as name:
            return _read_people(name, entry, columns, path, problems)
        case other:
            problems.add((*path, "unit"), f"unit must be a text or {{ through, on }}, not {shown(other)}. {_WHO}")
    return None


def _check_no_window(entry: TableEntry, path: KeyPath, why: str, problems: Problems) -> None:
    for key in sorted(entry.model_fields_set & {"window", "time"}):
        problems.add((*path, key), f"{key} does not fit here: this unit {why}. Leave it out.")


def _read_through(
    raw: dict[str, Any], columns: Mapping[str, Declared | None], path: KeyPath, problems: Problems
) -> Through | None:
    entry = problems.read(ThroughEntry, raw, (*path, "unit"))
    on = _declared(entry.on, columns, (*path, "unit", "on"), problems) if entry else None
    return Through(entry.through, on, entry.key or entry.on) if entry and on else None


def _declared(name: str, columns: Mapping[str, Declared | None], path: KeyPath, problems: Problems) -> str | None:
    known = spelled(columns, name)
    if known is None:
        key = path[-1]
        problems.add(
            path, f'{key} names "{brief(name)}", which is not among the columns{nearest(name, columns)} Declare it.'
        )
    return known


def _read_people(
    name: str, entry: TableEntry, columns: Mapping[str, Declared | None], path: KeyPath, problems: Problems
) -> Column | ColumnInWindow | None:
    unit = _declared(name, columns, (*path, "unit"), problems)
    declared = columns[unit] if unit else None
    if unit and declared and declared.type in ("real", "decimal"):  # decimals are kept as reals
        words = f"{declared.type} does not fit the unit: equal floats are an accident. Declare an integer or text."
        problems.add((*path, "columns", unit, "type"), words)
    if unit and declared and declared.null:
        words = "null does not fit the unit: rows that belong to nobody are never counted. Leave it out."
        problems.add((*path, "columns", unit, "null"), words)
    if entry.window is None and entry.time is None:
        return Column(unit) if unit else None
    if entry.window is None or entry.time is None:
        given, lacks = ("window", "time") if entry.window else ("time", "window")
        problems.add((*path, given), f'{given} needs {lacks}: write window = "1 day" and time = "column", or neither.')
        return None
    time = _declared(entry.time, columns, (*path, "time"), problems)
    stamp = columns[time] if time else None
    if time and stamp and stamp.type not in ("date", "timestamp"):
        problems.add((*path, "time"), f"time must name a date or timestamp column, not one of type {stamp.type}.")
    return ColumnInWindow(unit, time, entry.window) if unit and time else None
