"""kill -9 during ask: no answer without a charge, and no second draw for one charge."""

import random
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from asks_forever import question

import discreet as dc
from discreet.ledger_admin.verify import verify_ledger
from discreet.policy import Policy

pytestmark = pytest.mark.slow

POLICY = """
[data]
name = "crash"
[budget]
epsilon = 1000
failures = 1000
[tables.t]
source = "t.parquet"
unit = "person"
groups = 1
rows = 1
[tables.t.columns]
person = { type = "integer" }
number = { type = "integer" }
"""


def test_killed_questions_lose_nothing_that_was_seen(tmp_path):
    pq.write_table(pa.table({"person": list(range(1000)), "number": list(range(1000))}), tmp_path / "t.parquet")
    policy = tmp_path / "policy.toml"
    policy.write_text(POLICY)
    chance, seen = random.Random(9), {}
    for life in range(40):
        command = [sys.executable, str(Path(__file__).with_name("asks_forever.py")), str(policy), str(life)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as worker:
            lines = [worker.stdout.readline() for _ in range(1 + life % 6)]
            time.sleep(chance.random() * 0.05)  # somewhere in the next questions
            worker.kill()
            lines += worker.stdout.read().splitlines(keepends=True)
        whole = [line.split() for line in lines if line.endswith("\n")]
        seen |= {receipt: (f"{life}-{number}", value) for number, (receipt, value) in enumerate(whole)}
    with dc.open(Policy.load(policy)) as curator:
        verify_ledger(curator.ledger)
        events = {event.id: event for event in curator.ledger.events()}
        assert set(seen) <= set(events)
        assert (
            curator.budget().spent.epsilon == len(events) * dc.privacy.cost_of(curator.policy.budget, "1/1000").epsilon
        )
        for receipt, (key, value) in list(seen.items())[:200]:
            life, number = key.split("-")
            again = curator.ask(question(life, number), epsilon="1/1000", key=key)
            assert (again.receipt.id, str(again.value)) == (receipt, value)
        assert len(curator.ledger.events()) == len(events)
    assert len(seen) >= 40
