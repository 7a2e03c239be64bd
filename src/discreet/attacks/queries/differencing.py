"""Differencing: two aggregates, with and without one person, and what lies between them."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial

import numpy as np

from discreet.attacks.checking import generator
from discreet.attacks.defences import CURATOR, Defence, shield
from discreet.attacks.listing import Attack
from discreet.attacks.queries.asking import Ask, Question, asking, column
from discreet.attacks.queries.fits import Rows, difference_fits
from discreet.attacks.queries.oracles import Oracle, large_sets
from discreet.attacks.queries.people import FILES, People, Targets, load, pick, town
from discreet.attacks.queries.telling import METRIC, all_targets, evidence, guess, who
from discreet.attacks.result import AttackResult
from discreet.kernel.exact import Number, whole


def differencing(  # noqa: PLR0913 - the laboratory's shape, and two settings
    data: People | Rows | None = None,
    *,
    defence: Defence = "nothing",
    epsilon: Number | None = None,
    random_state: int | None = None,
    targets: int = 500,
    smallest: int = 10,
) -> AttackResult:
    """Find people's secrets from two answers each: about everybody, and about everybody else.

    `data` are People, a made-up town unless given, or Rows that models are fitted on. Answers are exact ("nothing"),
    exact but only about `smallest` people or more ("easy"), or private, both for epsilon together ("curator"). A
    function of yours takes the table of people and returns a function that answers SQL with a number; for Rows it
    takes X and y, and returns a fitted linear model, with `coef_` and `intercept_`.

    >>> result = differencing(defence="easy", random_state=0)
    >>> result.success, result.details["salary is off by, median"]
    (1.0, 0.0)
    """
    protected, rng = shield(defence, epsilon), generator(random_state)
    if isinstance(data, Rows):
        return difference_fits(data, protected, rng, targets, smallest)
    played = pick(town(rng) if data is None else data, targets, rng)
    least, secret = whole(smallest, "smallest", 1), column(played.people.secret)

    def easy(answer: Oracle) -> Oracle:
        return large_sets(answer, least)

    price = protected.price / 2 if protected.word == CURATOR else None
    ask_both = partial(asking, protected, played, easy=easy, price=price)
    with ask_both() as ask:
        found = guess(difference(ask, Question("COUNT(*)", f"{secret} = 1")), played.alike)
        direct = ask(Question("COUNT(*)", f"{secret} = 1 AND {{target}}"))
    hit = found == played.coins
    amounts = {} if played.people.amount is None else _amounts(ask_both, played)
    return AttackResult(
        attack="differencing",
        shield=protected,
        metric=METRIC,
        evidence=evidence(played, hit),
        details={
            **all_targets(played, hit),
            "questions about the target alone that were answered": float((~np.isnan(direct)).mean()),
            **amounts,
        },
        exposure=who(played, hit),
    )


def difference(ask: Ask, question: Question) -> np.ndarray:
    """Return what those who fit the target add to the answer, as far as two answers tell, one of them without them.

    >>> answers = iter(np.array([[7.0], [6.0]]))
    >>> difference(lambda question: next(answers), Question("COUNT(*)", "ill = 1"))
    array([1.])
    """
    return ask(question) - ask(Question(question.what, f"{question.where} AND NOT ({{target}})"))


def _amounts(ask_both: Callable[[], AbstractContextManager[Ask]], targets: Targets) -> dict[str, float]:
    """Find the amounts of those whom nobody is like from two sums each, in a game of its own."""
    name, single = str(targets.people.amount), targets.alike == 1
    truth = targets.people.table[name].to_numpy()[targets.rows]
    with ask_both() as ask:
        errors = np.abs(difference(ask, Question(f"SUM({column(name)})", "1 = 1")) - truth)[single]
    return {f"{name} is off by, median": float(np.median(errors))} if errors.size else {}


ATTACK = Attack(
    run=differencing,
    topic="queries",
    says="Asks two questions, with and without one person, and takes the difference.",
    nothing="exact counts and sums",
    easy="exact counts and sums of large sets only",
    curator="private counts, both for epsilon together",
    built_in="a made-up town of 500 people",
    files=FILES,
    load=load,
)
