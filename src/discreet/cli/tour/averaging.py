"""Asking again and again: the same question has one answer, and other words are paid for until the budget ends."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

import discreet as dc
from discreet.cli.tour.copies import Copies
from discreet.cli.tour.recorder import Recorder, good, warn
from discreet.cli.tour.town import Town
from discreet.cli.tour.tradeoff import counts

BUDGET = "1"
PRICE = "1/100"


@dataclass(frozen=True)
class Again:
    """What came of one question that was asked so many times."""

    sql: str
    times: int
    answers: int
    charges: int
    spent: Fraction | None


@dataclass(frozen=True)
class Rephrased:
    """What came of one question in many words: the pairs of answers, and how it ended."""

    sql: str
    times: int
    answered: int
    refusal: str
    spent: Fraction | None
    differences: tuple[int, ...]
    margins: tuple[float, ...]


def ask_again(town: Town, times: int) -> Again:
    """Ask the same question so many times."""
    sql, _ = counts(town.governor())
    with town.under(BUDGET) as curator, Copies(curator).fresh() as copy:
        answers = (copy.ask(sql, epsilon=PRICE) for _ in range(times))
        seen = {(answer.value, answer.receipt.id) for answer in answers}
        return Again(sql, times, len(seen), len(copy.ledger.events()), copy.budget().spent.epsilon)


def rephrase(town: Town, times: int) -> Rephrased:
    """Ask in other words so many times, with the Governor and without by turns, until the budget ends."""
    questions, answers, refusal, sql = counts(town.governor()), [], "", ""
    with town.under(BUDGET) as curator:
        for number in range(times):
            sql = f"{questions[number % 2]} AND age < {1000 + number}"  # which is true of everybody
            try:
                answers.append(curator.ask(sql, epsilon=PRICE).value)
            except dc.Refused as refused:
                refusal = refusal or str(refused)
        spent = curator.budget().spent.epsilon
        said = [curator.explain(questions[0], epsilon=price) for price in (PRICE, Fraction(BUDGET) / 2)]
    pairs = zip(answers[::2], answers[1::2], strict=False)
    differences = tuple(with_him - without_him for with_him, without_him in pairs)
    margins = tuple(each.columns[0].margin or 0.0 for each in said)
    return Rephrased(sql, times, len(answers), refusal, spent, differences, margins)


def tell_again(recorder: Recorder, done: Again) -> None:
    """Tell what asking again gave."""
    recorder.title(f"The same question {done.times:,} times: one answer")
    recorder.show(done.sql)
    recorder.say(
        f"Asked {done.times:,} times at epsilon {PRICE}. Different answers: ",
        good(str(done.answers)),
        f"; charges: {done.charges}; spent: epsilon {done.spent}. The stored answer comes back, so there is nothing to "
        "average.",
    )


def tell_rephrased(recorder: Recorder, done: Rephrased) -> None:
    """Tell what other words gave."""
    recorder.title(f"In {done.times:,} other words: paid for each time, until the budget ends")
    recorder.show(done.sql)
    recorder.say(
        f"Budget: epsilon {BUDGET}. Answered: ",
        good(str(done.answered)),
        f"; refused: {done.times - done.answered}; spent: epsilon {done.spent}, exactly. The first refusal: ",
        warn(done.refusal),
    )
    numbers = np.array(done.differences)
    error = 1.96 * numbers.std(ddof=1) / np.sqrt(numbers.size)
    one, whole = done.margins
    recorder.say(
        f"The mean of the {numbers.size} differences is {numbers.mean():+.1f} ± {error:.1f}, to tell a 1 from a 0. One "
        f"answer is ± {one:.0f}; the whole budget spent on two at once would give ± {whole:.0f} each. Whatever is "
        f"asked, a guess is right in at most {dc.privacy.posterior_bound(0.5, float(BUDGET)):.1%}."
    )
