"""Counts that are asked for instead of tables: many questions at once, each about people of its own."""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pyarrow as pa

import discreet as dc
from discreet.attacks.checking import numbers

Answers = Callable[[np.ndarray], np.ndarray]  # exact counts, a row for each question -> what is answered

_DECOYS = 2000  # counts of nobody: the attacker asks for them to see what the noise is like
_FALSE = 0.05  # of those who are not in the data, the share that an attacker is ready to name
_SURE = 50.0  # an epsilon without noise to speak of
_SQL = "SELECT question, value, COUNT(*) AS n FROM people GROUP BY question, value ORDER BY question, value"


def private_counts(counts: np.ndarray, epsilon: Fraction) -> np.ndarray:
    """Have the curator answer all questions: a row of counts is one question, of people who are in no other one.

    So each question has noise of its own, and all of them together cost nobody more than epsilon.

    >>> private_counts(np.array([[3, 0], [0, 1]]), Fraction(40)).tolist()
    [[3, 0], [0, 1]]
    """
    questions, values = counts.shape
    where, which = np.nonzero(counts)
    many = counts[where, which]
    people = pa.table({"question": np.repeat(where, many), "value": np.repeat(which, many)})
    tops = [max(questions - 1, 1), max(values - 1, 1)]  # a column's range has two values at least
    columns = {"question": (0, tops[0]), "value": (0, tops[1])}
    with dc.open(
        people, table="people", unit="row", budget=epsilon, columns=columns, groups=1, rows=1, ledger=":memory:"
    ) as curator:
        answer = curator.ask(_SQL, epsilon=epsilon)
    return np.asarray(answer.table["n"].to_numpy().reshape(tops[0] + 1, tops[1] + 1)[:questions, :values])


def answered(answers: Answers, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the answers to these questions, and to some about nobody.

    >>> seen, decoys = answered(lambda counts: counts, np.array([[1]]))
    >>> seen.tolist(), decoys.max()
    ([[1.0]], np.float64(0.0))
    """
    decoys = -(-_DECOYS // counts.shape[1])
    asked = np.concatenate([counts, np.zeros((decoys, counts.shape[1]), counts.dtype)])
    seen = numbers(answers(asked), asked.shape, "the defence's function, which is given counts to add noise to,")
    return seen[: len(counts)], seen[len(counts) :]


def sharpness(decoys: np.ndarray) -> float:
    """Return the epsilon of the noise that is seen in the answers about nobody.

    >>> sharpness(np.zeros((10, 2)))
    50.0
    >>> noise = dc.Laplace(2).perturb(np.zeros((100, 1000), np.int64))
    >>> 0.48 < sharpness(noise) < 0.52
    True
    """
    mean = float(np.abs(decoys).mean())
    if mean == 0:
        return _SURE
    # The mean of |noise| with weights proportional to q^|noise| is 2q/(1 - q²), and epsilon is -ln q.
    return min(_SURE, -math.log((math.sqrt(1 + mean * mean) - 1) / mean))


def named(seen: np.ndarray, decoys: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return who is named: those whose counts lie above what all but a twentieth of the counts of nobody reach.

    Ties are broken by lot, so that this twentieth is met, however coarse the counts are.

    >>> rng = np.random.default_rng(0)
    >>> named(np.array([0.0, 5.0]), np.zeros(100), rng).tolist()
    [False, True]
    """
    drawn, nobody = (each + rng.random(each.shape) for each in (seen, decoys))
    return np.asarray(drawn > np.quantile(nobody, 1 - _FALSE))
