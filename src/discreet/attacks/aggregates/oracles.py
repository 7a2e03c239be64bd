"""Who answers questions about subsets of people: exactly, with some error, or with the curator's noise."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

import discreet as dc
from discreet.attacks.aggregates.fields import below

Oracle = Callable[[np.ndarray], Any]

EASY_BASE = 10
_FAN_OUT = 1000  # the curator joins a row with at most so many rows of a public table
_IN_SQL = 1_500_000  # so many pairs of a question and a person are asked in SQL; more are the kernel's
_ASK = """
    SELECT question, COUNT(*) AS n FROM people JOIN subsets_{part} ON person = member
    WHERE secret = 1 GROUP BY question ORDER BY question
"""


def exact(bits: np.ndarray) -> Oracle:
    """Answer with the sums themselves.

    >>> exact(np.array([True, False, True]))(np.array([[True, True, True], [False, True, False]])).tolist()
    [2.0, 0.0]
    """
    # 32 bits hold these sums exactly, and are multiplied fast.
    return lambda subsets: (subsets.astype(np.float32) @ bits.astype(np.float32)).astype(float)


def blurred(bits: np.ndarray, noise: float, rng: np.random.Generator) -> Oracle:
    """Answer with Gaussian noise whose spread is `noise` times sqrt(n): of shares, noise/sqrt(n).

    >>> answers = blurred(np.ones(100, bool), 0.25, np.random.default_rng(0))(np.ones((2000, 100), bool))
    >>> bool(2.3 < answers.std() < 2.7)
    True
    """
    sums, spread = exact(bits), noise * np.sqrt(len(bits))
    return lambda subsets: sums(subsets) + rng.normal(0, spread, len(subsets))


def rounded(bits: np.ndarray, base: int = EASY_BASE) -> Oracle:
    """Answer with the nearest multiple of a base, so that nobody changes an answer by one.

    >>> rounded(np.ones(17, bool))(np.ones((1, 17), bool)).tolist()
    [20.0]
    """
    sums = exact(bits)
    return lambda subsets: base * np.rint(sums(subsets) / base)


def curated(bits: np.ndarray, epsilon: Fraction, delta: Fraction) -> Oracle:
    """Answer all questions together at this price: in SQL by the curator, or by the kernel where they are too many.

    >>> curated(np.ones(8, bool), Fraction(1000), Fraction(0))(np.ones((2, 8), bool)).tolist()
    [8, 8]
    """

    def answer(subsets: np.ndarray) -> np.ndarray:
        if in_sql(subsets):
            return _asked(bits, subsets, epsilon, delta)
        return _perturbed(bits, subsets, epsilon, delta)

    return answer


def in_sql(subsets: np.ndarray) -> bool:
    """Tell whether the curator is asked in SQL; a larger table of subsets would take minutes.

    >>> in_sql(np.ones((1000, 1000), bool)), in_sql(np.ones((2000, 1000), bool))
    (True, False)
    """
    return int(np.count_nonzero(subsets)) <= _IN_SQL


def _asked(bits: np.ndarray, subsets: np.ndarray, epsilon: Fraction, delta: Fraction) -> np.ndarray:
    """Ask the curator; which people a question is about stands in a public table, which is joined."""
    if not subsets.any():  # nobody is asked about, so there is nobody to protect
        return np.zeros(len(subsets), np.int64)
    parts = _in_parts(subsets)
    # A person counts in so many answers at most, which the asker says: noise for more would be wasted.
    counts = [_most_about_one(part) for part in parts]
    tables = {f"subsets_{place}": _listed(part) for place, part in enumerate(parts)}
    people = pa.table({"person": np.arange(len(bits)), "secret": bits.astype(np.int64)})
    columns: dict[str, Any] = {"people": {"person": "integer", "secret": (0, 1)}}
    for place, part in enumerate(parts):
        columns[f"subsets_{place}"] = {"question": below(len(part)), "member": "integer"}
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
        whole = curator.budget().left
        seen = []
        for place, count in enumerate(counts):
            # So every part has the same noise: Laplace noise is shared by epsilon, Gaussian noise by rho.
            share = Fraction(count, sum(counts))
            sql, rho = _ASK.format(part=place), whole.rho * share
            if delta:
                seen.append(curator.ask(sql, rho=rho, groups=count))
            else:
                seen.append(curator.ask(sql, epsilon=epsilon * share, groups=count))
    return np.concatenate([_in_order(answer.table, len(part)) for answer, part in zip(seen, parts, strict=True)])


def _in_order(answer: pa.Table, questions: int) -> np.ndarray:
    """Return a number for each question; one about nobody is in no table of subsets, and its answer is 0."""
    found = np.zeros(questions, np.int64)
    found[answer["question"].to_numpy()] = answer["n"].to_numpy()
    return found


def _in_parts(subsets: np.ndarray) -> list[np.ndarray]:
    """Split the questions where one person is in more of them than a table may list."""
    count = 1
    while True:
        parts = np.array_split(subsets, count)
        if max(map(_most_about_one, parts)) <= _FAN_OUT:
            return parts
        count += 1


def _most_about_one(subsets: np.ndarray) -> int:
    return max(1, int(subsets.sum(axis=0).max()))


def _listed(subsets: np.ndarray) -> pa.Table:
    question, member = np.nonzero(subsets)
    return pa.table({"question": question, "member": member})


def _perturbed(bits: np.ndarray, subsets: np.ndarray, epsilon: Fraction, delta: Fraction) -> np.ndarray:
    """Add the kernel's noise for the whole vector: somebody's bit moves as many answers as are about them."""
    moved = dc.Sensitivity(groups=_most_about_one(subsets), size=1)
    noise = dc.gaussian_for(moved, epsilon, delta) if delta else dc.laplace_for(moved, epsilon)
    return np.asarray(noise.perturb(np.asarray(exact(bits)(subsets), np.int64)))
