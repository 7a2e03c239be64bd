"""Rephrasing: where the same text has the same answer, the same question in other texts."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice

import numpy as np

from discreet.attacks.checking import generator
from discreet.attacks.defences import CURATOR, Defence, shield
from discreet.attacks.listing import Attack
from discreet.attacks.queries.asking import Ask, Question, asking
from discreet.attacks.queries.oracles import Oracle, fresh_noise, same_text
from discreet.attacks.queries.paraphrases import paraphrases
from discreet.attacks.queries.people import FILES, People, load, pick, town
from discreet.attacks.queries.telling import (
    METRIC,
    all_targets,
    draw_steps,
    evidence,
    guess,
    hits_by_number,
    likeliest,
    who,
)
from discreet.attacks.result import AttackResult
from discreet.kernel.exact import Number, positive, whole

_PARTS = 20  # so many questions the budget of the curator is spent on
_PATIENCE = 10  # so many texts in a row without a new answer, and an outsider gives up


def rephrasing(  # noqa: PLR0913 - the laboratory's shape, and three settings
    data: People | None = None,
    *,
    defence: Defence = "nothing",
    epsilon: Number | None = None,
    random_state: int | None = None,
    targets: int = 200,
    texts: int = 200,
    width: Number = 1,
) -> AttackResult:
    """Find people's secrets by asking one question about each in many other words, and weighing the answers.

    `data` are People, a made-up town unless given. Answers are exact ("nothing"), with Laplace noise of this width that
    is the same for the same text ("easy"), or the curator's, whose budget is epsilon ("curator"); or those of a
    function of yours, which takes a table of people and returns a function that answers SQL with a number.

    >>> rephrasing(defence="easy", random_state=0, targets=50).success
    1.0
    """
    protected, rng = shield(defence, epsilon), generator(random_state)
    played = pick(town(rng) if data is None else data, targets, rng)
    noise = float(positive(width, "width"))
    asked = list(islice(paraphrases(played.people.secret), whole(texts, "texts", 1)))

    def easy(answer: Oracle) -> Oracle:
        return same_text(fresh_noise(answer, noise, rng))

    price = protected.price / _PARTS if protected.word == CURATOR else None
    with asking(protected, played, easy=easy, price=price) as ask:
        heard = listen(ask, asked)
    steps = {number: likeliest(heard.answers[:number], played.alike) for number in _numbers(heard.new)}
    hit = guess(steps[max(steps)], played.alike) == played.coins
    by_number = hits_by_number(steps, played)
    return AttackResult(
        attack="rephrasing",
        shield=protected,
        metric=METRIC,
        evidence=evidence(played, hit),
        details={
            **all_targets(played, hit),
            "texts asked": heard.asked,
            "new answers": heard.new,
            "earlier answers again": heard.again,
            "refused": heard.asked - heard.new - heard.again,
            "found after one answer": by_number[min(by_number)],
        },
        exposure=who(played, hit),
        draw=partial(draw_steps, steps=by_number, protected=protected, asked="different answers heard"),
    )


@dataclass(frozen=True)
class Heard:
    """The different answers, each a row of numbers for all targets, and how many texts had a new or an earlier one."""

    answers: np.ndarray
    asked: int
    new: int
    again: int


def listen(ask: Ask, questions: Sequence[Question]) -> Heard:
    """Ask every text, until none brings a new answer any more, and keep the answers that differ for some target.

    With a handful of targets two new answers in whole numbers may be equal by chance, and pass for one.

    >>> answers = iter(np.array([[1.0], [1.0], [3.0]]))
    >>> heard = listen(lambda question: next(answers), [Question("COUNT(*)", "{target}")] * 3)
    >>> heard.answers.tolist(), heard.asked, heard.new, heard.again
    ([[1.0], [3.0]], 3, 2, 1)
    """
    different: dict[bytes, np.ndarray] = {}
    asked = again = silent = 0
    while asked < len(questions) and silent < _PATIENCE:
        answers = ask(questions[asked])
        asked, silent = asked + 1, silent + 1
        if np.isnan(answers).all():
            continue
        if answers.tobytes() in different:
            again += 1
            continue
        different[answers.tobytes()], silent = answers, 0
    answers = np.stack(list(different.values())) if different else np.zeros((0, 1))
    return Heard(answers, asked, len(different), again)


def _numbers(new: int) -> list[int]:
    """Return after how many answers to guess: 1, 2, 4, ..., and all of them."""
    return sorted({1 << bit for bit in range(new.bit_length())} | {max(new, 1)})


ATTACK = Attack(
    run=rephrasing,
    topic="queries",
    says="Asks the same question in hundreds of other words, where the same text has the same answer.",
    nothing="exact counts",
    easy="noisy counts, the same for the same text",
    curator="private counts: every text that is not known as the same question is paid for from one budget",
    built_in="a made-up town of 500 people",
    files=FILES,
    load=load,
)
