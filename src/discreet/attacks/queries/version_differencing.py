"""Differencing of versions: the average before and after somebody joins reveals that person's value."""

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from discreet.attacks.attack import Game, Outcome, Release
from discreet.attacks.defences import CURATOR, EASY, NOTHING
from discreet.attacks.evidence import GuessEvidence
from discreet.attacks.queries.attack_targets import AttackTargets, draw_targets, target_outcome
from discreet.attacks.queries.target_queries import private_averages, quoted_column, user_answer

Averages = tuple[np.ndarray, np.ndarray]  # before and after each target joins, NaN if refused


def difference_versions(game: Game) -> Outcome:
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
        target_outcome(targets, is_right, details),
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


def user_averages(game: Game, targets: AttackTargets, column: str) -> Averages:
    """Return the answers of the user's defence to queries for the average."""
    table = targets.people.table
    sql = f"SELECT AVG({quoted_column(column).format()}) FROM people"  # noqa: S608 - the name is quoted
    without = [table.filter(pa.array(np.arange(table.num_rows) != row)) for row in targets.rows]
    before = [user_answer(game, each, sql) for each in without]
    return np.array(before), np.array([user_answer(game, table, sql) for _ in targets.rows])


RELEASES = {
    NOTHING: Release("non-private averages", _exact_averages),
    EASY: Release("non-private averages, but only over large sets", _averages_of_large_sets),
    CURATOR: Release(
        "private averages; both versions together cost epsilon",
        lambda game, targets, column: private_averages(targets, column, game.epsilon / 2),
    ),
}
