import numpy as np
import pytest
from sklearn.cluster import KMeans as Exact

from discreet.learn.cluster import KMeans, find_clusters
from tests.learn.seeded import Seeded

ONE_STEP = (10, 5, 15, 20, 25, 5, 20)
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
