"""Features of outputs: numbers computed from an output that may distinguish two data sets."""

from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.audit.runs import ErrorOutcome, Outcomes

_MAX_COORDINATES = 24  # the coordinates of a long vector that differ most
_MAX_TOKENS = 2000
_RATIO_BINS = 64
_MODULUS = 60  # divisible by 2, 3, 4, 5, 6, 10 and 12

Score = Callable[[Outcomes], np.ndarray]


ERROR, PLAIN, TYPE, BITS, LEARNED = range(5)  # how hard the events of a feature are to read


@dataclass(frozen=True)
class Feature:
    """A named score of every run or, if `of_numbers`, of every run whose output has numbers.

    `learned` means fitted to pilot runs; `difficulty` is on the scale above.
    """

    name: str
    score: Score
    learned: bool = False
    of_numbers: bool = False
    difficulty: int = PLAIN

    def expand_to_runs(self, values: np.ndarray, outcomes: Outcomes, fill: Any) -> np.ndarray:
        """Return one value per run, given one value per run that has a score."""
        if not self.of_numbers:
            return values
        expanded = np.full(len(outcomes), fill)
        expanded[outcomes.has_numbers] = values
        return expanded


def candidate_features(first: Outcomes, second: Outcomes) -> list[Feature]:
    """Return candidate features, given pilot runs on both data sets."""
    candidates = [*_kind_features(first, second), *_token_features(first, second)]
    width = first.numbers.shape[1]
    if not width:
        return candidates
    coordinates = _most_different_coordinates(first.numbers, second.numbers) if width > 1 else [0]
    for i in coordinates:
        name = f"coordinate {i}" if width > 1 else "the output"
        candidates.append(Feature(name, _coordinate_score(i), of_numbers=True))
        candidates.append(Feature(f"the lowest bit of {name}", _lowest_bit_score(i), of_numbers=True, difficulty=BITS))
        candidates += _ratio_features(first, second, i, name)
    candidates += _exact_row_features(first, second)
    if width > 1:
        candidates += [_projection_feature(first, second), _joint_ratio_feature(first, second, coordinates)]
    return candidates


def lowest_bit(values: np.ndarray) -> np.ndarray:
    """Return the exponent of the lowest set bit of each value; NaN for 0 and for values that are not finite.

    Sums of doubles are rounded to a lattice that depends on the terms, so the lowest bit can reveal the value that
    noise was added to (Mironov 2012).

    >>> lowest_bit(np.array([12.0, 0.75, 0.0]))
    array([ 2., -2., nan])
    """
    if values.dtype.kind == "i":
        bits = values & -values
        return np.where(values == 0, np.nan, np.frexp(bits.astype(np.float64))[1] - 1.0)
    is_usable = np.isfinite(values) & (values != 0)
    mantissa, exponent = np.frexp(np.where(is_usable, values, 1.0))
    mantissa_bits = (np.abs(mantissa) * 2.0**53).astype(np.int64)
    zeros = np.frexp((mantissa_bits & -mantissa_bits).astype(np.float64))[1] - 1
    return np.where(is_usable, exponent - 53.0 + zeros, np.nan)


def _coordinate_score(i: int) -> Score:
    return lambda outcomes: outcomes.numbers[:, i]


def _lowest_bit_score(i: int) -> Score:
    return lambda outcomes: lowest_bit(outcomes.numbers[:, i])


def _kind_features(first: Outcomes, second: Outcomes) -> list[Feature]:
    names = sorted({outcomes.kind_names[code] for outcomes in (first, second) for code in np.unique(outcomes.kinds)})
    if len(names) == 1:
        return []
    return [
        Feature(f"whether the run {name}", _kind_indicator(name), difficulty=ERROR)
        if name.startswith("raised ")
        else Feature(f"whether the outcome is: {name}", _kind_indicator(name), difficulty=TYPE)
        for name in names
    ]


def _kind_indicator(name: str) -> Score:
    def score(outcomes: Outcomes) -> np.ndarray:
        codes = [code for code, kind_name in enumerate(outcomes.kind_names) if kind_name == name]
        return np.isin(outcomes.kinds, codes).astype(np.float64)

    return score


def _token_features(first: Outcomes, second: Outcomes) -> list[Feature]:
    """Return features of the output as a whole, where outputs repeat."""
    if first.tokens is None or second.tokens is None:
        return []
    counts = [Counter(outcomes.tokens) for outcomes in (first, second) if outcomes.tokens is not None]
    repeated = [token for token, n in (counts[0] + counts[1]).most_common(_MAX_TOKENS) if n > 1]
    if not repeated:
        return []
    log_ratios = {token: float(np.log((counts[0][token] + 1) / (counts[1][token] + 1))) for token in repeated}

    def score(outcomes: Outcomes) -> np.ndarray:
        return np.array([log_ratios.get(token, 0.0) for token in outcomes.tokens or ()])

    features = [_learned_feature("the whole output", score)]
    by_weight = sorted(repeated, key=lambda token: -abs(log_ratios[token]) * (counts[0][token] + counts[1][token]))
    return features + [
        Feature(_token_question(token), _token_indicator(token), learned=True) for token in by_weight[:4]
    ]


def _learned_feature(subject: str, score: Score, *, of_numbers: bool = False) -> Feature:
    """Return a learned log-likelihood ratio as a feature."""
    return Feature(f"log-likelihood ratio of {subject}", score, learned=True, of_numbers=of_numbers, difficulty=LEARNED)


def _token_question(token: Hashable) -> str:
    return (
        f"whether the run {token!s:.80}" if isinstance(token, ErrorOutcome) else f"whether the output is {token!r:.60}"
    )


def _token_indicator(token: Hashable) -> Score:
    singleton = {token}  # looked up by hash: == of unusual types may not return a boolean
    return lambda outcomes: np.array([other in singleton for other in outcomes.tokens or ()], np.float64)


def _exact_row_features(first: Outcomes, second: Outcomes) -> list[Feature]:
    """Return the log-likelihood ratio of the exact numbers of an output, where outputs repeat."""
    row_bytes = [_row_bytes(outcomes) for outcomes in (first, second)]
    distinct, counts = np.unique(np.concatenate(row_bytes), return_counts=True)
    if distinct.size < 2 or counts.max() < 2 or distinct.size > counts.sum() // 2:
        return []
    here, there = (np.bincount(np.searchsorted(distinct, side), minlength=distinct.size) for side in row_bytes)
    log_ratios = np.log((here + 1) / (there + 1))

    def score(outcomes: Outcomes) -> np.ndarray:
        encoded = _row_bytes(outcomes)
        positions = np.minimum(np.searchsorted(distinct, encoded), distinct.size - 1)
        return np.where(distinct[positions] == encoded, log_ratios[positions], 0.0)

    return [_learned_feature("the exact bits of the output", score, of_numbers=True)]


def _row_bytes(outcomes: Outcomes) -> np.ndarray:
    """Return the bytes of each run's numbers as one sortable value."""
    numbers = np.ascontiguousarray(outcomes.numbers)
    return numbers.view(np.dtype((np.void, numbers.dtype.itemsize * numbers.shape[1]))).ravel()


def _most_different_coordinates(first: np.ndarray, second: np.ndarray) -> list[int]:
    """Return the coordinates whose quantiles differ most, in units of their spread."""
    with np.errstate(all="ignore"):
        levels = np.linspace(0.05, 0.95, 7)
        here, there = (_quantiles(numbers, levels) for numbers in (first, second))
        ranges = np.ptp(np.concatenate([here, there]), axis=0)
        differences = np.nan_to_num(np.abs(here - there).max(axis=0) / np.where(ranges > 0, ranges, 1.0))
    return sorted(np.argsort(-differences, kind="stable")[:_MAX_COORDINATES].tolist())


def _quantiles(numbers: np.ndarray, levels: np.ndarray) -> np.ndarray:
    finite_rows = numbers[np.isfinite(numbers).all(axis=1)]
    if not len(finite_rows):
        return np.zeros((len(levels), numbers.shape[1]))
    return np.asarray(np.quantile(finite_rows, levels, axis=0, method="nearest"), float)


def _ratio_features(first: Outcomes, second: Outcomes, i: int, name: str) -> list[Feature]:
    """Return log-likelihood ratios of a coordinate and of its remainder, by histograms."""
    features = [_learned_feature(name, _log_ratio_score(first, second, _coordinate_score(i)), of_numbers=True)]
    is_integer = first.numbers.dtype.kind == "i"
    step, label = (_MODULUS, f"{name} modulo {_MODULUS}") if is_integer else (1, f"the fractional part of {name}")

    def remainder(outcomes: Outcomes) -> np.ndarray:
        with np.errstate(invalid="ignore"):
            return np.asarray(np.mod(outcomes.numbers[:, i], step))

    return [*features, _learned_feature(label, _log_ratio_score(first, second, remainder), of_numbers=True)]


def _log_ratio_score(first: Outcomes, second: Outcomes, score: Score) -> Score:
    """Return the log-ratio of two histograms as a function of outcomes."""
    scores = [np.asarray(score(outcomes), np.float64) for outcomes in (first, second)]
    pooled = np.concatenate([side_scores[np.isfinite(side_scores)] for side_scores in scores])
    if not pooled.size:
        return lambda seen: np.full(len(seen.numbers), np.nan)
    edges = np.unique(np.quantile(pooled, np.linspace(0, 1, _RATIO_BINS + 1), method="nearest"))
    counts = [np.bincount(np.searchsorted(edges, side[np.isfinite(side)]), minlength=len(edges) + 1) for side in scores]
    log_ratios = np.log((counts[0] + 1) / (counts[1] + 1))

    def ratio(outcomes: Outcomes) -> np.ndarray:
        values = np.asarray(score(outcomes), np.float64)
        is_finite = np.isfinite(values)
        return np.where(is_finite, log_ratios[np.searchsorted(edges, np.where(is_finite, values, 0.0))], np.nan)

    return ratio


def _joint_ratio_feature(first: Outcomes, second: Outcomes, coordinates: list[int]) -> Feature:
    ratio_scores = [_log_ratio_score(first, second, _coordinate_score(i)) for i in coordinates]
    return _learned_feature(
        "all coordinates together",
        lambda outcomes: np.sum([ratio_score(outcomes) for ratio_score in ratio_scores], axis=0),
        of_numbers=True,
    )


def _projection_feature(first: Outcomes, second: Outcomes) -> Feature:
    """Return the weighted sum of coordinates that separates best (Fisher's discriminant), with outliers clipped."""
    finite_rows = [
        outcomes.numbers[np.isfinite(outcomes.numbers).all(axis=1)].astype(np.float64) for outcomes in (first, second)
    ]
    width = first.numbers.shape[1]
    if min(map(len, finite_rows)) < 2:
        return _weighted_sum_feature(lambda seen: np.full(len(seen.numbers), np.nan))
    both = np.concatenate(finite_rows)
    low, high = np.quantile(both, [0.01, 0.99], axis=0)
    middle, scale = np.median(both, axis=0), np.where(high > low, high - low, 1.0)

    def standardise(numbers: np.ndarray) -> np.ndarray:
        return np.asarray((np.clip(numbers, low, high) - middle) / scale)

    here, there = (standardise(numbers) for numbers in finite_rows)
    scatter = np.atleast_2d(np.cov(here.T) + np.cov(there.T))
    ridge = 1e-3 * np.trace(scatter) / width + 1e-12
    weights = np.linalg.solve(scatter + ridge * np.eye(width), here.mean(axis=0) - there.mean(axis=0))
    return _weighted_sum_feature(lambda seen: standardise(seen.numbers) @ weights)


def _weighted_sum_feature(score: Score) -> Feature:
    return Feature("a weighted sum of coordinates", score, learned=True, of_numbers=True, difficulty=LEARNED)
