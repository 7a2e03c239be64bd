"""Locations of people in a city, and mixtures fitted to them: non-private, without small components, or private."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import discreet as dc
from discreet.attacks.validation import data_file, finite_array, float_matrix, random_generator
from discreet.kernel.numbers import Number, as_positive

CHECKINS_FILE = "gowalla_nyc_checkins.parquet"
_SOUTH, _WEST = 40.4774, -74.2589  # the public corner of the map
_KM_PER_DEGREE = 111.2  # of latitude


@dataclass(frozen=True)
class City:
    """Locations of a crowd and of lone people, in kilometres from 0 to `side` in both directions.

    >>> City(crowd=[[1, 1], [1, 2]], loners=[[9, 9]], side=10).isolation.round(2).tolist()
    [10.63]
    """

    crowd: Any
    loners: Any
    side: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "side", float(as_positive(self.side, "side")))
        for name in ("crowd", "loners"):
            places, _ = float_matrix(getattr(self, name), name)
            if places.ndim != 2 or places.shape[1] != 2 or not len(places):
                raise ValueError(f"{name} must be at least one location of two numbers")
            if not ((places >= 0) & (places <= self.side)).all():
                raise ValueError(f"{name} must be from 0 to side = {self.side} in both directions")
            object.__setattr__(self, name, places)

    @property
    def isolation(self) -> np.ndarray:
        """The distance of each lone person to the nearest other person, in kilometres."""
        others = np.concatenate([self.crowd, self.loners])
        distances = np.linalg.norm(self.loners[:, None] - others, axis=2)
        distances[np.arange(len(self.loners)), len(self.crowd) + np.arange(len(self.loners))] = np.inf
        return np.asarray(distances.min(axis=1))


def simulate_city(loners: int = 12, people: int = 1200, *, random_state: int | None = None) -> City:
    """Simulate a city of 40 km with six dense quarters, and lone people kilometres away from them.

    >>> city = simulate_city(random_state=0)
    >>> len(city.loners), bool(city.isolation.min() > 2)
    (12, True)
    """
    rng, side = random_generator(random_state), 40.0
    centres, widths = rng.uniform(8, 32, (6, 2)), rng.uniform(0.4, 1.5, 6)
    lone_places: list[np.ndarray] = []
    while len(lone_places) < loners:
        place = rng.uniform(0, side, 2)
        distances = np.linalg.norm(np.array([*centres, *lone_places]) - place, axis=1)
        if (distances > np.append(3 + 3 * widths, np.full(len(lone_places), 3))).all():
            lone_places.append(place)
    quarter = rng.integers(6, size=people)  # drawn last, so that the lone people do not depend on the crowd
    crowd = np.clip(centres[quarter] + widths[quarter, None] * rng.normal(size=(people, 2)), 0, side)
    return City(crowd, np.array(lone_places), side)


def load(folder: Path, loners: int = 12) -> City:
    """Read the last check-in of each Gowalla user in New York; the lone people are the farthest from all others."""
    import pyarrow.parquet as pq  # noqa: PLC0415 - slow to import

    table = pq.read_table(data_file(folder, CHECKINS_FILE), columns=["user", "time", "lat", "lon"]).sort_by(
        [("user", "ascending"), ("time", "descending")]
    )
    _, last = np.unique(table["user"].to_numpy(), return_index=True)
    north = (table["lat"].to_numpy()[last] - _SOUTH) * _KM_PER_DEGREE
    east = (table["lon"].to_numpy()[last] - _WEST) * _KM_PER_DEGREE * np.cos(np.radians(_SOUTH))
    places = np.column_stack([east, north]).clip(0)
    order = np.argsort(-_nearest_distances(places), kind="stable")
    return City(places[order[loners:]], places[order[:loners]], side=50.0)


def _nearest_distances(places: np.ndarray) -> np.ndarray:
    from scipy.spatial import cKDTree  # noqa: PLC0415 - an extra

    return np.asarray(cKDTree(places).query(places, k=2)[0][:, 1])


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


def private_mixture(
    places: np.ndarray, components: int, side: float, epsilon: Number, delta: Number
) -> MixtureParameters:
    """Fit the private mixture within the bounds of the map."""
    model = dc.learn.GaussianMixture(components, epsilon=epsilon, delta=delta, bounds=(0, side)).fit(places)
    return checked_parameters(model)


def user_mixture(user_function: Callable[..., Any], places: np.ndarray) -> MixtureParameters:
    """Fit a mixture by the user's function and validate it."""
    model = user_function(places.copy())
    for name in ("weights_", "means_", "covariances_"):
        if isinstance(model, type) or not hasattr(model, name):
            raise ValueError(
                f"the defence must return a fitted mixture with weights_, means_ and covariances_: {name} is missing"
            )
    return checked_parameters(model)


def checked_parameters(model: Any) -> MixtureParameters:
    """Return the validated parameters of a fitted mixture with full covariances."""
    means = finite_array(model.means_, (-1, 2), "the defence (its means_)")
    weights = finite_array(model.weights_, (len(means),), "the defence (its weights_)")
    covariances = finite_array(
        model.covariances_, (len(means), 2, 2), "the defence (its covariances_, which must be full)"
    )
    if not len(means) or weights.min() < 0 or weights.max() <= 0:
        raise ValueError("the defence must return a mixture with at least one component and non-negative weights_")
    transposed = np.swapaxes(covariances, 1, 2)
    if not np.allclose(covariances, transposed) or np.linalg.eigvalsh(covariances).min() <= 0:
        raise ValueError(
            "the defence must return covariances_ that are symmetric and positive definite: add a small constant to "
            "their diagonals, like scikit-learn's reg_covar"
        )
    return MixtureParameters(weights, means, covariances)
