"""What an attack's hits and misses prove: the epsilon that they imply, and the most that an epsilon allows.

There are four kinds of evidence. `Guesses`: a secret was drawn with a known prior, and guessed. `Bits`: the same for a
bit that need not be fair. `Found`: something happened to people who are in the data, and to equal ones who are not.
`Scores`: the attack gave every member and every equal stranger a score.
"""

import math
from dataclasses import dataclass

from discreet.attacks.implied import Implied, rise
from discreet.audit.counting import Share


@dataclass(frozen=True)
class Guesses:
    """A secret with this prior was guessed right in so many of so many plays; a coin's prior is 1/2.

    >>> Guesses(right=90, plays=100).implied().low > 1.4
    True
    >>> round(Guesses(right=90, plays=100).ceiling(epsilon=1), 4)
    0.7311
    """

    right: int
    plays: int
    prior: float = 0.5

    def __post_init__(self) -> None:
        Share(self.right, self.plays)
        if not 0 < self.prior < 1:
            raise ValueError(f"prior must lie between 0 and 1, not {self.prior}")

    @property
    def success(self) -> float:
        """The share of right guesses."""
        return self.right / self.plays

    @property
    def baseline(self) -> float:
        """The prior."""
        return self.prior

    @property
    def beside(self) -> str:
        """What the baseline is: guessing."""
        return "guessing"

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return the ends between which the chance of a right guess lies."""
        return Share(self.right, self.plays).interval(confidence)

    def implied(self, delta: float = 0.0, confidence: float = 0.95) -> Implied:
        """Return the epsilon implied: how far the odds of being right are above those of the prior."""
        share = Share(self.right, self.plays)
        ends = (share.value, *share.interval(confidence))
        return Implied(*(self._epsilon(end, delta) for end in ends))

    def ceiling(self, epsilon: float, delta: float = 0.0) -> float:
        """Return the highest chance of a right guess; for a coin, e^epsilon / (1 + e^epsilon)."""
        fall = math.exp(-epsilon)
        return min(1.0, (self.prior + (1 - self.prior) * delta * fall) / (self.prior + (1 - self.prior) * fall))

    def _epsilon(self, success: float, delta: float) -> float:
        # success <= (prior e^epsilon + (1 - prior) delta) / (prior e^epsilon + 1 - prior), solved for epsilon
        over, under = (1 - self.prior) * (success - delta), self.prior * (1 - success)
        if over <= 0:
            return 0.0
        return math.inf if under <= 0 else max(0.0, math.log(over / under))


@dataclass(frozen=True)
class Bits:
    """A secret bit was guessed right for so many of those who have it set, and for so many of those who have not.

    `prior` is how likely the more frequent value is, which is what guessing it for everybody reaches.

    >>> Bits(Share(90, 100), Share(80, 100)).success
    0.85
    >>> Bits(Share(450, 450), Share(0, 50), prior=0.9).implied().low
    0.0
    """

    set_right: Share
    unset_right: Share
    prior: float = 0.5

    def __post_init__(self) -> None:
        if not 0.5 <= self.prior < 1:
            raise ValueError(f"prior must be that of the more frequent value, from 1/2 to below 1, not {self.prior}")

    @property
    def success(self) -> float:
        """The share of right guesses."""
        return self._all.value

    @property
    def baseline(self) -> float:
        """The prior."""
        return self.prior

    @property
    def beside(self) -> str:
        """What the baseline is: guessing."""
        return "guessing"

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return the ends between which the chance of a right guess lies."""
        return self._all.interval(confidence)

    def implied(self, delta: float = 0.0, confidence: float = 0.95) -> Implied:
        """Return the epsilon implied by how much likelier a bit is called set if it is."""
        called_set = Share(self.unset_right.trials - self.unset_right.hits, self.unset_right.trials)
        return Found(self.set_right, called_set).implied(delta, confidence)

    def ceiling(self, epsilon: float, delta: float = 0.0) -> float:
        """Return the highest chance of a right guess: of a fair coin's, or of always naming the more frequent value."""
        most = rise(epsilon)
        return min(1.0, max((most + delta) / (1 + most), self.prior + (1 - self.prior) * delta))

    @property
    def _all(self) -> Share:
        return Share(self.set_right.hits + self.unset_right.hits, self.set_right.trials + self.unset_right.trials)


@dataclass(frozen=True)
class Found:
    """Something happened to so many of the members, and to so many of the strangers who are like them.

    A member's data were in what was released, a stranger's were not. What happens to both alike is no evidence.

    >>> Found(Share(80, 100), Share(80, 100)).implied().low
    0.0
    >>> Found(Share(80, 100), Share(5, 100)).implied().low > 1.7
    True
    """

    members: Share
    strangers: Share

    @property
    def success(self) -> float:
        """The share of members."""
        return self.members.value

    @property
    def baseline(self) -> float:
        """The share of strangers."""
        return self.strangers.value

    @property
    def beside(self) -> str:
        """What the baseline is: strangers."""
        return "strangers"

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return the ends between which the chance for a member lies."""
        return self.members.interval(confidence)

    def implied(self, delta: float = 0.0, confidence: float = 0.95) -> Implied:
        """Return the epsilon implied by it or its contrary, in both directions."""
        each = 1 - (1 - confidence) / 2  # both intervals hold together
        (low, high), (below, above) = self.members.interval(each), self.strangers.interval(each)
        seen = _worst((self.members.value,) * 2, (self.strangers.value,) * 2, delta)
        least = _worst((low, high), (below, above), delta)
        most = max(_worst((a, a), (b, b), delta) for a in (low, high) for b in (below, above))
        return Implied(seen, least, most)

    def ceiling(self, epsilon: float, delta: float = 0.0) -> float:
        """Return the highest chance for a member, given the highest that a stranger may have, at 95 %."""
        _, outside = self.strangers.interval()  # the chance itself is not known, and members have a right to all of it
        most = rise(epsilon)
        return max(0.0, min(1.0, most * outside + delta, 1 - (1 - delta - outside) / most))


def _worst(members: tuple[float, float], strangers: tuple[float, float], delta: float) -> float:
    """Return the largest log-ratio of the event or its contrary, either way, at the less telling ends of intervals."""
    (low, high), (below, above) = members, strangers
    ratios = ((low, above), (1 - high, 1 - below), (below, high), (1 - above, 1 - low))
    return max(0.0, *(_log_ratio(over - delta, under) for over, under in ratios))


def _log_ratio(over: float, under: float) -> float:
    if over <= 0:
        return 0.0
    return math.inf if under <= 0 else math.log(over / under)
