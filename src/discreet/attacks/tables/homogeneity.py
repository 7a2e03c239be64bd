"""The homogeneity and background-knowledge attacks on k-anonymous tables."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from discreet import anonymity
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
from discreet.attacks.data.patients import PATIENTS, Patients
from discreet.attacks.private_answers import private_count_oracle
from discreet.attacks.tables.attribute_inference import (
    ClassCounts,
    checked_release,
    epsilon_implied_by_absent_values,
    infer_values,
    inference_result,
    k_anonymous_release,
    rarity_of_rows,
)

_MIN_DISTINCT_VALUES = 3


def homogeneity(  # noqa: PLR0913 - all but the first by name only
    data: Patients | None = None,
    *,
    defence: DefenceChoice = "nothing",
    epsilon: Number | None = None,
    random_state: int | None = None,
    k: int = 4,
    targets: int = 2000,
) -> AttackResult:
    """Infer sensitive values from equivalence classes of a k-anonymous table and from background knowledge.

    `data` are `Patients`, simulated by default; a table that is already k-anonymous is not changed. The release is a
    k-anonymous table ("nothing"), one with at least three distinct sensitive values in each class ("easy"), or the
    curator's counts by sensitive value of people who share a target's quasi-identifiers ("curator", for up to `targets`
    people). A function as defence gets the table with a column `row` and returns it modified, or returns a function
    that answers arrays of counts.

    >>> from discreet.attacks.data.patients import first_lecture_table, second_lecture_table
    >>> print(homogeneity(first_lecture_table()).details["rows inferred with certainty"])
    9-12
    >>> homogeneity(second_lecture_table()).details["values inferred with certainty"]
    0
    """
    return ATTACK.run(data, defence, epsilon, random_state, k=k, targets=targets)


def _play(game: Game) -> AttackResult:
    patients, released = game.data, game.release()
    inference, counts = infer_values(game, released, patients)
    details = {"values inferred with certainty": 0}
    if isinstance(released, pa.Table):
        details = _table_details(released, counts, patients)
    return inference_result(
        game,
        "of people's sensitive values inferred",
        inference,
        {**details, "highest posterior": inference.highest_posterior},
        rarity_of_rows(patients.table, patients.quasi),
    )


def has_certain_value(counts: ClassCounts, possible: np.ndarray) -> np.ndarray:
    """Return for whom the class and the background knowledge leave a single value.

    >>> counts = np.array([[4, 0], [3, 1]])
    >>> has_certain_value(ClassCounts(counts, counts), np.array([[True, True], [True, False]])).tolist()
    [True, True]
    """
    return np.asarray(((counts.with_target > 0) & possible).sum(axis=1) == 1)


def _table_details(released: pa.Table, counts: ClassCounts, data: Patients) -> dict[str, Any]:
    all_possible = np.ones_like(data.sensitive_values.possible)
    certain_by_class, certain_with_background = (
        has_certain_value(counts, all_possible),
        has_certain_value(counts, data.sensitive_values.possible),
    )
    return {
        "k": anonymity.measure(released, data.quasi).k,
        "values inferred with certainty": int(certain_by_class.sum()),
        "rows inferred with certainty": format_runs(np.flatnonzero(certain_by_class) + 1) or "none",
        "values inferred with certainty using background knowledge": int(certain_with_background.sum()),
        "epsilon implied by absent values, at least": epsilon_implied_by_absent_values(
            counts, data.sensitive_values.truth
        ),
        **_partial_disclosure(counts, data),
    }


def _partial_disclosure(counts: ClassCounts, data: Patients) -> dict[str, Any]:
    """Return how far a class narrows a person's possible values, compared with those of the whole table."""
    classes = counts.with_target[counts.with_target.sum(axis=1) > 0]
    values = (classes > 0).sum(axis=1)
    return {
        "possible values, in the table and in a class": [len(data.values), float(values.mean())],
        "people at least half of whose values are ruled out": float((values <= len(data.values) / 2).mean()),
        "entropy of the value in bits, in the table and in a class": [
            float(entropy_in_bits(data.sensitive_values.prior[None])[0]),
            float(entropy_in_bits(classes).mean()),
        ],
    }


def entropy_in_bits(counts: np.ndarray) -> np.ndarray:
    """Return the entropy of the values in each row of counts or shares: 0 if all are the same.

    >>> entropy_in_bits(np.array([[4, 0, 0, 0], [1, 1, 1, 1]])).tolist()
    [0.0, 2.0]
    """
    shares = counts / counts.sum(axis=1, keepdims=True)
    return np.asarray(-(shares * np.log2(np.where(shares > 0, shares, 1))).sum(axis=1) + 0.0)


def format_runs(numbers: Sequence[int] | np.ndarray, max_runs: int = 3) -> str:
    """Format row numbers as ranges, and only the first few of them.

    >>> format_runs([9, 10, 11, 12]), format_runs([1, 3, 5, 7, 8])
    ('9-12', '1, 3, 5 and 1 more')
    """
    sorted_numbers = np.asarray(numbers, int)
    if not sorted_numbers.size:
        return ""
    parts = np.split(sorted_numbers, np.flatnonzero(np.diff(sorted_numbers) != 1) + 1)
    run_texts = [f"{part[0]}-{part[-1]}" if len(part) > 1 else str(part[0]) for part in parts]
    return ", ".join(run_texts[:max_runs]) + (
        f" and {len(run_texts) - max_runs} more" if len(run_texts) > max_runs else ""
    )


ATTACK = Attack(
    function=homogeneity,
    docs_page="tables",
    summary="Infers sensitive values from the classes of a k-anonymous table and from background knowledge.",
    data=PATIENTS,
    releases={
        NOTHING: DefenceRelease("a 4-anonymous table", lambda game: k_anonymous_release(game.data, game.settings.k)),
        EASY: DefenceRelease(
            "a 4-anonymous, 3-diverse table: at least three distinct sensitive values in every class",
            lambda game: k_anonymous_release(game.data, game.settings.k, _MIN_DISTINCT_VALUES),
        ),
        CURATOR: DefenceRelease(
            "counts by sensitive value of the people who share the target's quasi-identifiers", private_count_oracle
        ),
    },
    own=lambda game: checked_release(game.ask_user(game.data.numbered_table), game.data),
    play=_play,
    settings={"k": whole(2), "targets": whole(1)},
)
