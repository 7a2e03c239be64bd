"""A policy, a ledger with charges, and the record of a release."""

from dataclasses import replace

from discreet.curator.ledger_terms import policy_terms
from discreet.kernel.event import Event
from discreet.kernel.loss import Loss
from discreet.kernel.mechanism import Gaussian, Laplace, Sensitivity
from discreet.ledger_sqlite import memory_ledger
from discreet.policy import Policy
from discreet.publish import (
    ColumnDescription,
    ContributionBound,
    MarginSummary,
    ReleasePart,
    ReleaseRecord,
    SizeClass,
)

VALUES = {
    "data": {"name": "clinic", "protects": "patient", "ledger": "secret-ledger.sqlite"},
    "budget": {"epsilon": "2", "delta": "1e-9", "analysts": {"ana": {"epsilon": "1"}}},
    "tables": {
        "visits": {
            "source": "secret-source.csv",
            "unit": "patient",
            "groups": 3,
            "rows": 10,
            "columns": {
                "patient": {"type": "integer"},
                "at": {"type": "date", "between": ["2024-01-01", "2026-06-30"]},
                "cost": {"type": "decimal", "between": [0, 5000], "step": "0.01"},
                "ward": {"type": "text", "in": ["surgery", "medicine"]},
            },
        }
    },
}
PURE = {"epsilon": "1"}


def policy_with(**sections):
    """Return the policy with some keys of sections replaced; a table's keys are those of visits."""
    from datetime import date

    tables = {**VALUES["tables"]["visits"], **sections.pop("visits", {})}
    columns = dict(tables["columns"])
    columns["at"] = {"type": "date", "between": [date(2024, 1, 1), date(2026, 6, 30)]}
    budget = sections.pop("budget", VALUES["budget"])
    data = {**VALUES["data"], **sections.pop("data", {})}
    values = {"data": data, "budget": budget, "tables": {"visits": {**tables, "columns": columns}}, **sections}
    return Policy.from_dict(values)


def ledger_with(policy, *charges):
    """Return a ledger in memory with charges: a loss, and whether it is answered."""
    ledger = memory_ledger(**policy_terms(policy))
    for number, (loss, answered, by) in enumerate(charges):
        noise = Laplace(10) if policy.budget.rho is None else Gaussian(20)
        question = f'{{"sql":"SELECT COUNT(*) FROM visits -- {number}"}}'
        event = Event(mechanism=str(noise), sensitivity=str(Sensitivity(1, 10)), question=question, by=by)
        receipt = ledger.charge(loss, event)
        if answered:
            ledger.settle(receipt, b"731")
    return ledger


WARDS = ReleasePart(
    "wards",
    "family table",
    "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward",
    Loss(None, "1/200"),
    "5e1f",
    "released",
    3,
    (
        ColumnDescription("ward", "text", "the ward", "surgery, medicine"),
        ColumnDescription("n_margin", "real", "95 % margin of error of n from privacy noise"),
    ),
    MarginSummary(12.5, 14.0, 0.97, (SizeClass("below 10", 4, 12.4, 0.0), SizeClass("10 and more", 30, 12.5, 1.0))),
    ("Groups below 0 are possible.",),
)
ROWS = ReleasePart("people", "synthetic rows", "rows", Loss(None, "1/100"), "5e20", "released", 20_000)
RECORD = ReleaseRecord(
    "Wards 2026",
    "[release]\nname = 'wards'\n",
    "2026-11-18T12:00:00+00:00",
    (WARDS, ROWS),
    (ContributionBound("visits", "rows per unit", "7", "automatic, paid"),),
    "about 1.2 % of rows",
    ("Least squares makes the tables add up.",),
    None,
    (("tables/wards.csv", "ab" * 32),),
)


def changed_record(**changes):
    return replace(RECORD, **changes)
