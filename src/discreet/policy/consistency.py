"""Checks across the sections of a policy: one privacy unit, valid references, a feasible budget."""

from collections.abc import Mapping

from discreet.kernel.event import OWNER
from discreet.kernel.loss import Budget
from discreet.policy.column_domains import DeclaredColumn, Keys, References
from discreet.policy.declarations import (
    NoUnit,
    ParentTableUnit,
    PersonInWindow,
    PersonUnit,
    PrivacyUnit,
    RowUnit,
    declared_name,
    find_by_name,
    privacy_unit,
)
from discreet.policy.entries import AnalystEntry, BudgetEntry, DatasetEntry
from discreet.policy.parser import UncheckedPolicy, UncheckedTable
from discreet.policy.problems import Problems, did_you_mean, shorten, with_article
from discreet.policy.validators import format_number

UncheckedTables = Mapping[str, UncheckedTable | None]


def check_consistency(unchecked: UncheckedPolicy, problems: Problems) -> None:
    """Add every inconsistency between sections to `problems`."""
    if unchecked.budget_entry:
        _check_budget(unchecked.budget_entry, problems)
        _check_dataset(unchecked, unchecked.budget_entry, problems)
        for who, analyst in unchecked.budget_entry.analysts.items():
            _check_analyst(who, analyst, unchecked.budget_entry, problems)
            _check_analyst_tables(who, analyst, unchecked.tables, problems)
    _check_server(unchecked, problems)
    for name, table in unchecked.tables.items():
        if table:
            _check_references(name, table, unchecked.tables, problems)
            _check_parent(name, table, unchecked.tables, problems)
            _check_unique(name, table, problems)
            _check_within(name, table, unchecked.tables, problems)
    _check_common_unit(unchecked, problems)
    _check_common_sample(unchecked.tables, problems)


def _check_server(unchecked: UncheckedPolicy, problems: Problems) -> None:
    if unchecked.server.strict and unchecked.tuning.seconds is None:
        message = (
            "strict needs a time limit, at which every answer leaves. Set seconds in [tuning], such as seconds = 10."
        )
        problems.add(("server", "strict"), message)


def make_budget(entry: BudgetEntry, limit: AnalystEntry | DatasetEntry | None = None) -> Budget:
    """Return the total budget, or the limit of an analyst or data set, with the total delta unless it has its own."""
    if limit is None:
        return Budget(entry.epsilon, entry.delta, discover=entry.discover_share)
    delta = entry.delta if limit.delta is None else limit.delta
    return Budget(limit.epsilon, delta, discover=entry.discover_share)


def _check_budget(entry: BudgetEntry, problems: Problems) -> None:
    if entry.discover and not entry.delta:
        message = (
            "discover needs delta: it is the share of delta for partition selection. Add delta, or remove discover."
        )
        problems.add(("budget", "discover"), message)
    elif not _is_feasible(entry):
        message = "delta is too small for this epsilon. Increase one of them, or remove delta."
        problems.add(("budget", "delta"), message)


def _is_feasible(entry: BudgetEntry, limit: AnalystEntry | DatasetEntry | None = None) -> bool:
    try:
        return bool(make_budget(entry, limit))
    except (ValueError, OverflowError):
        return False


def _check_analyst(who: str, analyst: AnalystEntry, total: BudgetEntry, problems: Problems) -> None:
    path = ("budget", "analysts", who)
    if who == OWNER:
        problems.add(path, f'"{OWNER}" is reserved: the owner has the total budget. Choose another name.')
    if not who.strip() or len(who) > 200 or not who.isprintable():
        problems.add(path, "the name must be one line of 1 to 200 characters. Choose another name.")
    _check_limit(path, analyst, total, problems)


def _check_dataset(unchecked: UncheckedPolicy, total: BudgetEntry, problems: Problems) -> None:
    """Check the limit of a data set, which needs a population."""
    if total.dataset and unchecked.data and unchecked.data.population is None:
        message = "dataset is a limit under the budget of a population. Add population to [data], or remove it."
        problems.add(("budget", "dataset"), message)
    if total.dataset:
        _check_limit(("budget", "dataset"), total.dataset, total, problems)


def _check_limit(
    path: tuple[str, ...], limit: AnalystEntry | DatasetEntry, total: BudgetEntry, problems: Problems
) -> None:
    if limit.epsilon > total.epsilon:
        message = f"epsilon must not exceed the total budget of {format_number(total.epsilon)}. Lower it."
        problems.add((*path, "epsilon"), message)
    if limit.delta is not None and limit.delta != total.delta and not 0 < limit.delta < total.delta:
        total_delta = format_number(total.delta) if total.delta else "(none)"
        message = f"delta must be greater than 0 and at most the total delta {total_delta}. Omit it to use that."
        problems.add((*path, "delta"), message)
    elif _is_feasible(total) and not _is_feasible(total, limit):
        problems.add((*path, "epsilon"), "epsilon is too small for this delta. Increase it.")


def _check_analyst_tables(who: str, analyst: AnalystEntry, tables: UncheckedTables, problems: Problems) -> None:
    for index, name in enumerate(analyst.tables or ()):
        if declared_name(tables, name) is None:
            message = f'tables: table "{shorten(name)}" does not exist{did_you_mean(name, tables)}'
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
                f'references: table "{shorten(reference.table)}" does not exist{did_you_mean(reference.table, tables)}',
            )
        elif target and not isinstance(target.unit, NoUnit):
            message = f'references needs a public table, but "{shorten(reference.table)}" is private.'
            problems.add(path, f"{message} List the values with in.")
        elif target and target.columns:
            _check_reference_target(path, column.type, reference, target, problems)


def _check_reference_target(
    path: tuple[str, ...], kind: str, reference: References, target: UncheckedTable, problems: Problems
) -> None:
    key = path[-1]
    target_column = find_by_name(target.columns, reference.column)
    if declared_name(target.columns, reference.column) is None:
        column = f'column "{shorten(reference.column)}" of table "{shorten(reference.table)}"'
        problems.add(path, f"{key}: {column} does not exist{did_you_mean(reference.column, target.columns)}")
    elif target_column and target_column.type != kind:
        message = f"{key}: cannot compare {kind} with {target_column.type}. Declare the same type for both."
        problems.add(path, message)


def _check_unique(name: str, table: UncheckedTable, problems: Problems) -> None:
    for column in filter(None, table.columns.values()):
        if column.unique and isinstance(table.unit, NoUnit):
            message = "unique is not allowed in a public table, whose values may all be released. Remove it."
            problems.add(("tables", name, "columns", column.name, "unique"), message)


def _check_within(name: str, table: UncheckedTable, tables: UncheckedTables, problems: Problems) -> None:
    """Check that a column belongs to another one of its table, and that it is declared how."""
    for column in filter(None, table.columns.values()):
        grouped = isinstance(column.domain, Keys) and column.domain.within
        path = ("tables", name, "columns", column.name, "within")
        if column.within is None:
            if grouped:
                message = "in lists values by those of another column. Name it with within."
                problems.add((*path[:-1], "in"), message)
            continue
        coarser = find_by_name(table.columns, column.within)
        if declared_name(table.columns, column.within) is None:
            near = did_you_mean(column.within, table.columns)
            problems.add(path, f'within: column "{shorten(column.within)}" is not declared{near}')
        elif column.name in _columns_around(column, table):
            problems.add(path, "within is circular. Remove it from one of these columns.")
        elif coarser and coarser.null:
            message = f"within: {shorten(coarser.name)} has null = true, but a missing value contains no others."
            problems.add(path, f"{message} Remove null or within.")
        elif coarser:
            _check_where_values_belong(path, column, coarser, tables, problems)


def _columns_around(column: DeclaredColumn, table: UncheckedTable) -> list[str]:
    """Return the columns that a column is within, up to a repetition."""
    around: list[str] = []
    above: DeclaredColumn | None = column
    while above and above.within and (above := find_by_name(table.columns, above.within)) and above.name not in around:
        around.append(above.name)
    return around


def _check_where_values_belong(
    path: tuple[str, ...], column: DeclaredColumn, coarser: DeclaredColumn, tables: UncheckedTables, problems: Problems
) -> None:
    if isinstance(column.domain, References):
        target = find_by_name(tables, column.domain.table)
        if target and target.columns:
            _check_reference_target(path, coarser.type, References(column.domain.table, coarser.name), target, problems)
    elif isinstance(column.domain, Keys):
        values = coarser.domain.values if isinstance(coarser.domain, Keys) else ()
        if set(values) != set(column.domain.within):
            message = (
                f"within: the values of {shorten(coarser.name)} before the lists of in must be those of its own in"
            )
            problems.add(path, f"{message}, which are texts. Use references for other values.")


def _check_parent(name: str, table: UncheckedTable, tables: UncheckedTables, problems: Problems) -> None:
    if not isinstance(table.unit, ParentTableUnit):
        return
    path, unit = ("tables", name, "unit", "through"), table.unit
    parent = find_by_name(tables, unit.table)
    if declared_name(tables, unit.table) is None:
        problems.add(path, f'through: table "{shorten(unit.table)}" does not exist{did_you_mean(unit.table, tables)}')
    if parent is None:
        return
    if isinstance(parent.unit, NoUnit | RowUnit):
        reason = "is public" if isinstance(parent.unit, NoUnit) else "protects single rows"
        message = f'through: table "{shorten(unit.table)}" {reason} and cannot own rows of another table.'
        problems.add(path, f"{message} Name a table with a unit column.")
        return
    chain = _parent_chain(name, tables)
    if chain.count(name) > 1:
        problems.add(path, f"through is circular: {' → '.join(chain)}. Give one of these tables a unit column.")
    _check_parent_key(name, table, unit, parent, problems)


def _check_parent_key(
    name: str, table: UncheckedTable, unit: ParentTableUnit, parent: UncheckedTable, problems: Problems
) -> None:
    path = ("tables", name, "unit", "key" if unit.key != unit.on else "on")
    key, on = find_by_name(parent.columns, unit.key), find_by_name(table.columns, unit.on)
    if declared_name(parent.columns, unit.key) is None:
        near = did_you_mean(unit.key, parent.columns)
        message = f'{path[-1]}: column "{shorten(unit.key)}" of table "{shorten(unit.table)}" does not exist{near}'
        problems.add(path, f'{message} Declare it there, or name the matching column with key = "…".')
    elif key and on and key.type != on.type:
        message = f"{path[-1]}: cannot compare {on.type} with {key.type}. Declare the same type for both."
        problems.add(path, message)
    elif on and on.type in ("real", "decimal"):
        message = f"{path[-1]}: a key cannot be {on.type}, which is not exact. Declare integer or text."
        problems.add(path, message)


def _parent_chain(name: str, tables: UncheckedTables) -> list[str]:
    """Follow the parents up to a table with its own unit, an invalid one, or a repetition."""
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
    """Require the same privacy unit of all private tables; those with a parent inherit the parent's."""
    private = {
        name: table for name, table in unchecked.tables.items() if not table or not isinstance(table.unit, NoUnit)
    }
    if unchecked.tables and not private:
        problems.add(("tables",), 'all tables are public. Give at least one a unit, such as unit = "user".')
    timezone = unchecked.data.timezone if unchecked.data else "UTC"
    units = {
        name: unit
        for name, draft in private.items()
        if draft and (unit := privacy_unit(draft.unit, draft.columns, timezone))
    }
    for name, unit in units.items():
        first = next(iter(units))
        if unit != units[first]:
            message = (
                f'unit is {_describe_unit(unit)}, but in table "{shorten(first)}" it is {_describe_unit(units[first])}'
            )
            hint = "All private tables must have the same privacy unit: the same key type and window."
            problems.add(("tables", name, "unit"), f"{message}. {hint}")


def _check_common_sample(tables: UncheckedTables, problems: Problems) -> None:
    """Require the same sample of all tables with a unit of their own: they hold the same units."""
    roots = {
        name: table for name, table in tables.items() if table and not isinstance(table.unit, NoUnit | ParentTableUnit)
    }
    for name, table in roots.items():
        first = next(iter(roots))
        if table.sample != roots[first].sample:
            message = f'sample, sample_size and population_size must be as in table "{shorten(first)}"'
            problems.add(("tables", name), f"{message}: all private tables hold the same units.")


def _describe_unit(unit: PrivacyUnit) -> str:
    match unit:
        case PersonUnit(key_type):
            return f"a person with {with_article(key_type)} key"
        case PersonInWindow(key_type, window, _):
            return f"one {window} of a person with {with_article(key_type)} key"
    return "a single row"
