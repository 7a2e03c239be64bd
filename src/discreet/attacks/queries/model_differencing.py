"""Differencing of models: two fits, with and without one row, reveal the row's target value."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np

import discreet as dc
from discreet.attacks.defences import CURATOR, EASY, OWN, Defence
from discreet.attacks.evidence import GuessEvidence
from discreet.attacks.progress import track
from discreet.attacks.result import AttackResult, exposure_by_rarity
from discreet.attacks.validation import finite_array
from discreet.kernel.numbers import as_integer

FitFunction = Callable[[np.ndarray, np.ndarray], Any]


@dataclass(frozen=True)
class RegressionData:
    """Training data for least squares: features that the attacker knows, and a secret target value per row.

    `bounds` (lower and upper bounds of the features) and `target_bounds` are declared for private fits.

    >>> data = RegressionData([[1.0], [2.0], [4.0]], [3.0, 5.0, 9.0], bounds=(0, 10), target_bounds=(0, 20))
    >>> data.X.shape
    (3, 1)
    """

    X: Any
    y: Any
    bounds: Any
    target_bounds: tuple[float, float]

    def __post_init__(self) -> None:
        X, y = _float_array(self.X, "X"), _float_array(self.y, "y")
        if X.ndim != 2 or y.shape != X.shape[:1] or not (np.isfinite(X).all() and np.isfinite(y).all()):
            raise ValueError("X must have one row of finite numbers for each value of y")
        if np.linalg.matrix_rank(_with_intercept(X[1:])) <= X.shape[1]:
            raise ValueError("X must have more rows than columns, and its columns must be linearly independent")
        object.__setattr__(self, "X", X)
        object.__setattr__(self, "y", y)


def diabetes_data() -> RegressionData:
    """Return scikit-learn's diabetes data: ten measurements per patient, and the disease progression after a year.

    >>> diabetes_data().X.shape
    (442, 10)
    """
    from sklearn.datasets import load_diabetes  # noqa: PLC0415 - an extra

    X, y = load_diabetes(return_X_y=True, scaled=False)
    low, high = [15, 1, 15, 50, 80, 20, 10, 1, 3, 40], [90, 2, 50, 150, 320, 260, 110, 10, 7, 140]
    return RegressionData(X, y, bounds=(low, high), target_bounds=(0, 400))


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


def difference_fits(
    data: RegressionData, defence: Defence, rng: np.random.Generator, targets: int, smallest: int
) -> AttackResult:
    """Infer for each target row which of two values, a low or a high one, a fair coin assigned to it."""
    if defence.kind == EASY and len(data.y) - 1 < as_integer(smallest, "smallest", 1):
        raise ValueError(
            f"X: the easy fix releases no fit of fewer than {smallest} rows: give more rows, or a lower smallest="
        )
    fit = _fit_function(data, defence)
    target_rows = np.sort(rng.permutation(len(data.y))[: as_integer(targets, "targets", 1)])
    coins = rng.integers(0, 2, target_rows.size).astype(bool)
    low, high = np.quantile(data.y, (0.1, 0.9))
    truths = np.where(coins, high, low)
    games = track(list(zip(target_rows, truths, strict=True)), "fits")
    recovered, inclusion_right = np.array([_attack_row(fit, data, row, truth) for row, truth in games]).T
    is_right = (recovered > (low + high) / 2) == coins
    errors = np.abs(recovered - truths)
    return AttackResult(
        attack="differencing",
        against=defence,
        metric="of secrets inferred",
        # Each private fit has half of epsilon for adding or removing a row. Only one of the two fits has the target,
        # and its value is substituted there: a removal and an addition, which cost epsilon together.
        evidence=GuessEvidence(int(is_right.sum()), is_right.size),
        details={
            "smallest target value": float(data.y.min()),
            "largest target value": float(data.y.max()),
            "error of the recovered value, median": float(np.median(errors)),
            "error of the recovered value, maximum": float(errors.max()),
            "row detected from a single fit": float(inclusion_right.mean()),
        },
        # Rows far from the mean, in standard deviations of the features, count as rare.
        exposure=exposure_by_rarity(
            _distance_from_mean(data.X)[target_rows],
            is_right,
            labels=[f"row {row}" for row in target_rows],
            rarity_label="distance from the mean",
        ),
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


def _fit_function(data: RegressionData, defence: Defence) -> FitFunction:
    if defence.kind == CURATOR:
        return lambda X, y: _fit_privately(data, defence.curator_epsilon / 2, X, y)
    user_function = defence.user_function
    if defence.kind == OWN and user_function is not None:
        return lambda X, y: _checked_linear_model(user_function(X.copy(), y.copy()), X.shape[1])
    return least_squares


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


def _fit_privately(data: RegressionData, epsilon: Fraction, X: np.ndarray, y: np.ndarray) -> Any:
    model = dc.learn.LinearRegression(epsilon=epsilon, bounds=data.bounds, target_bounds=data.target_bounds)
    return model.fit(X, y)


def _float_array(values: Any, name: str) -> np.ndarray:
    try:
        return np.array(values, float)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must contain only numbers, and rows of equal length") from None


def _with_intercept(X: np.ndarray) -> np.ndarray:
    return np.column_stack([X, np.ones(len(X))])


def _coefficients(model: Any) -> np.ndarray:
    return np.append(np.ravel(model.coef_), model.intercept_)


def _distance_from_mean(X: np.ndarray) -> np.ndarray:
    return np.asarray(np.linalg.norm((X - X.mean(axis=0)) / np.where(X.std(axis=0) > 0, X.std(axis=0), 1), axis=1))
