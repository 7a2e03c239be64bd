"""The intersection attack: two k-anonymous tables of overlapping people, combined."""

from typing import Any

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
    Number,
    whole,
)
from discreet.attacks.data.overlapping_tables import TWO_TABLES, TwoTables
from discreet.attacks.data.patients import SensitiveValues
from discreet.attacks.private_answers import private_counts
from discreet.attacks.tables.attribute_inference import (
    ClassCounts,
    checked_release,
    class_counts,
    draw_people,
    epsilon_implied_by_absent_values,
    infer_most_likely,
    inference_result,
    k_anonymous_release,
    posteriors_from_oracle,
    posteriors_from_table,
    rarity_of_rows,
)
from discreet.attacks.validation import require

_MIN_DISTINCT_VALUES = 3


def intersection(  # noqa: PLR0913 - all but the first by name only
    data: TwoTables | None = None,
    *,
    defence: DefenceChoice = "nothing",
    epsilon: Number | None = None,
    random_state: int | None = None,
    k: int = 5,
    targets: int = 2000,
) -> AttackResult:
    """Infer the sensitive values of people who are in two released tables.

    `data` are `TwoTables` of overlapping people, simulated by default. The release is two k-anonymous tables
    ("nothing"), two tables with classes of 2k people and at least three distinct sensitive values ("easy"), or counts
    from two curators with half of epsilon each ("curator", for up to `targets` people). A function as defence gets each
    table with a column `row` and returns it modified, or returns a function that answers arrays of counts.

    >>> from discreet.attacks.data.overlapping_tables import lecture_tables
    >>> result = intersection(lecture_tables(), k=4)
    >>> result.details["values left by the first table, the second, both"]
    [3.0, 4.0, 1.0]
    """
    return ATTACK.run(data, defence, epsilon, random_state, k=k, targets=targets)


def _play(game: Game) -> AttackResult:
    data, releases = game.data, [game.release(table) for table in game.data.tables]
    are_tables = [isinstance(each, pa.Table) for each in releases]
    require(
        are_tables[0] == are_tables[1],
        "the defence must return a table for both tables, or a function for both, not a table for one and a "
        "function for the other",
    )
    sensitive, details = data.sensitive_values, {"values inferred with certainty": 0}
    if are_tables[0]:
        counts, people = _counts_in_both(data, releases), np.arange(len(data.both))
        first, second = (posteriors_from_table(each, sensitive) for each in counts)
        details = _table_details(counts, sensitive)
    else:
        counts, people = (
            _counts_in_both(data, [each.numbered_table for each in data.tables]),
            draw_people(game, len(data.both)),
        )
        first, second = (
            posteriors_from_oracle(each, sensitive, people, oracle)
            for each, oracle in zip(counts, releases, strict=True)
        )
        details["people targeted"] = len(people)
    as_members, as_non_members = (
        combine_posteriors(*pair, sensitive.prior) for pair in zip(first, second, strict=True)
    )
    inference = infer_most_likely(people, (as_members, as_non_members), sensitive)
    return inference_result(
        game,
        "of sensitive values inferred for people in both tables",
        inference,
        {"people in both": len(data.both), **details, "highest posterior": inference.highest_posterior},
        rarity_of_rows(data.first.table, data.first.quasi)[data.both[:, 0]],
        person="person",
    )


def _counts_in_both(data: TwoTables, tables: list[pa.Table]) -> list[ClassCounts]:
    """Return each table's class counts for the people in both, with a column per value of either table."""
    counts = []
    for patients, table, rows in zip(data.tables, tables, data.both.T, strict=True):
        columns, one = [data.values.index(value) for value in patients.values], class_counts(table, patients)
        wide = np.zeros((2, len(rows), len(data.values)), np.int64)
        wide[:, :, columns] = one.with_target[rows], one.without_target[rows]
        counts.append(ClassCounts(*wide))
    return counts


def combine_posteriors(first: np.ndarray, second: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """Return the posterior of each value given both tables; the average if the two contradict each other.

    >>> combine_posteriors(np.array([[0.5, 0.5, 0.0]]), np.array([[0.5, 0.0, 0.5]]), np.array([0.4, 0.3, 0.3])).tolist()
    [[1.0, 0.0, 0.0]]
    """
    both = first * second / prior
    is_contradiction = both.sum(axis=1) == 0  # no value is possible in both: the two rows are not the same person
    both[is_contradiction] = (first + second)[is_contradiction]
    return np.asarray(both / both.sum(axis=1, keepdims=True))


def _table_details(table_counts: list[ClassCounts], sensitive: SensitiveValues) -> dict[str, Any]:
    first, second = table_counts
    common = ClassCounts(
        np.minimum(first.with_target, second.with_target), np.minimum(first.without_target, second.without_target)
    )
    left = [(each.with_target > 0).sum(axis=1) for each in (first, second, common)]
    return {
        "values left by the first table, the second, both": [float(each.mean()) for each in left],
        "values inferred with certainty from one table": int(((left[0] == 1) | (left[1] == 1)).sum()),
        "values inferred with certainty": int((left[2] == 1).sum()),
        "epsilon implied by absent values, at least": epsilon_implied_by_absent_values(common, sensitive.truth),
    }


ATTACK = Attack(
    function=intersection,
    docs_page="tables",
    summary="Combines two k-anonymous tables of overlapping people to infer sensitive values.",
    data=TWO_TABLES,
    releases={
        NOTHING: DefenceRelease(
            "two 5-anonymous tables", lambda game, table: k_anonymous_release(table, game.settings.k)
        ),
        EASY: DefenceRelease(
            "two 10-anonymous, 3-diverse tables",
            lambda game, table: k_anonymous_release(table, 2 * game.settings.k, _MIN_DISTINCT_VALUES),
        ),
        # Removing a person from both tables changes the answers of both curators: the two halves compose to epsilon.
        CURATOR: DefenceRelease(
            "counts by sensitive value from two curators, with half of epsilon each",
            lambda game, _: lambda counts: private_counts(counts, game.epsilon / 2),
        ),
    },
    own=lambda game, table: checked_release(game.ask_user(table.numbered_table), table),
    play=_play,
    settings={"k": whole(2), "targets": whole(1)},
)
