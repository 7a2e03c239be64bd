"""A process that checks queries and writes a line for each: its number, how it ended, the seconds, what was wrong."""

import json
import os
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TESTS / "golden"), str(TESTS / "slow")]

from fuzzing.checking import Checker  # noqa: E402 - the path comes first
from fuzzing.queries import made, neighbour  # noqa: E402


def main(seed, numbers, out):
    checker = Checker()
    for number in numbers:
        found = checker.check(made(seed, number), neighbour(number))
        out.write(json.dumps([number, found.ending, found.seconds, found.problems]) + "\n")
        out.flush()
    checker.close()


if __name__ == "__main__":
    seed, start, stop, step, descriptor = sys.argv[1:]
    with os.fdopen(int(descriptor), "w") as out:
        main(seed, range(int(start), int(stop), int(step)), out)
