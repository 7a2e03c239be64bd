"""The scales of a family: no others are better, limits hold, tables that follow from others get no noise."""

from itertools import combinations

import numpy as np
import pytest
from dense_tables import all_tables, families, uneven_axes
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.publish.marginals import Axis, Noise, choose_scales, forecast, least_scales, table_shape

few = settings(max_examples=8)
ADULT = [Axis(f"c{i}", size) for i, size in enumerate([16, 9, 20, 16, 16, 7, 15, 6, 5, 2, 20, 18, 20, 42, 2])]
RHO = 0.014965


def cost(axes, scales, wanted, noise=Noise.GAUSSIAN):
    covariances = forecast(axes, scales, 1.0, noise)
    return sum(weight * float(covariances.variance(table).sum()) for table, weight in wanted.items())


def nearby(scales, noise, random, size):
    """Return normalised scales near the given ones."""
    norm = noise.value
    powers = {
        t: (scale**norm) * np.exp(size * random.normal()) + size * random.exponential() / 50 * (random.random() < 0.3)
        for t, scale in scales.items()
    }
    total = sum(powers.values())
    return {table: (power / total) ** (1 / norm) for table, power in powers.items()}


@few
@given(families(), st.sampled_from([0.01, 0.1, 1.0]))
def test_no_other_scales_have_a_smaller_error(family, size):
    axes, wanted = family
    scales, random = choose_scales(axes, wanted), np.random.default_rng(4)
    assert sum(scale**2 for scale in scales.values()) == pytest.approx(1)
    best = cost(axes, scales, wanted)
    for _ in range(10):
        assert cost(axes, nearby(scales, Noise.GAUSSIAN, random, size), wanted) >= best * (1 - 1e-6)


@few
@given(families())
def test_scales_for_laplace_noise_are_a_local_optimum(family):
    axes, wanted = family
    scales, random = choose_scales(axes, wanted, noise=Noise.LAPLACE), np.random.default_rng(5)
    assert sum(scales.values()) == pytest.approx(1)
    best = cost(axes, scales, wanted)
    for _ in range(10):
        others = {t: scale * np.exp(0.01 * random.normal()) for t, scale in scales.items()}
        others = {t: scale / sum(others.values()) for t, scale in others.items()}
        assert cost(axes, others, wanted) >= best * (1 - 1e-6)


@pytest.mark.parametrize("noise", Noise)
@few
@given(family=families())
def test_limits_hold_at_the_least_cost(family, noise):
    axes, limits = family
    scales = least_scales(axes, limits, noise=noise)
    variances = forecast(axes, scales, 1.0)
    ratios = [float(variances.variance(table).max()) / limit for table, limit in limits.items()]
    assert max(ratios) == pytest.approx(1)
    if noise is Noise.GAUSSIAN:
        random, least = np.random.default_rng(6), sum(scale**2 for scale in scales.values())
        for size in (0.01, 0.1, 1):
            others = nearby(scales, noise, random, size)
            variances = forecast(axes, others, 1.0)
            assert max(float(variances.variance(t).max()) / v for t, v in limits.items()) >= least * (1 - 1e-4)


@few
@given(families(uneven_axes(), largest=2))
def test_limits_hold_in_every_cell_on_uneven_axes(family):
    axes, limits = family
    variances = forecast(axes, least_scales(axes, limits), 1.0)
    for table, limit in limits.items():
        assert (variances.variance(table) <= limit * (1 + 1e-9)).all()


def test_some_tables_have_limits_and_the_others_share_what_is_left():
    axes = [Axis("sex", 2), Axis("age", 10), Axis("town", 20)]
    pairs = {((0, 0), (1, 0)): 1.0, ((1, 0), (2, 0)): 1.0}
    free = choose_scales(axes, pairs)
    town, sex = ((2, 0),), ((0, 0),)
    loose = float(forecast(axes, free, 1.0).variance(town).max())
    scales = choose_scales(axes, pairs, limits={town: loose / 3, sex: 1e6})
    variances = forecast(axes, scales, 1.0)
    assert float(variances.variance(town).max()) == pytest.approx(loose / 3, rel=1e-6)
    assert sum(scale**2 for scale in scales.values()) == pytest.approx(1)
    random, best = np.random.default_rng(7), cost(axes, scales, pairs)
    for size in (0.003, 0.03, 0.3) * 30:
        others = nearby(scales, Noise.GAUSSIAN, random, size)
        within = float(forecast(axes, others, 1.0).variance(town).max()) <= loose / 3
        assert not within or cost(axes, others, pairs) >= best * (1 - 1e-6)


def test_limits_beyond_the_budget_are_refused_with_what_they_need():
    axes, sex, age = [Axis("sex", 2), Axis("age", 10)], ((0, 0),), ((1, 0),)
    with pytest.raises(ValueError, match="4 times"):
        choose_scales(axes, {age: 1.0}, limits={((0, 0), (1, 0)): 0.25})
    assert choose_scales(axes, {age: 1.0}, limits={sex: 1e9})[sex] < 1e-4


@pytest.mark.parametrize(("columns", "free", "most"), [(2, 16, 48), (3, 121, 91)])
def test_tables_of_census_columns_have_the_published_error(columns, free, most):
    tables = [tuple((i, 0) for i in c) for k in range(columns + 1) for c in combinations(range(15), k)]
    scales = choose_scales(ADULT, dict.fromkeys(tables, 1.0))
    release = forecast(ADULT, scales, 1 / (2 * RHO))
    cells = sum(np.prod(table_shape(ADULT, table)) for table in tables)
    error = sum(float(release.variance(table).sum()) for table in tables) / cells
    assert sum(scale == 0 for scale in scales.values()) == free
    assert error**0.5 < most


def test_a_forecast_covers_all_levels_of_a_hierarchy():
    axes = [Axis("day", 12, (tuple(np.repeat(range(4), 3).tolist()),)), Axis("sex", 2)]
    scales = choose_scales(axes, dict.fromkeys(all_tables(axes), 1.0))
    release = forecast(axes, scales, 1.0)
    assert all(release.variance(table).shape == table_shape(axes, table) for table in all_tables(axes))


@pytest.mark.parametrize("arguments", [({},), ({((0, 0),): 0.0},)])
def test_weights_and_limits_must_be_above_zero(arguments):
    for function in (choose_scales, least_scales):
        with pytest.raises(ValueError, match="must"):
            function([Axis("sex", 2)], *arguments)
