"""Least squares from one noisy sum: the products of all columns, each in units of its own spread."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.learn.bounds import Ends
from discreet.learn.columns.moments import Survey, james_stein, survey, symmetric, upper_triangle
from discreet.learn.session import Session

_TARGET_FIRST = 0.4  # the target's weight in the first look, for each feature: a wrong mean costs more than anything
_BETWEEN = 0.4  # weight of a product of two features; one of a feature and the target has 1
_COUNT, _FEATURES, _TARGET = 0.15, 0.1, 0.25  # weights of count and first moments, relative to all products together
_USUAL = np.sqrt(2 / np.pi)  # the mean of |z|, if z is normal
_QUIET = 0.25  # noise of correlations, that times the root of the room, up to which long rows get room
_ROOMS = (1.5, 2.0, 3.0, 4.0, 8.0, 16.0, 32.0, 64.0)
_FAR = 6.0  # spreads: a value further away is moved there, or room times as far where there is room
_EXPLAINED = 0.4  # the share of the target's variance that one expects features to explain
_CORRELATION = 0.1  # squared: what one expects of two features
_WIDTH = 0.5  # how far a variance may be from its unit's square, which the first look tells
_NARROW = 0.1  # a narrower column than its unit says is constant for all one knows: its weight is not to grow
_TINY = 1e-12
_FLOOR = 0.03  # no combination of features varies less, unless the noise lets one see it


@dataclass(frozen=True)
class Products:
    """What is known of columns in units of their spread: means, second moments, and the noise of each."""

    mean: np.ndarray
    second: np.ndarray
    noise: np.ndarray


def regress(session: Session, ends: Ends, origin: np.ndarray | None = None) -> tuple[np.ndarray, float]:
    """Return coefficients and intercept for the last column; lines go through the origin, if one is given."""
    features = len(ends[0]) - 1
    weight = np.append(np.ones(features), 1 + _TARGET_FIRST * features)
    first = survey(session, ends, weight, origin)
    unit = np.hypot(first.spread, first.spread_sd) / _USUAL  # too wide a unit costs noise, too narrow a one cuts rows
    known = _products(session, first, unit)
    coefficients = _weights(known) * unit[-1] / unit[:-1]
    if origin is not None:
        return coefficients, 0.0
    mean = np.clip(first.centre + known.mean * unit, *ends)
    return coefficients, float(mean[-1] - coefficients @ mean[:-1])


def _products(session: Session, first: Survey, unit: np.ndarray) -> Products:
    """Draw the products of all columns, with their means and the number of rows once more."""
    d = len(unit)
    weights = _weighing(session, d)
    usual = np.concatenate(
        [weights[:1], weights[1 : d + 1] * _usual(session), weights[d + 1 :] * _usual_pairs(session, d)]
    )
    radius = float(np.sqrt((usual**2).sum()) if session.is_gaussian else usual.sum())
    quiet = _QUIET * first.count / (session.sd(radius) * np.sqrt(d))
    room = max((each for each in _ROOMS if each**1.5 <= quiet), default=1.0)
    sd = session.sd(room * radius)
    public = first.centre, unit, _FAR * room, weights
    total = session.sum(_weighed, public, size=len(weights), radius=room * radius) / weights
    # Long rows are scaled down as a whole, also their presence: what is divided by is the weight of all rows.
    count = max(float(total[0]), 2 * sd / weights[0], 10.0)
    noise = sd / count / weights[1:]
    mean = total[1 : d + 1] / count * james_stein(first.centre_sd / unit, noise[:d])
    second = symmetric(total[d + 1 :] / count, d) - np.outer(mean, mean)
    return Products(mean, second, symmetric(noise[d:], d))


def _weights(known: Products) -> np.ndarray:
    """Return the weights of features, in units of spread: least squares as far as the noise lets one see it.

    With covariances A between features and b with the target, b is A·w and noise: both are corrected by what one
    expects of w without data, N(0, explained/features), which gives (A² + noise²·features/explained)⁻¹·A·b.
    """
    noise = known.noise
    p = len(noise) - 1
    seen = np.diag(known.second)
    blurred = np.diag(noise)
    variance = 1 + (seen - 1) * james_stein(np.full(p + 1, _WIDTH), blurred)
    variance = np.maximum(variance, np.minimum(blurred, _WIDTH) + _TINY)
    scale = np.sqrt(np.maximum(variance[:p], _NARROW))
    between = known.second * james_stein(np.full_like(noise, np.sqrt(_CORRELATION)), noise)
    np.fill_diagonal(between, variance)
    values, vectors = np.linalg.eigh(between[:p, :p] / np.outer(scale, scale))
    aside = float(noise[0, 1]) if p > 1 else float(noise[0, 0])
    values = np.maximum(values, min(_FLOOR, aside * np.sqrt(p)) + _TINY)
    noise_squared = (noise[0, p] ** 2 + _EXPLAINED * aside**2) / np.median(variance)
    turned = vectors.T @ (known.second[:p, p] / scale)
    return np.asarray(vectors @ (values * turned / (values**2 + noise_squared * p / _EXPLAINED)) / scale)


def _weighing(session: Session, d: int) -> np.ndarray:
    """Return the weight of everything that is summed: the row itself, each column, each product of two."""
    first, second = np.triu_indices(d)
    pairs = np.where(second == d - 1, 1.0, _BETWEEN)
    if session.is_gaussian:
        pairs = pairs * np.where(first == second, 1, np.sqrt(2))  # in l2 a product that stands twice counts twice
    usual = pairs * _usual_pairs(session, d)
    size = float(np.sqrt((usual**2).sum()) if session.is_gaussian else usual.sum())
    each = _FEATURES * size / (np.sqrt(d - 1) if session.is_gaussian else d - 1)
    return np.concatenate([[_COUNT * size], np.full(d - 1, each), [_TARGET * size], pairs])


def _usual(session: Session) -> float:
    """Return how large a column is, in the norm of the noise, if it is normal."""
    return 1.0 if session.is_gaussian else float(_USUAL)


def _usual_pairs(session: Session, d: int) -> np.ndarray:
    """Return how large a product of two columns is."""
    first, second = np.triu_indices(d)
    if session.is_gaussian:
        return np.where(first == second, np.sqrt(3), 1.0)
    return np.where(first == second, 1.0, _USUAL**2)


def _weighed(rows: np.ndarray, public: tuple[Any, ...]) -> np.ndarray:
    """Give a row's presence, its columns and the products of all pairs of them, each with its weight."""
    centre, unit, far, weights = public
    d = len(unit)
    out = np.empty((len(weights), len(rows)))
    z = np.clip((rows.T - centre[:, np.newaxis]) / unit[:, np.newaxis], -far, far)
    out[0] = 1
    out[1 : d + 1] = z
    upper_triangle(z, out[d + 1 :])
    out *= weights[:, np.newaxis]
    return out.T
