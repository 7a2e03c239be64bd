"""The chapter on asking: real questions to a made-up town, each beside the truth that only the owner knows."""

import math
from dataclasses import dataclass
from typing import Any

import discreet as dc
from discreet.answer import Answer
from discreet.cli.tour.copies import Copies
from discreet.cli.tour.recorder import Cell, Recorder, yes_or_no
from discreet.cli.tour.stage import Stage
from discreet.cli.tour.town import PEOPLE, Town

PRICE = "1/10"
CONFIDENCE = 0.95
_JOBS = 8  # so that the bar moves
Key = tuple[Any, ...]


@dataclass(frozen=True)
class Question:
    """A question in words and in SQL. None of them meets a bound, so that noise is the only error."""

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
    """Ask questions of the town, once and many times, and show what an answer is."""
    truths = {question: _by_key(stage.town.truth(question.sql)) for question in QUESTIONS}
    each = math.ceil(stage.sizes.copies / _JOBS)
    jobs = [stage.hands.submit(ask_copies, stage.town, truths, each) for _ in range(_JOBS)]
    with dc.open(stage.town.policy) as curator:
        _compare(stage.recorder, curator, truths)
        stage.recorder.title(f"The same on {each * _JOBS} copies of the town: is 95 % true?")
        _shares(stage.recorder, stage.recorder.wait(jobs, "asking copies of the town"))
        _as_it_prints(stage.recorder, curator)
        _streets(stage.recorder, curator)


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
    recorder.title(f"Questions to a town of {PEOPLE:,} people")
    rows: list[tuple[Cell, ...]] = []
    for question, truth in truths.items():
        price = PRICE
        for key, (value, margin) in _numbers(curator.ask(question.sql, epsilon=PRICE)).items():
            label = ": ".join((question.words, *key))
            inside = yes_or_no(abs(value - truth[key]) <= margin)
            rows.append((label, short(truth[key]), f"{short(value)} ± {short(margin)}", inside, price))
            price = ""
    recorder.table(("question", "truth", "answer ± 95 %", "inside?", "epsilon"), rows)
    total, spent, _ = curator.budget()
    assert total.rho
    recorder.say(
        f"{len(truths)} questions took {float(spent.rho / total.rho):.2%} of a budget of epsilon "
        f"{float(total.epsilon):g}. An answer for all wards costs as much as one for a single ward: everybody lives in "
        "one."
    )


def _shares(recorder: Recorder, done: list[dict[Question, list[bool]]]) -> None:
    seen = {question: [each for inside in done for each in inside[question]] for question in done[0]}
    rows = [_share(question.words, inside) for question, inside in seen.items()]
    rows.append(_share("in all", [each for inside in seen.values() for each in inside]))
    recorder.table(("question", "answers", "inside", "promised", "by chance"), rows)
    recorder.say(
        "Every copy has a ledger of its own, pays, and draws its own noise. The last column is how far the share of so "
        "many answers strays by chance."
    )


def _share(words: str, inside: list[bool]) -> tuple[str, ...]:
    chance = 1.96 * math.sqrt(CONFIDENCE * (1 - CONFIDENCE) / len(inside))
    return words, f"{len(inside):,}", f"{sum(inside) / len(inside):.1%}", f"{CONFIDENCE:.0%}", f"± {chance:.1%}"


def _as_it_prints(recorder: Recorder, curator: dc.Curator) -> None:
    sql = "SELECT ward, COUNT(*) AS n, AVG(age) FROM people GROUP BY ward ORDER BY n LIMIT 3"
    recorder.title("An answer as it prints")
    recorder.show(sql)
    recorder.show(repr(curator.ask(sql, epsilon=PRICE)))


def _streets(recorder: Recorder, curator: dc.Curator) -> None:
    sql = "SELECT street, COUNT(DISTINCT person) AS people FROM visits GROUP BY street"
    recorder.title("Groups that nobody declared are discovered")
    recorder.show(sql)
    answer = curator.ask(sql, epsilon=PRICE)
    recorder.say(
        f"{len(answer)} streets have enough visitors to be shown; one with a single visitor is not. "
        f"{answer.bounded[-1]}"
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
