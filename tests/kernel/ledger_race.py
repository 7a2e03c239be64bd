"""Many processes charge one ledger at the same time: python ledger_race.py PLACE PROCESSES CHARGES

Prints {"granted": …, "refused": …, "longest": the longest wait of one charge in seconds, "seconds": …}.
"""

import json
import os
import sys
import time

from kernel.ledger_locations import place_at

from discreet.kernel.errors import Refused
from discreet.kernel.event import Event
from discreet.kernel.loss import Loss

EVENT = Event(mechanism="{}", sensitivity="{}", question="count")


def charge_often(place, start, results, charges):
    granted, longest = 0, 0.0
    with place.open() as ledger:
        os.read(start, 1)  # everybody begins when the other end is closed
        for _ in range(charges):
            before = time.monotonic()
            try:
                ledger.charge(Loss("1/100"), EVENT)
                granted += 1
            except Refused:
                pass
            longest = max(longest, time.monotonic() - before)
    os.write(results, json.dumps([granted, longest]).encode() + b"\n")


def main(place, processes, charges):
    start, go = os.pipe()
    collected, results = os.pipe()
    children = []
    for _ in range(processes):
        child = os.fork()
        if child == 0:
            os.close(go)
            charge_often(place, start, results, charges)
            os._exit(0)
        children.append(child)
    os.close(results)
    time.sleep(0.2)
    before = time.monotonic()
    os.close(go)
    failed = sum(os.waitpid(child, 0)[1] != 0 for child in children)
    seconds = time.monotonic() - before
    with os.fdopen(collected) as lines:
        found = [json.loads(line) for line in lines]
    granted = sum(count for count, _ in found)
    longest = max(wait for _, wait in found)
    refused = processes * charges - granted
    print(
        json.dumps({"granted": granted, "refused": refused, "longest": longest, "seconds": seconds, "failed": failed})
    )


if __name__ == "__main__":
    main(place_at(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
