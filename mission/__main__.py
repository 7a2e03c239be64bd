"""`python -m mission` runs every row and rewrites docs/mission.md; `python -m mission A9 C6` only prints these."""

import sys
import time
from pathlib import Path

import mission.anonymity
import mission.attack_exposed
import mission.attack_facts
import mission.attack_membership
import mission.attack_models
import mission.attack_queries
import mission.attack_reconstruction
import mission.attack_tables
import mission.curator
import mission.habit
import mission.kernel
import mission.learning
import mission.local
import mission.tradeoff  # noqa: F401 - their rows join the list
from mission.rows import ORDER, ROWS, NeedsDataError

PAGE = Path(__file__).parents[1] / "docs" / "mission.md"
HEAD = """# The mission

What Discreet can do, row by row, with the number that shows it. This page is written by `make mission`, which runs
every row through the public interface; `python -m mission ID` runs one of them.

| row | what works | the number seen | run it |
|---|---|---|---|
"""


def seen(row):
    try:
        return row.run()
    except NeedsDataError as error:
        return f"needs data: {error}"


def main(wanted):
    rows = sorted((row for row in ROWS if not wanted or row.id in wanted), key=lambda row: ORDER.index(row.id))
    lines = []
    for row in rows:
        began = time.perf_counter()
        number = seen(row)
        print(f"{row.id:4} {row.what}\n     {number}   [{time.perf_counter() - began:.1f} s]")
        lines.append(
            f"| {row.id} | {row.what} | {number.replace('|', chr(92) + '|')} | `python -m mission {row.id}` |\n"
        )
    missing = [id_ for id_ in ORDER if id_ not in {row.id for row in ROWS}]
    if not wanted:
        PAGE.write_text(HEAD + "".join(lines) + f"\nNot built yet: {', '.join(missing)}.\n")
        print(f"\nwrote docs/{PAGE.name}: {len(rows)} rows, {len(missing)} to come")


main(sys.argv[1:])
