"""Chapters on the guarantee: who is protected from what, every parameter, and epsilon at other deltas."""

from collections.abc import Iterator
from datetime import datetime, time
from fractions import Fraction
from typing import NamedTuple

from discreet.kernel.loss import Budget, Loss
from discreet.policy import Policy
from discreet.policy.column_domains import Between, DeclaredColumn, Domain, Keys, References
from discreet.policy.declarations import (
    AUTO,
    Bound,
    ColumnUnit,
    DeclaredTable,
    PersonInWindow,
    RowUnit,
    WindowUnit,
)
from discreet.policy.guarantee import (
    neighbour_sentence,
    pluralise,
    protected_noun,
    unit_sentence,
    unprotected_sentences,
)
from discreet.policy.validators import format_number
from discreet.pricing.remaining_budget import cost_in_budget
from discreet.publish.record import DECLARED_AFTER, BoundOrigin, ContributionBound, ReleaseRecord
from discreet.publish.report.content import Chapter, ContentTable, stated
from discreet.publish.report.ledger_chapters import LedgerSummary
from discreet.publish.report.number_text import rounded_up
from discreet.publish.report.odds import (
    EpsilonDelta,
    at_most,
    budget_pair,
    epsilons_of_budget,
    epsilons_of_loss,
    guess_fact,
    guess_participation,
    loss_pairs,
    odds_text,
)

_FEW_VALUES = 12  # of a domain that are listed


def summary_chapter(policy: Policy, budget: Budget, cost: Loss | None) -> Chapter:
    """Return who is protected from what, in one sentence with odds, for the release and for the whole budget."""
    scopes = {"everything that the budget allows": [budget_pair(budget)]}
    if cost is not None:
        scopes = {"this release": loss_pairs(cost)} | scopes
    first, words = next(iter(scopes)), _reader_words(policy)
    odds = {name: (guess_fact(pairs), guess_participation(pairs)) for name, pairs in scopes.items()}
    fact, part = (at_most(share) for share in odds[first])
    rows = tuple(
        (name[0].upper() + name[1:], odds_text(of_fact), odds_text(of_part))
        for name, (of_fact, of_part) in odds.items()
    )
    return Chapter(
        "summary",
        "In short",
        (
            (
                f"{words.condition}, an outsider who knows everything else and sees {first} is right about a yes-or-no "
                f"fact in {words.rows} {fact}; if {words.otherwise}, in 50 of 100."
            ),
            (f"Whether {words.presence} at all, such an outsider guesses correctly {part}, instead of 50 of 100."),
        ),
        (
            ContentTable(
                ("Seen by the outsider", "Right about a fact", "Right about taking part"),
                (("Nothing", "50 of 100 cases", "50 of 100 cases"), *rows),
                "How often an outsider is right, if both possibilities were equally likely before. Upper bounds.",
                frozenset({"Right about a fact", "Right about taking part"}),
            ),
        ),
        (
            (
                "These upper bounds hold for any knowledge about others and any computing power, and for all analysts "
                "together. They follow from epsilon and delta, and include the probability delta."
            ),
        ),
        {
            "unit": protected_noun(policy),
            "odds": {name: {"fact": of_fact, "participation": of_part} for name, (of_fact, of_part) in odds.items()},
            "without release": 0.5,
        },
    )


class _ReaderWords(NamedTuple):
    """How a report speaks to a reader who may be in the data."""

    condition: str
    rows: str
    otherwise: str
    presence: str


def _reader_words(policy: Policy) -> _ReaderWords:
    people = pluralise(policy.data.protects)
    match policy.unit:
        case RowUnit():
            return _ReaderWords("If a row about you is in the data", "that row", "it is not", "that row is in the data")
        case PersonInWindow(_, window, _):
            rows, condition = f"your rows of one {window}", f"If you are among the {people} in the data"
            return _ReaderWords(condition, rows, "you are not", f"{rows} are in the data")
    condition = f"If you are among the {people} in the data"
    return _ReaderWords(condition, "your rows", "you are not", "your rows are in the data")


def protection_chapter(policy: Policy) -> Chapter:
    """Return the unit with its grain, the window, the neighbouring relation, and what is not protected."""
    unit = policy.unit
    window = unit.window.value if isinstance(unit, PersonInWindow) else None
    rows = [
        ("Privacy unit", protected_noun(policy)),
        ("Grain", unit_sentence(policy).removeprefix("Protected: ")),
        ("Window", f"one calendar {window}, time zone {policy.data.timezone}" if window else "none: all time"),
        ("Neighbouring data sets", _neighbours(policy)),
        ("Population", policy.data.population or "this data set only"),
        ("Why this unit", stated(policy.release.unit_reason)),
    ]
    rows += [(f"Unit of table {name}", _table_unit(policy, table)) for name, table in policy.tables.items()]
    return Chapter(
        "protection",
        "Who is protected",
        (unit_sentence(policy), neighbour_sentence(policy)),
        (ContentTable(("", ""), tuple(rows)),),
        tuple(unprotected_sentences(policy)),
        {
            "unit": protected_noun(policy),
            "person": policy.data.protects,
            "window": window,
            "timezone": policy.data.timezone if window else None,
            "neighbours": "add or remove one unit",
            "population": policy.data.population,
        },
    )


def _neighbours(policy: Policy) -> str:
    what = "row" if isinstance(policy.unit, RowUnit) else "unit with all of its rows"
    return f"add or remove one {what}; the number of units is therefore protected, too"


def _table_unit(policy: Policy, table: DeclaredTable) -> str:
    if table.public:
        return "public: nobody is protected"
    root = policy.root_table(table.name)
    through = "" if root is table else f", through {root.name}"
    match root.unit:
        case ColumnUnit(name):
            return f"column {name}{through}"
        case WindowUnit(name, time_column, window):
            return f"column {name} in one {window.value} of {time_column}{through}"
    return "each row by itself"


def parameters_chapter(policy: Policy, budget: Budget, cost: Loss | None) -> Chapter:
    """Return every parameter with its unit of measurement, and what it means."""
    rows = [*_parameter_rows(policy, budget, cost)]
    return Chapter(
        "parameters",
        "Parameters",
        (
            (
                "An epsilon means nothing without its privacy unit and its delta. Epsilons of different units, windows "
                "or deltas must not be compared."
            ),
        ),
        (ContentTable(("Parameter", "Value", "Unit", "Meaning"), tuple(rows), numbers=frozenset({"Value"})),),
        (f"Why this epsilon and delta: {stated(policy.release.epsilon_reason)}",),
        {
            "budget": {
                "epsilon": str(budget.epsilon),
                "delta": str(budget.delta),
                "discover": str(budget.discover),
                "rho": None if budget.rho is None else str(budget.rho),
            },
            "release": None if cost is None else _loss_facts(cost),
            "unit": protected_noun(policy),
        },
    )


def _loss_facts(loss: Loss) -> dict[str, str | None]:
    return {name: None if value is None else str(value) for name, value in vars(loss).items()}


def _parameter_rows(policy: Policy, budget: Budget, cost: Loss | None) -> Iterator[tuple[str, str, str, str]]:
    per = f"per {protected_noun(policy)}"
    log_ratio, probability = f"log of a ratio of probabilities, {per}", f"probability, {per}"
    yield "Budget: epsilon", rounded_up(budget.epsilon), log_ratio, "limit of the privacy loss of all releases together"
    if budget.rho is None:
        yield "Budget: delta", "0", probability, "pure differential privacy: the limit holds without exception"
    else:
        yield "Budget: delta", rounded_up(budget.delta), probability, "the limit epsilon may fail with this probability"
        yield "Budget: rho", rounded_up(budget.rho), f"zCDP, {per}", "the same limit, as charges add up to it"
        meaning = "part of delta for groups that are not declared, shown only above a threshold"
        yield "Budget: delta for selection", rounded_up(budget.discover), probability, meaning
    if limit := policy.dataset_limit:
        yield "Limit of this data set: epsilon", rounded_up(limit.epsilon), log_ratio, "part of the population's budget"
    for who, each in policy.analyst_budgets().items():
        yield f"Limit of analyst {who}: epsilon", rounded_up(each.epsilon), log_ratio, "fairness only, not protection"
    if cost is not None:
        yield from _release_rows(cost, budget, log_ratio, per)


def _release_rows(cost: Loss, budget: Budget, log_ratio: str, per: str) -> Iterator[tuple[str, str, str, str]]:
    if cost.epsilon is not None:
        yield "Release: epsilon", rounded_up(cost.epsilon), log_ratio, "privacy loss of this release"
    else:
        stated_cost = cost_in_budget(cost, budget)
        if stated_cost.epsilon is not None:
            at = f"privacy loss of this release at delta {rounded_up(stated_cost.delta)}"
            yield "Release: epsilon", rounded_up(stated_cost.epsilon), log_ratio, at
        yield "Release: rho", rounded_up(cost.rho), f"zCDP, {per}", "the same privacy loss, as charges add up to it"
    if cost.delta:
        meaning = "part of its delta for groups shown above a threshold"
        yield "Release: delta for selection", rounded_up(cost.delta), f"probability, {per}", meaning


def conversion_chapter(policy: Policy, budget: Budget, cost: Loss | None) -> Chapter:
    """Return epsilon at several deltas, for the release and for the whole budget."""
    conversions = {"the whole budget": epsilons_of_budget(budget)}
    if cost is not None:
        conversions = {"this release": epsilons_of_loss(cost, budget.delta)} | conversions
    tables = tuple(_conversion_table(name, pairs, policy) for name, pairs in conversions.items())
    note = (
        f"With delta 0, epsilon of the whole budget is {rounded_up(budget.epsilon)}."
        if budget.rho is None
        else "At a delta above its own, the whole budget keeps its epsilon: charges of pure noise may use all of it."
    )
    return Chapter(
        "conversion",
        "Epsilon at other values of delta",
        (
            (
                "The rows of a table are one guarantee, stated at several deltas: all of them hold. A smaller epsilon "
                "at a larger delta is not a better protection."
            ),
            note,
        ),
        tables,
        facts={
            name: [{"epsilon": str(epsilon), "delta": str(delta)} for epsilon, delta in pairs]
            for name, pairs in conversions.items()
        },
    )


def _conversion_table(name: str, pairs: list[EpsilonDelta], policy: Policy) -> ContentTable:
    rows = tuple((rounded_up(delta), rounded_up(epsilon)) for epsilon, delta in pairs)
    header = f"epsilon per {protected_noun(policy)}"
    return ContentTable(("delta", header), rows, f"Epsilon of {name}", frozenset({"delta", header}))


def bounds_chapter(policy: Policy, record: ReleaseRecord | None, summary: LedgerSummary | None) -> Chapter:
    """Return the bounds of contributions and of values, where they came from, and the released clipping bias."""
    private = [table for table in policy.tables.values() if not table.public]
    used = record.bounds if record and record.bounds else tuple(_declared_bounds(private, summary))
    contributions = tuple((bound.table, bound.name, bound.value, bound.origin) for bound in used)
    paid_bounds = summary.bound_charges if summary else 0
    values = tuple(
        (table.name, column.name, *_values_and_origin(table, column, summary))
        for table in private
        for column in table.columns.values()
    )
    clipping = record.clipping if record and record.clipping else "not released"
    noun = pluralise(protected_noun(policy))
    return Chapter(
        "bounds",
        "Bounds, and where they came from",
        (
            (
                "What one unit contributes is bounded, whatever is in the data: contributions beyond the bounds are "
                "scaled down, and values outside a range are clamped or left out. Both make numbers biased; neither "
                "weakens the protection."
            ),
        ),
        (
            ContentTable(("Table", "Bound", "Value", "Origin"), contributions, "Contributions of one unit"),
            ContentTable(("Table", "Column", "Values", "Origin"), values, "Values of columns"),
        ),
        (
            f"Contributions above the bounds (clipping bias): {clipping}.",
            f"Charges for bounds chosen privately from the data: {paid_bounds}.",
            f"How the declared bounds and lists were chosen: {stated(policy.release.bounds_reason)}",
            f"Bounds that are taken from the data without being charged disclose its extreme {noun}.",
        ),
        {
            "contributions": [vars(bound) for bound in used],
            "values": [dict(zip(("table", "column", "values", "origin"), row, strict=True)) for row in values],
            "clipping": record.clipping if record else None,
            "charges for bounds": paid_bounds,
        },
    )


def _declared_bounds(tables: list[DeclaredTable], summary: LedgerSummary | None) -> Iterator[ContributionBound]:
    for table in tables:
        is_paid = summary is not None and summary.paid_histograms(table.name)
        for name, bound in (("groups per unit", table.groups), ("rows per unit and group", table.rows)):
            yield ContributionBound(table.name, name, _bound_text(bound), _bound_origin(bound, is_paid=is_paid))
        if table.contribution_max:
            text = f"{table.contribution_max:,} (a statement, not enforced)"
            yield ContributionBound(table.name, "rows per unit", text, "declared")


def _bound_text(bound: Bound | None) -> str:
    return "chosen for each query" if bound in (None, AUTO) else f"{bound:,}"


def _bound_origin(bound: Bound | None, *, is_paid: bool) -> BoundOrigin:
    return "automatic, paid" if bound in (None, AUTO) else DECLARED_AFTER if is_paid else "declared"


def _values_and_origin(table: DeclaredTable, column: DeclaredColumn, summary: LedgerSummary | None) -> tuple[str, str]:
    if is_unit(table, column):
        return f"{column.type}: the privacy unit", "never shown, only counted and joined on"
    is_paid = isinstance(column.domain, Between) and summary and summary.paid_histograms(table.name, column.name)
    return domain_text(column.domain, column), DECLARED_AFTER if is_paid else _value_origin(column)


def is_unit(table: DeclaredTable, column: DeclaredColumn) -> bool:
    """Whether a column identifies the privacy unit of its table."""
    return isinstance(table.unit, ColumnUnit | WindowUnit) and table.unit.name == column.name


def domain_text(domain: Domain, column: DeclaredColumn) -> str:
    """Return the declared values of a column as a text."""
    null = "; missing values are a group" if column.null else ""
    match domain:
        case Between(low, high, step, outside):
            steps = f" in steps of {format_number(step)}" if step is not None else ""
            beyond = "others are clamped" if outside == "clip" else "others count as missing"
            return f"{_value(low)} to {_value(high)}{steps}; {beyond}{null}"
        case Keys(values) if len(values) <= _FEW_VALUES:
            return f"{', '.join(map(_value, values))}{null}"
        case Keys(values):
            return f"{len(values):,} listed values, such as {', '.join(map(_value, values[:3]))}{null}"
        case References(table, name):
            return f"those of {table}.{name}, a public table{null}"
    return f"{column.type}: no declared values{null}"


def _value(value: object) -> str:
    """Write a value of a domain; a time at the beginning or end of a day as that day."""
    if isinstance(value, datetime) and value.time() in (time.min, time.max):
        return value.date().isoformat()
    return format_number(value) if isinstance(value, Fraction) else str(value)


def _value_origin(column: DeclaredColumn) -> str:
    match column.domain:
        case Between() | Keys():
            return "declared"
        case References():
            return "public table"
    return "none: never a group, declared unique" if column.unique else "none: never summed; groups above a threshold"
