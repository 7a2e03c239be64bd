from types import SimpleNamespace

import numpy as np
import pytest

from discreet import attacks
from discreet.attacks.data.numeric_data import RegressionData, diabetes_data
from discreet.attacks.queries.model_differencing import least_squares, recover_target

SURE = 1 - 1e-9


@pytest.fixture(scope="module")
def patients():
    pytest.importorskip("sklearn")
    return diabetes_data()


@pytest.mark.long(but=["nothing"])
@pytest.mark.parametrize("defence", ["nothing", "easy"])
def test_two_fits_disclose_the_row_by_which_they_differ(patients, defence):
    result = attacks.differencing(patients, defence=defence, random_state=0)
    assert result.success == 1
    assert result.details["error of the recovered value, maximum"] <= 1e-6
    assert result.details["row detected from a single fit"] == 1
    assert len(result.exposure.deciles) == 10


@pytest.mark.long
def test_two_private_fits_do_not_disclose_the_row(patients):
    result = attacks.differencing(patients, defence="curator", epsilon="1/10", random_state=0, targets=80)
    assert result.evidence.implied(confidence=SURE).low <= 0.1
    assert abs(result.success - 0.5) < 0.37  # six and a half standard deviations
    assert result.details["error of the recovered value, median"] > 100


def test_too_little_noise_is_caught(patients):
    rng = np.random.default_rng(0)

    def fit(X, y):
        model = least_squares(X, y)
        model.coef_ = model.coef_ + rng.laplace(0, 1e-9, model.coef_.shape)
        return model

    result = attacks.differencing(patients, defence=fit, epsilon="1/10", random_state=0, targets=100)
    assert result.evidence.implied(confidence=SURE).low > 0.1


def test_the_target_is_recovered_from_models_and_features_alone():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(50, 3)), rng.normal(size=50)
    for row in (0, 17, 49):
        rest = least_squares(np.delete(X, row, axis=0), np.delete(y, row))
        assert abs(recover_target(least_squares(X, y), rest, X, row) - y[row]) < 1e-10


def test_rows_that_cannot_be_fitted_are_refused():
    with pytest.raises(ValueError, match="one row of finite numbers"):
        RegressionData([[1.0], [2.0]], [1.0], bounds=(0, 1), target_bounds=(0, 1))
    with pytest.raises(ValueError, match="more rows than columns"):
        RegressionData([[1.0], [1.0], [1.0]], [1.0, 2.0, 3.0], bounds=(0, 1), target_bounds=(0, 1))


@pytest.mark.parametrize(("X", "y"), [("rows", [1.0]), ([["a"], ["b"]], [1.0, 2.0]), ([[1], [1, 2]], [1.0, 2.0])])
def test_rows_without_numbers_are_refused(X, y):
    with pytest.raises(ValueError, match="X must be an array of numbers"):
        RegressionData(X, y, bounds=(0, 1), target_bounds=(0, 1))


@pytest.mark.parametrize(
    ("model", "says"),
    [
        (None, "a fitted linear model with coef_ and intercept_, not NoneType"),
        ("text", "a fitted linear model with coef_ and intercept_, not str"),
        (SimpleNamespace, "a fitted linear model with coef_ and intercept_, not type"),
        (SimpleNamespace(coef_=[1.0, 2.0], intercept_=0.0), "as coef_, must return an array of numbers, 1, not an"),
        (SimpleNamespace(coef_=["a"], intercept_=0.0), "as coef_, must return an array of numbers, 1, not nd"),
        (SimpleNamespace(coef_=[np.nan], intercept_=0.0), "as coef_, must return an array of numbers, 1, without NaN"),
        (SimpleNamespace(coef_=[1.0], intercept_=np.inf), "as intercept_, must return an array of numbers, 1, without"),
    ],
)
def test_a_defence_that_returns_no_linear_model_is_refused(model, says):
    rows = RegressionData([[1.0], [2.0], [4.0]], [3.0, 5.0, 9.0], bounds=(0, 10), target_bounds=(0, 20))
    with pytest.raises((TypeError, ValueError), match=says):
        attacks.differencing(rows, defence=lambda X, y: model)


def test_a_custom_model_may_have_a_two_dimensional_target():
    def fit(X, y):
        model = least_squares(X, y)
        X[:], y[:] = 0, 0  # what a defence does to its arrays is its own affair
        return SimpleNamespace(coef_=[model.coef_], intercept_=[model.intercept_])

    rows = RegressionData([[1.0], [2.0], [4.0], [7.0]], [3.0, 5.0, 9.0, 1.0], bounds=(0, 10), target_bounds=(0, 20))
    assert attacks.differencing(rows, defence=fit, random_state=0).success == 1


def test_the_easy_fix_releases_no_small_fit():
    rows = RegressionData([[1.0], [2.0], [4.0]], [3.0, 5.0, 9.0], bounds=(0, 10), target_bounds=(0, 20))
    with pytest.raises(ValueError, match="no fit of fewer than 10 rows"):
        attacks.differencing(rows, defence="easy")
    assert attacks.differencing(rows, random_state=0).success == 1
