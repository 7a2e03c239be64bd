"""What protocols for a mean share: how far the mean of the people asked may lie from its estimate."""

import math
from dataclasses import dataclass

ROUNDED = 0.5  # every value was moved to the nearest step


@dataclass(frozen=True)
class Spread:
    """How what one report tells is spread: its variance, the largest that it can have, and how far it reaches."""

    variance: float
    worst: float
    reach: float

    def margin(self, people: int, spreads: float) -> float:
        """Return so many standard deviations of the mean, in steps; a little more for few people."""
        square = spreads * spreads
        # As if a few people more had the worst variance, since it is estimated; and as in Cornish and Fisher's
        # expansion for a law that is skew, where the reach bounds the skewness.
        total = spreads * math.sqrt(people * self.variance + 2 * square * self.worst) + self.reach * (square + 3) / 6
        return total / people + ROUNDED
