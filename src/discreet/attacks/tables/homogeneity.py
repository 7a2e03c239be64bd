"""The homogeneity and background-knowledge attacks on k-anonymous tables."""

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
    """Infer sensitive values from equivalence classes of a k-anonymous table and from background knowledge.

    `data` are `Patients`, simulated by default; a table that is already k-anonymous is not changed. The release is a
    k-anonymous table ("nothing"), one with at least three distinct sensitive values in each class ("easy"), or the
    curator's counts by sensitive value of people who share a target's quasi-identifiers ("curator", for up to `targets`
    people). A function as defence gets the table with a column `row` and returns it modified, or returns a function
    that answers arrays of counts.

    >>> from discreet.attacks.tables.patients import first_lecture_table, second_lecture_table
    >>> print(homogeneity(first_lecture_table()).details["rows inferred with certainty"])
    9-12
    >>> homogeneity(second_lecture_table()).details["values inferred with certainty"]
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
        # The narrowest query: people with the same quasi-identifiers as the target.
        counts = class_counts(unmodified_release(patients), patients)
        people = sample_people(patients.table.num_rows, as_integer(targets, "targets", 1), rng)
        inference = infer_from_answers(counts, patients.sensitive_values, people, release)
        details = {"values inferred with certainty": 0}
    return AttackResult(
        attack="homogeneity",
        against=parsed_defence,
        metric="of people's sensitive values inferred",
        # A non-member is the same person, removed: neighbouring databases in the sense of the curator's guarantee.
        evidence=inference.evidence,
        details={**details, "highest posterior": inference.highest_posterior},
        exposure=_exposure(patients, inference),
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


def _exposure(data: Patients, inference: AttributeInference) -> Any:
    labels = [f"row {person + 1}" for person in inference.people]
    return exposure_by_rarity(
        rarity_of_rows(data.table, data.quasi)[inference.people],
        inference.right_as_member,
        labels=labels,
        rarity_label="rare values",
    )


def load(folder: Path) -> Patients:
    """Read the Adult census data: six quasi-identifiers and the occupation."""
    table = read_data_table(folder, "adult.parquet", [*_ADULT_COLUMNS, "occupation"])
    return Patients(table.filter(pc.is_valid(table["occupation"])), _ADULT_COLUMNS, "occupation")


ATTACK = Attack(
    run=homogeneity,
    docs_page="tables",
    summary="Infers sensitive values from the classes of a k-anonymous table and from background knowledge.",
    without_defence="a 4-anonymous table",
    with_easy_fix="a 4-anonymous, 3-diverse table: at least three distinct sensitive values in every class",
    with_curator="counts by sensitive value of the people who share the target's quasi-identifiers",
    built_in_data="2,000 simulated patients",
    data_files=("adult.parquet",),
    load=load,
)
