"""Fitting: the loss falls, to the least that any distribution reaches."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import nnls

from discreet.publish.synthesis.graphical_model import independent_model
from discreet.publish.synthesis.mirror_descent import fit
from discreet.publish.synthesis.noisy_tables import NoisyTable, estimated_total
from tests.publish.synthesis.dense import marginal

SIZES, TOTAL = (2, 3, 2, 2), 500.0
CASES = [[(0, 1), (1, 2)], [(0, 1), (1, 2), (0, 2)], [(0, 1), (1, 2), (2, 3), (0, 3)], [(0,), (0, 1), (3,)]]


def noisy_tables(tables, seed, deviation=20.0):
    """Return noisy tables of a random joint distribution, with a different noise for each table."""
    generator = np.random.default_rng(seed)
    joint = TOTAL * generator.dirichlet(np.full(np.prod(SIZES), 0.3)).reshape(SIZES)
    scales = [deviation * (1 + position) for position in range(len(tables))]
    return {
        table: NoisyTable(marginal(joint, table) + generator.normal(0, scale, marginal(joint, table).shape), scale**2)
        for table, scale in zip(tables, scales, strict=True)
    }


def loss(model, measured):
    return (
        sum(((model.table(table) - noisy.counts) ** 2).sum() / noisy.variance for table, noisy in measured.items()) / 2
    )


def least_loss(measured):
    """Return the least loss of any joint table with this total, by non-negative least squares."""
    cells = np.eye(int(np.prod(SIZES))).reshape(-1, *SIZES)
    rows = [
        np.stack([marginal(cell, table).ravel() for cell in cells], axis=1) / np.sqrt(noisy.variance)
        for table, noisy in measured.items()
    ]
    targets = [noisy.counts.ravel() / np.sqrt(noisy.variance) for noisy in measured.values()]
    exact = 1e4  # a row of this weight fixes the total
    matrix = np.vstack([*rows, np.full((1, len(cells)), exact)])
    return nnls(matrix, np.concatenate([*targets, [exact * TOTAL]]))[1] ** 2 / 2


@pytest.mark.parametrize("tables", CASES)
@pytest.mark.parametrize("seed", [1, 2])
def test_the_loss_reaches_that_of_the_best_distribution(tables, seed):
    measured = noisy_tables(tables, seed)
    best = least_loss(measured)
    assert loss(fit(independent_model(SIZES, TOTAL), measured, 3000), measured) == pytest.approx(
        best, rel=0.01, abs=0.01
    )


@pytest.mark.parametrize("tables", CASES)
def test_no_step_increases_the_loss(tables):
    measured = noisy_tables(tables, seed=3)
    losses = [loss(fit(independent_model(SIZES, TOTAL), measured, steps), measured) for steps in range(40)]
    assert all(later <= earlier * (1 + 1e-12) for earlier, later in pairwise(losses))
    assert losses[-1] < losses[0] / 2


def test_a_fit_continues_on_a_larger_tree():
    measured = noisy_tables([(0, 1), (1, 2), (2, 3)], seed=4)
    first = fit(independent_model(SIZES, TOTAL), {(0, 1): measured[0, 1]}, 1000)
    unchanged = fit(first, measured, 0)
    np.testing.assert_allclose(unchanged.table([0, 1]), first.table([0, 1]))
    assert loss(fit(first, measured, 500), measured) < loss(first, measured)


def test_two_measurements_of_a_table_are_averaged_by_precision():
    mean = NoisyTable(np.array([10.0, 0.0]), 1.0).average(NoisyTable(np.array([0.0, 10.0]), 4.0))
    np.testing.assert_allclose(mean.counts, [8, 2])
    assert mean.variance == pytest.approx(0.8)


def test_the_total_weighs_tables_by_the_noise_of_their_sums():
    tables = {(0,): NoisyTable(np.array([60.0, 40.0]), 1.0), (1,): NoisyTable(np.full(4, 50.0), 2.0)}
    assert estimated_total(tables) == pytest.approx((100 / 2 + 200 / 8) / (1 / 2 + 1 / 8))
    assert estimated_total({(0,): NoisyTable(np.array([-5.0, 2.0]), 1.0)}) == 1
