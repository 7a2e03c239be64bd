"""The server's side: reports are added up as they arrive, and sums of several servers can be merged."""

from collections.abc import Iterable

import numpy as np

from discreet.kernel.exact import Number
from discreet.local.oracle import Consistency, Estimate, Oracle
from discreet.local.reports import Reports, check_header, header

_INT = np.dtype("<i8")


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

    def __init__(self, oracle: Oracle) -> None:
        self.oracle = oracle
        self.people = 0
        self.counts = oracle.scheme.counts(np.zeros(0, oracle.scheme.dtype)).astype(np.int64)

    def add(self, reports: Reports | bytes | Iterable[bytes]) -> None:
        """Add reports, or messages as they were received; if one of them is wrong, none is added."""
        known = reports if isinstance(reports, Reports) else self.oracle.read(reports)
        self.counts = self.counts + self.oracle.counts(known)
        self.people += len(known)

    def merge(self, other: "Tally") -> None:
        """Add what another server has added up."""
        if other.oracle.made_by != self.oracle.made_by:
            raise ValueError(f"tally: of another configuration, {other.oracle.made_by}, than {self.oracle.made_by}")
        self.counts = self.counts + other.counts
        self.people += other.people

    def estimate(self, *, confidence: Number = 0.95, consistency: Consistency = "none") -> Estimate:
        """Return the oracle's estimate from all that was added."""
        return self.oracle.estimate_counts(self.counts, self.people, confidence, consistency)

    def __bytes__(self) -> bytes:
        return header(self._made_by) + np.concatenate(([self.people], self.counts)).astype(_INT).tobytes()

    @classmethod
    def read(cls, oracle: Oracle, stored: bytes) -> "Tally":
        """Read a tally that was stored as bytes; ValueError if it is of another version or configuration, or torn."""
        tally = cls(oracle)
        head = header(tally._made_by)
        check_header(stored[: len(head)], tally._made_by, "tally")
        numbers = stored[len(head) :]
        if len(numbers) != (1 + len(tally.counts)) * _INT.itemsize:
            raise ValueError("tally: its bytes are torn")
        people, *_ = both = np.frombuffer(numbers, _INT).astype(np.int64)
        tally.people, tally.counts = int(people), both[1:]
        return tally

    @property
    def _made_by(self) -> str:
        return f"tally of {self.oracle.made_by}"
