"""Parse the sections of a policy one by one, so that one mistake does not hide another."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from discreet.policy.column_domains import ColumnEntry, DeclaredColumn, References
from discreet.policy.declarations import (
    ColumnUnit,
    DeclaredTable,
    NoUnit,
    ParentTableUnit,
    RowUnit,
    SimpleRandomSample,
    UnitDeclaration,
    WindowUnit,
    declared_name,
)
from discreet.policy.entries import (
    AnalystEntry,
    BudgetEntry,
    DataEntry,
    DatasetEntry,
    PolicyEntry,
    ReleaseEntry,
    ServerEntry,
    TableEntry,
    ThroughEntry,
    TuningEntry,
)
from discreet.policy.problems import Model, Problems, did_you_mean, format_value, shorten, with_article
from discreet.policy.toml import KeyPath
from discreet.policy.validators import parse_identifier

_SAMPLE_KEYS = ("sample", "sample_size", "population_size")
_PRIVATE_KEYS = frozenset({"unit", "window", "time", "groups", "rows", "contribution_max", *_SAMPLE_KEYS})
_UNIT_HINT = 'Write unit = "column" to protect people, unit = "row" for single rows, or public = true.'


@dataclass(frozen=True)
class UncheckedTable:
    """A parsed table; an invalid unit or column is None."""

    entry: TableEntry
    unit: UnitDeclaration | NoUnit | None
    columns: Mapping[str, DeclaredColumn | None]

    @property
    def sample(self) -> SimpleRandomSample | None:
        """The declared sampling design."""
        entry = self.entry
        return SimpleRandomSample(entry.sample_size, entry.population_size) if entry.sample else None

    def to_table(self, name: str, tables: "Mapping[str, UncheckedTable | None]") -> DeclaredTable:
        """Return the valid table, with names in their declared spelling."""
        assert self.unit is not None
        default_bound = 1 if isinstance(self.unit, RowUnit) else None  # a row contributes to one group
        return DeclaredTable(
            name=name,
            source=self.entry.source,
            unit=_resolve_unit(self.unit, tables),
            groups=self.entry.groups or default_bound,
            rows=self.entry.rows or default_bound,
            rows_max=self.entry.rows_max,
            sample=self.sample,
            contribution_max=self.entry.contribution_max,
            columns=MappingProxyType(
                {key: self._resolve_column(column, tables) for key, column in self.columns.items() if column}
            ),
        )

    def _resolve_column(self, column: DeclaredColumn, tables: "Mapping[str, UncheckedTable | None]") -> DeclaredColumn:
        within = column.within and declared_name(self.columns, column.within)
        return _resolve_domain(replace(column, within=within), tables)


@dataclass(frozen=True)
class UncheckedPolicy:
    """A parsed policy; an invalid section is None, or has its defaults if it may be absent."""

    data: DataEntry | None
    budget_entry: BudgetEntry | None
    tables: Mapping[str, UncheckedTable | None]
    tuning: TuningEntry
    release: ReleaseEntry
    server: ServerEntry


def _resolve_unit(
    unit: UnitDeclaration | NoUnit, tables: Mapping[str, UncheckedTable | None]
) -> UnitDeclaration | NoUnit:
    if not isinstance(unit, ParentTableUnit):
        return unit
    table, key = _resolve_column(unit.table, unit.key, tables)
    return ParentTableUnit(table, unit.on, key)


def _resolve_domain(column: DeclaredColumn, tables: Mapping[str, UncheckedTable | None]) -> DeclaredColumn:
    if not isinstance(column.domain, References):
        return column
    return replace(column, domain=References(*_resolve_column(column.domain.table, column.domain.column, tables)))


def _resolve_column(table: str, column: str, tables: Mapping[str, UncheckedTable | None]) -> tuple[str, str]:
    name = declared_name(tables, table) or table
    target = tables[name]
    return name, (declared_name(target.columns, column) if target else None) or column


def parse_policy(values: Mapping[str, Any], problems: Problems) -> UncheckedPolicy:
    """Parse every section, adding its mistakes to `problems`."""
    problems.parse_entry(PolicyEntry, values, ())
    data, budget, tables = (values.get(section) for section in ("data", "budget", "tables"))
    return UncheckedPolicy(
        problems.parse_entry(DataEntry, data, ("data",)) if isinstance(data, dict) else None,
        _parse_budget(budget, problems) if isinstance(budget, dict) else None,
        _parse_tables(tables, problems) if isinstance(tables, dict) else {},
        _parse_optional(TuningEntry, "tuning", values, problems),
        _parse_optional(ReleaseEntry, "release", values, problems),
        _parse_optional(ServerEntry, "server", values, problems),
    )


def _parse_optional(model: type[Model], name: str, values: Mapping[str, Any], problems: Problems) -> Model:
    """Parse a section that may be absent; one that is invalid counts as absent."""
    raw = values.get(name, {})
    return (problems.parse_entry(model, raw, (name,)) if isinstance(raw, dict) else None) or model()


def _parse_budget(raw: dict[str, Any], problems: Problems) -> BudgetEntry | None:
    path: KeyPath = ("budget", "analysts")
    budget_entry = problems.parse_entry(BudgetEntry, raw, ("budget",))
    raw_analysts = raw.get("analysts", {})
    entries = {
        who: problems.parse_entry(AnalystEntry, entry, (*path, who)) for who, entry in _section_items(raw_analysts)
    }
    analysts = {who: analyst for who, analyst in entries.items() if analyst}
    dataset = problems.parse_entry(DatasetEntry, raw["dataset"], ("budget", "dataset")) if "dataset" in raw else None
    parsed = {"analysts": MappingProxyType(analysts), "dataset": dataset}
    return budget_entry.model_copy(update=parsed) if budget_entry else None


def _section_items(value: Any) -> Iterable[tuple[str, Any]]:
    return value.items() if isinstance(value, dict) else ()


def _parse_tables(raw: dict[str, Any], problems: Problems) -> dict[str, UncheckedTable | None]:
    if not raw:
        problems.add(("tables",), "no table is declared. Add a section [tables.NAME] for each table.")
    _check_names(raw, ("tables",), "table", problems)
    for name in raw:
        if "." in name:
            problems.add(("tables", name), f'the name "{shorten(name)}" must not contain a dot. Choose another name.')
    return {name: _parse_table(entry, ("tables", name), problems) for name, entry in raw.items()}


def _check_names(names: Iterable[str], path: KeyPath, noun: str, problems: Problems) -> None:
    first_spellings: dict[str, str] = {}
    for name in names:
        try:
            parse_identifier(name, "name")
        except ValueError as error:
            problems.add((*path, name), f"{error} Choose another name for the {noun}.")
        other = first_spellings.setdefault(name.lower(), name)
        if other != name:
            problems.add((*path, name), f'"{shorten(other)}" differs only in case. Rename one of them.')


def _parse_table(raw: Any, path: KeyPath, problems: Problems) -> UncheckedTable | None:
    raw_columns = raw.get("columns", {}) if isinstance(raw, dict) else {}
    _check_names((name for name, _ in _section_items(raw_columns)), (*path, "columns"), "column", problems)
    columns = {
        name: column.to_column(name)
        if (column := problems.parse_entry(ColumnEntry, entry, (*path, "columns", name)))
        else None
        for name, entry in _section_items(raw_columns)
    }
    entry = problems.parse_entry(TableEntry, raw, path)
    return UncheckedTable(entry, _parse_unit(entry, columns, path, problems), columns) if entry else None


def _parse_unit(
    entry: TableEntry, columns: Mapping[str, DeclaredColumn | None], path: KeyPath, problems: Problems
) -> UnitDeclaration | NoUnit | None:
    if entry.public:
        for key in sorted(entry.model_fields_set & _PRIVATE_KEYS):
            problems.add((*path, key), f"{key} is not allowed in a public table. Remove {key} or public.")
        return NoUnit()
    _check_sample(entry, path, problems)
    _check_contribution_max(entry, path, problems)
    if not columns:
        problems.add(path, "columns is missing. List the columns that queries may use.")
    match entry.unit:
        case None:
            problems.add(path, f"unit is missing. {_UNIT_HINT}")
        case dict() as through:
            _check_no_window(entry, path, "rows have the window of the table they belong to", problems)
            return _parse_parent_unit(through, columns, path, problems)
        case "row":
            _check_no_window(entry, path, "a single row needs no window", problems)
            if declared_name(columns, "row"):
                problems.add((*path, "unit"), 'unit = "row" is ambiguous: there is a column "row". Rename the column.')
            return RowUnit()
        case str() as name:
            return _parse_column_unit(name, entry, columns, path, problems)
        case other:
            problems.add(
                (*path, "unit"), f"unit must be a string or {{ through, on }}, not {format_value(other)}. {_UNIT_HINT}"
            )
    return None


def _check_sample(entry: TableEntry, path: KeyPath, problems: Problems) -> None:
    """Require a table that owns whole units, and both sizes or neither."""
    if entry.sample and isinstance(entry.unit, dict):
        message = "sample is not allowed with this unit: rows have the sample of the table they belong to. Remove it."
        problems.add((*path, "sample"), message)
    if entry.sample and entry.window:
        message = "sample is not allowed with window: people are sampled, not single windows of them. Remove one."
        problems.add((*path, "sample"), message)
    for key, other in (_SAMPLE_KEYS[1:], _SAMPLE_KEYS[:0:-1]):
        if getattr(entry, key) and not entry.sample:
            problems.add((*path, key), f'{key} needs sample. Add sample = "simple", or remove {key}.')
        elif getattr(entry, key) and not getattr(entry, other):
            problems.add((*path, key), f"{key} needs {other}. Write both, or neither.")
    if entry.sample_size and entry.population_size and entry.sample_size > entry.population_size:
        problems.add((*path, "sample_size"), "sample_size must not exceed population_size. Correct one of them.")


def _check_contribution_max(entry: TableEntry, path: KeyPath, problems: Problems) -> None:
    """Refuse a statement that contradicts the unit or the number of rows of the table."""
    if entry.contribution_max and entry.unit == "row":
        message = 'contribution_max is not allowed with unit = "row": each unit has one row. Remove it.'
        problems.add((*path, "contribution_max"), message)
    elif entry.contribution_max and entry.contribution_max > entry.rows_max:
        message = "contribution_max must not exceed rows_max, the rows of all units together. Correct one of them."
        problems.add((*path, "contribution_max"), message)


def _check_no_window(entry: TableEntry, path: KeyPath, reason: str, problems: Problems) -> None:
    for key in sorted(entry.model_fields_set & {"window", "time"}):
        problems.add((*path, key), f"{key} is not allowed with this unit: {reason}. Remove it.")


def _parse_parent_unit(
    raw: dict[str, Any], columns: Mapping[str, DeclaredColumn | None], path: KeyPath, problems: Problems
) -> ParentTableUnit | None:
    entry = problems.parse_entry(ThroughEntry, raw, (*path, "unit"))
    on = _find_column(entry.on, columns, (*path, "unit", "on"), problems) if entry else None
    return ParentTableUnit(entry.through, on, entry.key or entry.on) if entry and on else None


def _find_column(
    name: str, columns: Mapping[str, DeclaredColumn | None], path: KeyPath, problems: Problems
) -> str | None:
    declared = declared_name(columns, name)
    if declared is None:
        message = f'{path[-1]}: column "{shorten(name)}" is not declared{did_you_mean(name, columns)}'
        problems.add(path, f"{message} Declare it under columns.")
    return declared


def _parse_column_unit(
    name: str, entry: TableEntry, columns: Mapping[str, DeclaredColumn | None], path: KeyPath, problems: Problems
) -> ColumnUnit | WindowUnit | None:
    unit = _find_column(name, columns, (*path, "unit"), problems)
    declared = columns[unit] if unit else None
    if unit and declared and declared.type in ("real", "decimal"):  # decimals are stored as reals
        message = f"the unit cannot be {declared.type}, which is not exact. Declare integer or text."
        problems.add((*path, "columns", unit, "type"), message)
    if unit and declared and declared.null:
        message = "null is not allowed for the unit: rows without a unit are never counted. Remove it."
        problems.add((*path, "columns", unit, "null"), message)
    if entry.window is None and entry.time is None:
        return ColumnUnit(unit) if unit else None
    if entry.window is None or entry.time is None:
        given, missing = ("window", "time") if entry.window else ("time", "window")
        problems.add(
            (*path, given), f'{given} needs {missing}. Write both window = "1 day" and time = "column", or neither.'
        )
        return None
    time = _find_column(entry.time, columns, (*path, "time"), problems)
    time_column = columns[time] if time else None
    if time and time_column and time_column.type not in ("date", "timestamp"):
        problems.add(
            (*path, "time"), f"time must be a date or timestamp column, not {with_article(time_column.type)} one."
        )
    return WindowUnit(unit, time, entry.window) if unit and time else None
