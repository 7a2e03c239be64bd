"""Select on pilot runs the events that best distinguish two data sets; fresh runs count them."""

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
_INTERVAL_DEVIATIONS = 2.0  # what an interval will take away, roughly
# The best of hundreds of events was lucky on the pilot, by about three standard errors. Events far out in a tail are
# found only by somebody bolder.
_CAUTIOUS, _BOLD = 3.0, 1.0
_MIN_HITS = 4  # what was seen less often than that is luck
_DIFFICULTY_PENALTY = 0.01  # of what it promises an event is worth less for each step that it is harder to read
_SCAN_FACTOR = 4  # times as many events as are kept are looked through for one that says the same in plainer words


@dataclass(frozen=True)
class DistinguishingEvent:
    """That a feature of the outcome is at least, at most or exactly a bound."""

    feature: Feature
    relation: str
    bound: float

    def occurrences(self, outcomes: Outcomes) -> np.ndarray:
        """Tell for each run whether it happened."""
        return self.feature.expand_to_runs(
            _compare_scores(self.feature.score(outcomes), self.relation, self.bound), outcomes, fill=False
        )

    @property
    def is_binary(self) -> bool:
        """Whether the feature is a question."""
        return self.feature.name.startswith("whether ")

    @property
    def is_negated(self) -> bool:
        """Whether it is the answer no."""
        return self.is_binary and (self.relation, self.bound) not in ((">=", 1.0), ("==", 1.0))

    @property
    def difficulty(self) -> int:
        """How hard it is to read, from 0 up."""
        return PLAIN if self.feature.difficulty == TYPE else self.feature.difficulty

    @property
    def plainness_key(self) -> tuple[int, bool, bool, int]:
        """Least for the plainest of several events that happen in the same runs: a value, a type, a tail, a no."""
        is_tail = self.relation != "==" and not self.is_binary
        return self.difficulty, self.is_negated, is_tail, self.feature.difficulty

    def examples(self, outcomes: Outcomes) -> str:
        """Return some outputs of the event, where only its feature's maker knows what its bound means."""
        if self.feature.difficulty < LEARNED:
            return ""
        outputs = outcomes.most_frequent(self.occurrences(outcomes))
        if all(isinstance(output, int | float) for output in outputs):
            outputs = sorted(outputs)
        return f", such as {', '.join(f'{each!r:.40}' for each in outputs)}" if outputs else ""

    def __str__(self) -> str:
        if self.is_binary:
            statement = self.feature.name.removeprefix("whether ")
            return f"not: {statement}" if self.is_negated else statement
        bound = int(self.bound) if float(self.bound).is_integer() else float(f"{self.bound:.6g}")
        return f"{self.feature.name} {self.relation} {bound}"


@dataclass(frozen=True)
class CandidateEvent:
    """An event that looks likelier on one of the data sets; what fresh runs will probably show, and at best."""

    event: DistinguishingEvent
    likelier_on_d: bool
    expected_epsilon: float
    optimistic_epsilon: float

    @property
    def rank_score(self) -> float:
        """What it promises, a little less if it is hard to read."""
        return self.expected_epsilon - _DIFFICULTY_PENALTY * self.event.difficulty * abs(self.expected_epsilon)


def candidate_events(
    pilot: tuple[Outcomes, Outcomes], fresh_runs: int, *, delta: float = 0.0, limit: int = 8
) -> list[CandidateEvent]:
    """Return the most telling events, the best first, given how many fresh runs will judge them."""
    half = [len(outcomes) // 2 for outcomes in pilot]
    learning_half = pilot[0].subset(0, half[0]), pilot[1].subset(0, half[1])
    # What was learned from some runs looks too good on the same runs.
    evaluation_half = pilot[0].subset(half[0]), pilot[1].subset(half[1])
    bound_counts = [
        _count_bounds(candidate, evaluation_half if candidate.learned else pilot)
        for candidate in candidate_features(*learning_half)
    ]
    rankings = [
        sorted(
            chain(*(_best_events(counts, fresh_runs, delta, luck) for counts in bound_counts)),
            key=lambda each: -each.rank_score,
        )
        for luck in (_CAUTIOUS, _BOLD)
    ]
    min_epsilon = max((each.expected_epsilon for each in rankings[0]), default=0.0)
    interleaved = [each for pair in zip_longest(*rankings) for each in pair if each is not None]
    return _deduplicate([each for each in interleaved if each.optimistic_epsilon >= min_epsilon], pilot, limit)


@dataclass(frozen=True)
class _BoundCounts:
    """How often a feature was at least, at most and exactly each of some bounds, here and there."""

    feature: Feature
    bounds: np.ndarray
    hits: dict[str, tuple[np.ndarray, np.ndarray]]
    trials: tuple[int, int]


def _count_bounds(feature: Feature, outcomes: tuple[Outcomes, Outcomes]) -> _BoundCounts:
    scores = [feature.score(side) for side in outcomes]
    here, there = (np.sort(each[~np.isnan(each)]) for each in scores)
    pooled = np.concatenate([here, there])
    bounds = np.unique(np.quantile(pooled, _QUANTILE_LEVELS, method="nearest")) if pooled.size else np.zeros(1)
    before = np.searchsorted(here, bounds, "left"), np.searchsorted(there, bounds, "left")
    upto = np.searchsorted(here, bounds, "right"), np.searchsorted(there, bounds, "right")
    hits = {">=": (here.size - before[0], there.size - before[1]), "<=": upto}
    if not feature.learned:  # a learned score says the more, the larger it is
        hits["=="] = upto[0] - before[0], upto[1] - before[1]
    if feature.of_numbers and feature.difficulty == PLAIN:
        # To be at least the least means to be a number at all, which the type says more plainly.
        for relation, index in ((">=", 0), ("<=", -1)):
            for counts in hits[relation]:
                counts[index] = 0
    return _BoundCounts(feature, bounds, hits, (len(outcomes[0]), len(outcomes[1])))


def _best_events(counts: _BoundCounts, fresh_runs: int, delta: float, luck: float) -> Iterator[CandidateEvent]:
    """Yield the best event of each relation, each way."""
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
    """Return the epsilon that each event shows if both shares are by so much less telling than seen (or more, below 0).

    The arc sine of a share's root has the same error whatever the share is: 1/2 by the root of the runs.
    """
    angle_shift = shift / (2 * math.sqrt(2))  # both together lean as far as one alone by the whole
    p, q = (np.arcsin(np.sqrt((count + 0.375) / (size + 0.75))) for count, size in zip(hits, trials, strict=True))
    p, q = (np.sin(np.clip(angle, 1e-9, np.pi / 2)) ** 2 for angle in (p - angle_shift, q + angle_shift))
    return np.log(np.maximum(p - delta, 1e-18) / q)


def _deduplicate(
    candidates: list[CandidateEvent], pilot: tuple[Outcomes, Outcomes], limit: int
) -> list[CandidateEvent]:
    """Return the first few that do not say the same as one before; of two that do, the plainer one in that place."""
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
