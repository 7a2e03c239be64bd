"""Everybody's secret bit from sums over subsets: by least squares, by a linear programme, or one at a time."""

from typing import Any, Literal

import numpy as np

Method = Literal["least squares", "linear programme", "one at a time"]
_RIDGE = 1e-9  # a trace on the diagonal, so that two people who are in the same subsets do not stop the solver


def estimates(subsets: np.ndarray, answers: np.ndarray, method: Method) -> np.ndarray:
    """Return a number for each person: the nearer to 1, the likelier their bit is set.

    `subsets` has a row for each question, which says of each person whether the question is about them.

    >>> asked = np.array([[True, True, False], [False, True, True], [True, False, True], [True, True, True]])
    >>> estimates(asked, asked @ [1, 0, 1], "least squares").round(6).tolist()
    [1.0, 0.0, 1.0]
    >>> (estimates(asked, asked @ [1, 0, 1], "linear programme") > 1 / 2).tolist()
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
    found: np.ndarray = cho_solve(factor, weights.T @ np.asarray(answers, np.float32))
    return found


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
    found: Any = linprog(
        np.concatenate([np.zeros(people), np.ones(2 * questions)]),
        A_eq=sparse.hstack([sparse.csr_array(subsets.astype(float)), above, below], format="csr"),
        b_eq=np.asarray(answers, float),
        bounds=[(0, 1)] * people + [(0, None)] * (2 * questions),
        method="highs-ipm",  # twice as fast here as the simplex method
    )
    if found.x is None:
        raise RuntimeError(f"the linear programme was not solved: {found.message}")
    return np.asarray(found.x[:people])


def one_at_a_time(subsets: np.ndarray, answers: np.ndarray) -> np.ndarray:
    """Return for each person how much higher the answers are that are about them.

    Of whom else a question is about it knows nothing: to attack one person, their own column is enough. The others are
    then part of the noise, so that it takes more questions than least squares do.

    >>> one_at_a_time(np.array([[True, False], [False, True], [True, True]]), np.array([1.0, 0.0, 1.0])).tolist()
    [1.0, -0.5]
    """
    own = subsets.astype(np.float32)
    times = own.sum(axis=0, dtype=float)
    sums = own.T @ np.asarray(answers, float)
    with np.errstate(invalid="ignore", divide="ignore"):
        with_them, without = sums / times, (np.sum(answers) - sums) / (len(answers) - times)
    # Who is in all questions, or in none, stays a coin: nothing can be compared.
    return np.where((times == 0) | (times == len(answers)), 1 / 2, with_them - without)


def error_of(people: int, questions: int, spread: float) -> float:
    """Return how far least squares' estimate of a bit strays, in theory, if answers stray by `spread`.

    >>> error_of(2048, 8192, 0.0), error_of(100, 100, 1.0), round(error_of(100, 500, 1.0), 6)
    (0.0, inf, 0.1)
    """
    if spread == 0:
        return 0.0
    return float(2 * spread / np.sqrt(questions - people)) if questions > people else float("inf")


def expected_share(people: int, questions: int, spread: float, chance: float = 1 / 2) -> float:
    """Return the share of bits that least squares gets right, in theory, if answers stray by `spread`.

    A set bit is called so while its estimate lies above a threshold: 1/2 for a fair coin; otherwise the farther on the
    side of the rarer value, the more the estimates stray.

    >>> [round(expected_share(2048, 8192, part * 2048**0.5), 2) for part in (1 / 8, 1 / 4, 1 / 2, 1)]
    [1.0, 0.96, 0.81, 0.67]
    >>> [round(expected_share(2048, 8192, part * 2048**0.5, chance=0.9), 2) for part in (1 / 4, 1, 100)]
    [0.98, 0.9, 0.9]
    """
    from scipy.special import ndtr  # noqa: PLC0415 - an extra

    error = error_of(people, questions, spread)
    if error == 0:
        return 1.0
    if error == float("inf") or not 0 < chance < 1:
        return max(chance, 1 - chance)
    threshold = 1 / 2 - error**2 * np.log(chance / (1 - chance))
    return float(chance * ndtr((1 - threshold) / error) + (1 - chance) * ndtr(threshold / error))


_METHODS = {"least squares": least_squares, "linear programme": linear_programme, "one at a time": one_at_a_time}
