"""One service for many people: roles, limits, fair turns; nothing that is free waits for a running question."""

import asyncio
import json
import threading
from fractions import Fraction

import pytest
from served import COUNT, ask, break_engine, open_service, person, until

import discreet as dc
from discreet.curator import query_releases
from discreet.curator.curator import Curator
from discreet.publish import derived
from discreet.server import fair_turns, rehearsal
from discreet.server.errors import ApprovalNeeded, NotAllowed, RateLimited
from discreet.server.people import Role
from discreet.server.requests import QueryRequest

PLAN = f'[release]\nname = "Wards"\nepsilon = 1\n[tables.by_ward]\nsql = "{COUNT}"\n'


def request(sql=COUNT, epsilon="1/10", **more):
    return QueryRequest(sql, epsilon=epsilon, **more)


def test_an_analyst_asks_in_their_own_name_and_the_owner_in_the_owners(served):
    service = served()
    ask(service, person(service))
    ask(service, person(service, "Dr. Vogel", Role.OWNER), "SELECT SUM(cost) AS s FROM visits")
    assert [event.by for event in service.ledger.events()] == ["ana", "owner"]


def test_a_new_question_is_planned_once_for_the_look_up_and_the_execution(served, monkeypatch):
    plans, plan_query = [], query_releases.plan_query
    monkeypatch.setattr(query_releases, "plan_query", lambda *a, **k: plans.append(a[0]) or plan_query(*a, **k))
    service = served()
    ana = person(service)
    joined = "SELECT SUM(beds) AS s FROM visits JOIN wards ON visits.ward = wards.ward"
    for sql in (COUNT, joined, COUNT):
        ask(service, ana, sql)
    assert plans == [COUNT, joined]


def test_an_auditor_reads_the_ledger_and_neither_asks_nor_sees_answers(served):
    service = served()
    answer = ask(service, person(service))
    auditor = person(service, "audit office", Role.AUDITOR)
    for work in (
        lambda: ask(service, auditor),
        lambda: service.explain(auditor, request()),
        lambda: service.shape(auditor, COUNT),
        lambda: service.rehearse(auditor, request()),
        lambda: asyncio.run(service.publish(auditor, PLAN)),
    ):
        with pytest.raises(NotAllowed):
            work()
    (event,) = service.ledger_history(auditor).events
    assert event.id == answer.receipt.id
    assert not any(isinstance(value, bytes) for value in vars(event).values())
    assert service.budget(auditor).spent.epsilon == Fraction(1, 10)
    assert service.budget(auditor, "ana").spent.epsilon == Fraction(1, 10)
    assert {table.name for table in service.tables(auditor)} == {"visits", "wards"}


def test_an_analyst_sees_neither_the_ledger_nor_the_budgets_of_others(served):
    service = served()
    ana = person(service)
    for work in (lambda: service.ledger_history(ana), lambda: service.budget(ana, "ben")):
        with pytest.raises(NotAllowed):
            work()
    assert service.budget(ana).total.epsilon == 2
    assert {table.name for table in service.tables(person(service, "eve"))} == {"wards"}


def test_an_analyst_who_is_not_granted_a_table_is_refused(served):
    service = served()
    with pytest.raises(dc.Refused):
        ask(service, person(service, "eve"))


def test_explaining_is_free_and_agrees_with_the_charge(served):
    service = served()
    ana = person(service)
    explanation = service.explain(ana, request())
    assert service.ledger.events() == []
    assert ask(service, ana).paid == explanation.paid


def test_the_shape_of_an_answer_is_known_before_it_is_charged(served):
    service = served()
    ana = person(service)
    shape = service.shape(ana, COUNT)
    assert service.ledger.events() == []
    assert ask(service, ana).with_margins().schema.remove_metadata() == shape
    assert service.shape(ana, "SELECT beds FROM wards").names == ["beds"]
    with pytest.raises(dc.Refused):
        service.shape(ana, "SELECT patient FROM visits")


def test_a_rehearsal_reads_no_data_and_charges_nothing(served):
    service = served()
    ana = person(service)
    break_engine(service)
    for _ in range(3):
        assert service.rehearse(ana, request(epsilon=10**4)).table.column_names == ["ward", "n"]
    assert service.ledger.events() == []


def test_requests_of_one_key_have_one_charge_and_keys_belong_to_one_person_and_one_question(served):
    service = served()
    ana, ben = person(service), person(service, "ben")
    first = ask(service, ana, epsilon="1/10", key="k")
    again = ask(service, ana, epsilon="1/10", key="k")
    assert again.table.equals(first.table)
    assert len(service.ledger.events()) == 1
    with pytest.raises(dc.Refused, match="key"):
        ask(service, ana, epsilon="1/5", key="k")
    other = ask(service, ben, "SELECT SUM(cost) AS s FROM visits", epsilon="1/10", key="k")
    assert other.receipt != first.receipt


def test_a_purpose_is_refused_if_it_is_missing_where_the_policy_requires_one(served):
    service = served(purpose="required")
    ana = person(service)
    for purpose in (None, "", "  "):
        with pytest.raises(dc.Refused, match="purpose"):
            asyncio.run(service.ask(ana, request(purpose=purpose)))
    assert asyncio.run(service.ask(ana, request(purpose="ward planning"))).paid.epsilon == Fraction(1, 10)
    (event,) = service.ledger.events()
    assert json.loads(event.question)["stated_purpose"] == "ward planning"
    assert asyncio.run(service.ask(ana, request(purpose="another"))).paid.epsilon == 0
    with pytest.raises(dc.Refused, match="purpose"):
        asyncio.run(service.ask(ana, request("SELECT SUM(cost) AS s FROM visits", purpose="x" * 201)))


def test_a_costly_question_waits_for_the_owners_approval_which_is_used_once(served):
    service = served(approval_above=0.5)
    ana, boss = person(service), person(service, "boss", Role.OWNER)
    ask(service, ana, epsilon="1/2")
    with pytest.raises(ApprovalNeeded) as needed:
        ask(service, ana, "SELECT SUM(cost) AS s FROM visits", epsilon=1)
    with pytest.raises(ApprovalNeeded) as again:
        ask(service, ana, "SELECT SUM(cost) AS s FROM visits", epsilon=1)
    assert again.value.approval == needed.value.approval
    (waiting,) = service.approvals.waiting()
    assert (waiting.by, waiting.kind, waiting.cost) == ("ana", "question", "epsilon 1")
    with pytest.raises(NotAllowed):
        service.approve(ana, waiting.id)
    service.approve(boss, waiting.id)
    with pytest.raises(ApprovalNeeded):
        ask(service, ana, "SELECT SUM(cost) AS s FROM visits", epsilon="11/10")  # another question
    assert ask(service, ana, "SELECT SUM(cost) AS s FROM visits", epsilon=1).paid.epsilon == 1
    assert [each.cost for each in service.approvals.waiting()] == ["epsilon 1.1"]
    assert ask(service, ana, "SELECT SUM(cost) AS s FROM visits", epsilon=1).paid.epsilon == 0
    acts = [str(act) for act in service.ledger_history(boss).recorded_acts]
    assert any(act.startswith("question approved: cost epsilon 1, digest ") for act in acts)


def test_an_approval_that_is_rejected_is_asked_for_again(served):
    service = served(approval_above=0.5)
    ana, boss = person(service), person(service, "boss", Role.OWNER)
    with pytest.raises(ApprovalNeeded) as first:
        ask(service, ana, epsilon=1)
    service.reject(boss, first.value.approval)
    assert service.approvals.waiting() == ()
    with pytest.raises(ApprovalNeeded) as second:
        ask(service, ana, epsilon=1)
    assert first.value.approval != second.value.approval
    with pytest.raises(dc.PolicyError, match="no request"):
        service.approve(boss, first.value.approval)


def test_the_owner_needs_no_approval(served):
    service = served(approval_above=0.5)
    assert ask(service, person(service, "boss", Role.OWNER), epsilon=1).paid.epsilon == 1


def test_the_owner_publishes_and_everybody_finds_the_release(tmp_path):
    with open_service(tmp_path, ledger="ledger.sqlite") as service:
        release = asyncio.run(service.publish(person(service, "boss", Role.OWNER), PLAN))
        assert release.paid.epsilon == 1
        (name,) = service.publications.names()
        assert len(name) == len("wards-") + 32
        boss = person(service, "boss", Role.OWNER)
        assert (
            service.forecast(boss, PLAN).lines()[0] == "Wards: costs nothing, because all of it is published already."
        )
        again = asyncio.run(service.publish(boss, PLAN))
        assert again.paid.epsilon == 0


def test_a_plan_states_its_purpose_where_the_policy_requires_one(tmp_path):
    with open_service(tmp_path, ledger="ledger.sqlite", purpose="required") as service:
        boss = person(service, "boss", Role.OWNER)
        with pytest.raises(dc.Refused, match=r"purpose: the policy requires one. State it in the plan"):
            asyncio.run(service.publish(boss, PLAN))
        assert service.ledger.events() == []
        stated = PLAN.replace("[release]\n", '[release]\npurpose = "ward planning"\n')
        assert asyncio.run(service.publish(boss, stated)).paid.epsilon == 1
        assert {json.loads(event.question)["stated_purpose"] for event in service.ledger.events()} == {"ward planning"}


def test_the_plan_of_an_analyst_is_published_once_the_owner_approves(tmp_path):
    with open_service(tmp_path, ledger="ledger.sqlite") as service:
        ana, boss = person(service), person(service, "boss", Role.OWNER)
        with pytest.raises(ApprovalNeeded) as needed:
            asyncio.run(service.publish(ana, PLAN))
        assert service.ledger.events() == []
        service.approve(boss, needed.value.approval)
        assert asyncio.run(service.publish(ana, PLAN)).paid.epsilon == 1
        assert service.approvals.waiting() == ()


def test_too_many_requests_in_a_minute_are_refused_for_this_person_only(served):
    service = served(requests_per_minute=3)
    ana, ben = person(service), person(service, "ben")
    for _ in range(3):
        service.explain(ana, request())
    with pytest.raises(RateLimited):
        ask(service, ana)
    ask(service, ben)


def test_what_is_free_does_not_wait_for_a_running_question(served):
    service = served()
    ana, ben = person(service), person(service, "ben")
    stored = ask(service, ana)
    engine, reading, go_on = service.curator._engine._private, threading.Event(), threading.Event()
    totals = engine.totals

    def locked(question):
        with engine._connection_lock:
            reading.set()
            go_on.wait()
        return totals(question)

    engine.totals = locked

    async def free():
        assert (await service.ask(ben, request())).table.equals(stored.table)
        assert (await service.ask(ben, request("SELECT ward, beds FROM wards", None))).table.num_rows == 2
        sql = "SELECT beds, AVG(cost) AS a FROM visits JOIN wards ON visits.ward = wards.ward GROUP BY beds"
        assert (await asyncio.to_thread(service.explain, ben, request(sql))).paid.epsilon
        await asyncio.to_thread(service.shape, ben, "SELECT AVG(cost) AS a FROM visits")
        with pytest.raises(dc.Refused):
            await service.ask(ben, request("SELECT patient FROM visits"))
        assert service.budget(ben).spent.epsilon == 0

    async def meanwhile():
        running = asyncio.create_task(service.ask(ana, request("SELECT SUM(cost) AS s FROM visits")))
        await asyncio.to_thread(reading.wait)
        try:
            await asyncio.wait_for(free(), 30)
            assert not running.done()
        finally:
            go_on.set()
        await running

    asyncio.run(meanwhile())


def test_questions_are_executed_one_at_a_time_and_people_take_turns(served):
    service = served()
    people = [person(service, name) for name in ("ana", "ben")]
    engine, order, depth = service.curator._engine._private, [], [0]
    totals = engine.totals

    def read(question):
        depth[0] += 1
        assert depth[0] == 1
        try:
            return totals(question)
        finally:
            depth[0] -= 1

    engine.totals = read

    async def one(who, number):
        await service.ask(who, request(f"SELECT COUNT(*) AS n FROM visits WHERE cost > {number}", groups=1, rows=1))
        order.append(who.name)

    async def all_questions():
        async with service.executions.turns.turn("ben"):
            tasks = [asyncio.create_task(one(people[0], number)) for number in range(4)]
            await until(lambda: service.executions.turns.waiting == 4)
            tasks.append(asyncio.create_task(one(people[1], 9)))
            await until(lambda: service.executions.turns.waiting == 5)
        await asyncio.gather(*tasks)

    asyncio.run(all_questions())
    assert order == ["ana", "ben", "ana", "ana", "ana"]


def test_equal_questions_at_the_same_time_are_charged_once_and_have_equal_answers(served):
    service = served()
    people = [person(service, name) for name in ("ana", "ben")]

    async def all_questions():
        return await asyncio.gather(*(service.ask(people[number % 2], request()) for number in range(20)))

    answers = asyncio.run(all_questions())
    assert len(service.ledger.events()) == 1
    assert all(answer.table.equals(answers[0].table) for answer in answers)
    assert sum(answer.paid.epsilon for answer in answers) == Fraction(1, 10)


def test_one_person_cannot_fill_the_queue(served, monkeypatch):
    monkeypatch.setattr(fair_turns, "_MAX_WAITING", 8)
    service = served()
    ana = person(service)

    async def flood():
        async with service.executions.turns.turn("ben"):
            tasks = [
                asyncio.create_task(service.ask(ana, request(f"SELECT COUNT(*) AS n FROM visits WHERE cost > {n}")))
                for n in range(10)
            ]
            await until(lambda: sum(task.done() for task in tasks) == 2)
            refused = [task for task in tasks if task.done()]
            for task in refused:
                with pytest.raises(RateLimited):
                    await task
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            return len(refused)

    assert asyncio.run(flood()) == 2
    assert service.ledger.events() == []


def test_a_failure_has_the_one_message_and_three_of_them_suspend_the_data_set(served):
    service = served()
    ana = person(service)
    break_engine(service)
    for number in range(3):
        with pytest.raises(dc.Failed) as failure:
            ask(service, ana, f"SELECT COUNT(*) AS n FROM visits WHERE cost > {number}")
        assert "4711" not in str(failure.value)
        assert failure.value.__context__ is None or "4711" not in repr(failure.value.__context__)
    with pytest.raises(dc.Refused, match="suspended"):
        ask(service, ana, "SELECT COUNT(*) AS n FROM visits WHERE cost > 9")
    assert len(service.ledger.events()) == 3


def test_an_error_that_is_none_of_ours_is_a_failure_without_its_text(served, monkeypatch):
    service = served()
    ana = person(service)

    def surprise(*arguments, **more):
        raise KeyError("patient 4711")

    monkeypatch.setattr(service.curator, "ask", surprise)
    with pytest.raises(dc.Failed) as failure:
        ask(service, ana)
    assert "4711" not in str(failure.value)


def test_an_approval_for_one_purpose_does_not_serve_another(served):
    service = served(purpose="required", approval_above=1)
    ana = person(service)
    costly = {"epsilon": 2, "purpose": "research"}
    with pytest.raises(ApprovalNeeded) as needed:
        asyncio.run(service.ask(ana, QueryRequest(COUNT, **costly)))
    service.approvals.approve(service.ledger, needed.value.approval)
    with pytest.raises(ApprovalNeeded):
        asyncio.run(service.ask(ana, QueryRequest(COUNT, **(costly | {"purpose": "marketing"}))))
    assert service.ledger.events() == []
    assert asyncio.run(service.ask(ana, QueryRequest(COUNT, **costly))).paid.epsilon == 2


@pytest.mark.parametrize(
    "part",
    [
        '[tables.all]\nsql = "SELECT COUNT(*) AS n FROM visits"',
        '[tables.all]\nsql = "SELECT COUNT(*) AS n FROM nothing_here"',
        '[synthetic.rows]\ntable = "visits"\ncolumns = ["ward", "cost"]',
    ],
)
def test_a_plan_on_tables_that_are_not_granted_is_refused_as_if_there_were_none(served, part):
    service = served()
    eve = person(service, "eve")
    plan = f'[release]\nname = "Visits"\nepsilon = 1\n{part}'
    for act in (lambda: service.forecast(eve, plan), lambda: asyncio.run(service.publish(eve, plan))):
        with pytest.raises(dc.Refused, match="does not exist") as refusal:
            act()
        assert "Available: visits" not in str(refusal.value)
    assert not service.approvals.waiting()


def test_an_approval_that_is_withdrawn_while_its_question_waits_is_no_approval(served):
    service = served(approval_above=0.5)
    ana, boss = person(service), person(service, "boss", Role.OWNER)
    with pytest.raises(ApprovalNeeded) as needed:
        ask(service, ana, epsilon=1)
    service.approve(boss, needed.value.approval)

    async def reject_meanwhile():
        async with service.executions.turns.turn("ben"):
            waiting = asyncio.create_task(service.ask(ana, request(epsilon=1)))
            await until(lambda: service.executions.turns.waiting == 1)
            service.reject(boss, needed.value.approval)
        with pytest.raises(ApprovalNeeded):
            await waiting

    asyncio.run(reject_meanwhile())
    assert service.ledger.events() == []


def test_a_refused_question_gives_its_approval_back_and_a_failed_one_does_not(served):
    service = served(approval_above=0.5)
    (approval,) = [each for each in [_approved(service)] if each.is_approved]
    with pytest.raises(dc.Refused, match="budget"), service.approvals.used(approval):
        raise dc.Refused("not enough budget left.")
    assert service.approvals.waiting() == (approval,)
    with pytest.raises(dc.Failed), service.approvals.used(approval):
        raise dc.Failed("the charge stands.")
    with pytest.raises(dc.PolicyError, match="no request"), service.approvals.used(approval):
        pytest.fail("an approval was used twice")


def _approved(service):
    with pytest.raises(ApprovalNeeded) as needed:
        ask(service, person(service), epsilon=1)
    service.approvals.approve(service.ledger, needed.value.approval)
    return service.approvals.waiting()[0]


def test_one_person_uses_one_thread_of_what_is_free(served):
    service = served()
    ana, ben = person(service), person(service, "ben")
    blocked, go_on, begun = threading.Event(), threading.Event(), []

    def block():
        begun.append(1)
        blocked.set()
        assert go_on.wait(30)

    async def both():
        for run in (service.run_light, service.run_rehearsal):
            tasks = [asyncio.create_task(run(ana, block)) for _ in range(8)]
            await asyncio.to_thread(blocked.wait, 30)
            tasks[0].cancel()  # its work goes on, and so does the turn
            with pytest.raises(asyncio.CancelledError):
                await tasks[0]
            assert (await asyncio.wait_for(service.ask(ben, request("SELECT beds FROM wards", None)), 30)).table
            if run is service.run_light:
                assert await asyncio.wait_for(run(ben, lambda: 42), 30) == 42
            assert len(begun) == 1
            go_on.set()
            await asyncio.gather(*tasks[1:])
            for each in (blocked, go_on, begun):
                each.clear()

    asyncio.run(both())


def test_turns_go_round_between_persons_with_several_at_once():
    turns, order = fair_turns.FairTurns(2), []

    async def one(name, number):
        async with turns.turn(name):
            order.append(f"{name}{number}")
            await asyncio.sleep(0)

    async def everybody():
        tasks = [asyncio.create_task(one(name, number)) for name in ("ana", "ben", "eve") for number in range(3)]
        await asyncio.sleep(0)
        assert (turns.waiting, order) == (7, ["ana0", "ben0"])  # a third person waits for one of two turns
        tasks[1].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(everybody())
    assert order[2] == "eve0"
    assert sorted(order) == sorted(
        {f"{name}{number}" for name in ("ana", "ben", "eve") for number in range(3)} - {"ana1"}
    )
    assert not turns._holders
    assert turns.waiting == 0


WIDE_SQL = "SELECT ward, COUNT(*) AS n, SUM(cost) AS s FROM visits GROUP BY ward"


def test_a_rehearsal_with_very_many_totals_is_refused_before_it_runs(served, monkeypatch):
    monkeypatch.setattr(rehearsal, "_MAX_TOTALS", 3)
    service = served()
    ana = person(service)
    monkeypatch.setattr(Curator, "ask", lambda *_, **__: pytest.fail("the rehearsal ran"))
    with pytest.raises(dc.Refused, match=r"rehearse: the query has \d+ totals .* at most 3\. Rehearse it with fewer"):
        service.rehearse(ana, request(WIDE_SQL))


def test_the_ledger_of_rehearsals_does_not_grow_without_end(served, monkeypatch):
    monkeypatch.setattr(rehearsal, "_MAX_STORED", 300)
    service = served()
    ana, sizes = person(service), []
    for number in range(3):  # at a cost that never exhausts the budget of a rehearsal
        sql = f"SELECT COUNT(*) AS n FROM visits WHERE cost = {number}"
        service.rehearse(ana, request(sql, epsilon="1/1000000"))
        service.shape(ana, sql)
        sizes.append(len(service.rehearsal._curator.ledger.events()))
    assert sizes == [2, 2, 2]


@pytest.mark.parametrize(
    "sql",
    [
        WIDE_SQL,
        "SELECT cost, COUNT(*) AS n, MEDIAN(cost) AS m FROM visits WHERE cost > 90 GROUP BY cost ORDER BY n LIMIT 5",
        "SELECT ward, cost, AVG(cost) AS a FROM visits GROUP BY ROLLUP (ward, cost)",
        "SELECT beds, SUM(cost) AS s FROM visits JOIN wards ON visits.ward = wards.ward GROUP BY beds",
    ],
)
def test_the_columns_of_a_query_with_very_many_totals_follow_from_a_few_groups(served, monkeypatch, sql):
    service = served()
    ana = person(service)
    whole = service.shape(ana, sql)
    service.rehearsal._shapes.clear()
    monkeypatch.setattr(rehearsal, "_MAX_TOTALS", 0)
    sizes, combine = [], Curator.ask

    def ask_and_measure(*arguments, **more):
        answer = combine(*arguments, **more)
        sizes.append(answer.table.num_rows)
        return answer

    monkeypatch.setattr(Curator, "ask", ask_and_measure)
    assert service.shape(ana, sql).equals(whole)
    assert sizes[-1] <= 2 * 8 + 3


def test_long_computations_on_published_tables_keep_neither_other_questions_nor_the_owner_waiting(served, monkeypatch):
    service, begun, gate = served(), [], threading.Event()

    def compute(*_):
        begun.append(1)
        gate.wait(60)

    monkeypatch.setattr(derived, "derived_answer", compute)
    people = [person(service, f"Dr. {name}", Role.OWNER) for name in "ABCD"]
    owner = person(service, "Dr. Vogel", Role.OWNER)

    async def main():
        waiting = [asyncio.create_task(service.ask(each, QueryRequest(COUNT))) for each in people]
        await until(lambda: len(begun) == 2)
        answer = await asyncio.wait_for(service.ask(owner, request()), 50)
        assert await asyncio.wait_for(service.run_act(owner, lambda: 1), 50) == 1
        assert not any(each.done() for each in waiting)
        gate.set()
        await asyncio.gather(*waiting, return_exceptions=True)
        return answer

    assert asyncio.run(main()).table.num_rows
