"""Three ways to score how likely somebody is in a study, from its published means and from a reference's means."""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

Statistic = Literal["likelihood ratio", "homer", "inner product"]
STATISTICS: tuple[str, ...] = get_args(Statistic)


@dataclass(frozen=True)
class Known:
    """All that an outsider has: the published means, the people of a reference, and how large the study is, roughly.

    Means are from 0 to 1, and NaN where nothing was published; people are rows of whole numbers from 0 to `most`.
    """

    published: np.ndarray
    reference: np.ndarray
    most: int
    pool: int


def scores_of(people: np.ndarray, known: Known, statistic: str) -> np.ndarray:
    """Return a score for each of the people: the higher, the more likely they are in the study.

    >>> import numpy as np
    >>> reference = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 1], [1, 0, 0]])
    >>> known = Known(np.array([0.9, 0.9, 0.1]), reference, most=1, pool=10)
    >>> scores = scores_of(np.array([[1, 1, 0], [0, 0, 1]]), known, "inner product")
    >>> bool(scores[0] > scores[1])
    True
    """
    if statistic not in STATISTICS:
        raise ValueError(f"statistic must be one of {', '.join(map(repr, STATISTICS))}, not {statistic!r}")
    shown = ~np.isnan(known.published)
    if not shown.any():
        return np.zeros(len(people))
    counted = known.reference[:, shown].sum(axis=0, dtype=float)
    trials = known.most * len(known.reference)
    usual = (counted + 1) / (trials + 2)  # never 0 or 1: what nobody of the reference has may still exist
    values = people[:, shown] / known.most
    spread = usual * (1 - usual) / known.most * (1 / known.pool + 1 / len(known.reference))
    published, noise = cleaned(known.published[shown], usual, spread, known.pool)
    if statistic == "homer":
        return _homer(values, published, usual, known.most)
    if statistic == "inner product":
        return np.asarray((values - usual) @ (published - usual))
    return _likelihood_ratio((values - usual) / known.pool, published - usual, spread + noise)


def cleaned(published: np.ndarray, usual: np.ndarray, spread: np.ndarray, pool: int) -> tuple[np.ndarray, float]:
    """Return the means corrected for the study's true size, and the variance of the noise that they seem to have.

    Whoever divides totals by the size that a study was planned for is wrong by one factor in all means. The attacker
    finds it by comparing with the usual means, as far as the noise lets one see it; before, it is 1, give or take what
    coins do. The noise is what the means stray more than a sample of this size would.
    """
    weights = usual / (spread + _strays(published, usual, spread))
    seen, error = float(weights @ published / (weights @ usual)), float(1 / (weights @ usual))
    usual_error = 1 / (2 * pool)
    factor = 1 + (seen - 1) * usual_error / (usual_error + error)
    corrected = published / max(factor, 1 / 2)
    return corrected, _strays(corrected, usual, spread)


def _strays(published: np.ndarray, usual: np.ndarray, spread: np.ndarray) -> float:
    return max(0.0, float(np.mean((published - usual) ** 2 - spread)))


def _likelihood_ratio(moves: np.ndarray, strays: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """Return the logarithm of how much likelier the means are with somebody in, by the normal law of each mean.

    A member moves the means by `moves`; without them the means stray by chance, with this variance.
    """
    return np.asarray(moves @ (strays / variance) - (moves**2) @ (1 / variance) / 2)


def _homer(values: np.ndarray, published: np.ndarray, usual: np.ndarray, most: int) -> np.ndarray:
    """Return how much closer people are to the published means than to the usual ones, less what strangers are."""
    closer = np.abs(values - usual).sum(axis=1) - np.abs(values - published).sum(axis=1)
    return np.asarray(closer - _closer_by_chance(published, usual, most))


def _closer_by_chance(published: np.ndarray, usual: np.ndarray, most: int) -> float:
    from scipy.stats import binom  # noqa: PLC0415 - an extra

    total = 0.0
    for count in range(most + 1):
        chance = binom.pmf(count, most, usual)
        total += float(chance @ (np.abs(count / most - usual) - np.abs(count / most - published)))
    return total
