"""What one can look at in an output: numbers made of it, by which data sets may be told apart."""

from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.audit.outcomes import Outcomes, Raised

_COORDINATES = 24  # of a long vector, those that differ most
_TOKENS = 2000
_BINS = 64
_REMAINDER = 60  # by 2, 3, 4, 5, 6, 10 and 12 at once

Score = Callable[[Outcomes], np.ndarray]


RAISED, PLAIN, TYPE, BITS, LEARNED = range(5)  # how hard it is to say what an event of a feature means


@dataclass(frozen=True)
class Feature:
    """A number of every run, under a name; of runs that have numbers only, if it is made of them.

    `learned` if pilot runs were needed to make it, `hard` to read by the scale above.
    """

    name: str
    score: Score
    learned: bool = False
    of_numbers: bool = False
    hard: int = PLAIN

    def everywhere(self, values: np.ndarray, seen: Outcomes, otherwise: Any) -> np.ndarray:
        """Return one value for each run, given one for each that has a score."""
        if not self.of_numbers:
            return values
        found = np.full(len(seen), otherwise)
        found[seen.has] = values
        return found


def features(first: Outcomes, second: Outcomes) -> list[Feature]:
    """Return what may be worth looking at, given pilot runs on both data sets."""
    found = [*_kinds(first, second), *_tokens(first, second)]
    width = first.numbers.shape[1]
    if not width:
        return found
    chosen = _most_different(first.numbers, second.numbers) if width > 1 else [0]
    for i in chosen:
        name = f"coordinate {i}" if width > 1 else "the output"
        found.append(Feature(name, _column(i), of_numbers=True))
        found.append(Feature(f"the lowest bit of {name}", _lowest_bit_of(i), of_numbers=True, hard=BITS))
        found += _ratios(first, second, i, name)
    found += _rows(first, second)
    if width > 1:
        found += [_projection(first, second), _all_ratios(first, second, chosen)]
    return found


def lowest_bit(values: np.ndarray) -> np.ndarray:
    """Return the exponent of the lowest set bit: which powers of two divide a number. NaN for 0 and what is not finite.

    Sums of doubles are rounded to a lattice that depends on the terms, so this tells what noise was added to
    (Mironov 2012).

    >>> lowest_bit(np.array([12.0, 0.75, 0.0]))
    array([ 2., -2., nan])
    """
    if values.dtype.kind == "i":
        bits = values & -values
        return np.where(values == 0, np.nan, np.frexp(bits.astype(np.float64))[1] - 1.0)
    fine = np.isfinite(values) & (values != 0)
    mantissa, exponent = np.frexp(np.where(fine, values, 1.0))
    whole = (np.abs(mantissa) * 2.0**53).astype(np.int64)
    zeros = np.frexp((whole & -whole).astype(np.float64))[1] - 1
    return np.where(fine, exponent - 53.0 + zeros, np.nan)


def _column(i: int) -> Score:
    return lambda seen: seen.numbers[:, i]


def _lowest_bit_of(i: int) -> Score:
    return lambda seen: lowest_bit(seen.numbers[:, i])


def _kinds(first: Outcomes, second: Outcomes) -> list[Feature]:
    names = sorted({seen.names[code] for seen in (first, second) for code in np.unique(seen.kinds)})
    if len(names) == 1:
        return []
    return [
        Feature(f"whether the run {name}", _is_kind(name), hard=RAISED)
        if name.startswith("raised ")
        else Feature(f"whether the outcome is: {name}", _is_kind(name), hard=TYPE)
        for name in names
    ]


def _is_kind(name: str) -> Score:
    def score(seen: Outcomes) -> np.ndarray:
        codes = [code for code, known in enumerate(seen.names) if known == name]
        return np.isin(seen.kinds, codes).astype(np.float64)

    return score


def _tokens(first: Outcomes, second: Outcomes) -> list[Feature]:
    """Return how much likelier an output as a whole is with one data set, where outputs repeat."""
    if first.tokens is None or second.tokens is None:
        return []
    counts = [Counter(seen.tokens) for seen in (first, second) if seen.tokens is not None]
    often = [token for token, n in (counts[0] + counts[1]).most_common(_TOKENS) if n > 1]
    if not often:
        return []
    table = {token: float(np.log((counts[0][token] + 1) / (counts[1][token] + 1))) for token in often}

    def score(seen: Outcomes) -> np.ndarray:
        return np.array([table.get(token, 0.0) for token in seen.tokens or ()])

    found = [_learned("the output as a whole is", score)]
    by_weight = sorted(often, key=lambda token: -abs(table[token]) * (counts[0][token] + counts[1][token]))
    return found + [Feature(_whether(token), _is_token(token), learned=True) for token in by_weight[:4]]


def _learned(what: str, score: Score, *, of_numbers: bool = False) -> Feature:
    """Return the logarithm of how much likelier something was on the first data set, as a feature."""
    return Feature(f"how telling {what}", score, learned=True, of_numbers=of_numbers, hard=LEARNED)


def _whether(token: Hashable) -> str:
    return f"whether the run {token!s:.80}" if isinstance(token, Raised) else f"whether the output is {token!r:.60}"


def _is_token(token: Hashable) -> Score:
    alone = {token}  # looked up by its hash: what two things of odd types answer to == may be no truth value
    return lambda seen: np.array([other in alone for other in seen.tokens or ()], np.float64)


def _rows(first: Outcomes, second: Outcomes) -> list[Feature]:
    """Return how telling all numbers of an output are as they are, bit by bit, where outputs repeat."""
    marks = [_marks(seen) for seen in (first, second)]
    known, counts = np.unique(np.concatenate(marks), return_counts=True)
    if known.size < 2 or counts.max() < 2 or known.size > counts.sum() // 2:
        return []
    here, there = (np.bincount(np.searchsorted(known, each), minlength=known.size) for each in marks)
    table = np.log((here + 1) / (there + 1))

    def score(seen: Outcomes) -> np.ndarray:
        found = _marks(seen)
        places = np.minimum(np.searchsorted(known, found), known.size - 1)
        return np.where(known[places] == found, table[places], 0.0)

    return [_learned("the exact bits of the output are", score, of_numbers=True)]


def _marks(seen: Outcomes) -> np.ndarray:
    """Return the bytes of each run's numbers as one value that can be sorted."""
    numbers = np.ascontiguousarray(seen.numbers)
    return numbers.view(np.dtype((np.void, numbers.dtype.itemsize * numbers.shape[1]))).ravel()


def _most_different(first: np.ndarray, second: np.ndarray) -> list[int]:
    """Return the coordinates whose quantiles differ most, in units of their spread."""
    with np.errstate(all="ignore"):
        levels = np.linspace(0.05, 0.95, 7)
        here, there = (_quantiles(numbers, levels) for numbers in (first, second))
        spread = np.ptp(np.concatenate([here, there]), axis=0)
        apart = np.nan_to_num(np.abs(here - there).max(axis=0) / np.where(spread > 0, spread, 1.0))
    return sorted(np.argsort(-apart, kind="stable")[:_COORDINATES].tolist())


def _quantiles(numbers: np.ndarray, levels: np.ndarray) -> np.ndarray:
    fine = numbers[np.isfinite(numbers).all(axis=1)]
    if not len(fine):
        return np.zeros((len(levels), numbers.shape[1]))
    return np.asarray(np.quantile(fine, levels, axis=0, method="nearest"), float)


def _ratios(first: Outcomes, second: Outcomes, i: int, name: str) -> list[Feature]:
    """Return how much likelier each stretch of a coordinate is, and each remainder of it."""
    found = [_learned(f"{name} is", _table_of(first, second, _column(i)), of_numbers=True)]
    is_integer = first.numbers.dtype.kind == "i"
    step, label = (_REMAINDER, f"{name} modulo {_REMAINDER}") if is_integer else (1, f"the fraction of {name}")

    def remainder(seen: Outcomes) -> np.ndarray:
        with np.errstate(invalid="ignore"):
            return np.asarray(np.mod(seen.numbers[:, i], step))

    return [*found, _learned(f"{label} is", _table_of(first, second, remainder), of_numbers=True)]


def _table_of(first: Outcomes, second: Outcomes, score: Score) -> Score:
    """Return the logarithm of the ratio of two histograms, as a function of outcomes."""
    scores = [np.asarray(score(seen), np.float64) for seen in (first, second)]
    pooled = np.concatenate([each[np.isfinite(each)] for each in scores])
    if not pooled.size:
        return lambda seen: np.full(len(seen.numbers), np.nan)
    edges = np.unique(np.quantile(pooled, np.linspace(0, 1, _BINS + 1), method="nearest"))
    counts = [np.bincount(np.searchsorted(edges, each[np.isfinite(each)]), minlength=len(edges) + 1) for each in scores]
    table = np.log((counts[0] + 1) / (counts[1] + 1))

    def ratio(seen: Outcomes) -> np.ndarray:
        values = np.asarray(score(seen), np.float64)
        fine = np.isfinite(values)
        return np.where(fine, table[np.searchsorted(edges, np.where(fine, values, 0.0))], np.nan)

    return ratio


def _all_ratios(first: Outcomes, second: Outcomes, chosen: list[int]) -> Feature:
    tables = [_table_of(first, second, _column(i)) for i in chosen]
    return _learned(
        "all coordinates are together",
        lambda seen: np.sum([table(seen) for table in tables], axis=0),
        of_numbers=True,
    )


def _projection(first: Outcomes, second: Outcomes) -> Feature:
    """Return the weighted sum of all coordinates that tells most (Fisher's discriminant), extremes cut."""
    fine = [seen.numbers[np.isfinite(seen.numbers).all(axis=1)].astype(np.float64) for seen in (first, second)]
    width = first.numbers.shape[1]
    if min(map(len, fine)) < 2:
        return _weighted(lambda seen: np.full(len(seen.numbers), np.nan))
    both = np.concatenate(fine)
    low, high = np.quantile(both, [0.01, 0.99], axis=0)
    middle, spread = np.median(both, axis=0), np.where(high > low, high - low, 1.0)

    def scaled(numbers: np.ndarray) -> np.ndarray:
        return np.asarray((np.clip(numbers, low, high) - middle) / spread)

    here, there = (scaled(numbers) for numbers in fine)
    scatter = np.atleast_2d(np.cov(here.T) + np.cov(there.T))
    ridge = 1e-3 * np.trace(scatter) / width + 1e-12
    weights = np.linalg.solve(scatter + ridge * np.eye(width), here.mean(axis=0) - there.mean(axis=0))
    return _weighted(lambda seen: scaled(seen.numbers) @ weights)


def _weighted(score: Score) -> Feature:
    return Feature("a weighted sum of coordinates", score, learned=True, of_numbers=True, hard=LEARNED)
