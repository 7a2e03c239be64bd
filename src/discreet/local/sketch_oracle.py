"""Frequencies over an open domain: strings or 64-bit integers, chosen when reports are in."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np

from discreet.kernel.event import canonical_json
from discreet.kernel.loss import Loss
from discreet.kernel.noise.tail_bounds import z_score
from discreet.kernel.numbers import Number, as_integer
from discreet.local.aggregator import Aggregator
from discreet.local.estimation import LocalEstimate, debias_shares
from discreet.local.frequency_oracles.parity_hashing import MAX_POSITION_BITS, best_checks
from discreet.local.frequency_oracles.sketch_scheme import SketchScheme
from discreet.local.oracle import parse_epsilon
from discreet.local.reports import ReceivedMessages, Reports, check_configuration, read_reports
from discreet.local.value_hashes import OpenDomain, hash_to_position

_MAX_ROWS = 1 << 12
_MIN_POSITION_BITS = 8  # bits of a place: among fewer places values meet so often that margins would not hold


class HashedDomain(Protocol):
    """What values can be, and the marks by which they are known, a column for each level of the scheme."""

    def hash_values(self, values: Any, name: str) -> np.ndarray:
        """Return the marks of each value."""


def Sketch(epsilon: Number, *, rows: int = 16, bits: int = 16) -> "SketchOracle":  # noqa: N802 - a protocol's name
    """Return an oracle for values of which no list exists; it keeps rows·2^bits numbers, however many people report.

    A person takes one of `rows` public functions, which sorts every text or number into one of 2^bits places, and
    reports the place by local hashing. Later, the share of any value can be asked for.

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
    """Read how many bits a place has."""
    position_bits = as_integer(bits, "bits", _MIN_POSITION_BITS)
    if position_bits > MAX_POSITION_BITS:
        raise ValueError(f"bits must be at most {MAX_POSITION_BITS}, not {position_bits}; take more rows")
    return position_bits


@dataclass(frozen=True, repr=False)
class SketchOracle:
    """What `Sketch` returns: `perturb` where the person is, `shares` of chosen values where reports arrive.

    >>> import discreet as dc
    >>> words = dc.local.Sketch(epsilon=2)
    >>> words.loss().epsilon, len(words.perturb(["yes", "no"]))
    (Fraction(2, 1), 2)
    """

    domain: HashedDomain
    epsilon: Fraction
    scheme: SketchScheme

    @property
    def configuration(self) -> str:
        """The configuration, by which reports and tallies are known again."""
        return canonical_json({"domain": str(self.domain), "epsilon": str(self.epsilon), "name": self.scheme.name})

    def loss(self) -> Loss:
        """Return what one report tells about the value of the person who sent it.

        Claim: whatever two values a person may have, a report is at most exp(epsilon) times likelier under one than
            under the other.
        Proof: the scheme's `perturb` claims it with odds_for(epsilon) in place of exp(epsilon), which is not more.
        Needs: odds_for, SketchScheme.perturb.
        Checked by: test_the_worst_log_ratio_of_a_sketch_is_the_claimed_epsilon
        Seal: 77cec8762fe1
        """
        return Loss(self.epsilon)

    def perturb(self, values: Any) -> Reports:
        """Return a randomized report for each person's value.

        Claim: a report depends on its own person's value, through the scheme's law, and on nothing else.
        Proof: a value's marks are public functions of it; the rest is the scheme's.
        Needs: SketchScheme.perturb.
        Checked by: test_sketched_reports_have_the_law_that_is_claimed
        Seal: 65dbf8ec106c
        """
        return Reports(self.configuration, self.scheme.perturb(self.domain.hash_values(values, "values")))

    def read(self, received: ReceivedMessages) -> Reports:
        """Read what people sent: a file of reports, or a list of messages."""
        reports = read_reports(received, self.configuration, self.scheme.dtype)
        self.scheme.check(reports.array)
        return reports

    def counts(self, reports: Reports) -> np.ndarray:
        """Return what an accumulator adds up."""
        check_configuration(reports, self.configuration, self.scheme.dtype)
        return self.scheme.counts(reports.array)

    def aggregate_counts(self, reports: Reports | Aggregator) -> np.ndarray:
        """Return what reports add up to, or what a tally has added up."""
        if not isinstance(reports, Aggregator):
            counts = self.counts(reports)
        elif reports.oracle.configuration == self.configuration:
            counts = reports.counts
        else:
            raise ValueError(
                f"tally: of another configuration, {reports.oracle.configuration}, than {self.configuration}"
            )
        if not counts[-self.scheme.function_count :].any():
            raise ValueError("reports must not be empty")
        return counts

    def shares(self, reports: Reports | Aggregator, values: Any, *, confidence: Number = 0.95) -> LocalEstimate:
        """Return the share of people with each of the values, whoever thought of them, and margins.

        Unbiased over the public functions, too: those who are sorted into the same place by chance are taken off.
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
        # People with one value are sorted together, so what they add by chance does not average out over them.
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
        return f"<{self.scheme.name} for {self.domain}, epsilon {self.epsilon}>"

    def __str__(self) -> str:
        return self.configuration


def _collision_variance(people: np.ndarray, bits: int) -> float:
    """Return the variance of how many of those with another value are sorted into a value's places, as a share."""
    weights = people / people.sum()
    return float((weights**2).sum()) / (1 << bits)
