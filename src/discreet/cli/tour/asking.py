"""The chapter on queries: private answers beside the true values, which only the owner knows."""

import math
from dataclasses import dataclass
from typing import Any

import discreet as dc
from discreet.answer import Answer
from discreet.cli.tour.copies import Copies
from discreet.cli.tour.recorder import Cell, Recorder, good, warn, yes_or_no
from discreet.cli.tour.stage import Stage
from discreet.cli.tour.town import PEOPLE, Town

PRICE = "1/10"
CONFIDENCE = 0.95
_JOBS = 8  # so that the bar moves
Key = tuple[Any, ...]


@dataclass(frozen=True)
class Question:
    """A query in words and in SQL. None of them is clipped, so that noise is the only error."""

    words: str
    sql: str


QUESTIONS = (
    Question("Residents with diabetes", "SELECT COUNT(*) FROM people WHERE ill = 'diabetes'"),
    Question("Mean age", "SELECT ward, AVG(age) FROM people GROUP BY ward"),
    Question("Median income", "SELECT MEDIAN(income) FROM people"),
    Question(
        "Seen in a hospital (join)",
        "SELECT COUNT(DISTINCT person) FROM visits JOIN clinics USING (clinic) WHERE kind = 'hospital'",
    ),
    Question(
        "5 visits or more (subquery)",
        "SELECT COUNT(*) FROM (SELECT person FROM visits GROUP BY person HAVING COUNT(*) >= 5) AS often",
    ),
)
Truths = dict[Question, dict[Key, float]]


def tell(stage: Stage) -> None:
    """Query the town once and many times, and show an answer as it prints."""
    truths = {question: _by_key(stage.town.truth(question.sql)) for question in QUESTIONS}
    each = math.ceil(stage.sizes.copies / _JOBS)
    jobs = [stage.hands.submit(ask_copies, stage.town, truths, each) for _ in range(_JOBS)]
    with dc.open(stage.town.policy) as curator:
        _compare(stage.recorder, curator, truths)
        stage.recorder.title(f"Are the margins right? The same queries on {each * _JOBS} copies of the town")
        _shares(stage.recorder, stage.recorder.wait(jobs, "querying copies of the town"))
        _as_it_prints(stage.recorder, curator)
        _streets(stage.recorder, curator, stage.town)


def ask_copies(town: Town, truths: Truths, number: int) -> dict[Question, list[bool]]:
    """Ask every question of so many copies of the town; return which answers were inside their margins."""
    inside: dict[Question, list[bool]] = {question: [] for question in truths}
    with dc.open(town.policy) as curator:
        copies = Copies(curator)
        for _ in range(number):
            with copies.fresh() as copy:
                for question, truth in truths.items():
                    found = _numbers(copy.ask(question.sql, epsilon=PRICE)).items()
                    inside[question] += [abs(value - truth[key]) <= margin for key, (value, margin) in found]
    return inside


def _compare(recorder: Recorder, curator: dc.Curator, truths: Truths) -> None:
    recorder.title(f"Queries on a simulated town of {PEOPLE:,} residents")
    rows: list[tuple[Cell, ...]] = []
    within = []
    for question, truth in truths.items():
        cost = PRICE
        for key, (value, margin) in _numbers(curator.ask(question.sql, epsilon=PRICE)).items():
            label = ": ".join((question.words, *key))
            within.append(abs(value - truth[key]) <= margin)
            answer = f"{short(value)} ± {short(margin)}"
            rows.append((label, short(truth[key]), answer, yes_or_no(within[-1]), cost))
            cost = ""
    recorder.table(("query", "true value", "answer ± 95 %", "within?", "epsilon"), rows)
    total, spent, _ = curator.budget()
    assert total.rho
    recorder.say(
        f"± is the {CONFIDENCE:.0%} margin of error from privacy noise; {sum(within)} of {len(within)} answers are "
        f"within it. The {len(truths)} queries spent {float(spent.rho / total.rho):.2%} of a budget of epsilon "
        f"{float(total.epsilon):g}. Each resident lives in one ward, so a query about all wards costs as much as a "
        "query about one (parallel composition)."
    )


def _shares(recorder: Recorder, done: list[dict[Question, list[bool]]]) -> None:
    seen = {question: [each for inside in done for each in inside[question]] for question in done[0]}
    together = [each for inside in seen.values() for each in inside]
    rows = [_share(question.words, inside) for question, inside in seen.items()]
    rows.append(_share("all queries", together))
    recorder.table(("query", "answers", "within margin", "stated", "by chance"), rows)
    share, error = sum(together) / len(together), _error(len(together))
    if share >= CONFIDENCE - 2 * error:  # four standard errors: once in thirty thousand tours
        verdict = good(f"The stated {CONFIDENCE:.0%} holds")
    else:
        verdict = warn(f"That is below the stated {CONFIDENCE:.0%} by more than chance explains")
    recorder.say(
        "Each copy has a ledger of its own and draws fresh noise. Within their margin are "
        f"{share:.1%} of all answers. ",
        verdict,
        ". The last column is the sampling error of a share of this many answers.",
    )


def _share(words: str, inside: list[bool]) -> tuple[str, ...]:
    share = sum(inside) / len(inside)
    return words, f"{len(inside):,}", f"{share:.1%}", f"{CONFIDENCE:.0%}", f"± {_error(len(inside)):.1%}"


def _error(answers: int) -> float:
    return 1.96 * math.sqrt(CONFIDENCE * (1 - CONFIDENCE) / answers)


def _as_it_prints(recorder: Recorder, curator: dc.Curator) -> None:
    sql = "SELECT ward, COUNT(*) AS n, AVG(age) FROM people GROUP BY ward ORDER BY n LIMIT 3"
    recorder.title("An answer as it prints")
    recorder.show(sql)
    recorder.show(repr(curator.ask(sql, epsilon=PRICE)))


def _streets(recorder: Recorder, curator: dc.Curator, town: Town) -> None:
    sql = "SELECT street, COUNT(DISTINCT person) AS people FROM visits GROUP BY street"
    recorder.title("Groups that the policy does not list: partition selection")
    recorder.show(sql)
    shown = {street for street, _ in curator.ask(sql, epsilon=PRICE)}
    visitors = dict(town.truth(sql))
    single = {street for street, people in visitors.items() if people == 1}
    recorder.say(
        f"The data has {len(visitors):,} streets, {len(single):,} of them with a single visitor. The answer lists "
        f"{len(shown):,}, and {len(shown & single):,} of those with a single visitor: a street is listed only if its "
        "noisy number of visitors exceeds a threshold, which depends on epsilon and delta."
    )


def _by_key(rows: list[tuple[Any, ...]]) -> dict[Key, float]:
    return {tuple(row[:-1]): float(row[-1]) for row in rows}


def _numbers(answer: Answer) -> dict[Key, tuple[float, float]]:
    """Return the value and the margin of every group; the last column is the noisy one."""
    (margins,) = answer.margins.values()
    return {tuple(row[:-1]): (float(row[-1]), margin or 0.0) for row, margin in zip(answer, margins, strict=True)}


def short(number: float) -> str:
    """Write a number as one reads it."""
    return f"{number:,.0f}" if abs(number) >= 100 or number == int(number) else f"{number:,.2f}"
