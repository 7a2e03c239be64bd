"""The averaging attack: the same query many times, until the noise averages out."""

from functools import partial

import numpy as np

from discreet.attacks.defences import DefenceChoice, parse_defence
from discreet.attacks.queries.attack_targets import (
    FILES,
    METRIC,
    Population,
    draw_success_by_answer_count,
    draw_targets,
    guess_evidence,
    guess_secrets,
    load,
    simulate_town,
    success_by_answer_count,
    target_details,
    target_exposure,
)
from discreet.attacks.queries.sql_oracles import SqlOracle, add_fresh_noise
from discreet.attacks.queries.target_queries import AskTargets, TargetQuery, oracle_for_targets, quoted_column
from discreet.attacks.registry import Attack
from discreet.attacks.result import AttackResult
from discreet.attacks.validation import random_generator
from discreet.kernel.numbers import Number, as_integer, as_positive

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
    parsed_defence, rng = parse_defence(defence, epsilon), random_generator(random_state)
    drawn_targets = draw_targets(simulate_town(rng) if data is None else data, targets, rng)
    max_answers, noise_scale = as_integer(repeats, "repeats", 1), float(as_positive(width, "width"))

    def easy_fix(oracle: SqlOracle) -> SqlOracle:
        return add_fresh_noise(oracle, noise_scale, rng)

    with oracle_for_targets(parsed_defence, drawn_targets, easy_fix=easy_fix) as ask:
        means, distinct_answers = average_answers(
            ask,
            TargetQuery("COUNT(*)", f"{quoted_column(drawn_targets.people.secret)} = 1 AND {{target}}"),
            max_answers,
        )
    is_right = guess_secrets(means[max(means)], drawn_targets.class_sizes) == drawn_targets.secret_bits
    success_by_count = success_by_answer_count(means, drawn_targets)
    return AttackResult(
        attack="averaging",
        against=parsed_defence,
        metric=METRIC,
        evidence=guess_evidence(drawn_targets, is_right),
        details={
            **target_details(drawn_targets, is_right),
            "answers": max(means),
            "distinct answers": distinct_answers,
            "inferred after one answer": success_by_count[1],
        },
        exposure=target_exposure(drawn_targets, is_right),
        draw=partial(
            draw_success_by_answer_count, success=success_by_count, defence=parsed_defence, xlabel="answers averaged"
        ),
    )


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
    run=averaging,
    docs_page="queries",
    summary="Repeats the same query and averages the noise away.",
    without_defence="non-private counts",
    with_easy_fix="counts with fresh noise each time, and no budget",
    with_curator="private counts: repeated queries get the cached answer, any others are charged to one budget",
    built_in_data="a simulated town of 500 people",
    data_files=FILES,
    load=load,
)
