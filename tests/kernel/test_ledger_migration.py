"""A ledger that moves: nothing is lost, nothing counts twice, and only one place goes on."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from discreet.curator.ledger_location import moved_message
from discreet.kernel.errors import Failed, LedgerError, Refused
from discreet.kernel.event import Event, canonical_json
from discreet.kernel.ledger.chain import (
    Chain,
    RowKind,
)
from discreet.kernel.loss import ZERO_LOSS, Budget, Loss
from discreet.ledger_admin.move import mark_moved, move_ledger, open_target_ledger
from discreet.ledger_admin.verify import arrival_text, check_rows, verify_ledger
from discreet.ledger_sqlite import create_ledger, memory_ledger, open_ledger

CENT = Loss("1/100")
HERE = Path(__file__).parent


def event(question="count", by="owner", **more):
    return Event(mechanism="{}", sensitivity="{}", question=question, by=by, **more)


def opened(path):
    return open_ledger(path, name="demo")


def move(source, target, **more):
    with opened(source) as old, open_target_ledger(target) as new:
        return move_ledger(old, new, to=str(target), **more)


def rows_of(path):
    with opened(path) as ledger, ledger.session.read_transaction() as table:
        return list(table.rows())


def contents(folder):
    return {found.name: found.read_bytes() for found in folder.iterdir()}


@pytest.fixture
def old(tmp_path):
    path = tmp_path / "old.sqlite"
    with create_ledger(
        path, name="demo", budget=Budget(1), analysts={"ana": Budget("1/2")}, unit_declaration="{}"
    ) as ledger:
        ledger.settle(ledger.charge(CENT, event(by="ana", fingerprints=(("t",),)), key="k"), b"\x00 answer")
        ledger.settle(ledger.charge(CENT, event("Zoë \\0 \U0001f600")), b"")
        ledger.acknowledge()
        ledger.charge(CENT, event("open", fingerprints=(("u",),)), key="open")
    return path


@pytest.fixture
def new(tmp_path):
    (tmp_path / "new").mkdir()
    return tmp_path / "new" / "new.sqlite"


def stop_at(monkeypatch, name):
    """Let a move stop where it calls something."""

    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(name, stop)


@pytest.fixture
def interrupted(old, new, monkeypatch):
    """Leave a move when the source has ended, and nothing is in the target."""
    with monkeypatch.context() as patch:
        stop_at(patch, "discreet.ledger_admin.move._copy_rest")
        with pytest.raises(KeyboardInterrupt):
            move(old, new)
    with opened(old) as ledger:
        assert ledger.moved_to == str(new)


# What a move does


def test_everything_moves_with_the_ledger(old, new):
    before = rows_of(old)
    with opened(old) as ledger:
        events, spent, topics = ledger.events(), ledger.spent("ana"), ledger.answers(["t", "u"])
    assert move(old, new) is True
    rows = rows_of(new)
    assert rows[: len(before)] == before
    assert [row.kind for row in rows[len(before) :]] == ["move", "arrive"]
    with opened(new) as ledger:
        verify_ledger(ledger)
        assert (ledger.events(), ledger.spent("ana"), ledger.answers(["t", "u"])) == (events, spent, topics)
        assert (ledger.terms.name, ledger.terms.budget, ledger.terms.unit_declaration) == ("demo", Budget(1), "{}")
        assert ledger.terms.analysts == {"ana": Budget("1/2")}
        assert ledger.charge(CENT, event(by="ana", fingerprints=(("t",),)), key="k").answer == b"\x00 answer"
        assert [each.question for each in ledger.unsettled_events()] == ["open"]
        assert (ledger.latest_receipt("u"), ledger.latest_receipt("t")) == (events[-1].id, None)
        with pytest.raises(Failed, match="outcome is unknown"):
            ledger.charge(CENT, event("open", fingerprints=(("u",),)), key="open")
        assert ledger.spent() == CENT + CENT + CENT
        with pytest.raises(Refused, match=r"not enough budget left in total"):
            ledger.charge(Loss(1), event())
        ledger.charge(Loss("97/100"), event())
        verify_ledger(ledger)


def test_the_source_is_read_and_nothing_else(old, new):
    move(old, new)
    head = (old.parent / "old.sqlite.checkpoint").read_bytes()
    with opened(old) as ledger:
        verify_ledger(ledger)
        assert len(ledger.events()) == 3
        assert ledger.moved_to == str(new)
        for act in (
            lambda: ledger.charge(CENT, event()),
            lambda: ledger.charge(CENT, event(by="ana"), key="k"),
            lambda: ledger.set_budget(Budget(2), analysts=None),
            lambda: mark_moved(ledger, "elsewhere", "token"),
            ledger.acknowledge,
        ):
            with pytest.raises(LedgerError, match=r"old.sqlite: the ledger was moved to /.*new.sqlite"):
                act()
    assert (old.parent / "old.sqlite.checkpoint").read_bytes() == head


def test_a_ledger_moves_on_and_on(old, new):
    move(old, new)
    with opened(new) as ledger:
        ledger.charge(CENT, event("second"))
    third = new.parent / "third.sqlite"
    move(new, third)
    with opened(third) as ledger:
        ledger.charge(CENT, event("third"))
        verify_ledger(ledger)
        assert [each.question for each in ledger.events()][-2:] == ["second", "third"]
    assert [row.kind for row in rows_of(third)].count("move") == 2


def test_the_new_location_of_a_ledger_is_reported_with_how_to_follow():
    """A file is on one machine only; a URL is kept without the user, and each server may have another."""
    assert "on the machine where the move was made" in moved_message("/srv/visits.sqlite")
    assert "Add the user name and connection options" in moved_message("postgresql://db.example/ledgers")


def test_a_former_location_of_a_ledger_is_not_reused_and_says_so(old, new):
    move(old, new)
    with pytest.raises(
        LedgerError, match=r"old\.sqlite: this ledger was moved away from here with row 8, .* another location"
    ):
        move(new, old)
    assert (takes(old), takes(new)) == (False, True)


def test_a_question_under_way_fails_and_stays_charged(old, new):
    with opened(old) as ledger:
        receipt = ledger.charge(CENT, event("under way"), key="way")
        move(old, new)
        with pytest.raises(LedgerError, match="the ledger was moved"):
            ledger.settle(receipt, b"too late")
        verify_ledger(ledger)
    with opened(new) as ledger:
        assert ledger.events()[-1].state == "reserved"
        assert ledger.spent().epsilon == 4 * CENT.epsilon
        with pytest.raises(Failed, match="outcome is unknown"):
            ledger.charge(CENT, event("under way"), key="way")
        ledger.settle(receipt, b"stored where the ledger is")  # its one answer
        verify_ledger(ledger)


def test_progress_is_reported(old, new):
    told = []
    move(old, new, progress=lambda done, rows: told.append((done, rows)))
    assert told == [(done, 7) for done in range(1, 8)]


def test_a_ledger_in_memory_can_be_kept(new):
    with memory_ledger(name="demo", budget=Budget(1)) as ledger, open_target_ledger(new) as target:
        ledger.settle(ledger.charge(CENT, event(), key="k"), b"1")
        assert move_ledger(ledger, target, to=str(new))
        assert target.charge(CENT, event(), key="k").answer == b"1"


MOVE_BIG = """
import resource, sys
from pathlib import Path
from discreet.ledger_sqlite import open_ledger
from discreet.curator.ledger_location import move_ledger_to
with open_ledger(sys.argv[1], name="demo") as ledger:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    move_ledger_to(ledger, Path(sys.argv[2]), name="demo", progress=lambda done, rows: None)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.long
def test_answers_are_copied_one_by_one(tmp_path, new):
    path = tmp_path / "big.sqlite"
    megabytes = 2
    with create_ledger(path, name="demo", budget=Budget(1)) as ledger:
        for i in range(32):
            ledger.settle(ledger.charge(CENT, event()), os.urandom(1) * (megabytes * 2**20 + i))
    done = subprocess.run([sys.executable, "-c", MOVE_BIG, path, new], capture_output=True, text=True, check=True)
    grown = int(done.stdout) / 1024
    assert grown < 16 * megabytes, f"{grown} MB for answers of {megabytes} MB"
    assert new.stat().st_size > 32 * megabytes * 2**20


# Whatever stops in between


def run(what, folder, source, target, number):
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, HERE / "ledger_migrations.py", what, folder, source, target, number]
    done = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, timeout=1800, env=environment, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    print(done.stdout)
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.long
@pytest.mark.parametrize("stride", [13, pytest.param(1, marks=pytest.mark.slow)])
def test_a_move_survives_a_crash_at_every_step(tmp_path, stride):
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
    found = run("crash", tmp_path, tmp_path / "old", tmp_path / "new", stride)
    assert found["steps"] > 90
    assert found["in the source"] > found["steps"] / stride / 2
    assert found["in neither"] >= 1 or stride > 1  # a few steps, which a long stride may miss
    assert found["in the target"] >= 1


@pytest.mark.long
@pytest.mark.parametrize("what", ["race", "kill"])
def test_charges_during_a_move_are_neither_lost_nor_doubled(tmp_path, what):
    found = run(what, tmp_path, tmp_path / "old.sqlite", tmp_path / "new.sqlite", 1)
    assert (found["in all"], found["spent"]) == (100, "1"), "the limit holds over both places"
    assert 3 < found["before"] < 100, "it moved while others charged"
    assert found["as told"], "what was told to be charged is there, once, and nothing else"
    assert found["answers"], "what was told to be stored is there"
    assert found["open"], "what has no answer was told to have failed"


def test_two_locations_never_both_accept_charges(old, new, monkeypatch):
    """Stop at each act of a move, and look where a charge is taken."""
    acts = ["_reserve_target", "_copy", "_copy_row", "_copy_rest", "check_table", "arrival_text", "move_ledger"]
    places = []
    for act in acts[:-1]:
        with monkeypatch.context() as patch:
            stop_at(patch, f"discreet.ledger_admin.move.{act}")
            with pytest.raises(KeyboardInterrupt):
                move(old, new)
        places.append([takes(path) for path in (old, new)])
    move(old, new)
    places.append([takes(path) for path in (old, new)])
    assert places == [[True, False]] * 3 + [[False, False]] * 3 + [[False, True]]


def takes(path):
    try:
        with opened(path) as ledger:
            ledger.charge(CENT, event())
    except LedgerError:
        return False
    return True


def test_a_move_that_was_interrupted_is_finished(old, new, interrupted):
    with pytest.raises(LedgerError, match=r"new\.sqlite: a move to this location is unfinished"):
        opened(new)
    assert move(old, new) is True
    assert move(old, new) is False
    with opened(new) as ledger:
        verify_ledger(ledger)
        assert len(ledger.events()) == 3
        ledger.charge(CENT, event())
    assert move(old, new) is False, "also after the ledger went on"


def test_a_diverged_target_is_not_mistaken_for_a_finished_move(old, new):
    other = new.parent / "other.sqlite"
    move(old, new)
    with opened(new) as ledger:
        ledger.charge(CENT, event())
    raw = sqlite3.connect(new)
    for (name,) in raw.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        raw.execute(f"DROP TRIGGER {name}")
    raw.execute("UPDATE rows SET body = '{}' WHERE kind = 'charge'")
    raw.commit()
    raw.close()
    with pytest.raises(LedgerError, match=r"new.sqlite: row \d was modified"):
        move(old, new)
    assert not other.exists()


def test_a_target_has_a_witness_from_its_first_moment(old, new, monkeypatch):
    """The head is written after the commit; whoever crashes between the two must still be able to go on."""
    with monkeypatch.context() as patch:
        plain = sqlite3.connect

        class Ends(sqlite3.Connection):
            def execute(self, *arguments):
                done = super().execute(*arguments)
                if arguments[0] == "COMMIT" and super().execute("SELECT count(*) FROM sqlite_master").fetchone()[0] > 9:
                    where = super().execute("PRAGMA database_list").fetchone()[2]
                    if where == str(new):
                        raise KeyboardInterrupt
                return done

        patch.setattr(sqlite3, "connect", lambda *words, **more: plain(*words, **more, factory=Ends))
        with pytest.raises(KeyboardInterrupt):
            move(old, new)
    with opened(new) as ledger:
        ledger.charge(CENT, event())
        verify_ledger(ledger)
    assert move(old, new) is False


def test_two_concurrent_moves_have_the_effect_of_one(old, new):
    found = []

    def mover():
        try:
            found.append(move(old, new))
        except LedgerError as error:
            found.append(str(error))

    threads = [threading.Thread(target=mover) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found.count(True) == 1, found
    with opened(new) as ledger:
        verify_ledger(ledger)
        assert len(ledger.events()) == 3
    assert move(old, new) is False


# What is refused


def test_a_second_target_is_refused(old, new, interrupted):
    other = new.parent / "other.sqlite"
    for _ in range(2):
        with pytest.raises(LedgerError, match=r"old.sqlite: a move to /.*new.sqlite began at row 8. Finish that"):
            move(old, other)
        move(old, new)
    with pytest.raises(LedgerError, match=r"ledger does not exist|creation was interrupted"):
        opened(other)


def test_a_move_is_finished_at_the_same_location_only(old, new, interrupted, tmp_path):
    """The same path on another machine, or one that was emptied, is not where the move began."""
    there = tmp_path / "another machine"
    there.mkdir()
    for found in new.parent.iterdir():
        found.rename(there / found.name)
    with pytest.raises(LedgerError, match=r"row 8 of the ledger records a move .* not reserved"):
        move(old, new)
    assert not takes(new)
    for found in new.parent.iterdir():
        found.unlink()
    for found in there.iterdir():
        found.rename(new.parent / found.name)
    assert move(old, new) is True


def test_a_location_reserved_by_another_attempt_is_refused_after_the_move(old, new, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        stop_at(patch, "discreet.ledger_admin.move._copy")
        with pytest.raises(KeyboardInterrupt):
            move(old, new)
    shutil.move(new.parent, tmp_path / "first")
    new.parent.mkdir()
    with monkeypatch.context() as patch:
        stop_at(patch, "discreet.ledger_admin.move._copy_rest")
        with pytest.raises(KeyboardInterrupt):
            move(old, new)
    shutil.rmtree(new.parent)
    shutil.move(tmp_path / "first", new.parent)
    with pytest.raises(LedgerError, match="reserved for another ledger"):
        move(old, new)


def test_two_ledgers_cannot_move_to_one_location(old, new, interrupted, tmp_path):
    second = tmp_path / "second.sqlite"
    with create_ledger(second, name="demo", budget=Budget(1)) as ledger:
        ledger.charge(CENT, event())
    with pytest.raises(LedgerError, match="reserved for another ledger"):
        move(second, new)
    assert takes(second)
    move(old, new)
    with pytest.raises(LedgerError, match="a ledger already exists"):
        move(second, new)
    assert takes(second)


def test_a_tampered_source_is_refused(old, new):
    raw = sqlite3.connect(old)
    raw.execute("DROP TRIGGER answers_UPDATE")
    raw.execute("UPDATE answers SET answer = x'00'")
    raw.commit()
    raw.close()
    with pytest.raises(LedgerError, match=r"old\.sqlite: row 3: the stored answer was modified or deleted"):
        move(old, new)
    with opened(old) as ledger:
        assert ledger.moved_to is None


def test_a_source_that_was_changed_after_it_left_is_refused(old, new, interrupted):
    raw = sqlite3.connect(old)
    raw.execute("DROP TRIGGER answers_UPDATE")
    raw.execute("UPDATE answers SET answer = x'00'")
    raw.commit()
    raw.close()
    with pytest.raises(LedgerError, match=r"old\.sqlite: row 3: the stored answer was modified or deleted"):
        move(old, new)
    assert not takes(new)


def test_a_source_that_was_rolled_back_is_refused(old, new):
    shutil.copy(old, old.parent / "backup")
    with opened(old) as ledger:
        ledger.charge(CENT, event())
    shutil.copy(old.parent / "backup", old)
    with pytest.raises(LedgerError, match="rolled back from row 8 to row 7"):
        move(old, new)


def test_a_copy_from_before_the_move_stays_closed(old, new):
    """Whoever puts back an old copy must not get a second account beside the one that moved."""
    shutil.copy(old, old.parent / "backup")
    move(old, new)
    shutil.copy(old.parent / "backup", old)
    with opened(old) as ledger:
        for act in (lambda: ledger.charge(CENT, event()), ledger.acknowledge, lambda: verify_ledger(ledger)):
            with pytest.raises(LedgerError, match=r"an older copy that ends at row 7: the ledger was moved"):
                act()


@pytest.mark.parametrize("what", ["ledger", "other", "text", "folder"])
def test_existing_files_are_never_changed(old, new, what):
    if what == "ledger":
        create_ledger(new, name="demo", budget=Budget(1)).close()
    elif what == "other":
        raw = sqlite3.connect(new)
        raw.execute("CREATE TABLE rows (a)")
        raw.commit()
        raw.close()
    elif what == "text":
        new.write_text("my notes" * 1000)
    else:
        new.mkdir()
    before = new.read_bytes() if what != "folder" else None
    with pytest.raises(LedgerError, match=r"new.sqlite: ") as found:
        move(old, new)
    print(found.value)
    if what != "folder":
        assert new.read_bytes() == before
    assert takes(old)


def test_a_ledger_does_not_move_to_itself(old):
    with pytest.raises(LedgerError, match="a ledger already exists"):
        move(old, old)
    assert takes(old)


def test_the_folder_of_the_target_must_exist(old, tmp_path):
    with pytest.raises(LedgerError, match=r"the folder .*nowhere does not exist"):
        move(old, tmp_path / "nowhere" / "new.sqlite")
    assert takes(old)


# The rows


def chain(*acts):
    """Return rows of these kinds, bodies and losses, whatever may follow what."""
    rows = []
    for kind, body, *loss in acts:
        last = Chain(rows[-1]) if rows else Chain()
        rows.append(last.next_row(kind, "owner", body, loss=loss[0] if loss else ZERO_LOSS))
    return rows


BUDGET = '{"delta":"0","discover":"0","epsilon":"1","rho":null}'
TERMS = f'{{"analysts":null,"budget":{BUDGET},"datasets":null,"name":"demo","unit_declaration":""}}'
CREATE = RowKind.CREATE, TERMS
CREATE_BUDGET = RowKind.BUDGET, TERMS
LEAVE = RowKind.MOVE, canonical_json({"to": "/there", "token": "token"})
ARRIVE = RowKind.ARRIVE, canonical_json({"token": "token"})
STRANGE = RowKind.ARRIVE, canonical_json({"token": "another"})
PAID_LEAVE = *LEAVE, CENT
PAID_ARRIVAL = *ARRIVE, CENT


def test_nothing_follows_a_move_but_its_arrival():
    check_rows(chain(CREATE, LEAVE))
    assert arrival_text(chain(CREATE, LEAVE)[-1]) == ARRIVE[1]
    check_rows(chain(CREATE, LEAVE, ARRIVE))
    check_rows(chain(CREATE, LEAVE, ARRIVE, CREATE_BUDGET, LEAVE, ARRIVE))
    out_of_place = "is out of place: a move must be followed by its arrival"
    for acts, problem in (
        ([CREATE, LEAVE, CREATE_BUDGET], f"row 3 {out_of_place}"),
        ([CREATE, LEAVE, LEAVE], f"row 3 {out_of_place}"),
        ([CREATE, ARRIVE], f"row 2 {out_of_place}"),
        ([CREATE, LEAVE, ARRIVE, ARRIVE], f"row 4 {out_of_place}"),
        ([CREATE, LEAVE, STRANGE], "row 3 has a different token"),
        ([CREATE, PAID_LEAVE], "row 2 has a loss"),
        ([CREATE, LEAVE, PAID_ARRIVAL], "row 3 has a loss"),
        ([CREATE, (RowKind.MOVE, "{}")], "row 2 is not readable"),
        ([CREATE, (RowKind.MOVE, '{"to":1,"token":""}')], "row 2 does not name the destination"),
    ):
        with pytest.raises(LedgerError, match=problem):
            check_rows(chain(*acts))


def test_the_database_itself_accepts_nothing_after_a_move(old, new):
    """A program of an earlier version, which knows no moves, may have the file open."""
    with opened(old) as ledger:
        move(old, new)
        row = Chain().extend(rows_of(old)).next_row(RowKind.CHARGE, "owner", "{}", receipt="r", loss=CENT)
        with pytest.raises(LedgerError, match="the ledger was moved"), ledger.session.write_transaction() as table:
            table.add_row(row)
    assert rows_of(old)[-1].kind == "move"
