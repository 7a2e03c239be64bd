import numpy as np
import pytest
from sklearn.cluster import KMeans as Exact

from discreet.kernel.model_release import check_row_wise
from discreet.learn.cell_sums import ArtificialPoints, _nearest_cell_entries, nearest_centres
from discreet.learn.cluster import KMeans, find_clusters, without_empty
from discreet.learn.cluster_candidates import _difference_of_candidates
from tests.learn.seeded import Seeded

ONE_STEP, TWO_STEPS = (12, 6, 18, 18, 24, 4, 18), (12, 6, 18, 18, 24, 4, 9, 9)
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
    found = find_clusters(Seeded(X, ONE_STEP, **price, seed=seed), ends, 3, n_steps=1)
    assert inertia(X, found.centres) < 1.3 * best(X, 3)


@pytest.mark.parametrize("columns", [1, 2, 30])
@pytest.mark.parametrize("clusters", [1, 2, 12])
def test_any_number_of_columns_and_clusters(columns, clusters):
    rows = groups(200, clusters, columns)
    ends = np.full(columns, -15.0), np.full(columns, 15.0)
    found = find_clusters(Seeded(rows, ONE_STEP, epsilon=10, seed=0), ends, clusters, n_steps=1)
    assert found.centres.shape == (clusters, columns)
    assert inertia(rows, found.centres) < 1.2 * best(rows, 1)


@pytest.mark.parametrize("seed", range(10))
def test_where_noise_hides_everything_centres_stay_in_the_ranges(seed):
    ends = np.full(4, -15.0), np.full(4, 15.0)
    found = find_clusters(Seeded(X[::100], ONE_STEP, epsilon=0.01, seed=seed), ends, 3, n_steps=1)
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


@pytest.mark.long
@pytest.mark.parametrize(("clusters", "seed"), [(4, 31), (6, 32), (9, 33)])
def test_mixed_columns_of_many_rows_are_clustered_within_a_twentieth_of_scikit_learns_best(clusters, seed):
    rows, ends = mixed(20_000, seed), (np.full(5, -5.0), np.full(5, 5.0))
    exact = Exact(clusters, n_init=10, random_state=0).fit(rows).inertia_
    found = [find_clusters(Seeded(rows, TWO_STEPS, epsilon=1, seed=at), ends, clusters, n_steps=2) for at in range(8)]
    assert np.median([inertia(rows, each.centres) for each in found]) < 1.05 * exact
    for each in found:
        assert (np.bincount(nearest_centres(rows, each.centres), minlength=clusters) > 0).all()


def test_a_centre_without_people_moves_to_where_people_are():
    rows = np.concatenate([np.full((5000, 2), -3.0), np.full((5000, 2), 3.0)])
    sample = ArtificialPoints(rows[::10], np.full(1000, 10.0))
    far = np.array([[-3.0, -3.0], [40.0, 40.0]])
    moved = without_empty(sample, far, np.array([False, True]))
    assert moved.tolist() == [[-3, -3], [3, 3]]


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
