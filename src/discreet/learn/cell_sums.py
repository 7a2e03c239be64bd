"""Noisy counts and mean offsets of the rows nearest to each of several centres: a noisy step of Lloyd's algorithm.

How far offsets are clipped is decided by artificial points, which are released data: they show what clipping moves.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.kernel.model_release import Combine
from discreet.learn.fit_session import FitSession

_COUNT_SHARE = 0.5  # weight of a row's presence; that of its clipped offset is at most 1
_RADIUS_FACTORS = np.geomspace(0.35, 45, 8)  # of the typical offset
_SHARED_ERROR = 0.1  # weight of the other cells in the choice of a cell's radius
_OFFSETS_OF_ROWS = 1.3  # relative to those of artificial points, which the centres were fitted to
_MIN_DEVIATION = 1e-3  # of a column, relative to the largest
_USUAL_MOVE = 0.5  # prior variance of a cell's mean offset, relative to that of its points
_DRIFT = 0.05  # the same for later moves: how far the means are from those of the step before
_SLACK = 1 + 2.0**-10  # so that rounding to the grid clips nothing


@dataclass(frozen=True)
class ArtificialPoints:
    """Points that resemble the rows as far as released sums show it; each weighs as many units as it stands for."""

    points: np.ndarray
    weights: np.ndarray


@dataclass(frozen=True)
class CellSums:
    """Noisy number of units nearest to each centre, with its noise scale, and the moved centres with their variances.

    `expected` is the number that the artificial points show.
    """

    counts: np.ndarray
    count_scale: float
    expected: np.ndarray
    centres: np.ndarray
    variances: np.ndarray


def moved_centres(
    session: FitSession,
    centres: np.ndarray,
    sample: ArtificialPoints,
    deviation: np.ndarray,
    variances: np.ndarray | None = None,
) -> CellSums:
    """Return the centres moved towards the noisy means of their rows, less the more noise there is.

    `deviation` is the typical deviation of each column: columns that vary less get less noise. `variances` are those of
    the centres around the means, if they were moved before.
    """
    norm = 2 if session.is_gaussian else 1
    # Minimises the sum of the columns' noise variances at a given norm of the typical row.
    weight = np.maximum(deviation / deviation.max(), _MIN_DEVIATION) ** (-1 / 2 if norm == 2 else -1 / 3)
    usual = float(np.linalg.norm(deviation * weight, ord=norm))
    ball = _SLACK * float(np.linalg.norm([1, _COUNT_SHARE], ord=norm))
    n_centres, d = centres.shape
    scale, sd = session.scale(ball), session.sd(ball)
    radii = _choose_radii(sd, centres, sample, weight, usual, norm)
    public = centres[0], centres - centres[0], weight, radii, norm
    size = n_centres * (d + 1)
    total = session.sparse_sum(_nearest_cell_entries, public, size=size, radius=ball, combine=Combine.MEAN)
    counts = total[:n_centres] / _COUNT_SHARE
    units = radii[:, np.newaxis] / weight / np.maximum(counts, 2 * sd / _COUNT_SHARE)[:, np.newaxis]
    move, noise = total[n_centres:].reshape(d, n_centres).T * units, (sd * units) ** 2
    within = _variances_of_cells(sample, centres)
    prior = _USUAL_MOVE * within if variances is None else variances + _DRIFT * within
    length = np.maximum((move**2).sum(axis=1, keepdims=True), np.finfo(float).tiny)
    factor = np.minimum(prior / (prior + noise), np.maximum(1 - noise.sum(axis=1, keepdims=True) / length, 0))
    expected = np.bincount(nearest_centres(sample.points, centres), sample.weights, n_centres)
    return CellSums(counts, scale / _COUNT_SHARE, expected, centres + factor * move, factor * noise)


def _variances_of_cells(sample: ArtificialPoints, centres: np.ndarray) -> np.ndarray:
    """Return the mean squared offset of the artificial points of each centre: centres × columns."""
    nearest = nearest_centres(sample.points, centres)
    counts = np.bincount(nearest, sample.weights, len(centres))
    squares = sample.weights[:, np.newaxis] * (sample.points - centres[nearest]) ** 2
    overall = squares.sum(axis=0) / counts.sum()
    by_cell = np.array([np.bincount(nearest, column, len(centres)) for column in squares.T]).T
    few = max(float(counts.mean()) / 10, 1e-9)
    return np.asarray((by_cell + few * overall) / (counts + few)[:, np.newaxis] + np.finfo(float).tiny)


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


def _choose_radii(  # noqa: PLR0913, PLR0917 - the noise, the cells and the norm
    sd: float, centres: np.ndarray, sample: ArtificialPoints, weight: np.ndarray, usual: float, norm: int
) -> np.ndarray:
    """Return the radii at which clipping and noise together move each centre least, judged by artificial points.

    `sd` is that of the noise for a radius of 1, and `usual` the norm of a typical row, without centres.
    """
    nearest = nearest_centres(sample.points, centres)
    offsets = _OFFSETS_OF_ROWS * (sample.points - centres[nearest])
    norms = np.linalg.norm(offsets * weight, ord=norm, axis=1)
    typical = max(float(sample.weights @ norms / sample.weights.sum()), _MIN_DEVIATION * usual)
    counts = np.maximum(np.bincount(nearest, sample.weights, len(centres)), 1.0)
    radii, errors = typical * _RADIUS_FACTORS, np.empty((len(_RADIUS_FACTORS), len(centres)))
    for error, radius in zip(errors, radii, strict=True):
        lost = sample.weights * (1 - radius / np.maximum(norms, radius))
        bias = np.array([np.bincount(nearest, lost * column, len(centres)) for column in offsets.T])
        error[:] = ((bias**2).sum(axis=0) + float(((sd * radius / weight) ** 2).sum())) / counts
    errors += _SHARED_ERROR * errors.mean(axis=1, keepdims=True)
    return np.asarray(radii[errors.argmin(axis=0)])


def _nearest_cell_entries(rows: np.ndarray, public: tuple[Any, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Return the index of the nearest centre, once per number, and the numbers: presence and clipped offset."""
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
