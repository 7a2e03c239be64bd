"""Children are forked while threads of the parent are charging, and go on with the same object: PLACE"""

import os
import sys
import threading

from kernel.ledger_locations import place_at

from discreet.kernel.errors import LedgerError
from discreet.kernel.event import Event
from discreet.kernel.loss import Budget, Loss
from discreet.ledger_admin.verify import verify_ledger
from discreet.ledger_sqlite import memory_ledger

EVENT = Event(mechanism="{}", sensitivity="{}", question="count")
CENT = Loss("1/100")


def main(place):
    ledger = place.create(budget=Budget(100))
    inside = memory_ledger(name="demo", budget=Budget(1))
    busy = threading.Event()
    charged = [0, 0]

    def charge_until_stopped(number):
        while not busy.is_set():
            ledger.charge(CENT, EVENT)
            charged[number] += 1

    threads = [threading.Thread(target=charge_until_stopped, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    children = [fork_and_charge(ledger, inside) for _ in range(10)]
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    busy.set()
    for thread in threads:
        thread.join()
    assert codes == [0] * 10, codes
    assert ledger.spent().epsilon == (sum(charged) + 50) * CENT.epsilon
    verify_ledger(ledger)
    ledger.close()
    inside.close()
    outlive_the_parent(place)
    print("whole")


def outlive_the_parent(place):
    """Let the parent close the ledger, which clears SQLite's log, while a child that it forked goes on charging."""
    before = spent(place)
    ledger = place.open()
    ledger.charge(CENT, EVENT)
    first, started = os.pipe()
    parent_closed, closing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(closing)
        ledger.charge(CENT, EVENT)
        os.close(started)
        os.read(parent_closed, 1)
        ledger.charge(CENT, EVENT)
        os._exit(0)  # as a killed child would end
    os.close(started)
    os.read(first, 1)
    ledger.close()
    os.close(closing)
    assert os.waitpid(child, 0)[1] == 0
    assert spent(place) == before + 3 * CENT.epsilon


def spent(place):
    with place.open() as ledger:
        verify_ledger(ledger)
        return ledger.spent().epsilon


def fork_and_charge(ledger, inside):
    child = os.fork()
    if child:
        return child
    for _ in range(5):
        ledger.charge(CENT, EVENT)
    try:
        inside.charge(CENT, EVENT)
    except LedgerError as error:
        assert "belongs to the process" in str(error)  # noqa: PT017 - a script, not a test
        sys.exit(0)  # through Python's whole clean-up, which must not touch the parent's connection
    sys.exit("a copy of the ledger in memory was spent a second time")


if __name__ == "__main__":
    main(place_at(sys.argv[1]))
