"""What it proves that people were named: rightly, or at all."""

from dataclasses import dataclass
from typing import Any

from discreet.attacks.evidence import Found
from discreet.attacks.implied import Implied
from discreet.audit.counting import Share


@dataclass(frozen=True)
class Naming:
    """How many members were named rightly, how many were named at all, and how many strangers were.

    A stranger can only be named wrongly. So what is equal for members and strangers is being named at all, and the
    epsilon follows from this: names put to everybody by chance are no evidence.

    >>> by_chance = Naming.of([True, False] * 50, [True] * 100, [True] * 100)
    >>> by_chance.success, by_chance.implied().seen
    (0.5, 0.0)
    """

    right: Share
    named: Found

    @classmethod
    def of(cls, right: Any, named: Any, strangers: Any) -> "Naming":
        """Return the evidence, given who was named rightly and at all, and which strangers were named."""
        return cls(Share.of(right), Found(Share.of(named), Share.of(strangers)))

    @property
    def success(self) -> float:
        """The share of members who were named rightly."""
        return self.right.value

    @property
    def baseline(self) -> float:
        """The share of strangers who were named."""
        return self.named.baseline

    @property
    def beside(self) -> str:
        """What the baseline is: strangers."""
        return self.named.beside

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return the ends between which the chance to be named rightly lies."""
        return self.right.interval(confidence)

    def implied(self, delta: float = 0.0, confidence: float = 0.95) -> Implied:
        """Return the epsilon implied by how much likelier a member is named at all."""
        return self.named.implied(delta, confidence)

    def ceiling(self, epsilon: float, delta: float = 0.0) -> float:
        """Return the highest chance for a member to be named at all, and so the highest to be named rightly."""
        return self.named.ceiling(epsilon, delta)
