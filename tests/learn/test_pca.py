import numpy as np
import pytest
from sklearn import decomposition

from discreet.learn.decomposition import PCA, principal_axes
from tests.learn.seeded import Seeded

SHARES = (0.15, 0.1, 0.75)
NEARLY_EXACT = {"epsilon": 1_000_000, "bounds": (-40, 40)}


def rows_of(count, columns=6, seed=1):
    """Rows that vary 3 and 2 times as much in two directions as in all others, and not around the middle."""
    rng = np.random.default_rng(seed)
    turn = np.linalg.qr(rng.normal(size=(columns, columns)))[0]
    lengths = np.r_[3, 2, np.full(columns - 2, 0.5)]
    return rng.normal(size=(count, columns)) * lengths @ turn + rng.uniform(-4, 4, columns)


X = rows_of(3000)


def kept(rows, directions):
    """The share of the variance that as many exact components keep."""
    exact = decomposition.PCA(directions.shape[1]).fit(rows)
    return np.trace(directions.T @ np.cov(rows.T) @ directions) / exact.explained_variance_.sum()


@pytest.mark.parametrize("delta", [0, 1e-9])
def test_without_noise_it_is_the_principal_component_analysis(delta):
    exact, model = decomposition.PCA(2).fit(X), PCA(2, **NEARLY_EXACT, delta=delta).fit(X)
    assert np.abs((exact.components_ * model.components_).sum(axis=1)) == pytest.approx([1, 1], abs=1e-3)
    assert model.mean_ == pytest.approx(exact.mean_, abs=0.01)
    assert model.explained_variance_ == pytest.approx(exact.explained_variance_, rel=0.01)
    assert model.explained_variance_ratio_ == pytest.approx(exact.explained_variance_ratio_, rel=0.01)
    assert model.singular_values_ == pytest.approx(exact.singular_values_, rel=0.01)
    assert model.noise_variance_ == pytest.approx(exact.noise_variance_, rel=0.05)


def test_components_are_orthonormal_whatever_the_noise():
    model = PCA(epsilon="1/1000", bounds=(-40, 40)).fit(X[:50])
    assert model.components_ @ model.components_.T == pytest.approx(np.eye(6), abs=1e-9)
    assert (model.explained_variance_ >= 0).all()
    assert (np.diff(model.explained_variance_) <= 1e-12).all()
    assert model.explained_variance_ratio_.sum() <= 1 + 1e-9


def test_all_components_together_lose_nothing():
    model = PCA(epsilon=1, bounds=(-40, 40)).fit(X)
    assert model.inverse_transform(model.transform(X)) == pytest.approx(X)


def test_whitened_rows_vary_by_one():
    model = PCA(2, **NEARLY_EXACT, whiten=True).fit(X)
    assert model.transform(X).std(axis=0) == pytest.approx([1, 1], rel=0.01)
    plain = PCA(2, **NEARLY_EXACT).fit(X)
    back = model.inverse_transform(model.transform(X))
    assert back == pytest.approx(plain.inverse_transform(plain.transform(X)), abs=0.1)


def test_rows_that_are_centred_already_are_taken_as_they_are():
    rows = X - X.mean(axis=0)
    model = PCA(2, **NEARLY_EXACT, centered=True).fit(rows)
    assert (model.mean_ == 0).all()
    assert kept(rows, model.components_.T) > 0.999


@pytest.mark.parametrize("price", [{"epsilon": 1}, {"rho": 0.02}], ids=["laplace", "gaussian"])
@pytest.mark.parametrize("seed", range(5))
def test_three_thousand_rows_are_enough(price, seed):
    ends = np.full(6, -20.0), np.full(6, 20.0)
    axes = principal_axes(Seeded(X, SHARES, **price, seed=seed), ends, min_axes=2)
    assert kept(X, axes.directions[:, :2]) > 0.9


@pytest.mark.parametrize("seed", range(5))
def test_where_noise_hides_everything_the_widest_range_comes_first(seed):
    ends = np.array([-1.0, -50.0, -1.0]), np.array([1.0, 50.0, 1.0])
    rows = np.random.default_rng(0).uniform(*ends, (50, 3))
    axes = principal_axes(Seeded(rows, SHARES, epsilon=0.01, seed=seed), ends, min_axes=1)
    assert abs(axes.directions[1, 0]) > 0.9


def test_columns_below_the_noise_are_left_out():
    rows = np.hstack([rows_of(500), np.random.default_rng(5).normal(0, 0.05, (500, 40))])
    ends = np.r_[np.full(6, -20.0), np.full(40, -1.0)], np.r_[np.full(6, 20.0), np.full(40, 1.0)]
    axes = principal_axes(Seeded(rows, SHARES, epsilon=1, seed=0), ends, min_axes=1)
    assert not axes.directions[6:].any()


def test_names_of_components():
    assert PCA(2, **NEARLY_EXACT).fit(X).get_feature_names_out().tolist() == ["pca0", "pca1"]


def test_there_are_no_more_components_than_columns():
    with pytest.raises(ValueError, match="at most 6"):
        PCA(7, **NEARLY_EXACT).fit(X)
    with pytest.raises(ValueError, match="n_components"):
        PCA(0, **NEARLY_EXACT).fit(X)
