"""What a release returns and stores: the noisy totals of each kind, under keys of each type, and their fingerprints."""

from datetime import date, datetime
from types import SimpleNamespace

import numpy as np
import pytest

from discreet.kernel.expr import Column, Type
from discreet.kernel.fingerprint import fingerprints_of
from discreet.kernel.grid import Grid
from discreet.kernel.loss import Budget, Loss
from discreet.kernel.mechanism import Laplace
from discreet.kernel.question import ContributionBounds, PublicGroups, Question, SelectedGroups
from discreet.kernel.relation import EachRow, PublicTable, Scan, UnitKey
from discreet.kernel.release import Catalog, NoisyTotals, ReleaseRequest, release_totals, write_totals
from discreet.kernel.totals import Count, HistogramTree, SelectionWeight
from discreet.ledger_sqlite import memory_ledger
from discreet.pricing.stored_totals import parse_totals, read_question_totals
from tests.reference.engine import ReferenceEngine

USER, X, Y = (Column(name, Type.INTEGER) for name in ("user", "x", "y"))
VISITS = Scan("visits", (USER, X, Y), EachRow(), max_rows=1000)
CATALOG = Catalog({"visits": VISITS}, {"towns": {"name": Type.TEXT}})
ROWS = [{"user": user, "x": user, "y": 3 - user} for user in (0, 1, 3)]


def question(*totals):
    return Question(VISITS, (), PublicGroups(()), ContributionBounds(1, 1), totals)


def released(*requests, ledger=None, **more):
    """Release with a ledger of a large budget."""
    return release_totals(
        requests,
        cost=sum((each.loss() for each in requests), Loss(0)),
        catalog=CATALOG,
        engine=ReferenceEngine({"visits": ROWS}),
        ledger=ledger or memory_ledger(name="demo", budget=Budget(100)),
        question="q",
        **more,
    )


def test_each_tree_is_walked_with_its_own_cells_and_has_no_other_values(monkeypatch):
    monkeypatch.setattr(Laplace, "perturb", lambda self, values: values + int(self.scale))
    trees = HistogramTree(X, Grid(0, 3, 1), 4, 1), HistogramTree(Y, Grid(0, 3, 1), 2, 2)
    seen = []

    def all_children(query, groups):
        seen.append(query(np.zeros((groups, 1), np.int64)).tolist())

    def second_half(query, groups):
        query(np.zeros((groups, 1), np.int64))
        seen.append(query(np.ones((groups, 1), np.int64)).tolist())

    asked = ReleaseRequest(question(trees[0], Count(), trees[1]), tuple(map(Laplace, (10, 20, 30))),
                           walks=(all_children, second_half))  # fmt: skip
    (part,) = released(asked).parts
    assert seen == [[[[11, 11, 10, 11]]], [[[31, 31]]]]  # x is 0, 1 and 3, and y is 3, 2 and 0
    assert [[level.counts.tolist() for level in levels] for levels in part.trees] == [
        [[[[11, 11, 10, 11]]]],
        [[[[31, 32]]], [[[31, 31]]]],
    ]
    assert part.values.tolist() == [[0, 23, 0]]  # a tree has no noise outside of its nodes


def test_a_release_has_fingerprints_if_the_state_of_the_data_has_a_name():
    asked = ReleaseRequest(question(Count(), Count(X)), (Laplace(1), None))
    ledger = memory_ledger(name="demo", budget=Budget(100))
    released(asked, asked, ledger=ledger)
    released(asked, asked, ledger=ledger, version="1")
    name, _ = fingerprints_of(asked.question, "1")
    assert [event.fingerprints for event in ledger.events()] == [(), ((name, ""), (name, ""))]


KEYS = {
    Type.DATE: date(2021, 2, 3),
    Type.TIMESTAMP: datetime(2021, 2, 3, 4, 5, 6, 7),
    Type.INTEGER: -(1 << 63),
    Type.REAL: 0.1,
    Type.BOOLEAN: True,
    Type.TEXT: "é\n'",
}


@pytest.mark.parametrize("kind", KEYS)
def test_a_key_of_each_type_is_read_as_it_was_stored(kind):
    column = Column("c", kind)
    scan = Scan("t", (USER, column), UnitKey((USER,)), max_rows=9)
    asked = Question(scan, (("c", column),), SelectedGroups(1), ContributionBounds(1, 1), (SelectionWeight(),))
    noisy = NoisyTotals([(KEYS[kind],), (None,)], np.array([[5], [-6]]))
    (stored,) = parse_totals(write_totals((noisy,)))
    read = read_question_totals(stored, asked)
    assert (read.keys, read.values.tolist()) == (noisy.keys, [[5], [-6]])
    assert type(read.keys[0][0]) is type(KEYS[kind])


def test_only_a_public_table_is_checked_as_one():
    """Something else with the columns of a declared table could read from anywhere."""
    towns = PublicTable("towns", (("town", Column("name", Type.TEXT)),))
    CATALOG.check(SimpleNamespace(shape=SimpleNamespace(tables=(VISITS, towns))))
    other = SimpleNamespace(table="towns", columns=towns.columns)
    with pytest.raises(ValueError, match="declaration"):
        CATALOG.check(SimpleNamespace(shape=SimpleNamespace(tables=(VISITS, other))))
