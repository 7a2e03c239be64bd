import sqlite3
import stat
import threading
from fractions import Fraction

import pytest
from kernel.ledger_locations import KINDS, place_of

from discreet.kernel.errors import Failed, LedgerError, PolicyError, Refused
from discreet.kernel.event import Event, Receipt, canonical_json
from discreet.kernel.ledger.chain import RowKind, event_text
from discreet.kernel.ledger.terms import OverBudget, round_for_ledger, shortfall
from discreet.kernel.loss import ZERO_LOSS, Budget, Loss
from discreet.ledger_admin.verify import verify_ledger
from discreet.ledger_sqlite import create_ledger, memory_ledger, open_ledger
from discreet.publish.ledger_history import read_history

CENT = Loss("1/100")


def event(question="SELECT COUNT(*) FROM t", by="owner"):
    mechanism = canonical_json({"name": "laplace", "scale": "10"})
    return Event(mechanism=mechanism, sensitivity=canonical_json({"groups": 1, "size": 1}), question=question, by=by)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.sqlite"


@pytest.fixture(params=KINDS)
def place(request, tmp_path):
    return place_of(request.param, request, tmp_path)


@pytest.fixture(params=[*KINDS, "memory"])
def ledger(request, tmp_path):
    if request.param == "memory":
        made = memory_ledger(name="demo", budget=Budget(1))
    else:
        made = place_of(request.param, request, tmp_path).create()
    with made as ledger:
        yield ledger


def snapshot(ledger):
    return ledger.spent(), ledger.spent("ana"), ledger.events()


def test_a_charge_is_recorded_as_data_and_settling_releases_it(ledger):
    receipt = ledger.charge(CENT, event(by="ana"))
    (reserved,) = ledger.events()
    assert (reserved.id, reserved.state, reserved.loss) == (receipt.id, "reserved", CENT)
    assert (reserved.by, reserved.mechanism) == ("ana", '{"name":"laplace","scale":"10"}')
    assert reserved.time.endswith("+00:00")
    ledger.settle(receipt, b"42")
    assert ledger.events()[0].state == "released"
    verify_ledger(ledger)


def test_an_act_of_the_owner_is_in_the_chain_and_changes_neither_totals_nor_charges(ledger):
    ledger.charge(CENT, event(by="ana"))
    before, terms = snapshot(ledger), ledger.terms
    ledger.record_act({"act": "token issued", "name": "ana", "role": "analyst"})
    assert (snapshot(ledger), ledger.terms) == (before, terms)
    verify_ledger(ledger)
    history = read_history(ledger)
    (act,) = history.recorded_acts
    assert (act.details["name"], str(act)) == ("ana", "token issued: name ana, role analyst")
    assert history.last_row == 3
    assert {changed.kind for changed in history.acts} == {RowKind.CREATE}
    with pytest.raises(ValueError, match="act"):
        ledger.record_act({"act": "x" * 10_001})
    assert read_history(ledger).last_row == 3


def test_an_act_that_spends_something_is_found():
    with memory_ledger(name="demo", budget=Budget(1)) as ledger:
        with ledger.write_transaction() as (table, chain):
            table.add_row(chain.next_row(RowKind.ACT, "owner", "{}", loss=CENT))
        with pytest.raises(LedgerError, match="row 2"):
            verify_ledger(ledger)


def test_unsettled_charges_are_found_on_every_lookup(ledger):
    def found():
        return [each.id for each in ledger.unsettled_events()]

    receipts = [ledger.charge(CENT, event()) for _ in range(4)]
    without = [receipt.id for receipt in receipts]
    assert found() == found() == without
    for place in (1, 0, 3, 2):
        ledger.settle(receipts[place], b"42")
        without.remove(receipts[place].id)
        assert found() == found() == without
    late = ledger.charge(CENT, event())
    assert found() == found() == [late.id]
    ledger.acknowledge()
    assert found() == []
    last = ledger.charge(CENT, event())
    assert found() == [last.id]


@pytest.mark.long(only=["postgres"])
def test_a_hundred_hundredths_fit_and_the_next_is_refused(ledger):
    for _ in range(100):
        ledger.charge(CENT, event())
    before = snapshot(ledger)
    with pytest.raises(Refused, match="not enough budget left in total"):
        ledger.charge(CENT, event())
    with pytest.raises(Refused):
        ledger.charge(Loss(Fraction(1, 10**90)), event())
    assert snapshot(ledger) == before
    assert ledger.spent() == Loss(1, Fraction(1, 200))
    verify_ledger(ledger)


def test_a_refusal_states_which_limit_was_exceeded(ledger):
    ledger.charge(Loss("2/3"), event())
    with pytest.raises(OverBudget, match="not enough budget left in total"):
        ledger.charge(Loss("1/2"), event())
    ledger.charge(Loss("1/3"), event())


def test_a_budget_with_a_delta_counts_rho_and_delta_apart(place):
    budget = Budget(1, "1e-6", discover="1/2")
    with place.create(budget=budget) as ledger:
        ledger.charge(Loss(None, budget.rho / 2, budget.discover), event())
        with pytest.raises(Refused, match="not enough budget left in total"):
            ledger.charge(Loss(None, budget.rho / 2, Fraction(1, 10**12)), event())
        ledger.charge(Loss(None, budget.rho / 2), event())
        with pytest.raises(Refused, match="not enough budget left in total"):
            ledger.charge(Loss(None, Fraction(1, 10**50)), event())
    with place.open() as ledger:
        assert ledger.terms.budget == budget
        verify_ledger(ledger)


def test_the_limit_in_rho_is_the_one_that_was_recorded(place):
    budget = Budget(1, "1e-6")
    object.__setattr__(budget, "rho", budget.rho * Fraction(999_999, 1_000_000))  # as another machine may compute
    with place.create(budget=budget) as ledger:
        ledger.charge(Loss(None, budget.rho), event())
    with place.open() as ledger:
        assert ledger.terms.budget.rho == budget.rho
        verify_ledger(ledger)


def test_analysts_have_limits_under_a_total(ledger):
    ledger.set_budget(Budget(1), analysts={"ana": Budget("1/2"), "bob": Budget("3/4")})
    ledger.charge(Loss("1/2"), event(by="ana"))
    with pytest.raises(Refused, match="not enough budget left for ana"):
        ledger.charge(CENT, event(by="ana"))
    with pytest.raises(Refused, match="not enough budget left in total"):
        ledger.charge(Loss("3/4"), event(by="bob"))
    with pytest.raises(Refused, match="'eve' has no access"):
        ledger.charge(CENT, event(by="eve"))
    ledger.charge(Loss("1/4"), event(by="bob"))
    ledger.charge(Loss("1/4"), event(by="owner"))
    with pytest.raises(Refused, match="not enough budget left in total"):
        ledger.charge(CENT, event(by="owner"))
    assert [ledger.spent(by).epsilon for by in ("ana", "bob", "owner", "eve", None)] == [
        Fraction(1, 2),
        Fraction(1, 4),
        Fraction(1, 4),
        0,
        1,
    ]
    verify_ledger(ledger)


def test_the_same_key_returns_the_same_bytes(ledger):
    first = ledger.charge(CENT, event(), key="k")
    ledger.settle(first, b"\x00 answer")
    again = ledger.charge(Loss("1/2"), event(), key="k")
    assert again == Receipt(first.id, b"\x00 answer")
    assert ledger.spent() == CENT
    assert first.answer is None
    ledger.charge(CENT, event(by="ana"), key="k")  # a key belongs to its analyst
    assert ledger.spent() == CENT + CENT


def test_a_full_budget_still_replays_a_key(ledger):
    ledger.settle(ledger.charge(Loss(1), event(), key="k"), b"all")
    assert ledger.charge(Loss(1), event(), key="k").answer == b"all"


def test_an_analyst_who_is_no_longer_listed_gets_no_replay(ledger):
    ledger.settle(ledger.charge(CENT, event(by="ana"), key="k"), b"old")
    ledger.set_budget(Budget(1), analysts={})
    with pytest.raises(Refused):
        ledger.charge(CENT, event(by="ana"), key="k")


def test_the_same_key_for_another_question_is_refused(ledger):
    ledger.settle(ledger.charge(CENT, event(), key="k"), b"1")
    before = snapshot(ledger)
    with pytest.raises(Refused, match="different query"):
        ledger.charge(CENT, event("SELECT 2"), key="k")
    assert snapshot(ledger) == before


def test_a_charge_without_an_answer_is_never_executed_again(ledger):
    ledger.charge(CENT, event(), key="k")
    before = snapshot(ledger)
    with pytest.raises(Failed, match="outcome is unknown"):
        ledger.charge(CENT, event(), key="k")
    assert snapshot(ledger) == before


def test_settling_twice_or_an_unknown_receipt_is_an_error(ledger):
    receipt = ledger.charge(CENT, event(), key="k")
    ledger.settle(receipt, b"first")
    with pytest.raises(LedgerError, match="unknown or already settled"):
        ledger.settle(receipt, b"second")
    with pytest.raises(LedgerError, match="unknown or already settled"):
        ledger.settle(Receipt("feed"), b"third")
    assert ledger.charge(CENT, event(), key="k").answer == b"first"
    verify_ledger(ledger)


def test_a_failure_after_the_charge_is_never_refunded(place):
    def ask(ledger):
        ledger.charge(CENT, event())
        raise ZeroDivisionError

    with place.create() as ledger:
        with pytest.raises(ZeroDivisionError):
            ask(ledger)
        assert ledger.spent() == CENT
    with place.open() as ledger:
        assert ledger.spent() == CENT
        assert ledger.events()[0].state == "reserved"


def test_the_split_of_delta_is_fixed_by_the_first_charge(place):
    with place.create(budget=Budget(1, "1e-9", discover="1/2")) as ledger:
        ledger.set_budget(Budget(1, "1e-9", discover="1/4"), analysts=None)
        ledger.charge(CENT, event())
        for moved in (Budget(1, "1e-9", discover="1/2"), Budget(1, "1e-8", discover="1/4"), Budget(1)):
            with pytest.raises(PolicyError, match=r"delta and its share .* cannot change"):
                ledger.set_budget(moved, analysts=None)
        ledger.set_budget(Budget(2, "1e-9", discover="1/4"), analysts=None)
        assert ledger.terms.budget.epsilon == 2
        verify_ledger(ledger)


def test_a_pure_budget_gets_a_delta_only_if_what_was_spent_fits(place):
    """What was spent in epsilons weighs far more in rho, and there is no way back."""
    with place.create() as ledger:
        ledger.charge(Loss("1/2"), event())
        with pytest.raises(PolicyError, match="exceeds a budget with this delta"):
            ledger.set_budget(Budget(1, "1e-9"), analysts=None)
        assert ledger.terms.budget == Budget(1)
        ledger.set_budget(Budget(8, "1e-9"), analysts=None)
        with pytest.raises(PolicyError, match="cannot change after the first charge"):
            ledger.set_budget(Budget(8), analysts=None)
        verify_ledger(ledger)


def test_edits_of_the_budget_are_on_record_and_refund_nothing(ledger):
    ledger.charge(Loss(1), event())
    ledger.set_budget(Budget(2), analysts=None)
    ledger.charge(Loss(1), event())
    ledger.set_budget(Budget("1/2"), analysts=None)
    assert ledger.spent().epsilon == 2
    with pytest.raises(Refused, match="not enough budget left in total"):
        ledger.charge(CENT, event())
    verify_ledger(ledger)
    with ledger.session.read_transaction() as table:
        assert [row.kind for row in table.rows()] == ["create", "charge", "budget", "charge", "budget"]


def test_a_ledger_survives_closing(place):
    with place.create(budget=Budget(1), analysts={"ana": Budget(1)}) as ledger:
        ledger.settle(ledger.charge(CENT, event(by="ana"), key="k"), b"1")
        before = snapshot(ledger)
    with place.open() as ledger:
        assert snapshot(ledger) == before
        assert ledger.charge(CENT, event(by="ana"), key="k").answer == b"1"
        assert (ledger.terms.name, ledger.terms.budget, ledger.terms.analysts) == (
            "demo",
            Budget(1),
            {"ana": Budget(1)},
        )


def test_a_ledger_belongs_to_its_name(path):
    create_ledger(path, name="demo", budget=Budget(1)).close()
    with pytest.raises(PolicyError, match=r"belongs to 'demo', not to 'other'. .*ledger = .other\.sqlite. in \[data\]"):
        open_ledger(path, name="other")


def test_a_missing_ledger_is_an_error_and_not_a_fresh_one(path):
    with pytest.raises(LedgerError, match=r"ledger\.sqlite: the ledger does not exist\. .*create_ledger"):
        open_ledger(path, name="demo")
    assert not path.exists()


def test_creating_never_replaces_a_ledger_nor_the_trace_of_one(path):
    create_ledger(path, name="demo", budget=Budget(1)).close()
    with pytest.raises(LedgerError, match="already exists"):
        create_ledger(path, name="demo", budget=Budget(1))
    path.unlink()
    with pytest.raises(LedgerError, match="checkpoint exists"):
        create_ledger(path, name="demo", budget=Budget(1))
    with pytest.raises(LedgerError, match=r"the folder .* does not exist"):
        create_ledger(path / "nowhere" / "x", name="demo", budget=Budget(1))


def test_only_the_owner_can_read_the_files(path):
    with create_ledger(path, name="demo", budget=Budget(1)) as ledger:
        ledger.charge(CENT, event())
        modes = {found.name: stat.S_IMODE(found.stat().st_mode) for found in path.parent.iterdir()}
    assert len(modes) == 5, modes  # the database, its -wal and -shm, the lock and the head
    assert set(modes.values()) == {0o600}, modes


def test_commits_are_durable(path):
    with create_ledger(path, name="demo", budget=Budget(1)) as ledger, ledger.session.read_transaction() as table:
        settings = [
            table.connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("journal_mode", "synchronous")
        ]
    assert settings == ["wal", 2]


def test_a_closed_ledger_stays_closed(ledger):
    ledger.close()
    ledger.close()
    for use in (ledger.spent, ledger.events, lambda: verify_ledger(ledger), lambda: ledger.charge(CENT, event())):
        with pytest.raises(LedgerError, match="closed"):
            use()


@pytest.mark.parametrize("bad", [1, "1/100", None, Fraction(1)])
def test_a_loss_must_be_a_loss(ledger, bad):
    with pytest.raises(TypeError, match="loss"):
        ledger.charge(bad, event())


@pytest.mark.parametrize("bad", ["", "k" * 201, "\ud800", "a\0b"])
def test_a_key_is_a_short_text(ledger, bad):
    with pytest.raises(ValueError, match="key"):
        ledger.charge(CENT, event(), key=bad)
    with pytest.raises(TypeError, match="key"):
        ledger.charge(CENT, event(), key=7)
    assert ledger.spent() == ZERO_LOSS


def test_an_answer_is_bytes_of_bounded_length(ledger, monkeypatch):
    receipt = ledger.charge(CENT, event())
    with pytest.raises(TypeError, match="answer"):
        ledger.settle(receipt, "42")
    monkeypatch.setattr("discreet.kernel.ledger.ledger.MAX_ANSWER_BYTES", 3)
    with pytest.raises(ValueError, match="answer"):
        ledger.settle(receipt, b"1234")
    with pytest.raises(TypeError, match="receipt"):
        ledger.settle(receipt.id, b"123")
    ledger.settle(receipt, b"123")


@pytest.mark.parametrize(
    "wrong",
    [
        {"by": ""},
        {"by": "x" * 201},
        {"by": "a\0b"},
        {"question": "a\0b"},
        {"question": ""},
        {"mechanism": "laplace"},
        {"mechanism": '{"b":1, "a":2}'},
        {"sensitivity": "[" * 100_000},
        {"sensitivity": "NaN"},
    ],
)
def test_an_event_is_checked_when_it_is_made(wrong):
    fields = {"mechanism": "{}", "sensitivity": "{}", "question": "q"}
    (name,) = wrong
    with pytest.raises(ValueError, match=f"^{name}"):
        Event(**{**fields, **wrong})


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"name": ""}, ValueError),
        ({"budget": 1}, TypeError),
        ({"analysts": {"ana": 1}}, TypeError),
        ({"analysts": {"": Budget(1)}}, ValueError),
        ({"analysts": {"owner": Budget(1)}}, ValueError),
    ],
)
def test_terms_are_checked_before_anything_is_created(path, wrong, error):
    with pytest.raises(error, match=next(iter(wrong))):
        create_ledger(path, **{"name": "demo", "budget": Budget(1), **wrong})
    assert not path.exists()


def test_any_text_is_read_back_unchanged(ledger):
    odd = "Zoë \\0 '\"; DROP TABLE rows; -- \U0001f600"
    ledger.settle(ledger.charge(CENT, event(odd, by=odd), key=odd), b"")
    assert (ledger.events()[0].by, ledger.events()[0].question) == (odd, odd)
    assert ledger.charge(CENT, event(odd, by=odd), key=odd).answer == b""
    verify_ledger(ledger)


def test_long_fractions_are_rounded_up_and_stay_short(ledger):
    exact = Fraction(0)
    for prime in (10**150 + 67, 10**110 + 27, 10**99 + 289, 10**40 + 121, 10**30 + 57, 3, 7):
        ledger.charge(Loss(Fraction(1, prime)), event())
        exact += Fraction(1, prime)
    spent = ledger.spent()
    assert exact <= spent.epsilon <= exact + Fraction(7, 10**100)
    assert spent.rho <= spent.epsilon**2 / 2
    assert spent.epsilon.denominator <= 10**100
    assert round_for_ledger(Loss("1/3")) == Loss("1/3")
    verify_ledger(ledger)


@pytest.mark.long(but=["memory"])
def test_concurrent_threads_end_exactly_at_the_limit(ledger):
    refused = []

    def worker(number):
        for i in range(25):
            try:
                receipt = ledger.charge(CENT, event(), key=f"{number}-{i}")
                ledger.settle(receipt, b"1")
            except Refused:
                refused.append(1)

    threads = [threading.Thread(target=worker, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(refused) == 100
    assert ledger.spent().epsilon == 1
    verify_ledger(ledger)


def test_one_key_in_many_threads_is_charged_once(ledger):
    outcomes = []

    def worker():
        try:
            receipt = ledger.charge(CENT, event(), key="k")
            if receipt.answer is None:
                ledger.settle(receipt, b"1")
            outcomes.append(receipt.answer or b"1")
        except Failed:
            outcomes.append(b"1")  # it came while the first was at work

    threads = [threading.Thread(target=worker) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes == [b"1"] * 8
    assert ledger.spent() == CENT


class FailingCommit:
    """A connection whose disk breaks at COMMIT."""

    def __init__(self, connection):
        self.connection = connection

    def __getattr__(self, name):
        return getattr(self.connection, name)

    def execute(self, statement, *values):
        if statement == "COMMIT":
            raise sqlite3.OperationalError("disk I/O error")
        return self.connection.execute(statement, *values)


def test_an_error_at_commit_stops_the_ledger_until_it_is_opened_again(path):
    with create_ledger(path, name="demo", budget=Budget(1)) as ledger:
        receipt = ledger.charge(CENT, event())
        whole = ledger.session._connection
        ledger.session._connection = FailingCommit(whole)
        with pytest.raises(LedgerError, match="disk I/O error"):
            ledger.charge(CENT, event())
        ledger.session._connection = whole
        with pytest.raises(LedgerError, match="an earlier write failed"):
            ledger.charge(CENT, event())
        with pytest.raises(LedgerError, match="an earlier write failed"):
            ledger.settle(receipt, b"1")
    with open_ledger(path, name="demo") as ledger:
        verify_ledger(ledger)
        assert ledger.spent() == CENT


def test_a_checkpoint_that_cannot_be_written_stops_the_ledger_and_the_charge_stands(path, monkeypatch):
    def broken(*_):
        raise OSError(28, "No space left on device")

    with create_ledger(path, name="demo", budget=Budget(1)) as ledger:
        with monkeypatch.context() as patch:
            patch.setattr("discreet.ledger_sqlite.location.write_checkpoint", broken)
            with pytest.raises(LedgerError, match="No space left"):
                ledger.charge(CENT, event())
        with pytest.raises(LedgerError, match="an earlier write failed"):
            ledger.charge(CENT, event())
    with open_ledger(path, name="demo") as ledger:
        verify_ledger(ledger)
        assert ledger.spent() == CENT
        ledger.charge(CENT, event())


def test_the_checkpoint_is_written_after_the_commit(path, monkeypatch):
    seen = []

    def look(head_path, head):
        with sqlite3.connect(path) as other:
            seen.append((other.execute("SELECT max(seq) FROM rows").fetchone()[0], head.seq))
        other.close()

    monkeypatch.setattr("discreet.ledger_sqlite.location.write_checkpoint", look)
    create_ledger(path, name="demo", budget=Budget(1)).close()
    assert seen == [(1, 1)]


def test_an_interrupted_charge_leaves_no_partial_state(place, monkeypatch):
    with place.create() as ledger:

        def interrupt(*_):
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr("discreet.kernel.ledger.ledger.event_text", interrupt)
            with pytest.raises(KeyboardInterrupt):
                ledger.charge(CENT, event())
        assert ledger.spent() == ZERO_LOSS
        ledger.charge(CENT, event())
        verify_ledger(ledger)


def test_gaussian_noise_on_a_pure_budget_is_refused_with_a_hint(ledger):
    before = snapshot(ledger)
    for loss in (Loss(None, "1/200"), Loss("1/10", delta="1e-9")):
        with pytest.raises(Refused, match="it is pure, but this loss has a delta or no epsilon"):
            ledger.charge(loss, event())
    assert snapshot(ledger) == before


def test_a_key_is_bound_to_the_mechanism_too(ledger):
    ledger.settle(ledger.charge(CENT, event(), key="k"), b"1")
    other = Event(
        mechanism=canonical_json({"name": "laplace", "scale": "20"}), sensitivity="{}", question=event().question
    )
    with pytest.raises(Refused, match="different query"):
        ledger.charge(CENT, other, key="k")


def test_a_file_that_is_not_a_ledger_is_left_unchanged(tmp_path):
    empty, foreign = tmp_path / "empty.sqlite", tmp_path / "foreign.sqlite"
    empty.touch()
    with sqlite3.connect(foreign) as connection:
        connection.execute("CREATE TABLE t (x)")
    connection.close()
    for path in (empty, foreign):
        before = path.read_bytes()
        with pytest.raises(LedgerError, match="not a ledger"):
            open_ledger(path, name="demo")
        assert path.read_bytes() == before


def test_a_second_name_for_the_file_is_refused(path, tmp_path):
    create_ledger(path, name="demo", budget=Budget(1)).close()
    (tmp_path / "other.sqlite").hardlink_to(path)
    for name in (path, tmp_path / "other.sqlite"):
        with pytest.raises(LedgerError, match="hard link"):
            open_ledger(name, name="demo")


@pytest.mark.parametrize("wrong", ["", "/", 3, None])
def test_a_path_that_names_no_file_is_refused(wrong):
    with pytest.raises((TypeError, ValueError), match="path must name a file"):
        create_ledger(wrong, name="demo", budget=Budget(1))


def test_the_shortfall_makes_up_for_lost_charges_even_from_another_history():
    now, then = Loss("0.9", "81/800"), Loss(1, "1/6")
    made_up = now + shortfall(now, then)
    assert made_up.epsilon >= then.epsilon
    assert made_up.rho >= then.rho


def test_a_file_exchanged_between_two_connections_is_seen_by_a_read_too(path, tmp_path):
    other = tmp_path / "other.sqlite"
    create_ledger(other, name="others", budget=Budget(1)).close()
    with create_ledger(path, name="demo", budget=Budget(1)) as ledger:
        with ledger.session.thread_lock:
            ledger.session.disconnect()  # as before a fork
        other.replace(path)
        with pytest.raises(LedgerError, match="replaced"):
            ledger.spent()


def test_charges_together_are_all_made_or_none(ledger):
    first, second = ledger.charge_together([(CENT, event("a"), "a"), (Loss("1/50"), event("b"), None)])
    assert [each.id for each in ledger.events()] == [first.id, second.id]
    assert ledger.spent() == CENT + Loss("1/50")
    for refused in (Loss("99/100"), Loss(None, 1)):
        with pytest.raises(Refused, match="not enough budget"):
            ledger.charge_together([(CENT, event("c"), None), (refused, event("d"), None)])
        assert ledger.spent() == CENT + Loss("1/50")
    with pytest.raises(Failed):  # one key twice
        ledger.charge_together([(CENT, event("c"), "k"), (CENT, event("c"), "k")])
    with pytest.raises(ValueError, match="key"):
        ledger.charge_together([(CENT, event("c"), None), (CENT, event("d"), "")])
    assert len(ledger.events()) == 2
    ledger.charge_together([(Loss("97/200"), event("c"), None), (Loss("97/200"), event("d"), None)])
    assert ledger.spent().epsilon == 1
    ledger.verify()


def test_charges_together_are_within_the_limit_in_the_order_in_which_they_are_made(ledger):
    """The second is checked against what the first leaves."""
    with pytest.raises(Refused):
        ledger.charge_together([(Loss("3/5"), event("a"), None), (Loss("1/2"), event("b"), None)])
    assert ledger.spent().epsilon == 0
    ledger.charge(Loss(1), event("c"))


def test_an_interrupted_transaction_of_several_charges_leaves_nothing(place, monkeypatch):
    with place.create() as ledger:
        ledger.charge(CENT, event("before"))

        def interrupt(charge):
            if charge.question == "b":
                raise KeyboardInterrupt
            return event_text(charge)

        with monkeypatch.context() as patch:
            patch.setattr("discreet.kernel.ledger.ledger.event_text", interrupt)
            with pytest.raises(KeyboardInterrupt):
                ledger.charge_together([(CENT, event("a"), None), (CENT, event("b"), None)])
        assert [each.question for each in ledger.events()] == ["before"]
        ledger.charge(Loss("1/50"), event("after"))
        assert ledger.spent() == CENT + Loss("1/50")
        ledger.verify()


def test_a_receipt_is_redeemed_for_its_own_event_only(ledger):
    (receipt,) = ledger.charge_together([(CENT, event("a", by="ana"), None)])
    assert ledger.redeem(receipt, CENT, event("a", by="ana")) == receipt
    for cost, wanted in ((Loss("1/50"), event("a", by="ana")), (CENT, event("b", by="ana")), (CENT, event("a"))):
        with pytest.raises(LedgerError, match="charged for something else"):
            ledger.redeem(receipt, cost, wanted)
    (recorded,) = ledger.unsettled_events()  # an event with its loss and state
    with memory_ledger(name="other", budget=Budget(1)) as other, pytest.raises(LedgerError):
        other.redeem(receipt, CENT, recorded)
    for asked in (event("a", by="ana"), recorded):
        with pytest.raises(LedgerError, match="charged for something else"):
            ledger.redeem(Receipt("unknown"), CENT, asked)
    assert ledger.spent() == CENT


def test_a_receipt_has_one_answer(ledger):
    (receipt,) = ledger.charge_together([(CENT, event("a"), "k")])
    again = ledger.redeem(ledger.redeem(receipt, CENT, event("a")), CENT, event("a"))
    ledger.settle(again, b"one")
    with pytest.raises(LedgerError, match="already"):
        ledger.redeem(receipt, CENT, event("a"))
    with pytest.raises(LedgerError, match="already settled"):
        ledger.settle(receipt, b"two")
    assert [answer for _, answer in ledger.answers(keys=[("owner", "k")])] == [b"one"]
