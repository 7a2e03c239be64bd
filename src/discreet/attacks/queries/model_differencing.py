"""Differencing of models: two fits, with and without one row, reveal the row's target value."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

import discreet as dc
from discreet.attacks.attack import CURATOR, EASY, NOTHING, AttackResult, DefenceRelease, Game, GuessEvidence
from discreet.attacks.data.numeric_data import RegressionData
from discreet.attacks.validation import finite_array
from discreet.progress import track

FitFunction = Callable[[np.ndarray, np.ndarray], Any]


def recover_target(with_row: Any, without_row: Any, X: np.ndarray, row: int) -> float:
    """Recover a row's target value from two models and everybody's features.

    Least squares solves A'A w = A'y. With and without the row, the right-hand sides differ by the row times its target.

    >>> X, y = np.array([[1.0], [2.0], [4.0]]), np.array([3.0, 5.0, 10.0])
    >>> round(recover_target(least_squares(X, y), least_squares(X[1:], y[1:]), X, row=0), 9)
    3.0
    """
    A = _with_intercept(X)
    rest = np.delete(A, row, axis=0)
    # Only matrix-vector products: forming A'A would lose digits and time.
    difference = A.T @ (A @ _coefficients(with_row)) - rest.T @ (rest @ _coefficients(without_row))
    return float(A[row] @ difference / (A[row] @ A[row]))


def is_row_included(model: Any, with_row: Any, without_row: Any, X: np.ndarray) -> bool:
    """Guess that a row is in a fit if the fit's predictions are nearer to those of the non-private fit with the row.

    >>> X, y = np.array([[1.0], [2.0], [4.0], [5.0]]), np.array([3.0, 5.0, 10.0, 0.0])
    >>> models = least_squares(X, y), least_squares(X[1:], y[1:])
    >>> is_row_included(models[0], *models, X=X), is_row_included(models[1], *models, X=X)
    (True, False)
    """
    predictions, predictions_with, predictions_without = (
        _with_intercept(X) @ _coefficients(each) for each in (model, with_row, without_row)
    )
    return bool(np.linalg.norm(predictions - predictions_with) < np.linalg.norm(predictions - predictions_without))


def least_squares(X: np.ndarray, y: np.ndarray) -> SimpleNamespace:
    """Fit a non-private linear regression with an intercept.

    >>> least_squares(np.array([[1.0], [2.0], [4.0]]), np.array([3.0, 5.0, 9.0])).coef_.round(9).tolist()
    [2.0]
    """
    weights = np.linalg.lstsq(_with_intercept(X), y, rcond=None)[0]
    return SimpleNamespace(coef_=weights[:-1], intercept_=float(weights[-1]))


def difference_fits(game: Game) -> AttackResult:
    """Infer for each target row which of two values, a low or a high one, a fair coin assigned to it."""
    data, fit = game.data, game.release()
    target_rows = np.sort(game.rng.permutation(len(data.y))[: game.settings.targets])
    coins = game.rng.integers(0, 2, target_rows.size).astype(bool)
    low, high = np.quantile(data.y, (0.1, 0.9))
    truths = np.where(coins, high, low)
    games = track(list(zip(target_rows, truths, strict=True)), "fits")
    recovered, inclusion_right = np.array([_attack_row(fit, data, row, truth) for row, truth in games]).T
    is_right = (recovered > (low + high) / 2) == coins
    errors = np.abs(recovered - truths)
    return game.result(
        "of secrets inferred",
        # Each private fit has half of epsilon for adding or removing a row. Only one of the two fits has the target,
        # and its value is substituted there: a removal and an addition, which cost epsilon together.
        GuessEvidence(int(is_right.sum()), is_right.size),
        {
            "smallest target value": float(data.y.min()),
            "largest target value": float(data.y.max()),
            "error of the recovered value, median": float(np.median(errors)),
            "error of the recovered value, maximum": float(errors.max()),
            "row detected from a single fit": float(inclusion_right.mean()),
        },
        hit=is_right,
        rarity=_distance_from_mean(data.X)[target_rows],  # in standard deviations of the features
        rarity_label="distance from the mean",
        labels=[f"row {row}" for row in target_rows],
    )


def _attack_row(fit: FitFunction, data: RegressionData, row: int, truth: float) -> tuple[float, float]:
    """Return the recovered value, and the share of the two fits that the membership guess classifies correctly."""
    y = data.y.copy()
    y[row] = truth
    neighbours = ((data.X, y), (np.delete(data.X, row, axis=0), np.delete(y, row)))
    with_row, without_row = (fit(*each) for each in neighbours)
    exact_with, exact_without = (least_squares(*each) for each in neighbours)
    inclusion_right = is_row_included(with_row, exact_with, exact_without, data.X) + (
        not is_row_included(without_row, exact_with, exact_without, data.X)
    )
    return recover_target(with_row, without_row, data.X, row), inclusion_right / 2


def _fit_many_rows(game: Game) -> FitFunction:
    if len(game.data.y) <= game.settings.smallest:
        smallest = game.settings.smallest
        raise ValueError(
            f"X: the easy fix releases no fit of fewer than {smallest} rows: give more rows, or a lower smallest="
        )
    return least_squares


def _private_fit(game: Game) -> FitFunction:
    bounds, target_bounds = game.data.bounds, game.data.target_bounds
    settings: Any = {"epsilon": game.epsilon / 2, "bounds": bounds, "target_bounds": target_bounds}
    return lambda X, y: dc.learn.LinearRegression(**settings).fit(X, y)


def user_fit(game: Game) -> FitFunction:
    """Return a function that fits the user's model, whose coefficients are validated."""
    return lambda X, y: _checked_linear_model(game.ask_user(X.copy(), y.copy()), X.shape[1])


def _checked_linear_model(model: Any, features: int) -> SimpleNamespace:
    """Return the validated coefficients of a model that the user's defence returned."""
    if not (hasattr(model, "coef_") and hasattr(model, "intercept_")):
        kind = type(model).__name__
        raise TypeError(f"the defence must return a fitted linear model with coef_ and intercept_, not {kind}")
    # A model of a single target may store its coefficients as a matrix with one row.
    weights, constant = (np.ravel(np.asarray(part, object)) for part in (model.coef_, model.intercept_))
    return SimpleNamespace(
        coef_=finite_array(weights, (features,), "the defence's model, as coef_,"),
        intercept_=float(finite_array(constant, (1,), "the defence's model, as intercept_,")[0]),
    )


def _with_intercept(X: np.ndarray) -> np.ndarray:
    return np.column_stack([X, np.ones(len(X))])


def _coefficients(model: Any) -> np.ndarray:
    return np.append(np.ravel(model.coef_), model.intercept_)


def _distance_from_mean(X: np.ndarray) -> np.ndarray:
    return np.asarray(np.linalg.norm((X - X.mean(axis=0)) / np.where(X.std(axis=0) > 0, X.std(axis=0), 1), axis=1))


RELEASES = {
    NOTHING: DefenceRelease("non-private fits", lambda _: least_squares),
    EASY: DefenceRelease("non-private fits, but only of many rows", _fit_many_rows),
    CURATOR: DefenceRelease("private fits; both together cost epsilon", _private_fit),
}
