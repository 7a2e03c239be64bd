"""The chapter on budgets: what is refused and why, what an account looks like, and what survives a crash."""

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
    ("epsilon 1/4", {"epsilon": "1/4"}),
    ("a margin of 5", {"margin": 5}),
)
BAD = "SELECT ward, AVG(income / age) FROM people GROUP BY ward"
MENDED = "SELECT ward, AVG(CLIP(income / age, 0, 5000)) FROM people GROUP BY ward"


def tell(stage: Stage) -> None:
    """Ask something that is refused, mend it, look at the account, and kill a process."""
    with dc.open(stage.town.policy) as curator:
        _refusal(stage.recorder, curator)
        _account(stage.recorder, curator)
    with stage.town.under(BUDGET) as curator:
        _more_exactly(stage.recorder, curator)
    crash.tell(stage.recorder)


def _more_exactly(recorder: Recorder, curator: dc.Curator) -> None:
    recorder.title("More exactly, for the difference; or at the price of a margin")
    recorder.show(COUNT)
    rows: list[tuple[Cell, ...]] = []
    for words, offer in OFFERS:
        before = curator.budget().spent.epsilon or Fraction(0)
        answer = curator.ask(COUNT, **offer)
        paid = (curator.budget().spent.epsilon or Fraction(0)) - before
        rows.append((words, f"{answer.value:,} ± {answer.margin:.0f}", f"{float(paid):g}", f"{float(before + paid):g}"))
    recorder.table(("asked for", "answer ± 95 %", "paid (epsilon)", "spent in all"), rows)
    recorder.say(
        f"Budget: epsilon {BUDGET}. The same again is free, and what was paid counts towards a finer answer. A margin "
        "finds its own price, before anything is read."
    )


def _refusal(recorder: Recorder, curator: dc.Curator) -> None:
    recorder.title("A question that is refused, and costs nothing")
    before = curator.budget().spent
    recorder.show(BAD)
    try:
        curator.ask(BAD, epsilon=PRICE)
    except dc.Refused as refusal:
        recorder.say(warn(f"Refused: {refusal}"))
    recorder.say(f"Spent by it: rho {curator.budget().spent.rho - before.rho}. The refusal names a way out:")
    recorder.show(MENDED)
    recorder.say(good("Answered"), f": {len(curator.ask(MENDED, epsilon=PRICE))} wards.")


def _account(recorder: Recorder, curator: dc.Curator) -> None:
    total, spent, left = curator.budget()
    assert total.rho
    recorder.title("The account")
    fits = float(left.epsilon)
    recorder.table(
        ("budget", "spent", "left", "largest question that fits"),
        [
            (
                f"epsilon {float(total.epsilon):g}",
                f"{float(spent.rho / total.rho):.2%}",
                f"{float(left.rho / total.rho):.2%}",
                f"epsilon {fits:g}",
            )
        ],
    )
    curator.ledger.verify()
    recorder.say(
        f"Charges: {len(curator.ledger.events())}, each made before anything was read. Every hash, total and answer "
        "in the ledger is as recorded."
    )
