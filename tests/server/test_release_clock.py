"""When answers leave: at ticks or, in strict mode, at the time limit, whatever the data and the engine do."""

import asyncio
import threading
from datetime import datetime
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from served import COUNT, ask, break_engine, person, slow_down, until

import discreet as dc
from discreet.kernel.event import Event, EventState
from discreet.kernel.loss import Budget, Loss
from discreet.ledger_sqlite import memory_ledger
from discreet.policy import Policy
from discreet.server import release_clock
from discreet.server.release_clock import ReleaseClock, TimedLedger
from discreet.server.requests import QueryRequest


@given(st.floats(0, 1e6), st.floats(0, 1e4), st.sampled_from([0.01, 0.25, 1.0]))
def test_an_answer_leaves_at_a_whole_number_of_ticks_after_the_question_and_not_before_it_is_ready(asked, took, tick):
    released = ReleaseClock(tick, None).release_time(asked, asked + took)
    steps = (released - asked) / tick
    assert steps == pytest.approx(round(steps), abs=1e-3)
    assert asked + took - 1e-3 <= released <= asked + took + tick + 1e-3


def test_without_a_tick_answers_leave_when_they_are_ready():
    assert ReleaseClock(0, None).release_time(10, 10.123) == 10.123


@pytest.mark.parametrize("took", [0.001, 0.3, 1.999])
def test_with_a_tick_fresh_answers_wait_and_stored_ones_do_not(served, fake_time, took):
    service = served(tick="1/4", source=fake_time)
    ana, start = person(service), fake_time.moment
    slow_down(service, [took])
    fresh = ask(service, ana)
    assert (fake_time.moment - start) % 0.25 == pytest.approx(0, abs=1e-9)
    assert fake_time.moment - start >= took
    before = fake_time.moment
    assert ask(service, ana).table.equals(fresh.table)
    assert fake_time.moment == before


@pytest.mark.parametrize("took", [0.1, 0.3])
def test_with_a_tick_a_copy_of_a_question_does_not_leave_before_the_first_answer(served, fake_time, took):
    service = served(tick="1/4", source=fake_time)
    ana, ben, start = person(service), person(service, "ben"), fake_time.moment
    slow_down(service, [took])
    leaves, left = start + (0.25 if took < 0.25 else 0.5), []
    wait = fake_time.wait

    async def look_and_wait(seconds):
        """Ask again, and look at the charges, when the first answer is stored and waits for its tick."""
        fake_time.wait = wait
        before = service.explain(ben, QueryRequest(COUNT, epsilon="1/10")).paid.epsilon
        states = {event.state for event in service.charges(ana)}
        copy = await service.ask(ben, QueryRequest(COUNT, epsilon="1/10"))
        left.append((before, states, copy.paid.epsilon, fake_time.moment))

    async def first():
        fake_time.wait = look_and_wait
        return await service.ask(ana, QueryRequest(COUNT, epsilon="1/10"))

    asyncio.run(first())
    assert left == [(Fraction(1, 10), {EventState.RESERVED}, 0, leaves)]
    assert {event.state for event in service.charges(ana)} == {EventState.RELEASED}
    assert ask(service, ben).paid.epsilon == 0
    assert fake_time.moment == leaves


def test_with_a_tick_copies_leave_together_whether_they_were_asked_before_or_after_the_first_was_computed(
    served, fake_time
):
    service = served(tick="1/4", source=fake_time)
    ana, ben, start, left = person(service), person(service, "ben"), fake_time.moment, []
    engine = service.curator._engine._private
    totals, reading, go_on = engine.totals, threading.Event(), threading.Event()

    def read(question):
        reading.set()
        assert go_on.wait(30)
        return totals(question)

    async def one(who):
        await service.ask(who, QueryRequest(COUNT, epsilon="1/10"))
        left.append(fake_time.moment)

    async def both():
        first = asyncio.create_task(one(ana))
        await asyncio.to_thread(reading.wait, 30)
        fake_time.moment += 0.1
        copy = asyncio.create_task(one(ben))
        await until(lambda: service.executions.turns.waiting)
        fake_time.moment += 0.1
        go_on.set()
        await asyncio.gather(first, copy)

    engine.totals = read
    asyncio.run(both())
    assert left == [start + 0.25] * 2


def test_the_release_times_of_answers_that_have_left_are_forgotten(fake_time, monkeypatch):
    monkeypatch.setattr(release_clock, "_MAX_RELEASE_TIMES", 3)
    times = release_clock.ReleaseTimes(ReleaseClock(0.25, None, fake_time))
    for number in range(9):
        with times.execution(fake_time.moment):
            times.hide(str(number))
            fake_time.moment += 0.1
            assert not times.is_hidden(str(number))
        assert times.is_hidden(str(number))
        assert times.hidden() == [str(number)]
        fake_time.moment += 0.2
        assert times.hidden() == []
    assert len(times._times) <= 3


def test_with_a_tick_failures_wait_like_answers_and_refusals_do_not(served, fake_time):
    service = served(tick="1/4", source=fake_time)
    ana, start = person(service), fake_time.moment
    with pytest.raises(dc.Refused):
        ask(service, ana, "SELECT * FROM visits")
    with pytest.raises(dc.Refused, match="budget"):
        ask(service, ana, epsilon=3)
    assert fake_time.moment == start
    break_engine(service)
    slow_down(service, [0.1])
    with pytest.raises(dc.Failed):
        ask(service, ana)
    assert fake_time.moment == start + 0.25


def test_strict_mode_needs_a_time_limit():
    values = {
        "data": {"name": "v"},
        "budget": {"epsilon": 1},
        "server": {"strict": True},
        "tables": {"v": {"source": "v", "unit": "row", "columns": {"a": {"type": "integer"}}}},
    }
    with pytest.raises(dc.PolicyError, match=r"\[server\]: strict .* \[tuning\]"):
        Policy.from_dict(values)
    assert Policy.from_dict({**values, "tuning": {"seconds": 5}}).server.strict


def strict(served, fake_time):
    return served(strict=True, seconds=8, source=fake_time)


@pytest.mark.parametrize("took", [0, 0.1, 3, 7.9, 8])
def test_in_strict_mode_a_fresh_answer_leaves_at_the_limit_however_long_it_took(served, fake_time, took):
    service = strict(served, fake_time)
    ana, start = person(service), fake_time.moment
    slow_down(service, [took])
    ask(service, ana)
    assert fake_time.moment == start + 8


@pytest.mark.parametrize("took", [0, 3, 7])
def test_in_strict_mode_a_failure_leaves_at_the_limit_however_early_it_was(served, fake_time, took):
    service = strict(served, fake_time)
    ana, start = person(service), fake_time.moment
    break_engine(service)
    slow_down(service, [took])
    with pytest.raises(dc.Failed):
        ask(service, ana)
    assert fake_time.moment == start + 8


def test_in_strict_mode_stored_and_free_answers_leave_at_the_limit_too(served, fake_time):
    service = strict(served, fake_time)
    ana = person(service)
    first = ask(service, ana)
    start = fake_time.moment
    assert ask(service, ana).table.equals(first.table)
    assert fake_time.moment == start + 8
    ask(service, ana, "SELECT beds FROM wards")
    assert fake_time.moment == start + 16


def test_in_strict_mode_refusals_are_immediate(served, fake_time):
    service = strict(served, fake_time)
    ana, start = person(service), fake_time.moment
    for sql, cost in (("SELECT patient FROM visits", "1/10"), (COUNT, 3)):
        with pytest.raises(dc.Refused):
            ask(service, ana, sql, epsilon=cost)
    assert fake_time.moment == start


def test_in_strict_mode_an_overrun_is_a_failure_and_ends_at_a_whole_number_of_limits(served, fake_time):
    service = strict(served, fake_time)
    ana, start = person(service), fake_time.moment
    slow_down(service, [8.001])
    with pytest.raises(dc.Failed):
        ask(service, ana)
    assert fake_time.moment == start + 16
    assert service.clock.overruns == 1
    assert [event.state for event in service.ledger.events()] == [EventState.RESERVED]


def test_in_strict_mode_an_answer_is_stored_and_can_be_replayed_from_its_release_time_only(served, fake_time):
    service = strict(served, fake_time)
    ana, ben, seen = person(service), person(service, "ben"), []
    start, engine = fake_time.moment, service.curator._engine._private
    totals, sleep = engine.totals, fake_time.sleep

    def look():
        stored = service.curator.stored_answer(COUNT, by="ben", epsilon="1/10")
        (event,) = service.ledger.events()
        seen.append((fake_time.moment - start, stored is not None, event.state))

    def read(question):
        result = totals(question)
        look()
        return result

    def wait(seconds):
        fake_time.moment += seconds - 0.5
        look()
        fake_time.moment += 0.5

    engine.totals, fake_time.sleep = read, wait
    ask(service, ana)
    engine.totals, fake_time.sleep = totals, sleep
    assert set(seen) == {(0, False, EventState.RESERVED), (7.5, False, EventState.RESERVED)}
    assert fake_time.moment == start + 8
    assert service.curator.stored_answer(COUNT, by="ben", epsilon="1/10") is not None
    assert ask(service, ben).paid.epsilon == 0


def test_in_strict_mode_a_query_with_automatic_bounds_takes_one_limit_for_each_stored_release(served, fake_time):
    service = strict(served, fake_time)
    ana, start = person(service), fake_time.moment
    slow_down(service, [1, 2, 3, 4])
    answer = ask(service, ana, epsilon=1, groups="auto", rows="auto")
    assert len(service.ledger.events()) == 2
    assert answer.paid.epsilon == 1
    assert fake_time.moment == start + 16


def test_in_strict_mode_the_next_question_begins_after_the_limit_of_the_one_before(served, fake_time):
    service = strict(served, fake_time)
    ana, ben, start = person(service), person(service, "ben"), fake_time.moment
    slow_down(service, [0.1, 7])

    async def both():
        first = asyncio.create_task(service.ask(ana, QueryRequest(COUNT, epsilon="1/10")))
        second = asyncio.create_task(service.ask(ben, QueryRequest("SELECT SUM(cost) AS s FROM visits", epsilon="1/5")))
        await asyncio.gather(first, second)

    asyncio.run(both())
    assert fake_time.moment == start + 16


def test_in_strict_mode_an_equal_question_that_waited_for_its_turn_leaves_at_its_own_limit(served, fake_time):
    service = strict(served, fake_time)
    people, start = [person(service), person(service, "ben")], fake_time.moment

    async def both():
        return await asyncio.gather(*(service.ask(who, QueryRequest(COUNT, epsilon="1/10")) for who in people))

    answers = asyncio.run(both())
    assert len(service.ledger.events()) == 1
    assert answers[0].table.equals(answers[1].table)
    assert fake_time.moment == start + 16


def test_the_engine_stops_before_the_limit_of_strict_mode(served, fake_time):
    assert strict(served, fake_time).curator._engine.seconds == pytest.approx(7.2)
    assert served(seconds=8).curator._engine.seconds == 8


@pytest.mark.parametrize("settings", [{}, {"strict": True, "seconds": 8}])
def test_a_cancel_always_says_cancelled_and_the_query_is_still_charged_and_stored(served, fake_time, settings):
    service = served(source=fake_time, **settings)
    ana = person(service)

    async def cancelled():
        task = asyncio.create_task(service.ask(ana, QueryRequest(COUNT, epsilon="1/10")))
        await until(lambda: service.executions.turns._holders)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await service.finish()

    asyncio.run(cancelled())
    (event,) = service.ledger.events()
    assert event.state is EventState.RELEASED
    assert ask(service, ana).paid.epsilon == 0


def test_a_question_that_is_cancelled_before_its_turn_is_never_charged(served):
    service = served()
    ana, ben = person(service), person(service, "ben")

    async def cancelled():
        async with service.executions.turns.turn("ben"):
            task = asyncio.create_task(service.ask(ana, QueryRequest(COUNT, epsilon="1/10")))
            await until(lambda: service.executions.turns.waiting)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        await service.finish()
        return await service.ask(ben, QueryRequest(COUNT, epsilon="1/10"))

    assert asyncio.run(cancelled()).paid.epsilon > 0
    assert len(service.ledger.events()) == 1


def test_a_tick_is_limited_and_a_date_is_not_a_tick():
    values = {
        "data": {"name": "v"},
        "budget": {"epsilon": 1},
        "tables": {"v": {"source": "v", "unit": "row", "columns": {"a": {"type": "integer"}}}},
    }
    for tick in (-1, 61, datetime(2026, 1, 1)):
        with pytest.raises(dc.PolicyError, match=r"\[server\]: tick must"):
            Policy.from_dict({**values, "server": {"tick": tick}})


def test_in_strict_mode_what_an_execution_hides_is_there_when_it_ends(fake_time):
    times = release_clock.ReleaseTimes(ReleaseClock(0.25, 8.0, fake_time))
    with times.execution(fake_time.moment):
        times.hide("wards")
        fake_time.moment += 19  # its turn came late
        assert times.hidden() == ["wards"]
    assert times.hidden() == []


def test_the_state_of_the_ledger_changes_with_charges_and_when_answers_leave_not_when_they_are_stored(fake_time):
    ledger = TimedLedger(memory_ledger(name="demo", budget=Budget(1)), ReleaseClock(0.25, None, fake_time))
    event, states = Event(mechanism="{}", sensitivity="{}", question="q"), []
    with ledger.release_times.execution(fake_time.moment):
        receipt = ledger.charge(Loss("1/10"), event)
        states.append(ledger.visible_state())
        fake_time.moment += 0.1
        ledger.settle(receipt, b"answer")
    states.append(ledger.visible_state())
    ledger.charge(Loss("1/10"), event)
    states.append(ledger.visible_state())
    fake_time.moment += 0.2
    states.append(ledger.visible_state())
    assert states[0] == states[1]
    assert len(set(states)) == 3
    assert ledger.history().last_row == states[-1][0] == 4
