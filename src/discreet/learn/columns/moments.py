"""A first look at columns: how many units there are, where each column lies and how far it spreads, in two draws."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.learn.bounds import Ends
from discreet.learn.session import Session

_COUNT_WEIGHT = 0.2  # of a unit's presence, beside all of its columns together
_CUT = 0.35  # of the widest row: rows usually stay within it, and a row beyond is scaled down
_TYPICAL = 0.35  # of half a range: the mean absolute deviation that one expects without any data
_NARROWEST = (1e-4, 0.02)  # of half a range: no column is taken to be narrower, as far as the noise lets one see it


@dataclass(frozen=True)
class Place:
    """Where columns lie, by one noisy sum: `half` a range is as far as a value usually can be from the centre.

    `trust` is 0 if the count is lost in its noise, and near 1 if it is known; `centre_sd` is the noise left in centres.
    """

    count: float
    trust: float
    centre: np.ndarray
    centre_sd: np.ndarray
    half: np.ndarray


@dataclass(frozen=True)
class Survey:
    """What two noisy sums tell of columns; `trust` is 0 if the count is lost in its noise, and near 1 if it is known.

    `spread` is each column's mean absolute deviation from `centre`; the `_sd` are what noise is left in them.
    """

    count: float
    trust: float
    centre: np.ndarray
    centre_sd: np.ndarray
    spread: np.ndarray
    spread_sd: np.ndarray

    @property
    def variance(self) -> np.ndarray:
        """What the variances would be if columns were normal."""
        return self.spread**2 * (np.pi / 2)


def survey(session: Session, ends: Ends, weight: np.ndarray, known: np.ndarray | None = None) -> Survey:
    """Take the first look: columns share the noise in proportion to their weight; a centre may be known beforehand."""
    place = located(session, ends, weight, known)
    radius = _CUT * length(session, weight)
    noise = session.sd(radius) / place.count / weight
    total = session.sum(_deviations, (place.centre, place.half / weight), size=len(weight), radius=radius)
    scaled, left = pooled(total / place.count / weight, noise, expected=(_TYPICAL, 0.15), apart=0.2)
    narrowest = np.clip(left, *_NARROWEST)
    scaled = np.clip(place.trust * scaled + (1 - place.trust) * _TYPICAL, narrowest, 1)
    return Survey(place.count, place.trust, place.centre, place.centre_sd, scaled * place.half, left * place.half)


def located(session: Session, ends: Ends, weight: np.ndarray, known: np.ndarray | None = None) -> Place:
    """Return where columns lie, by one draw; it only counts rows if the centre is known beforehand."""
    middle, half = (ends[0] + ends[1]) / 2, (ends[1] - ends[0]) / 2
    if known is None:
        return _locate(session, middle, half, weight)
    sd = session.sd()
    count, trust = counted(float(session.sum(_presence, (), size=1, radius=1)[0]), sd)
    return Place(count, trust, known, np.zeros(len(known)), np.maximum(ends[1] - known, known - ends[0]))


def length(session: Session, sizes: Any) -> float:
    """Return the length of a vector in the norm that the next draw keeps within its ball."""
    return float(np.sqrt(np.square(sizes).sum()) if session.is_gaussian else np.abs(sizes).sum())


def james_stein(prior: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """Return how much of a noisy number to believe, if a number without noise has this standard deviation."""
    return np.asarray(prior**2 / (prior**2 + noise**2 + np.finfo(float).tiny))


def upper_triangle(rows: np.ndarray, out: np.ndarray) -> None:
    """Fill `out` with the products of all pairs of rows, a row with itself too, in the order of numpy.triu_indices."""
    at = 0
    for i in range(len(rows)):
        np.multiply(rows[i], rows[i:], out=out[at : at + len(rows) - i])
        at += len(rows) - i


def symmetric(values: np.ndarray, size: int) -> np.ndarray:
    """Return the symmetric matrix whose upper triangle holds the values."""
    matrix = np.zeros((size, size))
    matrix[np.triu_indices(size)] = values
    return matrix + np.triu(matrix, 1).T


def _locate(session: Session, middle: np.ndarray, half: np.ndarray, weight: np.ndarray) -> Place:
    """Draw the count and the means."""
    presence = _COUNT_WEIGHT * length(session, weight)
    radius = length(session, [presence, length(session, weight)])
    sd = session.sd(radius)
    total = session.sum(_sums, (middle, half / weight, presence), size=1 + len(half), radius=radius)
    count, trust = counted(float(total[0] / presence), sd / presence)
    scaled, left = pooled(total[1:] / count / weight, sd / count / weight, expected=(0.0, 0.4), apart=0.4)
    return Place(count, trust, middle + trust * half * np.clip(scaled, -1, 1), half * left, half)


def counted(noisy: float, sd: float) -> tuple[float, float]:
    """Return a count to divide by, never one that noise alone would give, and how far to trust it."""
    trust = max(0.0, 1 - (sd / noisy) ** 2) if noisy > 0 else 0.0
    return max(noisy, 2 * sd, 10.0), trust


def pooled(
    values: np.ndarray, noise: np.ndarray, *, expected: tuple[float, float], apart: float
) -> tuple[np.ndarray, np.ndarray]:
    """Pull noisy numbers to their common mean, as far as their noise asks for; return them and the noise left.

    The common mean is expected at a value, give or take; the numbers are expected to lie `apart` from each other.
    """
    value, give = expected
    weight = 1 / (apart**2 + noise**2)
    common = ((weight * values).sum() + value / give**2) / (weight.sum() + 1 / give**2)
    seen = float((weight * ((values - common) ** 2 - noise**2)).sum() / weight.sum())
    between = np.sqrt(np.clip(seen, (apart / 8) ** 2, (2 * apart) ** 2))
    believed = james_stein(between, noise)
    return common + believed * (values - common), np.sqrt(believed) * noise


def _presence(rows: np.ndarray, _: tuple[Any, ...]) -> np.ndarray:
    return np.ones((len(rows), 1))


def _sums(rows: np.ndarray, public: tuple[Any, ...]) -> np.ndarray:
    middle, unit, presence = public
    out = np.empty((1 + len(unit), len(rows)))
    out[0] = presence
    np.divide(rows.T - middle[:, np.newaxis], unit[:, np.newaxis], out=out[1:])
    return out.T


def _deviations(rows: np.ndarray, public: tuple[Any, ...]) -> np.ndarray:
    centre, unit = public
    return np.asarray((np.abs(rows.T - centre[:, np.newaxis]) / unit[:, np.newaxis]).T)
