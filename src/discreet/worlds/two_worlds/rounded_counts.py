"""The exact distribution of a released count: noise on a fine grid, rounded to integers with ties upwards."""

import json
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from discreet.kernel.event import Event
from discreet.kernel.mechanism import Laplace
from discreet.privacy.tail_enclosures import tail_bounds

_BITS = 120  # a probability is known within 2^-118
_FAR = 20  # scales; pairs of equal noise beyond have a total probability below exp(-40)


@dataclass(frozen=True)
class RoundedNoise:
    """The error of a count whose noise is drawn on a grid of 1/steps and rounded.

    >>> noise = RoundedNoise(Laplace(10 << 20), 1 << 20)
    >>> round(float(noise.at_least(0)), 4), round(float(noise.probability(0)), 4)
    (0.5244, 0.0488)
    """

    noise: Laplace
    steps: int

    @classmethod
    def of_charge(cls, event: Event) -> "RoundedNoise":
        """Return the noise of a count from its entry in the ledger: one person changes it by l1 steps of the grid."""
        scale, l1 = json.loads(event.mechanism)["scale"], json.loads(event.sensitivity)["l1"]
        return cls(Laplace(Fraction(scale)), int(l1))

    @property
    def scale(self) -> float:
        """The scale of the noise, in persons."""
        return float(self.noise.scale / self.steps)

    def at_least(self, k: int) -> Fraction:
        """Return the probability that the error is at least k."""
        low, high = tail_bounds(self.noise, k * self.steps - self.steps // 2, _BITS)
        return Fraction(low + high, 2 << _BITS)

    def probability(self, k: int) -> Fraction:
        """Return the probability that the error is k."""
        return self.at_least(k) - self.at_least(k + 1)

    def both_equal(self) -> float:
        """Return the probability that two independent errors are equal."""
        reach = 1 + int(_FAR * self.scale)
        tails = [float(self.at_least(k)) for k in range(-reach, reach + 2)]
        return sum((here - beyond) ** 2 for here, beyond in pairwise(tails))

    def draw_pair(self) -> tuple[int, int]:
        """Return two fresh errors, drawn by the mechanism itself.

        >>> len(RoundedNoise(Laplace(10), 1).draw_pair())
        2
        """
        first, second = (self.noise.perturb(0) for _ in range(2))
        return (2 * first + self.steps) // (2 * self.steps), (2 * second + self.steps) // (2 * self.steps)
