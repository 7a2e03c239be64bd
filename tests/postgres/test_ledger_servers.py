"""Several servers share one ledger: each has a head of its own, and what one of them saw is never forgotten."""

import fcntl
import os
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from kernel.ledger_locations import place_of

from discreet.kernel.errors import LedgerError, PolicyError, Refused
from discreet.kernel.event import Event
from discreet.kernel.loss import Budget, Loss
from discreet.ledger_admin.verify import verify_ledger
from discreet.ledger_postgres.ledger import create_postgres_ledger, open_postgres_ledger
from discreet.ledger_postgres.location import PostgresLocation
from discreet.ledger_postgres.schema import schema_name
from discreet.ledger_postgres.session import milestones
from discreet.ledger_sqlite.checkpoint_file import read_checkpoint

HERE = Path(__file__).parent
CENT = Loss("1/100")
EVENT = Event(mechanism="{}", sensitivity="{}", question="count")


def fill(ledger, count):
    for _ in range(count):
        ledger.settle(ledger.charge(CENT, EVENT), b"1")


@pytest.fixture
def place(request, tmp_path):
    place = place_of("postgres", request, tmp_path)
    with place.create(budget=Budget(10)) as ledger:
        fill(ledger, 5)
    return place


def test_a_missing_ledger_is_an_error_and_not_a_fresh_one(place):
    with pytest.raises(LedgerError, match=r"the ledger does not exist\. .*create_postgres_ledger"):
        place.open("other")
    assert place.run(["SELECT count(*) FROM pg_namespace WHERE starts_with(nspname, 'discreet_other')"]) == [(0,)]


def test_creating_never_replaces_a_ledger_nor_the_trace_of_one(place):
    with pytest.raises(LedgerError, match="ledger with this name already exists"):
        place.create()
    place.empty()
    with pytest.raises(LedgerError, match="missing, but its checkpoint exists"):
        place.create()
    place.head.write_text("")
    with pytest.raises(LedgerError, match="missing, but its checkpoint exists"):
        place.create()
    place.head.unlink()
    place.create().close()


def test_creation_is_atomic(place, monkeypatch):
    def crash(*_):
        raise OSError(5, "Input/output error")

    place.empty()
    place.head.unlink()
    with monkeypatch.context() as patch:
        patch.setattr("discreet.kernel.ledger.table.LedgerTable.add_row", crash)
        with pytest.raises(LedgerError, match="Input/output error"):
            place.create()
    with pytest.raises(LedgerError, match="the ledger does not exist"):
        place.open()
    place.create().close()


def test_a_ledger_belongs_to_its_name(place):
    create_postgres_ledger(place.url, name="other", budget=Budget(1)).close()
    place.empty()
    place.run([f"ALTER SCHEMA {schema_name('other')} RENAME TO {place.schema}"])
    with pytest.raises(PolicyError, match="belongs to 'other', not to 'demo'"):
        open_postgres_ledger(place.url, name="demo")


def test_data_sets_share_a_database_and_nothing_else(place):
    place.run([f"DROP SCHEMA IF EXISTS {schema_name('another')} CASCADE"])
    with create_postgres_ledger(place.url, name="another", budget=Budget(1)) as another, place.open() as ledger:
        another.charge(Loss(1), EVENT)
        assert ledger.spent().epsilon == 5 * CENT.epsilon
        with pytest.raises(Refused):
            another.charge(CENT, EVENT)
        ledger.charge(CENT, EVENT)
        verify_ledger(another)
        verify_ledger(ledger)


def test_a_server_without_a_checkpoint_creates_one_when_it_opens_the_ledger(place):
    second = place.server("second")
    with second.open():
        assert read_checkpoint(second.head) == read_checkpoint(place.head)
    assert stat.S_IMODE(second.head.stat().st_mode) == 0o600
    assert {found.name for found in place.folder.iterdir()} == {"head", "head.lock", "second", "second.lock"}


def test_a_checkpoint_records_rows_of_the_ledger(place):
    hashes = {row.seq: row.hash for row in place.rows()}
    head = read_checkpoint(place.head)
    assert (head.seq, head.hash) == (11, hashes[11])
    assert [seq for seq, _ in head.earlier] == milestones(11)
    assert all(hashes[seq].startswith(known) and len(known) == 16 for seq, known in head.earlier)


def test_a_checkpoint_follows_charges_of_other_servers_when_used(place):
    second = place.server("second")
    with second.open() as behind, place.open() as ahead:
        before = read_checkpoint(second.head)
        fill(ahead, 3)
        assert read_checkpoint(second.head) == before
        behind.spent()
        assert read_checkpoint(second.head) == read_checkpoint(place.head)
        fill(ahead, 3)
        behind.charge(CENT, EVENT, key="k")
        fill(ahead, 3)
        with pytest.raises(Refused):
            behind.charge(Loss(100), EVENT)
        assert read_checkpoint(second.head).seq < read_checkpoint(place.head).seq
        behind.spent()
        assert read_checkpoint(second.head) == read_checkpoint(place.head)


def test_a_checkpoint_never_advances_to_a_row_that_was_not_checked(place):
    """A row with a valid hash of its own, but none of the row before it, is not part of the chain."""
    last = place.rows()[-1]
    forged = last._replace(seq=last.seq + 1, previous="0" * 64, receipt=None, kind="acknowledge")
    forged = forged._replace(hash=forged.digest())
    place.tamper([f"INSERT INTO rows VALUES ({', '.join('?' * len(forged))})", *forged])
    before = read_checkpoint(place.head)
    with place.open() as ledger, pytest.raises(LedgerError, match="does not contain the hash of the previous row"):
        ledger.moved_to  # noqa: B018 - the first thing that is read of every ledger
    with place.open() as ledger, pytest.raises(LedgerError):
        ledger.spent()
    with place.open() as ledger, ledger.session.read_transaction() as table:
        assert table.last_row() == forged
    assert read_checkpoint(place.head) == before
    newcomer = place.server("newcomer")
    with pytest.raises(LedgerError, match="does not contain the hash of the previous row"):
        newcomer.open()
    assert read_checkpoint(newcomer.head) is None


@pytest.mark.long
def test_each_server_detects_a_rollback_of_rows_it_has_seen(place):
    """A backup is restored: whoever had seen more stops; whoever had not goes on, and nothing is forgotten."""
    second, third = place.server("second"), place.server("third")
    with second.open():
        pass
    place.back_up()
    with place.open() as ledger, third.open() as also:
        fill(ledger, 10)
        assert also.spent() == ledger.spent()
        before = ledger.spent()
    place.restore()
    with place.open() as first, third.open() as also, second.open() as behind:
        for ledger in (first, also):
            with pytest.raises(LedgerError, match="rolled back from row 31 to row 11"):
                ledger.charge(CENT, EVENT)
        fill(behind, 2)  # which it cannot know
        first.acknowledge()
        assert first.spent().epsilon == before.epsilon + 2 * CENT.epsilon
        fill(first, 1)
        verify_ledger(first)
        verify_ledger(behind)
        # The third knows nothing of what the first acknowledged: it counts its own loss again, rather than too little.
        with pytest.raises(LedgerError, match="rolled back from row 31"):
            verify_ledger(also)
        also.acknowledge()
        assert also.spent().epsilon == before.epsilon + (3 + 10) * CENT.epsilon
        for ledger in (first, also, behind):
            ledger.charge(CENT, EVENT)
            verify_ledger(ledger)


@pytest.mark.long(only=["40-21-30", "45-2-5"])
@pytest.mark.parametrize(("seen", "kept", "beside"), [(3, 1, 0), (3, 1, 1), (12, 3, 20), (45, 2, 5), (40, 21, 30)])
def test_the_acknowledged_loss_covers_charges_unknown_to_other_servers(place, seen, kept, beside):
    """One server charges, all but some of it is lost, another goes on, perhaps farther: the sum is never too small."""
    second = place.server("second")
    with second.open(), place.open() as ledger:
        fill(ledger, kept)
        place.back_up()
        fill(ledger, seen - kept)
        truth = ledger.spent().epsilon + beside * CENT.epsilon
        lost = (seen - kept) * CENT.epsilon
    place.restore()
    with second.open() as behind:
        fill(behind, beside)
    with place.open() as ledger:
        with pytest.raises(LedgerError, match="acknowledge"):
            ledger.charge(CENT, EVENT)
        ledger.acknowledge()
        assert truth <= ledger.spent().epsilon <= truth + lost / 8
        ledger.charge(CENT, EVENT)
        verify_ledger(ledger)


def test_a_checkpoint_that_disappears_while_in_use_stops_charges(place):
    with place.open() as ledger:
        place.head.unlink()
        for act in (lambda: ledger.charge(CENT, EVENT), lambda: verify_ledger(ledger)):
            with pytest.raises(LedgerError, match="checkpoint file is missing"):
                act()
        ledger.acknowledge()
        ledger.charge(CENT, EVENT)
        verify_ledger(ledger)


def test_a_server_that_lost_its_checkpoint_charges_nothing_until_acknowledged(place):
    """The lock file tells it from a new server, which has nothing to remember."""
    place.head.unlink()
    with place.open() as ledger:
        assert ledger.spent().epsilon == 5 * CENT.epsilon
        for act in (lambda: ledger.charge(CENT, EVENT), lambda: verify_ledger(ledger)):
            with pytest.raises(LedgerError, match=r"checkpoint file is missing .*acknowledge"):
                act()
    with place.open() as ledger:
        ledger.acknowledge()
        ledger.charge(CENT, EVENT)
        verify_ledger(ledger)
    assert read_checkpoint(place.head).seq == 13


def test_without_a_checkpoint_a_rollback_is_not_detected(place):
    """Which is why a policy's ledger has one."""
    place.back_up()
    with open_postgres_ledger(place.url, name="demo") as ledger:
        fill(ledger, 5)
    place.restore()
    with open_postgres_ledger(place.url, name="demo") as ledger:
        ledger.charge(CENT, EVENT)
        verify_ledger(ledger)
        ledger.acknowledge()
        assert ledger.spent().epsilon == 6 * CENT.epsilon


def test_a_checkpoint_that_cannot_be_written_wastes_one_charge_only(place, monkeypatch):
    def broken(*_):
        raise OSError(28, "No space left on device")

    with place.open() as ledger:
        with monkeypatch.context() as patch:
            patch.setattr("discreet.ledger_postgres.location.write_checkpoint", broken)
            for _ in range(3):
                with pytest.raises(LedgerError, match=r"cannot read or write the checkpoint file .*\(.*No space left"):
                    ledger.charge(CENT, EVENT)
        assert ledger.spent().epsilon == 6 * CENT.epsilon
        ledger.charge(CENT, EVENT)
        assert ledger.spent().epsilon == 7 * CENT.epsilon
        assert read_checkpoint(place.head).seq == 13
        verify_ledger(ledger)


def test_a_process_that_hangs_with_the_checkpoint_lock_blocks_nobody_for_ever(place, monkeypatch):
    monkeypatch.setattr("discreet.ledger_postgres.location.CHECKPOINT_LOCK_TIMEOUT", 0.2)
    with place.open() as ledger:
        with place.head.with_name("head.lock").open() as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            with pytest.raises(LedgerError, match=r"another process holds the lock.*stay charged"):
                ledger.charge(CENT, EVENT)
        ledger.charge(CENT, EVENT)
        assert ledger.spent().epsilon == 7 * CENT.epsilon


def test_the_checkpoint_is_written_after_the_commit(place, monkeypatch):
    seen = []

    def look(_path, head):
        seen.append((place.rows()[-1].seq, head.seq))

    monkeypatch.setattr("discreet.ledger_postgres.location.write_checkpoint", look)
    with place.open() as ledger:
        ledger.charge(CENT, EVENT)
    assert seen == [(12, 12)]


def test_a_missing_folder_is_named(place):
    nowhere = place.server("nowhere/head")
    with pytest.raises(LedgerError, match=r"cannot read or write the checkpoint file .*nowhere"):
        nowhere.open()


def test_a_checkpoint_goes_back_only_from_the_acknowledged_one(place):
    database = PostgresLocation(place.url, "demo", place.head)
    now, older, newer = (replace(read_checkpoint(place.head), seq=seq) for seq in (11, 10, 12))
    for head, instead_of, kept in (
        (older, None, now),
        (newer, None, newer),
        (now, None, newer),
        (older, now, newer),  # another process wrote in between
        (older, newer, older),
    ):
        database.store_checkpoint(head, instead_of)
        assert read_checkpoint(place.head) == kept


@pytest.mark.long
def test_processes_of_one_server_share_its_checkpoint_and_it_never_goes_back(place):
    command = [sys.executable, str(HERE / "ledger_checkpoints.py"), place.text, "25"]
    paths = os.pathsep.join([str(HERE.parent), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": paths, "OPENBLAS_NUM_THREADS": "1"}
    workers = [subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) for _ in range(4)]
    said = [worker.communicate(timeout=240)[1] for worker in workers]
    assert [worker.returncode for worker in workers] == [0] * 4, said
    with place.open() as ledger:
        verify_ledger(ledger)
    assert read_checkpoint(place.head).seq == 11 + 100


@pytest.mark.long
def test_settled_rows_are_checked_again_after_a_rollback(place):
    """A long-lived process remembers up to where everything was settled: of another history it knows nothing."""
    with place.open() as watching:
        place.back_up()
        with place.open() as ledger:
            fill(ledger, 10)
        assert watching.unsettled_events() == []
        place.restore()
        with place.open() as ledger:
            ledger.acknowledge()
            ledger.charge(CENT, EVENT)
            fill(ledger, 20)
        assert len(watching.unsettled_events()) == 1


def test_a_ledger_of_many_pages_is_read_in_order(place, monkeypatch):
    monkeypatch.setattr("discreet.kernel.ledger.table._PAGE_ROWS", 3)
    topics = tuple((f"t{number}\\0",) for number in range(7))
    event = Event(mechanism="{}", sensitivity="{}", question="count", fingerprints=topics)
    with place.open() as ledger:
        for size in (0, 10, 100, 30, 39, 1, 1, 1):
            ledger.settle(ledger.charge(CENT, event, key=f"\\{size}\\0" + os.urandom(4).hex()), b"x" * size)
        verify_ledger(ledger)
        with ledger.session.read_transaction() as table:
            rows = list(table.rows())
            assert [row.seq for row in rows] == list(range(1, 28))
            answers = [table.answer(row.receipt) for row in rows if row.kind == "settle"]
            assert sorted(map(len, answers)) == [0, *[1] * 8, 10, 30, 39, 100]
            assert table.count_answers() == len(answers)
        for (topic,) in topics:
            assert len(ledger.answers([topic])) == 8
    with place.open() as ledger:
        assert len(ledger.answers([topics[0][0]])) == 8


@pytest.mark.long
def test_long_answers_are_kept_byte_by_byte(place):
    answer = os.urandom(1_000_000) * 20
    with place.open() as ledger:
        ledger.settle(ledger.charge(CENT, EVENT, key="long"), answer)
        assert ledger.charge(CENT, EVENT, key="long").answer == answer
