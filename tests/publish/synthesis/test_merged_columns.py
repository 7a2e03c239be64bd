"""Merged columns: groups of values that are frequent enough, and tables of groups."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.publish.synthesis.graphical_model import independent_model
from discreet.publish.synthesis.merged_columns import ColumnSet, MergedColumn, candidate_tables, merge_values

COUNTS = st.lists(st.integers(-50, 1000), min_size=1, max_size=30).map(np.array)


@given(COUNTS, st.sampled_from([1 / 32, 1 / 5, 1.0]), st.booleans())
def test_every_group_has_its_share_and_every_value_a_group(counts, share, ordered):
    groups = merge_values(counts, share, ordered=ordered)
    assert sorted({*groups.tolist()}) == [*range(groups.max() + 1)]
    weights = np.maximum(counts, 0)
    if groups.max() > 0:
        assert (np.bincount(groups, weights=weights) >= share * weights.sum()).all()
    if ordered:
        assert (np.diff(groups) >= 0).all(), "only neighbours are merged"


def test_values_without_an_order_are_merged_with_those_as_frequent():
    counts = np.array([3, 900, 2, 800, 4])
    groups = merge_values(counts, 0.004, ordered=False)
    assert groups[0] == groups[2] == groups[4]
    assert len({groups[0], groups[1], groups[3]}) == 3
    assert (merge_values(np.zeros(8), 1 / 32, ordered=True) < 8).all()


def test_tables_of_merged_columns_are_sums_of_those_of_the_columns():
    columns = ColumnSet((3, 9, 8), (MergedColumn(1, np.arange(9) // 3), MergedColumn(2, np.arange(8) % 2)))
    values = np.arange(72.0).reshape(9, 8)
    coarse = columns.merge(values, (1, 2), (3, 4))
    assert coarse.shape == (3, 2)
    assert coarse[1, 0] == values[3:6, ::2].sum()
    assert columns.merge(values, (1, 2), (1, 2)) is values
    with_first = np.arange(27.0).reshape(3, 9)
    assert (columns.merge(with_first, (0, 1), (0, 3)) == with_first.reshape(3, 3, 3).sum(axis=2)).all()
    assert (columns.merge(values, (1, 2), (2, 3)) == values.T.reshape(8, 3, 3).sum(axis=2)).all()


def test_a_link_puts_every_value_in_its_group():
    columns = ColumnSet((8,), (MergedColumn(0, np.arange(8) // 3),))
    model = independent_model(columns.sizes, 240).with_factors(columns.links_of([(1,)]))
    assert model.table((0, 1)) == pytest.approx(30 * columns.merged[0].members)
    assert columns.links_of([(0,)]) == {}


def test_pairs_that_are_too_large_may_be_measured_merged():
    assert candidate_tables([1000, 1000], 32, 200_000) == {(0, 1): [(2, 3)]}
    assert candidate_tables([1000, 1000], 32, 1_000) == {}
    assert candidate_tables([6, 6], 32, 1_000) == {(0, 1): [(0, 1)]}
