"""Select, on pilot runs, the events that best distinguish two data sets; fresh runs count them."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, zip_longest
from typing import Any

import numpy as np

from discreet.audit.features import LEARNED, PLAIN, TYPE, Feature, candidate_features
from discreet.audit.runs import Outcomes

_QUANTILE_LEVELS = np.unique(
    np.concatenate([np.linspace(0, 1, 129), np.geomspace(1e-5, 0.01, 13), 1 - np.geomspace(1e-5, 0.01, 13)])
)
_INTERVAL_DEVIATIONS = 2.0  # rough width of the confidence interval on fresh runs, in standard errors
# The best of hundreds of events is overestimated on the pilot runs by about three standard errors. A smaller correction
# finds events far out in a tail.
_CAUTIOUS, _BOLD = 3.0, 1.0
_MIN_HITS = 4  # rarer events are noise
_DIFFICULTY_PENALTY = 0.01  # share of the expected epsilon deducted per level of reading difficulty
_SCAN_FACTOR = 4  # factor of additional candidates, among which an equivalent event may be easier to read


@dataclass(frozen=True)
class DistinguishingEvent:
    """The event that a feature of the outcome is at least, at most or exactly a bound."""

    feature: Feature
    relation: str
    bound: float

    def occurrences(self, outcomes: Outcomes) -> np.ndarray:
        """Return for each run whether the event occurred."""
        return self.feature.expand_to_runs(
            _compare_scores(self.feature.score(outcomes), self.relation, self.bound), outcomes, fill=False
        )

    @property
    def is_binary(self) -> bool:
        """Whether the feature is a yes-or-no property."""
        return self.feature.name.startswith("whether ")

    @property
    def is_negated(self) -> bool:
        """Whether the event is that a yes-or-no property does not hold."""
        return self.is_binary and (self.relation, self.bound) not in ((">=", 1.0), ("==", 1.0))

    @property
    def difficulty(self) -> int:
        """How difficult the event is to read; 0 is the easiest."""
        return PLAIN if self.feature.difficulty == TYPE else self.feature.difficulty

    @property
    def plainness_key(self) -> tuple[int, bool, bool, int]:
        """Sort key of equivalent events, the easiest to read first: a value, a type, a tail, a negation."""
        is_tail = self.relation != "==" and not self.is_binary
        return self.difficulty, self.is_negated, is_tail, self.feature.difficulty

    def examples(self, outcomes: Outcomes) -> str:
        """Return examples of outputs in the event if its bound, on a learned score, means nothing to a reader."""
        if self.feature.difficulty < LEARNED:
            return ""
        outputs = outcomes.most_frequent(self.occurrences(outcomes))
        if all(isinstance(output, int | float) for output in outputs):
            outputs = sorted(outputs)
        return f", such as {', '.join(f'{output!r:.40}' for output in outputs)}" if outputs else ""

    def __str__(self) -> str:
        if self.is_binary:
            statement = self.feature.name.removeprefix("whether ")
            return f"not: {statement}" if self.is_negated else statement
        bound = int(self.bound) if float(self.bound).is_integer() else float(f"{self.bound:.6g}")
        return f"{self.feature.name} {self.relation} {bound}"


@dataclass(frozen=True)
class CandidateEvent:
    """An event that is likelier on one data set, with the epsilon that fresh runs should show, and at best."""

    event: DistinguishingEvent
    likelier_on_d: bool
    expected_epsilon: float
    optimistic_epsilon: float

    @property
    def rank_score(self) -> float:
        """Expected epsilon, reduced a little if the event is hard to read."""
        return self.expected_epsilon - _DIFFICULTY_PENALTY * self.event.difficulty * abs(self.expected_epsilon)


def candidate_events(
    pilot: tuple[Outcomes, Outcomes], fresh_runs: int, *, delta: float = 0.0, limit: int = 8
) -> list[CandidateEvent]:
    """Return the most distinguishing events, the best first, for a number of fresh runs to test them."""
    half = [len(outcomes) // 2 for outcomes in pilot]
    learning_half = pilot[0].subset(0, half[0]), pilot[1].subset(0, half[1])
    # Learned features are evaluated on other runs than those they were learned from.
    evaluation_half = pilot[0].subset(half[0]), pilot[1].subset(half[1])
    bound_counts = [
        _count_bounds(candidate, evaluation_half if candidate.learned else pilot)
        for candidate in candidate_features(*learning_half)
    ]
    rankings = [
        sorted(
            chain(*(_best_events(counts, fresh_runs, delta, luck) for counts in bound_counts)),
            key=lambda candidate: -candidate.rank_score,
        )
        for luck in (_CAUTIOUS, _BOLD)
    ]
    min_epsilon = max((candidate.expected_epsilon for candidate in rankings[0]), default=0.0)
    interleaved = [candidate for pair in zip_longest(*rankings) for candidate in pair if candidate is not None]
    return _deduplicate(
        [candidate for candidate in interleaved if candidate.optimistic_epsilon >= min_epsilon], pilot, limit
    )


@dataclass(frozen=True)
class _BoundCounts:
    """Counts on both data sets of a feature being at least, at most and exactly each of some bounds."""

    feature: Feature
    bounds: np.ndarray
    hits: dict[str, tuple[np.ndarray, np.ndarray]]
    trials: tuple[int, int]


def _count_bounds(feature: Feature, outcomes: tuple[Outcomes, Outcomes]) -> _BoundCounts:
    scores = [feature.score(side) for side in outcomes]
    here, there = (np.sort(side[~np.isnan(side)]) for side in scores)
    pooled = np.concatenate([here, there])
    bounds = np.unique(np.quantile(pooled, _QUANTILE_LEVELS, method="nearest")) if pooled.size else np.zeros(1)
    before = np.searchsorted(here, bounds, "left"), np.searchsorted(there, bounds, "left")
    upto = np.searchsorted(here, bounds, "right"), np.searchsorted(there, bounds, "right")
    hits = {">=": (here.size - before[0], there.size - before[1]), "<=": upto}
    if not feature.learned:  # a learned score is monotone: the larger, the stronger the evidence
        hits["=="] = upto[0] - before[0], upto[1] - before[1]
    if feature.of_numbers and feature.difficulty == PLAIN:
        # ">= minimum" only means that there is a number at all, which the type expresses more clearly.
        for relation, index in ((">=", 0), ("<=", -1)):
            for counts in hits[relation]:
                counts[index] = 0
    return _BoundCounts(feature, bounds, hits, (len(outcomes[0]), len(outcomes[1])))


def _best_events(counts: _BoundCounts, fresh_runs: int, delta: float, luck: float) -> Iterator[CandidateEvent]:
    """Yield the best event for each relation and direction."""
    for relation, (here, there) in counts.hits.items():
        for likelier_on_d in (True, False):
            pair = (here, there) if likelier_on_d else (there, here)
            trials = counts.trials if likelier_on_d else counts.trials[::-1]
            expected = _shifted_epsilon(
                pair, trials, delta, luck / math.sqrt(min(trials)) + _INTERVAL_DEVIATIONS / math.sqrt(fresh_runs)
            )
            best = int(np.argmax(np.where(pair[0] >= _MIN_HITS, expected, -np.inf)))
            event = DistinguishingEvent(counts.feature, relation, counts.bounds[best].item())
            if pair[0][best] >= _MIN_HITS:
                optimistic = _shifted_epsilon(
                    (pair[0][best], pair[1][best]), trials, delta, -_CAUTIOUS / math.sqrt(min(trials))
                )
                yield CandidateEvent(event, likelier_on_d, float(expected[best]), float(optimistic))


def _shifted_epsilon(hits: tuple[Any, Any], trials: tuple[int, int], delta: float, shift: float) -> Any:
    """Return the epsilon of each event after shifting both proportions towards each other (apart if negative).

    The arc sine of the square root of a proportion has the same standard error whatever the proportion: 1/(2·sqrt(n)).
    """
    angle_shift = shift / (2 * math.sqrt(2))  # both proportions share the shift
    p, q = (np.arcsin(np.sqrt((count + 0.375) / (size + 0.75))) for count, size in zip(hits, trials, strict=True))
    p, q = (np.sin(np.clip(angle, 1e-9, np.pi / 2)) ** 2 for angle in (p - angle_shift, q + angle_shift))
    return np.log(np.maximum(p - delta, 1e-18) / q)


def _deduplicate(
    candidates: list[CandidateEvent], pilot: tuple[Outcomes, Outcomes], limit: int
) -> list[CandidateEvent]:
    """Return the first distinct events; of two equivalent events the one that is easier to read takes the place."""
    unique: dict[bytes, CandidateEvent] = {}
    for rank, candidate in enumerate(candidates):
        if len(unique) == limit and rank >= _SCAN_FACTOR * limit:
            break
        signature = bytes([candidate.likelier_on_d]) + b"".join(
            np.packbits(candidate.event.occurrences(outcomes)).tobytes() for outcomes in pilot
        )
        duplicate = unique.get(signature)
        if len(unique) < limit if duplicate is None else candidate.event.plainness_key < duplicate.event.plainness_key:
            unique[signature] = candidate
    return list(unique.values())


def _compare_scores(scores: np.ndarray, relation: str, bound: float) -> np.ndarray:
    if relation == ">=":
        return np.asarray(scores >= bound)
    return np.asarray(scores <= bound if relation == "<=" else scores == bound)
