"""The chapter on attacks: what a sequence of queries discloses about one person."""

from fractions import Fraction

import discreet as dc
from discreet.cli.tour import averaging_attack
from discreet.cli.tour.context import TourContext
from discreet.cli.tour.differencing_game import (
    COUNT_SENSITIVITY,
    GuessingResult,
    differencing_queries,
    guess_is_ill,
    play,
    play_non_private,
    tradeoff_curve,
    tradeoff_point,
)
from discreet.cli.tour.plot import draw_picture, draw_tradeoff
from discreet.cli.tour.recorder import Cell, Recorder, StyledText, good, warn
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
    repeat_job = context.workers.submit(averaging_attack.repeat_query, town, repeats)
    rephrase_job = context.workers.submit(averaging_attack.rephrase_query, town, repeats)
    _show_non_private(recorder, town)
    recorder.add_section("The same two counts, private")
    recorder.add_paragraph(
        f"The attacker asks the same two queries on {plays} copies of the town for each epsilon, the cost of both "
        "answers together and the whole budget. It has no delta, so the noise is Laplace noise. In each copy, a coin "
        f"toss decides whether the Governor has {SECRET_ILLNESS}. The attacker guesses yes if the first answer exceeds "
        "the second by 1 or more."
    )
    results = recorder.wait(games, "attacking copies of the town")
    _show_private(recorder, results, play_non_private(town, plays))
    recorder.add_section("The trade-off between accuracy and privacy")
    caption = "A larger epsilon gives a smaller margin of error (left), and allows better attacks (right)."
    draw_picture(recorder, lambda: draw_tradeoff(recorder.folder, tradeoff_curve(), results), caption)
    averaging_attack.show_repeated(recorder, *recorder.wait([repeat_job], "repeating a query"))
    averaging_attack.show_rephrased(recorder, *recorder.wait([rephrase_job], "rephrasing a query"))


def _show_non_private(recorder: Recorder, town: Town) -> None:
    governor = town.governor()
    recorder.add_section("Differencing: two non-private counts and one diagnosis")
    recorder.add_paragraph(
        f"The Governor is {governor.age} and lives in {governor.ward} ward, where, as everybody knows, nobody else is "
        f"{governor.age}. The column ill contains everybody's diagnosis. For each illness, an attacker who gets true "
        "(non-private) counts asks two queries:"
    )
    for sql in differencing_queries(governor):
        recorder.add_code(sql)
    rows, inferred = [], []
    for illness in ILLNESSES:
        both = [town.true_answer(sql)[0][0] for sql in differencing_queries(governor, illness)]
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


def _verdict(smallest: GuessingResult) -> StyledText:
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
