"""The chapter on budgets: a refusal, the remaining budget, refined answers, and a crash."""

import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import discreet as dc
from discreet.cli.tour import crash_worker
from discreet.cli.tour.page import Cell
from discreet.cli.tour.recorder import Recorder, TourContext, good, warn

_KILLS = 4


def show_crash(recorder: Recorder) -> None:
    """Kill a worker several times; after each kill, compare the answers it printed with the ledger."""
    recorder.add_section("kill -9 while answers are charged and stored")
    recorder.add_paragraph("A process that charges, stores and prints one answer after another is killed repeatedly:")
    with tempfile.TemporaryDirectory() as folder:
        rows = list(
            recorder.with_progress(kill_workers(Path(folder) / "ledger.sqlite", _KILLS), "killing a process", _KILLS)
        )
    recorder.add_table(("killed after", "answers seen", "answers stored", "charges", "hash chain"), rows)
    _, seen, stored, charged, _ = rows[-1]
    recorder.add_paragraph(
        f"All {seen} answers that were printed are among the {stored} that were stored. Charges whose answer was lost "
        f"are not refunded: {int(charged) - int(stored)}."
    )


def kill_workers(path: Path, kills: int) -> Iterator[tuple[str, str, str, str, str]]:
    """Kill a worker at random moments; after each kill, yield the numbers of answers seen, stored and charged."""
    dc.create_ledger(path, name=crash_worker.NAME, budget=dc.Budget(1)).close()
    seen_answers: dict[str, str] = {}
    for _ in range(kills):
        process = subprocess.Popen(  # noqa: S603 - our own module, our own arguments
            [sys.executable, "-P", crash_worker.__file__, str(path)], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        lines = [process.stdout.readline()]
        wait = random.uniform(0, 0.05)  # noqa: S311 - the moment of the kill, not noise
        time.sleep(wait)
        process.kill()
        # Nobody could read an answer from a truncated line.
        lines += [line for line in process.communicate()[0].splitlines(keepends=True) if line.endswith("\n")]
        for line in lines:
            receipt, answer = line.split()
            seen_answers[receipt] = answer
        yield f"{wait * 1000:.0f} ms", *_compare_with_ledger(path, seen_answers)


def _compare_with_ledger(path: Path, seen_answers: dict[str, str]) -> tuple[str, str, str, str]:
    with dc.open_ledger(path, name=crash_worker.NAME) as ledger:
        ledger.verify()
        events = ledger.events()
        stored = {event.id for event in events if event.state == "released"}
        assert seen_answers.keys() <= stored
        return str(len(seen_answers)), str(len(stored)), str(len(events)), "valid"


EPSILON = "0.1"
BUDGET = "1"
COUNT_SQL = "SELECT COUNT(*) FROM people WHERE ill = 'asthma'"  # asked nowhere else: its noise is of another kind
REQUESTS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("epsilon 0.1", {"epsilon": "0.1"}),
    ("the same query again", {"epsilon": "0.1"}),
    ("refined: epsilon 0.25", {"epsilon": "0.25"}),
    ("a margin of 5", {"margin": 5}),
)
REFUSED_SQL = "SELECT ward, AVG(income / age) FROM people GROUP BY ward"
CORRECTED_SQL = "SELECT ward, AVG(CLIP(income / age, 0, 5000)) FROM people GROUP BY ward"


def show_chapter(context: TourContext) -> None:
    """Correct a refused query, show the remaining budget, refine an answer, and kill a process."""
    with dc.open(context.town.policy) as curator:
        _show_refusal(context.recorder, curator)
        _show_remaining_budget(context.recorder, curator)
    with context.town.open_with_budget(BUDGET) as curator:
        _show_refinement(context.recorder, curator)
    show_crash(context.recorder)


def _show_refinement(recorder: Recorder, curator: dc.Curator) -> None:
    recorder.add_section("Refining an answer, and asking for a margin")
    recorder.add_code(COUNT_SQL)
    rows: list[tuple[Cell, ...]] = []
    costs = []
    for label, request in REQUESTS:
        before = curator.budget().spent.epsilon or Fraction(0)
        answer = curator.ask(COUNT_SQL, **request)
        spent = curator.budget().spent.epsilon or Fraction(0)
        costs.append(float(spent - before))
        rows.append((label, f"{answer.value:,} ± {answer.margin:.0f}", f"{costs[-1]:g}", f"{float(spent):g}"))
    recorder.add_table(("request", "answer ± 95 %", "charged", "spent in total"), rows)
    recorder.add_paragraph(
        f"Budget: epsilon {BUDGET}, without a delta. Then the noise is Laplace noise: the margin of one count is "
        "smaller than with a delta, but fewer queries fit into the budget. Repeating the query was charged "
        f"{costs[1]:g}. Refining the answer was charged {costs[2]:g}, because the earlier charge counts towards it. "
        "For a requested margin, the smallest sufficient epsilon is computed before any data is read."
    )


def _show_refusal(recorder: Recorder, curator: dc.Curator) -> None:
    recorder.add_section("A query that is refused")
    before = curator.budget().spent
    recorder.add_code(REFUSED_SQL)
    try:
        curator.ask(REFUSED_SQL, epsilon=EPSILON)
    except dc.Refused as refusal:
        recorder.add_paragraph(warn(f"Refused: {refusal}"))
    recorder.add_paragraph(f"Charged: rho {curator.budget().spent.rho - before.rho}. With the hint from the message:")
    recorder.add_code(CORRECTED_SQL)
    recorder.add_paragraph(good("Answered"), f": {len(curator.ask(CORRECTED_SQL, epsilon=EPSILON))} wards.")


def _show_remaining_budget(recorder: Recorder, curator: dc.Curator) -> None:
    total, spent, remaining = curator.budget()
    assert total.rho
    recorder.add_section("The remaining budget")
    largest_epsilon = float(remaining.epsilon)
    recorder.add_table(
        ("budget", "spent", "remaining", "enough for one query at"),
        [
            (
                f"epsilon {float(total.epsilon):g}",
                f"{float(spent.rho / total.rho):.2%}",
                f"{float(remaining.rho / total.rho):.2%}",
                f"epsilon {largest_epsilon:g}",
            )
        ],
    )
    curator.ledger.verify()  # raises if the ledger was tampered with
    recorder.add_paragraph(
        f"Charges in the ledger: {len(curator.ledger.events())}, each recorded before data was read. The ledger's hash "
        "chain and all totals were verified."
    )
