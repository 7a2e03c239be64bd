"""Reconstruct secret bits from subset sums: least squares, linear programme, thresholds, expected accuracy."""

import math
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np

Method = Literal["least squares", "linear programme", "one at a time"]
_RIDGE = 1e-9  # a trace on the diagonal, so that two people who are in the same subsets do not stop the solver


def estimate_bits(subsets: np.ndarray, answers: np.ndarray, method: Method) -> np.ndarray:
    """Return a number for each person: the nearer to 1, the likelier their bit is set.

    `subsets` has a row for each question, which says of each person whether the question is about them.

    >>> asked = np.array([[True, True, False], [False, True, True], [True, False, True], [True, True, True]])
    >>> estimate_bits(asked, asked @ [1, 0, 1], "least squares").round(6).tolist()
    [1.0, 0.0, 1.0]
    >>> (estimate_bits(asked, asked @ [1, 0, 1], "linear programme") > 1 / 2).tolist()
    [True, False, True]
    """
    if method not in _METHODS:
        raise ValueError(f"method must be one of {', '.join(map(repr, _METHODS))}, not {method!r}")
    return _METHODS[method](subsets, answers)


def least_squares(subsets: np.ndarray, answers: np.ndarray) -> np.ndarray:
    """Return the numbers whose sums have the least squared distance to the answers, by the normal equations.

    >>> least_squares(np.eye(2, dtype=bool), np.array([0.0, 1.0])).round(6).tolist()
    [0.0, 1.0]
    """
    from scipy.linalg import cho_factor, cho_solve  # noqa: PLC0415 - an extra

    weights = subsets.astype(np.float32)
    # Counts below 2^24 are exact in 32 bits, which take half the time; answers are never that exact.
    gram = (weights.T @ weights).astype(float)
    gram[np.diag_indices_from(gram)] += _RIDGE * len(answers)
    factor = cho_factor(gram, overwrite_a=True, check_finite=False)
    solution: np.ndarray = cho_solve(factor, weights.T @ np.asarray(answers, np.float32))
    return solution


def linear_programme(subsets: np.ndarray, answers: np.ndarray) -> np.ndarray:
    """Return the numbers from 0 to 1 whose sums have the least total distance to the answers.

    A few answers that are far off do not lead it astray, unlike least squares.

    >>> np.abs(linear_programme(np.eye(2, dtype=bool), np.array([-30.0, 0.9]))).round(6).tolist()
    [0.0, 0.9]
    """
    from scipy import sparse  # noqa: PLC0415 - an extra
    from scipy.optimize import linprog  # noqa: PLC0415

    questions, people = subsets.shape
    above, below = sparse.eye_array(questions), -sparse.eye_array(questions)
    solution: Any = linprog(
        np.concatenate([np.zeros(people), np.ones(2 * questions)]),
        A_eq=sparse.hstack([sparse.csr_array(subsets.astype(float)), above, below], format="csr"),
        b_eq=np.asarray(answers, float),
        bounds=[(0, 1)] * people + [(0, None)] * (2 * questions),
        method="highs-ipm",  # twice as fast here as the simplex method
    )
    if solution.x is None:
        raise RuntimeError(f"the linear programme was not solved: {solution.message}")
    return np.asarray(solution.x[:people])


def one_at_a_time(subsets: np.ndarray, answers: np.ndarray) -> np.ndarray:
    """Return for each person how much higher the answers are that are about them.

    Of whom else a question is about it knows nothing: to attack one person, their own column is enough. The others are
    then part of the noise, so that it takes more questions than least squares do.

    >>> one_at_a_time(np.array([[True, False], [False, True], [True, True]]), np.array([1.0, 0.0, 1.0])).tolist()
    [1.0, -0.5]
    """
    weights = subsets.astype(np.float32)
    question_counts = weights.sum(axis=0, dtype=float)
    sums = weights.T @ np.asarray(answers, float)
    with np.errstate(invalid="ignore", divide="ignore"):
        with_them, without = sums / question_counts, (np.sum(answers) - sums) / (len(answers) - question_counts)
    # Who is in all questions, or in none, stays a coin: nothing can be compared.
    return np.where((question_counts == 0) | (question_counts == len(answers)), 1 / 2, with_them - without)


def estimate_error(people: int, questions: int, answer_error: float) -> float:
    """Return how far least squares' estimate of a bit strays, in theory, if answers stray by `answer_error`.

    >>> estimate_error(2048, 8192, 0.0), estimate_error(100, 100, 1.0), round(estimate_error(100, 500, 1.0), 6)
    (0.0, inf, 0.1)
    """
    if answer_error == 0:
        return 0.0
    return float(2 * answer_error / np.sqrt(questions - people)) if questions > people else float("inf")


def expected_accuracy(people: int, questions: int, answer_error: float, bit_rate: float = 1 / 2) -> float:
    """Return the share of bits that least squares gets right, in theory, if answers stray by `answer_error`.

    A set bit is called so while its estimate lies above a threshold: 1/2 for a fair coin; otherwise the farther on the
    side of the rarer value, the more the estimates stray.

    >>> [round(expected_accuracy(2048, 8192, part * 2048**0.5), 2) for part in (1 / 8, 1 / 4, 1 / 2, 1)]
    [1.0, 0.96, 0.81, 0.67]
    >>> [round(expected_accuracy(2048, 8192, part * 2048**0.5, bit_rate=0.9), 2) for part in (1 / 4, 1, 100)]
    [0.98, 0.9, 0.9]
    """
    from scipy.special import ndtr  # noqa: PLC0415 - an extra

    error = estimate_error(people, questions, answer_error)
    if error == 0:
        return 1.0
    if error == float("inf") or not 0 < bit_rate < 1:
        return max(bit_rate, 1 - bit_rate)
    threshold = 1 / 2 - error**2 * np.log(bit_rate / (1 - bit_rate))
    return float(bit_rate * ndtr((1 - threshold) / error) + (1 - bit_rate) * ndtr(threshold / error))


_METHODS = {"least squares": least_squares, "linear programme": linear_programme, "one at a time": one_at_a_time}


_MIN_ERROR, _ERROR_STEPS = 1e-3, 100  # the smallest error that is tried, and how many are
_NEGLIGIBLE = 1e-9  # what is as good as impossible


def guess_bits(
    subsets: np.ndarray, answers: np.ndarray, method: Method = "least squares", bit_rate: float = 1 / 2
) -> np.ndarray:
    """Return the attack's guess of each bit. It knows who is in which question, the answers, and how many bits are set.

    >>> guess_bits(np.eye(3, dtype=bool), np.array([0.9, -3.0, 1.0])).tolist()
    [True, False, True]
    >>> guess_bits(np.eye(3, dtype=bool), np.array([90.0, -300.0, 100.0]), bit_rate=0.9).tolist()
    [True, True, True]
    """
    questions, people = subsets.shape
    if method == "linear programme" and questions > people:
        return _programme_or_majority(estimate_bits(subsets, answers, method), subsets, answers, bit_rate)
    # With no more questions than people a linear programme fits every answer, as least squares do, and tells no error.
    solver: Method = "least squares" if method == "linear programme" else method
    return bits_likelier_set(estimate_bits(subsets, answers, solver), bit_rate)


def bits_likelier_set(estimates: np.ndarray, bit_rate: float) -> np.ndarray:
    """Tell which bits are likelier set than not, given an estimate of each and how likely a bit is set.

    How far estimates stray is told by themselves: they lie about 0 and about 1, in known shares. Of two laws, the
    normal one and Laplace's, and of many errors, those count under which the estimates are likeliest.

    >>> bits_likelier_set(np.array([1.1, 0.9, 0.1, 1.0]), bit_rate=0.7).tolist()
    [True, True, False, True]
    """
    is_set, is_not = max(_log_likelihoods(estimates, bit_rate), key=lambda pair: float(np.logaddexp(*pair).sum()))
    return np.asarray(is_set > is_not)


def _log_likelihoods(estimates: np.ndarray, bit_rate: float) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the logarithms of how likely each estimate is with its bit set, and not, for every law and error."""
    prior = min(max(bit_rate, _NEGLIGIBLE), 1 - _NEGLIGIBLE)
    for error in np.geomspace(_MIN_ERROR, 10 * max(1.0, float(np.abs(estimates).max())), _ERROR_STEPS):
        for log_density in (_normal_log_density, _laplace_log_density):
            yield (
                math.log(prior) + log_density(estimates - 1, error),
                math.log1p(-prior) + log_density(estimates, error),
            )


def _normal_log_density(distance: np.ndarray, error: float) -> np.ndarray:
    return np.asarray(-((distance / error) ** 2) / 2 - math.log(error * math.sqrt(2 * math.pi)))


def _laplace_log_density(distance: np.ndarray, error: float) -> np.ndarray:
    return np.asarray(-math.sqrt(2) * np.abs(distance) / error - math.log(error * math.sqrt(2)))


def _programme_or_majority(
    estimates: np.ndarray, subsets: np.ndarray, answers: np.ndarray, bit_rate: float
) -> np.ndarray:
    """Return the bits that a linear programme says, or the more frequent value if it errs more often than that does.

    Its numbers end at 0 and 1, so that no other threshold than 1/2 tells more. What it fits exactly says nothing of the
    error, and neither do a few wild answers: the middle of the other residuals does.
    """
    from scipy.special import ndtr  # noqa: PLC0415 - an extra

    questions, people = subsets.shape
    residuals = np.sort(np.abs(answers - subsets @ estimates))[people:]
    error = estimate_error(
        people, questions, float(np.median(residuals)) / 0.6745
    )  # half of a normal law lies within 0.6745
    error_rate = ndtr(-1 / (2 * max(error, _NEGLIGIBLE)))
    return estimates > 1 / 2 if error_rate <= min(bit_rate, 1 - bit_rate) else np.full(people, bit_rate > 1 / 2)
