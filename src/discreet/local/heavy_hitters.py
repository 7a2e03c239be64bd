"""Heavy hitters over an open domain, by the prefix extending method."""

from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from discreet.kernel.numbers import Number, as_integer
from discreet.local.aggregator import Aggregator
from discreet.local.frequency_oracles.parity_hashing import best_checks
from discreet.local.frequency_oracles.sketch_scheme import SketchScheme
from discreet.local.oracle import parse_epsilon
from discreet.local.prefix_search import KEPT_BITS, search_prefixes
from discreet.local.prefixes import IntegerDomain, Prefixes, StringDomain
from discreet.local.reports import Reports
from discreet.local.sketch_oracle import SketchOracle
from discreet.number_arguments import as_probability

_MAX_BITS_PER_LEVEL = 12  # with 2^8 prefixes kept, a level tries at most 2^20 continuations
_FINAL_LEVEL_WEIGHT = 2  # relative to the other levels: shares are estimated from the final level alone
_SKETCH_ROWS, _SKETCH_BITS = 4, 18  # the sketch of a level has 2^20 counts


class HeavyHitter(NamedTuple):
    """A value, the share of people who have it, its margin of error, and whether it is significant.

    >>> HeavyHitter("a.eu", share=0.6, margin=0.1, is_significant=True).value
    'a.eu'
    """

    value: Any
    share: float
    margin: float
    is_significant: bool


def HeavyHitters(values: IntegerDomain | StringDomain, epsilon: Number) -> "HeavyHitterFinder":  # noqa: N802 - a protocol's name
    """Return the prefix extending method (Wang, Li, Jha 2019; Bassily, Nissim, Stemmer, Thakurta 2017).

    Each person reports, through a sketch, either the whole value or a prefix of it, of a length chosen at random. The
    server keeps the most frequent short prefixes, tries their continuations, and repeats this up to whole values.

    >>> import discreet as dc
    >>> home_pages = dc.local.HeavyHitters(dc.local.StringDomain(4), epsilon=4)
    >>> reports = home_pages.perturb(["a.eu"] * 6000 + ["b.eu"] * 4000)
    >>> [hitter.value for hitter in home_pages.find(reports, most=2)]
    ['a.eu', 'b.eu']
    """
    exact_epsilon, odds = parse_epsilon(epsilon)
    if not isinstance(values, IntegerDomain | StringDomain):
        raise TypeError(f"values must be IntegerDomain(bits) or StringDomain(length), not {type(values).__name__}")
    prefixes = Prefixes(values, prefix_lengths_for_bits(values.bits))
    weights = (1,) * (len(prefixes.prefix_lengths) - 1) + (_FINAL_LEVEL_WEIGHT,)
    scheme = SketchScheme(weights, _SKETCH_ROWS, _SKETCH_BITS, best_checks(odds, _SKETCH_BITS), odds)
    return HeavyHitterFinder(prefixes, exact_epsilon, scheme)


def prefix_lengths_for_bits(bits: int) -> tuple[int, ...]:
    """Return the prefix length of each level, in bits, with equal increments after the first KEPT_BITS bits.

    >>> prefix_lengths_for_bits(16), prefix_lengths_for_bits(64)
    ((16,), (19, 30, 41, 52, 64))
    """
    levels = max(1, -(-(bits - KEPT_BITS) // _MAX_BITS_PER_LEVEL))
    return tuple(KEPT_BITS + (bits - KEPT_BITS) * level // levels for level in range(1, levels + 1))


@dataclass(frozen=True, repr=False)
class HeavyHitterFinder(SketchOracle):
    """A sketch of prefixes, as returned by `HeavyHitters`: devices call `perturb`, the server calls `find`.

    >>> import discreet as dc
    >>> finder = dc.local.HeavyHitters(dc.local.IntegerDomain(16), epsilon=4)
    >>> aggregator = dc.local.Aggregator(finder)
    >>> aggregator.add(finder.perturb([4711] * 2000))
    >>> [hitter.value for hitter in finder.find(aggregator, most=1)]
    [4711]
    """

    domain: Prefixes

    def find(self, reports: Reports | Aggregator, *, most: int = 20, confidence: Number = 0.95) -> list[HeavyHitter]:
        """Return at most `most` of the most frequent values that are significant, in descending order.

        With probability `confidence`, none of them is a false positive. With the same probability all margins hold
        simultaneously, with a correction for the number of candidates that were tried.
        """
        candidates = self.candidates(reports, most=most, confidence=confidence)
        return [hitter for hitter in candidates if hitter.is_significant]

    def candidates(
        self, reports: Reports | Aggregator, *, most: int = 20, confidence: Number = 0.95
    ) -> list[HeavyHitter]:
        """Return at most `most` of the most frequent values, including those that are not significant."""
        max_hitters, failure_probability = (
            as_integer(most, "most", 1),
            float(1 - as_probability(confidence, "confidence")),
        )
        best_prefixes = search_prefixes(self.scheme, self.domain, self.aggregate_counts(reports), max_hitters)
        own, other = map(float, self.scheme.rates)
        shares = (best_prefixes.supports / best_prefixes.people - other) / (own - other)
        clipped_shares = np.clip(shares, 0, 1)
        variance = clipped_shares * own * (1 - own) + (1 - clipped_shares) * other * (1 - other)
        tail_probability = failure_probability / (2 * best_prefixes.tried)
        margins = _deviation_bound(best_prefixes.people * variance, tail_probability) / (
            best_prefixes.people * (own - other)
        )
        is_significant = best_prefixes.supports > best_prefixes.people * other + _deviation_bound(
            best_prefixes.people * other * (1 - other), tail_probability
        )
        values = self.domain.encoding.decode(best_prefixes.words)
        records = zip(values, shares.tolist(), margins.tolist(), is_significant.tolist(), strict=True)
        hitters = [HeavyHitter(*record) for record in records if record[0] is not None]
        return sorted(hitters, key=lambda hitter: -hitter.share)

    def __repr__(self) -> str:
        return f"<heavy hitters by {super().__repr__()}>"


def _deviation_bound(variance: np.ndarray, tail_probability: float) -> np.ndarray:
    """Return a bound on the deviation of a support count from its mean, exceeded with probability `tail_probability`.

    The normal approximation is poor that far in the tail: the second term corrects for skewness (Cornish and Fisher
    1938), the last is a continuity correction.
    """
    z = -NormalDist().inv_cdf(tail_probability)
    bound: np.ndarray = z * np.sqrt(variance) + (z**2 - 1) / 6 + 1
    return bound
