"""Calibration on the junction tree, compared with the joint distribution."""

from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.publish.synthesis.graphical_model import independent_model
from tests.publish.synthesis.dense import joint_table, marginal, sizes_and_tables


def random_model(sizes, tables, seed, scale=2.0):
    generator = np.random.default_rng(seed)
    factors = {table: generator.normal(0, scale, [sizes[column] for column in table]) for table in tables}
    return independent_model(sizes, 100.0).with_factors(factors)


@given(sizes_and_tables(), st.integers(0, 1000))
def test_clique_marginals_equal_those_of_the_joint(drawn, seed):
    model = random_model(*drawn, seed)
    joint = joint_table(model)
    for clique, counts in zip(model.tree.cliques, model.marginals, strict=True):
        np.testing.assert_allclose(counts, marginal(joint, clique), rtol=1e-9)
    for table, counts in model.tables_of(model.factors).items():
        np.testing.assert_allclose(counts, marginal(joint, table), rtol=1e-9)


@given(sizes_and_tables(), st.integers(0, 1000))
def test_tables_of_any_columns_equal_those_of_the_joint(drawn, seed):
    model = random_model(*drawn, seed)
    joint = joint_table(model)
    columns = range(len(model.sizes))
    for wanted in [*permutations(columns, 2), *combinations(columns, 3), tuple(columns)]:
        np.testing.assert_allclose(model.table(wanted), marginal(joint, wanted), rtol=1e-9)


@given(sizes_and_tables(), st.integers(0, 1000))
def test_extreme_factors_neither_overflow_nor_vanish(drawn, seed):
    model = random_model(*drawn, seed, scale=1e12)
    for counts in model.marginals:
        assert np.isfinite(counts).all()
        assert counts.sum() == pytest.approx(100)
