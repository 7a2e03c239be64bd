"""The linkage attack: re-identify people in a table without names by what is known about them."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from discreet import anonymity
from discreet.attacks.defences import Defence, DefenceChoice, parse_defence
from discreet.attacks.registry import Attack
from discreet.attacks.result import AttackResult, exposure_by_rarity
from discreet.attacks.tables.attribute_inference import (
    class_counts,
    infer_from_answers,
    infer_from_table,
    rarity_of_rows,
    sample_people,
)
from discreet.attacks.tables.linkage_data import REGISTER_FILES, Ratings, Register, read_register, simulate_register
from discreet.attacks.tables.patients import ROW
from discreet.attacks.tables.rating_linkage import link_ratings
from discreet.attacks.tables.table_releases import k_anonymous_release, release_under, unmodified_release
from discreet.attacks.validation import random_generator
from discreet.kernel.numbers import Number, as_integer

_PATIENT_COUNT = 4000


def linkage(  # noqa: PLR0913 - all but the first by name only
    data: Register | Ratings | None = None,
    *,
    defence: DefenceChoice = "nothing",
    epsilon: Number | None = None,
    random_state: int | None = None,
    k: int = 5,
    targets: int = 2000,
) -> AttackResult:
    """Link rows without names to known people, and so learn their diagnosis or all of their ratings.

    `data` is a `Register` (patients and a public list of people; simulated by default) or `Ratings` (the attacker
    knows a few). The release is the table without names ("nothing"), a k-anonymous table or ratings with a tenth
    dropped and a tenth changed ("easy"), or the curator's counts of people who share a target's quasi-identifiers
    ("curator", for up to `targets` people). A function as defence gets the table with a column `row`, or the `Ratings`,
    and returns it modified or with rows left out, or returns a function that answers arrays of counts.

    >>> result = linkage(random_state=0)
    >>> result.details["correctly named"], result.details["patients"]
    (3599, 4000)
    >>> linkage(defence="easy", random_state=0).details["correctly named"]
    0
    """
    parsed_defence = parse_defence(defence, epsilon)
    rng = random_generator(random_state)
    records = simulate_register(_PATIENT_COUNT, random_state) if data is None else data
    max_targets = as_integer(targets, "targets", 1)
    if isinstance(records, Ratings):
        return link_ratings(records, parsed_defence, rng, max_targets)
    if not isinstance(records, Register):
        raise TypeError(
            f"data must be Register(patients, people, who) or Ratings(user, movie, ...), not {type(records).__name__}"
        )
    return _link_register(
        records, parsed_defence, rng, partial(k_anonymous_release, k=as_integer(k, "k", 2)), max_targets
    )


def _link_register(
    data: Register, defence: Defence, rng: np.random.Generator, easy_fix: Any, max_targets: int
) -> AttackResult:
    patients = data.patients
    release = release_under(defence, patients, unmodified_release, easy_fix)
    details: dict[str, Any] = {"patients": patients.table.num_rows, "people in the register": data.people.num_rows}
    if isinstance(release, pa.Table):
        inference = infer_from_table(class_counts(release, patients), patients.sensitive_values)
        details |= _naming_details(release, data)
    else:
        people = sample_people(patients.table.num_rows, max_targets, rng)
        inference = infer_from_answers(
            class_counts(unmodified_release(patients), patients), patients.sensitive_values, people, release
        )
        details |= {"correctly named": 0, "patients targeted": len(people)}
    return AttackResult(
        attack="linkage",
        against=defence,
        metric="of patients' diagnoses inferred",
        # A non-member is the same patient, removed: neighbouring databases in the sense of the curator's guarantee.
        evidence=inference.evidence,
        details=details,
        exposure=exposure_by_rarity(
            rarity_of_rows(patients.table, patients.quasi)[inference.people],
            inference.right_as_member,
            labels=[f"row {person + 1}" for person in inference.people],
            rarity_label="rare values",
        ),
    )


def link_rows(table: pa.Table, people: pa.Table, quasi: list[str]) -> anonymity.LinkageRisk:
    """Return how many people of a list match each row of a table, and which person if there is only one.

    >>> table, people = pa.table({"age": ["30-39", "40-49"]}), pa.table({"age": [31, 33, 48]})
    >>> link_rows(table, people, ["age"]).unique_links.tolist()
    [[1, 2]]
    """
    return anonymity.measure(table.select(quasi), quasi, population=people).journalist


def _naming_details(released: pa.Table, data: Register) -> Mapping[str, Any]:
    linked = link_rows(released, data.people, list(data.patients.quasi))
    if linked.unique_links is None:
        return {}
    row, person = linked.unique_links.T
    is_correct = data.who[np.asarray(released[ROW])[row]] == person
    return {
        "correctly named": int(is_correct.sum()),
        "wrongly named": int((~is_correct).sum()),
        "expected share correct with random links": linked.mean_risk,
    }


def load(folder: Path) -> Register:
    """Read 30,000 synthetic patients and the list of the same people."""
    return read_register(folder)


ATTACK = Attack(
    run=linkage,
    docs_page="tables",
    summary="Links patients without names to a public list by the columns both share, and infers their diagnoses.",
    without_defence="the table of patients without names",
    with_easy_fix="a 5-anonymous table",
    with_curator="counts by diagnosis of the people who share the target's quasi-identifiers",
    built_in_data=f"{_PATIENT_COUNT:,} simulated patients with zip code, birth date and sex, and a voter roll",
    data_files=REGISTER_FILES,
    load=load,
)
