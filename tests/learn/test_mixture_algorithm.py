"""The whitened mixture: what its rules promise to the door, what it makes of released numbers, and how well it fits."""

import math
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from discreet.kernel.model_release import check_row_wise
from discreet.learn.fit_cost import cost_of
from discreet.learn.fit_session import FitSource, open_session
from discreet.learn.mixture import whitened_em
from discreet.learn.mixture.artificial_points import artificial_points
from discreet.learn.mixture.background import MAX_SHARE, add_background, hidden_share, merge_most_similar
from discreet.learn.mixture.cell_moments import cell_moments
from discreet.learn.mixture.composite_likelihood import (
    Mixtures,
    mixtures_log_likelihood,
    parameter_layout,
    refine_mixtures,
)
from discreet.learn.mixture.density import log_densities
from discreet.learn.mixture.dp_em import GaussianMixtureParameters
from discreet.learn.mixture.initialisation import _initial_guesses, best_initial_mixture
from discreet.learn.mixture.marginals import (
    MarginalTables,
    cells_per_side,
    denoise,
    marginal_cells,
    marginals_of_columns,
    refine_edges,
)
from discreet.learn.mixture.shrinkage import (
    clip_at,
    clip_for_noise,
    component_moments,
    floor_eigenvalues,
    grow_covariances,
    james_stein_factor,
    shrunken_update,
)
from discreet.learn.row_sources import array_rows


class _Seeded:
    """A session of the same law, up to discreteness, whose noise is the same in every run."""

    def __init__(self, points, plan, epsilon, delta, seed=0):
        self._rows, self._rng, total = (
            np.asfortranarray(np.clip(points, plan.low, plan.high)),
            np.random.default_rng(seed),
            sum(plan.shares),
        )
        price = cost_of(epsilon, delta)
        self.is_gaussian = price.epsilon is None
        self._parts = [float((price.rho if self.is_gaussian else price.epsilon) * part / total) for part in plan.shares]

    def sd(self, radius=1):
        return radius / math.sqrt(2 * self._parts[0]) if self.is_gaussian else radius * math.sqrt(2) / self._parts[0]

    def _noise(self, radius, shape):
        sd = self.sd(radius)
        self._parts.pop(0)
        law = self._rng.normal if self.is_gaussian else self._rng.laplace
        return law(0, sd if self.is_gaussian else sd / math.sqrt(2), shape)

    def sum(self, rule, public, *, size, radius):
        return rule(self._rows, public).sum(axis=0) + self._noise(radius, size)

    def histograms(self, rule, public, *, tables, cells):
        found = rule(self._rows, public).T
        counts = np.array([np.bincount(line[line >= 0], minlength=cells) for line in found])
        return counts + self._noise(math.sqrt(tables) if self.is_gaussian else tables, counts.shape)


def _session(points, plan, epsilon, delta="1e-6", unit=None):
    rows = array_rows(points, (plan.low, plan.high), unit)
    return open_session(
        FitSource(rows), name="test", epsilon=Fraction(epsilon), delta=Fraction(delta), shares=plan.shares
    )


def _drawn(rng, count, weights, means, spreads):
    labels = rng.choice(len(weights), count, p=weights)
    return np.array(means, float)[labels] + rng.normal(size=(count, len(means[0]))) * np.array(spreads)[labels, None]


def _two(count, d, seed=0):
    rng = np.random.default_rng(seed)
    return _drawn(rng, count, [0.3, 0.7], [[-4.0] * d, [3.0] * d], [1.0, 1.5])


def _fitted(points, components, epsilon, delta="1e-6", seed=0, **settings):
    d = points.shape[1]
    plan = whitened_em.plan(components, np.full(d, -10.0), np.full(d, 10.0), **settings)
    return whitened_em.fit(_Seeded(points, plan, Fraction(epsilon), Fraction(delta), seed), plan)


def _mean_log_density(points, mixture):
    logs = log_densities(points, *mixture)
    top = logs.max(axis=1)
    return float((top + np.log(np.exp(logs - top[:, None]).sum(axis=1))).mean())


def _is_valid(mixture, components):
    weights, means, covariances = mixture
    return (
        weights.shape == (components,)
        and math.isclose(weights.sum(), 1)
        and bool((weights > 0).all())
        and bool((np.abs(means) <= 10).all())
        and bool((np.linalg.eigvalsh(covariances) > 0).all())
    )


def _public(components, d, rng, *, in_l2):
    clip = clip_for_noise(1.0, 1.0, d, in_l2=in_l2)
    white = np.array(
        [np.linalg.inv(np.linalg.cholesky(np.cov(rng.normal(size=(d, 3 * d))).reshape(d, d) + np.eye(d)))] * components
    )
    return (
        np.log(rng.dirichlet(np.ones(components))),
        rng.uniform(-5, 5, (components, d)),
        white,
        [(clip.radius, clip.outer_radius)] * components,
        [clip.block_weights] * components,
    )


@pytest.mark.parametrize("d", [1, 2, 5])
@pytest.mark.parametrize("in_l2", [True, False])
def test_a_rows_vector_is_in_the_unit_ball_and_may_reach_its_surface(d, in_l2):
    rng = np.random.default_rng(1)
    heights, means, white, radius, weights = _public(3, d, rng, in_l2=in_l2)
    points = np.asfortranarray(rng.uniform(-30, 30, (20_000, d)))
    corner = means[0] + np.linalg.solve(white[0], np.full(d, 50.0))  # in all whitened coordinates alike: long in l1
    points[0] = corner
    vectors = whitened_em.component_sums(points, (heights, means, white, radius, weights))
    norms = np.linalg.norm(vectors, ord=2 if in_l2 else 1, axis=1)
    assert norms.max() <= 1 + 1e-9
    assert norms.max() > 0.99


@pytest.mark.parametrize("d", [1, 2, 7])
def test_rules_depend_on_one_row_at_a_time(d):
    rng = np.random.default_rng(2)
    low, high = np.full(d, -10.0), np.full(d, 10.0)
    check_row_wise(whitened_em.component_sums, _public(4, d, rng, in_l2=True), low, high)
    first, second = (_public(4, d, rng, in_l2=True)[:3] for _ in range(2))
    check_row_wise(whitened_em.likelihood_gains, (*first, *second, 10.0), low, high)
    edges = np.sort(rng.uniform(-10, 10, (d, 17)))
    check_row_wise(marginal_cells, (edges, tuple((column,) for column in range(d))), low, high)
    check_row_wise(marginal_cells, (edges, marginals_of_columns(d)), low, high)


def test_a_rows_cells_are_where_the_row_is_and_values_beyond_the_edges_are_in_the_outer_cells():
    rows = np.asfortranarray([[0.1, 0.9, 0.5], [0.1, 1.5, 0.5], [-0.1, 0.5, 0.5]])
    edges = np.tile(np.linspace(0, 1, 11), (3, 1))
    assert marginal_cells(rows, (edges, marginals_of_columns(3))).tolist() == [[19, 15, 95], [19, 15, 95], [5, 5, 55]]
    assert marginal_cells(rows, (edges, ((1,),))).tolist() == [[9], [9], [5]]


def test_every_column_is_in_a_view_and_large_tables_are_not_made():
    for d in (1, 2, 10, 17, 40):
        views = marginals_of_columns(d)
        assert set().union(*views) == set(range(d))
        assert len(views) * cells_per_side(views, 1e9, 1.0) ** len(views[0]) <= max(1 << 14, 64 * len(views))
    assert cells_per_side(marginals_of_columns(2), -50.0, 10.0) == 8


def test_a_clipped_standard_gaussian_means_no_change():
    d, rng = 3, np.random.default_rng(3)
    clip = clip_at(2.5, 4.0, d, in_l2=True)
    public = np.zeros(1), np.zeros((1, d)), np.eye(d)[None], [(clip.radius, clip.outer_radius)], [clip.block_weights]
    sums = whitened_em.component_sums(rng.normal(size=(400_000, d)), public).sum(axis=0)
    seen = component_moments(sums, d, clip)
    shift, growth = shrunken_update(seen, 0.0, clip)
    assert math.isclose(seen.size, 400_000)
    assert np.abs(shift).max() < 0.02
    assert np.abs(growth).max() < 0.02


def test_a_small_change_is_read_in_its_full_size():
    d, rng = 2, np.random.default_rng(4)
    clip = clip_at(2.45, 2.8, d, in_l2=True)
    public = np.zeros(1), np.zeros((1, d)), np.eye(d)[None], [(clip.radius, clip.outer_radius)], [clip.block_weights]
    shape = np.array([[0.06, 0.04], [0.04, -0.02]])
    points = rng.normal(size=(1_000_000, d)) @ np.linalg.cholesky(np.eye(d) + shape).T + [0.05, -0.1]
    sums = whitened_em.component_sums(np.asfortranarray(points), public).sum(axis=0)
    shift, growth = shrunken_update(component_moments(sums, d, clip), 0.0, clip)
    assert np.allclose(shift, [0.05, -0.1], atol=0.015)
    assert np.allclose(growth, shape, atol=0.02)


def test_changes_below_the_noise_are_ignored():
    rng = np.random.default_rng(5)
    assert np.mean([james_stein_factor(rng.normal(size=50), 1.0) for _ in range(200)]) < 0.15
    assert james_stein_factor(np.full(50, 100.0), 1.0) > 0.99


def test_covariances_stay_positive_definite_whatever_the_noise():
    rng = np.random.default_rng(6)
    for scale in (0.1, 1.0, 100.0):
        noise = rng.normal(size=(20, 4, 4)) * scale
        assert np.linalg.eigvalsh(grow_covariances(np.eye(4), noise + noise.transpose(0, 2, 1))).min() > 0
    assert np.linalg.eigvalsh(floor_eigenvalues(-np.eye(3), 0.25)).min() >= 0.25 - 1e-12


def _tables(points, sd, rng, side=16):
    d = points.shape[1]
    views = marginals_of_columns(d)
    edges = np.tile(np.linspace(0, 1, side + 1), (d, 1))
    cells = marginal_cells(np.asfortranarray(points), (edges, views))
    size = side ** len(views[0])
    counts = np.array([np.bincount(line[line >= 0], minlength=size) for line in cells.T], float)
    return MarginalTables(counts + rng.normal(0, sd, counts.shape), sd, edges, views)


def _small(count, d, rng):
    return _drawn(rng, count, [0.4, 0.6], [[0.3] * d, [0.7] * d], [0.06, 0.08])


def test_cells_become_narrow_where_the_units_are_whatever_the_range():
    rng = np.random.default_rng(20)
    points = 0.5 + 1e-3 * rng.normal(size=(20_000, 1))
    tables = _tables(points, 3.0, rng, side=128)
    edges = refine_edges(tables, 128)
    assert edges[0, 0] == 0
    assert edges[0, -1] == 1
    assert (np.diff(edges[0]) > 0).all()
    assert ((edges[0] > 0.49) & (edges[0] < 0.51)).sum() > 64


def test_denoised_counts_show_what_is_expected_where_there_is_only_noise():
    rng = np.random.default_rng(21)
    tables = _tables(_small(50_000, 2, rng), 0.0, rng)
    noisy = replace(tables, counts=tables.counts + rng.normal(0, 20.0, tables.counts.shape), sd=20.0)
    known, unknown = denoise(noisy, tables.counts), denoise(noisy, np.ones_like(tables.counts))
    assert min(known.min(), unknown.min()) >= 0
    errors = [np.abs(each - tables.counts).sum() for each in (known, unknown, noisy.counts)]
    assert errors[0] < errors[1] < errors[2]


@pytest.mark.parametrize("turn", [0.0, 0.7])
def test_moments_in_cells_agree_with_sampled_points(turn):
    rng = np.random.default_rng(22)
    covariance = np.array([[1.0, turn], [turn, 1.2]])
    edges = np.array([[-np.inf, -1, -0.5, 0, 0.5, 1, np.inf], [-np.inf, -1, -0.5, 0, 0.3, 1, np.inf]])
    masses, deviations, covariances = (
        part[0, 0] for part in cell_moments(edges[None], np.zeros((1, 1, 2)), covariance[None, None])
    )
    points = rng.multivariate_normal([0, 0], covariance, 200_000)
    cells = marginal_cells(np.asfortranarray(points), (edges, ((0, 1),)))[:, 0]
    assert math.isclose(masses.sum(), 1)
    for cell in np.flatnonzero(masses > 0.02):
        inside = points[cells == cell]
        assert math.isclose(len(inside) / len(points), masses[cell], abs_tol=0.003)
        assert np.allclose(inside.mean(axis=0), deviations[:, cell], atol=0.06)
        assert np.allclose(np.cov(inside.T), covariances[..., cell], atol=0.08)


def test_a_component_is_clipped_less_where_noise_is_weak():
    strong, weak, none = (clip_for_noise(10_000, sd, 2, in_l2=True) for sd in (1e3, 10, 1e-3))
    assert math.isclose(strong.radius, math.sqrt(2))
    assert math.isclose(strong.outer_radius, math.sqrt(6))
    assert strong.radius < weak.radius < weak.outer_radius < none.outer_radius == none.radius == 30


def test_points_beyond_the_radius_still_show_the_size_of_a_component_with_heavy_tails():
    d, rng = 5, np.random.default_rng(24)
    clip = clip_at(math.sqrt(5), 12.0, d, in_l2=True)
    public = np.zeros(1), np.zeros((1, d)), np.eye(d)[None], [(clip.radius, clip.outer_radius)], [clip.block_weights]
    points = rng.standard_t(4, size=(200_000, d))
    sums = whitened_em.component_sums(np.asfortranarray(points), public).sum(axis=0)
    moments = component_moments(sums, d, clip)
    norms = (points**2).sum(axis=1)
    assert math.isclose(moments.beyond, (np.clip(norms, 5, 144) - 5).mean(), rel_tol=1e-6)
    growth = shrunken_update(moments, 0.0, clip)[1]
    assert np.allclose(np.diagonal(growth) + 1, np.var(points), atol=0.15)


def _moments_of(mixture):
    weights, means, covariances = mixture
    second = covariances + means[:, :, None] * means[:, None]
    return weights.sum(), weights @ means, np.tensordot(weights, second, 1)


def _random_mixture(components, d, rng):
    halves = rng.normal(size=(components, d, d))
    covariances = halves @ halves.transpose(0, 2, 1) + np.eye(d)
    return GaussianMixtureParameters(
        rng.dirichlet(np.ones(components)), 5 * rng.normal(size=(components, d)), covariances
    )


@pytest.mark.parametrize(("d", "spread"), [(1, 18), (2, 9), (30, 1)])
def test_a_background_is_around_the_mean_of_all_and_at_least_as_wide_as_the_mixture(d, spread):
    mixture = _random_mixture(3, d, np.random.default_rng(30))
    _, mean, second = _moments_of(mixture)
    weights, means, covariances = add_background(mixture, 0.1)
    assert np.allclose(weights, [*mixture.weights * 0.9, 0.1])
    assert np.allclose(means[-1], mean)
    assert np.allclose(covariances[-1], spread * (second - np.outer(mean, mean)))


def test_the_two_most_similar_components_are_merged_and_all_moments_stay():
    pair = GaussianMixtureParameters(
        np.array([0.3, 0.2, 0.4, 0.1]),
        np.array([[0.0, 0.0], [5.0, 5.0], [0.2, 0.0], [0.0, 1.0]]),
        np.array([1.0, 1.0, 1.2, 9.0])[:, None, None] * np.eye(2),
    )
    merged = merge_most_similar(pair)
    assert np.allclose(merged.weights, [0.2, 0.1, 0.7])
    assert np.array_equal(merged.means[:2], pair.means[[1, 3]])
    for mixture in (pair, _random_mixture(5, 3, np.random.default_rng(31))):
        before, after = _moments_of(mixture), _moments_of(merge_most_similar(mixture))
        assert all(np.allclose(one, other) for one, other in zip(before, after, strict=True))


def test_noise_can_hide_more_where_it_is_stronger_and_many_tables_hide_no_more_than_one():
    rng = np.random.default_rng(32)
    one, three = (_tables(_small(10_000, d, rng), 0.0, rng) for d in (2, 3))
    assert math.isclose(hidden_share(replace(one, sd=20.0)), 0.001)
    assert math.isclose(hidden_share(replace(three, sd=20.0 * math.sqrt(3))), 0.001)  # a unit is in all three tables
    assert hidden_share(replace(one, sd=1e5)) == MAX_SHARE


def _plain_plan(**settings):
    return whitened_em.plan(2, np.full(2, -10.0), np.full(2, 10.0), **settings)


def _in_the_cube(weights, means, sd):
    means = (np.array(means) + 10) / 20
    return GaussianMixtureParameters(np.array(weights), means, np.tile((sd / 20) ** 2 * np.eye(2), (len(means), 1, 1)))


def test_a_gain_is_how_much_more_likely_a_row_is_up_to_a_limit():
    plan, rng = _plain_plan(), np.random.default_rng(33)
    first, second = (_in_the_cube([0.3, 0.7], rng.uniform(-5, 5, (2, 2)), sd) for sd in (1.0, 2.0))
    rows = np.asfortranarray(rng.uniform(-10, 10, (500, 2)))
    public = [*whitened_em._density_values(plan, first), *whitened_em._density_values(plan, second)]
    gains = whitened_em.likelihood_gains(rows, (*public, 0.5))
    cube = (rows + 10) / 20
    exact = [np.logaddexp.reduce(log_densities(cube, *mixture), axis=1) for mixture in (first, second)]
    assert np.allclose(gains[:, 0], np.clip((exact[1] - exact[0]) / 0.5, -1, 1))
    assert gains.min() == -1
    assert gains.max() == 1


@pytest.mark.parametrize(("far", "epsilon", "most", "least"), [(800, "1", 9, 9), (0, "1", 0, 0), (0, "1/1000", 2, 0)])
def test_a_background_is_chosen_if_units_far_from_all_components_show_through_the_noise(far, epsilon, most, least):
    plan, rng = _plain_plan(), np.random.default_rng(34)
    points = np.concatenate(
        [rng.normal(centre, 0.5, (4600, 2)) for centre in (-3, 3)] + [rng.uniform(-10, 10, (far, 2))]
    )
    tables = _tables((points + 10) / 20, 5.0, rng)
    start = _in_the_cube([0.4, 0.3, 0.3], [[-3, -3], [3, 3], [3, 3]], 0.5)
    chosen = []
    for seed in range(9):
        session = _Seeded(points, plan, Fraction(epsilon), Fraction("1e-6"), seed)
        del session._parts[:3]  # of the tables
        found = whitened_em._better_with_background(session, plan, start, tables)
        chosen += [found] if found is not start else []
    assert least <= len(chosen) <= most
    assert all(len(each.weights) == 3 for each in chosen)
    assert all(
        each.weights[0] * each.weights[1] > 0.2 for each in chosen
    )  # what was at the same place is one component


def test_a_single_gaussian_stays_single_when_backgrounds_are_compared():
    plan, rng = _plain_plan(), np.random.default_rng(35)
    points, start = _two(2000, 2), _in_the_cube([1.0], [[0, 0]], 0.5)
    session = _Seeded(points, plan, Fraction(4), Fraction("1e-6"))
    assert whitened_em._better_with_background(session, plan, start, _tables(points, 1.0, rng)) is start


@pytest.mark.long
def test_nobody_is_astronomically_far_from_a_mixture_if_a_component_can_be_spared():
    rng = np.random.default_rng(36)
    points = _drawn(rng, 3000, [0.5, 0.5], [[-1, 0], [1, 0]], [0.3, 0.3])
    mixture = _fitted(points, 3, 1)
    assert _mean_log_density(np.array([[9.0, 9.0]]), mixture) > -100  # -900 without a background
    assert _mean_log_density(points, mixture) > -1.2
    tied = _fitted(points, 3, 1, covariance_type="tied")  # a background cannot be wide
    assert tied.weights.min() > 0.01 > mixture.weights.min()


def test_a_wider_component_is_not_taken_for_one_with_heavy_tails():
    d, rng = 5, np.random.default_rng(37)
    clip = clip_at(math.sqrt(5), 12.0, d, in_l2=True)
    public = np.zeros(1), np.zeros((1, d)), np.eye(d)[None], [(clip.radius, clip.outer_radius)], [clip.block_weights]
    points = rng.normal(0, math.sqrt(1.1), (400_000, d))
    sums = whitened_em.component_sums(np.asfortranarray(points), public).sum(axis=0)
    growth = shrunken_update(component_moments(sums, d, clip), 0.0, clip)[1]
    assert np.allclose(growth, 0.1 * np.eye(d), atol=0.02)


def test_initial_components_are_no_narrower_than_the_cells():
    edges = np.array([[0.0, 0.1, 0.5, 1.0], [0.0, 0.6, 0.9, 1.0]])
    tables = MarginalTables(np.zeros((1, 9)), 1.0, edges, ((0, 1),))
    assert np.allclose(tables.cell_variances(np.array([0.2, 0.95])), np.array([0.4, 0.1]) ** 2 / 12)
    rows = np.full((5000, 2), 0.37)
    tables = replace(_tables(rows, 0.0, np.random.default_rng(25)), sd=3.0)
    rng = np.random.default_rng(26)
    guesses = _initial_guesses(tables, 3, artificial_points(tables, 1000, rng), rng)
    assert np.linalg.eigvalsh(guesses.covariances).min() >= 0.999 / 16**2 / 12


@pytest.mark.parametrize("d", [1, 2, 3])
def test_likelihood_ascent_reaches_the_true_mixture(d):
    rng = np.random.default_rng(7)
    tables = _tables(_small(50_000, d, rng), 5.0, rng)
    away = Mixtures(
        np.full((1, 2), 25_000.0), np.array([[[0.2] * d, [0.8] * d]]), np.tile(0.01 * np.eye(d), (1, 2, 1, 1))
    )
    found, height = refine_mixtures(tables, away, np.full((1, 2, 1, 1), 0.005) * np.eye(d), 20)
    assert height[0] > mixtures_log_likelihood(tables, away)[0]
    assert np.allclose(found.means[0], [[0.3] * d, [0.7] * d], atol=0.01)
    assert np.allclose(found.sizes[0], [20_000, 30_000], rtol=0.05)
    assert np.allclose(found.covariances[0, 0], 0.06**2 * np.eye(d), atol=4e-4)


@pytest.mark.long
def test_a_start_with_very_many_numbers_has_diagonal_covariances():
    rng = np.random.default_rng(8)
    tables = _tables(_small(2000, 12, rng), 5.0, rng, side=8)
    assert parameter_layout(tables, 2).diagonal is False
    assert parameter_layout(tables, 20).diagonal is True
    start = best_initial_mixture(tables, [8])
    assert np.linalg.eigvalsh(start.covariances).min() > 0


def test_artificial_points_have_the_tables_pairs():
    rng = np.random.default_rng(9)
    tables = _tables(_small(50_000, 3, rng), 5.0, rng)
    points = artificial_points(tables, 4000, rng).points
    both = (points > 0.5).sum(axis=1)
    assert np.isin(both, [0, 3]).mean() > 0.9
    assert abs((both == 3).mean() - 0.6) < 0.15


@pytest.mark.long
def test_the_tables_choose_how_many_components_there_are():
    rng = np.random.default_rng(10)
    tables = _tables(_small(50_000, 2, rng), 5.0, rng, side=32)
    assert len(best_initial_mixture(tables, [1, 2, 4]).weights) == 2
    nothing = replace(tables, counts=rng.normal(0, 50.0, tables.counts.shape), sd=50.0)
    assert len(best_initial_mixture(nothing, [1, 4]).weights) == 1


@pytest.mark.parametrize("d", [1, 2, 4])
def test_two_clear_components_are_found(d):
    points = _two(50_000, d)
    weights, means, covariances = _fitted(points, 2, 2)
    order = np.argsort(means[:, 0])
    assert np.allclose(weights[order], [0.3, 0.7], atol=0.03)
    assert np.allclose(means[order], [[-4.0] * d, [3.0] * d], atol=0.2)
    assert np.allclose(covariances[order[1]], 2.25 * np.eye(d), atol=0.4)


def test_pure_epsilon_works_too():
    means = _fitted(_two(100_000, 2), 2, 4, delta="0")[1]
    assert np.allclose(np.sort(means[:, 0]), [-4, 3], atol=0.5)


@pytest.mark.parametrize("kind", ["tied", "diag", "spherical"])
def test_covariances_are_of_the_wanted_kind(kind):
    covariances = _fitted(_two(20_000, 3), 2, 2, covariance_type=kind)[2]
    diagonals = np.diagonal(covariances, axis1=1, axis2=2)
    if kind == "tied":
        assert np.allclose(covariances[0], covariances[1])
    else:
        assert np.allclose(covariances, diagonals[..., None] * np.eye(3))
    if kind == "spherical":
        assert np.allclose(diagonals, diagonals[:, :1])


@pytest.mark.long(but=["0-1-0", "3-1/1000-1e-6"])
@pytest.mark.parametrize("delta", ["0", "1e-6"])
@pytest.mark.parametrize(("count", "epsilon"), [(0, "1"), (3, "1/1000"), (2000, "1/100")])
def test_a_mixture_is_valid_however_large_the_noise(count, epsilon, delta):
    points = _two(count, 3)
    plan = whitened_em.plan(4, np.full(3, -10.0), np.full(3, 10.0))
    assert _is_valid(whitened_em.fit(_session(points, plan, epsilon, delta), plan), 4)


def test_rows_that_are_all_the_same_give_a_valid_mixture():
    plan = whitened_em.plan(3, np.full(2, -10.0), np.full(2, 10.0))
    assert _is_valid(whitened_em.fit(_session(np.full((20_000, 2), 10.0), plan, 1), plan), 3)


@pytest.mark.long
def test_under_strong_noise_it_is_mostly_better_than_one_gaussian():
    points, fresh = _two(2000, 2), _two(5000, 2, seed=1)
    losses = [
        _mean_log_density(fresh, _fitted(points, 1, "1/5", seed=seed))
        - _mean_log_density(fresh, _fitted(points, 6, "1/5", seed=seed))
        for seed in range(8)
    ]
    assert np.median(losses) < 0
    assert np.mean(losses) < 0
    assert max(losses) < 0.1  # noise seldom passes for a component


@pytest.mark.long
def test_the_same_released_numbers_give_the_same_mixture():
    points = _two(5000, 2)
    first, second = _fitted(points, 3, 1), _fitted(points, 3, 1)
    assert all(np.array_equal(one, other) for one, other in zip(first, second, strict=True))


def test_a_units_rows_count_as_one():
    rng = np.random.default_rng(11)
    unit = np.repeat(np.arange(20_000), 3)
    points = np.repeat(_two(20_000, 2), 3, axis=0) + rng.normal(0, 0.1, (60_000, 2))
    plan = whitened_em.plan(2, np.full(2, -10.0), np.full(2, 10.0))
    means = whitened_em.fit(_session(points, plan, 4, unit=unit), plan).means
    assert np.allclose(np.sort(means[:, 0]), [-4, 3], atol=0.3)


def test_a_plan_is_known_before_any_data():
    plan = whitened_em.plan([3, 1, 3], np.zeros(2), np.ones(2), n_iter=4)
    assert plan.candidates == (1, 3)
    assert plan.shares[:4] == (1, 1, 8, 1)
    assert sum(plan.shares) == 26
    assert all(later / earlier == Fraction(3, 2) for earlier, later in pairwise(plan.shares[4:]))
    many = whitened_em.plan(2, np.zeros(20), np.ones(20))
    assert (many.rounds, sum(many.shares)) == (3, 40)


@pytest.mark.parametrize(
    ("components", "settings"), [(0, {}), ([], {}), (2, {"n_iter": 0}), (2, {"covariance_type": "round"})]
)
def test_a_plan_that_cannot_be_kept_is_refused(components, settings):
    with pytest.raises(ValueError):
        whitened_em.plan(components, np.zeros(2), np.ones(2), **settings)


@pytest.mark.long
def test_ten_columns_are_fitted_nearly_as_well_as_if_the_truth_were_known():
    rng = np.random.default_rng(12)
    truth = np.array([0.2, 0.3, 0.5]), rng.uniform(-5, 5, (3, 10)), np.array([0.6, 1.0, 1.4])
    points, fresh = _drawn(rng, 20_000, *truth), _drawn(rng, 10_000, *truth)
    known = truth[0], truth[1], truth[2][:, None, None] ** 2 * np.eye(10)
    assert _mean_log_density(fresh, known) - _mean_log_density(fresh, _fitted(points, 3, 4)) < 0.1


@pytest.mark.parametrize("wrong", [2.5, "3", 0, 10**6, [], [2, 0]])
def test_the_number_of_components_is_a_small_integer(wrong):
    with pytest.raises((TypeError, ValueError), match="n_components"):
        whitened_em.plan(wrong, np.zeros(2), np.ones(2))
