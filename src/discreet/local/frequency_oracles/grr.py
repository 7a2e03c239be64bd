"""Generalised randomized response (direct encoding): the value itself, or any other."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.kernel.noise.bernoulli import bernoulli_bits, uniform_integers
from discreet.kernel.noise.keystream import thread_keystream
from discreet.kernel.numbers import Number
from discreet.local.domain import Domain
from discreet.local.estimation import debias_shares, smallest_uint
from discreet.local.oracle import Oracle, parse_epsilon


def GRR(domain: int | Sequence[Any], epsilon: Number) -> Oracle:  # noqa: N802 - a protocol's name
    """Return generalised randomized response (Warner 1965; Kairouz, Bonawitz, Ramage 2016): best for few values.

    A person tells the truth, or by chance any value of the domain.

    >>> import discreet as dc
    >>> survey = dc.local.GRR(["yes", "no"], epsilon=1)
    >>> shares, margins = survey.estimate(survey.perturb(["yes"] * 300 + ["no"] * 700))
    >>> bool(abs(shares[0] - 0.3) < 4 * margins[0])
    True
    """
    exact_epsilon, odds = parse_epsilon(epsilon)
    values = Domain.from_values(domain)
    return Oracle(values, exact_epsilon, GRRScheme(values.size, odds))


@dataclass(frozen=True)
class GRRScheme:
    """The truth with probability `truth`, else any of `size` values alike."""

    size: int
    odds: Fraction

    name = "grr"
    max_count_per_report = 1

    @property
    def truth(self) -> Fraction:
        """How often the report is not left to chance."""
        return (self.odds - 1) / (self.odds - 1 + self.size)

    @property
    def dtype(self) -> np.dtype:
        """A report is a place."""
        return smallest_uint(self.size)

    def perturb(self, codes: np.ndarray) -> np.ndarray:
        """Return a report for each place.

        Claim: a person's own place is reported with odds times the probability of any other, exactly.
        Proof: any place has (1-truth)/size from the dice, the own place truth more; and
            truth = (odds-1)·(1-truth)/size by its definition.
        Needs: tosses, dice.
        Checked by: test_reports_have_the_law_that_is_claimed,
            test_the_worst_log_ratio_of_every_law_is_the_claimed_epsilon
        Seal: ed476593069f
        """
        source = thread_keystream()
        is_truthful = bernoulli_bits(source, len(codes), self.truth)
        uniform_draw = uniform_integers(source, len(codes), self.size)
        return np.where(is_truthful, codes, uniform_draw).astype(self.dtype)

    def check(self, reports: np.ndarray) -> None:
        """Stop at a place that is not in the domain."""
        if len(reports) and reports.max() >= self.size:
            raise ValueError(f"reports: {int(reports.max())} is outside the domain, 0 to {self.size - 1}")

    def counts(self, reports: np.ndarray) -> np.ndarray:
        """Return how many reports name each place."""
        return np.bincount(reports, minlength=self.size)

    def estimate(self, counts: np.ndarray, people: int, z: float) -> tuple[np.ndarray, np.ndarray]:
        """Return shares and margins."""
        other = (1 - self.truth) / self.size
        return debias_shares(counts, people, (other + self.truth, other), z)

    def probability(self, report: Any, code: int) -> Fraction:
        """Return how likely a report is."""
        other = (1 - self.truth) / self.size
        if not 0 <= int(report) < self.size:
            return Fraction(0)
        return other + self.truth if int(report) == code else other

    def outcomes(self) -> range:
        """Return every place."""
        return range(self.size)
