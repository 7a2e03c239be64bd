"""Frequencies over an open domain: strings or 64-bit integers, chosen after the reports were collected."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.kernel.loss import Loss
from discreet.kernel.numbers import Number, as_integer
from discreet.local.aggregator import Aggregator
from discreet.local.estimation import LocalEstimate, debias_shares, z_score
from discreet.local.frequency_oracles.parity_hashing import MAX_POSITION_BITS, best_checks
from discreet.local.frequency_oracles.sketch_scheme import SketchScheme
from discreet.local.oracle import ReportReader, parse_epsilon
from discreet.local.prefixes import Prefixes
from discreet.local.reports import Reports
from discreet.local.value_hashes import OpenDomain, hash_to_position

_MAX_ROWS = 1 << 12
_MIN_POSITION_BITS = 8  # with fewer positions, values collide so often that margins would not hold


def Sketch(epsilon: Number, *, rows: int = 16, bits: int = 16) -> "SketchOracle":  # noqa: N802 - a protocol's name
    """Return an oracle for an open domain; it stores rows·2^bits counts, independently of the number of people.

    Each person picks one of `rows` public hash functions at random, which maps every string or integer to one of
    2^bits positions, and reports the position by local hashing. The share of any value can be estimated afterwards.

    >>> import discreet as dc
    >>> visits = dc.local.Sketch(epsilon=4)
    >>> reports = visits.perturb(["example.org"] * 800 + ["example.com"] * 200)
    >>> shares, margins = visits.shares(reports, ["example.org", "example.net"])
    >>> bool(abs(shares[0] - 0.8) < 4 * margins[0]), bool(abs(shares[1]) < 4 * margins[1])
    (True, True)
    """
    exact_epsilon, odds = parse_epsilon(epsilon)
    row_count, position_bits = as_integer(rows, "rows", 1), check_position_bits(bits)
    if row_count > _MAX_ROWS:
        raise ValueError(f"rows must be at most {_MAX_ROWS}, not {row_count}")
    return SketchOracle(
        OpenDomain(),
        exact_epsilon,
        SketchScheme((1,), row_count, position_bits, best_checks(odds, position_bits), odds),
    )


def check_position_bits(bits: int) -> int:
    """Return the number of bits of a position, after checking its range."""
    position_bits = as_integer(bits, "bits", _MIN_POSITION_BITS)
    if position_bits > MAX_POSITION_BITS:
        raise ValueError(f"bits must be at most {MAX_POSITION_BITS}, not {position_bits}. Use more rows instead.")
    return position_bits


@dataclass(frozen=True, repr=False)
class SketchOracle(ReportReader):
    """An oracle for an open domain, as returned by `Sketch`: devices call `perturb`, the server calls `shares`.

    >>> import discreet as dc
    >>> words = dc.local.Sketch(epsilon=2)
    >>> words.loss().epsilon, len(words.perturb(["yes", "no"]))
    (Fraction(2, 1), 2)
    """

    domain: OpenDomain | Prefixes
    epsilon: Fraction
    scheme: SketchScheme

    def loss(self) -> Loss:
        """Return the privacy loss of one report, with respect to the value of the person who sent it.

        Claim: for any two values that a person may have, a report is at most exp(epsilon) times likelier under one
            than under the other.
        Proof: the scheme's `perturb` claims it with odds_for(epsilon) in place of exp(epsilon), which is not more.
        Needs: odds_for, SketchScheme.perturb.
        Checked by: test_the_worst_log_ratio_of_a_sketch_is_the_claimed_epsilon
        """
        return Loss(self.epsilon)

    def perturb(self, values: Any) -> Reports:
        """Return a randomised report for each person's value.

        Claim: a report depends only on its person's value, through the distribution of the scheme.
        Proof: the hashes of a value are public functions of it, and the scheme randomises them.
        Needs: SketchScheme.perturb.
        Checked by: test_sketched_reports_have_the_claimed_distribution
        """
        return Reports(self.configuration, self.scheme.perturb(self.domain.hash_values(values, "values")))

    def aggregate_counts(self, reports: Reports | Aggregator) -> np.ndarray:
        """Return the sum of the counts of reports, or the counts of an aggregator."""
        if not isinstance(reports, Aggregator):
            counts = self.counts(reports)
        elif reports.oracle.configuration == self.configuration:
            counts = reports.counts
        else:
            raise ValueError(
                f"reports: the aggregator's configuration is {reports.oracle.configuration}, not {self.configuration}"
            )
        if not counts[-self.scheme.function_count :].any():
            raise ValueError("reports must not be empty")
        return counts

    def shares(self, reports: Reports | Aggregator, values: Any, *, confidence: Number = 0.95) -> LocalEstimate:
        """Return the share of people with each of the given values, and margins.

        The estimates are also unbiased over the public hash functions: expected collisions are subtracted.
        """
        z = z_score(confidence)
        level = len(self.scheme.weights) - 1
        hashes = self.domain.hash_values(values, "values")[:, level]
        supports, people = self.scheme.support_counts(self.aggregate_counts(reports), level)
        if not people.any():
            raise ValueError("reports: nobody reported a whole value")
        rows = range(level * self.scheme.rows, (level + 1) * self.scheme.rows)
        supported = sum(
            table[hash_to_position(hashes, row, self.scheme.bits)] for row, table in zip(rows, supports, strict=True)
        )
        shares, margins = debias_shares(supported, int(people.sum()), self.scheme.rates, z)
        # All people with the same value collide together, so their contribution does not average out.
        collision_variance = np.clip(self.scheme.repeat_rate(supports, people) - shares**2, 0, 1) * _collision_variance(
            people, self.scheme.bits
        )
        return LocalEstimate(shares, np.hypot(margins, z * np.sqrt(collision_variance)))

    def pmf(self, report: Any, value: Any) -> Fraction:
        """Return the exact probability of one report, given the person's value."""
        return self.scheme.probability(report, self.domain.hash_values([value], "value")[0])

    def distribution(self, value: Any) -> Mapping[Any, Fraction]:
        """Return the exact probability of every report, given the person's value."""
        hashes = self.domain.hash_values([value], "value")[0]
        return {report: self.scheme.probability(report, hashes) for report in self.scheme.outcomes()}

    def __repr__(self) -> str:
        return f"<{self.scheme.name} for {self.domain}, epsilon {float(self.epsilon):g}>"


def _collision_variance(people: np.ndarray, bits: int) -> float:
    """Return the variance, as a share, of the number of people whose other value collides with a given value."""
    weights = people / people.sum()
    return float((weights**2).sum()) / (1 << bits)
