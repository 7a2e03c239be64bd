"""Least squares from one noisy sum: the products of all columns, each in units of its own spread.

A column may be rare: nearly always zero, as the columns of a category are. Its mean deviation then says little of how
far a value lies that is not zero, and its spread may be lost in noise. So units come from squares, never below what
noise can hide; no value is moved towards the others, which would make a rare one's weight too large; and weights are
expected to be moderate over the declared ranges.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.learn.bounds import Ends
from discreet.learn.columns.moments import Place, james_stein, length, located, pooled, symmetric, upper_triangle
from discreet.learn.session import Session

_TARGET_FIRST = 0.4  # the target's weight in the first look, for each feature: a wrong mean costs more than anything
_BETWEEN = 0.4  # weight of a product of two features; one of a feature and the target has 1
_COUNT, _FEATURES, _TARGET = 0.15, 0.1, 0.25  # weights of count and first moments, relative to all products together
_USUAL = np.sqrt(2 / np.pi)  # the mean of |z|, if z is normal
_QUIET = 0.25  # noise of correlations, that times the root of the room, up to which long rows get room
_ROOMS = (1.5, 2.0, 3.0, 4.0, 8.0, 16.0, 32.0, 64.0)
_CUT = 0.2  # of the widest row's squares: rows usually stay within it, and a row beyond is scaled down
_SQUARE, _GIVE, _APART = 0.15, 0.15, 0.1  # of half a range, squared: what squares one expects, and how different
_HIDDEN = 0.15  # of the noise in a square: so much of it a unit holds, lest a column seem wide that is constant
_SMALLEST = 1e-9
_MOVES = 0.5  # of the target's range: what a feature is expected to move it by, from end to end of its own
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
    place = located(session, ends, weight, origin)
    expected, part = _squares(session, place, weight)
    unit = part * place.half
    known = _products(session, place, unit)
    usual = _MOVES * part[:-1] / part[-1]  # what a feature is to move the target by, both in units
    coefficients = _weights(known, expected, usual) * unit[-1] / unit[:-1]
    if origin is not None:
        return coefficients, 0.0
    mean = np.clip(place.centre + known.mean * unit, *ends)
    return coefficients, float(mean[-1] - coefficients @ mean[:-1])


def _squares(session: Session, place: Place, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Draw how far columns spread; return the variances to expect in units, and these, as parts of half a range."""
    radius = _CUT * length(session, weight)
    noise = session.sd(radius) / place.count / weight
    total = session.sum(_away_squared, (place.centre, place.half, weight), size=len(weight), radius=radius)
    seen, left = pooled(total / place.count / weight, noise, expected=(_SQUARE, _GIVE), apart=_APART)
    square = np.clip(place.trust * seen + (1 - place.trust) * _SQUARE, 0, 1)
    held = np.clip(square + _HIDDEN * left, _SMALLEST, 1)
    return square / held, np.sqrt(held)


def _products(session: Session, first: Place, unit: np.ndarray) -> Products:
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
    public = first.centre, unit, weights
    total = session.sum(_weighed, public, size=len(weights), radius=room * radius) / weights
    # Long rows are scaled down as a whole, also their presence: what is divided by is the weight of all rows.
    count = max(float(total[0]), 2 * sd / weights[0], 10.0)
    noise = sd / count / weights[1:]
    mean = total[1 : d + 1] / count * james_stein(first.centre_sd / unit, noise[:d])
    second = symmetric(total[d + 1 :] / count, d) - np.outer(mean, mean)
    return Products(mean, second, symmetric(noise[d:], d))


def _weights(known: Products, expected: np.ndarray, usual: np.ndarray) -> np.ndarray:
    """Return the weights of features, in units: least squares as far as the noise lets one see it.

    With covariances A between features and b with the target, b is A·w and noise: both are corrected by what one
    expects of w without data, which has variances V, and of the noise, N, which gives (A·N⁻¹·A + V⁻¹)⁻¹·A·N⁻¹·b.
    """
    p = len(usual)
    variance = _variances(known, expected)
    scale = np.sqrt(np.maximum(variance[:p], _NARROW))
    aside = float(known.noise[0, 1]) if p > 1 else float(known.noise[0, 0])
    covariance = _covariance(known, variance, scale, aside)
    with_target = known.second[:p, p] / scale
    noise = (known.noise[:p, p] ** 2 + _EXPLAINED * aside**2) / scale**2
    prior = p / (_EXPLAINED * variance[p]) + (usual * scale) ** -2
    heard = covariance / noise  # each column by its own noise: where a spread is small, noise is not
    weights = np.linalg.solve(heard @ covariance + np.diag(prior), heard @ with_target)
    # Weights that vary more than what they explain, as far as was seen, predict worse than the mean alone.
    raw = known.second[:p, :p] / np.outer(scale, scale)
    varies = max(float(weights @ covariance @ weights), float(weights @ raw @ weights), np.finfo(float).tiny)
    return np.asarray(weights / scale * np.clip(weights @ with_target / varies, 0, 1))


def _variances(known: Products, expected: np.ndarray) -> np.ndarray:
    """Return the variances of columns, as far as one can see them, and none that noise would hide."""
    noise = np.diag(known.noise)
    seen = expected + (np.diag(known.second) - expected) * james_stein(np.full(len(noise), _WIDTH), noise)
    return np.asarray(np.maximum(seen, np.minimum(noise, _WIDTH) + _TINY))


def _covariance(known: Products, variance: np.ndarray, scale: np.ndarray, aside: float) -> np.ndarray:
    """Return how features go together, in scales: every number by as much as one believes it, no direction flat."""
    p = len(scale)
    between = known.second * james_stein(np.full_like(known.noise, np.sqrt(_CORRELATION)), known.noise)
    np.fill_diagonal(between, variance)
    values, vectors = np.linalg.eigh(between[:p, :p] / np.outer(scale, scale))
    values = np.maximum(values, min(_FLOOR, aside * np.sqrt(p)) + _TINY)
    return np.asarray((vectors * values) @ vectors.T)


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


def _away_squared(rows: np.ndarray, public: tuple[Any, ...]) -> np.ndarray:
    centre, half, weight = public
    away = (rows.T - centre[:, np.newaxis]) / half[:, np.newaxis]
    return np.asarray((away * away * weight[:, np.newaxis]).T)


def _weighed(rows: np.ndarray, public: tuple[Any, ...]) -> np.ndarray:
    """Give a row's presence, its columns and the products of all pairs of them, each with its weight."""
    centre, unit, weights = public
    d = len(unit)
    out = np.empty((len(weights), len(rows)))
    z = (rows.T - centre[:, np.newaxis]) / unit[:, np.newaxis]
    out[0] = 1
    out[1 : d + 1] = z
    upper_triangle(z, out[d + 1 :])
    out *= weights[:, np.newaxis]
    return out.T
