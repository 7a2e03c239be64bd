"""Which tables are worth their noise, and how a release is divided among them."""

import numpy as np
import pytest

from discreet.publish.synthesis import SynthesisSettings
from discreet.publish.synthesis.junction_tree import junction_tree, table_cells
from discreet.publish.synthesis.table_choice import _error_of, choose_tables, table_weights

SIZES = [2, 10, 30, 4, 7]
TABLES = [(0, 1), (1, 2), (2, 3), (3, 4)]
each_norm = pytest.mark.parametrize("norm", [1, 2])


def total_error(weights, norm):
    mean = np.sqrt(1 / 2) if norm == 1 else np.sqrt(2 / np.pi)
    return sum(mean * table_cells(table, SIZES) / weight for table, weight in zip(TABLES, weights, strict=True))


@each_norm
def test_weights_use_the_whole_release(norm):
    weights = table_weights(TABLES, SIZES, SynthesisSettings(norm=norm))
    assert sum(weight**norm for weight in weights) == pytest.approx(1)


@each_norm
def test_no_other_weights_have_less_error(norm):
    settings = SynthesisSettings(norm=norm)
    best = table_weights(TABLES, SIZES, settings)
    assert total_error(best, norm) == pytest.approx(_error_of(TABLES, SIZES, settings))
    for seed in range(50):
        other = np.abs(np.array(best) + np.random.default_rng(seed).normal(0, 0.05, len(best)))
        other /= (other**norm).sum() ** (1 / norm)
        assert total_error(other, norm) >= total_error(best, norm)


@each_norm
def test_tables_are_chosen_if_they_differ_by_more_than_their_error(norm):
    settings = SynthesisSettings(norm=norm)
    error = 3 * _error_of([(1, 2)], SIZES, settings)
    assert choose_tables({(1, 2): error * 1.01}, 3.0, [], SIZES, settings) == [(1, 2)]
    assert choose_tables({(1, 2): error * 0.99}, 3.0, [], SIZES, settings) == []


def test_a_second_table_pays_for_what_it_takes_from_the_first():
    settings = SynthesisSettings()
    alone = _error_of([(0, 1)], SIZES, settings)
    added = _error_of([(0, 1), (1, 2)], SIZES, settings) - _error_of([(1, 2)], SIZES, settings)
    distances = {(1, 2): 1e6, (0, 1): (alone + added) / 2}
    assert alone < added
    assert choose_tables(distances, 1.0, [], SIZES, settings) == [(1, 2)]
    assert {*choose_tables({**distances, (0, 1): added * 1.01}, 1.0, [], SIZES, settings)} == {*distances}


@pytest.mark.parametrize("model_cells", [300, 400, 1000])
def test_the_junction_tree_stays_within_its_limit(model_cells):
    settings = SynthesisSettings(model_cells=model_cells)
    pairs = [(one, other) for other in range(5) for one in range(other) if SIZES[one] * SIZES[other] <= model_cells]
    chosen = choose_tables(dict.fromkeys(pairs, 1e9), 1.0, [(0, 3)], SIZES, settings)
    assert chosen
    assert junction_tree(SIZES, [*chosen, (0, 3)]).cells(SIZES) <= model_cells
