"""Reconstruct secret bits from subset sums: least squares, linear programme, thresholds, expected accuracy."""

import math
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np

Method = Literal["least squares", "linear programme", "one at a time"]
_RIDGE = 1e-9  # keeps the system solvable if two people are in the same subsets


def least_squares(subsets: np.ndarray, answers: np.ndarray) -> np.ndarray:
    """Return the least-squares estimate of the bits, by the normal equations.

    >>> least_squares(np.eye(2, dtype=bool), np.array([0.0, 1.0])).round(6).tolist()
    [0.0, 1.0]
    """
    from scipy.linalg import cho_factor, cho_solve  # noqa: PLC0415 - an extra

    weights = subsets.astype(np.float32)
    # float32 is exact for counts below 2^24 and takes half the time.
    gram = (weights.T @ weights).astype(float)
    gram[np.diag_indices_from(gram)] += _RIDGE * len(answers)
    factor = cho_factor(gram, overwrite_a=True, check_finite=False)
    solution: np.ndarray = cho_solve(factor, weights.T @ np.asarray(answers, np.float32))
    return solution


def linear_programme(subsets: np.ndarray, answers: np.ndarray) -> np.ndarray:
    """Return the estimates from 0 to 1 that minimise the sum of absolute errors.

    Unlike least squares, it is robust to a few outliers.

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
        raise RuntimeError(f"the linear programme could not be solved: {solution.message}")
    return np.asarray(solution.x[:people])


def one_at_a_time(subsets: np.ndarray, answers: np.ndarray) -> np.ndarray:
    """Return for each person the mean answer with them minus the mean answer without them.

    It uses only the person's own column of `subsets`. The other people add to the noise, so it needs more queries than
    least squares.

    >>> one_at_a_time(np.array([[True, False], [False, True], [True, True]]), np.array([1.0, 0.0, 1.0])).tolist()
    [1.0, -0.5]
    """
    weights = subsets.astype(np.float32)
    question_counts = weights.sum(axis=0, dtype=float)
    sums = weights.T @ np.asarray(answers, float)
    with np.errstate(invalid="ignore", divide="ignore"):
        with_them, without = sums / question_counts, (np.sum(answers) - sums) / (len(answers) - question_counts)
    # People in all queries or in none have nothing to compare: their bit stays undecided.
    return np.where((question_counts == 0) | (question_counts == len(answers)), 1 / 2, with_them - without)


def estimate_error(people: int, questions: int, answer_error: float) -> float:
    """Return the theoretical standard error of least squares for a bit, given the error of the answers.

    >>> estimate_error(2048, 8192, 0.0), estimate_error(100, 100, 1.0), round(estimate_error(100, 500, 1.0), 6)
    (0.0, inf, 0.1)
    """
    if answer_error == 0:
        return 0.0
    return float(2 * answer_error / np.sqrt(questions - people)) if questions > people else float("inf")


def expected_accuracy(people: int, questions: int, answer_error: float, bit_rate: float = 1 / 2) -> float:
    """Return the theoretical accuracy of least squares, given the error of the answers.

    The optimal threshold is 1/2 for fair bits; otherwise it moves towards the rarer value as the error grows.

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


METHODS = {"least squares": least_squares, "linear programme": linear_programme, "one at a time": one_at_a_time}


_MIN_ERROR, _ERROR_STEPS = 1e-3, 100  # the grid of candidate standard errors
_NEGLIGIBLE = 1e-9


def guess_bits(
    subsets: np.ndarray, answers: np.ndarray, method: Method = "least squares", bit_rate: float = 1 / 2
) -> np.ndarray:
    """Return the attack's guess of each bit, given the subsets, the answers, and the rate of set bits.

    >>> guess_bits(np.eye(3, dtype=bool), np.array([0.9, -3.0, 1.0])).tolist()
    [True, False, True]
    >>> guess_bits(np.eye(3, dtype=bool), np.array([90.0, -300.0, 100.0]), bit_rate=0.9).tolist()
    [True, True, True]
    """
    questions, people = subsets.shape
    if method == "linear programme" and questions > people:
        return _programme_or_majority(linear_programme(subsets, answers), subsets, answers, bit_rate)
    # With no more queries than people, a linear programme fits every answer exactly and gives no estimate of the error.
    solver: Method = "least squares" if method == "linear programme" else method
    return bits_likelier_set(METHODS[solver](subsets, answers), bit_rate)


def bits_likelier_set(estimates: np.ndarray, bit_rate: float) -> np.ndarray:
    """Return which bits are more likely set than not, given their estimates and the rate of set bits.

    The error is fitted by maximum likelihood: the estimates are a mixture around 0 and 1 with known weights, of normal
    or of Laplace distributions, with one of many standard errors.

    >>> bits_likelier_set(np.array([1.1, 0.9, 0.1, 1.0]), bit_rate=0.7).tolist()
    [True, True, False, True]
    """
    is_set, is_not = max(_log_likelihoods(estimates, bit_rate), key=lambda pair: float(np.logaddexp(*pair).sum()))
    return np.asarray(is_set > is_not)


def _log_likelihoods(estimates: np.ndarray, bit_rate: float) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield log-densities of the estimates with their bits set and unset, for every distribution and error."""
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
    """Return the bits of the linear programme, or the more frequent value if that has the lower error rate.

    The estimates are bounded by 0 and 1, so 1/2 is the only useful threshold. The error is estimated by the median of
    the residuals that are not fitted exactly, which is robust to outliers.
    """
    from scipy.special import ndtr  # noqa: PLC0415 - an extra

    questions, people = subsets.shape
    residuals = np.sort(np.abs(answers - subsets @ estimates))[people:]
    # The median of |z| for a standard normal z is 0.6745.
    error = estimate_error(people, questions, float(np.median(residuals)) / 0.6745)
    error_rate = ndtr(-1 / (2 * max(error, _NEGLIGIBLE)))
    return estimates > 1 / 2 if error_rate <= min(bit_rate, 1 - bit_rate) else np.full(people, bit_rate > 1 / 2)
