"""What an attack's hits and misses prove: the epsilon that they imply, and the most that an epsilon allows.

There are four kinds of evidence. `Guesses`: a secret was drawn with a known prior, and guessed. `Bits`: the same for a
bit that need not be fair. `Found`: something happened to people who are in the data, and to equal ones who are not.
`Scores`: the attack gave every member and every equal stranger a score.
"""

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from discreet.attacks.ranking import Curve, curve
from discreet.audit.counting import Share
from discreet.kernel.normal import deviations

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


@dataclass(frozen=True)
class Guesses:
    """A secret with this prior was guessed right in so many of so many plays; a coin's prior is 1/2.

    >>> Guesses(right=90, plays=100).implied().low > 1.6
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
        rise = math.exp(min(epsilon, _CERTAIN))
        return min(1.0, max((rise + delta) / (1 + rise), self.prior + (1 - self.prior) * delta))

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
        rise = math.exp(min(epsilon, _CERTAIN))
        return max(0.0, min(1.0, rise * outside + delta, 1 - (1 - delta - outside) / rise))


@dataclass(frozen=True)
class Scores:
    """How strongly an attack took each member, and each stranger who is like them, for a member.

    >>> import numpy as np
    >>> scores = Scores(np.arange(1000) + 300, np.arange(1000))
    >>> scores.curve.auc > 0.7
    True
    >>> scores.implied().low > 0.2
    True
    """

    members: np.ndarray
    strangers: np.ndarray

    def __post_init__(self) -> None:
        for name in ("members", "strangers"):
            scores = np.asarray(getattr(self, name), float)
            if scores.ndim != 1 or not scores.size or np.isnan(scores).any():
                raise ValueError(f"{name} must be one score each, at least one, and none of them NaN")
            object.__setattr__(self, name, scores)

    @property
    def success(self) -> float:
        """The area under the curve."""
        return self.curve.auc

    @property
    def baseline(self) -> float:
        """The area under the curve of an attack that knows nothing."""
        return 0.5

    @property
    def beside(self) -> str:
        """What the baseline is: guessing."""
        return "guessing"

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return the ends between which the area lies, about: by its standard error (Hanley and McNeil 1982)."""
        area = self.success
        above, below = area / (2 - area) - area**2, 2 * area**2 / (1 + area) - area**2
        sizes = self.members.size, self.strangers.size
        spread = (area * (1 - area) + (sizes[0] - 1) * above + (sizes[1] - 1) * below) / math.prod(sizes)
        reach = deviations(confidence) * math.sqrt(max(spread, 0.0))
        return max(0.0, area - reach), min(1.0, area + reach)

    @property
    def curve(self) -> Curve:
        """The members found against the strangers taken for members, for every threshold."""
        return curve(self.members, self.strangers)

    def implied(self, delta: float = 0.0, confidence: float = 0.95) -> Implied:
        """Return the epsilon implied at the threshold that looks best on half of the people, by the other half."""
        if min(self.members.size, self.strangers.size) < 4:
            return Implied(0.0, 0.0, math.inf)
        threshold = self._best_threshold(delta)
        fresh = [scores[1::2] for scores in (self.members, self.strangers)]
        members, strangers = (Share(int((scores >= threshold).sum()), scores.size) for scores in fresh)
        return Found(members, strangers).implied(delta, confidence)

    def ceiling(self, epsilon: float, delta: float = 0.0) -> float:
        """Return the highest area under the curve: that of the line e^epsilon · FPR + delta and its mirror image."""
        # From (0, delta) with slope e^epsilon to the corner, and on to (1 - delta, 1) with slope e^-epsilon.
        if delta >= 1:
            return 1.0
        rise = math.exp(min(epsilon, _CERTAIN))
        corner = (1 - delta) / (1 + rise)
        height = delta + corner * rise
        return corner * (delta + height) / 2 + (1 - delta - corner) * (height + 1) / 2 + delta

    def _best_threshold(self, delta: float) -> float:
        pilot = [np.sort(scores[0::2]) for scores in (self.members, self.strangers)]
        tried = np.unique(np.quantile(np.concatenate(pilot), np.linspace(0, 1, 200), method="nearest"))
        middle = float(np.median(np.concatenate(pilot)))  # where most can be told, if nothing stands out
        best = max([middle, *tried], key=lambda threshold: self._pilot(pilot, threshold, delta))
        return float(best)

    def _pilot(self, pilot: Any, threshold: float, delta: float) -> float:
        shares = [Share(int(part.size - np.searchsorted(part, threshold)), part.size) for part in pilot]
        return Found(*shares).implied(delta).low


def _worst(members: tuple[float, float], strangers: tuple[float, float], delta: float) -> float:
    """Return the largest log-ratio of the event or its contrary, either way, at the less telling ends of intervals."""
    (low, high), (below, above) = members, strangers
    ratios = ((low, above), (1 - high, 1 - below), (below, high), (1 - above, 1 - low))
    return max(0.0, *(_log_ratio(over - delta, under) for over, under in ratios))


def _log_ratio(over: float, under: float) -> float:
    if over <= 0:
        return 0.0
    return math.inf if under <= 0 else math.log(over / under)


def _number(epsilon: float) -> str:
    return "∞" if epsilon == math.inf else f"{epsilon:.2g}" if epsilon < 10 else f"{epsilon:.0f}"
