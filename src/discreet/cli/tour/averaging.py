"""Averaging attacks: a repeated query returns the cached answer, and every rephrased one is charged."""

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
_HALF = 0.5  # the margin that separates 1 from 0


@dataclass(frozen=True)
class Again:
    """What came of repeating one query."""

    sql: str
    times: int
    answers: int
    charges: int
    spent: Fraction | None


@dataclass(frozen=True)
class Rephrased:
    """What came of rephrasing one query: the differences of pairs of answers, and the first refusal."""

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
    """Report what repeating a query gave."""
    recorder.title(f"Averaging: the same query {done.times:,} times")
    recorder.show(done.sql)
    if done.answers == 1:
        verdict = good("Repeats return the cached answer at no charge, so there is nothing to average")
    else:
        verdict = warn("Repeats drew fresh noise")
    recorder.say(
        f"Asked {done.times:,} times at epsilon {PRICE}: {_count(done.answers, 'different answer')}, "
        f"{_count(done.charges, 'charge')}, epsilon {done.spent} spent. ",
        verdict,
        ".",
    )


def tell_rephrased(recorder: Recorder, done: Rephrased) -> None:
    """Report what rephrasing a query gave."""
    recorder.title(f"Rephrasing: {done.times:,} equivalent queries")
    recorder.show(done.sql)
    recorder.say(
        f"Every wording is a new query at epsilon {PRICE}, from a budget of epsilon {BUDGET}. Answered: ",
        good(str(done.answered)),
        f"; refused: {done.times - done.answered}; spent: epsilon {done.spent}. The first refusal: ",
        warn(done.refusal),
    )
    numbers = np.array(done.differences)
    error = 1.96 * numbers.std(ddof=1) / np.sqrt(numbers.size)
    one, whole = done.margins
    verdict = good("too wide") if error > _HALF else warn("narrow enough")
    recorder.say(
        f"The attacker averages {numbers.size} differences: {numbers.mean():+.1f} ± {error:.1f}, which is ",
        verdict,
        f" to distinguish 1 from 0. One answer has a margin of ± {one:.0f}; two answers that share the whole budget "
        f"would have ± {whole:.0f} each. Whatever is asked within epsilon {BUDGET}, a guess is right with probability "
        f"at most {dc.privacy.posterior_bound(0.5, float(BUDGET)):.1%}.",
    )


def _count(number: int, word: str) -> str:
    return f"{number:,} {word}{'' if number == 1 else 's'}"
