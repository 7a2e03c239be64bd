"""Shares of values of which no list exists: texts, or numbers of 64 bits. Which to look for is decided afterwards."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np

from discreet.kernel.event import canonical
from discreet.kernel.exact import Number, whole
from discreet.kernel.loss import Loss
from discreet.kernel.normal import deviations
from discreet.local.estimate import Estimate
from discreet.local.marks import Anything, sorted_into
from discreet.local.oracle import priced
from discreet.local.reports import Received, Reports, check_made_by, read_reports
from discreet.local.schemes.parities import WIDEST, best_checks
from discreet.local.schemes.sketched import Sketched
from discreet.local.schemes.supporting import shares_of
from discreet.local.tally import Tally

_ROWS = 1 << 12
_FEWEST = 8  # bits of a place: among fewer places values meet so often that margins would not hold


class Marked(Protocol):
    """What values can be, and the marks by which they are known, a column for each level of the scheme."""

    def marks(self, values: Any, name: str) -> np.ndarray:
        """Return the marks of each value."""


def Sketch(epsilon: Number, *, rows: int = 16, bits: int = 16) -> "OpenOracle":  # noqa: N802 - a protocol's name
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
    price, odds = priced(epsilon)
    many, wide = whole(rows, "rows", 1), width_of(bits)
    if many > _ROWS:
        raise ValueError(f"rows must be at most {_ROWS}, not {many}")
    return OpenOracle(Anything(), price, Sketched((1,), many, wide, best_checks(odds, wide), odds))


def width_of(bits: int) -> int:
    """Read how many bits a place has."""
    wide = whole(bits, "bits", _FEWEST)
    if wide > WIDEST:
        raise ValueError(f"bits must be at most {WIDEST}, not {wide}; take more rows")
    return wide


@dataclass(frozen=True, repr=False)
class OpenOracle:
    """What `Sketch` returns: `perturb` where the person is, `shares` of chosen values where reports arrive.

    >>> import discreet as dc
    >>> words = dc.local.Sketch(epsilon=2)
    >>> words.loss().epsilon, len(words.perturb(["yes", "no"]))
    (Fraction(2, 1), 2)
    """

    domain: Marked
    epsilon: Fraction
    scheme: Sketched

    @property
    def made_by(self) -> str:
        """The configuration, by which reports and tallies are known again."""
        return canonical({"domain": str(self.domain), "epsilon": str(self.epsilon), "name": self.scheme.name})

    def loss(self) -> Loss:
        """Return what one report tells about the value of the person who sent it.

        Claim: whatever two values a person may have, a report is at most exp(epsilon) times likelier under one than
            under the other.
        Proof: the scheme's `perturb` claims it with odds_for(epsilon) in place of exp(epsilon), which is not more.
        Needs: odds_for, Sketched.perturb.
        Checked by: test_the_worst_log_ratio_of_a_sketch_is_the_claimed_epsilon
        Seal: 77cec8762fe1
        """
        return Loss(self.epsilon)

    def perturb(self, values: Any) -> Reports:
        """Return a randomized report for each person's value.

        Claim: a report depends on its own person's value, through the scheme's law, and on nothing else.
        Proof: a value's marks are public functions of it; the rest is the scheme's.
        Needs: Sketched.perturb.
        Checked by: test_sketched_reports_have_the_law_that_is_claimed
        Seal: f70a7a85b1ef
        """
        return Reports(self.made_by, self.scheme.perturb(self.domain.marks(values, "values")))

    def read(self, received: Received) -> Reports:
        """Read what people sent: a file of reports, or a list of messages."""
        reports = read_reports(received, self.made_by, self.scheme.dtype)
        self.scheme.check(reports.array)
        return reports

    def counts(self, reports: Reports) -> np.ndarray:
        """Return what an accumulator adds up."""
        check_made_by(reports, self.made_by, self.scheme.dtype)
        return self.scheme.counts(reports.array)

    def totals(self, reports: Reports | Tally) -> np.ndarray:
        """Return what reports add up to, or what a tally has added up."""
        if not isinstance(reports, Tally):
            counts = self.counts(reports)
        elif reports.oracle.made_by == self.made_by:
            counts = reports.counts
        else:
            raise ValueError(f"tally: of another configuration, {reports.oracle.made_by}, than {self.made_by}")
        if not counts[-self.scheme.functions :].any():
            raise ValueError("reports must not be empty")
        return counts

    def shares(self, reports: Reports | Tally, values: Any, *, confidence: Number = 0.95) -> Estimate:
        """Return the share of people with each of the values, whoever thought of them, and margins.

        Unbiased over the public functions, too: those who are sorted into the same place by chance are taken off.
        """
        spreads = deviations(confidence)
        level = len(self.scheme.weights) - 1
        marks = self.domain.marks(values, "values")[:, level]
        supports, people = self.scheme.supports(self.totals(reports), level)
        if not people.any():
            raise ValueError("reports: nobody reported a whole value")
        rows = range(level * self.scheme.rows, (level + 1) * self.scheme.rows)
        supported = sum(
            table[sorted_into(marks, row, self.scheme.bits)] for row, table in zip(rows, supports, strict=True)
        )
        shares, margins = shares_of(supported, int(people.sum()), self.scheme.rates, spreads)
        # People with one value are sorted together, so what they add by chance does not average out over them.
        met = np.clip(self.scheme.repeats(supports, people) - shares**2, 0, 1) * _meeting(people, self.scheme.bits)
        return Estimate(shares, np.hypot(margins, spreads * np.sqrt(met)))

    def pmf(self, report: Any, value: Any) -> Fraction:
        """Return the exact probability of one report, given the person's value."""
        return self.scheme.probability(report, self.domain.marks([value], "value")[0])

    def law(self, value: Any) -> Mapping[Any, Fraction]:
        """Return the exact probability of every report, given the person's value."""
        marks = self.domain.marks([value], "value")[0]
        return {report: self.scheme.probability(report, marks) for report in self.scheme.outcomes()}

    def __repr__(self) -> str:
        return f"<{self.scheme.name} for {self.domain}, epsilon {self.epsilon}>"

    def __str__(self) -> str:
        return self.made_by


def _meeting(people: np.ndarray, bits: int) -> float:
    """Return the variance of how many of those with another value are sorted into a value's places, as a share."""
    weights = people / people.sum()
    return float((weights**2).sum()) / (1 << bits)
