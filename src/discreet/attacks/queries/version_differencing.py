"""Differencing of versions: the average before and after somebody joins reveals that person's value."""

import numpy as np
import pyarrow as pa

from discreet.attacks.defences import CURATOR, EASY, OWN, Defence
from discreet.attacks.evidence import GuessEvidence
from discreet.attacks.queries.attack_targets import AttackTargets, target_details, target_exposure
from discreet.attacks.queries.target_queries import private_averages, quoted_column, user_answer
from discreet.attacks.result import AttackResult


def difference_versions(targets: AttackTargets, defence: Defence, min_set_size: int) -> AttackResult:
    """Infer the secret, and the amount, of each person who joins, from the averages of two versions of the data.

    The attacker knows who joined, and how many people there are. A curator answers both versions at epsilon together,
    because everybody else is in both; the person who joined is only in the second.
    """
    people = targets.people
    secrets = value_who_joined(*_averages(targets, defence, people.secret, min_set_size), people.table.num_rows)
    is_right = (np.nan_to_num(secrets) > 0.5) == targets.secret_bits
    amounts = {}
    if people.amount is not None:  # with a separate budget
        truth = people.table[people.amount].to_numpy()[targets.rows]
        found = value_who_joined(*_averages(targets, defence, people.amount, min_set_size), people.table.num_rows)
        is_answered = ~np.isnan(found)
        error = np.median(np.abs(found - truth)[is_answered]) if is_answered.any() else None
        amounts = {f"error of {people.amount}, median": None if error is None else float(error)}
    return AttackResult(
        attack="differencing",
        against=defence,
        metric="of secrets inferred of people who joined",
        # Each version costs half of epsilon for adding or removing a person. Only the second one has the person who
        # joined, whose secret is substituted there: a removal and an addition, which cost epsilon together.
        evidence=GuessEvidence(int(is_right.sum()), is_right.size),
        details={
            **target_details(targets, is_right),
            "people before and after": [people.table.num_rows - 1, people.table.num_rows],
            **amounts,
        },
        exposure=target_exposure(targets, is_right),
    )


def value_who_joined(before: np.ndarray, after: np.ndarray, size: int) -> np.ndarray:
    """Return the value of the person who joined, from the averages of size - 1 people and of size people.

    >>> value_who_joined(np.array([2.0]), np.array([3.0]), size=4)
    array([6.])
    """
    return np.asarray(size * after - (size - 1) * before)


def _averages(
    targets: AttackTargets, defence: Defence, column: str, min_set_size: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the average of a column before and after each target joins; NaN if it is refused."""
    if defence.kind == CURATOR:
        return private_averages(targets, column, defence.curator_epsilon / 2)
    if defence.kind == OWN and defence.user_function is not None:
        return _averages_from_user(targets, defence, column)
    values = targets.people.table[column].to_numpy().astype(float)
    total, size = values.sum(), values.size
    before, after = (total - values[targets.rows]) / (size - 1), np.full(targets.rows.size, total / size)
    if defence.kind == EASY:
        before, after = (np.where(n < min_set_size, np.nan, each) for n, each in ((size - 1, before), (size, after)))
    return before, after


def _averages_from_user(targets: AttackTargets, defence: Defence, column: str) -> tuple[np.ndarray, np.ndarray]:
    table = targets.people.table
    sql = f"SELECT AVG({quoted_column(column).format()}) FROM people"  # noqa: S608 - the name is quoted
    without = [table.filter(pa.array(np.arange(table.num_rows) != row)) for row in targets.rows]
    before = [user_answer(defence, each, sql) for each in without]
    after = [user_answer(defence, table, sql) for _ in targets.rows]
    return np.array(before), np.array(after)
