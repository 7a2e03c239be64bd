"""Evidence from an attack's hits and misses: the epsilon it implies and the success an epsilon allows.

There are four kinds of evidence. `GuessEvidence`: a secret was drawn with a known prior, and guessed. `BitEvidence`: the same for a
bit that need not be fair. `EventEvidence`: something happened to people who are in the data, and to equal ones who are not.
`Scores`: the attack gave every member and every equal stranger a score.
"""

import math
from dataclasses import dataclass
from typing import Any, Protocol

from discreet.audit.binomial import Proportion

_MAX_EXPONENT = 700.0  # e to a larger number does not fit into a float, and allows everything anyway


@dataclass(frozen=True)
class ImpliedEpsilon:
    """The epsilon that an attack's success implies: seen, and the ends of its interval.

    >>> str(ImpliedEpsilon(1.5, 1.2, math.inf))
    '1.5 (at least 1.2)'
    """

    estimate: float
    low: float
    high: float

    def __str__(self) -> str:
        if self.high == math.inf:
            return f"{_format_epsilon(self.estimate)} (at least {_format_epsilon(self.low)})"
        return f"{_format_epsilon(self.estimate)} ({_format_epsilon(self.low)} to {_format_epsilon(self.high)})"


class AttackEvidence(Protocol):
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
    def baseline_name(self) -> str:
        """Whose success the baseline is: that of guessing, or the attack's own with strangers."""
        ...

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return the ends between which the attack's true success lies."""
        ...

    def implied(self, delta: float = 0.0, confidence: float = 0.95) -> ImpliedEpsilon:
        """Return the epsilon that no private release with this delta could have stayed below."""
        ...

    def ceiling(self, epsilon: float, delta: float = 0.0) -> float:
        """Return the highest success that an (epsilon, delta)-private release allows any attack."""
        ...


def exp_epsilon(epsilon: float) -> float:
    """Return e^epsilon, by how much likelier something may be with a person than without; huge instead of an error.

    >>> exp_epsilon(0), exp_epsilon(10_000) > 1e300
    (1.0, True)
    """
    return math.exp(min(epsilon, _MAX_EXPONENT))


def _format_epsilon(epsilon: float) -> str:
    return "∞" if epsilon == math.inf else f"{epsilon:.2g}" if epsilon < 10 else f"{epsilon:.0f}"


@dataclass(frozen=True)
class GuessEvidence:
    """A secret with this prior was guessed right in so many of so many plays; a coin's prior is 1/2.

    >>> GuessEvidence(right=90, plays=100).implied().low > 1.4
    True
    >>> round(GuessEvidence(right=90, plays=100).ceiling(epsilon=1), 4)
    0.7311
    """

    right: int
    plays: int
    prior: float = 0.5

    def __post_init__(self) -> None:
        Proportion(self.right, self.plays)
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
    def baseline_name(self) -> str:
        """What the baseline is: guessing."""
        return "guessing"

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return the ends between which the chance of a right guess lies."""
        return Proportion(self.right, self.plays).interval(confidence)

    def implied(self, delta: float = 0.0, confidence: float = 0.95) -> ImpliedEpsilon:
        """Return the epsilon implied: how far the odds of being right are above those of the prior."""
        share = Proportion(self.right, self.plays)
        ends = (share.value, *share.interval(confidence))
        return ImpliedEpsilon(*(self._epsilon_for(end, delta) for end in ends))

    def ceiling(self, epsilon: float, delta: float = 0.0) -> float:
        """Return the highest chance of a right guess; for a coin, e^epsilon / (1 + e^epsilon)."""
        exp_minus_epsilon = math.exp(-epsilon)
        return min(
            1.0,
            (self.prior + (1 - self.prior) * delta * exp_minus_epsilon)
            / (self.prior + (1 - self.prior) * exp_minus_epsilon),
        )

    def _epsilon_for(self, success: float, delta: float) -> float:
        # success <= (prior e^epsilon + (1 - prior) delta) / (prior e^epsilon + 1 - prior), solved for epsilon
        over, under = (1 - self.prior) * (success - delta), self.prior * (1 - success)
        if over <= 0:
            return 0.0
        return math.inf if under <= 0 else max(0.0, math.log(over / under))


@dataclass(frozen=True)
class BitEvidence:
    """A secret bit was guessed right for so many of those who have it set, and for so many of those who have not.

    `prior` is how likely the more frequent value is, which is what guessing it for everybody reaches.

    >>> BitEvidence(Proportion(90, 100), Proportion(80, 100)).success
    0.85
    >>> BitEvidence(Proportion(450, 450), Proportion(0, 50), prior=0.9).implied().low
    0.0
    """

    right_when_set: Proportion
    right_when_unset: Proportion
    prior: float = 0.5

    def __post_init__(self) -> None:
        if not 0.5 <= self.prior < 1:
            raise ValueError(f"prior must be that of the more frequent value, from 1/2 to below 1, not {self.prior}")

    @property
    def success(self) -> float:
        """The share of right guesses."""
        return self._all_guesses.value

    @property
    def baseline(self) -> float:
        """The prior."""
        return self.prior

    @property
    def baseline_name(self) -> str:
        """What the baseline is: guessing."""
        return "guessing"

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return the ends between which the chance of a right guess lies."""
        return self._all_guesses.interval(confidence)

    def implied(self, delta: float = 0.0, confidence: float = 0.95) -> ImpliedEpsilon:
        """Return the epsilon implied by how much likelier a bit is called set if it is."""
        called_set = Proportion(self.right_when_unset.trials - self.right_when_unset.hits, self.right_when_unset.trials)
        return EventEvidence(self.right_when_set, called_set).implied(delta, confidence)

    def ceiling(self, epsilon: float, delta: float = 0.0) -> float:
        """Return the highest chance of a right guess: of a fair coin's, or of always naming the more frequent value."""
        ratio_bound = exp_epsilon(epsilon)
        return min(1.0, max((ratio_bound + delta) / (1 + ratio_bound), self.prior + (1 - self.prior) * delta))

    @property
    def _all_guesses(self) -> Proportion:
        return Proportion(
            self.right_when_set.hits + self.right_when_unset.hits,
            self.right_when_set.trials + self.right_when_unset.trials,
        )


@dataclass(frozen=True)
class EventEvidence:
    """Something happened to so many of the members, and to so many of the strangers who are like them.

    A member's data were in what was released, a stranger's were not. What happens to both alike is no evidence.

    >>> EventEvidence(Proportion(80, 100), Proportion(80, 100)).implied().low
    0.0
    >>> EventEvidence(Proportion(80, 100), Proportion(5, 100)).implied().low > 1.7
    True
    """

    members: Proportion
    non_members: Proportion

    @property
    def success(self) -> float:
        """The share of members."""
        return self.members.value

    @property
    def baseline(self) -> float:
        """The share of strangers."""
        return self.non_members.value

    @property
    def baseline_name(self) -> str:
        """What the baseline is: strangers."""
        return "strangers"

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return the ends between which the chance for a member lies."""
        return self.members.interval(confidence)

    def implied(self, delta: float = 0.0, confidence: float = 0.95) -> ImpliedEpsilon:
        """Return the epsilon implied by it or its contrary, in both directions."""
        side_confidence = 1 - (1 - confidence) / 2  # both intervals hold together
        (low, high), (below, above) = self.members.interval(side_confidence), self.non_members.interval(side_confidence)
        estimate = _largest_log_ratio((self.members.value,) * 2, (self.non_members.value,) * 2, delta)
        lower = _largest_log_ratio((low, high), (below, above), delta)
        upper = max(_largest_log_ratio((a, a), (b, b), delta) for a in (low, high) for b in (below, above))
        return ImpliedEpsilon(estimate, lower, upper)

    def ceiling(self, epsilon: float, delta: float = 0.0) -> float:
        """Return the highest chance for a member, given the highest that a stranger may have, at 95 %."""
        _, non_member_rate = (
            self.non_members.interval()
        )  # the chance itself is not known, and members have a right to all of it
        ratio_bound = exp_epsilon(epsilon)
        return max(
            0.0, min(1.0, ratio_bound * non_member_rate + delta, 1 - (1 - delta - non_member_rate) / ratio_bound)
        )


def _largest_log_ratio(members: tuple[float, float], non_members: tuple[float, float], delta: float) -> float:
    """Return the largest log-ratio of the event or its contrary, either way, at the less telling ends of intervals."""
    (low, high), (below, above) = members, non_members
    ratios = ((low, above), (1 - high, 1 - below), (below, high), (1 - above, 1 - low))
    return max(0.0, *(_log_ratio(over - delta, under) for over, under in ratios))


def _log_ratio(over: float, under: float) -> float:
    if over <= 0:
        return 0.0
    return math.inf if under <= 0 else math.log(over / under)


@dataclass(frozen=True)
class ReidentificationEvidence:
    """How many members were named rightly, how many were named at all, and how many strangers were.

    A stranger can only be named wrongly. So what is equal for members and strangers is being named at all, and the
    epsilon follows from this: names put to everybody by chance are no evidence.

    >>> by_chance = ReidentificationEvidence.from_outcomes([True, False] * 50, [True] * 100, [True] * 100)
    >>> by_chance.success, by_chance.implied().seen
    (0.5, 0.0)
    """

    correctly_named: Proportion
    named_at_all: EventEvidence

    @classmethod
    def from_outcomes(
        cls, correctly_named: Any, named_at_all: Any, non_members_named: Any
    ) -> "ReidentificationEvidence":
        """Return the evidence, given who was named rightly and at all, and which strangers were named."""
        return cls(
            Proportion.from_outcomes(correctly_named),
            EventEvidence(Proportion.from_outcomes(named_at_all), Proportion.from_outcomes(non_members_named)),
        )

    @property
    def success(self) -> float:
        """The share of members who were named rightly."""
        return self.correctly_named.value

    @property
    def baseline(self) -> float:
        """The share of strangers who were named."""
        return self.named_at_all.baseline

    @property
    def baseline_name(self) -> str:
        """What the baseline is: strangers."""
        return self.named_at_all.baseline_name

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return the ends between which the chance to be named rightly lies."""
        return self.correctly_named.interval(confidence)

    def implied(self, delta: float = 0.0, confidence: float = 0.95) -> ImpliedEpsilon:
        """Return the epsilon implied by how much likelier a member is named at all."""
        return self.named_at_all.implied(delta, confidence)

    def ceiling(self, epsilon: float, delta: float = 0.0) -> float:
        """Return the highest chance for a member to be named at all, and so the highest to be named rightly."""
        return self.named_at_all.ceiling(epsilon, delta)
