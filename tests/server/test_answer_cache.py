"""Answers that were built before are returned as they are, until anything in the ledger changes."""

import asyncio
import gc
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from served import COUNT, ask, open_service, person

import discreet as dc
from discreet.server import answer_cache
from discreet.server.http import answer_bodies
from discreet.server.people import Role

SUM = "SELECT SUM(cost) AS s FROM visits"


@pytest.fixture
def built(monkeypatch):
    """Count how often answers are built."""
    calls = []

    def count(service):
        stored = service.curator.stored_answer

        def counted(sql, **more):
            calls.append(sql)
            return stored(sql, **more)

        monkeypatch.setattr(service.curator, "stored_answer", counted)
        return calls

    return count


def test_a_repeated_question_is_built_once(served, built):
    service = served()
    ana, first = person(service), None
    first = ask(service, ana)
    calls = built(service)
    answers = [ask(service, ana) for _ in range(5)]
    assert len(calls) == 1
    assert all(answer is answers[0] for answer in answers)
    assert answers[0].table.equals(first.table)


def test_whatever_is_recorded_in_the_ledger_ends_the_cache(served, built):
    service = served()
    ana, ben = person(service), person(service, "ben")
    ask(service, ana)
    ask(service, ana)
    calls = built(service)
    ask(service, ben, SUM)  # a charge and an answer
    assert ask(service, ana).remaining is not None
    service.people.add(service.ledger, "audit office", Role.AUDITOR)  # an act of the owner
    ask(service, ana)
    assert calls == [SUM, COUNT, COUNT]


def test_what_remains_is_up_to_date(served):
    service = served()
    ana = person(service)
    for spent, sql in ((1, COUNT), (2, SUM)):
        ask(service, ana, sql, epsilon="1/2")
        assert ask(service, ana, COUNT, epsilon="1/2").remaining == 2 - spent / 2


def test_people_and_costs_do_not_share_entries(served, built):
    service = served()
    ana, ben = person(service), person(service, "ben")
    ask(service, ana)
    calls = built(service)
    answers = [ask(service, ana), ask(service, ben), ask(service, ana, groups=1, epsilon="1/1000")]
    assert len(calls) == 3
    assert answers[0].remaining != answers[1].remaining


def test_the_cache_is_bounded(served, monkeypatch):
    monkeypatch.setattr(answer_cache, "_MAX_ANSWERS", 3)
    service = served()
    ana = person(service)
    questions = [f"SELECT COUNT(*) AS n FROM visits WHERE cost > {number}" for number in range(5)]
    for _ in range(2):
        for sql in questions:
            ask(service, ana, sql)
    assert len(service._answers._answers) == 3
    monkeypatch.setattr(answer_cache, "_MAX_BYTES", 64)
    ask(service, ana, questions[0])
    assert service._answers._bytes <= 64


def test_answers_from_public_tables_are_read_again(served, built):
    service = served()
    ana, calls = person(service), built(service)
    for _ in range(2):
        ask(service, ana, "SELECT ward, beds FROM wards")
    assert len(calls) == 2


def test_a_ledger_that_was_changed_behind_its_back_is_noticed_before_a_cached_answer_leaves(tmp_path):
    with open_service(tmp_path, ledger="ledger.sqlite") as service:
        ana = person(service)
        ask(service, ana)
        ask(service, ana)
        with sqlite3.connect(tmp_path / "ledger.sqlite") as connection:
            for (trigger,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
                connection.execute(f"DROP TRIGGER {trigger}")
            (table,) = connection.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table' AND sql LIKE '%hash%' LIMIT 1"
            ).fetchone()
            connection.execute(f"DELETE FROM {table} WHERE rowid = (SELECT MAX(rowid) FROM {table})")
        connection.close()
        with pytest.raises(dc.LedgerError):
            ask(service, ana)


def test_how_long_a_stored_answer_takes_does_not_show_that_another_is_ready(served, fake_time, built):
    service = served(tick="1/4", source=fake_time)
    ana, ben = person(service), person(service, "ben")
    stored, calls = ask(service, ben, SUM), built(service)
    engine, wait = service.curator._engine._private, fake_time.wait
    totals, counts = engine.totals, []

    def repeat(_):
        """Ask twice for what is stored, and count the answers that had to be built."""
        before = len(calls)
        assert all(ask(service, ben, SUM).table.equals(stored.table) for _ in range(2))
        counts.append(len(calls) - before)

    def read(question):
        ThreadPoolExecutor(1).submit(repeat, None).result()  # whoever executes sees everything
        fake_time.moment += 0.1
        return totals(question)

    async def look_and_wait(seconds):
        fake_time.wait = wait
        await asyncio.to_thread(repeat, None)
        await wait(seconds)

    engine.totals, fake_time.wait = read, look_and_wait
    ask(service, ana)
    repeat(None)
    assert counts == [1, 0, 0, 1]  # after the charge, until the answer leaves, and after that


def test_a_kept_answer_is_encoded_once_in_each_form_unless_it_is_large(served, monkeypatch):
    service, bodies, encoded = served(), answer_bodies.AnswerBodies(), []
    encode = answer_bodies._encoded
    monkeypatch.setattr(answer_bodies, "_encoded", lambda *given: encoded.append(given[1]) or encode(*given))
    ana = person(service)
    ask(service, ana)
    kept = ask(service, ana)
    for accept in ("text/csv", "", "text/csv", "*/*"):
        kind = accept if accept == "text/csv" else "application/json"
        assert bodies.response(kept, accept).body == encode(kept, kind, "private")
    assert encoded == ["text/csv", "application/json"]
    monkeypatch.setattr(answer_bodies, "_MAX_KEPT", 10)
    other = ask(service, ana, SUM)
    assert bodies.response(other, "").body == bodies.response(other, "").body
    assert encoded[2:] == ["application/json"] * 2
    del kept, other
    service._answers._answers.clear()
    for _ in range(10_000):  # a thread that has computed the answer may hold it for a moment more
        gc.collect()
        if not bodies._bodies:
            break
        time.sleep(0.001)
    assert len(bodies._bodies) == 0
