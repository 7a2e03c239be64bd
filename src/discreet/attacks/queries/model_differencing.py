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
    """Rows that least squares are fitted on: features that an outsider knows of everybody, and a secret number each.

    `bounds` (a low and a high end for each feature) and `target_bounds` are what the owner declares for private fits.

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
            raise ValueError("X must have a row of finite numbers for each number of y")
        if np.linalg.matrix_rank(_with_intercept(X[1:])) <= X.shape[1]:
            raise ValueError("X must have more rows than columns, and no column that follows from the others")
        object.__setattr__(self, "X", X)
        object.__setattr__(self, "y", y)


def diabetes_data() -> RegressionData:
    """Return the patients that come with scikit-learn: ten measurements, and how far the illness got in a year.

    >>> diabetes_data().X.shape
    (442, 10)
    """
    from sklearn.datasets import load_diabetes  # noqa: PLC0415 - an extra

    X, y = load_diabetes(return_X_y=True, scaled=False)
    low, high = [15, 1, 15, 50, 80, 20, 10, 1, 3, 40], [90, 2, 50, 150, 320, 260, 110, 10, 7, 140]
    return RegressionData(X, y, bounds=(low, high), target_bounds=(0, 400))


def recover_target(with_row: Any, without_row: Any, X: np.ndarray, row: int) -> float:
    """Return the number that a row had in a fit, from two models and everybody's features.

    Least squares solve A'A w = A'y. With the row and without, the right sides differ by the row times its number.

    >>> X, y = np.array([[1.0], [2.0], [4.0]]), np.array([3.0, 5.0, 10.0])
    >>> round(recover_target(least_squares(X, y), least_squares(X[1:], y[1:]), X, row=0), 9)
    3.0
    """
    A = _with_intercept(X)
    rest = np.delete(A, row, axis=0)
    # Products with vectors only: the square of A would cost digits, and time.
    difference = A.T @ (A @ _coefficients(with_row)) - rest.T @ (rest @ _coefficients(without_row))
    return float(A[row] @ difference / (A[row] @ A[row]))


def is_row_included(model: Any, with_row: Any, without_row: Any, X: np.ndarray) -> bool:
    """Guess that a row is in a fit if its predictions are nearer to those of the exact fit with the row.

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
    """Fit y by a weighted sum of the columns of X and a constant, exactly.

    >>> least_squares(np.array([[1.0], [2.0], [4.0]]), np.array([3.0, 5.0, 9.0])).coef_.round(9).tolist()
    [2.0]
    """
    weights = np.linalg.lstsq(_with_intercept(X), y, rcond=None)[0]
    return SimpleNamespace(coef_=weights[:-1], intercept_=float(weights[-1]))


def difference_fits(
    data: RegressionData, defence: Defence, rng: np.random.Generator, targets: int, smallest: int
) -> AttackResult:
    """Find for each target which of two numbers it brought into a fit: a low or a high one, as a coin decided."""
    if defence.kind == EASY and len(data.y) - 1 < as_integer(smallest, "smallest", 1):
        raise ValueError(f"X: the easy fix releases no fit of fewer than {smallest} rows: give more, or smallest=")
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
        metric="of the secrets were found",
        # A private fit is for half of epsilon, and for the removal of a row. Only one of the two has the target, and
        # there its number is replaced: a removal and an addition, which is twice the half.
        evidence=GuessEvidence(int(is_right.sum()), is_right.size),
        details={
            "numbers from": float(data.y.min()),
            "numbers to": float(data.y.max()),
            "found number is off by, median": float(np.median(errors)),
            "found number is off by, at most": float(errors.max()),
            "told from one fit whether the row is in it": float(inclusion_right.mean()),
        },
        # Rare is who is far from the centre, in standard deviations of the features.
        exposure=exposure_by_rarity(
            _distance_from_mean(data.X)[target_rows],
            is_right,
            labels=[f"row {row}" for row in target_rows],
            rarity_label="distance",
        ),
    )


def _attack_row(fit: FitFunction, data: RegressionData, row: int, truth: float) -> tuple[float, float]:
    """Return the number that is found, and how many of the two fits are told apart by who knows all the rest."""
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
    """Return what is used of a model that a defence of the user's own returned."""
    if not (hasattr(model, "coef_") and hasattr(model, "intercept_")):
        kind = type(model).__name__
        raise TypeError(f"the defence must return a fitted linear model, with coef_ and intercept_, not {kind}")
    # A model of one target may have it as a table of one column.
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
        raise ValueError(f"{name} must have numbers only, and as many in each row") from None


def _with_intercept(X: np.ndarray) -> np.ndarray:
    return np.column_stack([X, np.ones(len(X))])


def _coefficients(model: Any) -> np.ndarray:
    return np.append(np.ravel(model.coef_), model.intercept_)


def _distance_from_mean(X: np.ndarray) -> np.ndarray:
    return np.asarray(np.linalg.norm((X - X.mean(axis=0)) / np.where(X.std(axis=0) > 0, X.std(axis=0), 1), axis=1))
