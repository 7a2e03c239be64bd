"""The server's side: reports are added up as they arrive, and sums of several servers can be merged."""

from typing import Any, Protocol

import numpy as np

from discreet.kernel.exact import Number
from discreet.local.estimate import Estimate
from discreet.local.oracle import Consistency, Oracle
from discreet.local.reports import Received, Reports, check_header, header

_INT = np.dtype("<i8")
_MOST = 1 << 31  # reports; up to it every sum fits in 64 bits


class Counted(Protocol):
    """An oracle as far as it is needed to add up its reports: those of lists, sketches and heavy hitters alike."""

    @property
    def made_by(self) -> str:
        """The configuration."""

    @property
    def scheme(self) -> Any:
        """How reports are read."""

    def read(self, received: Received) -> Reports:
        """Read what people sent."""

    def counts(self, reports: Reports) -> np.ndarray:
        """Return what is added up."""


class Tally:
    """Adds up reports of one configuration; keeps their sum and their number, and no report.

    >>> import discreet as dc
    >>> survey = dc.local.GRR(["yes", "no"], epsilon=1)
    >>> north, south = dc.local.Tally(survey), dc.local.Tally(survey)
    >>> north.add(survey.perturb(["yes"] * 10))
    >>> south.add(survey.perturb(["no"] * 20))
    >>> north.merge(south)
    >>> north.people
    30
    """

    def __init__(self, oracle: Counted) -> None:
        if not hasattr(oracle, "scheme"):
            raise TypeError(f"oracle must be one of discreet.local, such as GRR, not {type(oracle).__name__}")
        self.oracle = oracle
        self.people = 0
        self.counts = oracle.scheme.counts(np.zeros(0, oracle.scheme.dtype)).astype(np.int64)

    def add(self, reports: Reports | Received) -> None:
        """Add reports, or messages as they were received; if one of them is wrong, none is added."""
        known = reports if isinstance(reports, Reports) else self.oracle.read(reports)
        _check_many(self.people + len(known))
        self.counts = self.counts + self.oracle.counts(known)
        self.people += len(known)

    def merge(self, other: "Tally") -> None:
        """Add what another server has added up."""
        if not isinstance(other, Tally):
            raise TypeError(f"tally: merge another Tally, not {type(other).__name__}; Tally.read reads stored bytes")
        if other is self:
            raise ValueError("tally: merged with itself, everybody would count twice")
        if other.oracle.made_by != self.oracle.made_by:
            raise ValueError(f"tally: of another configuration, {other.oracle.made_by}, than {self.oracle.made_by}")
        _check_many(self.people + other.people)
        self.counts = self.counts + other.counts
        self.people += other.people

    def estimate(self, *, confidence: Number = 0.95, consistency: Consistency = "none") -> Estimate:
        """Return the oracle's estimate from all that was added."""
        if not isinstance(self.oracle, Oracle):
            raise TypeError("a tally of values without a list has no estimate: give it to the oracle's shares or find")
        return self.oracle.estimate_counts(self.counts, self.people, confidence, consistency)

    def __repr__(self) -> str:
        return f"<Tally of {self.people:,} people: {self.oracle!r}>"

    def __bytes__(self) -> bytes:
        return header(self._made_by) + np.concatenate(([self.people], self.counts)).astype(_INT).tobytes()

    @classmethod
    def read(cls, oracle: Counted, stored: bytes) -> "Tally":
        """Read a tally that was stored as bytes; ValueError if it is of another version or configuration, or torn."""
        tally = cls(oracle)
        head = header(tally._made_by)
        check_header(stored[: len(head)], tally._made_by, "tally")
        numbers = stored[len(head) :]
        if len(numbers) != (1 + len(tally.counts)) * _INT.itemsize:
            raise ValueError("tally: its bytes are torn")
        people, *_ = both = np.frombuffer(numbers, _INT).astype(np.int64)
        most = float(people) * oracle.scheme.most_counted
        if not 0 <= people <= _MOST or (np.abs(both[1:].astype(np.float64)) > most).any():
            raise ValueError("tally: no people can have sent what it says")
        tally.people, tally.counts = int(people), both[1:]
        return tally

    @property
    def _made_by(self) -> str:
        return f"tally of {self.oracle.made_by}"


def _check_many(people: int) -> None:
    if people > _MOST:
        raise ValueError(f"tally: more than {_MOST:,} reports; begin another")
