"""A client begins a charge and stands still: python ledger_stopped.py PLACE STANDSTILL

Prints "begun" in the middle of the charge, then waits for a line; prints what became of the charge, and of another.
"""

import sys

from kernel.ledger_locations import place_at

from discreet.kernel.errors import LedgerError
from discreet.kernel.event import Event
from discreet.kernel.ledger import ledger as account
from discreet.kernel.loss import Loss
from discreet.ledger_postgres import session

EVENT = Event(mechanism="{}", sensitivity="{}", question="count")
PRICE = Loss("1/100")
event_text = account.event_text


def wait(event):
    """Stand still, once, where the charge writes its event."""
    account.event_text = event_text
    print("begun", flush=True)
    sys.stdin.readline()
    return event_text(event)


def attempt(ledger):
    """Charge, and return what became of it."""
    try:
        ledger.charge(PRICE, EVENT)
    except LedgerError as error:
        return str(error)
    return "charged"


def main(place, standstill):
    with place.open() as ledger:
        account.event_text, session.IDLE_TIMEOUT = wait, standstill
        outcome = attempt(ledger)
        while account.event_text is wait:  # a slow machine stood still before
            outcome = attempt(ledger)
        print(outcome)
        session.IDLE_TIMEOUT = 60
        print(attempt(ledger))


if __name__ == "__main__":
    main(place_at(sys.argv[1]), int(sys.argv[2]))
