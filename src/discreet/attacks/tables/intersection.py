"""Intersection: two tables, each of them k-anonymous, read together."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from discreet.attacks.checking import generator
from discreet.attacks.defences import CURATOR, Defence, shield
from discreet.attacks.listing import Attack
from discreet.attacks.rarity import exposure
from discreet.attacks.result import AttackResult
from discreet.attacks.tables.counting import Answers, answered, sharpness
from discreet.attacks.tables.hospitals import FILES, TwoTables, made_up_hospitals, read_two_releases
from discreet.attacks.tables.patients import Secret, checked
from discreet.attacks.tables.releasing import as_it_is, k_anonymous, released
from discreet.attacks.tables.telling import (
    Told,
    Views,
    chances,
    chances_by_answers,
    implied_by_possible,
    rareness,
    some_people,
    told_by,
    views_of,
)
from discreet.kernel.exact import Number, whole

_BUILT_IN = 3000
_L = 3

Pair = tuple[np.ndarray, np.ndarray]


def intersection(  # noqa: PLR0913 - all but the first by name only
    data: TwoTables | None = None,
    *,
    defence: Defence = "nothing",
    epsilon: Number | None = None,
    random_state: int | None = None,
    k: int = 5,
    targets: int = 2000,
) -> AttackResult:
    """Guess the sensitive values of people who are in two tables, by reading both.

    `data` are `TwoTables` of overlapping people, made up unless given. Released are two k-anonymous tables ("nothing"),
    two with classes of 2k people and three sensitive values at least ("easy"), counts by two curators who have half of
    epsilon each ("curator", for so many `targets`), or what a function of yours makes of each table with a column
    `row`: that table, changed, or a function that answers arrays of counts.

    >>> from discreet.attacks.tables.hospitals import lecture_tables
    >>> result = intersection(lecture_tables(), k=4)
    >>> result.details["values left by the first, the second, both"]
    [3.0, 4.0, 1.0]
    """
    rng = generator(random_state)
    given = (
        made_up_hospitals(_BUILT_IN, rng)
        if data is None
        else checked(data, TwoTables, "TwoTables(first, second, both)")
    )
    protected, size = shield(defence, epsilon), whole(k, "k", 2)
    coarse, coarser = partial(k_anonymous, k=size), partial(k_anonymous, k=2 * size, l=_L)
    # Who is taken out of both tables changes the answers of both curators: the two halves add up to epsilon.
    each = replace(protected, epsilon=protected.price / 2) if protected.word == CURATOR else protected
    seen = [released(each, table, coarse, coarser) for table in given.tables]
    if isinstance(seen[0], pa.Table) and isinstance(seen[1], pa.Table):
        views = [given.views(place, views_of(table, given.tables[place])) for place, table in enumerate(seen)]
        people = np.arange(len(given.both))
        told = told_by(people, _by_tables(views, given.secret), given.secret)
        details = _of_tables(views, given.secret)
    else:
        people = some_people(len(given.both), whole(targets, "targets", 1), rng)
        _all_answer(seen)
        told = told_by(people, _by_answers(given, seen, people), given.secret)
        details = {"values that are certain": 0, "people asked about": len(people)}
    return AttackResult(
        attack="intersection",
        shield=protected,
        metric="of the people in both tables had their value guessed",
        evidence=told.evidence,
        details={"people in both": len(given.both), **details, "surest guess": told.surest},
        exposure=_exposure(given, told),
    )


def together(first: np.ndarray, second: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """Return how likely each value is by two tables: what both leave possible, if there is anything.

    >>> together(np.array([[0.5, 0.5, 0.0]]), np.array([[0.5, 0.0, 0.5]]), np.array([0.4, 0.3, 0.3])).tolist()
    [[1.0, 0.0, 0.0]]
    """
    both = first * second / prior
    clash = both.sum(axis=1) == 0  # the two have no value in common: then this is not one person, and either may be
    both[clash] = (first + second)[clash]
    return np.asarray(both / both.sum(axis=1, keepdims=True))


def _by_tables(views: list[Views], secret: Secret) -> Pair:
    sides = [(view.inside, view.outside) for view in views]
    first, second = ([chances(counts, secret.prior, secret.possible) for counts in side] for side in sides)
    return together(first[0], second[0], secret.prior), together(first[1], second[1], secret.prior)


def _by_answers(data: TwoTables, answers: list[Any], people: np.ndarray) -> Pair:
    likely = []
    for place, answer in enumerate(answers):
        table = data.tables[place]
        views = data.views(place, views_of(as_it_is(table), table))
        likely.append(_asked(views, answer, data.secret, people))
    combined = together(likely[0], likely[1], data.secret.prior)
    return combined[: len(people)], combined[len(people) :]


def _all_answer(seen: list[Any]) -> None:
    if any(isinstance(each, pa.Table) for each in seen):
        raise ValueError(
            "the defence must return tables of both, or answer counts for both, not a table of the one and answers of "
            "the other"
        )


def _asked(views: Views, answers: Answers, secret: Secret, people: np.ndarray) -> np.ndarray:
    seen, decoys = answered(answers, np.concatenate([views.inside[people], views.outside[people]]))
    others = np.tile(views.outside[people].sum(axis=1), 2)
    possible = np.concatenate([secret.possible[people]] * 2)
    return chances_by_answers(seen, others, secret.prior, possible, sharpness(decoys))


def _of_tables(views: list[Views], secret: Secret) -> dict[str, Any]:
    left = [(view.inside > 0).sum(axis=1) for view in views]
    common = Views(*(np.minimum(*pair) for pair in zip(*((each.inside, each.outside) for each in views), strict=True)))
    both = (common.inside > 0).sum(axis=1)
    return {
        "values left by the first, the second, both": [float(each.mean()) for each in (*left, both)],
        "values that are certain by one of the tables": int(((left[0] == 1) | (left[1] == 1)).sum()),
        "values that are certain": int((both == 1).sum()),
        "epsilon implied by what is left possible, at least": implied_by_possible(common, secret.truth),
    }


def _exposure(data: TwoTables, told: Told) -> Any:
    rare = rareness(data.first.table, data.first.quasi)[data.both[told.people, 0]]
    return exposure(rare, told.inside, labels=[f"person {person + 1}" for person in told.people], by="rare values")


def load(folder: Path) -> TwoTables:
    """Read the census as two releases, a third of whose people are in both."""
    return read_two_releases(folder)


ATTACK = Attack(
    run=intersection,
    topic="tables",
    says="Reads two k-anonymous tables of overlapping people together.",
    nothing="two 5-anonymous tables",
    easy="two 10-anonymous tables with three different secrets at least in every class",
    curator="counts by secret from two curators, who share epsilon",
    built_in=f"two made-up hospitals of {_BUILT_IN:,} patients, half of whom are in both",
    files=FILES,
    load=load,
)
