"""A server that is killed while PostgreSQL clients ask: nothing that was seen is lost, and nothing is charged twice."""

import re
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from fractions import Fraction

import psycopg
import pytest
from server_process import COMMAND, write_clinic

import discreet as dc

NAMES = ("ana", "ben", "eve", "zoe")
QUESTIONS, ROUNDS = 36, 3


@contextmanager
def serving(folder):
    """Start `discreet serve` with the PostgreSQL interface only; give the process and where it listens."""
    command = [*COMMAND, "serve", str(folder / "policy.toml"), "--http", "none", "--pg", "127.0.0.1:0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=folder) as process:
        line = process.stderr.readline()
        found = re.search(r"postgresql://127\.0\.0\.1:(\d+)/clinic", line)
        assert found, line + process.stderr.read()
        try:
            yield process, int(found[1])
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
                assert process.wait(60) in (0, -signal.SIGKILL)  # which the test may have sent just before


def asked_about(name, number):
    """Return what a question is about; some questions of different people are equal."""
    return (ord(name[0]) * 7 + number) % 97


def ask_all(port, name, token):
    """Ask one question after the other until the server is gone; return the answers by number."""
    seen = {}
    try:
        with psycopg.connect(
            f"host=127.0.0.1 port={port} user={name} password={token} dbname=clinic options='-c epsilon=0.01'",
            autocommit=True,
        ) as connection:
            for number in range(QUESTIONS):
                sql = "SELECT COUNT(*) AS n FROM visits WHERE cost > %s"
                seen[number] = connection.execute(sql, [asked_about(name, number)], prepare=number % 2 == 0).fetchone()
    except psycopg.OperationalError:
        pass
    return name, seen


@pytest.mark.long
def test_a_server_that_is_killed_under_load_loses_nothing_seen_and_charges_nothing_twice(tmp_path):
    tokens, seen = write_clinic(tmp_path, NAMES), {}
    for round_number in range(ROUNDS):
        is_last = round_number == ROUNDS - 1
        with serving(tmp_path) as (process, port), ThreadPoolExecutor(len(NAMES)) as pool:
            asked = [pool.submit(ask_all, port, name, tokens[name]) for name in NAMES]
            if not is_last:
                time.sleep(0.4 + 0.3 * round_number)  # whenever it comes, what is checked below must hold
                process.send_signal(signal.SIGKILL)
            for name, answers in (each.result() for each in asked):
                assert not is_last or len(answers) == QUESTIONS
                for number, answer in answers.items():
                    about = asked_about(name, number)
                    assert seen.setdefault(about, answer) == answer
    with dc.open_ledger(tmp_path / "ledger.sqlite", name="clinic") as ledger:
        ledger.verify()
        events = ledger.events()
        assert ledger.spent().epsilon == Fraction(len(events), 100)
    unanswered = sum(str(event.state) == "reserved" for event in events)
    assert len(events) - unanswered == len(seen)
    assert unanswered <= ROUNDS - 1  # one execution at a time


@pytest.mark.long
def test_a_server_that_is_told_to_stop_answers_what_it_has_begun(tmp_path):
    token = write_clinic(tmp_path, ["ana"])["ana"]
    with serving(tmp_path) as (process, port), ThreadPoolExecutor(1) as pool:
        asked = pool.submit(ask_all, port, "ana", token)
        time.sleep(0.7)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        assert asked.result()[0] == "ana"
    with dc.open_ledger(tmp_path / "ledger.sqlite", name="clinic") as ledger:
        assert {str(event.state) for event in ledger.events()} <= {"released"}
