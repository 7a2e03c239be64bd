"""The server: aggregates reports as they arrive; aggregates of several servers can be merged."""

from typing import Any, Protocol

import numpy as np

from discreet.kernel.numbers import Number
from discreet.local.estimation import LocalEstimate
from discreet.local.oracle import Consistency, Oracle
from discreet.local.reports import ReceivedMessages, Reports, check_header, header

_STORED_INTEGER = np.dtype("<i8")
_MAX_REPORTS = 1 << 31  # reports; up to it every sum fits in 64 bits


class AggregatableOracle(Protocol):
    """An oracle as far as it is needed to add up its reports: those of lists, sketches and heavy hitters alike."""

    @property
    def configuration(self) -> str:
        """The configuration."""

    @property
    def scheme(self) -> Any:
        """How reports are read."""

    def read(self, received: ReceivedMessages) -> Reports:
        """Read what people sent."""

    def counts(self, reports: Reports) -> np.ndarray:
        """Return what is added up."""


class Aggregator:
    """Adds up reports of one configuration; keeps their sum and their number, and no report.

    >>> import discreet as dc
    >>> survey = dc.local.GRR(["yes", "no"], epsilon=1)
    >>> north, south = dc.local.Aggregator(survey), dc.local.Aggregator(survey)
    >>> north.add(survey.perturb(["yes"] * 10))
    >>> south.add(survey.perturb(["no"] * 20))
    >>> north.merge(south)
    >>> north.people
    30
    """

    def __init__(self, oracle: AggregatableOracle) -> None:
        if not hasattr(oracle, "scheme"):
            raise TypeError(f"oracle must be one of discreet.local, such as GRR, not {type(oracle).__name__}")
        self.oracle = oracle
        self.people = 0
        self.counts = oracle.scheme.counts(np.zeros(0, oracle.scheme.dtype)).astype(np.int64)

    def add(self, reports: Reports | ReceivedMessages) -> None:
        """Add reports, or messages as they were received; if one of them is wrong, none is added."""
        parsed = reports if isinstance(reports, Reports) else self.oracle.read(reports)
        _check_report_count(self.people + len(parsed))
        self.counts = self.counts + self.oracle.counts(parsed)
        self.people += len(parsed)

    def merge(self, other: "Aggregator") -> None:
        """Add what another server has added up."""
        if not isinstance(other, Aggregator):
            raise TypeError(f"tally: merge another Tally, not {type(other).__name__}; Tally.read reads stored bytes")
        if other is self:
            raise ValueError("tally: merged with itself, everybody would count twice")
        if other.oracle.configuration != self.oracle.configuration:
            raise ValueError(
                f"tally: of another configuration, {other.oracle.configuration}, than {self.oracle.configuration}"
            )
        _check_report_count(self.people + other.people)
        self.counts = self.counts + other.counts
        self.people += other.people

    def estimate(self, *, confidence: Number = 0.95, consistency: Consistency = "none") -> LocalEstimate:
        """Return the oracle's estimate from all that was added."""
        if not isinstance(self.oracle, Oracle):
            raise TypeError("a tally of values without a list has no estimate: give it to the oracle's shares or find")
        return self.oracle.estimate_counts(self.counts, self.people, confidence, consistency)

    def __repr__(self) -> str:
        return f"<Tally of {self.people:,} people: {self.oracle!r}>"

    def __bytes__(self) -> bytes:
        return (
            header(self._configuration) + np.concatenate(([self.people], self.counts)).astype(_STORED_INTEGER).tobytes()
        )

    @classmethod
    def read(cls, oracle: AggregatableOracle, stored: bytes) -> "Aggregator":
        """Read a tally that was stored as bytes; ValueError if it is of another version or configuration, or torn."""
        aggregator = cls(oracle)
        prefix = header(aggregator._configuration)
        check_header(stored[: len(prefix)], aggregator._configuration, "tally")
        numbers = stored[len(prefix) :]
        if len(numbers) != (1 + len(aggregator.counts)) * _STORED_INTEGER.itemsize:
            raise ValueError("tally: its bytes are torn")
        people, *_ = stored_numbers = np.frombuffer(numbers, _STORED_INTEGER).astype(np.int64)
        max_count = float(people) * oracle.scheme.max_count_per_report
        if not 0 <= people <= _MAX_REPORTS or (np.abs(stored_numbers[1:].astype(np.float64)) > max_count).any():
            raise ValueError("tally: no people can have sent what it says")
        aggregator.people, aggregator.counts = int(people), stored_numbers[1:]
        return aggregator

    @property
    def _configuration(self) -> str:
        return f"tally of {self.oracle.configuration}"


def _check_report_count(people: int) -> None:
    if people > _MAX_REPORTS:
        raise ValueError(f"tally: more than {_MAX_REPORTS:,} reports; begin another")
