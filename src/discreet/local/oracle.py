"""Local protocols: randomised reports of single persons, and estimates from all reports.

Each protocol has a scheme, in `frequency_oracles` or `mean_estimation`; this module has what they share.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, Protocol

import numpy as np

from discreet.kernel.event import canonical_json
from discreet.kernel.loss import Loss
from discreet.kernel.numbers import Number, as_positive, exp_bounds
from discreet.local.domain import Domain, Interval
from discreet.local.estimation import LocalEstimate, project_onto_simplex, z_score
from discreet.local.reports import ReceivedMessages, Reports, check_configuration, read_reports

MIN_EPSILON, MAX_EPSILON = Fraction(1, 10**9), 64
Consistency = Literal["none", "simplex"]


class Scheme(Protocol):
    """A protocol on the codes 0, 1, … of a domain."""

    @property
    def name(self) -> str:
        """The name of the protocol, with every parameter that is needed to read its reports."""

    @property
    def dtype(self) -> np.dtype:
        """The type of one report."""

    @property
    def max_count_per_report(self) -> int:
        """The maximum that one report adds to a count."""

    def perturb(self, codes: np.ndarray) -> np.ndarray:
        """Return a randomised report for each person's code."""

    def check(self, reports: np.ndarray) -> None:
        """Raise ValueError if a report is impossible."""

    def counts(self, reports: np.ndarray) -> np.ndarray:
        """Return the integer counts to be summed over reports, always of the same length."""

    def estimate(self, counts: np.ndarray, people: int, z: float) -> tuple[np.ndarray, np.ndarray]:
        """Return unbiased estimates, and margins of z standard deviations."""

    def probability(self, report: Any, code: int) -> Fraction:
        """Return the exact probability of a report, given the code."""

    def outcomes(self) -> Iterable[Any]:
        """Return every possible report; ValueError if there are too many to list."""


class ReportReader:
    """What identifies the reports of a protocol, and how they are read and counted."""

    domain: Any
    epsilon: Fraction
    scheme: Any

    @property
    def configuration(self) -> str:
        """The text that identifies the protocol and its parameters, in reports and aggregators."""
        return canonical_json({"domain": str(self.domain), "epsilon": str(self.epsilon), "name": self.scheme.name})

    def read(self, received: ReceivedMessages) -> Reports:
        """Parse received messages: the bytes of many reports, or a list of messages."""
        reports = read_reports(received, self.configuration, self.scheme.dtype)
        self.scheme.check(reports.array)
        return reports

    def counts(self, reports: Reports) -> np.ndarray:
        """Return the counts that an aggregator sums."""
        check_configuration(reports, self.configuration, self.scheme.dtype)
        counts: np.ndarray = self.scheme.counts(reports.array)
        return counts

    def __str__(self) -> str:
        return self.configuration


@dataclass(frozen=True, repr=False)
class Oracle(ReportReader):
    """A local protocol, as returned by `GRR`, `OUE` and others: devices call `perturb`, the server calls `estimate`.

    >>> import discreet as dc
    >>> survey = dc.local.GRR(["yes", "no"], epsilon=1)
    >>> sent = list(survey.perturb(["yes", "no", "no"]).messages())
    >>> len(survey.read(sent)), survey.loss().epsilon
    (3, Fraction(1, 1))
    """

    domain: Domain | Interval
    epsilon: Fraction
    scheme: Scheme
    delta: Fraction = Fraction(0)  # of a scheme with Gaussian noise; all others are pure

    def loss(self) -> Loss:
        """Return the privacy loss of one report; for RAPPOR, of all reports of a device.

        Claim: for any two values that a person may have, a report is at most exp(epsilon) times likelier under one
            than under the other; with a delta, it is (epsilon, delta)-DP.
        Proof: each scheme's `perturb` claims it with odds_for(epsilon) in place of exp(epsilon), which is not more; the
            one scheme that is made with a delta claims it for that delta.
        Needs: odds_for, the scheme's perturb.
        Checked by: test_the_worst_log_ratio_of_every_oracle_is_the_claimed_epsilon,
            test_gaussian_noise_at_home_is_private_at_its_delta_and_hardly_more
        """
        return Loss(self.epsilon, delta=self.delta)

    def perturb(self, values: Any) -> Reports:
        """Return a randomised report for each person's value.

        Claim: a report depends only on its person's value, through the distribution of the scheme.
        Proof: the value is encoded as its index in the public domain, and the scheme randomises the code.
        Needs: the scheme's perturb.
        Checked by: test_reports_have_the_claimed_distribution
        """
        return Reports(self.configuration, self.scheme.perturb(self.domain.encode(values, "values")))

    def estimate(
        self, reports: Reports | ReceivedMessages, *, confidence: Number = 0.95, consistency: Consistency = "none"
    ) -> LocalEstimate:
        """Return unbiased estimates with margins; consistency="simplex" projects shares onto the simplex."""
        parsed = reports if isinstance(reports, Reports) else self.read(reports)
        return self.estimate_counts(self.counts(parsed), len(parsed), confidence, consistency)

    def estimate_counts(
        self, counts: np.ndarray, people: int, confidence: Number, consistency: Consistency
    ) -> LocalEstimate:
        """Return the estimate from the counts of an aggregator."""
        if not people:
            raise ValueError("reports must not be empty")
        estimates, margins = self.domain.rescale_estimate(*self.scheme.estimate(counts, people, z_score(confidence)))
        if consistency == "simplex" and isinstance(estimates, np.ndarray):
            estimates = project_onto_simplex(estimates)
        elif consistency != "none":
            raise ValueError('consistency must be "none", or "simplex" for the shares of a list of values')
        return LocalEstimate(estimates, margins, self.domain.names)

    def pmf(self, report: Any, value: Any) -> Fraction:
        """Return the exact probability of one report, as np.asarray(reports) has it, given the person's value."""
        code = int(self.domain.encode([value], "value")[0])
        try:
            return self.scheme.probability(report, code)
        except (TypeError, ValueError) as error:
            hint = "Pass an element of np.asarray(reports), or a key of distribution(value)."
            raise type(error)(f"{error}. {hint}") from None

    def distribution(self, value: Any) -> Mapping[Any, Fraction]:
        """Return the exact probability of every report, given the person's value."""
        code = int(self.domain.encode([value], "value")[0])
        return {report: self.scheme.probability(report, code) for report in self.scheme.outcomes()}

    def __repr__(self) -> str:
        return f"<{self.scheme.name} for {self.domain.description}, epsilon {float(self.epsilon):g}>"


def parse_epsilon(epsilon: Number) -> tuple[Fraction, Fraction]:
    """Return epsilon as an exact fraction, and the odds that it allows."""
    exact_epsilon = as_positive(epsilon, "epsilon")
    if exact_epsilon < MIN_EPSILON:
        raise ValueError(f"epsilon must be at least {float(MIN_EPSILON):g}, not {float(exact_epsilon):g}")
    if exact_epsilon > MAX_EPSILON:
        raise ValueError(f"epsilon must be at most {MAX_EPSILON}, not {float(exact_epsilon):g}")
    return exact_epsilon, odds_for(exact_epsilon)


def odds_for(epsilon: Fraction) -> Fraction:
    """Return exp(epsilon) rounded down to a multiple of 2^-64: the maximum likelihood ratio of a report.

    Claim: the result is at most exp(epsilon), and more than exp(epsilon) - 2^-62.
    Proof: exp(epsilon) = 1/exp(-epsilon), and exp_bounds gives an upper bound of exp(-epsilon)·2^bits with an error
        of at most 2; with bits >= 3·epsilon + 128 its inverse is off by less than 2·exp(2·epsilon)/2^bits < 2^-63.
        Rounding down to 2^-64 subtracts less than one more unit.
    Needs: exp_bounds.
    Checked by: test_odds_are_just_below_the_exponential,
        test_odds_use_the_more_private_side_of_the_enclosure
    """
    bits = 128 + 3 * math.ceil(epsilon)
    return Fraction((1 << (bits + 64)) // exp_bounds(epsilon, bits)[1], 1 << 64)
