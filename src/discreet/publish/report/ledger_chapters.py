"""Chapters on the ledger: the budget, what remains, its history, and every charge."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

from discreet.kernel.event import OWNER, Event
from discreet.kernel.ledger.chain import RowKind
from discreet.kernel.ledger.ledger import Ledger
from discreet.kernel.ledger.terms import Terms
from discreet.kernel.loss import ZERO_LOSS, Budget, Loss
from discreet.policy import Policy
from discreet.policy.guarantee import protected_noun
from discreet.pricing.allocation import largest_epsilon
from discreet.pricing.remaining_budget import remaining_budget
from discreet.privacy.conversion import conversion_delta
from discreet.publish.ledger_history import LedgerHistory, OwnerAct, read_history
from discreet.publish.report.content import Chapter, ContentTable
from discreet.publish.report.ledger_events import ReportedEvent, reported_event
from discreet.publish.report.number_text import (
    cost_text,
    counted_noun,
    loss_text,
    percent_text,
    rounded_down,
    rounded_up,
    time_text,
)

HISTOGRAM = "contribution histogram"  # the purpose of a charge
_MAX_SHOWN = 200  # charges in the HTML page; all are in the JSON
_ACTS = {
    RowKind.CREATE: "created",
    RowKind.BUDGET: "terms changed by the owner",
    RowKind.JOIN: "data set joined",
    RowKind.ACKNOWLEDGE: "failures or a rollback acknowledged by the owner",
    RowKind.MOVE: "moved to another location",
    RowKind.ARRIVE: "arrived from another location",
}
NO_LEDGER = "There is no ledger yet: nothing was ever charged."


@dataclass(frozen=True)
class LedgerSummary:
    """What a report needs of a ledger, read at one moment; `reported` are its charges as they are shown."""

    history: LedgerHistory
    reported: tuple[ReportedEvent, ...]

    @property
    def terms(self) -> Terms:
        """The terms in force."""
        return self.history.terms

    @property
    def spent(self) -> Loss:
        """The total spent."""
        return self.history.spent

    @property
    def events(self) -> tuple[Event, ...]:
        """All charges."""
        return self.history.events

    @property
    def bound_charges(self) -> int:
        """The number of charges for bounds that were chosen privately."""
        return sum(event.purpose == HISTOGRAM for event in self.reported)

    def paid_histograms(self, table: str, column: str = "") -> bool:
        """Whether histograms of a table's contributions, or of a column's values, were charged, as by `advise`."""
        of_table = re.compile(rf'\bFROM "?{re.escape(table)}"?(?!\w)', re.IGNORECASE)
        begin = f'SELECT COALESCE(WIDTH_BUCKET("{column}"'
        return any(
            (event.query.startswith(begin) if column else event.purpose == HISTOGRAM) and of_table.search(event.query)
            for event in self.reported
        )

    def changes(self, kind: RowKind) -> list[OwnerAct]:
        """Return the owner's acts of one kind."""
        return [act for act in self.history.acts if act.kind == kind]


def read_ledger(ledger: Ledger) -> LedgerSummary:
    """Read a ledger for a report; nothing is written."""
    history = read_history(ledger)
    return LedgerSummary(history, tuple(map(reported_event, history.events)))


def budget_chapter(policy: Policy, summary: LedgerSummary | None, differences: Sequence[str]) -> Chapter:
    """Return what is spent and what remains, by data set and analyst, and the history of the budget."""
    if summary is None:
        return Chapter("budget", "Budget", (NO_LEDGER,), facts={"spent": None})
    budget = summary.terms.budget
    unit = protected_noun(policy)
    remaining = remaining_budget(budget, summary.spent)
    share = _share_spent(budget, summary.spent)
    sentences = [
        (
            f"Spent: {cost_text(summary.spent, budget)} per {unit} ({percent_text(share)} of the budget). "
            f"Remaining: {_remaining_text(budget, remaining)} per {unit}."
        ),
        (
            "The amount spent is what was charged; the guarantee towards an analyst who adapts to answers is that of "
            "the whole budget, not of the part spent so far."
        ),
    ]
    if differences:
        sentences.append(f"The policy differs from the terms in force: {'; '.join(differences)}. The ledger's apply.")
    history = tuple(_history_rows(summary.history))
    return Chapter(
        "budget",
        "Budget",
        tuple(sentences),
        (
            ContentTable(
                ("Whose", "Charges", "Spent"),
                tuple(_scopes(summary)),
                "By data set and analyst",
                frozenset({"Charges"}),
            ),
            ContentTable(("Time", "Act", "Terms"), history, "History of the budget"),
        ),
        facts={
            "spent": {name: None if value is None else str(value) for name, value in vars(summary.spent).items()},
            "remaining": {name: None if value is None else str(value) for name, value in vars(remaining).items()},
            "share spent": share,
            "history": [
                {"time": act.time, "act": _ACTS[act.kind], "terms": act.terms and _budget_text(act.terms.budget)}
                for act in summary.history.acts
            ],
            "differences": list(differences),
        },
    )


def _share_spent(budget: Budget, spent: Loss) -> float:
    if budget.rho is None:
        return 1.0 if spent.epsilon is None else float(spent.epsilon / budget.epsilon)
    if spent.epsilon is not None and not spent.delta and spent.epsilon <= budget.epsilon:
        return float(min(spent.rho / budget.rho, spent.epsilon / budget.epsilon))
    return float(max(spent.rho / budget.rho, spent.delta / budget.discover if budget.discover else 0))


def _remaining_text(budget: Budget, remaining: Loss) -> str:
    if budget.rho is None:
        return f"epsilon {rounded_down(remaining.epsilon or ZERO_LOSS.rho)}"
    selection = f" and delta {rounded_down(remaining.delta)} for selection" if budget.discover else ""
    epsilon = rounded_down(largest_epsilon(budget, remaining))
    rho = f"rho {rounded_down(remaining.rho)}{selection}"
    return f"epsilon {epsilon} at delta {rounded_up(conversion_delta(budget))} ({rho})"


def _scopes(summary: LedgerSummary) -> Iterator[tuple[str, str, str]]:
    for label, key in (("data set", "dataset"), ("analyst", "by")):
        groups: dict[str, list[Event]] = {}
        for event in summary.events:
            if name := getattr(event, key):
                groups.setdefault(name, []).append(event)
        for name, events in sorted(groups.items()):
            total = sum((event.loss for event in events if event.loss), ZERO_LOSS)
            whose = name if key == "by" and name == OWNER else f"{label} {name}"
            yield whose, f"{len(events):,}", cost_text(total, summary.terms.budget)


def _history_rows(history: LedgerHistory) -> Iterator[tuple[str, str, str]]:
    for act in history.acts:
        lost = "" if act.lost == ZERO_LOSS else f"{loss_text(act.lost)} counted as spent"
        what = _ACTS[act.kind] + (f": {act.dataset}" if act.dataset and act.kind == RowKind.JOIN else "")
        yield time_text(act.time), what, _budget_text(act.terms.budget) if act.terms else lost


def _budget_text(budget: Budget) -> str:
    return f"epsilon {rounded_up(budget.epsilon)}" + (f", delta {rounded_up(budget.delta)}" if budget.delta else "")


def events_chapter(summary: LedgerSummary | None) -> Chapter:
    """Return every charge; a page shows the last ones."""
    events = summary.reported if summary else ()
    if not events:
        return Chapter("events", "Charges", ("No charge is in the ledger.",), facts={"events": []})
    shown = tuple(_event_row(event) for event in events[-_MAX_SHOWN:])
    unanswered = sum(event.state != "released" for event in events)
    open_ones = f"{unanswered:,} without an answer, which stay charged" if unanswered else "all have an answer"
    sentences = [
        f"{counted_noun(len(events), 'charge')}, each recorded before data was read; {open_ones}.",
        "The cost follows from the scale of noise, as a multiple of the sensitivity; report.json has both.",
    ]
    if len(events) > _MAX_SHOWN:
        sentences.append(f"The last {_MAX_SHOWN} are shown; report.json has all.")
    headers = ("Time", "Who", "Query", "Mechanism", "Cost", "State")
    table = ContentTable(headers, shown, "Charges, oldest first")
    facts = {"events": [asdict(event) for event in events]}
    return Chapter("events", "Charges", tuple(sentences), (table,), facts=facts)


def _event_row(event: ReportedEvent) -> tuple[str, ...]:
    who = f"{event.by}, {event.dataset}" if event.dataset else event.by
    query = f"{event.purpose.capitalize()} for: {event.query}" if event.purpose else event.query
    counted = {text: sum(str(each) == text for each in event.noises) for text in map(str, event.noises)}
    noise = "; ".join(f"{count} times {text}" if count > 1 else text for text, count in counted.items())
    return time_text(event.time), who, query, noise, event.cost, event.state
