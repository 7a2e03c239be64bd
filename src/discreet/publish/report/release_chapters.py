"""Chapters on a release: its parts, what was done to them after the noise, accuracy, and the data dictionary."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from discreet.kernel.loss import ZERO_LOSS, Budget, Loss
from discreet.policy import Policy
from discreet.publish.record import ReleasePart, ReleaseRecord
from discreet.publish.report.content import Chapter, ContentTable, stated_list
from discreet.publish.report.ledger_chapters import LedgerSummary
from discreet.publish.report.number_text import cost_text, loss_text, percent_text, time_text

_ADDING_NOTE = "The costs of its parts add up in rho, not in epsilon."
NO_INVARIANTS = "None: nothing was released without noise."


def release_chapter(
    policy: Policy, budget: Budget, summary: LedgerSummary | None, record: ReleaseRecord | None
) -> Chapter:
    """Return what was released at which cost, and what is exact or was computed afterwards."""
    invariants = stated_list(invariants_of(policy, record), NO_INVARIANTS)
    others = stated_list(policy.release.other_releases, "None.")
    notes = (f"Invariants and other exact numbers: {invariants}", f"Releases outside this ledger: {others}")
    if record is None:
        sentence = "This report is about a policy. No release belongs to it; charges are listed further below."
        no_facts = {"release": None, "invariants": invariants, "other releases": others}
        return Chapter("release", "What is released", (sentence,), notes=notes, facts=no_facts)
    headers = ("Part", "Kind", "Rows", "Cost", "State", "Content")
    together = Counter(part.receipt for part in record.parts if part.receipt)
    costs = {cost: cost_text(cost, budget) for cost in {part.cost for part in record.parts}}
    rows = tuple(_part_row(part, costs[part.cost], together[part.receipt]) for part in record.parts)
    missing = [part.name for part in record.parts if part.state != "released"]
    cost = cost_text(release_cost(record, summary), budget)
    lines = [f"{record.name}, of {time_text(record.time)}: {cost} in total, charged before any data was read."]
    lines += _charge_problems(record, summary)
    if missing:
        lines.append(f"Charged, but missing because something failed: {', '.join(missing)}.")
    part_notes = [f"{part.name}: {note}" for part in record.parts for note in part.notes]
    facts: dict[str, Any] = {
        "name": record.name,
        "time": record.time,
        "cost": cost,
        "parts": [
            {"name": part.name, "kind": part.kind, "state": part.state, "rows": part.rows, "receipt": part.receipt}
            for part in record.parts
        ],
        "missing": missing,
        "invariants": invariants,
        "other releases": others,
        "post-processing": list(record.post_processing),
    }
    adding = [_ADDING_NOTE] * (len(costs) > 1 and budget.rho is not None)
    processing = " ".join(record.post_processing) or "nothing."
    return Chapter(
        "release",
        "What was released",
        tuple(lines),
        (ContentTable(headers, rows, "Parts of the release", frozenset({"Rows"})),),
        (*adding, *notes, f"Computed after the noise was added, which costs no privacy: {processing}", *part_notes),
        facts,
    )


def release_cost(record: ReleaseRecord, summary: LedgerSummary | None) -> Loss:
    """Return the loss of a release: what the ledger charged for its receipts, also if that was for an earlier answer.

    A receipt that is not in the ledger counts with the cost of its part.
    """
    charges = _charges(summary)
    receipts = {part.receipt: charges.get(part.receipt, part.cost) for part in record.parts if part.receipt}
    return sum([*receipts.values(), *(part.cost for part in record.parts if not part.receipt)], ZERO_LOSS)


def _charges(summary: LedgerSummary | None) -> dict[str, Loss]:
    return {event.id: event.loss for event in summary.events if event.loss} if summary else {}


def _charge_problems(record: ReleaseRecord, summary: LedgerSummary | None) -> Iterator[str]:
    """Yield how the release differs from its charges in the ledger."""
    charges = _charges(summary)
    unknown = [part.name for part in record.parts if part.cost != ZERO_LOSS and part.receipt not in charges]
    if unknown:
        yield f"The ledger has no charge for: {', '.join(unknown)}. It is not the ledger of this release."
    elif not (charged := release_cost(record, summary)).includes(record.cost):
        yield f"The ledger charged only {loss_text(charged)} for it. It is not the ledger of this release."


def invariants_of(policy: Policy, record: ReleaseRecord | None) -> tuple[str, ...] | None:
    """Return the invariants that the plan states, or else the policy; None if neither does."""
    return record.invariants if record is not None and record.invariants is not None else policy.release.invariants


def _part_row(part: ReleasePart, cost: str, together: int) -> tuple[str, ...]:
    """Return a part as a row of a table; `together` is the number of parts that share its charge."""
    rows = "" if part.rows is None else f"{part.rows:,}"
    shared = f" for {together} parts together" if together > 1 else ""
    return part.name, part.kind, rows, cost + shared, part.state, part.description


def accuracy_chapter(record: ReleaseRecord | None) -> Chapter:
    """Return how accurate each table is: small groups first, because they carry most of the noise."""
    parts = record.parts if record is not None else ()
    with_margins = [part for part in parts if part.margins]
    if not with_margins:
        sentence = "No table with margins of error was released." if record else "Nothing was released yet."
        return Chapter("accuracy", "Accuracy", (sentence,))
    classes = tuple(
        (part.name, each.label, f"{each.cells:,}", f"±{each.median_margin:,.4g}", percent_text(each.reliable_share))
        for part in with_margins
        if part.margins
        for each in part.margins.by_size
    )
    overall = tuple(
        (
            part.name,
            f"±{part.margins.median:,.4g}",
            f"±{part.margins.largest:,.4g}",
            percent_text(part.margins.reliable_share),
        )
        for part in sorted(with_margins, key=_reliable_share)
        if part.margins
    )
    tables = [
        ContentTable(
            ("Table", "Size of the number", "Cells", "Median margin", "Reliable cells"),
            classes,
            "By the size of the released number, small groups first",
            frozenset({"Cells", "Median margin", "Reliable cells"}),
        )
    ] * bool(classes)
    tables.append(
        ContentTable(
            ("Table", "Median margin", "Largest margin", "Reliable cells"),
            overall,
            "By table, the least reliable first",
            frozenset({"Median margin", "Largest margin", "Reliable cells"}),
        )
    )
    without = [part.name for part in parts if not part.margins]
    return Chapter(
        "accuracy",
        "Accuracy",
        (
            (
                "± is the 95 % margin of error from privacy noise. A cell is reliable if its margin is at most a "
                "quarter of its value. Values of small groups are mostly noise."
            ),
        ),
        tuple(tables),
        tuple([f"Without margins: {', '.join(without)}."] if without else []),
        {part.name: part.margins and asdict(part.margins) for part in parts},
    )


def _reliable_share(part: ReleasePart) -> float:
    return part.margins.reliable_share if part.margins else 0.0


def dictionary_chapter(record: ReleaseRecord | None) -> Chapter | None:
    """Return the data dictionary of the released tables; None without a release."""
    if record is None or not any(part.columns for part in record.parts):
        return None
    return Chapter(
        "dictionary",
        "Data dictionary",
        ("The columns of each released table. Columns of margins belong to the number whose name they begin with.",),
        tuple(_dictionary_tables(record)),
        facts={part.name: [asdict(column) for column in part.columns] for part in record.parts},
    )


def _dictionary_tables(record: ReleaseRecord) -> Iterator[ContentTable]:
    for part in record.parts:
        if part.columns:
            rows = tuple((each.name, each.type, each.domain or "open", each.meaning) for each in part.columns)
            yield ContentTable(("Column", "Type", "Values", "Meaning"), rows, part.name)
