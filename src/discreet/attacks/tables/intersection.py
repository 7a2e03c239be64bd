"""The intersection attack: two k-anonymous tables of overlapping people, combined."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from discreet.attacks.defences import CURATOR, DefenceChoice, parse_defence
from discreet.attacks.registry import Attack
from discreet.attacks.result import AttackResult, exposure_by_rarity
from discreet.attacks.tables.attribute_inference import (
    AttributeInference,
    ClassCounts,
    class_counts,
    epsilon_implied_by_absent_values,
    infer_most_likely,
    posterior_from_answers,
    posterior_from_counts,
    rarity_of_rows,
    sample_people,
)
from discreet.attacks.tables.overlapping_tables import FILES, TwoTables, read_two_releases, simulate_hospitals
from discreet.attacks.tables.patients import SensitiveValues, require_type
from discreet.attacks.tables.table_releases import (
    CountOracle,
    answers_and_decoys,
    estimate_noise_epsilon,
    k_anonymous_release,
    release_under,
    unmodified_release,
)
from discreet.attacks.validation import random_generator
from discreet.kernel.numbers import Number, as_integer

_HOSPITAL_SIZE = 3000
_MIN_DISTINCT_VALUES = 3

PosteriorPair = tuple[np.ndarray, np.ndarray]


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

    >>> from discreet.attacks.tables.overlapping_tables import lecture_tables
    >>> result = intersection(lecture_tables(), k=4)
    >>> result.details["values left by the first table, the second, both"]
    [3.0, 4.0, 1.0]
    """
    rng = random_generator(random_state)
    two_tables = (
        simulate_hospitals(_HOSPITAL_SIZE, rng)
        if data is None
        else require_type(data, TwoTables, "TwoTables(first, second, both)")
    )
    parsed_defence, class_size = parse_defence(defence, epsilon), as_integer(k, "k", 2)
    without_defence, easy_fix = (
        partial(k_anonymous_release, k=class_size),
        partial(k_anonymous_release, k=2 * class_size, l=_MIN_DISTINCT_VALUES),
    )
    # Removing a person from both tables changes the answers of both curators: the two halves compose to epsilon.
    table_defence = (
        replace(parsed_defence, epsilon=parsed_defence.curator_epsilon / 2)
        if parsed_defence.kind == CURATOR
        else parsed_defence
    )
    releases = [release_under(table_defence, table, without_defence, easy_fix) for table in two_tables.tables]
    if isinstance(releases[0], pa.Table) and isinstance(releases[1], pa.Table):
        table_counts = [
            two_tables.class_counts(index, class_counts(table, two_tables.tables[index]))
            for index, table in enumerate(releases)
        ]
        people = np.arange(len(two_tables.both))
        inference = infer_most_likely(
            people, _posteriors_from_tables(table_counts, two_tables.sensitive_values), two_tables.sensitive_values
        )
        details = _table_details(table_counts, two_tables.sensitive_values)
    else:
        people = sample_people(len(two_tables.both), as_integer(targets, "targets", 1), rng)
        _check_no_table(releases)
        inference = infer_most_likely(
            people, _posteriors_from_answers(two_tables, releases, people), two_tables.sensitive_values
        )
        details = {"values inferred with certainty": 0, "people targeted": len(people)}
    return AttackResult(
        attack="intersection",
        against=parsed_defence,
        metric="of sensitive values inferred for people in both tables",
        evidence=inference.evidence,
        details={"people in both": len(two_tables.both), **details, "highest posterior": inference.highest_posterior},
        exposure=_exposure(two_tables, inference),
    )


def combine_posteriors(first: np.ndarray, second: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """Return the posterior of each value given both tables; the average if the two contradict each other.

    >>> combine_posteriors(np.array([[0.5, 0.5, 0.0]]), np.array([[0.5, 0.0, 0.5]]), np.array([0.4, 0.3, 0.3])).tolist()
    [[1.0, 0.0, 0.0]]
    """
    both = first * second / prior
    is_contradiction = both.sum(axis=1) == 0  # no value is possible in both: the two rows are not the same person
    both[is_contradiction] = (first + second)[is_contradiction]
    return np.asarray(both / both.sum(axis=1, keepdims=True))


def _posteriors_from_tables(table_counts: list[ClassCounts], sensitive: SensitiveValues) -> PosteriorPair:
    both_counts = [(view.with_target, view.without_target) for view in table_counts]
    first, second = (
        [posterior_from_counts(counts, sensitive.prior, sensitive.possible) for counts in side] for side in both_counts
    )
    return combine_posteriors(first[0], second[0], sensitive.prior), combine_posteriors(
        first[1], second[1], sensitive.prior
    )


def _posteriors_from_answers(data: TwoTables, oracles: list[Any], people: np.ndarray) -> PosteriorPair:
    posteriors = []
    for index, oracle in enumerate(oracles):
        table = data.tables[index]
        counts = data.class_counts(index, class_counts(unmodified_release(table), table))
        posteriors.append(_posterior_from_oracle(counts, oracle, data.sensitive_values, people))
    combined = combine_posteriors(posteriors[0], posteriors[1], data.sensitive_values.prior)
    return combined[: len(people)], combined[len(people) :]


def _check_no_table(releases: list[Any]) -> None:
    if any(isinstance(each, pa.Table) for each in releases):
        raise ValueError(
            "the defence must return a table for both tables, or a function for both, not a table for one and a "
            "function for the other"
        )


def _posterior_from_oracle(
    counts: ClassCounts, oracle: CountOracle, sensitive: SensitiveValues, people: np.ndarray
) -> np.ndarray:
    answers, decoys = answers_and_decoys(
        oracle, np.concatenate([counts.with_target[people], counts.without_target[people]])
    )
    others = np.tile(counts.without_target[people].sum(axis=1), 2)
    possible = np.concatenate([sensitive.possible[people]] * 2)
    return posterior_from_answers(answers, others, sensitive.prior, possible, estimate_noise_epsilon(decoys))


def _table_details(table_counts: list[ClassCounts], sensitive: SensitiveValues) -> dict[str, Any]:
    possible_counts = [(view.with_target > 0).sum(axis=1) for view in table_counts]
    common = ClassCounts(
        *(
            np.minimum(*pair)
            for pair in zip(*((each.with_target, each.without_target) for each in table_counts), strict=True)
        )
    )
    both = (common.with_target > 0).sum(axis=1)
    return {
        "values left by the first table, the second, both": [float(each.mean()) for each in (*possible_counts, both)],
        "values inferred with certainty from one table": int(
            ((possible_counts[0] == 1) | (possible_counts[1] == 1)).sum()
        ),
        "values inferred with certainty": int((both == 1).sum()),
        "epsilon implied by absent values, at least": epsilon_implied_by_absent_values(common, sensitive.truth),
    }


def _exposure(data: TwoTables, inference: AttributeInference) -> Any:
    rare = rarity_of_rows(data.first.table, data.first.quasi)[data.both[inference.people, 0]]
    return exposure_by_rarity(
        rare,
        inference.right_as_member,
        labels=[f"person {person + 1}" for person in inference.people],
        rarity_label="rare values",
    )


def load(folder: Path) -> TwoTables:
    """Read the Adult census data as two releases; a third of the people are in both."""
    return read_two_releases(folder)


ATTACK = Attack(
    run=intersection,
    docs_page="tables",
    summary="Combines two k-anonymous tables of overlapping people to infer sensitive values.",
    without_defence="two 5-anonymous tables",
    with_easy_fix="two 10-anonymous, 3-diverse tables",
    with_curator="counts by sensitive value from two curators, with half of epsilon each",
    built_in_data=f"two simulated hospitals with {_HOSPITAL_SIZE:,} patients each, half of whom are in both",
    data_files=FILES,
    load=load,
)
