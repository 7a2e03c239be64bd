"""A request with the key of a query that is being answered, or for the same totals, waits for the answer."""

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from blocked_query import SQL, TOML, number, opened

import discreet as dc
from discreet.curator.in_flight_locks import InFlightLocks
from discreet.kernel.ledger import UNKNOWN_OUTCOME
from discreet.policy import Policy

HERE = Path(__file__).parent
KINDS = ["memory", "file", "postgres"]


@pytest.fixture(params=KINDS)
def policy(request, tmp_path):
    if request.param == "postgres":
        cluster = request.getfixturevalue("postgres")
        from discreet.ledger_postgres.schema import schema_name
        from discreet.postgres.server import connect

        with connect(cluster.url()) as connection:
            connection.execute(f"DROP SCHEMA IF EXISTS {schema_name('visits')} CASCADE")
        ledger = cluster.url()
    else:
        ledger = {"memory": ":memory:", "file": "visits.sqlite"}[request.param]
    path = tmp_path / "visits.toml"
    path.write_text(TOML.format(ledger=ledger))
    return path


shared = pytest.mark.parametrize("policy", KINDS[1:], indirect=True)  # what other processes can reach


class HeldUp:
    """An engine's way to the totals that waits, and counts how often it was gone."""

    def __init__(self, curator):
        self.reading, self.go, self.times = threading.Event(), threading.Event(), 0
        self._totals = curator._engine.totals
        curator._engine.totals = self

    def __call__(self, question):
        self.times += 1
        self.reading.set()
        assert self.go.wait(120)
        return self._totals(question)


def first_elsewhere(policy):
    """Start a process that asks with the key and is held up."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    process = subprocess.Popen([sys.executable, HERE / "blocked_query.py", policy], text=True, env=environment, **pipes)
    assert process.stdout.readline() == "reading\n"
    return process


def waits(future):
    """Whether a question is still waiting, after others have had time to answer it wrongly."""
    time.sleep(0.05)
    return not future.done()


@pytest.mark.long
def test_threads_wait_for_the_first_and_get_the_same_bytes(policy):
    with opened(policy) as curator, ThreadPoolExecutor(9) as pool:
        held = HeldUp(curator)
        answers = [pool.submit(number, curator)]
        assert held.reading.wait(120)
        answers += [pool.submit(number, curator) for _ in range(8)]
        assert all(map(waits, answers))
        held.go.set()
        assert len({answer.result(120) for answer in answers}) == 1
        assert held.times == 2  # the query and its contribution histogram
        assert curator.ledger.spent().epsilon == dc.Loss("1/10").epsilon


def test_other_queries_wait_for_nobody(policy):
    with opened(policy) as curator, ThreadPoolExecutor(1) as pool:
        held = HeldUp(curator)
        first = pool.submit(number, curator)
        assert held.reading.wait(120)
        curator._engine.totals = held._totals
        curator.ask(f"{SQL} WHERE patient > 3", epsilon="1/10")
        assert not first.done()
        held.go.set()
        first.result(120)


@pytest.mark.long
def test_equal_queries_at_the_same_moment_are_charged_once(policy):
    """Whoever asks, with or without a key, in another order of words, and also for less accuracy."""
    with opened(policy) as curator, opened(policy) as elsewhere, ThreadPoolExecutor(5) as pool:
        held = HeldUp(curator)
        first = pool.submit(number, curator, key=None)
        assert held.reading.wait(120)
        others = [
            pool.submit(number, curator, key=None),
            pool.submit(number, curator, key="other"),
            pool.submit(curator.ask, "SELECT COUNT(*) AS visits FROM visits", epsilon="1/20"),
        ]
        others += [pool.submit(number, elsewhere, key=None)] if curator.policy.data.ledger != ":memory:" else []
        assert all(map(waits, [first, *others]))
        held.go.set()
        for answer in (first, *others):
            answer.result(120)
        assert len(curator.ledger.events()) == 1


def test_when_the_first_of_equal_queries_fails_the_next_one_is_charged_itself(policy, caplog):
    def broken(question):
        raise RuntimeError("no disk")

    with opened(policy) as curator:
        totals, curator._engine.totals = curator._engine.totals, broken
        with pytest.raises(dc.Failed):
            number(curator, key=None)
        curator._engine.totals = totals
        number(curator, key=None)
        assert len(curator.ledger.events()) == 2
        assert "no disk" in caplog.text


def test_a_failed_first_query_is_not_waited_for(policy, caplog):
    def broken(question):
        raise RuntimeError("no disk")

    with opened(policy) as curator:
        totals, curator._engine.totals = curator._engine.totals, broken
        with pytest.raises(dc.Failed):
            number(curator)
        curator._engine.totals = totals
        with pytest.raises(dc.Failed, match=UNKNOWN_OUTCOME[:40]):
            number(curator)
        assert "no disk" in caplog.text


@shared
@pytest.mark.long
def test_processes_wait_for_the_first_and_get_the_same_bytes(policy):
    process = first_elsewhere(policy)
    with opened(policy) as curator, opened(policy) as other, ThreadPoolExecutor(4) as pool:
        answers = [pool.submit(number, each) for each in (curator, curator, other, other)]
        assert all(map(waits, answers))
        said, _ = process.communicate("go\n", timeout=240)
        value = int(said.split()[-1])  # before it, the process says when it reads, once for each release
        assert {answer.result(120) for answer in answers} == {value}
        assert len(curator.ledger.events()) == 1


@shared
@pytest.mark.long
def test_when_the_first_is_killed_the_outcome_is_unknown_to_waiters(policy):
    process = first_elsewhere(policy)
    with opened(policy) as curator, ThreadPoolExecutor(3) as pool:
        answers = [pool.submit(number, curator) for _ in range(3)]
        assert all(map(waits, answers))
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=240)
        for answer in answers:
            with pytest.raises(dc.Failed, match="outcome is unknown"):
                answer.result(120)
        assert len(curator.ledger.events()) == 1, "and nobody was charged again"


@shared
@pytest.mark.long
def test_a_fork_does_not_keep_the_key_of_a_parent_that_was_killed(policy):
    script = f"""
import os, sys, threading, time; sys.path.insert(0, {str(HERE)!r})
from blocked_query import number, opened
curator = opened({str(policy)!r})
def held_up(question):
    child = os.fork()
    if child == 0:
        time.sleep(600)  # a worker of somebody's, which outlives its parent
        os._exit(0)
    print(child, flush=True)
    time.sleep(600)
curator._engine.totals = held_up
number(curator)
"""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    process = subprocess.Popen([sys.executable, "-c", script], text=True, env=environment, stdout=subprocess.PIPE)
    child = int(process.stdout.readline())
    try:
        with opened(policy) as curator, ThreadPoolExecutor(1) as pool:
            answer = pool.submit(number, curator)
            assert waits(answer)
            process.kill()
            process.wait(120)
            with pytest.raises(dc.Failed, match="outcome is unknown"):
                answer.result(120)
    finally:
        os.kill(child, signal.SIGKILL)
        process.stdout.close()


def test_nobody_waits_beyond_the_time_limit(policy):
    with opened(policy) as curator:
        impatient = InFlightLocks(curator.ledger, seconds=0.01)
        with impatient.exclusive_key("owner", "k"):
            with (
                pytest.raises(dc.Refused, match=r"still running.*time limit"),
                impatient.exclusive_key("owner", "k"),
            ):
                pass
            with impatient.exclusive_key("owner", "other"), impatient.exclusive_key("ana", "k"):
                pass
        with impatient.exclusive_key("owner", "k"):
            pass
        impatient.close()


@shared
def test_nobody_waits_beyond_the_time_limit_for_another_process(policy):
    with opened(policy) as curator:
        one, two = (InFlightLocks(curator.ledger, seconds=0.01) for _ in range(2))
        with (
            one.exclusive_key("owner", "k"),
            pytest.raises(dc.Refused, match="time limit"),
            two.exclusive_key("owner", "k"),
        ):
            pass
        with two.exclusive_key("owner", "k"):
            pass
        one.close()
        two.close()


@pytest.mark.parametrize("policy", ["file"], indirect=True)
def test_the_lock_of_a_key_leaves_no_file_and_has_one_that_only_the_owner_reads(policy):
    with opened(policy) as curator:
        in_flight = InFlightLocks(curator.ledger, seconds=1)
        with in_flight.exclusive_key("owner", "k"):
            (lock,) = policy.parent.glob("visits.sqlite.key-*")
            assert lock.stat().st_mode & 0o777 == 0o600
        assert not list(policy.parent.glob("*.key-*"))


@pytest.mark.parametrize("policy", ["file"], indirect=True)
def test_the_lock_is_exclusive_although_its_file_is_removed(policy):
    """The file is removed with each release: nobody may hold one that is no longer there."""
    inside, most = 0, 0
    with opened(policy) as curator:

        def enter(in_flight):
            nonlocal inside, most
            for _ in range(20):
                with in_flight.exclusive_key("owner", "k"):
                    inside += 1
                    most = max(most, inside)
                    time.sleep(0)
                    inside -= 1

        threads = [threading.Thread(target=enter, args=[InFlightLocks(curator.ledger, seconds=600)]) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert most == 1


@pytest.mark.parametrize("policy", ["postgres"], indirect=True)
def test_a_lost_connection_of_locks_is_opened_again(policy, postgres):
    from discreet.postgres.server import connect

    with opened(policy) as curator:
        in_flight = InFlightLocks(curator.ledger, seconds=1)
        with in_flight.exclusive_key("owner", "k"), connect(postgres.url()) as connection:
            pid = in_flight._database_locks.server.connection.info.backend_pid
            connection.execute("SELECT pg_terminate_backend(%s)", [pid])
        with in_flight.exclusive_key("owner", "k"):
            pass
        in_flight.close()


def test_a_curator_of_a_policy_without_a_file_has_keys_too():
    with opened(Policy.parse(TOML.format(ledger=":memory:"))) as curator:
        assert number(curator) == number(curator)
