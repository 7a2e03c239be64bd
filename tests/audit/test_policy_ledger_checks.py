"""What the audit of a policy checks of the account, and that it sees each way to break it."""

import pytest

from discreet.audit.policy import ledger_checks as policy_account
from discreet.audit.policy import neighbouring_databases
from discreet.audit.policy.curator_pairs import cost_request, open_curator_pairs, prepare_query
from discreet.audit.policy.ledger_checks import ledger_checks
from discreet.audit.policy.query_suite import audit_queries
from discreet.kernel import errors, release
from discreet.kernel.event import Receipt
from discreet.kernel.ledger import Ledger
from discreet.kernel.loss import Budget
from discreet.kernel.numbers import as_fraction
from discreet.policy import Policy

POLICY = """
[data]
name = "clinic"
[budget]
epsilon = 2
[tables.visits]
source = "visits.parquet"
unit = "patient"
groups = 1
rows = 2
[tables.visits.columns]
patient = { type = "integer" }
"""
PAID = "Queries are charged before data is read, and failures reveal nothing"
KEPT = "After a crash the charge is kept and the ledger verifies"
ENDS = "An exhausted budget refuses queries before data is read"
ORDER = "The order of the rows does not matter"


def broken(policy=POLICY):
    """Return the checks that do not hold, with what was seen."""
    found = Policy.parse(policy)
    price = cost_request(found, as_fraction(1, "epsilon"))
    with open_curator_pairs(found) as pairs:
        asked = [prepare_query(pairs[0].present, audit_queries(found)[0], price)]
    return {check.name: check.coverage for check in ledger_checks(found, asked, price) if not check.holds}


@pytest.fixture(autouse=True)
def two_places(monkeypatch):
    places = tuple(
        place
        for place in neighbouring_databases.PLACEMENTS
        if place.name == policy_account._PLACEMENT_NAME or place.alone
    )
    monkeypatch.setattr(neighbouring_databases, "PLACEMENTS", places)


@pytest.mark.long
@pytest.mark.parametrize("delta", ["", "delta = 1e-9"])
def test_a_sound_ledger_passes(delta):
    assert broken(POLICY.replace("epsilon = 2", f"epsilon = 2\n{delta}")) == {}


@pytest.mark.long
def test_reading_before_charging_is_caught(monkeypatch):
    sound = release.release_totals

    def hasty(asks, *, engine, **more):
        for each in asks:
            engine.totals(each.question)
        return sound(asks, engine=engine, **more)

    monkeypatch.setattr(release, "release_totals", hasty)
    found = broken()
    assert {PAID, KEPT, ENDS} <= set(found)
    assert "rows were read before the charge" in found[PAID]


@pytest.mark.long
def test_a_failure_that_discloses_its_cause_is_caught(monkeypatch):
    monkeypatch.setattr(errors, "FAILED", "the value of row 7 is too large")
    assert set(broken()) == {PAID}


@pytest.mark.long
def test_a_ledger_that_forgets_a_charge_is_caught(monkeypatch):
    monkeypatch.setattr(Ledger, "charge", lambda self, loss, event, key=None: Receipt("lost"))
    monkeypatch.setattr(Ledger, "settle", lambda self, receipt, answer: None)
    assert {PAID, KEPT, ENDS} <= set(broken())


@pytest.mark.long
def test_a_budget_that_never_ends_is_caught(monkeypatch):
    monkeypatch.setattr(policy_account, "_MAX_ASKS", 5)
    monkeypatch.setattr(Budget, "covers", lambda self, spent: True)
    assert broken() == {ENDS: "no refusal after 5 answers"}


@pytest.mark.long
def test_totals_that_depend_on_the_order_of_rows_are_caught(monkeypatch):
    sound, sides = policy_account.exact_totals, iter(range(100))

    def shaky(curator, question):
        found = sound(curator, question)
        found[0].values[0, 0] += next(sides)
        return found

    monkeypatch.setattr(policy_account, "exact_totals", shaky)
    assert set(broken()) == {ORDER}
