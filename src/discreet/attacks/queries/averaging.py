"""Averaging: the same question again and again, until the noise has gone."""

from functools import partial

import numpy as np

from discreet.attacks.checking import generator
from discreet.attacks.defences import Defence, shield
from discreet.attacks.listing import Attack
from discreet.attacks.queries.asking import Ask, Question, asking, column
from discreet.attacks.queries.oracles import Oracle, fresh_noise
from discreet.attacks.queries.people import FILES, People, load, pick, town
from discreet.attacks.queries.telling import METRIC, all_targets, draw_steps, evidence, guess, hits_by_number, who
from discreet.attacks.result import AttackResult
from discreet.kernel.exact import Number, positive, whole

_PATIENCE = 20  # so many equal answers, and an outsider knows that there will be no other one


def averaging(  # noqa: PLR0913 - the laboratory's shape, and three settings
    data: People | None = None,
    *,
    defence: Defence = "nothing",
    epsilon: Number | None = None,
    random_state: int | None = None,
    targets: int = 500,
    repeats: int = 10_000,
    width: Number = 10,
) -> AttackResult:
    """Find people's secrets by asking one question about each again and again, and averaging the answers.

    `data` are People, a made-up town unless given. Answers are exact ("nothing"), with Laplace noise of this width that
    is fresh each time ("easy"), or the curator's, whose budget is epsilon ("curator"); or those of a function of yours,
    which takes a table of people and returns a function that answers a question in SQL with a number.

    >>> result = averaging(defence="easy", random_state=0)
    >>> result.details["found after one answer"] < 0.6, result.success
    (True, 1.0)
    """
    protected, rng = shield(defence, epsilon), generator(random_state)
    played = pick(town(rng) if data is None else data, targets, rng)
    times, noise = whole(repeats, "repeats", 1), float(positive(width, "width"))

    def easy(answer: Oracle) -> Oracle:
        return fresh_noise(answer, noise, rng)

    with asking(protected, played, easy=easy) as ask:
        steps, different = average(
            ask, Question("COUNT(*)", f"{column(played.people.secret)} = 1 AND {{target}}"), times
        )
    hit = guess(steps[max(steps)], played.alike) == played.coins
    by_number = hits_by_number(steps, played)
    return AttackResult(
        attack="averaging",
        shield=protected,
        metric=METRIC,
        evidence=evidence(played, hit),
        details={
            **all_targets(played, hit),
            "answers": max(steps),
            "different answers": different,
            "found after one answer": by_number[1],
        },
        exposure=who(played, hit),
        draw=partial(draw_steps, steps=by_number, protected=protected, asked="answers averaged"),
    )


def average(ask: Ask, question: Question, times: int) -> tuple[dict[int, np.ndarray], int]:
    """Ask so many times, or until it is plain that there is one answer only.

    Returns the means after 1, 2, 4, ... answers, and how many differ from the first, which is counted, too.

    >>> answers = iter(np.array([[1.0], [3.0]]))
    >>> average(lambda question: next(answers), Question("COUNT(*)", "{target}"), times=2)
    ({1: array([1.]), 2: array([2.])}, 2)
    """
    first = ask(question)
    total, different, steps = first.copy(), 1, {1: first}
    for number in range(2, times + 1):
        answers = ask(question)
        different += not np.array_equal(answers, first, equal_nan=True)
        total += answers
        if number & (number - 1) == 0 or number == times:
            steps[number] = total / number
        if number == _PATIENCE and different == 1:
            return {**steps, number: total / number}, different
    return steps, different


ATTACK = Attack(
    run=averaging,
    topic="queries",
    says="Asks the same question again and again, and averages the noise away.",
    nothing="exact counts",
    easy="counts with noise that is fresh each time, and no account of what was asked",
    curator="private counts: the same question has the same answer, and others are paid for from one budget",
    built_in="a made-up town of 500 people",
    files=FILES,
    load=load,
)
