"""Averaging attacks: a repeated query returns the cached answer, a rephrased one is charged."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

import discreet as dc
from discreet.cli.terminal import count_of
from discreet.cli.tour.curator_copies import CuratorCopies
from discreet.cli.tour.differencing_game import differencing_queries
from discreet.cli.tour.recorder import Recorder, good, warn
from discreet.worlds.town import Town

BUDGET = "1"
EPSILON = "0.01"
_HALF = 0.5  # the margin that separates 1 from 0


@dataclass(frozen=True)
class RepeatedQuery:
    """The outcome of repeating one query."""

    sql: str
    times: int
    answers: int
    charges: int
    spent: Fraction | None


@dataclass(frozen=True)
class RephrasedQuery:
    """The outcome of rephrasing one query: the differences of pairs of answers, and the first refusal."""

    sql: str
    times: int
    answered: int
    refusal: str
    spent: Fraction | None
    differences: tuple[int, ...]
    margins: tuple[float, ...]


def repeat_query(town: Town, times: int) -> RepeatedQuery:
    """Ask the same query `times` times."""
    sql, _ = differencing_queries(town.governor())
    with town.open_with_budget(BUDGET) as curator, CuratorCopies(curator).open_copy() as copy:
        answers = (copy.ask(sql, epsilon=EPSILON) for _ in range(times))
        distinct_answers = {(answer.value, answer.receipt) for answer in answers}
        return RepeatedQuery(sql, times, len(distinct_answers), len(copy.ledger.events()), copy.budget().spent.epsilon)


def rephrase_query(town: Town, times: int) -> RephrasedQuery:
    """Ask `times` equivalent queries, alternately with and without the Governor, until the budget is used up."""
    queries, answers, refusal, sql = differencing_queries(town.governor()), [], "", ""
    with town.open_with_budget(BUDGET) as curator:
        for number in range(times):
            sql = f"{queries[number % 2]} AND age < {1000 + number}"  # true for everybody
            try:
                answers.append(curator.ask(sql, epsilon=EPSILON).value)
            except dc.Refused as refused:
                refusal = refusal or str(refused)
        spent = curator.budget().spent.epsilon
        explanations = [curator.explain(queries[0], epsilon=epsilon) for epsilon in (EPSILON, Fraction(BUDGET) / 2)]
    pairs = zip(answers[::2], answers[1::2], strict=False)
    differences = tuple(with_him - without_him for with_him, without_him in pairs)
    margins = tuple(explanation.columns[0].margin or 0.0 for explanation in explanations)
    return RephrasedQuery(sql, times, len(answers), refusal, spent, differences, margins)


def show_repeated(recorder: Recorder, result: RepeatedQuery) -> None:
    """Report the outcome of repeating a query."""
    recorder.add_section(f"Averaging: the same query {result.times:,} times")
    recorder.add_code(result.sql)
    if result.answers == 1:
        verdict = good("Repeats return the cached answer at no charge, so there is nothing to average")
    else:
        verdict = warn("Repeats drew fresh noise")
    recorder.add_paragraph(
        f"Asked {result.times:,} times at epsilon {EPSILON}: {count_of(result.answers, 'distinct answer')}, "
        f"{count_of(result.charges, 'charge')}, epsilon {float(result.spent or 0):g} spent. ",
        verdict,
        ".",
    )


def show_rephrased(recorder: Recorder, result: RephrasedQuery) -> None:
    """Report the outcome of rephrasing a query."""
    recorder.add_section(f"Rephrasing: {result.times:,} equivalent queries")
    recorder.add_code(result.sql)
    recorder.add_paragraph(
        "Each query has another condition that holds for everybody, so it is not answered from the cache. Each costs "
        f"epsilon {EPSILON}, from a budget of epsilon {BUDGET}. Answered: ",
        good(str(result.answered)),
        f"; refused: {result.times - result.answered}; spent: epsilon {float(result.spent or 0):g}. First refusal: ",
        warn(result.refusal),
    )
    numbers = np.array(result.differences)
    error = 1.96 * numbers.std(ddof=1) / np.sqrt(numbers.size)
    single_margin, shared_margin = result.margins
    verdict = good("too wide") if error > _HALF else warn("narrow enough")
    recorder.add_paragraph(
        f"The average of {numbers.size} differences is {numbers.mean():+.1f} ± {error:.1f}: the interval is ",
        verdict,
        f" to distinguish 1 from 0. One answer has a margin of ± {single_margin:.0f}; two answers that share the whole "
        f"budget would have ± {shared_margin:.0f} each. Whatever is asked within epsilon {BUDGET}, a guess is right "
        f"with probability at most {dc.privacy.posterior_bound(0.5, float(BUDGET)):.1%}.",
    )
