"""DP-EM keeps its promise: one unit moves each sum by no more than claimed, and the noises add up to the budget."""

import dataclasses
import math
import os
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from sklearn.mixture import GaussianMixture

import discreet as dc
from discreet import Gaussian, Laplace, Loss
from discreet.kernel.model_release import check_row_wise
from discreet.kernel.reservation import CLIP_RADIUS
from discreet.learn.fit_session import FitSession, FitSource
from discreet.learn.mixture import dp_em, input_noise
from discreet.learn.mixture.composition import composed_epsilon, mechanism_for, split_budget
from discreet.learn.mixture.density import log_densities
from discreet.learn.row_sources import array_rows

DATA = Path(os.environ.get("DISCREET_DATA", "../shared/data"))
KINDS = ("linear", "advanced", "zcdp")
DELTA = Fraction(1, 10**6)


class Standin:
    """The door with noise of a given generator, or none: the same law up to the grid, and the same every time."""

    def __init__(self, rows, noises, rng=None):
        self.rows, self.noises, self.rng, self.asked = np.asfortranarray(rows), list(noises), rng, []

    def sum(self, rule, public, *, size, radius):
        noise = self.noises.pop(0)
        l1 = isinstance(noise, Laplace)
        self.asked.append((rule, public, size, radius, 1 if l1 else 2))
        vectors = rule(self.rows, public)
        assert vectors.shape == (len(self.rows), size)
        norms = np.linalg.norm(vectors, ord=1 if l1 else 2, axis=1)
        vectors = vectors * np.minimum(1, radius / np.maximum(norms, 1e-300))[:, None]
        scale = float(noise.scale) / CLIP_RADIUS * radius
        if self.rng is None:
            return vectors.sum(axis=0)
        drawn = self.rng.laplace(0, scale, size) if l1 else self.rng.normal(0, scale, size)
        return vectors.sum(axis=0) + drawn


def ends(d, reach=1.0):
    return np.full(d, -reach), np.full(d, reach)


def mixture(rng, components, d):
    means = rng.uniform(-0.7, 0.7, (components, d))
    turns = np.linalg.qr(rng.normal(size=(components, d, d)))[0]
    variances = rng.uniform(0.06, 0.15, (components, 1, d)) ** 2
    return dp_em.GaussianMixtureParameters(
        rng.dirichlet(np.full(components, 5.0)), means, turns * variances @ turns.transpose(0, 2, 1)
    )


def sample(rng, found, count):
    labels = rng.choice(len(found.weights), count, p=found.weights)
    factors = np.linalg.cholesky(found.covariances)[labels]
    return found.means[labels] + np.einsum("nij,nj->ni", factors, rng.normal(size=(count, found.means.shape[1])))


def score(points, found):
    return float(np.logaddexp.reduce(log_densities(points, *found), axis=1).mean())


# How a budget is divided.


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("laws", [[Gaussian] * 110, [Laplace] * 60 + [Gaussian] * 50, [Laplace] * 30, [Gaussian]])
@pytest.mark.parametrize(("epsilon", "delta"), [("0.1", DELTA), (1, "1e-4"), (4, "1e-9"), ("1e-6", "1e-30")])
def test_parts_add_up_to_the_budget_and_nearly_use_it(kind, laws, epsilon, delta):
    parts = split_budget(epsilon, delta, laws, kind)
    total = composed_epsilon(parts, delta, kind)
    assert Fraction(epsilon) * Fraction(99, 100) <= total <= Fraction(epsilon)
    for law, part in zip(laws, parts, strict=True):
        assert law is Gaussian or (part.epsilon and not part.delta)
    if kind != "zcdp":
        assert sum(part.delta for part in parts) <= Fraction(delta)


def exact_delta(each, count, epsilon):
    """Return the least delta of `count` coins whose losses are ±each: nothing of that epsilon each is worse."""
    p = 1 / (1 + math.exp(-each))
    outcomes = range(count + 1)
    return math.fsum(
        math.comb(count, j)
        * max(0.0, p**j * (1 - p) ** (count - j) - math.exp(epsilon) * p ** (count - j) * (1 - p) ** j)
        for j in outcomes
    )


@pytest.mark.parametrize("epsilon", [0.1, 1, 4, 20])
@pytest.mark.parametrize("count", [2, 30, 110, 300])
def test_advanced_bound_is_above_the_exact_delta(epsilon, count):
    parts = split_budget(epsilon, "1e-6", [Laplace] * count, "advanced")
    exact = exact_delta(float(parts[0].epsilon), count, epsilon)
    assert exact <= 1e-6
    more = exact_delta(1.5 * float(parts[0].epsilon), count, epsilon)
    assert more > 1e-6  # so the bound says something


def test_advanced_composition_of_few_releases_is_the_plain_sum():
    assert split_budget(4, DELTA, [Gaussian] * 2, "advanced") == split_budget(4, DELTA, [Gaussian] * 2, "linear")


@pytest.mark.parametrize("epsilon", ["0.01", "0.1", "0.5", 1, 4, 10])
@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
@pytest.mark.parametrize("neighbours", ["removal", "replacement"])
def test_the_better_composition_has_the_smaller_noise(epsilon, noise, neighbours):
    units = 1000 if neighbours == "replacement" else None
    plans = [
        dp_em.plan(
            5,
            *ends(2),
            epsilon=epsilon,
            delta=DELTA,
            noise=noise,
            composition=kind,
            neighbours=neighbours,
            n_units=units,
        )
        for kind in KINDS
    ]
    for place in (0, 1, 6):  # weights, a mean, a covariance
        linear, advanced, zcdp = (float(plan.noises[place].scale) for plan in plans)
        assert linear > 1.2 * advanced
        assert advanced > 1.05 * zcdp


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ((0, DELTA, [Laplace], "linear"), "epsilon"),
        ((1, DELTA, [], "linear"), "releases"),
        ((1, DELTA, [Laplace], "renyi"), "composition"),
        ((1, 0, [Laplace], "zcdp"), "delta"),
        ((1, 0, [Laplace, Gaussian], "linear"), "delta"),
        ((1, 1, [Gaussian], "advanced"), "delta"),
    ],
)
def test_a_budget_that_cannot_be_divided_is_refused(given, words):
    with pytest.raises(ValueError, match=words):
        split_budget(*given)


def test_losses_without_an_epsilon_have_no_plain_sum():
    with pytest.raises(ValueError, match="delta"):
        composed_epsilon([Loss(None, 1)], DELTA, "linear")
    with pytest.raises(ValueError, match="delta"):
        composed_epsilon([Loss(1, None, DELTA)], DELTA / 2, "advanced")
    with pytest.raises(ValueError, match="Laplace"):
        mechanism_for(Laplace, Loss(1, None, DELTA), dc.Sensitivity(1, 1))


# The plan.


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
@pytest.mark.parametrize("moved", [1, 2])
def test_noise_scales_cost_what_was_requested(kind, noise, moved):
    neighbours, units = ("removal", None) if moved == 1 else ("replacement", 500)
    plan = dp_em.plan(
        3, *ends(4), epsilon=1, delta=DELTA, noise=noise, composition=kind, neighbours=neighbours, n_units=units
    )
    laws = [Gaussian if noise == "gaussian" else Laplace] * 4 + [Gaussian] * 3
    assert [type(each) for each in plan.noises] == laws * 10
    parts = split_budget(1, DELTA, laws * 10, kind)
    for each, part in zip(plan.noises, parts, strict=True):
        ratio = each.scale / (moved * CLIP_RADIUS)
        if isinstance(each, Laplace):
            assert 1 / ratio <= part.epsilon
        elif kind == "zcdp":
            assert 1 / (2 * ratio * ratio) <= part.rho
        else:
            assert dc.privacy.gaussian_delta(ratio, part.epsilon) <= float(part.delta) * (1 + 1e-9)
            assert dc.privacy.gaussian_delta(ratio * Fraction(99, 100), part.epsilon) > float(part.delta)
    told = dc.privacy.to_epsilon(plan.loss, DELTA)
    assert told <= 1
    assert kind != "zcdp" or told > Fraction(999, 1000)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"n_components": 0}, "n_components"),
        ({"n_iterations": 0}, "n_iterations"),
        ({"delta": 0}, "delta"),
        ({"epsilon": 0}, "epsilon"),
        ({"noise": "uniform"}, "noise"),
        ({"composition": "none"}, "composition"),
        ({"neighbours": "replacement"}, "n_units"),
        ({"n_units": 10}, "n_units"),
        ({"neighbours": "any"}, "neighbours"),
        ({"variance_floor": 0.0}, "variance_floor"),
        ({"prior": dp_em.MixturePrior(0.5, 1.0, np.zeros(2), 4.0, np.eye(2))}, "prior"),
        ({"start": dp_em.GaussianMixtureParameters(np.ones(1), np.zeros((1, 2)), np.ones((1, 2, 2)))}, "start"),
        (
            {"start": dp_em.GaussianMixtureParameters(np.array([1.0, 0.0]), np.zeros((2, 2)), np.ones((2, 2, 2)))},
            "start",
        ),
    ],
)
def test_an_invalid_plan_is_refused(given, words):
    told = {"n_components": 2, "low": -np.ones(2), "high": np.ones(2), "epsilon": 1, "delta": DELTA} | given
    with pytest.raises(ValueError, match=words):
        dp_em.plan(**told)


# How far one unit moves a sum.


def corner_owners(d):
    """Return a mixture in which one wide component owns most corners, and a narrow one owns a corner of its own."""
    means = np.stack([np.zeros(d), np.full(d, 0.98), np.full(d, -0.3)])
    widths = np.array([0.5, 0.05, 0.1])[:, None, None] ** 2
    return dp_em.GaussianMixtureParameters(np.array([0.4, 0.3, 0.3]), means, widths * np.eye(d))


def asked_for(d, noise):
    plan = dp_em.plan(3, *ends(d), epsilon=1, delta=DELTA, noise=noise, n_iterations=1, start=corner_owners(d))
    session = Standin(np.zeros((1, d)), plan.noises)
    dp_em.fit(session, plan)
    return session.asked


def farthest(rng, d, distance):
    """Return the largest distance found between two points' vectors: many random pairs, then climbing from the best."""
    first, second = rng.uniform(-1, 1, (2, 3000, d))
    for points in (first, second):
        points[:1000] = rng.choice([-1.0, 1.0], (1000, d))
    best = distance(first, second)
    kept = np.argsort(-best)[:50]
    first, second, best = first[kept], second[kept], best[kept]
    for step in np.geomspace(1, 1e-3, 60):
        near = [np.clip(points + rng.normal(0, step, points.shape), -1, 1) for points in (first, second)]
        found = distance(*near)
        better = found > best
        first[better], second[better], best[better] = near[0][better], near[1][better], found[better]
    return best.max()


@pytest.mark.long(only=["gaussian-6"])
@pytest.mark.parametrize("d", [2, 3, 6])
@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_one_unit_moves_each_sum_by_no_more_than_claimed(d, noise):
    rng = np.random.default_rng(d)
    seen = {}
    for rule, public, _, radius, order in asked_for(d, noise):

        def told(points, rule=rule, public=public):
            return rule(np.asfortranarray(points), public)

        removed = farthest(rng, d, lambda a, _, told=told, order=order: np.linalg.norm(told(a), order, axis=1))
        replaced = farthest(
            rng, d, lambda a, b, told=told, order=order: np.linalg.norm(told(a) - told(b), order, axis=1)
        )
        assert removed <= radius * (1 + 1e-12)
        assert replaced <= 2 * radius * (1 + 1e-12)
        low = seen.get(rule.__name__, (0, 0))
        seen[rule.__name__] = max(low[0], removed / radius), max(low[1], replaced / radius)
    # What is attained. Two shares, and two matrices xxᵀ, are never opposite: there replacing costs but sqrt(2) in l2,
    # and a little less where no two corners of the bounds are orthogonal.
    attained = {
        "responsibilities": (1, 2 if noise == "laplace" else math.sqrt(2)),
        "first_moments": (1, 2),
        "second_moments": (1, math.sqrt(2 - 2 * (d % 2) / d**2)),
    }
    for name, (removed, replaced) in attained.items():
        assert seen[name] == pytest.approx((removed, replaced), rel=0.02), name


@pytest.mark.long(only=["10"])
@pytest.mark.parametrize("d", [1, 3, 10])
def test_each_sum_depends_on_one_row_at_a_time(d):
    rng = np.random.default_rng(d)
    start = mixture(rng, 9, d)
    plan = dp_em.plan(9, *ends(d), epsilon=1, delta=DELTA, n_iterations=2, start=start)
    session = Standin(sample(rng, start, 500), plan.noises, rng)
    dp_em.fit(session, plan)
    for rule, public, _, _, _ in session.asked:
        check_row_wise(rule, public, *ends(d))


def test_noise_that_is_scaled_by_a_noisy_size_is_too_small_in_half_of_the_runs():
    rng = np.random.default_rng(7)
    (of_sizes, public, *_), (of_means, of_first, *_) = asked_for(2, "gaussian")[:2]
    corner, exceeded, runs = np.array([[-1.0, 1.0]]), 0, 400
    for _ in range(runs):
        rest = rng.uniform(-1, 1, (99, 2))
        here, there = (np.asfortranarray(np.concatenate([rest, point])) for point in (corner, -corner))
        sizes = [of_sizes(rows, public).sum(axis=0)[0] for rows in (here, there)]
        sums = [of_means(rows, of_first).sum(axis=0) for rows in (here, there)]
        assert np.linalg.norm(sums[0] - sums[1]) <= 2 + 1e-9  # the sums move as claimed, whoever is there
        moved = np.linalg.norm(sums[0] / sizes[0] - sums[1] / sizes[1])
        exceeded += moved > 2 / (sizes[0] + rng.normal(0, 5)) * (1 + 1e-6)  # what the noisy size promises
    assert 0.4 < exceeded / runs < 0.6


def test_noise_scaled_by_the_exact_size_discloses_that_size():
    """Two units in a component, or one: Laplace noise of scale 2·sqrt(d)/size, claimed to cost epsilon 1."""
    rng = np.random.default_rng(7)
    two, one = math.sqrt(2) * 2 / 2, math.sqrt(2) * 2 / 1
    seen = np.abs(rng.laplace(0, one, (10_000, 2))).sum(axis=1)
    loss = seen / two - seen / one + 2 * math.log(two / one)
    assert np.mean(loss > 1) > 0.25


# What is made of the sums.


def test_without_noise_it_is_expectation_maximisation():
    rng = np.random.default_rng(1)
    truth = mixture(rng, 3, 2)
    rows = np.clip(sample(rng, truth, 3000), -1, 1)
    start = truth._replace(means=truth.means + 0.1, weights=np.full(3, 1 / 3))
    plan = dp_em.plan(3, *ends(2), epsilon=10**6, delta=DELTA, start=start, variance_floor=1e-9)
    found = dp_em.fit(Standin(rows, plan.noises), plan)
    with pytest.warns(match="converge"):
        peer = GaussianMixture(
            3,
            weights_init=start.weights,
            means_init=start.means,
            precisions_init=np.linalg.inv(start.covariances),
            max_iter=10,
            tol=0,
            reg_covar=0,
        ).fit(rows)
    assert found.weights == pytest.approx(peer.weights_, abs=1e-6)
    assert found.means == pytest.approx(peer.means_, abs=1e-6)
    assert found.covariances == pytest.approx(peer.covariances_, abs=1e-6)


def test_with_a_prior_it_is_the_map_estimate_in_data_units():
    rng = np.random.default_rng(2)
    low, high = np.array([0.0, -10.0]), np.array([4.0, 30.0])
    rows = rng.uniform([1, 0], [3, 20], (50, 2))
    prior = dp_em.MixturePrior(2.0, 10.0, np.array([3.5, -5.0]), 7.0, np.array([[2.0, 1.0], [1.0, 90.0]]))
    plan = dp_em.plan(1, low, high, epsilon=10**6, delta=DELTA, n_iterations=1, prior=prior, variance_floor=1e-9)
    found = dp_em.fit(Standin(rows, plan.noises), plan)
    mean = rows.mean(axis=0)
    away = mean - prior.mean
    scatter = prior.scatter + (rows - mean).T @ (rows - mean) + 10 * 50 / 60 * np.outer(away, away)
    assert found.means[0] == pytest.approx((10 * prior.mean + 50 * mean) / 60)
    assert found.covariances[0] == pytest.approx(scatter / (7 + 50 + 2 + 2))


def test_a_prior_of_weights_draws_them_together():
    start = corner_owners(2)
    rows = np.repeat([[-1.0, -1.0], [0.98, 0.98]], [90, 10], axis=0)
    weights = []
    for prior in (None, dp_em.MixturePrior(51.0, 0.0, np.zeros(2), 1.0, np.zeros((2, 2)))):
        plan = dp_em.plan(3, *ends(2), epsilon=10**6, delta=DELTA, n_iterations=1, start=start, prior=prior)
        weights.append(dp_em.fit(Standin(rows, plan.noises), plan).weights)
    plain, drawn = weights
    # Nobody is in the third component: its size is counted as 1.
    assert plain == pytest.approx(np.array([90, 10, 1]) / 101, abs=1e-3)
    assert drawn == pytest.approx(np.array([140, 60, 51]) / 251, abs=1e-3)


def test_a_public_number_of_units_replaces_the_sum_of_noisy_sizes():
    scripted = [np.array([30.0, 10.0]), np.array([8.0]), np.array([-2.0]), np.array([5.0]), np.array([3.0])]

    class Told:
        def __init__(self):
            self.left = list(scripted)

        def sum(self, rule, public, *, size, radius):
            return self.left.pop(0)

    start = dp_em.GaussianMixtureParameters(np.full(2, 0.5), np.array([[0.0], [0.5]]), np.ones((2, 1, 1)))
    found = {}
    for neighbours, units in (("removal", None), ("replacement", 80)):
        plan = dp_em.plan(
            2, *ends(1), epsilon=10**9, delta=DELTA, n_iterations=1, neighbours=neighbours, n_units=units, start=start
        )
        found[neighbours] = dp_em.fit(Told(), plan)
    assert found["removal"].weights == pytest.approx(found["replacement"].weights)
    assert found["removal"].means[:, 0] == pytest.approx([8 / 30, -2 / 10])
    assert found["replacement"].means[:, 0] == pytest.approx([8 / 60, -2 / 20])


@pytest.mark.parametrize("epsilon", ["0.0001", 1])
@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_little_data_and_much_noise_still_give_a_mixture(epsilon, noise):
    d = 3
    plan = dp_em.plan(4, *ends(d, 5.0), epsilon=epsilon, delta=DELTA, noise=noise, n_iterations=5)
    rows = np.random.default_rng(3).normal(size=(20, d))
    session = FitSession(FitSource(array_rows(rows, ends(d, 5.0))), plan.noises, plan.loss, "test", plan.neighbours)
    weights, means, covariances = dp_em.fit(session, plan)
    assert weights.sum() == pytest.approx(1)
    assert weights.min() > 0
    assert np.abs(means).max() <= 5 * (1 + 1e-9)
    assert np.linalg.eigvalsh(covariances).min() > 0
    assert np.isfinite(covariances).all()


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
@pytest.mark.parametrize("units", [None, 20_000])
def test_with_real_noise_it_finds_two_clusters(noise, units):
    rng = np.random.default_rng(4)
    rows = np.concatenate([rng.normal([-2, 1], 0.5, (8_000, 2)), rng.normal([2, -1], 0.5, (12_000, 2))])
    start = dp_em.GaussianMixtureParameters(
        np.full(2, 0.5), np.array([[-1.0, 0.0], [1.0, 0.0]]), np.tile(np.eye(2), (2, 1, 1))
    )
    neighbours = "removal" if units is None else "replacement"
    plan = dp_em.plan(
        2, *ends(2, 5.0), epsilon=100, delta=DELTA, noise=noise, neighbours=neighbours, n_units=units, start=start
    )
    session = FitSession(FitSource(array_rows(rows, ends(2, 5.0))), plan.noises, plan.loss, "test", neighbours)
    found = dp_em.fit(session, plan)
    assert found.weights == pytest.approx([0.4, 0.6], abs=0.02)
    assert found.means == pytest.approx(np.array([[-2, 1], [2, -1]]), abs=0.1)
    assert found.covariances == pytest.approx(np.tile(np.eye(2) / 4, (2, 1, 1)), abs=0.15)
    assert session.loss.neighbours == neighbours


# Noise on the input.


class Drawn:
    """Gaussian noise of a given generator in the place of the real one, which keeps what it was given."""

    def __init__(self, scale, rng):
        self.scale, self.rng, self.given = scale, rng, None

    def perturb(self, values):
        self.given = values
        return values + np.rint(self.rng.normal(0, float(self.scale), values.shape)).astype(np.int64)


def with_drawn_noise(plan, rng):
    return dataclasses.replace(plan, noise=Drawn(plan.noise.scale, rng))


@pytest.mark.parametrize("d", [1, 2, 3, 10])
def test_noisy_rows_hide_the_diameter_of_the_ball(d):
    rng = np.random.default_rng(d)
    rows = rng.choice([-1e300, -1.0, 0.0, 1.0, 1e9, np.inf, -np.inf, np.nan], (4000, d))
    rows[:1000] = rng.uniform(-2, 2, (1000, d))
    plan = input_noise.plan(2, *ends(d), epsilon=1, delta=DELTA)
    kept = with_drawn_noise(plan, rng)
    assert np.isfinite(input_noise.noisy_rows(rows, kept)).all()
    given = kept.noise.given
    assert given.dtype == np.int64
    apart = (given - given[rng.permutation(len(given))]).astype(object)
    squares = (apart * apart).sum(axis=1)
    assert max(squares) <= input_noise.row_sensitivity(d).l2_squared <= (2 * CLIP_RADIUS) ** 2
    assert max((given.astype(object) ** 2).sum(axis=1)) >= 0.999 * CLIP_RADIUS**2
    ratio = plan.noise.scale / Fraction(math.sqrt(input_noise.row_sensitivity(d).l2_squared))
    assert dc.privacy.gaussian_delta(ratio, 1) <= float(DELTA) * (1 + 1e-9)
    assert dc.privacy.gaussian_delta(ratio * Fraction(99, 100), 1) > float(DELTA)
    assert plan.neighbours == "replacement"


def test_a_missing_number_counts_as_the_middle():
    plan = input_noise.plan(1, np.array([0.0, 0.0]), np.array([4.0, 2.0]), epsilon=1, delta=DELTA)
    kept = with_drawn_noise(plan, np.random.default_rng(0))
    input_noise.noisy_rows(np.array([[np.nan, 1.0], [2.0, np.nan]]), kept)
    assert kept.noise.given.tolist() == [[0, 0], [0, 0]]


@pytest.mark.long
def test_the_variance_of_the_noise_is_subtracted():
    rng = np.random.default_rng(5)
    rows = rng.multivariate_normal([1, 2], [[1, 0.6], [0.6, 1]], 20_000)
    plan = input_noise.plan(1, *ends(2, 5.0), epsilon=100, delta=DELTA)
    noise = (float(plan.noise.scale) / CLIP_RADIUS * 5 * math.sqrt(2)) ** 2
    assert noise > 1  # more than the data's own
    found = input_noise.fit(rows, with_drawn_noise(plan, rng))
    assert found.means[0] == pytest.approx([1, 2], abs=0.1)
    assert found.covariances[0] == pytest.approx(np.array([[1, 0.6], [0.6, 1]]), abs=0.15)


def test_input_noise_still_gives_a_mixture_of_few_rows():
    plan = input_noise.plan(3, *ends(4, 2.0), epsilon="0.01", delta=DELTA)
    weights, means, covariances = input_noise.fit(np.zeros((20, 4)), plan)
    assert weights.sum() == pytest.approx(1)
    assert np.abs(means).max() <= 2 * (1 + 1e-9)
    assert np.linalg.eigvalsh(covariances).min() > 0


# The paper's picture: how near each comes to the non-private likelihood, at equal neighbours.


def gaps(rng, rows, test, *, box, components, delta, start):
    """Return the loss in test log-likelihood of each way, below scikit-learn's."""
    peer = GaussianMixture(components, n_init=3, random_state=0).fit(rows).score(test)
    found = {}
    for noise in ("gaussian", "laplace"):
        for kind in KINDS:
            plan = dp_em.plan(
                components,
                *box,
                epsilon=1,
                delta=delta,
                noise=noise,
                composition=kind,
                neighbours="replacement",
                n_units=len(rows),
                start=start,
            )
            found[noise, kind] = peer - score(test, dp_em.fit(Standin(np.clip(rows, *box), plan.noises, rng), plan))
    plan = with_drawn_noise(input_noise.plan(components, *box, epsilon=1, delta=delta), rng)
    found["input"] = peer - score(test, input_noise.fit(rows, plan))
    return found


def check_order(found):
    for noise in ("gaussian", "laplace"):
        linear, advanced, zcdp = (found[noise, kind] for kind in KINDS)
        assert linear > advanced > zcdp > 0, noise
        assert found["input"] > zcdp


def spread_start(rng, components, box):
    start = dp_em.random_start(components, len(box[0]))
    start = start._replace(means=rng.uniform(-0.5, 0.5, start.means.shape))
    return dp_em.unit_ball_around(*box).to_data(start)


@pytest.mark.long
def test_the_order_of_the_compositions_is_the_papers(monkeypatch):
    runs = []
    for number in range(6):
        rng = np.random.default_rng(1000 + number)
        truth = mixture(rng, 3, 2)
        box = ends(2, 1.2)
        start = spread_start(rng, 3, box)
        rows, test = sample(rng, truth, 3000), sample(rng, truth, 2000)
        in_ball = dp_em.unit_ball_around(*box).to_ball(start)
        monkeypatch.setattr(input_noise, "random_start", lambda *_, start=in_ball: start)
        runs.append(gaps(rng, rows, test, box=box, components=3, delta=DELTA, start=start))
    typical = {name: float(np.median([run[name] for run in runs])) for name in runs[0]}
    print(typical)
    check_order(typical)


@pytest.mark.slow
def test_the_order_holds_on_the_life_science_set(monkeypatch):
    path = DATA / "lifesci_dpem.parquet"
    if not path.exists():
        pytest.skip(f"{path} is not there; set DISCREET_DATA")
    parquet = pytest.importorskip("pyarrow.parquet")
    table = parquet.read_table(path, columns=[f"x{i}" for i in range(1, 11)])
    rng = np.random.default_rng(0)
    rows = rng.permutation(np.column_stack([column.to_numpy() for column in table.columns]))
    box = np.array([-14.0] + [-8.0] * 9), np.array([2.0] + [8.0] * 9)
    start = spread_start(rng, 3, box)
    monkeypatch.setattr(input_noise, "random_start", lambda *_: dp_em.unit_ball_around(*box).to_ball(start))
    found = gaps(rng, rows[2673:], rows[:2673], box=box, components=3, delta="1e-4", start=start)
    print(found)
    check_order(found)
