"""The differencing attack: two aggregates, with and without one person."""

from dataclasses import replace
from typing import Literal, get_args

import numpy as np

from discreet.attacks.attack import Attack, Game, Outcome, choice, whole
from discreet.attacks.data.numeric_data import REGRESSION, RegressionData
from discreet.attacks.data.population import POPULATION, Population
from discreet.attacks.defences import DefenceChoice
from discreet.attacks.queries import model_differencing, version_differencing
from discreet.attacks.queries.attack_targets import AttackTargets, draw_targets, secrets_guessed, target_outcome
from discreet.attacks.queries.sql_oracles import refuse_small_sets
from discreet.attacks.queries.target_queries import (
    AskTargets,
    TargetQuery,
    query_releases,
    quoted_column,
    user_oracles,
)
from discreet.attacks.result import AttackResult
from discreet.kernel.numbers import Number

Between = Literal["queries", "versions"]


def differencing(  # noqa: PLR0913 - the common arguments and three settings
    data: Population | RegressionData | None = None,
    *,
    defence: DefenceChoice = "nothing",
    epsilon: Number | None = None,
    random_state: int | None = None,
    targets: int = 500,
    smallest: int = 10,
    between: Between = "queries",
) -> AttackResult:
    """Infer each person's secret from two answers: about everybody, and about everybody else.

    The two answers are counts, with and without the people who look like the target (`between="queries"`), or averages
    of two versions of the data, before and after the target joins ("versions").

    `data` is a `Population`, a simulated town by default, or `RegressionData` to which models are fitted. Answers are
    exact ("nothing"), exact but refused for fewer than `smallest` people ("easy"), or private at epsilon together
    ("curator"). A function as defence gets the table of people and returns a function that answers SQL with a number;
    for `RegressionData` it gets X and y and returns a fitted linear model with `coef_` and `intercept_`.

    >>> result = differencing(defence="easy", random_state=0)
    >>> result.success, result.details["error of salary, median"]
    (1.0, 0.0)
    """
    attack = ATTACK if between != "versions" else _VERSIONS
    run = _FITS.run if isinstance(data, RegressionData) else attack.run
    return run(data, defence, epsilon, random_state, targets=targets, smallest=smallest, between=between)


def _play(game: Game) -> Outcome:
    targets = draw_targets(game.data, game.settings.targets, game.rng)
    has_secret = f"{quoted_column(targets.people.secret)} = 1"
    with game.release(targets) as ask:
        holders = difference_of_answers(ask, TargetQuery("COUNT(*)", has_secret))
        direct_answers = ask(TargetQuery("COUNT(*)", f"{has_secret} AND {{target}}"))
    answered = {"direct queries answered": float((~np.isnan(direct_answers)).mean())}
    return target_outcome(targets, secrets_guessed(targets, holders), {**answered, **_amount_details(game, targets)})


def difference_of_answers(ask: AskTargets, query: TargetQuery) -> np.ndarray:
    """Return the difference between the answers with and without the people who match the target.

    >>> answers = iter(np.array([[7.0], [6.0]]))
    >>> difference_of_answers(lambda query: next(answers), TargetQuery("COUNT(*)", "ill = 1"))
    array([1.])
    """
    return ask(query) - ask(TargetQuery(query.aggregate, f"{query.condition} AND NOT ({{target}})"))


def _amount_details(game: Game, targets: AttackTargets) -> dict[str, float]:
    """Recover the amounts of unique targets from two sums each, with a separate budget."""
    name, is_unique = targets.people.amount, targets.class_sizes == 1
    if name is None:
        return {}
    truth = targets.people.table[name].to_numpy()[targets.rows]
    with game.release(targets) as ask:
        sums = difference_of_answers(ask, TargetQuery(f"SUM({quoted_column(name)})", "1 = 1"))
    return {f"error of {name}, median": float(np.median(np.abs(sums - truth)[is_unique]))}


ATTACK = Attack(
    function=differencing,
    docs_page="queries",
    summary="Sends two queries, with and without one person, and takes the difference; or reads the average before and "
    "after the person joins (between=versions).",
    data=POPULATION,
    releases=query_releases(
        (
            "non-private counts and sums",
            "non-private counts and sums, but only over large sets",
            "private counts; both queries together cost epsilon",
        ),
        easy_fix=lambda game, oracle: refuse_small_sets(oracle, game.settings.smallest),
        budget_parts=2,
    ),
    own=user_oracles,
    play=_play,
    settings={"targets": whole(1), "smallest": whole(1), "between": choice(get_args(Between))},
)
_VERSIONS = replace(
    ATTACK,
    releases=version_differencing.RELEASES,
    own=version_differencing.user_averages,
    play=version_differencing.difference_versions,
)
_FITS = replace(
    ATTACK,
    data=REGRESSION,
    releases=model_differencing.RELEASES,
    own=model_differencing.user_fit,
    play=model_differencing.difference_fits,
)
