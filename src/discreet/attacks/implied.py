"""What evidence says: the epsilon that is implied, and what all kinds of evidence have in common."""

import math
from dataclasses import dataclass
from typing import Protocol

_CERTAIN = 700.0  # e to a larger number does not fit into a float, and allows everything anyway


@dataclass(frozen=True)
class Implied:
    """The epsilon that an attack's success implies: seen, and the ends of its interval.

    >>> str(Implied(1.5, 1.2, math.inf))
    '1.5 (at least 1.2)'
    """

    seen: float
    low: float
    high: float

    def __str__(self) -> str:
        if self.high == math.inf:
            return f"{_number(self.seen)} (at least {_number(self.low)})"
        return f"{_number(self.seen)} ({_number(self.low)} to {_number(self.high)})"


class Evidence(Protocol):
    """What all kinds of evidence can say."""

    @property
    def success(self) -> float:
        """What the attack reached."""
        ...

    @property
    def baseline(self) -> float:
        """What it would have reached without the person's data."""
        ...

    @property
    def beside(self) -> str:
        """Whose success the baseline is: that of guessing, or the attack's own with strangers."""
        ...

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return the ends between which the attack's true success lies."""
        ...

    def implied(self, delta: float = 0.0, confidence: float = 0.95) -> Implied:
        """Return the epsilon that no private release with this delta could have stayed below."""
        ...

    def ceiling(self, epsilon: float, delta: float = 0.0) -> float:
        """Return the highest success that an (epsilon, delta)-private release allows any attack."""
        ...


def rise(epsilon: float) -> float:
    """Return e^epsilon, by how much likelier something may be with a person than without; huge instead of an error.

    >>> rise(0), rise(10_000) > 1e300
    (1.0, True)
    """
    return math.exp(min(epsilon, _CERTAIN))


def _number(epsilon: float) -> str:
    return "∞" if epsilon == math.inf else f"{epsilon:.2g}" if epsilon < 10 else f"{epsilon:.0f}"
