"""Linkage: people without names, found again by what is known of them."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from discreet import anonymity
from discreet.attacks.checking import generator
from discreet.attacks.defences import Defence, Shield, shield
from discreet.attacks.listing import Attack
from discreet.attacks.rarity import exposure
from discreet.attacks.result import AttackResult
from discreet.attacks.tables.patients import ROW
from discreet.attacks.tables.rating_linkage import link_ratings
from discreet.attacks.tables.ratings import Ratings
from discreet.attacks.tables.registers import FILES, Register, governor, read_register
from discreet.attacks.tables.releasing import as_it_is, k_anonymous, released
from discreet.attacks.tables.telling import rareness, some_people, told_by_answers, told_by_table, views_of
from discreet.kernel.exact import Number, whole

_BUILT_IN = 4000


def linkage(  # noqa: PLR0913 - all but the first by name only
    data: Register | Ratings | None = None,
    *,
    defence: Defence = "nothing",
    epsilon: Number | None = None,
    random_state: int | None = None,
    k: int = 5,
    targets: int = 2000,
) -> AttackResult:
    """Link rows without names to people, by what is known of them, and so tell their diagnosis or all their ratings.

    `data` is a `Register` (patients beside a list of people; made up unless given) or `Ratings` (of which a few are
    known). Released are the table without names ("nothing"), the same in classes of k people, or with a tenth of the
    ratings dropped and a tenth changed ("easy"), the curator's counts of those who are just like a target ("curator",
    for so many `targets`), or what a function of yours makes of the table with a column `row`, or of the `Ratings`: the
    same, changed or with some left out, or a function that answers arrays of counts.

    >>> result = linkage(random_state=0)
    >>> result.details["named rightly"], result.details["patients"]
    (3599, 4000)
    >>> linkage(defence="easy", random_state=0).details["named rightly"]
    0
    """
    protected = shield(defence, epsilon)
    rng = generator(random_state)
    given = governor(_BUILT_IN, random_state) if data is None else data
    most = whole(targets, "targets", 1)
    if isinstance(given, Ratings):
        return link_ratings(given, protected, rng, most)
    if not isinstance(given, Register):
        raise TypeError(
            f"data must be a Register(patients, people, who) or Ratings(user, movie, ...), not {type(given).__name__}"
        )
    return _link_register(given, protected, rng, partial(k_anonymous, k=whole(k, "k", 2)), most)


def _link_register(
    data: Register, protected: Shield, rng: np.random.Generator, coarser: Any, most: int
) -> AttackResult:
    patients = data.patients
    seen = released(protected, patients, as_it_is, coarser)
    details: dict[str, Any] = {"patients": patients.table.num_rows, "people in the register": data.people.num_rows}
    if isinstance(seen, pa.Table):
        told = told_by_table(views_of(seen, patients), patients.secret)
        details |= _named(seen, data)
    else:
        people = some_people(patients.table.num_rows, most, rng)
        told = told_by_answers(views_of(as_it_is(patients), patients), patients.secret, people, seen)
        details |= {"named rightly": 0, "patients asked about": len(people)}
    return AttackResult(
        attack="linkage",
        shield=protected,
        metric="of the patients had their diagnosis told",
        # A stranger is the same patient, taken out: the neighbours of the curator's promise.
        evidence=told.evidence,
        details=details,
        exposure=exposure(
            rareness(patients.table, patients.quasi)[told.people],
            told.inside,
            labels=[f"row {person + 1}" for person in told.people],
            by="rare values",
        ),
    )


def link(table: pa.Table, people: pa.Table, quasi: list[str]) -> anonymity.Linkage:
    """Return how many people of a list each row of a table could be, and who it is where there is only one.

    >>> table, people = pa.table({"age": ["30-39", "40-49"]}), pa.table({"age": [31, 33, 48]})
    >>> link(table, people, ["age"]).found.tolist()
    [[1, 2]]
    """
    return anonymity.measure(table.select(quasi), quasi, population=people).journalist


def _named(seen: pa.Table, data: Register) -> Mapping[str, Any]:
    linked = link(seen, data.people, list(data.patients.quasi))
    if linked.found is None:
        return {}
    row, person = linked.found.T
    right = data.who[np.asarray(seen[ROW])[row]] == person
    return {
        "named rightly": int(right.sum()),
        "named wrongly": int((~right).sum()),
        "right if every row is linked by chance": linked.mean,
    }


def load(folder: Path) -> Register:
    """Read 30,000 fake patients and the list of the same people."""
    return read_register(folder)


ATTACK = Attack(
    run=linkage,
    topic="tables",
    says="Links patients without names to a list of people by what both have, and tells their diagnosis.",
    nothing="the patients' table without names",
    easy="classes of five people who look alike",
    curator="counts by diagnosis of all who are just like the target",
    built_in=f"{_BUILT_IN:,} made-up patients with zip code, birth date and sex, and a voter roll",
    files=FILES,
    load=load,
)
