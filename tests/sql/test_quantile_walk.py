"""Values found in noisy trees: margins hold the truth as often as they say, and no oftener than they must."""

from fractions import Fraction

import numpy as np
import pytest

from discreet.estimate.quantile_walk import QuantileTarget, QuantileWalk, tree_shape_for
from discreet.kernel.expr import Column, Type
from discreet.kernel.grid import Grid
from discreet.kernel.histogram_tree import CellCounts, walk_noisy_tree
from discreet.kernel.mechanism import Gaussian, Laplace
from discreet.kernel.totals import HistogramTree

X = Column("x", Type.INTEGER)
GROUPS = 1500
WIDE = 65_536
_rng = np.random.default_rng(7)
DATA = {
    "uniform": (_rng.integers(0, WIDE, 10_000), WIDE),
    "skewed": (np.minimum(WIDE - 1, np.exp(_rng.normal(6, 1, 20_000))).astype(np.int64), WIDE),
    "ages": (np.clip(_rng.normal(42, 20, 20_000), 0, 110).astype(np.int64), 111),
    "few": (_rng.integers(0, WIDE, 200), WIDE),
    "two heaps": (np.concatenate([_rng.integers(100, 200, 5000), _rng.integers(60_000, 60_100, 5000)]), WIDE),
    "one value": (np.full(3000, 777), WIDE),
}
NOISES = {
    "Laplace": lambda depth: Laplace(10 * depth),  # epsilon 1/10
    "Gaussian": lambda depth: Gaussian(Fraction(round(7.1 * depth**0.5 * 1000), 1000)),  # rho 1/100
}


def found(values, size, noise, *shares):
    """Return, for many groups of the same values, the cells of value, lower and upper end, and the walk itself."""
    fan, depth = tree_shape_for(size, power=2 if noise == "Laplace" else 1)
    mechanism = NOISES[noise](depth)
    walk = QuantileWalk(tuple(map(QuantileTarget, shares)), mechanism, Fraction(1), fan, depth)
    cells, weights = np.unique(values, return_counts=True)
    groups = np.repeat(np.arange(GROUPS), len(cells))
    tally = CellCounts(groups, np.tile(cells, GROUPS).astype(np.int64), np.tile(weights, GROUPS).astype(np.int64))
    looks = walk_noisy_tree(
        tally, HistogramTree(X, Grid(0, size - 1, 1), fan, depth), mechanism, np.arange(GROUPS), walk
    )
    return walk.locate(looks, GROUPS)[0], walk


def within(ends, low, high):
    """Return the share of groups whose value, with its margin on both sides, holds a value of this rank."""
    value, margin = ends[:, 0], np.maximum(ends[:, 0] - ends[:, 1], ends[:, 2] - ends[:, 0])
    return np.mean((value - margin <= high) & (value + margin >= low))


def truth(values, target, walk):
    """Return the least and the greatest value that have this rank."""
    ordered, rank = np.sort(values), float(target.level) * len(values) + target.end_sign * walk.rows_set_aside
    places = np.clip([np.ceil(rank) - 1, np.floor(rank)], 0, len(ordered) - 1).astype(int)
    return ordered[places]


@pytest.mark.long(only=["uniform-Gaussian", "uniform-Laplace"])
@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("name", DATA)
def test_margins_of_quantiles_hold_the_truth_at_95_percent(name, noise):
    """At 1,500 groups each, 92 % would be seen by chance less than once in 10^9 times if 95.5 % are right."""
    values, size = DATA[name]
    shares = (Fraction(1, 2), Fraction(1, 10), Fraction(9, 10))
    ends, walk = found(values, size, noise, *shares)
    for place, share in enumerate(shares):
        low, high = truth(values, QuantileTarget(share), walk)
        inside = within(ends[:, place], low, high)
        assert inside > 0.92, (name, noise, share, inside)


@pytest.mark.long
@pytest.mark.parametrize("noise", NOISES)
def test_margins_of_quantiles_are_not_wider_than_necessary(noise):
    values, size = DATA["uniform"]
    ends, _ = found(values, size, noise, Fraction(1, 2))
    (truth,), errors = np.median(values).reshape(1), np.abs(ends[:, 0, 0] - np.median(values))
    half = np.maximum(ends[:, 0, 0] - ends[:, 0, 1], ends[:, 0, 2] - ends[:, 0, 0]) / 2
    assert np.mean(errors <= half) < 0.93, truth  # half of it would not do
    assert np.quantile(errors, 0.95) > 0.4 * np.median(2 * half)


@pytest.mark.long(only=["uniform-Gaussian", "uniform-Laplace"])
@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("name", ["uniform", "skewed", "ages", "one value"])
def test_minimum_and_maximum_are_quantiles_at_the_stated_number_of_rows(name, noise):
    values, size = DATA[name]
    ends, walk = found(values, size, noise, Fraction(0), Fraction(1))
    for place, share in enumerate((Fraction(0), Fraction(1))):
        low, high = truth(values, QuantileTarget(share), walk)
        assert within(ends[:, place], low, high) > 0.92
    shown, ordered = ends[:, :, 0], np.sort(values)
    below = np.searchsorted(ordered, shown[:, 0], side="right")
    above = len(ordered) - np.searchsorted(ordered, shown[:, 1], side="left")
    assert np.mean(below == 0) < 0.1  # an empty end is hardly ever taken for people
    assert np.mean(above == 0) < 0.1


@pytest.mark.parametrize("noise", NOISES)
def test_a_walk_over_an_empty_tree_terminates(noise):
    ends, _ = found(np.array([], np.int64), 100, noise, Fraction(1, 2))
    assert ends.shape == (GROUPS, 1, 3)
    assert ends.min() >= 0


def test_one_tree_serves_many_targets_and_each_gets_what_it_would_get_alone():
    values, size = DATA["ages"]
    together, _ = found(values, size, "Gaussian", Fraction(1, 4), Fraction(1, 2), Fraction(3, 4))
    alone, _ = found(values, size, "Gaussian", Fraction(1, 2))
    assert abs(together[:, 1, 0].mean() - alone[:, 0, 0].mean()) < 0.5
    assert (together[:, 0, 0] <= together[:, 2, 0]).all()


def test_trees_have_enough_leaves_and_few_levels():
    for cells in (1, 2, 3, 16, 17, 111, 1000, 65_536):
        for power in (1, 2):
            fan, depth = tree_shape_for(cells, power)
            assert fan**depth >= cells
            assert depth <= 8
    assert tree_shape_for(1, 1) == (1, 1)
