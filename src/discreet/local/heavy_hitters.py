"""Heavy hitters over an open domain, by the prefix extending method."""

from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from discreet.kernel.loss import Loss
from discreet.kernel.numbers import Number, as_integer
from discreet.local.aggregator import Aggregator
from discreet.local.frequency_oracles.parity_hashing import best_checks
from discreet.local.frequency_oracles.sketch_scheme import SketchScheme
from discreet.local.oracle import parse_epsilon
from discreet.local.prefix_search import KEPT_BITS, search_prefixes
from discreet.local.prefixes import IntegerDomain, Prefixes, StringDomain
from discreet.local.reports import ReceivedMessages, Reports
from discreet.local.sketch_oracle import SketchOracle
from discreet.privacy.probability import as_probability

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
    return HeavyHitterFinder(
        prefixes,
        SketchOracle(
            prefixes,
            exact_epsilon,
            SketchScheme(weights, _SKETCH_ROWS, _SKETCH_BITS, best_checks(odds, _SKETCH_BITS), odds),
        ),
    )


def prefix_lengths_for_bits(bits: int) -> tuple[int, ...]:
    """Return the prefix length of each level, in bits, with equal increments after the first KEPT_BITS bits.

    >>> prefix_lengths_for_bits(16), prefix_lengths_for_bits(64)
    ((16,), (19, 30, 41, 52, 64))
    """
    levels = max(1, -(-(bits - KEPT_BITS) // _MAX_BITS_PER_LEVEL))
    return tuple(KEPT_BITS + (bits - KEPT_BITS) * level // levels for level in range(1, levels + 1))


@dataclass(frozen=True, repr=False)
class HeavyHitterFinder:
    """A heavy-hitter protocol, as returned by `HeavyHitters`: devices call `perturb`, the server calls `find`.

    >>> import discreet as dc
    >>> finder = dc.local.HeavyHitters(dc.local.IntegerDomain(16), epsilon=4)
    >>> aggregator = dc.local.Aggregator(finder)
    >>> aggregator.add(finder.perturb([4711] * 2000))
    >>> [hitter.value for hitter in finder.find(aggregator, most=1)]
    [4711]
    """

    prefixes: Prefixes
    oracle: SketchOracle

    @property
    def configuration(self) -> str:
        """The text that identifies the protocol and its parameters, in reports and aggregators."""
        return self.oracle.configuration

    @property
    def scheme(self) -> SketchScheme:
        """The scheme that reports prefixes."""
        return self.oracle.scheme

    def loss(self) -> Loss:
        """Return the privacy loss of one report, with respect to the value of the person who sent it.

        Claim: epsilon, for whole values and for their prefixes.
        Proof: a person sends one report, of one level, with the distribution of the sketch.
        Needs: SketchOracle.loss.
        Checked by: test_the_worst_log_ratio_of_a_sketch_is_the_claimed_epsilon
        """
        return self.oracle.loss()

    def perturb(self, values: Any) -> Reports:
        """Return a randomised report for each person's value.

        Claim: a report depends only on its person's value, through the distribution of the sketch.
        Proof: it is a report of the sketch, and the hashes are public functions of the value.
        Needs: SketchOracle.perturb.
        Checked by: test_sketched_reports_have_the_claimed_distribution
        """
        return self.oracle.perturb(values)

    def read(self, received: ReceivedMessages) -> Reports:
        """Parse received messages: the bytes of many reports, or a list of messages."""
        return self.oracle.read(received)

    def counts(self, reports: Reports) -> np.ndarray:
        """Return the counts that an aggregator sums."""
        return self.oracle.counts(reports)

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
        best_prefixes = search_prefixes(self.scheme, self.prefixes, self.oracle.aggregate_counts(reports), max_hitters)
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
        values = self.prefixes.encoding.decode(best_prefixes.words)
        records = zip(values, shares.tolist(), margins.tolist(), is_significant.tolist(), strict=True)
        hitters = [HeavyHitter(*record) for record in records if record[0] is not None]
        return sorted(hitters, key=lambda hitter: -hitter.share)

    def __repr__(self) -> str:
        return f"<heavy hitters by {self.oracle!r}>"

    def __str__(self) -> str:
        return self.configuration


def _deviation_bound(variance: np.ndarray, tail_probability: float) -> np.ndarray:
    """Return a bound on the deviation of a support count from its mean, exceeded with probability `tail_probability`.

    The normal approximation is poor that far in the tail: the second term corrects for skewness (Cornish and Fisher
    1938), the last is a continuity correction.
    """
    z = -NormalDist().inv_cdf(tail_probability)
    bound: np.ndarray = z * np.sqrt(variance) + (z**2 - 1) / 6 + 1
    return bound
