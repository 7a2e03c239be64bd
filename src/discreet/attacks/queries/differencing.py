"""The differencing attack: two aggregates, with and without one person."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Literal, get_args

import numpy as np

from discreet.attacks.defences import CURATOR, DefenceChoice, parse_defence
from discreet.attacks.queries.attack_targets import (
    FILES,
    METRIC,
    AttackTargets,
    Population,
    draw_targets,
    guess_evidence,
    guess_secrets,
    load,
    simulate_town,
    target_details,
    target_exposure,
)
from discreet.attacks.queries.model_differencing import RegressionData, difference_fits
from discreet.attacks.queries.sql_oracles import SqlOracle, refuse_small_sets
from discreet.attacks.queries.target_queries import AskTargets, TargetQuery, oracle_for_targets, quoted_column
from discreet.attacks.queries.version_differencing import difference_versions
from discreet.attacks.registry import Attack
from discreet.attacks.result import AttackResult
from discreet.attacks.validation import random_generator
from discreet.kernel.numbers import Number, as_integer

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
    parsed_defence, rng = parse_defence(defence, epsilon), random_generator(random_state)
    if between not in get_args(Between):
        raise ValueError(f"between must be one of {', '.join(get_args(Between))}, not {between!r}")
    if isinstance(data, RegressionData):
        return difference_fits(data, parsed_defence, rng, targets, smallest)
    drawn_targets = draw_targets(simulate_town(rng) if data is None else data, targets, rng)
    min_set_size = as_integer(smallest, "smallest", 1)
    if between == "versions":
        return difference_versions(drawn_targets, parsed_defence, min_set_size)
    secret_column = quoted_column(drawn_targets.people.secret)

    def easy_fix(oracle: SqlOracle) -> SqlOracle:
        return refuse_small_sets(oracle, min_set_size)

    epsilon_per_query = parsed_defence.curator_epsilon / 2 if parsed_defence.kind == CURATOR else None
    open_oracle = partial(
        oracle_for_targets, parsed_defence, drawn_targets, easy_fix=easy_fix, epsilon_per_query=epsilon_per_query
    )
    with open_oracle() as ask:
        guesses = guess_secrets(
            difference_of_answers(ask, TargetQuery("COUNT(*)", f"{secret_column} = 1")), drawn_targets.class_sizes
        )
        direct_answers = ask(TargetQuery("COUNT(*)", f"{secret_column} = 1 AND {{target}}"))
    is_right = guesses == drawn_targets.secret_bits
    amounts = {} if drawn_targets.people.amount is None else _amount_details(open_oracle, drawn_targets)
    return AttackResult(
        attack="differencing",
        against=parsed_defence,
        metric=METRIC,
        evidence=guess_evidence(drawn_targets, is_right),
        details={
            **target_details(drawn_targets, is_right),
            "direct queries answered": float((~np.isnan(direct_answers)).mean()),
            **amounts,
        },
        exposure=target_exposure(drawn_targets, is_right),
    )


def difference_of_answers(ask: AskTargets, query: TargetQuery) -> np.ndarray:
    """Return the difference between the answers with and without the people who match the target.

    >>> answers = iter(np.array([[7.0], [6.0]]))
    >>> difference_of_answers(lambda query: next(answers), TargetQuery("COUNT(*)", "ill = 1"))
    array([1.])
    """
    return ask(query) - ask(TargetQuery(query.aggregate, f"{query.condition} AND NOT ({{target}})"))


def _amount_details(
    open_oracle: Callable[[], AbstractContextManager[AskTargets]], targets: AttackTargets
) -> dict[str, float]:
    """Recover the amounts of unique targets from two sums each, with a separate budget."""
    name, is_unique = str(targets.people.amount), targets.class_sizes == 1
    truth = targets.people.table[name].to_numpy()[targets.rows]
    with open_oracle() as ask:
        errors = np.abs(difference_of_answers(ask, TargetQuery(f"SUM({quoted_column(name)})", "1 = 1")) - truth)[
            is_unique
        ]
    return {f"error of {name}, median": float(np.median(errors))} if errors.size else {}


ATTACK = Attack(
    run=differencing,
    docs_page="queries",
    summary="Sends two queries, with and without one person, and takes the difference; or reads the average before and "
    "after the person joins (between=versions).",
    without_defence="non-private counts and sums",
    with_easy_fix="non-private counts and sums, but only over large sets",
    with_curator="private counts; both queries together cost epsilon",
    built_in_data="a simulated town of 500 people",
    data_files=FILES,
    load=load,
)
