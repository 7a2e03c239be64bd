"""What an owner releases of places: the parameters of a mixture, exact, without small components, or private."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import discreet as dc
from discreet.attacks.checking import numbers
from discreet.kernel.exact import Number

FEWEST = 5  # of a component that the easy fix still shows


@dataclass(frozen=True)
class Seen:
    """A mixture as outsiders see it: the weight of each component, its mean and its covariance."""

    weights: np.ndarray
    means: np.ndarray
    covariances: np.ndarray

    def log_density(self, places: np.ndarray) -> np.ndarray:
        """Return the logarithm of the share of people per square kilometre, at each place."""
        from scipy.special import logsumexp  # noqa: PLC0415 - an extra

        away = places[:, None] - self.means
        solved = np.linalg.solve(self.covariances, away[..., None])[..., 0]
        spread = np.linalg.slogdet(2 * np.pi * self.covariances)[1]
        each = -((away * solved).sum(axis=2) + spread) / 2
        return np.asarray(logsumexp(each, axis=1, b=np.maximum(self.weights, 1e-12)))


def exact(places: np.ndarray, components: int, seed: int) -> Seen:
    """Fit scikit-learn's mixture, and release its parameters as they are."""
    from sklearn.exceptions import ConvergenceWarning  # noqa: PLC0415 - an extra
    from sklearn.mixture import GaussianMixture  # noqa: PLC0415

    with warnings.catch_warnings():
        # Where several people are at one place, or the fit goes on a little, the parameters are released all the same.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = GaussianMixture(components, random_state=seed).fit(places)
    return Seen(model.weights_, model.means_, model.covariances_)


def without_small(seen: Seen, people: int) -> Seen:
    """Leave out the components of fewer than five people, the easy fix.

    >>> seen = Seen(np.array([0.01, 0.99]), np.zeros((2, 2)), np.array([np.eye(2)] * 2))
    >>> without_small(seen, people=100).weights.tolist()
    [0.99]
    """
    kept = seen.weights * people >= FEWEST - 0.01  # what EM has converged to is not exactly a whole number
    if not kept.any():
        kept = seen.weights == seen.weights.max()  # an empty release would be no mixture
    return Seen(seen.weights[kept], seen.means[kept], seen.covariances[kept])


def private(places: np.ndarray, components: int, side: float, epsilon: Number, delta: Number) -> Seen:
    """Fit the private mixture; the bounds are the ends of the map."""
    model = dc.learn.GaussianMixture(components, epsilon=epsilon, delta=delta, bounds=(0, side)).fit(places)
    return of_model(model)


def own(make: Callable[..., Any], places: np.ndarray) -> Seen:
    """Fit a mixture by a function of the user's own."""
    model = make(places.copy())
    for name in ("weights_", "means_", "covariances_"):
        if isinstance(model, type) or not hasattr(model, name):
            raise ValueError(
                f"the defence must return a fitted mixture with weights_, means_ and covariances_: no {name}"
            )
    return of_model(model)


def of_model(model: Any) -> Seen:
    """Return the parameters of a fitted mixture with full covariances."""
    means = numbers(model.means_, (-1, 2), "the defence (its means_)")
    weights = numbers(model.weights_, (len(means),), "the defence (its weights_)")
    covariances = numbers(model.covariances_, (len(means), 2, 2), "the defence (its covariances_, which must be full)")
    if not len(means) or weights.min() < 0 or weights.max() <= 0:
        raise ValueError("the defence must return a mixture of at least one component, with weights_ from 0")
    turned = np.swapaxes(covariances, 1, 2)
    if not np.allclose(covariances, turned) or np.linalg.eigvalsh(covariances).min() <= 0:
        raise ValueError(
            "the defence must return covariances_ that are symmetric and positive definite: add a little to their "
            "diagonals, as reg_covar of scikit-learn does"
        )
    return Seen(weights, means, covariances)
