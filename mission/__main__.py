"""`python -m mission` runs every row and rewrites docs/mission.md; `python -m mission A9 C6` only prints these."""

import sys
import time
from importlib import import_module
from pathlib import Path

from mission import MODULES
from mission.rows import ORDER, ROWS, NeedsDataError

PAGE = Path(__file__).parents[1] / "docs" / "mission.md"
HEAD = """# The mission

What Discreet can do, row by row, with the numbers that show it. `make mission` writes this page: it runs every row with
public names (Python, SQL or command line; a row that needs more says so), and `python -m mission ID` runs one of them.
Numbers that chance decides are followed by their 95 % interval or by the range of the runs. A ceiling is the most that
epsilon allows any attack; it is refuted where chance explains the excess in less than one of 10⁹ runs.

| row | what works | the number seen | run it |
|---|---|---|---|
"""


def seen(row):
    """Run a row; return its text."""
    try:
        text = row.run().text
    except NeedsDataError as error:
        return f"needs data: {error}"
    return f"{text}. Beside public names: {row.uses}" if row.uses else text


def main(wanted):
    """Run these rows and print them; without any, run all and write the page."""
    for name in MODULES:
        import_module(f"mission.{name}")
    rows = sorted((row for row in ROWS if not wanted or row.id in wanted), key=lambda row: ORDER.index(row.id))
    lines = []
    for row in rows:
        began = time.process_time()
        text = seen(row)
        print(f"{row.id:4} {row.what}\n     {text}   [{time.process_time() - began:.1f} CPU s]", flush=True)
        lines.append(f"| {row.id} | {row.what} | {text.replace('|', chr(92) + '|')} | `python -m mission {row.id}` |\n")
    missing = [id_ for id_ in ORDER if id_ not in {row.id for row in ROWS}]
    if not wanted:
        PAGE.write_text(HEAD + "".join(lines) + f"\nNot built yet: {', '.join(missing)}.\n")
        print(f"\nwrote docs/{PAGE.name}: {len(rows)} rows, {len(missing)} to come")


main(sys.argv[1:])
