"""Centres of clusters: a noisy grid in the plane of the first axes to start from, then noisy steps of Lloyd's."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.cluster import KMeans as ExactKMeans

from discreet.learn.bounds import Ends
from discreet.learn.columns.axes import Axes, principal_axes
from discreet.learn.columns.moments import length
from discreet.learn.session import Session

_SECOND, _FURTHER = 0.3, 0.4  # an axis is used if it is that long, relative to the first
_CLUSTERS_FOR = (1, 3, 4, 7)  # and if there are so many clusters to tell apart
_LEAST, _MOST = (4, 4, 3, 3), (128, 32, 10, 6)  # cells along each axis of a grid of one to four
_FILLED = 10  # a cell's usual count, in scales of its noise
_REACH, _FINE = 2.2, 24  # a grid's half width in standard deviations; one of so many cells reaches as far as rows can
_FAR = 3.5  # deviations: so far out, a cell that is only noise would draw a centre after it
_ROOMS = (2, 4, 8)
_QUIET = 0.1  # of the spread: centres that are known so well leave room for long rows
_COUNT = 0.2  # weight of a row's presence in its cluster, relative to its distance from the centre


@dataclass(frozen=True)
class Clusters:
    """Centres, and the noisy number of units that are nearest to each."""

    centres: np.ndarray
    counts: np.ndarray


def find_clusters(session: Session, ends: Ends, clusters: int, steps: int) -> Clusters:
    """Return the centres of so many clusters, after so many steps."""
    axes = principal_axes(session, ends, least=1)
    deviation = _deviations(axes)
    dimensions = _dimensions(deviation, clusters)
    centres = np.clip(_start(session, ends, axes, deviation[:dimensions], clusters), *ends)
    explained = 0.8 * float(axes.variances[:dimensions].sum() / max(axes.variances.sum(), np.finfo(float).tiny))
    usual = length(session, axes.spread) * np.sqrt(max(1 - explained, 0.2))
    if session.is_gaussian:
        usual *= np.sqrt(np.pi / 2)
    counts = np.zeros(clusters)
    for _ in range(steps):
        centres, counts = _step(session, axes, centres, usual)
        centres = np.clip(centres, *ends)
    return Clusters(centres, counts)


def _deviations(axes: Axes) -> np.ndarray:
    """Return the standard deviations along the axes: never nothing, whatever the noise says."""
    variances = np.maximum(axes.sure, 0.1 * axes.variances)
    usual = float((axes.spread**2).max()) * np.pi / 2
    variances[0] = max(variances[0], 0.3 * usual)
    return np.asarray(np.sqrt(variances))


def _dimensions(deviation: np.ndarray, clusters: int) -> int:
    """Return how many axes a grid should have."""
    dimensions = 1
    for least in (_SECOND, _FURTHER, _FURTHER):
        enough = clusters >= _CLUSTERS_FOR[dimensions]
        if len(deviation) <= dimensions or deviation[dimensions] < least * deviation[0] or not enough:
            break
        dimensions += 1
    return dimensions


def _start(session: Session, ends: Ends, axes: Axes, deviation: np.ndarray, clusters: int) -> np.ndarray:
    """Count rows on a grid in the plane of the first axes, and cluster its cells: no more noise is needed for that."""
    q = len(deviation)
    scale = session.scale()
    cells = int(np.clip((axes.count / scale / _FILLED) ** (1 / q), _LEAST[q - 1], _MOST[q - 1]))
    cells = max(cells, int(np.ceil((4 * clusters) ** (1 / q))))
    plane = np.ascontiguousarray(axes.directions[:, :q])
    farthest = np.abs(plane.T) @ np.maximum(ends[1] - axes.mean, axes.mean - ends[0])
    # Cells grow with their distance, as sinh does: the middle is told apart, and nobody is beyond the edge.
    reach = np.arcsinh(np.maximum(farthest / deviation if cells >= _FINE else _REACH, _REACH) * np.ones(q))
    step = 2 * reach / cells
    noisy = session.histogram(_cell, (axes.mean, plane / deviation, -reach, step, cells), cells=cells**q)
    places = [np.sinh(-reach[a] + step[a] * (np.arange(cells) + 0.5)) for a in range(q)]
    grid = np.stack([axis.ravel() for axis in np.meshgrid(*places, indexing="ij")], axis=1)
    outside = np.abs(grid).max(axis=1) > _FAR
    weights = np.where(noisy > scale * np.where(outside, np.log(noisy.size) + 3, 1), noisy - scale, 0)
    grid *= deviation
    if (weights > 0).sum() <= clusters:  # nothing but noise: as if rows were normal
        weights = np.exp(-0.5 * ((grid / deviation) ** 2).sum(axis=1))
    filled = weights > 0
    exact = ExactKMeans(clusters, n_init=4, random_state=0)  # of what was released: random, but not secret
    exact.fit(grid[filled], sample_weight=weights[filled])
    return np.asarray(axes.mean + exact.cluster_centers_ @ plane.T)


def _step(session: Session, axes: Axes, centres: np.ndarray, usual: float) -> tuple[np.ndarray, np.ndarray]:
    """Move each centre to the noisy mean of its rows, as far as the move stands out of the noise."""
    clusters, d = centres.shape
    presence = _COUNT * usual
    spread = float(np.sqrt((axes.spread**2).sum() * np.pi / 2))
    blurred = session.sd(usual + presence) * np.sqrt(d) * clusters / axes.count
    room = max((each for each in _ROOMS if each * blurred < _QUIET * spread), default=1)
    radius = room * usual + presence
    sd = session.sd(radius)
    size = clusters * (d + 1)
    total = session.sum(_nearest, (centres, presence), size=size, radius=radius).reshape(clusters, d + 1)
    counts = total[:, 0] / presence
    weight = np.maximum(counts, 2 * sd / presence)[:, np.newaxis]
    move = total[:, 1:] / weight
    noise = d * (sd / weight) ** 2
    believed = np.maximum(1 - noise / np.maximum((move**2).sum(axis=1, keepdims=True), np.finfo(float).tiny), 0)
    return centres + believed * move, counts


def _cell(rows: np.ndarray, public: tuple[Any, ...]) -> np.ndarray:
    """Give each row's cell of the grid; a row beyond it counts at its edge."""
    mean, plane, low, step, cells = public
    cell = np.zeros(len(rows))
    for a in range(plane.shape[1]):
        place = np.zeros(len(rows))
        for j in np.flatnonzero(plane[:, a]):
            place += (rows[:, j] - mean[j]) * plane[j, a]
        cell = cell * cells + np.clip(np.floor((np.arcsinh(place) - low[a]) / step[a]), 0, cells - 1)
    return cell.astype(np.int64)


def _nearest(rows: np.ndarray, public: tuple[Any, ...]) -> np.ndarray:
    """Give a row's presence and its distance from the nearest centre in each column, at the place of that centre."""
    centres, presence = public
    clusters, d = centres.shape
    best, nearest = np.full(len(rows), np.inf), np.zeros(len(rows), np.int64)
    for c in range(clusters):
        distance = np.zeros(len(rows))
        for j in range(d):
            distance += (rows[:, j] - centres[c, j]) ** 2
        nearest[distance < best] = c
        best = np.minimum(best, distance)
    out = np.zeros((clusters, d + 1, len(rows)))
    for c in range(clusters):
        here = nearest == c
        out[c, 0] = here * presence
        np.multiply(rows.T - centres[c][:, np.newaxis], here, out=out[c, 1:])
    return out.reshape(clusters * (d + 1), len(rows)).T
