"""Evidence from an attack's hits and misses: the epsilon it implies and the success an epsilon allows.

All kinds have the same interface: `success`, `baseline` (without the person's data) and its name, an `interval` of the
success, the `implied` epsilon at a delta, and the `ceiling`, the highest success that (epsilon, delta) allows.
`GuessEvidence`: guesses of a secret with a known prior. `BitEvidence`: guesses of a secret bit that need not be fair.
`EventEvidence`: how often an event happens to members and to comparable non-members, such as being named.
`ScoreEvidence` (in `scores`): scores of members and non-members.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from discreet.attacks.validation import require
from discreet.audit.hypothesis_tests import Proportion

_MAX_EXPONENT = 700.0  # exp of a larger number overflows a float; the bound is trivial long before


@dataclass(frozen=True)
class ImpliedEpsilon:
    """The epsilon that an attack's success implies: the estimate and its confidence interval.

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


def exp_epsilon(epsilon: float) -> float:
    """Return e^epsilon, capped so that it does not overflow.

    >>> exp_epsilon(0), exp_epsilon(10_000) > 1e300
    (1.0, True)
    """
    return math.exp(min(epsilon, _MAX_EXPONENT))


def _format_epsilon(epsilon: float) -> str:
    return "∞" if epsilon == math.inf else f"{epsilon:.2g}" if epsilon < 10 else f"{epsilon:.0f}"


@dataclass(frozen=True)
class GuessEvidence:
    """The number of correct guesses of a secret with this prior; the prior of a fair coin is 1/2.

    >>> GuessEvidence(right=90, plays=100).implied().low > 1.4
    True
    >>> round(GuessEvidence(right=90, plays=100).ceiling(epsilon=1), 4)
    0.7311
    """

    baseline_name: ClassVar[str] = "guessing"
    right: int
    plays: int
    prior: float = 0.5

    def __post_init__(self) -> None:
        Proportion(self.right, self.plays)
        require(0 < self.prior < 1, f"prior must be between 0 and 1, not {self.prior}")

    @property
    def success(self) -> float:
        """The share of correct guesses."""
        return self.right / self.plays

    @property
    def baseline(self) -> float:
        """The prior."""
        return self.prior

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return a confidence interval of the probability of a correct guess."""
        return Proportion(self.right, self.plays).interval(confidence)

    def implied(self, delta: float = 0.0, confidence: float = 0.95) -> ImpliedEpsilon:
        """Return the implied epsilon: the log-ratio of the odds of a correct guess to the prior odds."""
        ends = (self.success, *self.interval(confidence))
        return ImpliedEpsilon(*(self._epsilon_for(end, delta) for end in ends))

    def ceiling(self, epsilon: float, delta: float = 0.0) -> float:
        """Return the highest probability of a correct guess; for a fair coin e^epsilon / (1 + e^epsilon)."""
        exp_minus_epsilon = math.exp(-epsilon)
        return min(
            1.0,
            (self.prior + (1 - self.prior) * delta * exp_minus_epsilon)
            / (self.prior + (1 - self.prior) * exp_minus_epsilon),
        )

    def _epsilon_for(self, success: float, delta: float) -> float:
        # success <= (prior e^epsilon + (1 - prior) delta) / (prior e^epsilon + 1 - prior), solved for epsilon
        over, under = (1 - self.prior) * (success - delta), self.prior * (1 - success)
        return max(0.0, _log_ratio(over, under))


@dataclass(frozen=True)
class BitEvidence:
    """Correct guesses of a secret bit, for people whose bit is set and for people whose bit is not.

    `prior` is the probability of the more frequent value: the success of guessing that value for everybody. `steps` of
    the add/remove relation lie between the two values: 2 if another bit substitutes a record.

    >>> BitEvidence(Proportion(90, 100), Proportion(80, 100)).success
    0.85
    >>> BitEvidence(Proportion(450, 450), Proportion(0, 50), prior=0.9).implied().low
    0.0
    >>> one, two = (BitEvidence(Proportion(90, 100), Proportion(80, 100), steps=steps) for steps in (1, 2))
    >>> two.ceiling(1) == one.ceiling(2), two.implied().low == one.implied().low / 2
    (True, True)
    """

    baseline_name: ClassVar[str] = "guessing"
    right_when_set: Proportion
    right_when_unset: Proportion
    prior: float = 0.5
    steps: int = 1

    def __post_init__(self) -> None:
        require(
            0.5 <= self.prior < 1,
            f"prior must be that of the more frequent value, at least 0.5 and below 1, not {self.prior}",
        )

    @classmethod
    def from_guesses(cls, is_right: np.ndarray, bits: np.ndarray, prior: float, steps: int = 1) -> "BitEvidence":
        """Return the evidence from which guesses of these bits are right."""
        return cls(Proportion.from_outcomes(is_right[bits]), Proportion.from_outcomes(is_right[~bits]), prior, steps)

    @property
    def success(self) -> float:
        """The share of correct guesses."""
        return self._all_guesses.value

    @property
    def baseline(self) -> float:
        """The prior."""
        return self.prior

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return a confidence interval of the probability of a correct guess."""
        return self._all_guesses.interval(confidence)

    def implied(self, delta: float = 0.0, confidence: float = 0.95) -> ImpliedEpsilon:
        """Return the epsilon, per step, implied by how much more often a bit is called set if it is set."""
        self._check_delta(delta)
        called_set = Proportion(self.right_when_unset.trials - self.right_when_unset.hits, self.right_when_unset.trials)
        implied = EventEvidence(self.right_when_set, called_set).implied(delta, confidence)
        return ImpliedEpsilon(implied.estimate / self.steps, implied.low / self.steps, implied.high / self.steps)

    def ceiling(self, epsilon: float, delta: float = 0.0) -> float:
        """Return the highest success: that for a fair coin, or that of always guessing the more frequent value."""
        self._check_delta(delta)
        ratio_bound = exp_epsilon(self.steps * epsilon)
        return min(1.0, max((ratio_bound + delta) / (1 + ratio_bound), self.prior + (1 - self.prior) * delta))

    def _check_delta(self, delta: float) -> None:
        require(
            not delta or self.steps <= 1, "delta must be 0: for substitution its group-privacy bound depends on epsilon"
        )

    @property
    def _all_guesses(self) -> Proportion:
        return Proportion(
            self.right_when_set.hits + self.right_when_unset.hits,
            self.right_when_set.trials + self.right_when_unset.trials,
        )


@dataclass(frozen=True)
class EventEvidence:
    """How often an event happened to members and to comparable non-members.

    Members' data went into the release, non-members' did not. Equal rates are no evidence of a leak. Where the attack
    may be wrong about members, `correct` is how often it was right, and the event is that it said something: naming
    everybody at random is no evidence.

    >>> EventEvidence(Proportion(80, 100), Proportion(80, 100)).implied().low
    0.0
    >>> EventEvidence(Proportion(80, 100), Proportion(5, 100)).implied().low > 1.7
    True
    >>> by_chance = EventEvidence.from_outcomes([True] * 100, [True] * 100, correct=[True, False] * 50)
    >>> by_chance.success, by_chance.implied().estimate
    (0.5, 0.0)
    """

    baseline_name: ClassVar[str] = "non-members"
    members: Proportion
    non_members: Proportion
    correct: Proportion | None = None

    @classmethod
    def from_outcomes(cls, members: Any, non_members: Any, correct: Any = None) -> "EventEvidence":
        """Return the evidence from whether the event happened to each member and non-member, and who it is right of."""
        hits = None if correct is None else Proportion.from_outcomes(correct)
        return cls(Proportion.from_outcomes(members), Proportion.from_outcomes(non_members), hits)

    @property
    def success(self) -> float:
        """The rate among members, or how often the attack was right about them."""
        return (self.correct or self.members).value

    @property
    def baseline(self) -> float:
        """The rate among non-members."""
        return self.non_members.value

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return a confidence interval of the success."""
        return (self.correct or self.members).interval(confidence)

    def implied(self, delta: float = 0.0, confidence: float = 0.95) -> ImpliedEpsilon:
        """Return the epsilon implied by the event or its complement, in either direction."""
        side_confidence = 1 - (1 - confidence) / 2  # both intervals hold together
        (low, high), (below, above) = self.members.interval(side_confidence), self.non_members.interval(side_confidence)
        estimate = _largest_log_ratio((self.members.value,) * 2, (self.non_members.value,) * 2, delta)
        lower = _largest_log_ratio((low, high), (below, above), delta)
        upper = max(_largest_log_ratio((a, a), (b, b), delta) for a in (low, high) for b in (below, above))
        return ImpliedEpsilon(estimate, lower, upper)

    def ceiling(self, epsilon: float, delta: float = 0.0) -> float:
        """Return the highest rate for members, given the upper end of the 95 % interval for non-members."""
        # The true rate of non-members is unknown; its upper end keeps the bound valid.
        _, non_member_rate = self.non_members.interval()
        ratio_bound = exp_epsilon(epsilon)
        return max(
            0.0, min(1.0, ratio_bound * non_member_rate + delta, 1 - (1 - delta - non_member_rate) / ratio_bound)
        )


def _largest_log_ratio(members: tuple[float, float], non_members: tuple[float, float], delta: float) -> float:
    """Return the largest log-ratio of the event or its complement, in either direction, at the conservative ends."""
    (low, high), (below, above) = members, non_members
    ratios = ((low, above), (1 - high, 1 - below), (below, high), (1 - above, 1 - low))
    return max(0.0, *(_log_ratio(over - delta, under) for over, under in ratios))


def _log_ratio(over: float, under: float) -> float:
    if over <= 0:
        return 0.0
    return math.inf if under <= 0 else math.log(over / under)
