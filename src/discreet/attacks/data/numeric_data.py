"""Numbers that differ in one person: two sets for the threshold game, and training data for least squares."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.attacks.attack import Source
from discreet.attacks.validation import float_array, require, set_fields


@dataclass(frozen=True)
class TwoSets:
    """Two sets of numbers from 0 to 1 that differ in one element; a coin decides whose mean is released.

    >>> sets = TwoSets(without=[0, 0, 0], with_one=[1, 0, 0])
    >>> sets.threshold
    0.16666666666666666
    """

    without: Any
    with_one: Any

    def __post_init__(self) -> None:
        for name in ("without", "with_one"):
            values = float_array(getattr(self, name), name)
            require(
                values.ndim == 1 and values.size and ((values >= 0) & (values <= 1)).all(),
                f"{name} must be a non-empty list of numbers from 0 to 1",
            )
            set_fields(self, **{name: values})
        require(
            self.without.size == self.with_one.size and np.count_nonzero(self.without != self.with_one) == 1,
            "without and with_one must have the same size and differ in exactly one element",
        )
        require(self.means[0] <= self.means[1], "with_one must have the larger number where the two differ: swap them")

    @property
    def means(self) -> tuple[float, float]:
        """The two means."""
        return float(self.without.mean()), float(self.with_one.mean())

    @property
    def threshold(self) -> float:
        """The adversary's threshold: halfway between the means."""
        return sum(self.means) / 2


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
        X, y = float_array(self.X, "X"), float_array(self.y, "y")
        require(
            X.ndim == 2 and y.shape == X.shape[:1] and np.isfinite(X).all() and np.isfinite(y).all(),
            "X must have one row of finite numbers for each value of y",
        )
        require(
            np.linalg.matrix_rank(np.column_stack([X[1:], np.ones(len(X) - 1)])) > X.shape[1],
            "X must have more rows than columns, and its columns must be linearly independent",
        )
        set_fields(self, X=X, y=y)


def diabetes_data() -> RegressionData:
    """Return scikit-learn's diabetes data: ten measurements per patient, and the disease progression after a year.

    >>> diabetes_data().X.shape
    (442, 10)
    """
    from sklearn.datasets import load_diabetes  # noqa: PLC0415 - an extra

    X, y = load_diabetes(return_X_y=True, scaled=False)
    low, high = [15, 1, 15, 50, 80, 20, 10, 1, 3, 40], [90, 2, 50, 150, 320, 260, 110, 10, 7, 140]
    return RegressionData(X, y, bounds=(low, high), target_bounds=(0, 400))


TWO_SETS = Source(
    TwoSets,
    "TwoSets(without, with_one)",
    lambda _: TwoSets(np.zeros(100), np.eye(1, 100)[0]),
    built_in="100 zeros, and the same with a single 1: the lecture's S and S'",
)
REGRESSION = Source(RegressionData, "RegressionData(X, y, bounds)", lambda _: diabetes_data(), built_in="diabetes data")
