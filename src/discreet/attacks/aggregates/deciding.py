"""From estimates to guesses: what is likelier, given the estimates' error and what everybody knows beforehand."""

import math
from collections.abc import Iterator

import numpy as np

from discreet.attacks.aggregates.solving import Method, error_of, estimates

_LEAST, _STEPS = 1e-3, 100  # the smallest error that is tried, and how many are
_NEVER = 1e-9  # what is as good as impossible


def guessed(
    subsets: np.ndarray, answers: np.ndarray, method: Method = "least squares", chance: float = 1 / 2
) -> np.ndarray:
    """Return the attack's guess of each bit. It knows who is in which question, the answers, and how many bits are set.

    >>> guessed(np.eye(3, dtype=bool), np.array([0.9, -3.0, 1.0])).tolist()
    [True, False, True]
    >>> guessed(np.eye(3, dtype=bool), np.array([90.0, -300.0, 100.0]), chance=0.9).tolist()
    [True, True, True]
    """
    questions, people = subsets.shape
    if method == "linear programme" and questions > people:
        return _or_the_frequent(estimates(subsets, answers, method), subsets, answers, chance)
    # With no more questions than people a linear programme fits every answer, as least squares do, and tells no error.
    solver: Method = "least squares" if method == "linear programme" else method
    return likelier_set(estimates(subsets, answers, solver), chance)


def likelier_set(found: np.ndarray, chance: float) -> np.ndarray:
    """Tell which bits are likelier set than not, given an estimate of each and how likely a bit is set.

    How far estimates stray is told by themselves: they lie about 0 and about 1, in known shares. Of two laws, the
    normal one and Laplace's, and of many errors, those count under which the estimates are likeliest.

    >>> likelier_set(np.array([1.1, 0.9, 0.1, 1.0]), chance=0.7).tolist()
    [True, True, False, True]
    """
    is_set, is_not = max(_explained(found, chance), key=lambda pair: float(np.logaddexp(*pair).sum()))
    return np.asarray(is_set > is_not)


def _explained(found: np.ndarray, chance: float) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the logarithms of how likely each estimate is with its bit set, and not, for every law and error."""
    prior = min(max(chance, _NEVER), 1 - _NEVER)
    for error in np.geomspace(_LEAST, 10 * max(1.0, float(np.abs(found).max())), _STEPS):
        for law in (_normal, _laplace):
            yield math.log(prior) + law(found - 1, error), math.log1p(-prior) + law(found, error)


def _normal(distance: np.ndarray, error: float) -> np.ndarray:
    return np.asarray(-((distance / error) ** 2) / 2 - math.log(error * math.sqrt(2 * math.pi)))


def _laplace(distance: np.ndarray, error: float) -> np.ndarray:
    return np.asarray(-math.sqrt(2) * np.abs(distance) / error - math.log(error * math.sqrt(2)))


def _or_the_frequent(found: np.ndarray, subsets: np.ndarray, answers: np.ndarray, chance: float) -> np.ndarray:
    """Return the bits that a linear programme says, or the more frequent value if it errs more often than that does.

    Its numbers end at 0 and 1, so that no other threshold than 1/2 tells more. What it fits exactly says nothing of the
    error, and neither do a few wild answers: the middle of the other residuals does.
    """
    from scipy.special import ndtr  # noqa: PLC0415 - an extra

    questions, people = subsets.shape
    left = np.sort(np.abs(answers - subsets @ found))[people:]
    error = error_of(people, questions, float(np.median(left)) / 0.6745)  # half of a normal law lies within 0.6745
    wrong = ndtr(-1 / (2 * max(error, _NEVER)))
    return found > 1 / 2 if wrong <= min(chance, 1 - chance) else np.full(people, chance > 1 / 2)
