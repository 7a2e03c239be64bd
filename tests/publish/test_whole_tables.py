"""Whole tables: non-negative integers, all sums of one table, close to the consistent ones."""

from itertools import combinations

import numpy as np
import pytest
from dense_tables import families, flat_axes, follow_from, matrix, uneven_axes
from hypothesis import given, settings
from scipy.optimize import nnls

from discreet.publish.marginals import Axis, Measurement, least_squares, table_shape, whole_tables
from discreet.publish.marginals.axes import coarsenings, sum_table
from discreet.publish.marginals.whole_numbers import _fit


def noisy(axes, truth, tables, variance=25.0):
    random, joint = np.random.default_rng(8), tuple((i, 0) for i in range(len(axes)))
    exact = {table: sum_table(axes, truth, joint, table) for table in tables}
    return exact, [Measurement(t, v + random.normal(0, variance**0.5, v.shape), variance) for t, v in exact.items()]


@settings(max_examples=20)
@given(families(flat_axes | uneven_axes()))
def test_whole_tables_add_up_and_are_never_negative(family):
    axes, measured = family
    joint = tuple((i, 0) for i in range(len(axes)))
    truth = np.random.default_rng(9).poisson(3, table_shape(axes, joint))
    measurements = noisy(axes, truth, measured)[1]
    wanted = follow_from(axes, measured)
    tables = whole_tables(axes, measurements, wanted)
    for table in wanted:
        assert tables[table].dtype == np.int64
        assert (tables[table] >= 0).all()
        for coarse in coarsenings(axes, table):
            assert (sum_table(axes, tables[table], table, coarse) == tables[coarse]).all()
    assert tables[()] == max(0, round(float(least_squares(axes, measurements).table(())[0])))


def test_whole_tables_are_as_close_to_the_truth_as_unbiased_ones_and_rounding_moves_them_by_about_a_unit():
    axes = [Axis("a", 8), Axis("b", 6), Axis("c", 5), Axis("d", 3)]
    truth = np.random.default_rng(10).poisson(np.random.default_rng(11).exponential(4, (8, 6, 5, 3)) ** 1.5)
    pairs = [tuple((i, 0) for i in pair) for pair in combinations(range(4), 2)]
    exact, measurements = noisy(axes, truth, pairs)
    whole, fair = whole_tables(axes, measurements, pairs), least_squares(axes, measurements)

    def error(found):
        return np.sqrt(np.mean(np.concatenate([(found(t) - exact[t]).ravel() ** 2 for t in pairs])))

    joint = tuple((i, 0) for i in range(4))
    fitted = _fit(axes, measurements, joint, int(whole[pairs[0]].sum()))
    assert error(lambda table: whole[table]) < 1.1 * error(lambda table: fair.table(table)[0])
    moved = np.concatenate([(whole[t] - sum_table(axes, fitted, joint, t)).ravel() for t in pairs])
    assert np.sqrt(np.mean(moved**2)) < 1


def test_the_fit_has_nearly_the_least_error_of_all_non_negative_tables():
    axes, joint = [Axis("a", 4), Axis("b", 5)], ((0, 0), (1, 0))
    truth = np.random.default_rng(12).poisson(2, (4, 5)) * np.arange(5)
    measurements = noisy(axes, truth, [joint, ((0, 0),), ((1, 0),)], variance=9.0)[1]
    total = 60
    rows = np.vstack([matrix(axes, each.table) for each in measurements] + [1e4 * np.ones((1, 20))])
    values = np.concatenate([*(each.values.ravel() for each in measurements), [1e4 * total]])
    least = nnls(rows, values)[1]
    fitted = _fit(axes, measurements, joint, total)
    assert fitted.sum() == pytest.approx(total)
    assert np.linalg.norm(rows @ fitted.ravel() - values) < 1.01 * least


def test_tables_of_nobody_are_zero():
    axes, table = [Axis("a", 3)], ((0, 0),)
    tables = whole_tables(axes, [Measurement(table, np.array([-5.0, 1, 1]), 1.0)], [table, ()])
    assert tables[table].tolist() == [0, 0, 0]
    assert tables[()] == 0


def test_too_many_cells_are_refused():
    axes = [Axis("a", 2000), Axis("b", 1001)]
    measurements = [Measurement(((i, 0),), np.zeros(axis.size), 1.0) for i, axis in enumerate(axes)]
    with pytest.raises(ValueError, match="cells"):
        whole_tables(axes, measurements, [((0, 0),)])
