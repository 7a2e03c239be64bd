"""What must hold between the parts of a policy: the same people everywhere, and a budget that can be kept."""

from collections.abc import Mapping

from discreet.kernel.event import OWNER
from discreet.kernel.loss import Budget
from discreet.policy.columns import References
from discreet.policy.entries import Analyst, Spending
from discreet.policy.problems import Problems, article, brief, nearest
from discreet.policy.read import Draft, Parts
from discreet.policy.tables import find, spelled
from discreet.policy.units import Column, ColumnInWindow, Person, PersonInWindow, Protected, Public, Row, Through
from discreet.policy.values import written

Drafts = Mapping[str, Draft | None]


def check_parts(parts: Parts, problems: Problems) -> None:
    """Note everything that is wrong between the parts."""
    if parts.spending:
        _check_budget(parts.spending, problems)
        for who, analyst in parts.spending.analysts.items():
            _check_analyst(who, analyst, parts.spending, problems)
            _check_granted(who, analyst, parts.drafts, problems)
    for name, draft in parts.drafts.items():
        if draft:
            _check_references(name, draft, parts.drafts, problems)
            _check_parent(name, draft, parts.drafts, problems)
            _check_unique(name, draft, problems)
    _check_common_unit(parts, problems)


def make_budget(spending: Spending, analyst: Analyst | None = None) -> Budget:
    """Return the kernel's budget: the total, or an analyst's with the total's delta unless they have their own."""
    if analyst is None:
        return Budget(spending.epsilon, spending.delta, discover=spending.discover_share)
    delta = spending.delta if analyst.delta is None else analyst.delta
    return Budget(analyst.epsilon, delta, discover=spending.discover_share)


def _check_budget(spending: Spending, problems: Problems) -> None:
    if spending.discover and not spending.delta:
        words = "discover needs a delta: it is a share of it. Add delta, or leave out discover."
        problems.add(("budget", "discover"), words)
    elif not _is_possible(spending):
        words = "delta is too small for so small an epsilon. Enlarge one, or leave out delta."
        problems.add(("budget", "delta"), words)


def _is_possible(spending: Spending, analyst: Analyst | None = None) -> bool:
    try:
        return bool(make_budget(spending, analyst))
    except (ValueError, OverflowError):
        return False


def _check_analyst(who: str, analyst: Analyst, total: Spending, problems: Problems) -> None:
    path = ("budget", "analysts", who)
    if who == OWNER:
        problems.add(path, f'"{OWNER}" cannot be listed: the owner has the total. Choose another name.')
    if not who.strip() or len(who) > 200 or not who.isprintable():
        problems.add(path, "name must be one line of 1 to 200 characters. Choose another name.")
    if analyst.epsilon > total.epsilon:
        words = f"epsilon must not exceed the total of {written(total.epsilon)}, which ends first. Lower it."
        problems.add((*path, "epsilon"), words)
    if analyst.delta is not None and analyst.delta != total.delta and not 0 < analyst.delta < total.delta:
        total_delta = written(total.delta) if total.delta else "(none)"
        words = f"delta must lie above 0 and at most at the total's {total_delta}. Leave it out for the total's."
        problems.add((*path, "delta"), words)
    elif _is_possible(total) and not _is_possible(total, analyst):
        problems.add((*path, "epsilon"), "epsilon is too small for the delta. Enlarge it.")


def _check_granted(who: str, analyst: Analyst, drafts: Drafts, problems: Problems) -> None:
    for index, name in enumerate(analyst.tables or ()):
        if spelled(drafts, name) is None:
            words = f'tables names "{brief(name)}", which is not a table of the policy{nearest(name, drafts)}'
            problems.add(("budget", "analysts", who, "tables", index), words)


def _check_references(name: str, draft: Draft, drafts: Drafts, problems: Problems) -> None:
    for column in filter(None, draft.columns.values()):
        if not isinstance(column.domain, References):
            continue
        path = ("tables", name, "columns", column.name, "references")
        to = column.domain
        target = find(drafts, to.table)
        if spelled(drafts, to.table) is None:
            problems.add(
                path, f'references names table "{brief(to.table)}", which is not there{nearest(to.table, drafts)}'
            )
        elif target and not isinstance(target.unit, Public):
            words = f'references needs a public table: the keys of "{brief(to.table)}" are private. List them with in.'
            problems.add(path, words)
        elif target and target.columns:
            _check_referenced(path, column.type, to, target, problems)


def _check_referenced(path: tuple[str, ...], kind: str, to: References, target: Draft, problems: Problems) -> None:
    found = find(target.columns, to.column)
    if spelled(target.columns, to.column) is None:
        near = nearest(to.column, target.columns)
        problems.add(
            path, f'references names column "{brief(to.column)}", which "{brief(to.table)}" does not list{near}'
        )
    elif found and found.type != kind:
        words = f"references leads from {kind} to {found.type}: such values are never equal. Declare the same type."
        problems.add(path, words)


def _check_unique(name: str, draft: Draft, problems: Problems) -> None:
    for column in filter(None, draft.columns.values()):
        if column.unique and isinstance(draft.unit, Public):
            words = "unique is for private tables: every value of a public table may be shown. Leave it out."
            problems.add(("tables", name, "columns", column.name, "unique"), words)


def _check_parent(name: str, draft: Draft, drafts: Drafts, problems: Problems) -> None:
    if not isinstance(draft.unit, Through):
        return
    path, unit = ("tables", name, "unit", "through"), draft.unit
    parent = find(drafts, unit.table)
    if spelled(drafts, unit.table) is None:
        problems.add(
            path, f'through names table "{brief(unit.table)}", which is not there{nearest(unit.table, drafts)}'
        )
    if parent is None:
        return
    if isinstance(parent.unit, Public | Row):
        what = (
            "is public and owns nothing"
            if isinstance(parent.unit, Public)
            else "protects single rows, which own no others"
        )
        problems.add(path, f'through leads to "{brief(unit.table)}", which {what}. Name a table with people in it.')
        return
    chain = _chain(name, drafts)
    if chain.count(name) > 1:
        problems.add(path, f"through leads in a circle: {' → '.join(chain)}. One of them must name its people.")
    _check_key(name, draft, unit, parent, problems)


def _check_key(name: str, draft: Draft, unit: Through, parent: Draft, problems: Problems) -> None:
    path = ("tables", name, "unit", "key" if unit.key != unit.on else "on")
    key, on = find(parent.columns, unit.key), find(draft.columns, unit.on)
    if spelled(parent.columns, unit.key) is None:
        near = nearest(unit.key, parent.columns)
        words = f'{path[-1]} needs a column "{brief(unit.key)}" in table "{brief(unit.table)}"{near}'
        problems.add(path, f'{words} Declare it there, or name it with key = "…".')
    elif key and on and key.type != on.type:
        words = f"{path[-1]} leads from {on.type} to {key.type}: such values are never equal. Declare the same type."
        problems.add(path, words)
    elif on and on.type in ("real", "decimal"):
        words = f"{on.type} cannot lead to an owner: equal floats are an accident. Declare an integer or text."
        problems.add(path, words)


def _chain(name: str, drafts: Drafts) -> list[str]:
    """Follow the parents until one names its people, is wrong, or comes a second time."""
    chain = [name]
    while (draft := drafts[chain[-1]]) and isinstance(draft.unit, Through):
        parent = spelled(drafts, draft.unit.table)
        if parent is None:
            break
        chain.append(parent)
        if chain.count(parent) > 1:
            break
    return chain


def _check_common_unit(parts: Parts, problems: Problems) -> None:
    """All private tables have units of one kind; those that own through a parent have the parent's."""
    private = {name: draft for name, draft in parts.drafts.items() if not draft or not isinstance(draft.unit, Public)}
    if parts.drafts and not private:
        problems.add(("tables",), 'no table protects anybody. Give at least one a unit, such as unit = "user".')
    zone = parts.data.timezone if parts.data else "UTC"
    kinds = {name: kind for name, draft in private.items() if draft and (kind := _kind_of(draft, zone))}
    for name, kind in kinds.items():
        first = next(iter(kinds))
        if kind != kinds[first]:
            words = f'unit is {_describe(kind)}, but that of "{brief(first)}" is {_describe(kinds[first])}'
            problems.add(
                ("tables", name, "unit"), f"{words}. All private tables must protect the same: one type, one window."
            )


def _kind_of(draft: Draft, zone: str) -> Protected | None:
    """Return what a table protects by its own columns; None if that is decided elsewhere, or wrong."""
    match draft.unit:
        case Row():
            return Row()
        case Column(name) if column := draft.columns[name]:
            return Person(column.type)
        case ColumnInWindow(name, _, window) if column := draft.columns[name]:
            return PersonInWindow(column.type, window, zone)
    return None


def _describe(kind: Protected) -> str:
    match kind:
        case Person(kind_of_key):
            return f"a person with {article(kind_of_key)} key"
        case PersonInWindow(kind_of_key, window, _):
            return f"one {window} of a person with {article(kind_of_key)} key"
    return "a single row"
