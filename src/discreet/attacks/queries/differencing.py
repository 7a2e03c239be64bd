"""The differencing attack: two aggregates, with and without one person."""

from dataclasses import replace
from typing import Any, Literal, get_args

import numpy as np
import pyarrow as pa

from discreet.attacks.attack import (
    CURATOR,
    EASY,
    NOTHING,
    Attack,
    AttackResult,
    DefenceChoice,
    DefenceRelease,
    Game,
    GuessEvidence,
    Number,
    choice,
    whole,
)
from discreet.attacks.data.numeric_data import REGRESSION, RegressionData
from discreet.attacks.data.population import POPULATION, Population
from discreet.attacks.queries import model_differencing
from discreet.attacks.queries.attack_targets import AttackTargets, draw_targets, secrets_guessed, target_result
from discreet.attacks.queries.sql_oracles import refuse_small_sets
from discreet.attacks.queries.target_queries import (
    AskTargets,
    TargetQuery,
    private_averages,
    query_releases,
    quoted_column,
    user_answer,
    user_oracles,
)

Between = Literal["queries", "versions"]
Averages = tuple[np.ndarray, np.ndarray]  # before and after each target joins, NaN if refused


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


def _play(game: Game) -> AttackResult:
    targets = draw_targets(game.data, game.settings.targets, game.rng)
    has_secret = f"{quoted_column(targets.people.secret)} = 1"
    with game.release(targets) as ask:
        holders = difference_of_answers(ask, TargetQuery("COUNT(*)", has_secret))
        direct_answers = ask(TargetQuery("COUNT(*)", f"{has_secret} AND {{target}}"))
    answered = {"direct queries answered": float((~np.isnan(direct_answers)).mean())}
    return target_result(
        game, targets, secrets_guessed(targets, holders), {**answered, **_amount_details(game, targets)}
    )


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


def _difference_versions(game: Game) -> AttackResult:
    """Infer the secret, and the amount, of each person who joins, from the averages of two versions of the data.

    The attacker knows who joined, and how many people there are. A curator answers both versions at epsilon together,
    because everybody else is in both; the person who joined is only in the second.
    """
    targets = draw_targets(game.data, game.settings.targets, game.rng)
    people, size = targets.people, targets.people.table.num_rows
    secrets = values_who_joined(game.release(targets, people.secret), size)
    is_right = (np.nan_to_num(secrets) > 0.5) == targets.secret_bits
    details: dict[str, Any] = {"people before and after": [size - 1, size]}
    if people.amount is not None:  # with a separate budget
        truth = people.table[people.amount].to_numpy()[targets.rows]
        errors = np.abs(values_who_joined(game.release(targets, people.amount), size) - truth)
        error = None if np.isnan(errors).all() else float(np.nanmedian(errors))
        details |= {f"error of {people.amount}, median": error}
    return replace(
        target_result(game, targets, is_right, details),
        metric="of secrets inferred of people who joined",
        # Each version costs half of epsilon for adding or removing a person. Only the second one has the person who
        # joined, whose secret is substituted there: a removal and an addition, which cost epsilon together.
        evidence=GuessEvidence(int(is_right.sum()), is_right.size),
    )


def values_who_joined(averages: Averages, size: int) -> np.ndarray:
    """Return the value of each person who joined, from the averages of size - 1 people and of size people.

    >>> values_who_joined((np.array([2.0]), np.array([3.0])), size=4)
    array([6.])
    """
    before, after = averages
    return np.asarray(size * after - (size - 1) * before)


def _exact_averages(_: Game, targets: AttackTargets, column: str) -> Averages:
    values = targets.people.table[column].to_numpy().astype(float)
    total, size = values.sum(), values.size
    return (total - values[targets.rows]) / (size - 1), np.full(targets.rows.size, total / size)


def _averages_of_large_sets(game: Game, targets: AttackTargets, column: str) -> Averages:
    size, (before, after) = targets.people.table.num_rows, _exact_averages(game, targets, column)
    smallest = game.settings.smallest
    return np.where(size - 1 < smallest, np.nan, before), np.where(size < smallest, np.nan, after)


def _user_averages(game: Game, targets: AttackTargets, column: str) -> Averages:
    """Return the answers of the user's defence to queries for the average."""
    table = targets.people.table
    sql = f"SELECT AVG({quoted_column(column).format()}) FROM people"  # noqa: S608 - the name is quoted
    without = [table.filter(pa.array(np.arange(table.num_rows) != row)) for row in targets.rows]
    before = [user_answer(game, each, sql) for each in without]
    return np.array(before), np.array([user_answer(game, table, sql) for _ in targets.rows])


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
    releases={
        NOTHING: DefenceRelease("non-private averages", _exact_averages),
        EASY: DefenceRelease("non-private averages, but only over large sets", _averages_of_large_sets),
        CURATOR: DefenceRelease(
            "private averages; both versions together cost epsilon",
            lambda game, targets, column: private_averages(targets, column, game.epsilon / 2),
        ),
    },
    own=_user_averages,
    play=_difference_versions,
)
_FITS = replace(
    ATTACK,
    data=REGRESSION,
    releases=model_differencing.RELEASES,
    own=model_differencing.user_fit,
    play=model_differencing.difference_fits,
)
