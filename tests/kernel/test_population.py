"""One account for a population: three limits in one transaction, joining, and nothing that crosses data sets."""

import os
import signal
import subprocess
import sys
import time
from fractions import Fraction
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings
from kernel.ledger_locations import KINDS, FilePlace, place_of

from discreet.kernel.errors import LedgerError, PolicyError, Refused
from discreet.kernel.event import Event
from discreet.kernel.ledger import Ledger
from discreet.kernel.ledger.chain import Chain, RowKind
from discreet.kernel.ledger.terms import DatasetTerms, Terms, join_terms, read_terms, terms_text
from discreet.kernel.loss import Budget, Loss
from discreet.ledger_admin.move import move_ledger, open_target_ledger
from discreet.ledger_admin.verify import verify_ledger
from discreet.ledger_sqlite import memory_ledger

HERE = Path(__file__).parent
CENT = Loss("1/100")


def event(question="count", by="owner", fingerprint="f", follows=()):
    marks = {"fingerprints": ((fingerprint,),), "follows": follows}
    return Event(mechanism="{}", sensitivity="{}", question=question, by=by, **marks)


def members(**limits):
    return {name: DatasetTerms(None if limit is None else Budget(limit)) for name, limit in limits.items()}


@pytest.fixture(params=KINDS)
def place(request, tmp_path):
    place = place_of(request.param, request, tmp_path)
    place.create(datasets=members(visits=None, labs="1/2"), unit_declaration="person").close()
    return place


def view(place, dataset):
    return place.open(dataset=dataset)


def test_one_total_covers_all_data_sets_and_each_may_have_a_limit(place):
    with view(place, "visits") as visits, view(place, "labs") as labs:
        labs.charge(Loss("2/5"), event())
        with pytest.raises(Refused, match="not enough budget left in labs"):
            labs.charge(Loss("1/5"), event())
        visits.charge(Loss("3/5"), event())
        for ledger in (visits, labs):
            with pytest.raises(Refused, match="not enough budget left in total"):
                ledger.charge(CENT, event())
        spent = [visits.spent(dataset=name).epsilon for name in ("visits", "labs", "")]
        assert (visits.spent().epsilon, spent) == (1, [Fraction(3, 5), Fraction(2, 5), 0])
        assert [each.dataset for each in labs.events()] == ["labs", "visits"]
        verify_ledger(labs)


def test_limits_of_analysts_hold_over_the_whole_population(place):
    with view(place, "visits") as visits, view(place, "labs") as labs:
        visits.set_budget(Budget(1), analysts={"ana": Budget("1/4")})
        visits.charge(Loss("1/5"), event(by="ana"))
        with pytest.raises(Refused, match="for ana"):
            labs.charge(Loss("1/10"), event(by="ana"))
        assert labs.terms.datasets == members(visits=None, labs="1/2")


def test_answers_and_keys_never_cross_data_sets(place):
    with view(place, "visits") as visits, view(place, "labs") as labs:
        receipt = visits.charge(CENT, event(), key="k")
        visits.settle(receipt, b"visits")
        assert labs.answers(["f"]) == []
        assert labs.latest_receipt("f") is None
        assert labs.answers(keys=[("owner", "k")]) == []
        with pytest.raises(Refused, match="at the same time"):
            labs.charge(CENT, event(follows=(("f", receipt.id),)))
        other = labs.charge(CENT, event(), key="k")
        assert other.answer is None
        labs.settle(other, b"labs")
        assert [answer for _, answer in labs.answers(["f"])] == [b"labs"]
        assert visits.charge(CENT, event(), key="k").answer == b"visits"
        verify_ledger(visits)


def test_failures_of_one_data_set_are_not_those_of_another(place):
    with view(place, "visits") as visits, view(place, "labs") as labs:
        visits.charge(CENT, event("visits"))
        labs.charge(CENT, event("labs"))
        assert [each.question for each in visits.unsettled_events()] == ["visits"]
        visits.acknowledge()
        assert visits.unsettled_events() == []
        assert [each.question for each in labs.unsettled_events()] == ["labs"]
    with place.open() as ledger:
        ledger.acknowledge()  # of the whole population
    with view(place, "labs") as labs:
        assert labs.unsettled_events() == []
        verify_ledger(labs)


def test_only_members_are_charged(place):
    for stranger in ("drugs", ""):
        with view(place, stranger) as ledger:
            with pytest.raises(PolicyError, match=f"{stranger!r} is not a data set of 'demo'"):
                ledger.charge(CENT, event())
            assert ledger.spent().epsilon == 0
    with memory_ledger(name="demo", budget=Budget(1), dataset="visits") as alone, pytest.raises(PolicyError):
        alone.charge(CENT, event())


def test_joining_changes_nothing_else(place):
    with view(place, "drugs") as drugs:
        before = drugs.terms
        drugs.join(DatasetTerms(Budget("1/3"), "drugs"))
        after = drugs.terms
        assert after.datasets == {**before.datasets, "drugs": DatasetTerms(Budget("1/3"), "drugs")}
        assert Terms(*list(vars(after).values())[:-1]) == Terms(*list(vars(before).values())[:-1])
        with pytest.raises(PolicyError, match="already has a data set 'drugs'"):
            drugs.join(DatasetTerms(Budget(1)))
        drugs.charge(Loss("1/3"), event())
        with pytest.raises(Refused, match="in drugs"):
            drugs.charge(CENT, event())
        assert place.rows()[1].kind == "join"
        verify_ledger(drugs)
    with memory_ledger(name="demo", budget=Budget(1)) as alone, pytest.raises(PolicyError, match="one data set only"):
        alone.join(DatasetTerms())


WIDER = {
    "the total": {"budget": Budget(2)},
    "delta": {"budget": Budget(1, "1e-6")},
    "analysts": {"analysts": {"ana": Budget(1)}},
    "the unit": {"unit_declaration": "row"},
    "another data set": {"datasets": members(visits=None, labs=None, drugs=None)},
}


@pytest.mark.parametrize("what", WIDER)
def test_a_forged_join_that_widens_the_terms_is_found(place, what):
    with view(place, "drugs") as ledger, ledger.session.write_transaction() as table:
        chain = Chain().extend(table.rows())
        joined = join_terms(read_terms(chain.terms), "drugs", DatasetTerms())
        forged = Terms(**{**vars(joined), **WIDER[what]})
        table.add_row(chain.next_row(RowKind.JOIN, "owner", terms_text(forged), dataset="drugs"))
    with view(place, "drugs") as ledger, pytest.raises(LedgerError, match="row 2 changes other terms"):
        verify_ledger(ledger)


def test_a_change_of_the_budget_that_drops_a_data_set_is_found(place):
    with place.open() as ledger, ledger.session.write_transaction() as table:
        chain = Chain().extend(table.rows())
        forged = Terms(**{**vars(read_terms(chain.terms)), "datasets": members(visits=None)})
        table.add_row(chain.next_row(RowKind.BUDGET, "owner", terms_text(forged)))
    with place.open() as ledger, pytest.raises(LedgerError, match="row 2 changes the name or the data sets"):
        verify_ledger(ledger)


@pytest.mark.parametrize("change", ["UPDATE rows SET dataset = 'visits'", "UPDATE rows SET spent_in = '0 0 0'"])
def test_a_charge_moved_to_another_data_set_is_found(place, change):
    with view(place, "labs") as labs:
        labs.charge(CENT, event())
    place.tamper([f"{change} WHERE seq = 2"])
    with view(place, "labs") as labs, pytest.raises(LedgerError, match="row 2 was modified"):
        labs.charge(CENT, event())


def test_lost_charges_count_for_every_data_set(place):
    with view(place, "visits") as visits:
        visits.charge(CENT, event())
    place.back_up()
    with view(place, "visits") as visits:
        visits.charge(Loss("2/5"), event())
    place.restore()
    with view(place, "labs") as labs:
        with pytest.raises(LedgerError, match="rolled back"):
            labs.charge(CENT, event())
        labs.acknowledge()
        assert labs.spent(dataset="").epsilon == Fraction(2, 5)
        with pytest.raises(Refused, match="in labs"):
            labs.charge(Loss("1/5"), event())
        labs.charge(Loss("1/10"), event())
        verify_ledger(labs)


def test_a_population_moves_with_all_of_its_data_sets(place, tmp_path):
    with view(place, "labs") as labs:
        labs.settle(labs.charge(CENT, event(), key="k"), b"labs")
    to = tmp_path / "moved.sqlite"
    with place.open() as source, open_target_ledger(to) as target:
        assert move_ledger(source, target, to=str(to))
    with FilePlace(to).open(dataset="labs") as labs, FilePlace(to).open(dataset="visits") as visits:
        assert labs.charge(CENT, event(), key="k").answer == b"labs"
        assert visits.answers(["f"]) == []
        verify_ledger(visits)


LIMITS = st.none() | st.builds(Fraction, st.integers(1, 6), st.just(10))
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", "c"]),
        st.sampled_from(["owner", "ana", "bob"]),
        st.builds(Fraction, st.integers(0, 6), st.sampled_from([7, 10])),
    ),
    min_size=5,
    max_size=20,
)


def check_against_model(total, analysts, limits, steps):
    """Charge in any order and expect exactly what three sums allow; "c" joins when it is first used."""
    datasets = {name: DatasetTerms(limits[name] and Budget(limits[name])) for name in "ab"}
    budgets = {who: Budget(limit) for who, limit in analysts.items()}
    charged = []
    with memory_ledger(name="p", budget=Budget(total), analysts=budgets, datasets=datasets) as ledger:
        views = {name: Ledger(ledger.session, name) for name in "abc"}
        for dataset, by, price in steps:
            if dataset not in views["a"].terms.datasets:
                views[dataset].join(DatasetTerms(limits[dataset] and Budget(limits[dataset])))
            sums = [
                (total, sum(cost for *_, cost in charged)),
                (analysts.get(by, total), sum(cost for _, who, cost in charged if who == by)),
                (limits[dataset] or total, sum(cost for name, _, cost in charged if name == dataset)),
            ]
            if all(spent + price <= limit for limit, spent in sums):
                views[dataset].charge(Loss(price), event(by=by))
                charged.append((dataset, by, price))
            else:
                with pytest.raises(Refused):
                    views[dataset].charge(Loss(price), event(by=by))
        for name in views:
            assert ledger.spent(dataset=name).epsilon == sum(cost for each, _, cost in charged if each == name)
        verify_ledger(ledger)


TENTHS = st.builds(Fraction, st.integers(5, 20), st.just(10))
MODEL = {
    "total": TENTHS,
    "analysts": st.fixed_dictionaries({"ana": TENTHS, "bob": TENTHS}),
    "limits": st.fixed_dictionaries({"a": LIMITS, "b": LIMITS, "c": LIMITS}),
    "steps": STEPS,
}


@settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(**MODEL)
def test_three_limits_hold_over_all_interleavings_of_data_sets(total, analysts, limits, steps):
    check_against_model(total, analysts, limits, steps)


@pytest.mark.long
@settings(max_examples=200, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(**MODEL)
def test_three_limits_hold_over_many_interleavings_of_data_sets(total, analysts, limits, steps):
    check_against_model(total, analysts, limits, steps)


WORKER = """
import sys
from kernel.ledger_locations import place_at
from discreet.kernel.errors import PolicyError, Refused
from discreet.kernel.event import Event
from discreet.kernel.ledger.terms import DatasetTerms
from discreet.kernel.loss import Loss
place, dataset, count = place_at(sys.argv[1]), sys.argv[2], int(sys.argv[3])
with place.open(dataset=dataset) as ledger:
    if dataset not in ledger.terms.datasets:
        print("joining", flush=True)
        ledger.join(DatasetTerms())
    granted = 0
    for _ in range(count):
        try:
            ledger.charge(Loss("1/100"), Event(mechanism="{}", sensitivity="{}", question="count"))
            granted += 1
        except Refused:
            pass
print(granted)
"""


def start(place, dataset, count):
    paths = os.pathsep.join([str(HERE.parent), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": paths}
    command = [sys.executable, "-c", WORKER, place.text, dataset, str(count)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


@pytest.mark.long
def test_processes_of_different_data_sets_end_exactly_at_the_limits(place):
    running = [start(place, name, 80) for name in ("visits", "labs", "labs", "drugs")]
    granted = [int(each.communicate(timeout=240)[0].split()[-1]) for each in running]
    with place.open() as ledger:
        assert sum(granted) == 100
        assert granted[1] + granted[2] <= 50
        assert ledger.spent().epsilon == 1
        assert ledger.spent(dataset="labs").epsilon == Fraction(granted[1] + granted[2], 100)
        verify_ledger(ledger)


@pytest.mark.long
def test_a_process_killed_while_joining_leaves_a_member_or_none(place):
    for number in range(8):
        name = f"new {number}"
        worker = start(place, name, 0)
        worker.stdout.readline()  # it is about to join
        time.sleep(0.004 * number)  # at any step of the join, or after it
        worker.send_signal(signal.SIGKILL)
        worker.communicate(timeout=240)
        with place.open(dataset=name) as ledger:
            verify_ledger(ledger)
            if name not in ledger.terms.datasets:
                ledger.join(DatasetTerms())
            ledger.charge(CENT, event())
    with place.open() as ledger:
        assert len(ledger.terms.datasets) == 10
        assert ledger.spent().epsilon == Fraction(8, 100)
        verify_ledger(ledger)
