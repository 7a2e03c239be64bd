"""Several candidates for the centres of k-means, of which one noisy sum shows the best.

Local optima of k-means differ by more than its noise, so that one more release is worth its cost.
"""

import warnings
from typing import Any

import numpy as np
from sklearn.cluster import KMeans as NonPrivateKMeans
from sklearn.exceptions import ConvergenceWarning

from discreet.learn.cell_sums import ArtificialPoints, squared_distances
from discreet.learn.fit_session import FitSession

_CANDIDATES = 4
_STARTS_FROM_CELLS, _STARTS_FROM_POINTS = 8, 3
_STEPS = 20  # of ordinary k-means, from the centres of the cells
_SAME = 1e-4  # relative difference of the inertia of equal candidates
_RADIUS_FACTORS = np.geomspace(1, 100, 9)  # of the typical difference


def candidate_centres(sample: ArtificialPoints, cells: ArtificialPoints, n_clusters: int) -> list[np.ndarray]:
    """Return the best centres for the points that ordinary k-means finds from many starts; this is post-processing."""
    starts: list[Any] = ["k-means++"] * _STARTS_FROM_POINTS
    if len(cells.points) > n_clusters:
        starts += [best_centres(cells, n_clusters, starts=1, seed=seed) for seed in range(_STARTS_FROM_CELLS)]
    found = []
    for seed, start in enumerate(starts):
        kmeans = NonPrivateKMeans(n_clusters, init=start, n_init=1, max_iter=_STEPS, random_state=seed)
        found.append(_fitted(kmeans, sample))
    found.sort(key=lambda kmeans: kmeans.inertia_)
    distinct: list[NonPrivateKMeans] = []
    for kmeans in found:
        if not distinct or kmeans.inertia_ > (1 + _SAME) * distinct[-1].inertia_:
            distinct.append(kmeans)
    return [kmeans.cluster_centers_ for kmeans in distinct[:_CANDIDATES]]


def best_centres(sample: ArtificialPoints, count: int, starts: int, seed: int = 0) -> np.ndarray:
    """Return the centres of ordinary k-means of weighted points; the seed need not be secret."""
    return np.asarray(_fitted(NonPrivateKMeans(count, n_init=starts, random_state=seed), sample).cluster_centers_)


def _fitted(kmeans: NonPrivateKMeans, sample: ArtificialPoints) -> NonPrivateKMeans:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct points than clusters, or too few steps
        return kmeans.fit(sample.points, sample_weight=sample.weights)


def select_centres(session: FitSession, sample: ArtificialPoints, candidates: list[np.ndarray]) -> np.ndarray:
    """Return the candidate with the smallest noisy inertia, from one release of the differences between them.

    What clipping leaves out of the differences is added as the artificial points show it.
    """
    origin, norm = candidates[0][0], 2 if session.is_gaussian else 1
    centres = np.array(candidates) - origin
    differences = _differences(sample.points.T - origin[:, np.newaxis], centres).T
    norms = np.linalg.norm(differences, ord=norm, axis=1)
    typical = max(float(sample.weights @ norms / sample.weights.sum()), 1e-9 * float((centres**2).max()) + 1e-12)

    def left_out(radius: float) -> np.ndarray:
        return np.asarray((sample.weights * (1 - radius / np.maximum(norms, radius))) @ differences)

    def expected_error(radius: float) -> float:
        return float(np.abs(left_out(radius)).max()) + session.sd(radius)

    radius = min((typical * float(factor) for factor in _RADIUS_FACTORS), key=expected_error)
    noisy = session.sum(_difference_of_candidates, (origin, centres), size=len(candidates), radius=radius)
    return candidates[int(np.argmin(noisy + left_out(radius)))]


def _differences(columns: np.ndarray, candidates: np.ndarray) -> np.ndarray:
    """Return the squared distances to the nearest centre of each candidate, less their mean: candidates × rows."""
    nearest = np.empty((len(candidates), columns.shape[1]))
    for t, centres in enumerate(candidates):
        nearest[t] = np.inf
        for distances in squared_distances(columns, centres):
            np.minimum(nearest[t], distances, out=nearest[t])
    mean = nearest[0] / len(candidates)
    for line in nearest[1:]:  # in order: the rounding of numpy's mean depends on the number of rows
        mean = mean + line / len(candidates)
    return np.asarray(nearest - mean)


def _difference_of_candidates(rows: np.ndarray, public: tuple[Any, ...]) -> np.ndarray:
    origin, candidates = public
    return _differences(rows.T - origin[:, np.newaxis], candidates).T
