"""`python -m mission` runs every row and rewrites docs/mission.md; `python -m mission A9 C6` only prints these."""

import sys
import time
from importlib import import_module
from pathlib import Path

from mission import MODULES
from mission.rows import ORDER, ROWS, NeedsDataError

PAGE = Path(__file__).parents[1] / "docs" / "mission.md"
HEAD = """# The mission

What Discreet can do, row by row, with measured numbers. `make mission` writes this page: it runs every row through the
public interface (Python, SQL or command line; exceptions are stated), and `python -m mission ID` runs a single row.
Random numbers are followed by their 95 % interval or by the range of the runs. A ceiling is the upper bound that
epsilon sets for every attack; it counts as refuted if an excess this large has a probability below 10⁻⁹.

| row | capability | measured | run it |
|---|---|---|---|
"""


def run_row(row):
    """Run a row and return its text."""
    try:
        text = row.run().text
    except NeedsDataError as error:
        return f"needs data: {error}"
    return f"{text}. Outside the public interface: {row.uses}" if row.uses else text


def main(wanted):
    """Run and print these rows; without arguments, run all rows and write the page."""
    for name in MODULES:
        import_module(f"mission.{name}")
    rows = sorted((row for row in ROWS if not wanted or row.id in wanted), key=lambda row: ORDER.index(row.id))
    lines = []
    for row in rows:
        began = time.process_time()
        text = run_row(row)
        print(f"{row.id:4} {row.what}\n     {text}   [{time.process_time() - began:.1f} CPU s]", flush=True)
        lines.append(f"| {row.id} | {row.what} | {text.replace('|', chr(92) + '|')} | `python -m mission {row.id}` |\n")
    missing = [id_ for id_ in ORDER if id_ not in {row.id for row in ROWS}]
    if not wanted:
        left = f"\nNot implemented yet: {', '.join(missing)}.\n" if missing else ""
        PAGE.write_text(HEAD + "".join(lines) + left)
        print(f"\nwrote docs/{PAGE.name}: {len(rows)} rows, {len(missing)} not implemented yet")


main(sys.argv[1:])
