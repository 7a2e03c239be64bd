"""Checks across the sections of a policy: one privacy unit, valid references, a feasible budget."""

from collections.abc import Mapping

from discreet.kernel.event import OWNER
from discreet.kernel.loss import Budget
from discreet.policy.column_domains import References
from discreet.policy.declarations import (
    ColumnUnit,
    NoUnit,
    ParentTableUnit,
    Person,
    PersonInWindow,
    PrivacyUnit,
    RowUnit,
    WindowUnit,
    declared_name,
    find_by_name,
)
from discreet.policy.entries import AnalystEntry, BudgetEntry
from discreet.policy.parser import UncheckedPolicy, UncheckedTable
from discreet.policy.problems import Problems, did_you_mean, shorten, with_article
from discreet.policy.validators import format_number

UncheckedTables = Mapping[str, UncheckedTable | None]


def check_consistency(unchecked: UncheckedPolicy, problems: Problems) -> None:
    """Note everything that is wrong between the parts."""
    if unchecked.budget_entry:
        _check_budget(unchecked.budget_entry, problems)
        for who, analyst in unchecked.budget_entry.analysts.items():
            _check_analyst(who, analyst, unchecked.budget_entry, problems)
            _check_analyst_tables(who, analyst, unchecked.tables, problems)
    for name, table in unchecked.tables.items():
        if table:
            _check_references(name, table, unchecked.tables, problems)
            _check_parent(name, table, unchecked.tables, problems)
            _check_unique(name, table, problems)
    _check_common_unit(unchecked, problems)


def make_budget(entry: BudgetEntry, analyst: AnalystEntry | None = None) -> Budget:
    """Return the kernel's budget: the total, or an analyst's with the total's delta unless they have their own."""
    if analyst is None:
        return Budget(entry.epsilon, entry.delta, discover=entry.discover_share)
    delta = entry.delta if analyst.delta is None else analyst.delta
    return Budget(analyst.epsilon, delta, discover=entry.discover_share)


def _check_budget(entry: BudgetEntry, problems: Problems) -> None:
    if entry.discover and not entry.delta:
        message = "discover needs a delta: it is a share of it. Add delta, or leave out discover."
        problems.add(("budget", "discover"), message)
    elif not _is_feasible(entry):
        message = "delta is too small for so small an epsilon. Enlarge one, or leave out delta."
        problems.add(("budget", "delta"), message)


def _is_feasible(entry: BudgetEntry, analyst: AnalystEntry | None = None) -> bool:
    try:
        return bool(make_budget(entry, analyst))
    except (ValueError, OverflowError):
        return False


def _check_analyst(who: str, analyst: AnalystEntry, total: BudgetEntry, problems: Problems) -> None:
    path = ("budget", "analysts", who)
    if who == OWNER:
        problems.add(path, f'"{OWNER}" cannot be listed: the owner has the total. Choose another name.')
    if not who.strip() or len(who) > 200 or not who.isprintable():
        problems.add(path, "name must be one line of 1 to 200 characters. Choose another name.")
    if analyst.epsilon > total.epsilon:
        message = f"epsilon must not exceed the total of {format_number(total.epsilon)}, which ends first. Lower it."
        problems.add((*path, "epsilon"), message)
    if analyst.delta is not None and analyst.delta != total.delta and not 0 < analyst.delta < total.delta:
        total_delta = format_number(total.delta) if total.delta else "(none)"
        message = f"delta must lie above 0 and at most at the total's {total_delta}. Leave it out for the total's."
        problems.add((*path, "delta"), message)
    elif _is_feasible(total) and not _is_feasible(total, analyst):
        problems.add((*path, "epsilon"), "epsilon is too small for the delta. Enlarge it.")


def _check_analyst_tables(who: str, analyst: AnalystEntry, tables: UncheckedTables, problems: Problems) -> None:
    for index, name in enumerate(analyst.tables or ()):
        if declared_name(tables, name) is None:
            message = f'tables names "{shorten(name)}", which is not a table of the policy{did_you_mean(name, tables)}'
            problems.add(("budget", "analysts", who, "tables", index), message)


def _check_references(name: str, table: UncheckedTable, tables: UncheckedTables, problems: Problems) -> None:
    for column in filter(None, table.columns.values()):
        if not isinstance(column.domain, References):
            continue
        path = ("tables", name, "columns", column.name, "references")
        reference = column.domain
        target = find_by_name(tables, reference.table)
        if declared_name(tables, reference.table) is None:
            problems.add(
                path,
                f'references names table "{shorten(reference.table)}", which is not there{did_you_mean(reference.table, tables)}',
            )
        elif target and not isinstance(target.unit, NoUnit):
            message = f'references needs a public table: the keys of "{shorten(reference.table)}" are private. List them with in.'
            problems.add(path, message)
        elif target and target.columns:
            _check_reference_target(path, column.type, reference, target, problems)


def _check_reference_target(
    path: tuple[str, ...], kind: str, reference: References, target: UncheckedTable, problems: Problems
) -> None:
    target_column = find_by_name(target.columns, reference.column)
    if declared_name(target.columns, reference.column) is None:
        near = did_you_mean(reference.column, target.columns)
        problems.add(
            path,
            f'references names column "{shorten(reference.column)}", which "{shorten(reference.table)}" does not list{near}',
        )
    elif target_column and target_column.type != kind:
        message = (
            f"references leads from {kind} to {target_column.type}: such values are never equal. Declare the same type."
        )
        problems.add(path, message)


def _check_unique(name: str, table: UncheckedTable, problems: Problems) -> None:
    for column in filter(None, table.columns.values()):
        if column.unique and isinstance(table.unit, NoUnit):
            message = "unique is for private tables: every value of a public table may be shown. Leave it out."
            problems.add(("tables", name, "columns", column.name, "unique"), message)


def _check_parent(name: str, table: UncheckedTable, tables: UncheckedTables, problems: Problems) -> None:
    if not isinstance(table.unit, ParentTableUnit):
        return
    path, unit = ("tables", name, "unit", "through"), table.unit
    parent = find_by_name(tables, unit.table)
    if declared_name(tables, unit.table) is None:
        problems.add(
            path, f'through names table "{shorten(unit.table)}", which is not there{did_you_mean(unit.table, tables)}'
        )
    if parent is None:
        return
    if isinstance(parent.unit, NoUnit | RowUnit):
        reason = (
            "is public and owns nothing"
            if isinstance(parent.unit, NoUnit)
            else "protects single rows, which own no others"
        )
        problems.add(path, f'through leads to "{shorten(unit.table)}", which {reason}. Name a table with people in it.')
        return
    chain = _parent_chain(name, tables)
    if chain.count(name) > 1:
        problems.add(path, f"through leads in a circle: {' → '.join(chain)}. One of them must name its people.")
    _check_parent_key(name, table, unit, parent, problems)


def _check_parent_key(
    name: str, table: UncheckedTable, unit: ParentTableUnit, parent: UncheckedTable, problems: Problems
) -> None:
    path = ("tables", name, "unit", "key" if unit.key != unit.on else "on")
    key, on = find_by_name(parent.columns, unit.key), find_by_name(table.columns, unit.on)
    if declared_name(parent.columns, unit.key) is None:
        near = did_you_mean(unit.key, parent.columns)
        message = f'{path[-1]} needs a column "{shorten(unit.key)}" in table "{shorten(unit.table)}"{near}'
        problems.add(path, f'{message} Declare it there, or name it with key = "…".')
    elif key and on and key.type != on.type:
        message = f"{path[-1]} leads from {on.type} to {key.type}: such values are never equal. Declare the same type."
        problems.add(path, message)
    elif on and on.type in ("real", "decimal"):
        message = f"{on.type} cannot lead to an owner: equal floats are an accident. Declare an integer or text."
        problems.add(path, message)


def _parent_chain(name: str, tables: UncheckedTables) -> list[str]:
    """Follow the parents until one names its people, is wrong, or comes a second time."""
    chain = [name]
    while (table := tables[chain[-1]]) and isinstance(table.unit, ParentTableUnit):
        parent = declared_name(tables, table.unit.table)
        if parent is None:
            break
        chain.append(parent)
        if chain.count(parent) > 1:
            break
    return chain


def _check_common_unit(unchecked: UncheckedPolicy, problems: Problems) -> None:
    """All private tables have units of one kind; those that own through a parent have the parent's."""
    private = {
        name: table for name, table in unchecked.tables.items() if not table or not isinstance(table.unit, NoUnit)
    }
    if unchecked.tables and not private:
        problems.add(("tables",), 'no table protects anybody. Give at least one a unit, such as unit = "user".')
    timezone = unchecked.data.timezone if unchecked.data else "UTC"
    units = {name: unit for name, draft in private.items() if draft and (unit := _privacy_unit_of(draft, timezone))}
    for name, unit in units.items():
        first = next(iter(units))
        if unit != units[first]:
            message = (
                f'unit is {_describe_unit(unit)}, but that of "{shorten(first)}" is {_describe_unit(units[first])}'
            )
            problems.add(
                ("tables", name, "unit"), f"{message}. All private tables must protect the same: one type, one window."
            )


def _privacy_unit_of(table: UncheckedTable, timezone: str) -> PrivacyUnit | None:
    """Return what a table protects by its own columns; None if that is decided elsewhere, or wrong."""
    match table.unit:
        case RowUnit():
            return RowUnit()
        case ColumnUnit(name) if column := table.columns[name]:
            return Person(column.type)
        case WindowUnit(name, _, window) if column := table.columns[name]:
            return PersonInWindow(column.type, window, timezone)
    return None


def _describe_unit(unit: PrivacyUnit) -> str:
    match unit:
        case Person(key_type):
            return f"a person with {with_article(key_type)} key"
        case PersonInWindow(key_type, window, _):
            return f"one {window} of a person with {with_article(key_type)} key"
    return "a single row"
