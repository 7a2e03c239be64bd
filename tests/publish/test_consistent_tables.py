"""Least squares of a family of tables against dense matrices: estimates, covariances, sums that add up."""

import numpy as np
import pytest
from dense_tables import all_tables, balanced_axes, families, flat_axes, follow_from, matrix, stacked, uneven_axes
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.publish.marginals import Axis, Measurement, Noise, least_squares, margin_factor, table_shape
from discreet.publish.marginals.axes import sum_table
from discreet.publish.marginals.covariances import Covariances

any_axis = flat_axes | balanced_axes() | uneven_axes()
few = settings(max_examples=25)


def measure(axes, measured, seed=0):
    random = np.random.default_rng(seed)
    return [
        Measurement(table, random.normal(0, variance**0.5, table_shape(axes, table)), variance)
        for table, variance in measured.items()
    ]


@few
@given(families())
def test_balanced_tables_equal_dense_least_squares(family):
    axes, measured = family
    rows, covariance = stacked(axes, measured)
    measurements = measure(axes, measured)
    values = np.concatenate([each.values.ravel() / each.variance**0.5 for each in measurements])
    cells = covariance @ rows.T @ values
    tables = least_squares(axes, measurements)
    for table in follow_from(axes, measured):
        sums = matrix(axes, table)
        found, variance = tables.table(table)
        np.testing.assert_allclose(found.ravel(), sums @ cells, atol=1e-8)
        np.testing.assert_allclose(variance.ravel(), np.einsum("ij,jk,ik->i", sums, covariance, sums), atol=1e-8)


@settings(max_examples=10)
@given(families(any_axis, largest=2), st.data())
def test_variances_are_exactly_those_of_the_linear_estimate(family, data):
    axes, measured = family
    chosen = data.draw(st.lists(st.sampled_from(follow_from(axes, measured)), min_size=1, max_size=2, unique=True))
    cells = dict.fromkeys(chosen, 0.0)
    for table, variance in measured.items():
        for cell in np.ndindex(table_shape(axes, table)):
            units = {each: np.zeros(table_shape(axes, each)) for each in measured}
            units[table][cell] = 1
            fitted = least_squares(axes, [Measurement(t, values, measured[t]) for t, values in units.items()])
            found = {each: fitted.table(each)[0] for each in chosen}
            cells = {each: cells[each] + variance * found[each] ** 2 for each in chosen}
    covariances = Covariances(axes, measured)
    for table in chosen:
        np.testing.assert_allclose(covariances.variance(table), cells[table], atol=1e-9)


@few
@given(families(any_axis))
def test_exact_tables_are_returned_unchanged(family):
    axes, measured = family
    joint = tuple((index, 0) for index in range(len(axes)))
    truth = np.random.default_rng(2).integers(0, 100, table_shape(axes, joint))
    exact = [Measurement(t, sum_table(axes, truth, joint, t), variance) for t, variance in measured.items()]
    tables = least_squares(axes, exact)
    for table in follow_from(axes, measured):
        np.testing.assert_allclose(tables.table(table)[0], sum_table(axes, truth, joint, table), atol=1e-8)


@few
@given(families(any_axis))
def test_every_total_adds_up(family):
    axes, measured = family
    tables = least_squares(axes, measure(axes, measured))
    for table in measured:
        for coarse in follow_from(axes, [table]):
            summed = sum_table(axes, tables.table(table)[0], table, coarse)
            np.testing.assert_allclose(summed, tables.table(coarse)[0], atol=1e-8)


def test_uneven_axes_lose_little_to_dense_least_squares():
    months = Axis("day", 13, (tuple(np.repeat(range(4), [3, 4, 3, 3]).tolist()),))
    regions = Axis("town", 15, (tuple(np.repeat(range(4), [1, 2, 4, 8]).tolist()),))
    for axis, most in ((months, 1.0002), (regions, 1.004)):
        axes = (axis, Axis("sex", 2))
        measured = dict.fromkeys(all_tables(axes), 1.0)
        covariance = stacked(axes, measured)[1]
        found = sum(float(Covariances(axes, measured).variance(table).sum()) for table in measured)
        least = sum(float(np.trace(matrix(axes, t) @ covariance @ matrix(axes, t).T)) for t in measured)
        assert least * (1 - 1e-9) < found < least * most**2


def test_tables_of_one_level_only_are_optimal_on_uneven_axes_too():
    axis = Axis("town", 7, ((0, 0, 0, 0, 1, 2, 2),))
    measured = {((0, 0),): 2.0, (): 1.0}
    covariance = stacked([axis], measured)[1]
    for table in follow_from([axis], measured):
        expected = np.diag(matrix([axis], table) @ covariance @ matrix([axis], table).T)
        np.testing.assert_allclose(Covariances((axis,), measured).variance(table).ravel(), expected)


def test_a_table_measured_twice_counts_with_both_precisions():
    axis, table = Axis("sex", 2), ((0, 0),)
    twice = [Measurement(table, np.array([10, 20]), 1.0), Measurement(table, np.array([14, 20]), 3.0)]
    values, variance = least_squares([axis], twice).table(table)
    np.testing.assert_allclose(values, [11, 20])
    np.testing.assert_allclose(variance, 0.75)


def test_margins_of_laplace_noise_hold_for_one_variable_and_approach_those_of_the_normal_distribution():
    one_variable = np.log(20) / np.sqrt(2)
    assert one_variable < margin_factor(Noise.LAPLACE) < 1.03 * one_variable
    assert margin_factor(Noise.GAUSSIAN) == pytest.approx(1.959964, abs=1e-5)
    draws = np.random.default_rng(3).laplace(size=(100_000, 8)) / 2**0.5
    for weights in (np.eye(8)[0], np.ones(8), 0.5 ** np.arange(8), np.array([5, 1, 1, 1, 1, 1, 1, 1])):
        for level in (0.5, 0.9, 0.95, 0.999):
            sums = np.abs(draws @ weights) / np.linalg.norm(weights)
            assert (sums > margin_factor(Noise.LAPLACE, level)).mean() < (1 - level) + 6 * (
                level * (1 - level) / 1e5
            ) ** 0.5


def test_margins_are_the_factor_times_the_standard_deviation():
    axis = Axis("sex", 2)
    for noise in Noise:
        tables = least_squares([axis], [Measurement(((0, 0),), np.array([1, 2]), 9.0)], noise)
        np.testing.assert_allclose(tables.covariances.margin(((0, 0),), 0.9), 3 * margin_factor(noise, 0.9))


@pytest.mark.parametrize(
    ("parents", "message"),
    [
        (((0, 0),), "one code for each"),
        (((0, 0, 2),), "each code from 0"),
        (((0, 0, 1), (0, 1, 1)), "splits a node"),
    ],
)
def test_levels_that_are_no_coarsenings_are_refused(parents, message):
    with pytest.raises(ValueError, match=message):
        Axis("day", 3, parents)


@pytest.mark.parametrize(
    ("table", "message"),
    [(((1, 0), (0, 0)), "ascend"), (((5, 0),), "no axis"), (((0, 1),), "no level"), (((1, 0),), "does not follow")],
)
def test_tables_that_do_not_exist_or_do_not_follow_are_refused(table, message):
    tables = least_squares([Axis("sex", 2), Axis("age", 3)], [Measurement(((0, 0),), np.zeros(2), 1.0)])
    with pytest.raises(ValueError, match=message):
        tables.table(table)


@pytest.mark.parametrize(
    ("values", "variance", "message"), [(np.zeros(3), 1.0, "shape"), (np.zeros(2), 0.0, "variance")]
)
def test_measurements_of_the_wrong_shape_or_without_noise_are_refused(values, variance, message):
    with pytest.raises(ValueError, match=message):
        least_squares([Axis("sex", 2)], [Measurement(((0, 0),), values, variance)])
