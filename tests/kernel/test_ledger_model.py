"""The ledger against a few lines of Python that say what it should do."""

import tempfile
from fractions import Fraction
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, rule
from kernel.ledger_locations import place_of

from discreet.kernel.errors import Failed, LedgerError, Refused
from discreet.kernel.event import Event
from discreet.kernel.loss import Budget, Loss
from discreet.ledger_admin.verify import verify_ledger

NAMES = st.sampled_from(["owner", "ana", "bob", "eve"])
PRICES = st.builds(Fraction, st.integers(0, 12), st.sampled_from([7, 10, 12]))
LIMITS = st.builds(Fraction, st.integers(1, 40), st.just(10))


class AgainstModel(RuleBasedStateMachine):
    """Pure prices only: the model's budget is one fraction."""

    paid = Bundle("paid")
    new_place = None  # called with a folder

    @initialize(total=LIMITS, ana=LIMITS, bob=LIMITS)
    def create(self, total, ana, bob):
        self.folder = tempfile.TemporaryDirectory()
        self.place = type(self).new_place(Path(self.folder.name))
        self.set_model(total, ana, bob)
        self.charges = []  # [by, price, key, question, receipt, answer]
        budgets = {"ana": Budget(ana), "bob": Budget(bob)}
        self.ledger = self.place.create(budget=Budget(total), analysts=budgets)

    def set_model(self, total, ana, bob):
        self.limits = {"ana": ana, "bob": bob}
        self.total = total

    def model_spent(self, by=None):
        return sum((price for who, price, *_ in self.charges if by in (None, who)), Fraction(0))

    @rule(
        target=paid,
        by=NAMES,
        price=PRICES,
        key=st.sampled_from([None, "k1", "k2"]),
        question=st.sampled_from("pq"),
    )
    def charge(self, by, price, key, question):
        def act():
            event = Event(mechanism="{}", sensitivity="{}", question=question, by=by)
            return self.ledger.charge(Loss(price), event, key)

        earlier = [c for c in self.charges if key and (c[0], c[2]) == (by, key)]
        if by == "eve" or (earlier and earlier[0][3] != question):
            with pytest.raises(Refused):
                act()
        elif earlier and earlier[0][5] is None:
            with pytest.raises(Failed):
                act()
        elif earlier:
            assert act() == type(earlier[0][4])(earlier[0][4].id, earlier[0][5])
        elif self.model_spent() + price > self.total or self.model_spent(by) + price > self.limits.get(by, self.total):
            with pytest.raises(Refused):
                act()
        else:
            record = [by, price, key, question, act(), None]
            self.charges.append(record)
            return record
        return None

    @rule(record=paid, answer=st.binary(max_size=8))
    def settle(self, record, answer):
        if record is None:
            return
        if record[5] is not None:
            with pytest.raises(LedgerError):
                self.ledger.settle(record[4], answer)
        else:
            self.ledger.settle(record[4], answer)
            record[5] = answer

    @rule(record=consumes(paid))
    def forget(self, record):
        """Leave a charge as it is."""

    @rule(total=LIMITS, ana=LIMITS, bob=LIMITS)
    def set_budget(self, total, ana, bob):
        self.ledger.set_budget(Budget(total), analysts={"ana": Budget(ana), "bob": Budget(bob)})
        self.set_model(total, ana, bob)

    @rule()
    def acknowledge(self):
        self.ledger.acknowledge()

    @rule()
    def reopen(self):
        self.ledger.close()
        self.ledger = self.place.open()

    @invariant()
    def spent_agrees(self):
        for by in (None, "owner", "ana", "bob", "eve"):
            assert self.ledger.spent(by).epsilon == self.model_spent(by)

    def teardown(self):
        if hasattr(self, "ledger"):
            verify_ledger(self.ledger)
            states = [(event.by, event.loss.epsilon, event.state) for event in self.ledger.events()]
            assert states == [(c[0], c[1], "reserved" if c[5] is None else "released") for c in self.charges]
            self.ledger.close()
            self.folder.cleanup()


@pytest.mark.long(but=["file-4"])
@pytest.mark.parametrize(
    ("kind", "examples"),
    [("file", 4), ("file", 60), ("postgres", 6), pytest.param("postgres", 100, marks=pytest.mark.slow)],
)
def test_the_ledger_agrees_with_a_simple_model(kind, examples, request):
    from hypothesis.stateful import run_state_machine_as_test

    class Machine(AgainstModel):
        new_place = staticmethod(lambda folder: place_of(kind, request, folder))

    quick = settings(
        max_examples=examples,
        stateful_step_count=30,
        deadline=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(Machine, settings=quick)
