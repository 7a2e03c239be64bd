"""Which tables are worth their noise, and how a release is divided among them."""

import numpy as np
import pytest

from discreet.publish.synthesis import SynthesisSettings
from discreet.publish.synthesis.junction_tree import junction_tree, table_cells
from discreet.publish.synthesis.merged_columns import ColumnSet, MergedColumn
from discreet.publish.synthesis.table_choice import _error_of, choose_tables, table_weights

SIZES = [2, 10, 30, 4, 7]
TABLES = [(0, 1), (1, 2), (2, 3), (3, 4)]
each_norm = pytest.mark.parametrize("norm", [1, 2])


def chosen_of(distances, deviation, present, settings):
    candidates = {pair: [pair] for pair in distances}
    return choose_tables(candidates, distances, deviation, present, ColumnSet(tuple(SIZES)), settings)


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
    assert chosen_of({(1, 2): error * 1.01}, 3.0, [], settings) == [(1, 2)]
    assert chosen_of({(1, 2): error * 0.99}, 3.0, [], settings) == []


def test_a_second_table_pays_for_what_it_takes_from_the_first():
    settings = SynthesisSettings()
    alone = _error_of([(0, 1)], SIZES, settings)
    added = _error_of([(0, 1), (1, 2)], SIZES, settings) - _error_of([(1, 2)], SIZES, settings)
    distances = {(1, 2): 1e6, (0, 1): (alone + added) / 2}
    assert alone < added
    assert chosen_of(distances, 1.0, [], settings) == [(1, 2)]
    assert {*chosen_of({**distances, (0, 1): added * 1.01}, 1.0, [], settings)} == {*distances}


@pytest.mark.parametrize("model_cells", [320, 400, 600, 1000])
def test_the_junction_tree_of_all_tables_stays_within_its_limit(model_cells):
    settings, present = SynthesisSettings(model_cells=model_cells), [(1, 2)]
    pairs = [(one, other) for other in range(5) for one in range(other) if (one, other) not in present]
    chosen = chosen_of(dict.fromkeys(pairs, 1e9), 1.0, present, settings)
    assert chosen
    assert junction_tree(SIZES, [*chosen, *present]).cells(SIZES) <= model_cells


@each_norm
def test_merged_columns_are_measured_unless_the_columns_themselves_are_worth_more(norm):
    settings = SynthesisSettings(norm=norm)
    columns = ColumnSet((10, 30), (MergedColumn(0, np.arange(10) // 4), MergedColumn(1, np.arange(30) // 8)))
    fine, coarse = (0, 1), (2, 3)
    candidates = {fine: [fine, coarse]}
    extra = _error_of([fine], columns.sizes, settings) - _error_of([coarse], columns.sizes, settings)
    worth = 1e4
    assert choose_tables(candidates, {coarse: worth, fine: worth + 0.99 * extra}, 1.0, [], columns, settings) == [
        coarse
    ]
    assert choose_tables(candidates, {coarse: worth, fine: worth + 1.01 * extra}, 1.0, [], columns, settings) == [fine]


def test_links_of_merged_columns_count_in_the_limit_of_the_junction_tree():
    columns = ColumnSet((10, 30), (MergedColumn(0, np.arange(10) // 4), MergedColumn(1, np.arange(30) // 8)))
    needed = 3 * 4 + 10 * 3 + 30 * 4
    for cells, expected in [(needed, [(2, 3)]), (needed - 1, [])]:
        settings = SynthesisSettings(model_cells=cells)
        assert choose_tables({(0, 1): [(2, 3)]}, {(2, 3): 1e9}, 1.0, [], columns, settings) == expected
