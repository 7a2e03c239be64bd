"""The chapter on budgets: a refusal, the account, refined answers, and what survives a crash."""

from fractions import Fraction
from typing import Any

import discreet as dc
from discreet.cli.tour import crash
from discreet.cli.tour.recorder import Cell, Recorder, good, warn
from discreet.cli.tour.stage import Stage

PRICE = "1/10"
BUDGET = "1"
COUNT = "SELECT COUNT(*) FROM people WHERE ill = 'diabetes'"
OFFERS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("epsilon 1/10", {"epsilon": "1/10"}),
    ("the same again", {"epsilon": "1/10"}),
    ("refined: epsilon 1/4", {"epsilon": "1/4"}),
    ("a margin of 5", {"margin": 5}),
)
BAD = "SELECT ward, AVG(income / age) FROM people GROUP BY ward"
MENDED = "SELECT ward, AVG(CLIP(income / age, 0, 5000)) FROM people GROUP BY ward"


def tell(stage: Stage) -> None:
    """Ask something that is refused, correct it, show the budget, refine an answer, and kill a process."""
    with dc.open(stage.town.policy) as curator:
        _refusal(stage.recorder, curator)
        _account(stage.recorder, curator)
    with stage.town.under(BUDGET) as curator:
        _more_exactly(stage.recorder, curator)
    crash.tell(stage.recorder)


def _more_exactly(recorder: Recorder, curator: dc.Curator) -> None:
    recorder.title("Refining an answer, and asking for a margin")
    recorder.show(COUNT)
    rows: list[tuple[Cell, ...]] = []
    costs = []
    for words, offer in OFFERS:
        before = curator.budget().spent.epsilon or Fraction(0)
        answer = curator.ask(COUNT, **offer)
        spent = curator.budget().spent.epsilon or Fraction(0)
        costs.append(float(spent - before))
        rows.append((words, f"{answer.value:,} ± {answer.margin:.0f}", f"{costs[-1]:g}", f"{float(spent):g}"))
    recorder.table(("asked for", "answer ± 95 %", "charged", "spent in total"), rows)
    recorder.say(
        f"Budget: epsilon {BUDGET}. Repeating a query was charged {costs[1]:g}. Refining it was charged "
        f"{costs[2]:g}, because what was paid before counts towards it. For a margin, the least sufficient epsilon is "
        "computed before any data is read."
    )


def _refusal(recorder: Recorder, curator: dc.Curator) -> None:
    recorder.title("A query that is refused")
    before = curator.budget().spent
    recorder.show(BAD)
    try:
        curator.ask(BAD, epsilon=PRICE)
    except dc.Refused as refusal:
        recorder.say(warn(f"Refused: {refusal}"))
    recorder.say(f"Charged: rho {curator.budget().spent.rho - before.rho}. The message has a hint; with it:")
    recorder.show(MENDED)
    recorder.say(good("Answered"), f": {len(curator.ask(MENDED, epsilon=PRICE))} wards.")


def _account(recorder: Recorder, curator: dc.Curator) -> None:
    total, spent, left = curator.budget()
    assert total.rho
    recorder.title("The remaining budget")
    fits = float(left.epsilon)
    recorder.table(
        ("budget", "spent", "remaining", "largest query that fits"),
        [
            (
                f"epsilon {float(total.epsilon):g}",
                f"{float(spent.rho / total.rho):.2%}",
                f"{float(left.rho / total.rho):.2%}",
                f"epsilon {fits:g}",
            )
        ],
    )
    curator.ledger.verify()  # raises if anything was changed
    recorder.say(
        f"Charges in the ledger: {len(curator.ledger.events())}, each recorded before data was read. The hash chain "
        "and all totals were verified."
    )
