"""Oracles that answer subset sums: exact, noisy, rounded, or private."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

import discreet as dc
from discreet.attacks.validation import integer_domain

SubsetOracle = Callable[[np.ndarray], Any]

ROUNDING_BASE = 10
_MAX_JOIN_ROWS = 1000  # the curator joins a row with at most so many rows of a public table
_MAX_SQL_PAIRS = 1_500_000  # so many pairs of a question and a person are asked in SQL; more are the kernel's
_SUBSET_COUNTS_SQL = """
    SELECT question, COUNT(*) AS n FROM people JOIN subsets_{part} ON person = member
    WHERE secret = 1 GROUP BY question ORDER BY question
"""


def exact_sums(bits: np.ndarray) -> SubsetOracle:
    """Answer with the sums themselves.

    >>> exact_sums(np.array([True, False, True]))(np.array([[True, True, True], [False, True, False]])).tolist()
    [2.0, 0.0]
    """
    # 32 bits hold these sums exactly, and are multiplied fast.
    return lambda subsets: (subsets.astype(np.float32) @ bits.astype(np.float32)).astype(float)


def noisy_sums(bits: np.ndarray, noise: float, rng: np.random.Generator) -> SubsetOracle:
    """Answer with Gaussian noise whose spread is `noise` times sqrt(n): of shares, noise/sqrt(n).

    >>> answers = noisy_sums(np.ones(100, bool), 0.25, np.random.default_rng(0))(np.ones((2000, 100), bool))
    >>> bool(2.3 < answers.std() < 2.7)
    True
    """
    sums, deviation = exact_sums(bits), noise * np.sqrt(len(bits))
    return lambda subsets: sums(subsets) + rng.normal(0, deviation, len(subsets))


def rounded_sums(bits: np.ndarray, base: int = ROUNDING_BASE) -> SubsetOracle:
    """Answer with the nearest multiple of a base, so that nobody changes an answer by one.

    >>> rounded_sums(np.ones(17, bool))(np.ones((1, 17), bool)).tolist()
    [20.0]
    """
    sums = exact_sums(bits)
    return lambda subsets: base * np.rint(sums(subsets) / base)


def private_sums(bits: np.ndarray, epsilon: Fraction, delta: Fraction) -> SubsetOracle:
    """Answer all questions together at this price: in SQL by the curator, or by the kernel where they are too many.

    >>> private_sums(np.ones(8, bool), Fraction(1000), Fraction(0))(np.ones((2, 8), bool)).tolist()
    [8, 8]
    """

    def answer(subsets: np.ndarray) -> np.ndarray:
        if is_asked_in_sql(subsets):
            return _ask_curator(bits, subsets, epsilon, delta)
        return _perturb_sums(bits, subsets, epsilon, delta)

    return answer


def is_asked_in_sql(subsets: np.ndarray) -> bool:
    """Tell whether the curator is asked in SQL; a larger table of subsets would take minutes.

    >>> is_asked_in_sql(np.ones((1000, 1000), bool)), is_asked_in_sql(np.ones((2000, 1000), bool))
    (True, False)
    """
    return int(np.count_nonzero(subsets)) <= _MAX_SQL_PAIRS


def _ask_curator(bits: np.ndarray, subsets: np.ndarray, epsilon: Fraction, delta: Fraction) -> np.ndarray:
    """Ask the curator; which people a question is about stands in a public table, which is joined."""
    if not subsets.any():  # nobody is asked about, so there is nobody to protect
        return np.zeros(len(subsets), np.int64)
    parts = _split_questions(subsets)
    # A person counts in so many answers at most, which the asker says: noise for more would be wasted.
    counts = [_max_questions_per_person(part) for part in parts]
    tables = {f"subsets_{place}": _subset_table(part) for place, part in enumerate(parts)}
    people = pa.table({"person": np.arange(len(bits)), "secret": bits.astype(np.int64)})
    columns: dict[str, Any] = {"people": {"person": "integer", "secret": (0, 1)}}
    for place, part in enumerate(parts):
        columns[f"subsets_{place}"] = {"question": integer_domain(len(part)), "member": "integer"}
    budget = (epsilon, delta) if delta else epsilon
    with dc.open(
        {"people": people},
        public=tables,
        unit="person",
        budget=budget,
        columns=columns,
        groups=1,
        rows=1,
        ledger=":memory:",
    ) as curator:
        remaining = curator.budget().remaining
        answers = []
        for place, count in enumerate(counts):
            # So every part has the same noise: Laplace noise is shared by epsilon, Gaussian noise by rho.
            share = Fraction(count, sum(counts))
            sql, rho = _SUBSET_COUNTS_SQL.format(part=place), remaining.rho * share
            if delta:
                answers.append(curator.ask(sql, rho=rho, groups=count))
            else:
                answers.append(curator.ask(sql, epsilon=epsilon * share, groups=count))
    return np.concatenate(
        [_answers_in_order(answer.table, len(part)) for answer, part in zip(answers, parts, strict=True)]
    )


def _answers_in_order(answer: pa.Table, questions: int) -> np.ndarray:
    """Return a number for each question; one about nobody is in no table of subsets, and its answer is 0."""
    counts = np.zeros(questions, np.int64)
    counts[answer["question"].to_numpy()] = answer["n"].to_numpy()
    return counts


def _split_questions(subsets: np.ndarray) -> list[np.ndarray]:
    """Split the questions where one person is in more of them than a table may list."""
    count = 1
    while True:
        parts = np.array_split(subsets, count)
        if max(map(_max_questions_per_person, parts)) <= _MAX_JOIN_ROWS:
            return parts
        count += 1


def _max_questions_per_person(subsets: np.ndarray) -> int:
    return max(1, int(subsets.sum(axis=0).max()))


def _subset_table(subsets: np.ndarray) -> pa.Table:
    question, member = np.nonzero(subsets)
    return pa.table({"question": question, "member": member})


def _perturb_sums(bits: np.ndarray, subsets: np.ndarray, epsilon: Fraction, delta: Fraction) -> np.ndarray:
    """Add the kernel's noise for the whole vector: somebody's bit moves as many answers as are about them."""
    sensitivity = dc.Sensitivity(groups=_max_questions_per_person(subsets), size=1)
    noise = dc.gaussian_for(sensitivity, epsilon, delta) if delta else dc.laplace_for(sensitivity, epsilon)
    return np.asarray(noise.perturb(np.asarray(exact_sums(bits)(subsets), np.int64)))
