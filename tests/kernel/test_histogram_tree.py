"""Trees of cells: what is seen of them has the noise of the whole tree, once for every node."""

import itertools
import math
from functools import lru_cache
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from discreet import privacy
from discreet.estimate.quantile_walk import replay_walk
from discreet.kernel import release
from discreet.kernel.expr import Column, Type
from discreet.kernel.grid import Grid
from discreet.kernel.histogram_tree import CellCounts, walk_noisy_tree
from discreet.kernel.mechanism import Gaussian, Laplace
from discreet.kernel.question import ContributionBounds, PublicGroups, Question
from discreet.kernel.relation import Scan, UnitKey
from discreet.kernel.release import ReleaseRequest
from discreet.kernel.totals import HistogramTree
from tests.reference.engine import ReferenceEngine

USER, X, PLACE = Column("user", Type.INTEGER), Column("x", Type.INTEGER), Column("place", Type.TEXT)
VISITS = Scan(
    "visits", (USER, X, PLACE), UnitKey((USER,)), max_rows=1 << 60
)  # so many that weights have few binary places
ALONE = PublicGroups(())


def column(*values):
    return np.array(values, np.int64)


def tally(*cells):
    groups, places, weights = zip(*cells, strict=True) if cells else ((), (), ())
    return CellCounts(column(*groups), column(*places), column(*weights))


def tree(fan, depth):
    return HistogramTree(X, Grid(0, fan**depth - 1, 1), fan, depth)


def everything(look, groups):
    """Go down the first branch of each level."""
    for _ in range(3):
        look(np.zeros((groups, 2), np.int64))


class NoNoise(Laplace):
    """Laplace noise that adds nothing, to see the weights themselves."""

    def perturb(self, values):
        return values


def test_nodes_have_the_weights_of_the_cells_below_them():
    cells = tally((0, 0, 1), (0, 3, 10), (0, 5, 100), (2, 7, 7), (2, 0, 3))
    seen = []

    def walk(look, groups):
        seen.append(look(np.zeros((groups, 1), np.int64)).tolist())
        seen.append(look(np.ones((groups, 1), np.int64)).tolist())
        seen.append(look(np.full((groups, 1), 2)).tolist())

    walk_noisy_tree(cells, tree(2, 3), NoNoise(1), column(0, 2, 3), walk)
    assert seen[0] == [[[11, 100]], [[3, 7]], [[0, 0]]]
    assert seen[1] == [[[100, 0]], [[0, 7]], [[0, 0]]]
    assert seen[2] == [[[0, 100]], [[0, 0]], [[0, 0]]]


def test_a_node_has_one_noise_however_often_it_is_named():
    def walk(look, groups):
        first = look(np.zeros((groups, 5), np.int64))
        assert (first == first[:, :1]).all()
        second = look(np.tile(column(3, 0, 3, 0, 3), (groups, 1)))
        assert (second[:, 0] == second[:, 2]).all()
        assert (second[:, 1] == second[:, 3]).all()
        assert (second[:, 0] != second[:, 1]).any()
        assert len(np.unique(second[:, 0])) > 100  # and groups do not share it

    walk_noisy_tree(tally(), tree(4, 3), Laplace(10**6), np.arange(40), walk)


def test_a_level_cannot_be_drawn_twice():
    def walk(look, groups):
        for _ in range(3):
            look(np.zeros((groups, 1), np.int64))
        with pytest.raises(ValueError, match="only once"):
            look(np.zeros((groups, 1), np.int64))

    looks = walk_noisy_tree(tally(), tree(4, 3), Laplace(1), np.arange(2), walk)
    assert len(looks) == 3


@pytest.mark.parametrize(
    "nodes",
    [
        np.ones((2, 1), np.int64),
        np.full((2, 1), -1),
        np.zeros((1, 1), np.int64),
        np.zeros(2, np.int64),
        np.zeros((2, 1)),
        column(0, 1)[:, None],
        column(0, -1)[:, None],
    ],
    ids=["beyond", "below", "too few", "flat", "floats", "one beyond", "one below"],
)
def test_nodes_that_do_not_exist_are_refused(nodes):
    with pytest.raises(ValueError, match="nodes"):
        walk_noisy_tree(tally(), tree(4, 3), Laplace(1), np.arange(2), lambda look, _: look(nodes))


@pytest.mark.parametrize(("groups", "walkers"), [(0, 1), (2, 0)])
def test_a_walk_without_nodes_sees_nothing(groups, walkers):
    def walk(look, count):
        assert look(np.zeros((count, walkers), np.int64)).shape == (groups, walkers, 4)

    (level,) = walk_noisy_tree(tally((0, 0, 1)), tree(4, 1), Laplace(1), np.arange(groups), walk)
    assert level.counts.size == 0


def test_changing_the_returned_counts_does_not_change_the_stored_ones():
    def walk(look, groups):
        nodes = np.zeros((groups, 1), np.int64)
        look(nodes)[:] = 7
        nodes[:] = 3

    (look,) = walk_noisy_tree(tally((0, 0, 1000)), tree(4, 1), Laplace(1), np.arange(1), walk)
    assert look.counts[0, 0, 0] > 500
    assert look.nodes[0, 0] == 0


def test_a_walk_can_be_replayed_but_not_changed():
    looks = walk_noisy_tree(tally((0, 1, 9)), tree(4, 3), Laplace(1), np.arange(1), everything)
    again = replay_walk(looks)
    assert (again(np.zeros((1, 2), np.int64)) == looks[0].counts).all()
    with pytest.raises(ValueError, match="other nodes"):
        again(np.ones((1, 2), np.int64))


def test_cell_counts_of_another_type_are_refused():
    with pytest.raises(TypeError, match="int64"):
        CellCounts(np.zeros(1), column(1), column(1))
    with pytest.raises(TypeError, match="same length"):
        CellCounts(column(1, 2), column(1), column(1))


@pytest.mark.parametrize("place", range(3))
@pytest.mark.parametrize(
    "bad", [[1], np.ones(1, np.int32), np.ones(1), np.ones(2, np.int64), np.ones((1, 1), np.int64)]
)
def test_each_column_of_cell_counts_is_a_vector_of_int64(place, bad):
    columns = [column(1)] * 3
    CellCounts(*columns)
    with pytest.raises(TypeError, match="int64"):
        CellCounts(*columns[:place], bad, *columns[place + 1 :])


# The exact law of what is seen, on two neighbouring databases.


def larger_half(look, groups):
    """Go to the child with more noisy rows: where one looks next depends on what was seen."""
    first = look(np.zeros((groups, 1), np.int64))
    look((first[:, :, 1] > first[:, :, 0]).astype(np.int64))


def law(asked, rows, monkeypatch):
    """Return {result: probability} for every result in a box: the kernel is made to show it, at its noise's chance."""
    engine = SimpleNamespace(totals=lru_cache(ReferenceEngine({"visits": rows}).totals))
    found, chance, wanted = {}, 1.0, iter(())

    def perturb(self, values):
        nonlocal chance
        shown = np.array([next(wanted) for _ in values], np.int64)
        chance *= math.prod(privacy.pmf(self, int(noise)) for noise in shown - values)
        return shown

    monkeypatch.setattr(Laplace, "perturb", perturb)
    for result in itertools.product(range(-2, 6), repeat=4):
        wanted, chance = iter(result), 1.0
        (looks,) = release._add_noise(asked, engine, {}).trees
        assert tuple(number for look in looks for number in look.counts.ravel().tolist()) == result
        found[result] = chance
    return found


@pytest.mark.long
@pytest.mark.parametrize(
    ("limit", "unit"),
    [(1, [0]), (2, [0, 0]), (2, [0, 3]), (1, [0, 3])],
    ids=["one row", "two rows", "two cells", "more rows than the limit"],
)
def test_the_distribution_of_a_tree_on_neighbours_stays_within_its_loss(limit, unit, monkeypatch):
    """Whatever the walk does, no result is likelier by more than exp(epsilon); and some result attains it."""
    question = Question(VISITS, (), ALONE, ContributionBounds(1, limit), (HistogramTree(X, Grid(0, 3, 1), 2, 2),))
    scale = question.sensitivity().l1  # for epsilon 1
    asked = ReleaseRequest(question, (Laplace(scale),), walks=(larger_half,))
    others = [{"user": 2, "x": 1, "place": "a"}]
    one, other = (
        law(asked, others + [{"user": 1, "x": x, "place": "a"} for x in cells], monkeypatch) for cells in (unit, [])
    )
    epsilon = float(asked.loss().epsilon)
    assert epsilon == 1
    worst = max(abs(math.log(one[result] / other[result])) for result in one)
    assert worst <= epsilon * (1 + 1e-9)
    if unit != [0, 3]:  # these are in one cell, and can be seen there on both levels
        assert worst == pytest.approx(epsilon, rel=1e-6)


def test_each_level_is_charged():
    def of(depth):
        return Question(
            VISITS, (), ALONE, ContributionBounds(1, 3), (HistogramTree(X, Grid(0, 3, 1), 4, depth),)
        ).sensitivity()

    assert of(3).l1 == 3 * of(1).l1
    assert of(3).l2_squared == 3 * of(1).l2_squared
    assert Gaussian(100).loss(of(3)).rho == 3 * Gaussian(100).loss(of(1)).rho


def test_invalid_cells_are_refused():
    for expr, places, fan, depth in (
        (X, (), 1, 1),
        (X, (1, 1), 2, 1),
        (X, (1, None), 2, 1),
        (X, ("a",), 1, 1),
        (PLACE, Grid(0, 3, 1), 4, 1),
        (X, Grid(0, 3, 1), 3, 1),
        (X, Grid(0, 3, 1), 2, 40),
        (X, Grid(0, 3, 1), 0, 1),
    ):
        with pytest.raises((ValueError, TypeError)):
            HistogramTree(expr, places, fan, depth)


# What many looks tell about one row, audited: below what is paid for, near it, and above it if a level is not paid for.

RUNS = 100_000


def epsilon_low(noise, depth):
    """Return the epsilon that looks at the way to one row's cell show, wrong once in 10^9 times."""
    fan = 2
    walk = [0] * depth

    def look_along(look, groups):
        for level in range(depth):
            walk[level] = look(np.zeros((groups, 1), np.int64))[:, 0, 0]

    hits = []
    for weight in (21, 20):
        cells = CellCounts(np.arange(RUNS), np.zeros(RUNS, np.int64), np.full(RUNS, weight))
        walk_noisy_tree(cells, tree(fan, depth), noise, np.arange(RUNS), look_along)
        hits.append(int(np.all([column >= 21 for column in walk], axis=0).sum()))
    low = stats.beta.ppf(5e-10, hits[0], RUNS - hits[0] + 1)
    high = stats.beta.ppf(1 - 5e-10, hits[1] + 1, RUNS - hits[1])
    return math.log(low / high)


def test_an_audit_of_a_tree_stays_below_the_charge_and_comes_close():
    depth = 2
    assert 0.85 < epsilon_low(Laplace(depth), depth) <= 1


def test_an_audit_detects_a_tree_whose_second_level_was_not_charged():
    assert epsilon_low(Laplace(1), 2) > 1.5
