"""Principal axes from noisy second moments of the columns that stand out of the noise."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.learn.bounds import Ends
from discreet.learn.columns.moments import Survey, james_stein, survey, symmetric, upper_triangle
from discreet.learn.session import Session

_TINY = np.finfo(float).tiny
_MOST = 256  # columns whose products are summed
_SPIKE = 0.25  # of the variance: what the first axis is expected to hold
# How much longer than usual a row may be before it is scaled down, and the share of the variance that this hides:
# a row's tail is worth room only where the noise is small anyway.
_ROOM = ((1, 0.012), (2, 0.004), (4, 0.0015), (8, 5e-4), (16, 2e-4), (32, 7e-5), (64, 0.0))
_FIRST = 0.1  # weight of the first moments, which mend the centre, relative to the second
_SEEN = 0.3  # how far first moments must be believed before second ones are mended by them
_CORRELATION = 0.4  # squared: what one expects of two columns that stand out
_DIAGONAL = 0.5  # squared: how far a variance may be from what the first look says, relative to it


@dataclass(frozen=True)
class Axes:
    """Orthonormal directions in columns, by falling variance; `noise` is the variance that noise alone can show."""

    count: float
    mean: np.ndarray
    spread: np.ndarray
    directions: np.ndarray
    variances: np.ndarray
    noise: float
    total: float

    @property
    def sure(self) -> np.ndarray:
        """The variances without what noise adds to those that stand out of it."""
        added = self.noise**2 / np.maximum(self.variances, self.noise + _TINY)
        return np.asarray(np.maximum(self.variances - added, 0))


def principal_axes(session: Session, ends: Ends, least: int, known: np.ndarray | None = None) -> Axes:
    """Return at least so many axes, by three draws: where the columns lie, how far they spread, their products."""
    first = survey(session, ends, (ends[1] - ends[0]) / 2, known)
    columns, room = _worth_it(session, first, least)
    moved, second, noise = _moments(session, first, columns, room)
    mean = first.centre.copy()
    mean[columns] += moved
    covariance, left = _believed(second, noise, first.variance[columns], first.trust)
    variances, vectors = np.linalg.eigh(covariance)
    directions = np.zeros((len(mean), len(columns)))
    directions[columns] = vectors[:, ::-1]
    outside = np.delete(first.variance, columns).sum()
    return Axes(
        first.count,
        mean,
        first.spread,
        directions,
        np.maximum(variances[::-1], 0),
        left * np.sqrt(len(columns)),
        float(np.trace(covariance) + outside),
    )


def _moments(
    session: Session, first: Survey, columns: np.ndarray, room: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw how far the columns' means are from their centres, and their covariances, with the noise of these."""
    m = len(columns)
    twice = np.sqrt(2) if session.is_gaussian else 1.0  # in l2 a product that stands twice in a matrix counts twice
    weight, radius = _sizes(session, first.spread[columns], room)
    sd = session.sd(radius) / first.count
    public = first.centre, columns, weight, twice
    total = session.sum(_products, public, size=m + m * (m + 1) // 2, radius=radius) / first.count
    off, blurred = ~np.eye(m, dtype=bool), sd / weight
    shift = first.trust * total[:m] / weight
    believed = james_stein(first.centre_sd[columns], np.full(m, blurred))
    second = symmetric(total[m:], m) / np.where(off, twice, 1)
    if believed.mean() > _SEEN:  # a wrong centre looks like an axis of its own, until it is taken off
        second -= np.outer(shift, shift) - blurred**2 * np.eye(m)
    return believed * shift, second, np.where(off, sd / twice, sd)


def _worth_it(session: Session, first: Survey, least: int) -> tuple[np.ndarray, int]:
    """Return the columns whose products are worth their noise, and the room for long rows, by what is public."""
    order = np.argsort(-first.spread)
    m = np.arange(1, len(order) + 1)
    held = np.cumsum(first.variance[order])
    usual = held if session.is_gaussian else _pairs(np.cumsum(first.spread[order]), np.cumsum(first.spread[order] ** 2))
    noise = session.sd() * usual * np.sqrt(m) / first.count
    best = (-1.0, 1, 1)
    for room, hidden in _ROOM:
        kept = held * np.maximum(1 - (room * noise / (_SPIKE * held)) ** 2, 0) * (1 - hidden)
        best = max(best, (float(kept.max()), int(np.argmax(kept)) + 1, room))
    return np.sort(order[: max(least, min(best[1], _MOST))]), best[2]


def _sizes(session: Session, spread: np.ndarray, room: int) -> tuple[float, float]:
    """Return the weight of a first moment, and the radius that usual rows stay within."""
    if session.is_gaussian:
        square = room * np.pi / 2 * float((spread**2).sum())
        weight = _FIRST * np.sqrt(square / room)
        return float(weight), float(np.sqrt(square**2 + weight**2 * square))
    weight = _FIRST * float(spread.sum())
    pairs = room * float(_pairs(spread.sum(), (spread**2).sum()))
    return weight, pairs + np.sqrt(room) * weight * float(spread.sum())


def _pairs(total: Any, squares: Any) -> Any:
    """Return the sum of the products of all pairs of numbers, each with itself too."""
    return (total**2 + squares) / 2


def _believed(second: np.ndarray, noise: np.ndarray, variance: np.ndarray, trust: float) -> tuple[np.ndarray, float]:
    """Return the covariance, every entry as far as its noise lets one believe it, and the noise that is left."""
    usual = np.sqrt(np.outer(variance, variance))
    weight = trust * james_stein(np.sqrt(_CORRELATION) * usual, noise)
    covariance = weight * second
    seen = np.diag(second)
    sure = trust * james_stein(np.sqrt(_DIAGONAL) * variance, np.diag(noise))
    np.fill_diagonal(covariance, variance + sure * (seen - variance))
    return covariance, float(np.sqrt(np.mean((weight * noise) ** 2)))


def _products(rows: np.ndarray, public: tuple[Any, ...]) -> np.ndarray:
    """Give each row's columns, less the centre, and the products of all pairs of them."""
    centre, columns, weight, twice = public
    m = len(columns)
    z = rows.T[columns] - centre[columns, np.newaxis]
    out = np.empty((m + m * (m + 1) // 2, len(rows)))
    np.multiply(z, weight, out=out[:m])
    upper_triangle(z, out[m:])
    if twice != 1:
        first, second = np.triu_indices(m)
        out[m:][first != second] *= twice
    return out.T
