"""Workers are killed at random moments: python ledger_kills.py PLACE KILLS SEED

Each worker charges, stores an answer, and only then shows it. After each round of kills the ledger must be
whole, what is spent must not have fallen, and every answer that was shown must be stored with the same bytes.
Prints {"kills": …, "shown": …, "unknown": charges without an answer}.
"""

import json
import os
import random
import secrets
import select
import signal
import sys
import time

from kernel.ledger_locations import place_at

from discreet.kernel.errors import Failed
from discreet.kernel.event import Event
from discreet.kernel.loss import Budget, Loss
from discreet.ledger_admin.verify import verify_ledger

EVENT = Event(mechanism="{}", sensitivity="{}", question="count")
PRICE = Loss("1/1000")
WORKERS = 2
KILLS_PER_LEDGER = 40  # verification reads everything: fresh ledgers keep it short


def work(place, shown, worker):
    with place.open() as ledger:
        for i in range(10**6):
            key = f"{worker}-{i}"
            receipt = ledger.charge(PRICE, EVENT, key)
            answer = secrets.token_hex(8)
            ledger.settle(receipt, answer.encode())
            os.write(shown, f"{key} {answer}\n".encode())


def kill_some(place, number, chance):
    """Start some workers, kill them one by one, and return what they showed."""
    seen, shown = os.pipe()
    children = []
    for worker in range(WORKERS):
        child = os.fork()
        if child == 0:
            try:
                work(place, shown, f"{number}.{worker}")
            finally:
                os._exit(1)  # only a kill ends a worker as it should
        children.append(child)
    os.close(shown)
    if number % (2 * WORKERS):  # every other round begins when something was seen, however slow the machine is
        select.select([seen], [], [], 60)
    for child in children:
        time.sleep(chance.uniform(0, 0.03))
        os.kill(child, signal.SIGKILL)
    for child in children:
        assert os.waitpid(child, 0)[1] == signal.SIGKILL, "a worker failed before it was killed"
    with os.fdopen(seen) as lines:
        return [line.split() for line in lines if line.endswith("\n")]


def check(place, shown, least):
    """Return what is spent and how many charges have no answer, after a look at everything that was shown."""
    with place.open() as ledger:
        verify_ledger(ledger)
        spent = ledger.spent()
        events = ledger.events()
        assert spent.epsilon == len(events) * PRICE.epsilon >= least, "spent fell, or is not the sum"
        for key, answer in shown:
            assert ledger.charge(PRICE, EVENT, key).answer == answer.encode(), "an answer that was seen is lost"
        assert ledger.spent() == spent, "a replay was charged"
        unknown = sum(event.state == "reserved" for event in events)
        return spent.epsilon, unknown


def check_unknown(place):
    """No charge without an answer can be executed again, and the ledger goes on."""
    with place.open() as ledger:
        with ledger.session.read_transaction() as table:
            rows = list(table.rows())
        settled = {row.receipt for row in rows if row.kind == "settle"}
        for row in rows:
            if row.kind == "charge" and row.receipt not in settled:
                try:
                    ledger.charge(PRICE, EVENT, row.key)
                    raise AssertionError("a charge was executed twice")
                except Failed:
                    pass
        ledger.settle(ledger.charge(PRICE, EVENT, "afterwards"), b"fine")


def main(first, kills, seed):
    chance = random.Random(seed)
    done = total = lost = 0
    while done < kills:
        place = first.other(f"kills{done}")
        place.create(budget=Budget(10**6)).close()
        least, shown = 0, []
        for _ in range(KILLS_PER_LEDGER // WORKERS):
            shown += kill_some(place, done, chance)
            least, unknown = check(place, shown, least)
            done += WORKERS
        check_unknown(place)
        total += len(shown)
        lost += unknown
    print(json.dumps({"kills": done, "shown": total, "unknown": lost}))


if __name__ == "__main__":
    main(place_at(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
