"""The averaging attack: the same query many times, until the noise averages out."""

import numpy as np

from discreet.attacks.attack import Attack, AttackResult, DefenceChoice, Game, whole
from discreet.attacks.data.population import POPULATION, Population
from discreet.attacks.queries.attack_targets import draw_targets, result_by_answer_count, unique_success
from discreet.attacks.queries.sql_oracles import add_fresh_noise
from discreet.attacks.queries.target_queries import (
    AskTargets,
    TargetQuery,
    query_releases,
    quoted_column,
    user_oracles,
)
from discreet.kernel.numbers import Number, as_positive

_MAX_EQUAL_ANSWERS = 20  # after this many equal answers the attacker stops repeating


def averaging(  # noqa: PLR0913 - the common arguments and three settings
    data: Population | None = None,
    *,
    defence: DefenceChoice = "nothing",
    epsilon: Number | None = None,
    random_state: int | None = None,
    targets: int = 500,
    repeats: int = 10_000,
    width: Number = 10,
) -> AttackResult:
    """Infer people's secrets by repeating one query about each and averaging the answers.

    `data` is a `Population`, a simulated town by default. Answers are exact ("nothing"), with fresh Laplace noise of
    scale `width` each time ("easy"), or the curator's with budget epsilon ("curator"). A function as defence gets the
    table of people and returns a function that answers SQL with a number.

    >>> result = averaging(defence="easy", random_state=0)
    >>> result.details["inferred after one answer"] < 0.6, result.success
    (True, 1.0)
    """
    return ATTACK.run(data, defence, epsilon, random_state, targets=targets, repeats=repeats, width=width)


def _play(game: Game) -> AttackResult:
    targets = draw_targets(game.data, game.settings.targets, game.rng)
    with game.release(targets) as ask:
        query = TargetQuery("COUNT(*)", f"{quoted_column(targets.people.secret)} = 1 AND {{target}}")
        means, distinct_answers = average_answers(ask, query, game.settings.repeats)
    details = {
        "answers": max(means),
        "distinct answers": distinct_answers,
        "inferred after one answer": unique_success(targets, means[1]),
    }
    return result_by_answer_count(game, targets, means, details, "answers averaged")


def average_answers(ask: AskTargets, query: TargetQuery, max_answers: int) -> tuple[dict[int, np.ndarray], int]:
    """Repeat a query `max_answers` times, or until it is clear that the answer never changes.

    Returns the means after 1, 2, 4, ... answers, and one more than the number of answers that differ from the first.

    >>> answers = iter(np.array([[1.0], [3.0]]))
    >>> average_answers(lambda query: next(answers), TargetQuery("COUNT(*)", "{target}"), max_answers=2)
    ({1: array([1.]), 2: array([2.])}, 2)
    """
    first = ask(query)
    total, distinct_answers, means = first.copy(), 1, {1: first}
    for number in range(2, max_answers + 1):
        answers = ask(query)
        distinct_answers += not np.array_equal(answers, first, equal_nan=True)
        total += answers
        if number & (number - 1) == 0 or number == max_answers:
            means[number] = total / number
        if number == _MAX_EQUAL_ANSWERS and distinct_answers == 1:
            return {**means, number: total / number}, distinct_answers
    return means, distinct_answers


ATTACK = Attack(
    function=averaging,
    docs_page="queries",
    summary="Repeats the same query and averages the noise away.",
    data=POPULATION,
    releases=query_releases(
        (
            "non-private counts",
            "counts with fresh noise each time, and no budget",
            "private counts: repeated queries get the cached answer, any others are charged to one budget",
        ),
        easy_fix=lambda game, oracle: add_fresh_noise(oracle, float(game.settings.width), game.rng),
    ),
    own=user_oracles,
    play=_play,
    settings={"targets": whole(1), "repeats": whole(1), "width": as_positive},
)
