"""The canonical form of a question has the same totals, and does not depend on how the question was written."""

import random
from dataclasses import replace
from fractions import Fraction

import pytest
import strategies
from compare import comparable

from discreet.estimate.planned_release import Measure, NoisyCount, PlannedRelease
from discreet.kernel.question import PublicGroups, Question
from discreet.kernel.totals import CountDistinct
from discreet.query.canonical_form import canonical_release
from tests.reference.engine import ReferenceEngine


def part_of(question):
    """Return a release with a measure for every total."""
    totals = range(len(question.totals))
    measures = tuple(Measure(f"m{place}", "", NoisyCount(place)) for place in totals)
    weights = tuple(Fraction(1) for _ in question.totals)
    return PlannedRelease("r0", question, tuple(name for name, _ in question.by), measures, weights, ())


def columns(part, found):
    """Return what every measure shows for each key, with the keys in the order of GROUP BY."""
    question = part.question
    at = {name: place for place, name in enumerate(part.keys)}
    keys = [at[f"g{place}"] for place in range(len(at))]
    wanted = [measure.estimator.total for measure in part.measures]
    again = [wanted.index(place) if place in wanted else None for place in range(len(question.totals))]
    rows = {tuple(key[place] for place in keys): row for key, row in comparable(question, found).items()}
    if not all(isinstance(row, tuple) and len(row) == 2 and isinstance(row[1], list) for row in rows.values()):
        return {key: [row[place] for place in wanted] for key, row in rows.items()}
    return {
        key: ([row[place] for place in wanted], sorted((again[place], *cell) for place, *cell in cells))
        for key, (row, cells) in rows.items()
    }


def asked(seed):
    rng = random.Random(seed)
    tables = strategies.database(rng, 12)
    return tables, strategies.question(rng, tables, rng.choice([0, 0, 0, 1, 2]))


def without_ties(question):
    """Leave out distinct values where units are clipped by groups.

    A value that a unit has in two groups has one hash, so the order of keys decides which of them counts it. It is the
    canonical form that makes this order the same for equal queries.
    """
    kept = tuple(total for total in question.totals if not isinstance(total, CountDistinct))
    return replace(question, totals=kept) if kept and question.needs_l0_clipping else question


@pytest.mark.parametrize("seed", range(0, 200, 10))
def test_the_canonical_form_has_the_same_totals(seed):
    for number in range(seed, seed + 10):
        tables, question = asked(number)
        question = without_ties(question)
        part, made = part_of(question), canonical_release(part_of(question))
        found = [columns(each, ReferenceEngine(tables).totals(each.question)) for each in (part, made)]
        assert found[0] == found[1], number
        assert sorted(made.key_order) == list(range(len(question.by)))


def turned(question):
    """Return a question with its keys in the opposite order."""
    groups = question.groups
    if isinstance(groups, PublicGroups):
        groups = PublicGroups(groups.domains[::-1])
    by = tuple((f"g{place}", expr) for place, (_, expr) in enumerate(question.by[::-1]))
    return Question(question.relation, by, groups, question.bounds, question.totals)


def test_it_does_not_depend_on_the_order_of_keys_and_is_its_own_canonical_form():
    several = 0
    for seed in range(60):
        _, question = asked(seed)
        made, other = canonical_release(part_of(question)), canonical_release(part_of(turned(question)))
        again = canonical_release(replace(made, keys=tuple(f"g{place}" for place in range(len(made.keys)))))
        assert made.question == again.question
        if len({expr for _, expr in question.by}) == len(question.by):
            assert made.question == other.question
            several += len(question.by) > 1
    assert several > 5
