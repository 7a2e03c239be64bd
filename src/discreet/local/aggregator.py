"""Aggregation of reports on the server, as they arrive; aggregates of several servers can be merged."""

from typing import TYPE_CHECKING

import numpy as np

from discreet.kernel.numbers import Number
from discreet.local.estimation import LocalEstimate
from discreet.local.oracle import Consistency, Oracle
from discreet.local.reports import ReceivedMessages, Reports, check_header, header

if TYPE_CHECKING:
    from discreet.local.sketch_oracle import SketchOracle

_STORED_INTEGER = np.dtype("<i8")
_MAX_REPORTS = 1 << 31  # so that every sum fits in 64 bits


class Aggregator:
    """Sums the counts of reports of one configuration; it stores the sums and the number of reports, but no report.

    >>> import discreet as dc
    >>> survey = dc.local.GRR(["yes", "no"], epsilon=1)
    >>> north, south = dc.local.Aggregator(survey), dc.local.Aggregator(survey)
    >>> north.add(survey.perturb(["yes"] * 10))
    >>> south.add(survey.perturb(["no"] * 20))
    >>> north.merge(south)
    >>> north.people
    30
    """

    def __init__(self, oracle: "Oracle | SketchOracle") -> None:
        if not hasattr(oracle, "scheme"):
            raise TypeError(f"oracle must be an oracle of discreet.local, such as GRR, not {type(oracle).__name__}")
        self.oracle = oracle
        self.people = 0
        self.counts = oracle.scheme.counts(np.zeros(0, oracle.scheme.dtype)).astype(np.int64)

    def add(self, reports: Reports | ReceivedMessages) -> None:
        """Add reports, or messages as received; if one of them is invalid, none is added."""
        parsed = reports if isinstance(reports, Reports) else self.oracle.read(reports)
        _check_report_count(self.people + len(parsed))
        self.counts = self.counts + self.oracle.counts(parsed)
        self.people += len(parsed)

    def merge(self, other: "Aggregator") -> None:
        """Add the aggregate of another server."""
        if not isinstance(other, Aggregator):
            raise TypeError(
                f"other must be an Aggregator, not {type(other).__name__}. Aggregator.read parses stored bytes."
            )
        if other is self:
            raise ValueError("other: an aggregator cannot be merged with itself, as every report would count twice")
        if other.oracle.configuration != self.oracle.configuration:
            raise ValueError(
                f"other: its configuration is {other.oracle.configuration}, not {self.oracle.configuration}"
            )
        _check_report_count(self.people + other.people)
        self.counts = self.counts + other.counts
        self.people += other.people

    def estimate(self, *, confidence: Number = 0.95, consistency: Consistency = "none") -> LocalEstimate:
        """Return the oracle's estimate from all reports that were added."""
        if not isinstance(self.oracle, Oracle):
            raise TypeError("an open domain has no estimate. Pass the aggregator to the oracle's shares or find.")
        return self.oracle.estimate_counts(self.counts, self.people, confidence, consistency)

    def __repr__(self) -> str:
        return f"<Aggregator of {self.people:,} people: {self.oracle!r}>"

    def __bytes__(self) -> bytes:
        return (
            header(self._configuration) + np.concatenate(([self.people], self.counts)).astype(_STORED_INTEGER).tobytes()
        )

    @classmethod
    def read(cls, oracle: "Oracle | SketchOracle", stored: bytes) -> "Aggregator":
        """Parse an aggregator stored as bytes; ValueError if version or configuration differ or bytes are missing."""
        aggregator = cls(oracle)
        prefix = header(aggregator._configuration)
        check_header(stored[: len(prefix)], aggregator._configuration, "stored")
        numbers = stored[len(prefix) :]
        size = (1 + len(aggregator.counts)) * _STORED_INTEGER.itemsize
        if len(numbers) != size:
            raise ValueError(f"stored: the aggregator has {len(numbers)} bytes of counts instead of {size}")
        people, *_ = stored_numbers = np.frombuffer(numbers, _STORED_INTEGER).astype(np.int64)
        max_count = float(people) * oracle.scheme.max_count_per_report
        if not 0 <= people <= _MAX_REPORTS or (np.abs(stored_numbers[1:].astype(np.float64)) > max_count).any():
            raise ValueError("stored: the counts of the aggregator are impossible for its number of people")
        aggregator.people, aggregator.counts = int(people), stored_numbers[1:]
        return aggregator

    @property
    def _configuration(self) -> str:
        return f"aggregator of {self.oracle.configuration}"


def _check_report_count(people: int) -> None:
    if people > _MAX_REPORTS:
        raise ValueError(f"reports: an aggregator holds at most {_MAX_REPORTS:,} reports. Start another one.")
