import numpy as np
import pytest
from sklearn.cluster import KMeans as Exact

from discreet.kernel.model_release import check_row_wise
from discreet.learn.cell_sums import ArtificialPoints, _nearest_cell_entries, nearest_centres, noisy_means
from discreet.learn.cluster import KMeans, budget_shares, find_clusters, without_empty
from discreet.learn.cluster_candidates import _difference_of_candidates, select_centres
from discreet.learn.cluster_tables import (
    _coordinate_products,
    _filled_cells,
    _table_cells,
    directions_of_columns,
    noisy_correlations,
    table_points,
)
from discreet.learn.moments import summarise_columns
from tests.learn.seeded import Seeded

NEARLY_EXACT = {"epsilon": 1_000_000, "bounds": (-20, 20)}


def groups(count, clusters=3, columns=4, seed=1):
    """Groups of the same size around places that lie well apart."""
    rng = np.random.default_rng(seed)
    places = rng.uniform(-8, 8, (clusters, columns))
    return np.repeat(places, count, axis=0) + rng.normal(size=(clusters * count, columns))


X = groups(1000)


def inertia(rows, centres):
    return ((rows[:, np.newaxis] - centres) ** 2).sum(axis=2).min(axis=1).sum()


def best(rows, clusters):
    return Exact(clusters, n_init=4, random_state=0).fit(rows).inertia_


@pytest.mark.parametrize("delta", [0, 1e-9])
@pytest.mark.parametrize("steps", [1, 3])
def test_without_noise_it_is_as_good_as_scikit_learns(delta, steps):
    model = KMeans(3, **NEARLY_EXACT, delta=delta, n_iter=steps).fit(X)
    assert -model.score(X) < 1.01 * best(X, 3)
    assert model.counts_ == pytest.approx(np.bincount(model.predict(X), minlength=3), abs=5)
    assert model.n_iter_ == steps


@pytest.mark.parametrize("price", [{"epsilon": 1}, {"rho": 0.02}], ids=["laplace", "gaussian"])
@pytest.mark.parametrize("seed", range(5))
def test_three_thousand_rows_are_enough(price, seed):
    ends = np.full(4, -15.0), np.full(4, 15.0)
    found = find_clusters(Seeded(X, budget_shares(4, 1), **price, seed=seed), ends, 3, n_steps=1)
    assert inertia(X, found.centres) < 1.3 * best(X, 3)


@pytest.mark.parametrize("columns", [1, 2, 30])
@pytest.mark.parametrize("clusters", [1, 2, 12])
def test_any_number_of_columns_and_clusters(columns, clusters):
    rows = groups(200, clusters, columns)
    ends = np.full(columns, -15.0), np.full(columns, 15.0)
    found = find_clusters(Seeded(rows, budget_shares(columns, 1), epsilon=10, seed=0), ends, clusters, n_steps=1)
    assert found.centres.shape == (clusters, columns)
    assert inertia(rows, found.centres) < 1.2 * best(rows, 1)


@pytest.mark.parametrize("seed", range(10))
def test_where_noise_hides_everything_centres_stay_in_the_ranges(seed):
    ends = np.full(4, -15.0), np.full(4, 15.0)
    found = find_clusters(Seeded(X[::100], budget_shares(4, 1), epsilon=0.01, seed=seed), ends, 3, n_steps=1)
    assert np.isfinite(found.centres).all()
    assert (np.abs(found.centres) <= 15).all()
    assert inertia(X, found.centres) < 2 * inertia(X, np.zeros((1, 4)))


def test_rows_are_predicted_by_their_nearest_centre():
    model = KMeans(3, **NEARLY_EXACT).fit(X)
    distances = np.linalg.norm(X[:, np.newaxis] - model.cluster_centers_, axis=2)
    assert model.transform(X) == pytest.approx(distances)
    assert (model.predict(X) == distances.argmin(axis=1)).all()
    assert model.get_feature_names_out().tolist() == ["kmeans0", "kmeans1", "kmeans2"]


def test_labels_of_the_rows_that_were_learned_from_are_not_published():
    model = KMeans(3, **NEARLY_EXACT).fit(X)
    for name in ("labels_", "inertia_", "fit_predict"):
        assert not hasattr(model, name)


@pytest.mark.parametrize("setting", [{"n_clusters": 0}, {"n_iter": 0}, {"n_clusters": 2.5}])
def test_invalid_settings_are_refused(setting):
    with pytest.raises((ValueError, TypeError), match=next(iter(setting))):
        KMeans(**NEARLY_EXACT | setting).fit(X)


def test_steps_share_one_budget():
    one, many = (KMeans(3, epsilon=1, bounds=(-20, 20), n_iter=steps).fit(X).loss_ for steps in (1, 5))
    assert one == many
    assert one.epsilon == 1


def mixed(rows, seed):
    """Whole numbers, many zeros, a skewed column and a few values, standardised and clamped to ±5."""
    rng = np.random.default_rng(seed)
    group = rng.choice(4, rows, p=[0.4, 0.3, 0.2, 0.1])
    age = np.clip(rng.normal(np.array([30, 45, 70, 8])[group], 9), 0, 95).round()
    hours = np.where((group < 2) & (rng.random(rows) < 0.8), np.clip(rng.normal(40, 9, rows), 0, 99).round(), 0)
    income = np.where(group < 3, rng.lognormal(np.array([10, 11, 10, 0])[group], 0.7), 0)
    columns = [age, hours, income, rng.choice(5, rows, p=[0.5, 0.1, 0.1, 0.05, 0.25]), rng.random(rows) < 0.5]
    X = np.column_stack(columns).astype(float)
    return np.clip((X - X.mean(axis=0)) / X.std(axis=0), -5, 5)


def skewed(rows, seed):
    """Six groups of different size and shape, with correlated columns, of which two are exponentials; standardised."""
    rng = np.random.default_rng(seed)
    group, X = rng.choice(6, rows, p=[0.35, 0.25, 0.2, 0.12, 0.05, 0.03]), np.empty((rows, 5))
    for each in range(6):
        mixing = rng.normal(size=(5, 5)) * rng.uniform(0.15, 0.5)
        X[group == each] = rng.normal(0, 1.2, 5) + rng.normal(size=((group == each).sum(), 5)) @ mixing
    X[:, :2] = np.exp(X[:, :2])
    return np.clip((X - X.mean(axis=0)) / X.std(axis=0), -5, 5)


@pytest.mark.long
@pytest.mark.parametrize(
    ("made", "clusters", "seed"), [(mixed, 4, 31), (mixed, 6, 32), (mixed, 9, 33), (skewed, 10, 34), (skewed, 10, 35)]
)
def test_mixed_columns_of_many_rows_are_clustered_within_a_twentieth_of_scikit_learns_best(made, clusters, seed):
    rows, ends = made(20_000, seed), (np.full(5, -5.0), np.full(5, 5.0))
    exact, shares = Exact(clusters, n_init=10, random_state=0).fit(rows).inertia_, budget_shares(5, 2)
    found = [find_clusters(Seeded(rows, shares, epsilon=1, seed=at), ends, clusters, n_steps=2) for at in range(8)]
    assert np.median([inertia(rows, each.centres) for each in found]) < 1.05 * exact
    for each in found:
        assert (np.bincount(nearest_centres(rows, each.centres), minlength=clusters) > 0).all()


def amounts(rows, seed):
    """Two correlated amounts with heavy tails, in their own units."""
    rng = np.random.default_rng(seed)
    return np.minimum(np.exp(rng.normal(0.5, 1.1, (rows, 2)) + 0.3 * rng.normal(size=(rows, 1))), 500)


def incomes(rows, seed):
    """Ages, incomes, and gains that few people have: their deviation is small, their squares are not."""
    rng = np.random.default_rng(seed)
    gains = np.where(rng.random(rows) < 0.15, rng.lognormal(8, 1.6, rows), 0)
    return np.minimum(np.column_stack([rng.uniform(18, 95, rows), rng.lognormal(10.4, 0.8, rows), gains]), 1_000_000)


@pytest.mark.long
@pytest.mark.parametrize(
    ("made", "highest", "clusters", "seed", "limit"),
    [(amounts, [500, 500], 4, 41, 1.06), (amounts, [500, 500], 4, 42, 1.06), (incomes, [100, 1e6, 1e6], 8, 43, 1.1)],
)
def test_columns_with_heavy_tails_are_clustered_in_their_own_units(made, highest, clusters, seed, limit):
    rows, ends = made(30_000, seed), (np.zeros(len(highest)), np.array(highest, float))
    exact, shares = Exact(clusters, n_init=10, random_state=0).fit(rows).inertia_, budget_shares(len(highest), 2)
    found = [find_clusters(Seeded(rows, shares, epsilon=1, seed=at), ends, clusters, n_steps=2) for at in range(10)]
    assert np.median([inertia(rows, each.centres) for each in found]) < limit * exact
    for each in found:
        assert (np.bincount(nearest_centres(rows, each.centres), minlength=clusters) > 0).all()


@pytest.mark.parametrize("price", [{"epsilon": 1}, {"rho": 0.02}], ids=["laplace", "gaussian"])
def test_means_far_from_where_the_artificial_points_are_are_reached(price):
    """The points are symmetric around their mean, so that by themselves they show no reason for a large radius."""
    rng = np.random.default_rng(3)
    sample = ArtificialPoints(rng.normal(size=(1000, 2)), np.full(1000, 5.0))
    sums = noisy_means(
        Seeded(rng.normal([2, -1], 1, (5000, 2)), [1], **price, seed=2), np.zeros((1, 2)), sample, np.ones(2)
    )
    assert sums.means[0] == pytest.approx([2, -1], abs=0.25)


def test_corrected_points_have_the_counts_and_means_of_their_cells():
    rng = np.random.default_rng(4)
    rows = np.concatenate([rng.normal([-3, 0], 1, (2000, 2)), rng.normal([4, 1], 1, (1000, 2))])
    centres, ends = np.array([[-2.0, 0], [2, 0], [0, 30]]), (np.full(2, -40.0), np.full(2, 40.0))
    offsets = rng.uniform(-1.5, 1.5, (250, 2))
    sample = ArtificialPoints(np.concatenate([c + o for c in centres for o in (offsets, -offsets)]), np.full(1500, 2.0))
    sums = noisy_means(Seeded(rows, [1], epsilon=1e6), centres, sample, np.ones(2))
    nearest, corrected = nearest_centres(rows, centres), sums.correct(sample, ends)
    assert sums.counts == pytest.approx(np.bincount(nearest, minlength=3), abs=1)
    for cell in (0, 1):
        weights = np.where(sums.cells == cell, corrected.weights, 0)
        assert weights.sum() == pytest.approx((nearest == cell).sum(), abs=1)
        assert weights @ corrected.points / weights.sum() == pytest.approx(rows[nearest == cell].mean(axis=0), abs=0.1)
    assert sums.filled.tolist() == [True, True, False]


def test_artificial_points_have_the_tails_and_the_correlations_of_the_rows():
    rng = np.random.default_rng(6)
    logs = rng.normal(size=(20_000, 2)) @ np.linalg.cholesky([[1, 0.9], [0.9, 1]]).T
    rows, ends = np.minimum(np.exp(logs), 200), (np.zeros(2), np.full(2, 200.0))
    session = Seeded(rows, [1, 1, 1, 1], epsilon=4, seed=1)
    summary = summarise_columns(session, ends, np.ones(2))
    directions = directions_of_columns(summary)
    products = noisy_correlations(session, summary.count, directions)
    points = table_points(session, ends, summary.count, directions, products).points
    assert np.corrcoef(np.log(points + 0.1).T)[0, 1] == pytest.approx(np.corrcoef(np.log(rows + 0.1).T)[0, 1], abs=0.07)
    for share in (0.5, 0.9, 0.99):
        assert np.quantile(points, share, axis=0) == pytest.approx(np.quantile(rows, share, axis=0), rel=0.15)


def test_tails_of_tables_that_exceed_the_noise_together_are_not_empty():
    counts = np.concatenate([np.zeros(20), [2000], np.full(9, 12.0), np.zeros(2)])
    rng, tails = np.random.default_rng(2), []
    for _ in range(30):
        noisy = counts + rng.laplace(0, 10 / 2**0.5, len(counts))
        found = _filled_cells(noisy, np.full(len(counts), 10.0))
        tails.append(found[23:].sum())
        assert found[:10].sum() < 60
    assert np.mean(tails) > 0.6 * counts[23:].sum()


def test_few_people_far_away_decide_between_candidates_although_they_are_clipped():
    rng = np.random.default_rng(9)
    rows = np.concatenate([rng.normal(0, 1, (20_000, 1)), rng.normal(300, 1, (60, 1))])
    candidates = [np.array([[0.0], [200.0]]), np.array([[0.1], [300.0]])]
    sample = ArtificialPoints(rows[::10], np.full(2006, 10.0))
    for seed in range(5):
        assert select_centres(Seeded(rows, [1], epsilon=0.04, seed=seed), sample, candidates) is candidates[1]


def test_a_centre_without_people_moves_to_where_people_are():
    rows = np.concatenate([np.full((5000, 2), -3.0), np.full((5000, 2), 3.0)])
    sample = ArtificialPoints(rows[::10], np.full(1000, 10.0))
    far = np.array([[-3.0, -3.0], [40.0, 40.0]])
    moved = without_empty(sample, far, np.array([False, True]))
    assert moved.tolist() == [[-3, -3], [3, 3]]


def test_a_centre_moves_to_many_people_not_to_one_far_point_that_may_be_noise():
    points = np.concatenate([np.linspace([-4, 0], [4, 0], 200), [[20, 0]]])
    sample = ArtificialPoints(points, np.append(np.full(200, 5.0), 1.0))
    moved = without_empty(sample, np.array([[-2.0, 0], [0, 90]]), np.array([False, True]))
    assert np.abs(moved[1]).max() < 5


@pytest.mark.parametrize("empty", [[True, True], [True, False]])
def test_centres_stay_where_no_cluster_can_be_divided(empty):
    sample, centres = ArtificialPoints(np.array([[0.0, 0], [1, 1]]), np.ones(2)), np.array([[0.0, 0], [1, 1]])
    assert np.array_equal(without_empty(sample, centres, np.array(empty)), centres)


@pytest.mark.long
def test_people_who_are_all_at_one_place_do_not_end_a_fit():
    rows, ends = np.zeros((60_000, 2)), (np.full(2, -10.0), np.full(2, 10.0))
    for seed in range(30):
        session = Seeded(rows, budget_shares(2, 2), epsilon=1, seed=seed)
        assert find_clusters(session, ends, 20, n_steps=2).centres.shape == (20, 2)


def test_equal_distances_are_equal_whatever_the_other_rows():
    """What a row adds must not depend on the others, to the last bit, or a person would add more than the ball."""
    rng = np.random.default_rng(5)
    for norm in (1, 2):
        low, high = -10 * rng.random(5), 10 * rng.random(5)
        public = low, rng.uniform(low, high, (7, 5)) - low, rng.random(5), 3 * rng.random(7), norm
        check_row_wise(_nearest_cell_entries, public, low, high)
        numbers = _nearest_cell_entries(rng.uniform(low, high, (100, 5)), public)[1]
        assert np.linalg.norm(numbers[:, 1:], ord=norm, axis=1).max() <= 1 + 1e-12
    check_row_wise(_difference_of_candidates, (low, rng.uniform(low, high, (3, 4, 5)) - low), low, high)
    directions = np.linalg.qr(rng.normal(size=(5, 3)))[0]
    check_row_wise(_coordinate_products, (low, directions), low, high)
    check_row_wise(_table_cells, (low, directions, np.full(3, -4.0), np.full(3, 0.125), rng.random((3, 64))), low, high)


def test_a_row_without_a_number_is_in_some_cell():
    rows, public = (
        np.array([[np.nan, 1.0]]),
        (np.zeros(2), np.eye(2), np.full(2, -1.0), np.full(2, 0.1), np.ones((2, 64))),
    )
    cells, weights = _table_cells(rows, public)
    assert ((cells >= 0) & (cells < 64)).all()
    assert np.isfinite(weights).all()
