"""Homogeneity and background knowledge: what a k-anonymous table tells of somebody whose row nobody can find."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from discreet import anonymity
from discreet.attacks.checking import generator
from discreet.attacks.defences import Defence, shield
from discreet.attacks.listing import Attack
from discreet.attacks.rarity import exposure
from discreet.attacks.result import AttackResult
from discreet.attacks.tables.folders import real_table
from discreet.attacks.tables.made_up import made_up_patients
from discreet.attacks.tables.patients import Patients, checked
from discreet.attacks.tables.releasing import as_it_is, k_anonymous, released
from discreet.attacks.tables.telling import (
    Told,
    Views,
    implied_by_possible,
    rareness,
    some_people,
    told_by_answers,
    told_by_table,
    views_of,
)
from discreet.kernel.exact import Number, whole

_L = 3
_ADULT = ["age", "education", "marital_status", "race", "sex", "native_country"]


def homogeneity(  # noqa: PLR0913 - all but the first by name only
    data: Patients | None = None,
    *,
    defence: Defence = "nothing",
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

    >>> from discreet.attacks.tables.lecture import first_table, second_table
    >>> print(homogeneity(first_table()).details["rows whose value is certain"])
    9-12
    >>> homogeneity(second_table()).details["values that are certain"]
    0
    """
    rng = generator(random_state)
    given = (
        made_up_patients(2000, rng) if data is None else checked(data, Patients, "Patients(table, quasi, sensitive)")
    )
    protected, size = shield(defence, epsilon), whole(k, "k", 2)
    nothing, easy = partial(k_anonymous, k=size), partial(k_anonymous, k=size, l=_L)
    seen = released(protected, given, nothing, easy)
    if isinstance(seen, pa.Table):
        views = views_of(seen, given)
        told = told_by_table(views, given.secret)
        details = _of_table(seen, views, given)
    else:
        # The narrowest question there is: those who are equal to the target in all that is known.
        views = views_of(as_it_is(given), given)
        people = some_people(given.table.num_rows, whole(targets, "targets", 1), rng)
        told = told_by_answers(views, given.secret, people, seen)
        details = {"values that are certain": 0}
    return AttackResult(
        attack="homogeneity",
        shield=protected,
        metric="of the people had their value guessed",
        # A stranger is the same person, taken out: the neighbours of the curator's promise.
        evidence=told.evidence,
        details={**details, "surest guess": told.surest},
        exposure=_exposure(given, told),
    )


def certain(views: Views, possible: np.ndarray) -> np.ndarray:
    """Return who can have one value only, by the class and by what is known.

    >>> counts = np.array([[4, 0], [3, 1]])
    >>> certain(Views(counts, counts), np.array([[True, True], [True, False]])).tolist()
    [True, True]
    """
    return np.asarray(((views.inside > 0) & possible).sum(axis=1) == 1)


def _of_table(seen: pa.Table, views: Views, data: Patients) -> dict[str, Any]:
    everything = np.ones_like(data.secret.possible)
    alone, knowing = certain(views, everything), certain(views, data.secret.possible)
    sizes = views.inside.sum(axis=1)
    return {
        "k": anonymity.measure(seen, data.quasi).k,
        "values that are certain": int(alone.sum()),
        "rows whose value is certain": runs(np.flatnonzero(alone) + 1) or "none",
        "values that are certain with background knowledge": int(knowing.sum()),
        "epsilon implied by what is left possible, at least": implied_by_possible(views, data.secret.truth),
        "values that a class leaves possible, mean": float(((views.inside > 0).sum(axis=1))[sizes > 0].mean()),
    }


def runs(numbers: Sequence[int] | np.ndarray, most: int = 3) -> str:
    """Write row numbers as runs, and only the first few of them.

    >>> runs([9, 10, 11, 12]), runs([1, 3, 5, 7, 8])
    ('9-12', '1, 3, 5 and 1 more')
    """
    listed = np.asarray(numbers, int)
    if not listed.size:
        return ""
    parts = np.split(listed, np.flatnonzero(np.diff(listed) != 1) + 1)
    told = [f"{part[0]}-{part[-1]}" if len(part) > 1 else str(part[0]) for part in parts]
    return ", ".join(told[:most]) + (f" and {len(told) - most} more" if len(told) > most else "")


def _exposure(data: Patients, told: Told) -> Any:
    labels = [f"row {person + 1}" for person in told.people]
    return exposure(rareness(data.table, data.quasi)[told.people], told.inside, labels=labels, by="rare values")


def load(folder: Path) -> Patients:
    """Read the census: six columns that others know, and the occupation."""
    table = real_table(folder, "adult.parquet", [*_ADULT, "occupation"])
    return Patients(table.filter(pc.is_valid(table["occupation"])), _ADULT, "occupation")


ATTACK = Attack(
    run=homogeneity,
    topic="tables",
    says="Guesses people's secrets by the k-anonymous class that they are in, and by background knowledge.",
    nothing="a 4-anonymous table",
    easy="a 4-anonymous table with three different secrets at least in every class",
    curator="counts by secret of all who are just like the target",
    built_in="2,000 made-up patients",
    files=("adult.parquet",),
    load=load,
)
