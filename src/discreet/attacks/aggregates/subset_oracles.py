"""Oracles that answer subset sums: exact, noisy, rounded, or private."""

import itertools
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

import discreet as dc
from discreet.attacks.private_answers import noise_for
from discreet.attacks.validation import integer_domain

SubsetOracle = Callable[[np.ndarray], Any]

ROUNDING_BASE = 10
_MAX_JOIN_ROWS = 1000  # the curator's limit on rows of a public table joined to one row
_MAX_SQL_PAIRS = 1_500_000  # more (query, person) pairs than this use the mechanism directly instead of SQL
_SUBSET_COUNTS_SQL = """
    SELECT question, COUNT(*) AS n FROM people JOIN subsets_{part} ON person = member
    WHERE secret = 1 GROUP BY question ORDER BY question
"""


def exact_sums(bits: np.ndarray) -> SubsetOracle:
    """Return an oracle that answers with the exact sums.

    >>> exact_sums(np.array([True, False, True]))(np.array([[True, True, True], [False, True, False]])).tolist()
    [2.0, 0.0]
    """
    # float32 holds these sums exactly and is fast.
    return lambda subsets: (subsets.astype(np.float32) @ bits.astype(np.float32)).astype(float)


def noisy_sums(bits: np.ndarray, noise: float, rng: np.random.Generator) -> SubsetOracle:
    """Return an oracle with Gaussian noise of standard deviation `noise` · sqrt(n), or noise/sqrt(n) for shares.

    >>> answers = noisy_sums(np.ones(100, bool), 0.25, np.random.default_rng(0))(np.ones((2000, 100), bool))
    >>> bool(2.3 < answers.std() < 2.7)
    True
    """
    sums, deviation = exact_sums(bits), noise * np.sqrt(len(bits))
    return lambda subsets: sums(subsets) + rng.normal(0, deviation, len(subsets))


def rounded_sums(bits: np.ndarray, base: int = ROUNDING_BASE) -> SubsetOracle:
    """Return an oracle that rounds the sums to the nearest multiple of `base`.

    >>> rounded_sums(np.ones(17, bool))(np.ones((1, 17), bool)).tolist()
    [20.0]
    """
    sums = exact_sums(bits)
    return lambda subsets: base * np.rint(sums(subsets) / base)


def private_sums(bits: np.ndarray, epsilon: Fraction, delta: Fraction) -> SubsetOracle:
    """Return an oracle that answers all queries together at epsilon and delta: the curator, or the mechanism directly.

    >>> private_sums(np.ones(8, bool), Fraction(1000), Fraction(0))(np.ones((2, 8), bool)).tolist()
    [8, 8]
    """
    return lambda subsets: (_ask_curator if is_asked_in_sql(subsets) else _perturb_sums)(bits, subsets, epsilon, delta)


def is_asked_in_sql(subsets: np.ndarray) -> bool:
    """Return whether the curator is queried in SQL; larger tables of subsets would take minutes.

    >>> is_asked_in_sql(np.ones((1000, 1000), bool)), is_asked_in_sql(np.ones((2000, 1000), bool))
    (True, False)
    """
    return int(np.count_nonzero(subsets)) <= _MAX_SQL_PAIRS


def _ask_curator(bits: np.ndarray, subsets: np.ndarray, epsilon: Fraction, delta: Fraction) -> np.ndarray:
    """Query the curator with a join to a public table of the subsets."""
    if not subsets.any():  # all subsets are empty
        return np.zeros(len(subsets), np.int64)
    parts = _split_questions(subsets)
    # The tightest l0 bound: each person is in at most this many subsets of a part.
    counts = [_max_questions_per_person(part) for part in parts]
    tables = {f"subsets_{index}": _subset_table(part) for index, part in enumerate(parts)}
    people = pa.table({"person": np.arange(len(bits)), "secret": bits.astype(np.int64)})
    columns: dict[str, Any] = {"people": {"person": "integer", "secret": (0, 1)}}
    for index, part in enumerate(parts):
        columns[f"subsets_{index}"] = {"question": integer_domain(len(part)), "member": "integer"}
    with dc.open(
        {"people": people},
        public=tables,
        unit="person",
        budget=(epsilon, delta) if delta else epsilon,
        columns=columns,
        groups=1,
        rows=1,
        ledger=":memory:",
    ) as curator:
        remaining = curator.budget().remaining
        answers = []
        for index, count in enumerate(counts):
            # Equal noise in every part: epsilon is divided for Laplace noise, rho for Gaussian noise.
            share = Fraction(count, sum(counts))
            cost: dict[str, Any] = {"rho": remaining.rho * share} if delta else {"epsilon": epsilon * share}
            answers.append(curator.ask(_SUBSET_COUNTS_SQL.format(part=index), groups=count, **cost))
    return np.concatenate(
        [_answers_in_order(answer.table, len(part)) for answer, part in zip(answers, parts, strict=True)]
    )


def _answers_in_order(answer: pa.Table, questions: int) -> np.ndarray:
    """Return one number per query; empty subsets are in no table, and their answer is 0."""
    counts = np.zeros(questions, np.int64)
    counts[answer["question"].to_numpy()] = answer["n"].to_numpy()
    return counts


def _split_questions(subsets: np.ndarray) -> list[np.ndarray]:
    """Split the queries so that no person is in more of a part than the curator can join."""
    splits = (np.array_split(subsets, count) for count in itertools.count(1))
    return next(parts for parts in splits if max(map(_max_questions_per_person, parts)) <= _MAX_JOIN_ROWS)


def _max_questions_per_person(subsets: np.ndarray) -> int:
    return max(1, int(subsets.sum(axis=0).max()))


def _subset_table(subsets: np.ndarray) -> pa.Table:
    question, member = np.nonzero(subsets)
    return pa.table({"question": question, "member": member})


def _perturb_sums(bits: np.ndarray, subsets: np.ndarray, epsilon: Fraction, delta: Fraction) -> np.ndarray:
    """Add noise to the whole vector; a person's bit changes as many answers as there are subsets with them."""
    noise = noise_for(_max_questions_per_person(subsets), 1, epsilon, delta)
    return np.asarray(noise.perturb(np.asarray(exact_sums(bits)(subsets), np.int64)))
