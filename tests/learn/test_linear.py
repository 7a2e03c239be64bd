import numpy as np
import pytest
from sklearn.linear_model import LinearRegression as Exact

from discreet.learn.linear_model.least_squares import (
    _SHARES,
    LinearRegression,
    _shrunken_coefficients,
    noisy_least_squares,
)
from discreet.learn.scaled_moments import ScaledMoments
from tests.learn.seeded import Seeded

RNG = np.random.default_rng(3)
X = RNG.normal(size=(2000, 3)) * [1, 5, 0.2]
Y = X @ [2.0, -0.5, 4.0] + 3 + RNG.normal(size=2000)
NEARLY_EXACT = {"epsilon": 1_000_000, "bounds": (-30, 30), "target_bounds": (-100, 100)}
SHARES = [float(share) for share in _SHARES]


def coefficients_of(session, ends):
    fit = noisy_least_squares(session, ends)
    return fit.coefficients, fit.intercept


def explained(rows, coefficients, intercept):
    features, target = rows[:, :-1], rows[:, -1]
    return 1 - np.mean((target - features @ coefficients - intercept) ** 2) / target.var()


def people(count, features=4, seed=1):
    rng = np.random.default_rng(seed)
    shared = rng.normal(size=(count, 1))
    x = rng.normal(size=(count, features)) + 0.7 * shared
    y = x @ np.linspace(1, -0.5, features) + rng.normal(size=count)
    return np.column_stack([x, y])


@pytest.mark.parametrize("delta", [0, 1e-9])
def test_without_noise_it_is_least_squares(delta):
    exact = Exact().fit(X, Y)
    model = LinearRegression(**NEARLY_EXACT, delta=delta).fit(X, Y)
    assert model.coef_ == pytest.approx(exact.coef_, rel=0.01, abs=0.01)
    assert model.intercept_ == pytest.approx(exact.intercept_, abs=0.05)
    assert model.score(X, Y) > exact.score(X, Y) - 0.001


def test_without_an_intercept_the_line_goes_through_the_origin():
    exact = Exact(fit_intercept=False).fit(X, Y)
    model = LinearRegression(**NEARLY_EXACT, fit_intercept=False).fit(X, Y)
    assert model.intercept_ == 0
    assert model.predict(np.zeros((1, 3))) == 0
    assert model.coef_ == pytest.approx(exact.coef_, rel=0.01, abs=0.02)


def test_columns_that_lie_far_from_the_middle_of_their_ranges_do_no_harm():
    rows = X / 100 + [20, -20, 29]
    model = LinearRegression(**NEARLY_EXACT).fit(rows, Y)
    assert model.score(rows, Y) > Exact().fit(rows, Y).score(rows, Y) - 0.01


@pytest.mark.parametrize("price", [{"epsilon": 1}, {"rho": 0.02}], ids=["laplace", "gaussian"])
@pytest.mark.parametrize("seed", range(5))
def test_ten_thousand_people_are_enough(price, seed):
    rows = people(10_000)
    ends = np.full(5, -10.0), np.full(5, 10.0)
    best = Exact().fit(rows[:, :-1], rows[:, -1]).score(rows[:, :-1], rows[:, -1])
    assert explained(rows, *coefficients_of(Seeded(rows, SHARES, **price, seed=seed), ends)) > best - 0.02


@pytest.mark.parametrize("seed", range(10))
def test_where_noise_hides_everything_predictions_stay_near_the_middle(seed):
    rows = people(50)
    ends = np.full(5, -10.0), np.full(5, 10.0)
    coefficients, intercept = coefficients_of(Seeded(rows, SHARES, epsilon=0.01, seed=seed), ends)
    assert np.abs(coefficients).max() < 0.5
    assert abs(intercept) < 10


@pytest.mark.parametrize("seed", range(5))
def test_a_constant_feature_does_no_harm(seed):
    rows = np.insert(people(10_000), 2, 7.0, axis=1)
    ends = np.full(6, -10.0), np.full(6, 10.0)
    assert explained(rows, *coefficients_of(Seeded(rows, SHARES, epsilon=1, seed=seed), ends)) > 0.4


def test_a_target_needs_a_range():
    with pytest.raises(ValueError, match="target_bounds: declare"):
        LinearRegression(epsilon=1, bounds=(-30, 30)).fit(X, Y)


def test_there_must_be_a_target():
    with pytest.raises(ValueError, match="requires y to be passed"):
        LinearRegression(**NEARLY_EXACT).fit(X, None)


def test_the_loss_is_as_requested_and_names_the_neighbours():
    model = LinearRegression(epsilon="1/2", bounds=(-30, 30), target_bounds=(-100, 100), neighbours="replacement")
    loss = model.fit(X, Y).loss_
    assert (loss.epsilon, loss.neighbours) == (0.5, "replacement")


def with_rare_columns(count=4000, seed=11):
    """A feature that matters, then a rare one, one that is always zero, one that is always three, and a copy."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 10, count)
    rare = (rng.random(count) < 0.001).astype(float)
    y = 6 - 0.2 * x - 0.5 * rare + rng.normal(0, 0.5, count)
    return np.column_stack([x, rare, np.zeros(count), np.full(count, 3.0), x, y])


RARE_ENDS = np.zeros(6), np.array([11.0, 1.0, 1.0, 11.0, 11.0, 20.0])


@pytest.mark.parametrize("price", [{"epsilon": 1}, {"epsilon": 10}, {"rho": 0.0175}, {"rho": 1.0}])
@pytest.mark.parametrize("seed", range(10))
def test_columns_that_are_rare_constant_or_twice_there_get_no_large_weights(price, seed):
    rows = with_rare_columns()
    coefficients, intercept = coefficients_of(Seeded(rows, SHARES, **price, seed=seed), RARE_ENDS)
    moved = np.abs(coefficients) * (RARE_ENDS[1] - RARE_ENDS[0])[:-1]
    assert moved.max() < 20
    assert explained(rows, coefficients, intercept) > 0.2


@pytest.mark.long(but=["1-laplace", "1-gaussian"])
@pytest.mark.parametrize("price", [{"epsilon": 1}, {"rho": 0.0175}], ids=["laplace", "gaussian"])
@pytest.mark.parametrize("seed", range(5))
def test_many_columns_of_categories_do_no_harm(price, seed):
    rng = np.random.default_rng(12)
    kinds = rng.choice(40, 20_000, p=0.7 ** np.arange(40) / (0.7 ** np.arange(40)).sum())
    x = rng.uniform(0, 1, 20_000)
    rows = np.column_stack([np.eye(40)[kinds], x, 40 + 20 * x + 3 * (kinds % 3) + rng.normal(0, 5, 20_000)])
    ends = np.zeros(42), np.append(np.ones(41), 100.0)
    coefficients, intercept = coefficients_of(Seeded(rows, SHARES, **price, seed=seed), ends)
    assert np.abs(coefficients).max() < 60
    assert explained(rows, coefficients, intercept) > 0.4


@pytest.mark.parametrize("delta", [0, 1e-6])
def test_real_noise_on_rare_columns_is_harmless_too(delta):
    rows = with_rare_columns()
    model = LinearRegression(
        epsilon=30, delta=delta, bounds=(RARE_ENDS[0][:-1], RARE_ENDS[1][:-1]), target_bounds=(0, 20)
    )
    model.fit(rows[:, :-1], rows[:, -1])
    assert np.abs(model.coef_ * RARE_ENDS[1][:-1]).max() < 400
    assert model.score(rows[:, :-1], rows[:, -1]) > -0.05


def test_predictions_stay_within_the_declared_range():
    model = LinearRegression(epsilon=1_000_000, bounds=(-30, 30), target_bounds=(-5, 5)).fit(X, Y)
    assert model.target_range_ == (-5, 5)
    predicted = model.predict(np.array([[1e6, 0, 0], [-1e6, 0, 0]]))
    assert predicted.tolist() == [5, -5]


@pytest.mark.parametrize("settings", [{"epsilon": 1}, {"epsilon": 1, "delta": 1e-6}, {"epsilon": 1000}])
def test_standard_errors_cover_the_true_coefficients(settings):
    """Of the noise, and of the rows as a sample; 95 % intervals, in 30 samples of people."""
    rng, true, inside = np.random.default_rng(8), np.array([0.3, 5, 0.6]), []
    for _ in range(30):
        age, owner = rng.integers(18, 90, 5000), rng.random(5000) < 0.4
        hours = np.where(rng.random(5000) < 0.7, np.clip(rng.normal(38, 10, 5000), 0, 99), 0)
        x = np.column_stack([age, owner, hours])
        y = x @ true - 5 + rng.normal(0, 6, 5000)
        model = LinearRegression(bounds=([0, 0, 0], [100, 1, 100]), target_bounds=(-60, 160), **settings).fit(x, y)
        near = np.abs(model.coef_ - true) < 1.96 * model.coef_errors_
        inside.append([*near, abs(model.intercept_ + 5) < 1.96 * model.intercept_error_])
    assert np.mean(inside) > 0.87
    assert (model.coef_errors_ < 2 * np.abs(true)).all()


def test_the_standard_error_of_the_intercept_includes_the_noise_in_the_means():
    rng, inside = np.random.default_rng(9), []
    ends = np.array([-10.0, -10]), np.array([10.0, 10])
    for seed in range(40):
        x = rng.normal(0, 3, 2000)
        rows = np.column_stack([x, 3 + 0.5 * x + rng.normal(0, 0.3, 2000)])
        fit = noisy_least_squares(Seeded(rows, SHARES, epsilon=2, seed=seed), ends)
        inside.append(abs(fit.intercept - 3) < 1.96 * fit.intercept_error)
        assert fit.intercept_error < 0.5
    assert np.mean(inside) > 0.87


def test_standard_errors_are_those_of_least_squares_without_noise():
    model = LinearRegression(**NEARLY_EXACT).fit(X, Y)
    design = np.column_stack([X, np.ones(len(X))])
    usual = np.sqrt(np.diag(np.linalg.inv(design.T @ design)) * np.var(Y - design @ [2, -0.5, 4, 3]))
    assert model.coef_errors_ == pytest.approx(usual[:3], rel=0.1)
    assert model.intercept_error_ == pytest.approx(usual[3], rel=0.1)
    assert LinearRegression(**NEARLY_EXACT, fit_intercept=False).fit(X, Y).intercept_error_ == 0


def test_standard_errors_grow_with_the_noise():
    errors = [
        LinearRegression(epsilon=epsilon, bounds=(-30, 30), target_bounds=(-100, 100)).fit(X, Y).coef_errors_
        for epsilon in (0.1, 1, 10, 1000)
    ]
    assert (np.diff([np.median(each) for each in errors]) < 0).all()


@pytest.mark.parametrize(("noise", "largest", "smallest"), [(0.001, 0.31, 0.29), (0.3, 0.2, 0.0), (3, 0.02, 0.0)])
def test_coefficients_are_shrunk_according_to_the_noise_and_not_enlarged_again(noise, largest, smallest):
    """Predictions along noisy coefficients fit the same noise: to enlarge them to the best fit undoes the shrinkage."""
    covariance = np.eye(4)
    covariance[:3, 3] = covariance[3, :3] = 0.3, -0.3, 0.3
    moments = ScaledMoments(10_000, np.zeros(4), np.full(4, 0.01), covariance, np.full((4, 4), noise))
    weights = np.abs(_shrunken_coefficients(moments, np.ones(4), np.full(3, 0.5))[0])
    assert weights.max() < largest
    assert weights.min() > smallest
