"""Noisy counts and mean offsets of the rows nearest to each of several centres: a noisy step of Lloyd's algorithm.

How far offsets are clipped is decided by artificial points, which are released data: they show what clipping moves.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.kernel.model_release import Combine
from discreet.learn.bounds import BoundArrays
from discreet.learn.fit_session import FitSession

_COUNT_SHARE = 0.5  # weight of a row's presence; that of its clipped offset is at most 1
_MIN_COUNT = 2.0  # in noise scales: with fewer, nobody is taken to be there
_RADIUS_FACTORS = np.geomspace(0.35, 45, 8)  # of the typical offset
_SHARED_ERROR = 0.1  # weight of the other cells in the choice of a cell's radius
_OFFSETS_OF_ROWS = 1.3  # relative to those of artificial points, which the centres were fitted to
_MIN_DEVIATION = 1e-3  # of a column, relative to the largest
# Prior variance of the distance of a cell's mean from its centre, relative to that of its points; the same for a later
# move, from the mean of the step before; and the factor on it for distances that a small radius must not miss.
_USUAL_MOVE, _DRIFT, _LARGE_MOVE = 0.5, 0.05, 4.0
_SLACK = 1 + 2.0**-10  # so that rounding to the grid clips nothing


@dataclass(frozen=True)
class ArtificialPoints:
    """Points that resemble the rows as far as released sums show it; each weighs as many units as it stands for."""

    points: np.ndarray
    weights: np.ndarray


@dataclass(frozen=True)
class CellSums:
    """Noisy numbers and means of the units nearest to each of several centres.

    `expected` is the number that the artificial points show, `moves` is how far the means are from the centres, with
    the remaining noise `variances`, and `cells` has the cell of each point.
    """

    counts: np.ndarray
    count_scale: float
    means: np.ndarray
    expected: np.ndarray
    moves: np.ndarray
    variances: np.ndarray
    cells: np.ndarray

    @property
    def filled(self) -> np.ndarray:
        """Whether a cell has more units than its noise alone would usually show."""
        return self.counts > _MIN_COUNT * self.count_scale

    def correct(self, sample: ArtificialPoints, bounds: BoundArrays) -> ArtificialPoints:
        """Return the points moved and weighted so that their cells have these counts and means."""
        counts = np.where(self.filled, self.counts, 1e-6)  # positive: k-means needs enough points
        points = np.clip(sample.points + self.moves[self.cells], *bounds)
        return ArtificialPoints(points, sample.weights * (counts / np.maximum(self.expected, 1e-9))[self.cells])


def noisy_means(
    session: FitSession,
    centres: np.ndarray,
    sample: ArtificialPoints,
    deviation: np.ndarray,
    variances: np.ndarray | None = None,
) -> CellSums:
    """Return the noisy sums of the rows nearest to each centre; means are shrunk towards the centres.

    `deviation` is the typical deviation of each column: columns that vary less get less noise. `variances` are those of
    the centres around the means, if they are noisy means themselves.
    """
    norm = 2 if session.is_gaussian else 1
    # Minimises the sum of the columns' noise variances at a given norm of the typical row.
    weight = np.maximum(deviation / deviation.max(), _MIN_DEVIATION) ** (-1 / 2 if norm == 2 else -1 / 3)
    ball = _SLACK * float(np.linalg.norm([1, _COUNT_SHARE], ord=norm))
    (n_centres, d), scale, sd = centres.shape, session.scale(ball), session.sd(ball)
    cells = nearest_centres(sample.points, centres)
    expected = np.bincount(cells, sample.weights, n_centres)
    offsets = sample.points - centres[cells]
    within = _variances_of_cells(offsets, sample.weights, cells, n_centres)
    prior = _USUAL_MOVE * within if variances is None else variances + _DRIFT * within
    norms = _OFFSETS_OF_ROWS * np.linalg.norm(offsets * weight, ord=norm, axis=1)
    least = _MIN_DEVIATION * float(np.linalg.norm(deviation * weight, ord=norm))
    typical = max(float(sample.weights @ norms / sample.weights.sum()), least)
    radii = _choose_radii(
        typical * _RADIUS_FACTORS, sd / weight, offsets, norms, sample.weights, cells, _LARGE_MOVE * within
    )
    public = centres[0], centres - centres[0], weight, radii, norm
    size = n_centres * (d + 1)
    total = session.sparse_sum(_nearest_cell_entries, public, size=size, radius=ball, combine=Combine.MEAN)
    counts = total[:n_centres] / _COUNT_SHARE
    units = radii[:, np.newaxis] / weight / np.maximum(counts, 2 * sd / _COUNT_SHARE)[:, np.newaxis]
    moves, noise = total[n_centres:].reshape(d, n_centres).T * units, (sd * units) ** 2
    length = np.maximum((moves**2).sum(axis=1, keepdims=True), np.finfo(float).tiny)
    factor = np.minimum(prior / (prior + noise), np.maximum(1 - noise.sum(axis=1, keepdims=True) / length, 0))
    moves = factor * moves
    return CellSums(counts, scale / _COUNT_SHARE, centres + moves, expected, moves, factor * noise, cells)


def _sums_by_cell(values: np.ndarray, weights: np.ndarray, cells: np.ndarray, n_cells: int) -> np.ndarray:
    """Return the weighted sum of the points of each cell: cells × columns."""
    return np.array([np.bincount(cells, weights * column, n_cells) for column in values.T]).T


def _variances_of_cells(offsets: np.ndarray, weights: np.ndarray, cells: np.ndarray, n_cells: int) -> np.ndarray:
    """Return the mean squared offset of the artificial points of each cell: cells × columns."""
    counts = np.bincount(cells, weights, n_cells)[:, np.newaxis]
    squares = _sums_by_cell(offsets**2, weights, cells, n_cells)
    few = max(float(counts.mean()) / 10, 1e-9)
    overall = squares.sum(axis=0) / counts.sum()
    return np.asarray((squares + few * overall) / (counts + few) + np.finfo(float).tiny)


def nearest_centres(points: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """Return the index of the nearest centre of each point.

    >>> nearest_centres(np.array([[1.0], [7.0]]), np.array([[9.0], [0.0]])).tolist()
    [1, 0]
    """
    shifted = centres - centres[0]
    return np.asarray(((shifted**2).sum(axis=1) - 2 * (points - centres[0]) @ shifted.T).argmin(axis=1))


def squared_distances(columns: np.ndarray, centres: np.ndarray) -> Iterator[np.ndarray]:
    """Yield the squared distances of all rows, given by column, to one centre after the other, in one array."""
    distances, square = np.empty(columns.shape[1]), np.empty(columns.shape[1])
    for centre in centres:
        distances[:] = 0.0
        for j, column in enumerate(columns):  # one by one: the rounding of a product of matrices depends on other rows
            np.subtract(column, centre[j], out=square)
            np.multiply(square, square, out=square)
            np.add(distances, square, out=distances)
        yield distances


def _choose_radii(  # noqa: PLR0913, PLR0917 - the noise and the points
    radii: np.ndarray,
    sd: np.ndarray,
    offsets: np.ndarray,
    norms: np.ndarray,
    weights: np.ndarray,
    cells: np.ndarray,
    prior: np.ndarray,
) -> np.ndarray:
    """Return for each cell the radius at which clipping and noise together are expected to move its mean least.

    `sd` is the noise in each column for a radius of 1. What clipping moves is that of the artificial points, and its
    share of the distance between the means, which the prior variance expects: points that are symmetric around their
    mean show no bias, whatever the radius.
    """
    n_cells = len(prior)
    counts = np.maximum(np.bincount(cells, weights, n_cells), 1.0)
    errors = np.empty((len(radii), n_cells))
    for error, radius in zip(errors, radii, strict=True):
        lost = weights * (1 - radius / np.maximum(norms, radius))
        bias = _OFFSETS_OF_ROWS * _sums_by_cell(offsets, lost, cells, n_cells)
        share = np.bincount(cells, lost, n_cells) / counts
        noise = float(((sd * radius) ** 2).sum())
        error[:] = ((bias**2).sum(axis=1) + noise) / counts + share**2 * prior.sum(axis=1) * counts
    errors += _SHARED_ERROR * errors.mean(axis=1, keepdims=True)
    return np.asarray(radii[errors.argmin(axis=0)])


def _nearest_cell_entries(rows: np.ndarray, public: tuple[Any, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Return the index of the nearest centre, once per number, and presence and clipped offset."""
    origin, centres, weight, radii, norm = public
    columns = rows.T - origin[:, np.newaxis]
    best, nearest = np.full(len(rows), np.inf), np.zeros(len(rows), np.int64)
    for c, distances in enumerate(squared_distances(columns, centres)):
        nearest[distances < best] = c
        np.minimum(best, distances, out=best)
    numbers = np.empty((1 + len(weight), len(rows)))
    length = np.zeros(len(rows))
    for j, column in enumerate(columns):
        np.multiply(column - centres[nearest, j], weight[j], out=numbers[1 + j])
        length += np.abs(numbers[1 + j]) if norm == 1 else numbers[1 + j] ** 2
    if norm == 2:
        length = np.sqrt(length)
    numbers[1:] /= np.maximum(length, radii[nearest])
    numbers[0] = _COUNT_SHARE
    return np.broadcast_to(nearest[:, np.newaxis], (len(rows), 1 + len(weight))), numbers.T
