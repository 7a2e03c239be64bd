"""Generalised randomized response: the value itself, or any other."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.kernel.exact import Number
from discreet.kernel.noise.chance import dice, tosses
from discreet.kernel.noise.keystream import stream
from discreet.local.domain import Domain
from discreet.local.oracle import Oracle, priced
from discreet.local.schemes.supporting import shares_of, smallest


def GRR(domain: int | Sequence[Any], epsilon: Number) -> Oracle:  # noqa: N802 - a protocol's name
    """Return generalised randomized response (Warner 1965; Kairouz, Bonawitz, Ramage 2016): best for few values.

    A person tells the truth, or by chance any value of the domain.

    >>> import discreet as dc
    >>> survey = dc.local.GRR(["yes", "no"], epsilon=1)
    >>> shares, margins = survey.estimate(survey.perturb(["yes"] * 300 + ["no"] * 700))
    >>> bool(abs(shares[0] - 0.3) < 4 * margins[0])
    True
    """
    price, odds = priced(epsilon)
    values = Domain.of(domain)
    return Oracle(values, price, Direct(values.size, odds))


@dataclass(frozen=True)
class Direct:
    """The truth with probability `truth`, else any of `size` values alike."""

    size: int
    odds: Fraction

    name = "grr"
    most_counted = 1

    @property
    def truth(self) -> Fraction:
        """How often the report is not left to chance."""
        return (self.odds - 1) / (self.odds - 1 + self.size)

    @property
    def dtype(self) -> np.dtype:
        """A report is a place."""
        return smallest(self.size)

    def perturb(self, places: np.ndarray) -> np.ndarray:
        """Return a report for each place.

        Claim: a person's own place is reported with odds times the probability of any other, exactly.
        Proof: any place has (1-truth)/size from the dice, the own place truth more; and
            truth = (odds-1)·(1-truth)/size by its definition.
        Needs: tosses, dice.
        Checked by: test_reports_have_the_law_that_is_claimed,
            test_the_worst_log_ratio_of_every_law_is_the_claimed_epsilon
        Seal: 9162e46905dc
        """
        source = stream()
        told = tosses(source, len(places), self.truth)
        any_ = dice(source, len(places), self.size)
        return np.where(told, places, any_).astype(self.dtype)

    def check(self, reports: np.ndarray) -> None:
        """Stop at a place that is not in the domain."""
        if len(reports) and reports.max() >= self.size:
            raise ValueError(f"reports: {int(reports.max())} is outside the domain, 0 to {self.size - 1}")

    def counts(self, reports: np.ndarray) -> np.ndarray:
        """Return how many reports name each place."""
        return np.bincount(reports, minlength=self.size)

    def estimate(self, counts: np.ndarray, people: int, spreads: float) -> tuple[np.ndarray, np.ndarray]:
        """Return shares and margins."""
        other = (1 - self.truth) / self.size
        return shares_of(counts, people, (other + self.truth, other), spreads)

    def probability(self, report: Any, place: int) -> Fraction:
        """Return how likely a report is."""
        other = (1 - self.truth) / self.size
        if not 0 <= int(report) < self.size:
            return Fraction(0)
        return other + self.truth if int(report) == place else other

    def outcomes(self) -> range:
        """Return every place."""
        return range(self.size)
