"""Many processes of one server share its head: python ledger_checkpoints.py PLACE CHARGES

Charges, and after each one checks that the head is not behind its own last row.
"""

import sys

from kernel.ledger_locations import place_at

from discreet.kernel.event import Event
from discreet.kernel.loss import Loss
from discreet.ledger_sqlite.checkpoint_file import read_checkpoint

EVENT = Event(mechanism="{}", sensitivity="{}", question="count")


def main(place, charges):
    last = 0
    with place.open() as ledger:
        for _ in range(charges):
            receipt = ledger.charge(Loss("1/1000"), EVENT)
            head = read_checkpoint(place.head)
            with ledger.session.read_transaction() as table:
                rows = [row.seq for row in table.rows(max(1, last)) if row.receipt == receipt.id]
            assert rows, "the charge is before the head that was there before it"
            assert head.seq >= rows[0], (head.seq, rows)
            assert head.seq >= last, "the head went back"
            last = head.seq


if __name__ == "__main__":
    main(place_at(sys.argv[1]), int(sys.argv[2]))
