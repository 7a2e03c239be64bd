"""The names under which answers are found again: equal for equal questions, different for all others."""

import subprocess
import sys
from dataclasses import replace
from datetime import date, datetime
from fractions import Fraction

import pytest

from discreet.kernel.expr import Call, Column, Constant, Type
from discreet.kernel.fingerprint import digest, fingerprints_of
from discreet.kernel.grid import Grid
from discreet.kernel.question import ContributionBounds, PublicGroups, Question, SelectedGroups
from discreet.kernel.relation import Derive, Scan, SemiJoinKind, SemiJoinOnUnit, UnitKey, Where
from discreet.kernel.totals import Count, CountUnits, HistogramTree, SelectionWeight, Sum

USER, PLACE, X = Column("user", Type.INTEGER), Column("place", Type.TEXT), Column("x", Type.REAL)
VISITS = Scan("visits", (USER, PLACE, X), UnitKey((USER,)), max_rows=1000)
BY = (("place", PLACE),)
HIGH = Call("less", (Constant(1.0, Type.REAL), X))
SUM = Sum(X, Grid(-2, 2, 1))
BASE = Question(VISITS, BY, PublicGroups((("a", "b"),)), ContributionBounds(2, 3), (CountUnits(), Count(), SUM))
OTHERS = {
    "relation": replace(BASE, relation=Where(VISITS, HIGH)),
    "table": replace(BASE, relation=replace(VISITS, table="visits2")),
    "rows_max": replace(BASE, relation=replace(VISITS, max_rows=1001)),
    "condition": replace(BASE, relation=Where(VISITS, Call("less", (Constant(2.0, Type.REAL), X)))),
    "columns": replace(BASE, relation=Derive(VISITS, (("place", PLACE), ("x", X)))),
    "others": replace(BASE, relation=SemiJoinOnUnit(VISITS, VISITS, SemiJoinKind.SEMI)),
    "no others": replace(BASE, relation=SemiJoinOnUnit(VISITS, VISITS, SemiJoinKind.ANTI)),
    "keys": replace(BASE, groups=PublicGroups((("a", "c"),))),
    "order of keys": replace(BASE, groups=PublicGroups((("b", "a"),))),
    "discovered": replace(BASE, groups=SelectedGroups(3), totals=(SelectionWeight(), *BASE.totals)),
    "discovered among more": replace(BASE, groups=SelectedGroups(4), totals=(SelectionWeight(), *BASE.totals)),
    "groups": replace(BASE, bounds=ContributionBounds(1, 3)),
    "rows": replace(BASE, bounds=ContributionBounds(2, 2)),
    "no groups": Question(VISITS, (), PublicGroups(()), ContributionBounds(2, 3), BASE.totals),
}
TOTALS = (
    Count(),
    Count(X),
    CountUnits(),
    CountUnits(X),
    Sum(X, Grid(-2, 2, 1)),
    Sum(X, Grid(-2, 3, 1)),
    Sum(X, Grid(-2, 2, Fraction(1, 2))),
    Sum(X, Grid(-2, 2, 1, offset=1)),
    Sum(X, Grid(-2, 2, 1), power=2),
    Sum(X, Grid(-2, 2, 1), power=2, shift=1),
    Sum(X, Grid(-2, 2, 1), max_term=2),
    Sum(X, Grid(-2, 2, 1), max_term=3),
)


def test_fingerprints_differ_wherever_questions_do():
    seen = set(fingerprints_of(BASE, "1"))
    assert len(seen) == 3
    for name, other in OTHERS.items():
        topics = set(fingerprints_of(other, "1"))
        assert not topics & seen, name
        seen |= topics
    assert not set(fingerprints_of(BASE, "2")) & seen
    every = replace(BASE, totals=TOTALS)
    assert len(set(fingerprints_of(every, "1"))) == len(TOTALS)


def test_a_total_has_the_same_fingerprint_whatever_is_asked_with_it():
    units, count, total = fingerprints_of(BASE, "1")
    assert fingerprints_of(replace(BASE, totals=(SUM, Count())), "1") == (total, count)
    assert fingerprints_of(replace(BASE, totals=(CountUnits(),)), "1") == (units,)


def test_the_fingerprint_of_a_histogram_tree_depends_on_the_other_totals():
    """Which of its nodes are seen depends on what else is made of the question."""
    tree = HistogramTree(X, Grid(0, 9, 1), 10, 1)
    one, other = (replace(BASE, totals=(*totals, tree)) for totals in ((Count(),), (Count(), Count(X))))
    assert fingerprints_of(one, "1")[0] == fingerprints_of(other, "1")[0]
    assert fingerprints_of(one, "1")[-1] != fingerprints_of(other, "1")[-1]


def test_a_selection_weight_differs_from_a_count_of_units():
    found = replace(BASE, groups=SelectedGroups(3), totals=(SelectionWeight(), CountUnits(), CountUnits(X)))
    first, second, _ = fingerprints_of(found, "1")
    assert first != second


@pytest.mark.parametrize("value", [1, True, "1", 1.0, Fraction(1), None, "None", date(2020, 1, 1), Type.INTEGER])
def test_values_of_different_types_differ(value):
    others = [1, True, "1", 1.0, Fraction(1), None, "None", date(2020, 1, 1), datetime(2020, 1, 1), Type.INTEGER]
    same = [other for other in others if digest(other) == digest(value)]
    assert [(type(each), each) for each in same] == [(type(value), value)]


def test_nesting_matters_and_only_parts_of_a_question_have_fingerprints():
    shapes = [(1, 2, 3), ((1, 2), 3), (1, (2, 3)), ((1,), 2, 3), (1, 2), (), ((),)]
    assert len(set(map(digest, shapes))) == len(shapes)
    for wrong in ([1], {1: 2}, object(), b"1"):
        with pytest.raises(TypeError, match="cannot contain"):
            digest(wrong)


def test_the_version_of_the_data_is_a_text_of_bounded_length():
    assert fingerprints_of(BASE, "v" * 1000) != fingerprints_of(BASE, "v" * 999)
    for wrong, error in (("", ValueError), ("v" * 1001, ValueError), (1, TypeError)):
        with pytest.raises(error, match=r"^version must"):
            fingerprints_of(BASE, wrong)


def test_answers_that_are_stored_stay_found():
    """A change of these means that every stored answer is charged again."""
    assert digest((1, "a", None)) == "dd152614c5682dbf33996bdb0c6fe37000500fa6ac83dc63ca9eb5cd75d3f8fa"
    assert fingerprints_of(Question(VISITS, (), PublicGroups(()), ContributionBounds(1, 1), (Count(),)), "1") == (
        "05afe969d32df05a1d39936ec27c5e63f95746d43511870218ed60a882cd995f",
    )


def test_a_deep_expression_has_a_fingerprint():
    deep, relation = X, VISITS
    while deep.depth < 200:
        deep = Call("negate", (deep,))
    with pytest.raises(ValueError, match="nested"):
        Call("negate", (deep,))
    for _ in range(60):
        relation = Where(relation, HIGH)
    assert fingerprints_of(replace(BASE, relation=relation, totals=(Count(deep),)), "1")


@pytest.mark.long
def test_the_same_question_has_the_same_fingerprint_in_every_process():
    code = "from test_fingerprint import BASE, fingerprints_of; print(*fingerprints_of(BASE, '1'))"
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=__file__.rpartition("/")[0], capture_output=True, text=True, check=True
    )
    assert tuple(run.stdout.split()) == fingerprints_of(BASE, "1")
