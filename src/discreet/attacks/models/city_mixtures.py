"""Where people of a city are, and the mixtures released of it: exact, without small components, private."""

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
_SOUTH, _WEST = 40.4774, -74.2589  # the corner of the file's map, which is public
_KM_PER_DEGREE = 111.2  # kilometres of one degree of latitude


@dataclass(frozen=True)
class City:
    """Places of a crowd and of lone people: two numbers each, kilometres from 0 to `side` in both directions.

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
                raise ValueError(f"{name} must be places of two numbers each, at least one place")
            if not ((places >= 0) & (places <= self.side)).all():
                raise ValueError(f"{name} must lie from 0 to side = {self.side} in both directions")
            object.__setattr__(self, name, places)

    @property
    def isolation(self) -> np.ndarray:
        """How far each lone person is from the nearest other person, in kilometres."""
        others = np.concatenate([self.crowd, self.loners])
        distances = np.linalg.norm(self.loners[:, None] - others, axis=2)
        distances[np.arange(len(self.loners)), len(self.crowd) + np.arange(len(self.loners))] = np.inf
        return np.asarray(distances.min(axis=1))


def simulate_city(loners: int = 12, people: int = 1200, *, random_state: int | None = None) -> City:
    """Make up a city of 40 km: six quarters full of people, and lone people kilometres away from all of them.

    >>> made = simulate_city(random_state=0)
    >>> len(made.loners), bool(made.isolation.min() > 2)
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
    quarter = rng.integers(6, size=people)  # drawn last, so that the lone people are the same for any crowd
    crowd = np.clip(centres[quarter] + widths[quarter, None] * rng.normal(size=(people, 2)), 0, side)
    return City(crowd, np.array(lone_places), side)


def load(folder: Path, loners: int = 12) -> City:
    """Read where each user of Gowalla in New York was last; the lone people are the farthest from all others."""
    import pyarrow.parquet as pq  # noqa: PLC0415 - half of the time that importing an attack takes

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


MIN_COMPONENT_SIZE = 5  # of a component that the easy fix still shows


@dataclass(frozen=True)
class MixtureParameters:
    """A mixture as outsiders see it: the weight of each component, its mean and its covariance."""

    weights: np.ndarray
    means: np.ndarray
    covariances: np.ndarray

    def log_density(self, places: np.ndarray) -> np.ndarray:
        """Return the logarithm of the share of people per square kilometre, at each place."""
        from scipy.special import logsumexp  # noqa: PLC0415 - an extra

        differences = places[:, None] - self.means
        solved = np.linalg.solve(self.covariances, differences[..., None])[..., 0]
        log_determinants = np.linalg.slogdet(2 * np.pi * self.covariances)[1]
        log_terms = -((differences * solved).sum(axis=2) + log_determinants) / 2
        return np.asarray(logsumexp(log_terms, axis=1, b=np.maximum(self.weights, 1e-12)))


def exact_mixture(places: np.ndarray, components: int, seed: int) -> MixtureParameters:
    """Fit scikit-learn's mixture, and release its parameters as they are."""
    from sklearn.exceptions import ConvergenceWarning  # noqa: PLC0415 - an extra
    from sklearn.mixture import GaussianMixture  # noqa: PLC0415

    with warnings.catch_warnings():
        # Where several people are at one place, or the fit goes on a little, the parameters are released all the same.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = GaussianMixture(components, random_state=seed).fit(places)
    return MixtureParameters(model.weights_, model.means_, model.covariances_)


def drop_small_components(mixture: MixtureParameters, people: int) -> MixtureParameters:
    """Leave out the components of fewer than five people, the easy fix.

    >>> mixture = MixtureParameters(np.array([0.01, 0.99]), np.zeros((2, 2)), np.array([np.eye(2)] * 2))
    >>> drop_small_components(mixture, people=100).weights.tolist()
    [0.99]
    """
    is_large = (
        mixture.weights * people >= MIN_COMPONENT_SIZE - 0.01
    )  # what EM has converged to is not exactly a whole number
    if not is_large.any():
        is_large = mixture.weights == mixture.weights.max()  # an empty release would be no mixture
    return MixtureParameters(mixture.weights[is_large], mixture.means[is_large], mixture.covariances[is_large])


def private_mixture(
    places: np.ndarray, components: int, side: float, epsilon: Number, delta: Number
) -> MixtureParameters:
    """Fit the private mixture; the bounds are the ends of the map."""
    model = dc.learn.GaussianMixture(components, epsilon=epsilon, delta=delta, bounds=(0, side)).fit(places)
    return checked_parameters(model)


def user_mixture(user_function: Callable[..., Any], places: np.ndarray) -> MixtureParameters:
    """Fit a mixture by a function of the user's own."""
    model = user_function(places.copy())
    for name in ("weights_", "means_", "covariances_"):
        if isinstance(model, type) or not hasattr(model, name):
            raise ValueError(
                f"the defence must return a fitted mixture with weights_, means_ and covariances_: no {name}"
            )
    return checked_parameters(model)


def checked_parameters(model: Any) -> MixtureParameters:
    """Return the parameters of a fitted mixture with full covariances."""
    means = finite_array(model.means_, (-1, 2), "the defence (its means_)")
    weights = finite_array(model.weights_, (len(means),), "the defence (its weights_)")
    covariances = finite_array(
        model.covariances_, (len(means), 2, 2), "the defence (its covariances_, which must be full)"
    )
    if not len(means) or weights.min() < 0 or weights.max() <= 0:
        raise ValueError("the defence must return a mixture of at least one component, with weights_ from 0")
    transposed = np.swapaxes(covariances, 1, 2)
    if not np.allclose(covariances, transposed) or np.linalg.eigvalsh(covariances).min() <= 0:
        raise ValueError(
            "the defence must return covariances_ that are symmetric and positive definite: add a little to their "
            "diagonals, as reg_covar of scikit-learn does"
        )
    return MixtureParameters(weights, means, covariances)
