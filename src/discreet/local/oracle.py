"""A randomizer and its reader: how one person's answer is reported, and what all reports say together.

The parts that differ from one protocol to another are its scheme, a small record in `schemes`; this is what all share.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, Protocol

import numpy as np

from discreet.kernel.event import canonical_json
from discreet.kernel.loss import Loss
from discreet.kernel.noise.tail_bounds import z_score
from discreet.kernel.numbers import Number, as_positive, odds_for
from discreet.local.domain import Domain, Interval
from discreet.local.estimation import LocalEstimate, project_onto_simplex
from discreet.local.reports import ReceivedMessages, Reports, check_configuration, read_reports

MIN_EPSILON, MAX_EPSILON = Fraction(1, 10**9), 64  # an epsilon below tells nothing, and one beyond hides nothing
Consistency = Literal["none", "simplex"]


class Scheme(Protocol):
    """One protocol, on places 0, 1, … of a domain."""

    @property
    def name(self) -> str:
        """What the protocol is called, with every setting that a reader must know."""

    @property
    def dtype(self) -> np.dtype:
        """One report, as it is sent."""

    @property
    def max_count_per_report(self) -> int:
        """The most that one report adds to a count."""

    def perturb(self, codes: np.ndarray) -> np.ndarray:
        """Return a report for each person's place."""

    def check(self, reports: np.ndarray) -> None:
        """ValueError if nobody could have sent one of these."""

    def counts(self, reports: np.ndarray) -> np.ndarray:
        """Return what is added up over reports, as integers; always of the same length."""

    def estimate(self, counts: np.ndarray, people: int, z: float) -> tuple[np.ndarray, np.ndarray]:
        """Return unbiased estimates, and margins of so many standard deviations."""

    def probability(self, report: Any, code: int) -> Fraction:
        """Return the exact probability of a report, given the place."""

    def outcomes(self) -> Iterable[Any]:
        """Return every report that there is; ValueError if they are too many to list."""


@dataclass(frozen=True, repr=False)
class Oracle:
    """What `GRR`, `OUE` and the others return: `perturb` where the person is, `estimate` where reports arrive.

    >>> import discreet as dc
    >>> survey = dc.local.GRR(["yes", "no"], epsilon=1)
    >>> sent = list(survey.perturb(["yes", "no", "no"]).messages())
    >>> len(survey.read(sent)), survey.loss().epsilon
    (3, Fraction(1, 1))
    """

    domain: Domain | Interval
    epsilon: Fraction
    scheme: Scheme

    @property
    def configuration(self) -> str:
        """The configuration, by which reports and tallies are known again."""
        return canonical_json({"domain": str(self.domain), "epsilon": str(self.epsilon), "name": self.scheme.name})

    def loss(self) -> Loss:
        """Return what one report tells about the answer of the person who sent it; of RAPPOR, all that devices send.

        Claim: whatever two answers a person may have, a report is at most exp(epsilon) times likelier under one
            than under the other.
        Proof: each scheme's `perturb` claims it with odds_for(epsilon) in place of exp(epsilon), which is not more.
        Needs: odds_for, the scheme's perturb.
        Checked by: test_the_worst_log_ratio_of_every_law_is_the_claimed_epsilon
        Seal: 77cec8762fe1
        """
        return Loss(self.epsilon)

    def perturb(self, values: Any) -> Reports:
        """Return a randomized report for each person's value.

        Claim: a report depends on its own person's value, through the scheme's law, and on nothing else.
        Proof: the value becomes its place in the public domain; the rest is the scheme's.
        Needs: the scheme's perturb.
        Checked by: test_reports_have_the_law_that_is_claimed
        Seal: 5fedd25cc6eb
        """
        return Reports(self.configuration, self.scheme.perturb(self.domain.encode(values, "values")))

    def read(self, received: ReceivedMessages) -> Reports:
        """Read what people sent: a file of reports, or a list of messages."""
        reports = read_reports(received, self.configuration, self.scheme.dtype)
        self.scheme.check(reports.array)
        return reports

    def counts(self, reports: Reports) -> np.ndarray:
        """Return what an accumulator adds up."""
        check_configuration(reports, self.configuration, self.scheme.dtype)
        return self.scheme.counts(reports.array)

    def estimate(
        self, reports: Reports | ReceivedMessages, *, confidence: Number = 0.95, consistency: Consistency = "none"
    ) -> LocalEstimate:
        """Return an unbiased estimate for each value, or with "simplex" the nearest distribution, and margins."""
        parsed = reports if isinstance(reports, Reports) else self.read(reports)
        return self.estimate_counts(self.counts(parsed), len(parsed), confidence, consistency)

    def estimate_counts(
        self, counts: np.ndarray, people: int, confidence: Number, consistency: Consistency
    ) -> LocalEstimate:
        """Return the estimate from what an accumulator has added up."""
        if not people:
            raise ValueError("reports must not be empty")
        estimates, margins = self.domain.rescale_estimate(*self.scheme.estimate(counts, people, z_score(confidence)))
        if consistency == "simplex" and isinstance(estimates, np.ndarray):
            estimates = project_onto_simplex(estimates)
        elif consistency != "none":
            raise ValueError('consistency must be "none", or for shares of a list of values "simplex"')
        return LocalEstimate(estimates, margins, self.domain.names)

    def pmf(self, report: Any, value: Any) -> Fraction:
        """Return the exact probability of one report, as np.asarray(reports) has it, given the person's value."""
        code = int(self.domain.encode([value], "value")[0])
        try:
            return self.scheme.probability(report, code)
        except (TypeError, ValueError) as error:
            raise type(error)(f"{error}; a report is one of np.asarray(reports), or of law") from None

    def distribution(self, value: Any) -> Mapping[Any, Fraction]:
        """Return the exact probability of every report, given the person's value."""
        code = int(self.domain.encode([value], "value")[0])
        return {report: self.scheme.probability(report, code) for report in self.scheme.outcomes()}

    def __repr__(self) -> str:
        return f"<{self.scheme.name} for {self.domain.description}, epsilon {self.epsilon}>"

    def __str__(self) -> str:
        return self.configuration


def parse_epsilon(epsilon: Number) -> tuple[Fraction, Fraction]:
    """Read an epsilon; return it and the odds that it allows."""
    exact_epsilon = as_positive(epsilon, "epsilon")
    if exact_epsilon < MIN_EPSILON:
        raise ValueError(f"epsilon: {float(exact_epsilon):g} tells nothing; take at least {float(MIN_EPSILON):g}")
    if exact_epsilon > MAX_EPSILON:
        raise ValueError(f"epsilon: {float(exact_epsilon):g} hides nothing; take at most {MAX_EPSILON}")
    return exact_epsilon, odds_for(exact_epsilon)
