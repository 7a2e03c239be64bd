"""Generalised randomised response (direct encoding): the report is the true value or a uniform one."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.kernel.noise.keystream import thread_keystream
from discreet.kernel.numbers import Number
from discreet.local.domain import Domain
from discreet.local.estimation import debias_shares, smallest_uint
from discreet.local.oracle import Oracle, parse_epsilon
from discreet.local.random_variables import bernoulli_bits, uniform_integers


def GRR(domain: int | Sequence[Any], epsilon: Number) -> Oracle:  # noqa: N802 - a protocol's name
    """Return generalised randomised response (Warner 1965; Kairouz, Bonawitz, Ramage 2016): best for few values.

    A person reports the true value with some probability, and otherwise a uniform value of the domain.

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
    """The true value with probability `truth`, otherwise one of `size` values uniformly."""

    size: int
    odds: Fraction

    name = "grr"
    max_count_per_report = 1

    @property
    def truth(self) -> Fraction:
        """The probability of a truthful report."""
        return (self.odds - 1) / (self.odds - 1 + self.size)

    @property
    def dtype(self) -> np.dtype:
        """A report is a code."""
        return smallest_uint(self.size)

    def perturb(self, codes: np.ndarray) -> np.ndarray:
        """Return a randomised report for each code.

        Claim: a person's own code is reported with exactly odds times the probability of any other.
        Proof: the uniform draw gives any code the probability (1-truth)/size, and the own code has truth more;
            truth = (odds-1)·(1-truth)/size by its definition.
        Needs: bernoulli_bits, uniform_integers.
        Checked by: test_reports_have_the_claimed_distribution,
            test_the_worst_log_ratio_of_every_oracle_is_the_claimed_epsilon
        """
        source = thread_keystream()
        is_truthful = bernoulli_bits(source, len(codes), self.truth)
        uniform_draw = uniform_integers(source, len(codes), self.size)
        return np.where(is_truthful, codes, uniform_draw).astype(self.dtype)

    def check(self, reports: np.ndarray) -> None:
        """Raise ValueError if a code is not in the domain."""
        if len(reports) and reports.max() >= self.size:
            raise ValueError(f"reports: {int(reports.max())} is outside the domain 0 to {self.size - 1}")

    def counts(self, reports: np.ndarray) -> np.ndarray:
        """Return the number of reports of each code."""
        return np.bincount(reports, minlength=self.size)

    def estimate(self, counts: np.ndarray, people: int, z: float) -> tuple[np.ndarray, np.ndarray]:
        """Return shares and margins."""
        other = (1 - self.truth) / self.size
        return debias_shares(counts, people, (other + self.truth, other), z)

    def probability(self, report: Any, code: int) -> Fraction:
        """Return the exact probability of a report, given the code."""
        other = (1 - self.truth) / self.size
        if not 0 <= int(report) < self.size:
            return Fraction(0)
        return other + self.truth if int(report) == code else other

    def outcomes(self) -> range:
        """Return every code."""
        return range(self.size)
