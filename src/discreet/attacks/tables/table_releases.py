"""Releases of a table: unmodified, k-anonymous, or as noisy counts."""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

import discreet as dc
from discreet import anonymity
from discreet.attacks.defences import CURATOR, EASY, OWN, Defence
from discreet.attacks.tables.patients import ROW, Patients
from discreet.attacks.tables.validation import count_oracle_or_none
from discreet.attacks.validation import arrow_table, finite_array

CountOracle = Callable[[np.ndarray], np.ndarray]  # true counts, one row per query -> noisy counts

_DECOY_COUNT = 2000  # empty counts that the attacker queries to learn the noise distribution
_FALSE_POSITIVE_RATE = 0.05  # the share of non-members that the attacker accepts to name
_MAX_EPSILON = 50.0  # practically no noise
_COUNTS_SQL = "SELECT question, value, COUNT(*) AS n FROM people GROUP BY question, value ORDER BY question, value"


def private_counts(counts: np.ndarray, epsilon: Fraction) -> np.ndarray:
    """Return the curator's answers to all queries: each row of counts is one query about a disjoint set of people.

    By parallel composition all queries together cost epsilon.

    >>> private_counts(np.array([[3, 0], [0, 1]]), Fraction(40)).tolist()
    [[3, 0], [0, 1]]
    """
    questions, values = counts.shape
    where, which = np.nonzero(counts)
    repeats = counts[where, which]
    people = pa.table({"question": np.repeat(where, repeats), "value": np.repeat(which, repeats)})
    highest_codes = [max(questions - 1, 1), max(values - 1, 1)]  # a range needs at least two values
    columns = {"question": (0, highest_codes[0]), "value": (0, highest_codes[1])}
    with dc.open(
        people, table="people", unit="row", budget=epsilon, columns=columns, groups=1, rows=1, ledger=":memory:"
    ) as curator:
        answer = curator.ask(_COUNTS_SQL, epsilon=epsilon)
    return np.asarray(
        answer.table["n"].to_numpy().reshape(highest_codes[0] + 1, highest_codes[1] + 1)[:questions, :values]
    )


def answers_and_decoys(oracle: CountOracle, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the answers to these queries, and to decoy queries whose true counts are 0.

    >>> answers, decoy_rows = answers_and_decoys(lambda counts: counts, np.array([[1]]))
    >>> answers.tolist(), decoy_rows.max()
    ([[1.0]], np.float64(0.0))
    """
    decoy_rows = -(-_DECOY_COUNT // counts.shape[1])
    queried = np.concatenate([counts, np.zeros((decoy_rows, counts.shape[1]), counts.dtype)])
    answers = finite_array(oracle(queried), queried.shape, "the defence's function that adds noise to counts")
    return answers[: len(counts)], answers[len(counts) :]


def estimate_noise_epsilon(decoys: np.ndarray) -> float:
    """Estimate the epsilon of the noise from the answers to decoy queries.

    >>> estimate_noise_epsilon(np.zeros((10, 2)))
    50.0
    >>> noise = dc.Laplace(2).perturb(np.zeros((100, 1000), np.int64))
    >>> 0.48 < estimate_noise_epsilon(noise) < 0.52
    True
    """
    mean = float(np.abs(decoys).mean())
    if mean == 0:
        return _MAX_EPSILON
    # For discrete Laplace noise with P(k) proportional to q^|k| the mean of |k| is 2q/(1 - q²), and epsilon is -ln q.
    return min(_MAX_EPSILON, -math.log((math.sqrt(1 + mean * mean) - 1) / mean))


def exceeds_decoys(answers: np.ndarray, decoys: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return which answers exceed 95 % of the decoy answers.

    Ties are broken at random, so that the false positive rate is exact however coarse the counts are.

    >>> rng = np.random.default_rng(0)
    >>> exceeds_decoys(np.array([0.0, 5.0]), np.zeros(100), rng).tolist()
    [False, True]
    """
    jittered, jittered_decoys = (each + rng.random(each.shape) for each in (answers, decoys))
    return np.asarray(jittered > np.quantile(jittered_decoys, 1 - _FALSE_POSITIVE_RATE))


ReleaseFunction = Callable[[Patients], pa.Table]


def unmodified_release(data: Patients) -> pa.Table:
    """Release the table without names."""
    return data.numbered_table


def k_anonymous_release(data: Patients, k: int, l: int = 1) -> pa.Table:  # noqa: E741 - the usual name
    """Release a table with classes of at least k people and at least l distinct sensitive values in each.

    >>> table = pa.table({"age": [23, 29, 35, 41], "ill": list("abab")})
    >>> k_anonymous_release(Patients(table, ["age"], "ill"), k=2)["age"].to_pylist()
    ['23-29', '23-29', '35-41', '35-41']
    """
    values = min(l, len(data.values))
    return anonymity.anonymise(data.numbered_table, data.quasi, k, data.sensitive, l=values if values > 1 else None)


def release_under(
    defence: Defence, data: Patients, without_defence: ReleaseFunction, easy_fix: ReleaseFunction
) -> pa.Table | CountOracle:
    """Return what the attacker sees under this defence: a table, or an oracle for counts."""
    if defence.kind == CURATOR:
        return partial(private_counts, epsilon=defence.curator_epsilon)
    if defence.kind == OWN and defence.user_function is not None:
        return _checked_user_release(defence.user_function(data.numbered_table), data)
    return easy_fix(data) if defence.kind == EASY else without_defence(data)


def _checked_user_release(returned: Any, data: Patients) -> pa.Table | CountOracle:
    """Validate what the user's defence returned."""
    oracle = count_oracle_or_none(returned)
    if oracle is not None:
        return oracle
    table = arrow_table(returned, "the defence's return value")
    required = [*data.quasi, data.sensitive, ROW]
    missing = [name for name in required if name not in table.column_names]
    if missing:
        raise ValueError(
            f"column {missing[0]!r} is missing from the defence's table. Return a modified table with the columns "
            f"{', '.join(required)}, or a function that takes an array of counts and returns them with noise."
        )
    rows = table[ROW]
    if (
        not pa.types.is_integer(rows.type)
        or rows.null_count
        or not _are_distinct_rows(np.asarray(rows), data.table.num_rows)
    ):
        raise ValueError("column 'row' of the defence's table must contain row numbers of its input, each at most once")
    return table.select(required)


def _are_distinct_rows(rows: np.ndarray, count: int) -> bool:
    return bool(rows.size) and rows.min() >= 0 and rows.max() < count and len(np.unique(rows)) == len(rows)
