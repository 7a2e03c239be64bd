"""Mixtures fitted to the locations of people in a city: non-private, without small components, or private."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

import discreet as dc
from discreet.attacks.attack import CURATOR, EASY, NOTHING, DefenceRelease, Game
from discreet.attacks.validation import finite_array, require

MIN_COMPONENT_SIZE = 5  # the easy fix suppresses smaller components


@dataclass(frozen=True)
class MixtureParameters:
    """The released parameters of a mixture: weights, means and covariances."""

    weights: np.ndarray
    means: np.ndarray
    covariances: np.ndarray

    def log_density(self, places: np.ndarray) -> np.ndarray:
        """Return the log-density at each location, per square kilometre."""
        from scipy.special import logsumexp  # noqa: PLC0415 - an extra

        differences = places[:, None] - self.means
        solved = np.linalg.solve(self.covariances, differences[..., None])[..., 0]
        log_determinants = np.linalg.slogdet(2 * np.pi * self.covariances)[1]
        log_terms = -((differences * solved).sum(axis=2) + log_determinants) / 2
        return np.asarray(logsumexp(log_terms, axis=1, b=np.maximum(self.weights, 1e-12)))


def exact_mixture(places: np.ndarray, components: int, seed: int) -> MixtureParameters:
    """Fit scikit-learn's mixture and return its parameters."""
    from sklearn.exceptions import ConvergenceWarning  # noqa: PLC0415 - an extra
    from sklearn.mixture import GaussianMixture  # noqa: PLC0415

    with warnings.catch_warnings():
        # The parameters are released even if EM has not converged or several people share a location.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = GaussianMixture(components, random_state=seed).fit(places)
    return MixtureParameters(model.weights_, model.means_, model.covariances_)


def drop_small_components(mixture: MixtureParameters, people: int) -> MixtureParameters:
    """Suppress components of fewer than five people, the easy fix.

    >>> mixture = MixtureParameters(np.array([0.01, 0.99]), np.zeros((2, 2)), np.array([np.eye(2)] * 2))
    >>> drop_small_components(mixture, people=100).weights.tolist()
    [0.99]
    """
    is_large = mixture.weights * people >= MIN_COMPONENT_SIZE - 0.01  # sizes after EM are only approximately integers
    if not is_large.any():
        is_large = mixture.weights == mixture.weights.max()  # a mixture needs at least one component
    return MixtureParameters(mixture.weights[is_large], mixture.means[is_large], mixture.covariances[is_large])


def _private_mixture(game: Game, places: np.ndarray, _: int) -> MixtureParameters:
    """Fit the private mixture within the bounds of the map."""
    model = dc.learn.GaussianMixture(
        game.settings.components, epsilon=game.epsilon, delta=game.delta, bounds=(0, game.data.side)
    )
    return checked_parameters(model.fit(places))


def user_mixture(game: Game, places: np.ndarray, _: int) -> MixtureParameters:
    """Fit a mixture by the user's function and validate it."""
    model = game.ask_user(places.copy())
    for name in ("weights_", "means_", "covariances_"):
        require(
            not isinstance(model, type) and hasattr(model, name),
            f"the defence must return a fitted mixture with weights_, means_ and covariances_: {name} is missing",
        )
    return checked_parameters(model)


def checked_parameters(model: Any) -> MixtureParameters:
    """Return the validated parameters of a fitted mixture with full covariances."""
    means = finite_array(model.means_, (-1, 2), "the defence (its means_)")
    weights = finite_array(model.weights_, (len(means),), "the defence (its weights_)")
    covariances = finite_array(
        model.covariances_, (len(means), 2, 2), "the defence (its covariances_, which must be full)"
    )
    require(
        len(means) and weights.min() >= 0 and weights.max() > 0,
        "the defence must return a mixture with at least one component and non-negative weights_",
    )
    transposed = np.swapaxes(covariances, 1, 2)
    require(
        np.allclose(covariances, transposed) and np.linalg.eigvalsh(covariances).min() > 0,
        "the defence must return covariances_ that are symmetric and positive definite: add a small constant to "
        "their diagonals, like scikit-learn's reg_covar",
    )
    return MixtureParameters(weights, means, covariances)


RELEASES = {
    NOTHING: DefenceRelease(
        "weights, means and covariances from scikit-learn",
        lambda game, places, seed: exact_mixture(places, game.settings.components, seed),
    ),
    EASY: DefenceRelease(
        "only components of at least five people; the attacker plants four rows around each lone person",
        lambda game, places, seed: drop_small_components(
            exact_mixture(places, game.settings.components, seed), len(places)
        ),
    ),
    CURATOR: DefenceRelease(
        "a private Gaussian mixture; the attacker plants four rows around each lone person", _private_mixture
    ),
}
