"""Homogeneity and background knowledge: what a k-anonymous table tells of somebody whose row nobody can find."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from discreet import anonymity
from discreet.attacks.defences import DefenceChoice, parse_defence
from discreet.attacks.registry import Attack
from discreet.attacks.result import AttackResult, exposure_by_rarity
from discreet.attacks.tables.attribute_inference import (
    AttributeInference,
    ClassCounts,
    class_counts,
    epsilon_implied_by_absent_values,
    infer_from_answers,
    infer_from_table,
    rarity_of_rows,
    sample_people,
)
from discreet.attacks.tables.patients import Patients, require_type, simulate_patients
from discreet.attacks.tables.table_releases import k_anonymous_release, release_under, unmodified_release
from discreet.attacks.tables.validation import read_data_table
from discreet.attacks.validation import random_generator
from discreet.kernel.numbers import Number, as_integer

_MIN_DISTINCT_VALUES = 3
_ADULT_COLUMNS = ["age", "education", "marital_status", "race", "sex", "native_country"]


def homogeneity(  # noqa: PLR0913 - all but the first by name only
    data: Patients | None = None,
    *,
    defence: DefenceChoice = "nothing",
    epsilon: Number | None = None,
    random_state: int | None = None,
    k: int = 4,
    targets: int = 2000,
) -> AttackResult:
    """Guess people's sensitive values by the class that a k-anonymous table puts them into, and by what is known.

    `data` are `Patients`, made up unless given; a table that is k-anonymous already stays as it is. Released are a
    k-anonymous table ("nothing"), one whose classes have three sensitive values at least ("easy"), the curator's counts
    by sensitive value of all who are just like a target ("curator", for so many `targets`), or what a function of yours
    makes of the table with a column `row`: that table, changed, or a function that answers arrays of counts.

    >>> from discreet.attacks.tables.patients import first_table, second_table
    >>> print(homogeneity(first_table()).details["rows whose value is has_certain_value"])
    9-12
    >>> homogeneity(second_table()).details["values that are has_certain_value"]
    0
    """
    rng = random_generator(random_state)
    patients = (
        simulate_patients(2000, rng)
        if data is None
        else require_type(data, Patients, "Patients(table, quasi, sensitive)")
    )
    parsed_defence, class_size = parse_defence(defence, epsilon), as_integer(k, "k", 2)
    without_defence, easy_fix = (
        partial(k_anonymous_release, k=class_size),
        partial(k_anonymous_release, k=class_size, l=_MIN_DISTINCT_VALUES),
    )
    release = release_under(parsed_defence, patients, without_defence, easy_fix)
    if isinstance(release, pa.Table):
        counts = class_counts(release, patients)
        inference = infer_from_table(counts, patients.sensitive_values)
        details = _table_details(release, counts, patients)
    else:
        # The narrowest question there is: those who are equal to the target in all that is known.
        counts = class_counts(unmodified_release(patients), patients)
        people = sample_people(patients.table.num_rows, as_integer(targets, "targets", 1), rng)
        inference = infer_from_answers(counts, patients.sensitive_values, people, release)
        details = {"values that are certain": 0}
    return AttackResult(
        attack="homogeneity",
        against=parsed_defence,
        metric="of the people had their value guessed",
        # A stranger is the same person, taken out: the neighbours of the curator's promise.
        evidence=inference.evidence,
        details={**details, "surest guess": inference.highest_posterior},
        exposure=_exposure(patients, inference),
    )


def has_certain_value(counts: ClassCounts, possible: np.ndarray) -> np.ndarray:
    """Return who can have one value only, by the class and by what is known.

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
    sizes = counts.with_target.sum(axis=1)
    return {
        "k": anonymity.measure(released, data.quasi).k,
        "values that are certain": int(certain_by_class.sum()),
        "rows whose value is certain": format_runs(np.flatnonzero(certain_by_class) + 1) or "none",
        "values that are certain with background knowledge": int(certain_with_background.sum()),
        "epsilon implied by what is left possible, at least": epsilon_implied_by_absent_values(
            counts, data.sensitive_values.truth
        ),
        "values that a class leaves possible, mean": float(((counts.with_target > 0).sum(axis=1))[sizes > 0].mean()),
    }


def format_runs(numbers: Sequence[int] | np.ndarray, max_runs: int = 3) -> str:
    """Write row numbers as runs, and only the first few of them.

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


def _exposure(data: Patients, inference: AttributeInference) -> Any:
    labels = [f"row {person + 1}" for person in inference.people]
    return exposure_by_rarity(
        rarity_of_rows(data.table, data.quasi)[inference.people],
        inference.right_as_member,
        labels=labels,
        rarity_label="rare values",
    )


def load(folder: Path) -> Patients:
    """Read the census: six columns that others know, and the occupation."""
    table = read_data_table(folder, "adult.parquet", [*_ADULT_COLUMNS, "occupation"])
    return Patients(table.filter(pc.is_valid(table["occupation"])), _ADULT_COLUMNS, "occupation")


ATTACK = Attack(
    run=homogeneity,
    docs_page="tables",
    summary="Guesses people's secrets by the k-anonymous class that they are in, and by background knowledge.",
    without_defence="a 4-anonymous table",
    with_easy_fix="a 4-anonymous table with three different secrets at least in every class",
    with_curator="counts by secret of all who are just like the target",
    built_in_data="2,000 made-up patients",
    data_files=("adult.parquet",),
    load=load,
)
