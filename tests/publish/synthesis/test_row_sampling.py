"""Systematic draws: counts are as expected up to one row per cell, given the separators."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.publish.synthesis.row_sampling import sample_rows
from tests.publish.synthesis.dense import sizes_and_tables
from tests.publish.synthesis.test_graphical_model import random_model


def counts_of(rows, columns, sizes):
    counts = np.zeros([sizes[column] for column in columns])
    np.add.at(counts, tuple(rows[:, column] for column in columns), 1)
    return counts


@given(sizes_and_tables(), st.integers(0, 1000), st.integers(0, 300))
def test_every_cell_gets_its_share_of_its_separator_up_to_one_row(drawn, seed, count):
    model = random_model(*drawn, seed)
    rows = sample_rows(model, count, np.random.default_rng(seed))
    assert rows.shape == (count, len(model.sizes))
    for clique, separator, shares in zip(model.tree.cliques, model.tree.separators, model.conditionals, strict=True):
        counts = counts_of(rows, clique, model.sizes)
        others = tuple(axis for axis, column in enumerate(clique) if column not in separator)
        assert (np.abs(counts - shares * counts.sum(axis=others, keepdims=True)) < 1 + 1e-9).all()


@given(sizes_and_tables(), st.integers(0, 1000))
def test_the_root_is_as_expected_up_to_one_row(drawn, seed):
    model = random_model(*drawn, seed)
    rows = sample_rows(model, 100, np.random.default_rng(seed))
    counts = counts_of(rows, model.tree.cliques[0], model.sizes)
    assert (np.abs(counts - model.marginals[0]) < 1 + 1e-9).all()


def test_columns_of_different_cliques_are_paired_at_random():
    model = random_model([2, 2], [(0,), (1,)], seed=0, scale=0.0)
    rows = sample_rows(model, 10_000, np.random.default_rng(1))
    assert counts_of(rows, (0, 1), model.sizes) == pytest.approx(np.full((2, 2), 2500), abs=300)


def test_cells_without_weight_get_no_rows():
    model = random_model([3, 2], [(0, 1)], seed=0).with_factors({(0, 1): np.array([[0, -1e9], [0, 0], [-1e9, -1e9]])})
    rows = sample_rows(model, 1000, np.random.default_rng(2))
    assert (counts_of(rows, (0, 1), model.sizes)[[0, 2, 2], [1, 0, 1]] == 0).all()
