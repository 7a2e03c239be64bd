"""The chapter on attacks: what queries about one person disclose, by differencing, repetition and rephrasing."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

import discreet as dc
from discreet.cli.terminal import count_of
from discreet.cli.tour.curator_copies import CuratorCopies
from discreet.cli.tour.differencing_game import (
    COUNT_SENSITIVITY,
    GuessingResult,
    guess_is_ill,
    play,
    play_non_private,
    tradeoff_curve,
    tradeoff_figure,
    tradeoff_point,
)
from discreet.cli.tour.page import Cell
from discreet.cli.tour.recorder import Recorder, TourContext, good, warn
from discreet.worlds.town import ILLNESSES, SECRET_ILLNESS, Town

EPSILONS = (Fraction(1, 10), Fraction(1), Fraction(3))


def show_chapter(context: TourContext) -> None:
    """Attack the Governor's diagnosis with non-private counts, with private ones, and with repeated queries."""
    recorder, town, plays, repeats = (
        context.recorder,
        context.town,
        context.repetitions.plays,
        context.repetitions.repeats,
    )
    games = [context.workers.submit(play, town, epsilon, plays) for epsilon in EPSILONS]
    repeat_job = context.workers.submit(repeat_query, town, repeats)
    rephrase_job = context.workers.submit(rephrase_query, town, repeats)
    _show_non_private(recorder, town)
    recorder.add_section("The same two counts, private")
    recorder.add_paragraph(
        f"The attacker asks the same two queries {plays} times for each epsilon, the cost of both answers together, "
        "with fresh noise each time. There is no delta, so it is Laplace noise. Each time, a coin "
        f"toss decides whether the Governor has {SECRET_ILLNESS}. The attacker guesses yes if the first answer exceeds "
        "the second by 1 or more."
    )
    results = recorder.wait(games, "attacking the town")
    _show_private(recorder, results, play_non_private(town, plays))
    recorder.add_section("The trade-off between accuracy and privacy")
    caption = "A larger epsilon gives a smaller margin of error (left), and allows better attacks (right)."
    recorder.draw_picture(lambda: tradeoff_figure(tradeoff_curve(), results), "tradeoff.svg", caption)
    show_repeated(recorder, *recorder.wait([repeat_job], "repeating a query"))
    show_rephrased(recorder, *recorder.wait([rephrase_job], "rephrasing a query"))


def _show_non_private(recorder: Recorder, town: Town) -> None:
    governor = town.governor()
    recorder.add_section("Differencing: two non-private counts and one diagnosis")
    recorder.add_paragraph(
        f"The Governor is {governor.age} and lives in {governor.ward} ward, where, as everybody knows, nobody else is "
        f"{governor.age}. The column ill contains everybody's diagnosis. For each illness, an attacker who gets true "
        "(non-private) counts asks two queries:"
    )
    for sql in governor.differencing_queries():
        recorder.add_code(sql)
    rows, inferred = [], []
    for illness in ILLNESSES:
        both = [town.true_answer(sql)[0][0] for sql in governor.differencing_queries(illness)]
        inferred += [illness] if guess_is_ill(*both) else []
        rows.append((illness, *(f"{number:,}" for number in both), f"{both[0] - both[1]}"))
    recorder.add_table(("illness", "all residents", "without the Governor", "difference"), rows)
    truth = [ill for (ill,) in town.true_answer(f"SELECT ill FROM people WHERE {governor.condition}")]  # noqa: S608 - our own words
    verdict = warn("That is correct") if inferred == truth else good("That is wrong")
    recorder.add_paragraph("The attacker infers: ", warn(" or ".join(inferred)), ". ", verdict, ".")


def _show_private(recorder: Recorder, results: list[GuessingResult], non_private: GuessingResult) -> None:
    rows: list[tuple[Cell, ...]] = [("non-private", "± 0", warn(f"{non_private.share:.1%}"), "", "")]
    for result in results:
        theory, mechanism = tradeoff_point(float(result.epsilon)), dc.laplace_for(COUNT_SENSITIVITY, result.epsilon / 2)
        bounds = (f"{theory.differencing:.1%}", f"{theory.upper_bound:.1%}")
        correct = f"{result.share:.1%} ± {1.96 * result.standard_error:.1%}"
        rows.append(
            (f"epsilon {float(result.epsilon):g}", f"± {dc.privacy.margin(mechanism, 0.95)}", good(correct), *bounds)
        )
    recorder.add_table(("both counts", "margin of each", "correct guesses", "in theory", "upper bound"), rows)
    recorder.add_paragraph(
        "A random guess is right 50 % of the time. ", _verdict(results[0]), ". ", _compare_with_bound(results)
    )


def _verdict(smallest: GuessingResult) -> Cell:
    """Say whether the attack at the smallest epsilon beat a random guess, by 1.96 or by four standard errors."""
    epsilon, excess = float(smallest.epsilon), (smallest.share - 0.5) / smallest.standard_error
    if excess <= 1.96:
        return good(f"At epsilon {epsilon:g} the attack is no better, within sampling error")
    if excess <= 4:
        return warn(
            f"At epsilon {epsilon:g} the attack was right more often in this run; a repeat would show whether by chance"
        )
    return warn(f"At epsilon {epsilon:g} the attack is better")


def _compare_with_bound(results: list[GuessingResult]) -> str:
    above = [
        result
        for result in results
        if result.share - 4 * result.standard_error > tradeoff_point(float(result.epsilon)).upper_bound
    ]
    is_any_above = any(result.share > tradeoff_point(float(result.epsilon)).upper_bound for result in results)
    bound = "The upper bound, e^epsilon / (1 + e^epsilon), holds for every attack, whatever the attacker knows"
    if above:
        return f"{bound}; here it was exceeded by more than sampling error explains, so something is wrong."
    return f"{bound}{' (a share above it is within sampling error)' if is_any_above else ''}."


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
    sql, _ = town.governor().differencing_queries()
    with town.open_with_budget(BUDGET) as curator, CuratorCopies(curator).open_copy() as copy:
        answers = (copy.ask(sql, epsilon=EPSILON) for _ in range(times))
        distinct_answers = {(answer.value, answer.receipt) for answer in answers}
        return RepeatedQuery(sql, times, len(distinct_answers), len(copy.ledger.events()), copy.budget().spent.epsilon)


def rephrase_query(town: Town, times: int) -> RephrasedQuery:
    """Ask `times` equivalent queries, alternately with and without the Governor, until the budget is used up."""
    queries, answers, refusal, sql = town.governor().differencing_queries(), [], "", ""
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
