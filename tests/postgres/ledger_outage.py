"""A worker charges while the server goes away and comes back: python ledger_outage.py PLACE WORKER

It charges with a key, stores an answer, and only then shows it: one line "key answer" each. When the ledger fails it
says "failing" and asks again with the same key; it goes on with the next when the key's outcome is unknown. Ends when
its input does.
"""

import secrets
import select
import sys
import time

from kernel.ledger_locations import place_at

from discreet.kernel.errors import Failed, LedgerError
from discreet.kernel.event import Event
from discreet.kernel.loss import Loss

EVENT = Event(mechanism="{}", sensitivity="{}", question="count")
PRICE = Loss("1/1000")


def ask(ledger, key):
    """Return the answer of a key, or None if it was charged and its outcome is unknown."""
    receipt, answer = None, secrets.token_hex(8).encode()
    while True:
        try:
            if receipt is None:
                receipt = ledger.charge(PRICE, EVENT, key)
            if receipt.answer is None:
                ledger.settle(receipt, answer)
        except Failed:
            return None
        except LedgerError as error:
            if "already settled" in str(error):  # the connection was lost after the commit
                return answer
            print("failing", flush=True)
            time.sleep(0.05)
        else:
            return receipt.answer or answer


def main(place, worker):
    number = 0
    with place.open() as ledger:
        while not select.select([sys.stdin], [], [], 0)[0]:
            answer = ask(ledger, f"{worker}-{number}")
            if answer:
                print(f"{worker}-{number} {answer.decode()}", flush=True)
            number += 1


if __name__ == "__main__":
    main(place_at(sys.argv[1]), sys.argv[2])
