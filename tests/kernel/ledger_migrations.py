"""Moves that are interrupted or raced: python ledger_migrations.py (crash | race | kill) FOLDER SOURCE TARGET NUMBER

SOURCE and TARGET are files, or folders for crash, or postgresql:// URLs. Prints JSON.

crash   a child moves the ledger and ends at its first step, another NUMBER steps later, and so on until one gets
        through; after each the ledger is charged where it takes charges, which is one place, and the move is finished
race    children charge the source, and go on in the target, while the ledger moves; NUMBER is the budget
kill    the same, and the mover is killed again and again until it gets through
"""

import contextlib
import json
import os
import random
import signal
import sqlite3
import sys
import time
from functools import partial
from itertools import count
from pathlib import Path

from discreet.curator.ledger_location import address_without_user, move_ledger_to, open_ledger_at, parse_location_option
from discreet.kernel.errors import DiscreetError, Failed, LedgerError, Refused, run_charged
from discreet.kernel.event import Event
from discreet.kernel.loss import Budget, Loss
from discreet.ledger_admin.verify import verify_ledger
from discreet.ledger_sqlite import create_ledger

CENT = Loss("1/100")
WORKERS = 4
BEFORE = 15  # charges of a worker in the source
CRASHED, THROUGH = 9, 0
HEADS = [Path()]


def event(question="count", by="owner"):
    return Event(mechanism="{}", sensitivity="{}", question=question, by=by, fingerprints=((question,),))


def made(place, name="demo", budget=1):
    """Make a ledger with three charges: answered, with a key, and without an answer."""
    if isinstance(place, Path):
        ledger = create_ledger(place, name=name, budget=Budget(budget))
    else:
        from discreet.ledger_postgres.ledger import create_postgres_ledger

        ledger = create_postgres_ledger(place, name=name, budget=Budget(budget), checkpoint=head_of(name))
    with ledger:
        ledger.settle(ledger.charge(CENT, event("one")), b"1")
        ledger.settle(ledger.charge(CENT, event("two"), "two"), b"2")
        ledger.charge(CENT, event("three"), "three")


def head_of(name):
    """Return the head of a database's ledger, which is the same for the one that it moves to, as with a policy."""
    return HEADS[0] / f"{name}.ledger-checkpoint"


def opened(place, name="demo"):
    return open_ledger_at(place, name=name, checkpoint=head_of(name))


def move(source, target, name="demo", tell=lambda _done, _rows: None):
    with opened(source, name) as ledger:
        return move_ledger_to(ledger, target, name=name, checkpoint=head_of(name), progress=tell)


# Ending at every step


class Steps:
    """Ends the process, as a kill would, when so many steps were taken."""

    def __init__(self, last):
        self.last = last

    def __call__(self):
        self.last -= 1
        if self.last < 0:
            os._exit(CRASHED)

    def watch(self, owner, name):
        plain = getattr(owner, name)

        def watched(*arguments, **named):
            self()
            return plain(*arguments, **named)

        setattr(owner, name, watched)


def crash_after(steps, source, target, name):
    """Move in a child that takes so many steps; return whether it got through."""
    child = os.fork()
    if child == 0:
        step = Steps(steps)

        class Watched(sqlite3.Connection):
            def execute(self, *arguments):
                step()
                return super().execute(*arguments)

            def executemany(self, *arguments):
                step()
                return super().executemany(*arguments)

        plain = sqlite3.connect
        sqlite3.connect = lambda *arguments, **named: plain(*arguments, **named, factory=Watched)
        for owner, act in ((os, "open"), (os, "fsync"), (Path, "replace")):
            step.watch(owner, act)
        with contextlib.suppress(ImportError):
            import psycopg

            step.watch(psycopg.Connection, "execute")
        try:
            move(source, target, name)
        except BaseException as error:  # noqa: BLE001 - told to the parent
            print(repr(error), file=sys.stderr)
            os._exit(1)
        os._exit(THROUGH)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (CRASHED, THROUGH), code
    return code == THROUGH


def takes_charges(place, name):
    """Charge a place, if it takes that; return whether it does."""
    try:
        with opened(place, name) as ledger:
            ledger.charge(CENT, event("meanwhile"), "meanwhile")
            return True
    except LedgerError as error:
        known = ("was moved", "is unfinished", "does not exist", "creation was interrupted")
        assert any(words in str(error) for words in known), error  # noqa: PT017 - a script, not a test
        return False


def crash(_folder, source, target, stride):
    """Crash at every so many steps, with a fresh ledger each time."""
    found = {"steps": 0, "in the source": 0, "in neither": 0, "in the target": 0}
    for steps in count(0, stride):
        name = f"demo {steps}"
        old, new = (place / f"{steps}.sqlite" if isinstance(place, Path) else place for place in (source, target))
        made(old, name)
        through = crash_after(steps, old, new, name)
        here, there = takes_charges(old, name), takes_charges(new, name)
        assert not (here and there), f"two places take charges after {steps} steps"
        assert there or not through
        found["in the source" if here else "in the target" if there else "in neither"] += 1
        assert move(old, new, name) != there, f"after {steps} steps"
        check_moved(old, new, name, ["one", "two", "three", *(["meanwhile"] if here or there else [])])
        if through:
            return {**found, "steps": steps}
    raise AssertionError  # count() has no end


def check_moved(source, target, name, charged):
    """The target has all charges, once, and works; the source has what it had, and takes nothing."""
    with opened(source, name) as old, opened(target, name) as new:
        verify_ledger(old)
        verify_ledger(new)
        assert old.moved_to == address_without_user(target)
        assert new.moved_to is None
        rows = rows_of(new)
        assert rows_of(old) == rows[: len(rows_of(old))], "the rows differ"
        assert rows[len(rows_of(old))].kind == "arrive"
        assert sorted(each.question for each in new.events()) == sorted(charged)
        assert new.spent().epsilon == len(charged) * CENT.epsilon
        for act in (lambda: old.charge(CENT, event("x")), old.acknowledge):
            try:
                act()
            except LedgerError as error:
                assert "was moved" in str(error), error  # noqa: PT017 - a script, not a test
            else:
                raise AssertionError("the source goes on")
        assert new.charge(CENT, event("two"), "two").answer == b"2"
        new.settle(new.charge(CENT, event("last"), "last"), b"last")
        verify_ledger(new)


def rows_of(ledger):
    with ledger.session.read_transaction() as table:
        return list(table.rows())


# Charging meanwhile


def work(source, target, worker, told):
    """Charge and settle until nothing fits any more; go on in the target once the ledger was moved."""
    place = source
    ledger = opened(place)
    for i in count():
        if i == BEFORE and place == source:  # leave something for the target
            wait_for(partial(getattr, ledger, "moved_to"))
        key = f"{worker}-{i}"
        try:
            receipt = ledger.charge(CENT, event(key), key)
            told.write(f"charged {key}\n")
            # As a release does it: whatever happens after the charge is the same failure.
            run_charged(key, partial(ledger.settle, receipt, key.encode()))
            told.write(f"settled {key}\n")
        except Refused:
            return
        except Failed:
            told.write(f"failed {key}\n")
        except LedgerError as error:
            assert "was moved" in str(error), error  # noqa: PT017 - a script, not a test
            assert place == source
            assert ledger.moved_to == address_without_user(target)
            ledger.close()
            place = target
            ledger = wait_for(lambda: arrived(target))


def arrived(target):
    """Return the ledger when it is there."""
    with contextlib.suppress(DiscreetError):
        return opened(target)
    return None


def wait_for(act):
    for _ in range(2400):
        if found := act():
            return found
        time.sleep(0.05)
    raise TimeoutError


def race(folder, source, target, budget, kills=0):
    made(source, budget=budget)
    children = {os.fork() or child(folder, source, target, worker): worker for worker in range(WORKERS)}
    chance = random.Random(kills)
    killed = 0
    wait_for(lambda: all((Path(folder) / f"told-{worker}").exists() for worker in range(WORKERS)))
    wait_for(lambda: any((Path(folder) / f"told-{worker}").read_text() for worker in range(WORKERS)))
    for _ in range(kills):
        mover = os.fork()
        if mover == 0:
            move(source, target, tell=slowly)
            os._exit(0)
        time.sleep(chance.uniform(0, 0.6))
        os.kill(mover, signal.SIGKILL)
        killed += os.waitstatus_to_exitcode(os.waitpid(mover, 0)[1]) == -signal.SIGKILL
    moved = move(source, target, tell=slowly)
    codes = {worker: os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child, worker in children.items()}
    assert set(codes.values()) == {0}, codes
    told = {"charged": [], "settled": [], "failed": []}
    for worker in range(WORKERS):
        for line in (Path(folder) / f"told-{worker}").read_text().splitlines():
            said, key = line.split()
            told[said].append(key)
    with opened(source) as old, opened(target) as new:
        verify_ledger(old)
        verify_ledger(new)
        before = len(old.events())
        events = new.events()
        return {
            "moved": moved,
            "killed": killed,
            "before": before,
            "in all": len(events),
            "failed": len(told["failed"]),
            "as told": sorted(each.question for each in events) == sorted(["one", "two", "three", *told["charged"]]),
            "answers": all(new.charge(CENT, event(key), key).answer == key.encode() for key in told["settled"]),
            "spent": str(new.spent().epsilon),
            "open": sorted(each.question for each in events if each.state == "reserved")
            == sorted(["three", *told["failed"]]),
        }


def child(folder, source, target, worker):
    code = 1
    try:
        with (Path(folder) / f"told-{worker}").open("w", buffering=1) as told:
            work(source, target, worker, told)
        code = 0
    except BaseException as error:  # noqa: BLE001 - told to the parent
        print(repr(error), file=sys.stderr)
    os._exit(code)


def slowly(done, _rows):
    """Let others charge meanwhile."""
    if done <= 6:
        time.sleep(0.05)


def main(what, folder, source, target, number):
    HEADS[0] = Path(folder)
    source, target = parse_location_option(source, "source"), parse_location_option(target, "target")
    acts = {"crash": crash, "race": race, "kill": lambda *places: race(*places, kills=8)}
    print(json.dumps(acts[what](folder, source, target, int(number))))


if __name__ == "__main__":
    main(*sys.argv[1:])
