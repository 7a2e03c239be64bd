"""Answers of the curator, in memory and for one release, and what an attacker reads from counts with noise."""

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, TypeGuard

import numpy as np
import pyarrow as pa

import discreet as dc
from discreet.attacks.attack import Game
from discreet.attacks.validation import finite_array

CountOracle = Callable[[np.ndarray], np.ndarray]  # true counts, one row per query -> noisy counts

_DECOY_COUNT = 2000  # empty counts that the attacker queries to learn the noise distribution
_FALSE_POSITIVE_RATE = 0.05  # the share of non-members that the attacker accepts to name
_MAX_EPSILON = 50.0  # practically no noise
_COUNTS_SQL = "SELECT question, value, COUNT(*) AS n FROM data GROUP BY question, value ORDER BY question, value"


def ask_curator(  # noqa: PLR0913 - what a curator needs to know
    table: pa.Table,
    sql: str,
    epsilon: Fraction,
    columns: Mapping[str, Any],
    *,
    unit: str = "row",
    groups: int = 1,
    delta: Fraction | int = 0,
) -> pa.Table:
    """Return a curator's answer to one query about the table `data`, which costs the whole budget.

    >>> people = pa.table({"age": [30] * 1000})
    >>> ask_curator(people, "SELECT COUNT(*) AS n FROM data", Fraction(50), {"age": (0, 99)}).to_pydict()
    {'n': [1000]}
    """
    budget: Any = (epsilon, delta) if delta else epsilon
    with dc.open(table, unit=unit, budget=budget, columns=columns, groups=groups, rows=1, ledger=":memory:") as curator:
        answer: pa.Table = curator.ask(sql, epsilon=epsilon).table
    return answer


def noise_for(groups: int, size: int, epsilon: Fraction, delta: Fraction) -> dc.Laplace | dc.Gaussian:
    """Return the curator's noise for totals too many to be queried, of which a person changes `groups` by `size`."""
    sensitivity = dc.Sensitivity(groups=groups, size=size)
    return dc.gaussian_for(sensitivity, epsilon, delta) if delta else dc.laplace_for(sensitivity, epsilon)


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
    highest = [max(questions - 1, 1), max(values - 1, 1)]  # a range needs at least two values
    answer = ask_curator(people, _COUNTS_SQL, epsilon, {"question": (0, highest[0]), "value": (0, highest[1])})
    return np.asarray(answer["n"].to_numpy().reshape(highest[0] + 1, highest[1] + 1)[:questions, :values])


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


def named_by_counts(
    oracle: CountOracle, members: np.ndarray, non_members: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return which members and which non-members are named: those whose noisy counts exceed the decoys.

    >>> named_by_counts(lambda counts: counts, np.array([3]), np.array([0]), np.random.default_rng(0))[0].tolist()
    [True]
    """
    answers, decoys = answers_and_decoys(oracle, np.concatenate([members, non_members])[:, None])
    is_named = exceeds_decoys(answers[:, 0], decoys[:, 0], rng)
    return is_named[: len(members)], is_named[len(members) :]


def private_count_oracle(game: Game, *_: Any) -> CountOracle:
    """Return an oracle that answers each table of counts at epsilon in total."""
    return lambda counts: private_counts(counts, game.epsilon)


def is_count_oracle(returned: Any) -> TypeGuard[CountOracle]:
    """Return whether the defence's return value is a function that answers counts.

    >>> is_count_oracle(dict)
    Traceback (most recent call last):
        ...
    TypeError: the defence returned the class dict, not an instance. Return a table, codes, or a function that answers \
counts.
    """
    if isinstance(returned, type):
        raise TypeError(
            f"the defence returned the class {returned.__name__}, not an instance. Return a table, codes, or a "
            "function that answers counts."
        )
    return callable(returned)
