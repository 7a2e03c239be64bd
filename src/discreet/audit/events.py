"""Which events tell two data sets apart: chosen on pilot runs, to be counted on fresh ones."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, zip_longest
from typing import Any

import numpy as np

from discreet.audit.features import LEARNED, PLAIN, TYPE, Feature, features
from discreet.audit.outcomes import Outcomes

_LEVELS = np.unique(
    np.concatenate([np.linspace(0, 1, 129), np.geomspace(1e-5, 0.01, 13), 1 - np.geomspace(1e-5, 0.01, 13)])
)
_DEVIATIONS = 2.0  # what an interval will take away, roughly
# The best of hundreds of events was lucky on the pilot, by about three standard errors. Events far out in a tail are
# found only by somebody bolder.
_CAUTIOUS, _BOLD = 3.0, 1.0
_FEW = 4  # what was seen less often than that is luck
_CLARITY = 0.01  # of what it promises an event is worth less for each step that it is harder to read
_SCANNED = 4  # times as many events as are kept are looked through for one that says the same in plainer words


@dataclass(frozen=True)
class Event:
    """That a feature of the outcome is at least, at most or exactly a bound."""

    feature: Feature
    relation: str
    bound: float

    def hits(self, seen: Outcomes) -> np.ndarray:
        """Tell for each run whether it happened."""
        return self.feature.everywhere(
            _compared(self.feature.score(seen), self.relation, self.bound), seen, otherwise=False
        )

    @property
    def is_yes_or_no(self) -> bool:
        """Whether the feature is a question."""
        return self.feature.name.startswith("whether ")

    @property
    def is_no(self) -> bool:
        """Whether it is the answer no."""
        return self.is_yes_or_no and (self.relation, self.bound) not in ((">=", 1.0), ("==", 1.0))

    @property
    def hard(self) -> int:
        """How hard it is to read, from 0 up."""
        return PLAIN if self.feature.hard == TYPE else self.feature.hard

    @property
    def wording(self) -> tuple[int, bool, bool, int]:
        """Least for the plainest of several events that happen in the same runs: a value, a type, a tail, a no."""
        is_tail = self.relation != "==" and not self.is_yes_or_no
        return self.hard, self.is_no, is_tail, self.feature.hard

    def examples(self, seen: Outcomes) -> str:
        """Return some outputs of the event, where only its feature's maker knows what its bound means."""
        if self.feature.hard < LEARNED:
            return ""
        found = seen.frequent(self.hits(seen))
        if all(isinstance(each, int | float) for each in found):
            found = sorted(found)
        return f", such as {', '.join(f'{each!r:.40}' for each in found)}" if found else ""

    def __str__(self) -> str:
        if self.is_yes_or_no:
            said = self.feature.name.removeprefix("whether ")
            return f"not: {said}" if self.is_no else said
        bound = int(self.bound) if float(self.bound).is_integer() else float(f"{self.bound:.6g}")
        return f"{self.feature.name} {self.relation} {bound}"


@dataclass(frozen=True)
class Suspicion:
    """An event that looks likelier on one of the data sets; what fresh runs will probably show, and at best."""

    event: Event
    forwards: bool
    promise: float
    hope: float

    @property
    def worth(self) -> float:
        """What it promises, a little less if it is hard to read."""
        return self.promise - _CLARITY * self.event.hard * abs(self.promise)


def suspicions(pilot: tuple[Outcomes, Outcomes], fresh: int, *, delta: float = 0.0, most: int = 8) -> list[Suspicion]:
    """Return the most telling events, the best first, given how many fresh runs will judge them."""
    half = [len(seen) // 2 for seen in pilot]
    learning = pilot[0].part(0, half[0]), pilot[1].part(0, half[1])
    # What was learned from some runs looks too good on the same runs.
    judging = pilot[0].part(half[0]), pilot[1].part(half[1])
    tallies = [_tally(each, judging if each.learned else pilot) for each in features(*learning)]
    ordered = [
        sorted(chain(*(_best(tally, fresh, delta, luck) for tally in tallies)), key=lambda each: -each.worth)
        for luck in (_CAUTIOUS, _BOLD)
    ]
    least = max((each.promise for each in ordered[0]), default=0.0)
    in_turns = [each for pair in zip_longest(*ordered) for each in pair if each is not None]
    return _different([each for each in in_turns if each.hope >= least], pilot, most)


@dataclass(frozen=True)
class _Tally:
    """How often a feature was at least, at most and exactly each of some bounds, here and there."""

    feature: Feature
    bounds: np.ndarray
    hits: dict[str, tuple[np.ndarray, np.ndarray]]
    trials: tuple[int, int]


def _tally(feature: Feature, seen: tuple[Outcomes, Outcomes]) -> _Tally:
    scores = [feature.score(each) for each in seen]
    here, there = (np.sort(each[~np.isnan(each)]) for each in scores)
    pooled = np.concatenate([here, there])
    bounds = np.unique(np.quantile(pooled, _LEVELS, method="nearest")) if pooled.size else np.zeros(1)
    before = np.searchsorted(here, bounds, "left"), np.searchsorted(there, bounds, "left")
    upto = np.searchsorted(here, bounds, "right"), np.searchsorted(there, bounds, "right")
    hits = {">=": (here.size - before[0], there.size - before[1]), "<=": upto}
    if not feature.learned:  # a learned score says the more, the larger it is
        hits["=="] = upto[0] - before[0], upto[1] - before[1]
    if feature.of_numbers and feature.hard == PLAIN:
        # To be at least the least means to be a number at all, which the type says more plainly.
        for relation, place in ((">=", 0), ("<=", -1)):
            for counts in hits[relation]:
                counts[place] = 0
    return _Tally(feature, bounds, hits, (len(seen[0]), len(seen[1])))


def _best(tally: _Tally, fresh: int, delta: float, luck: float) -> Iterator[Suspicion]:
    """Yield the best event of each relation, each way."""
    for relation, (here, there) in tally.hits.items():
        for forwards in (True, False):
            pair = (here, there) if forwards else (there, here)
            trials = tally.trials if forwards else tally.trials[::-1]
            promised = _shown(pair, trials, delta, luck / math.sqrt(min(trials)) + _DEVIATIONS / math.sqrt(fresh))
            best = int(np.argmax(np.where(pair[0] >= _FEW, promised, -np.inf)))
            event = Event(tally.feature, relation, tally.bounds[best].item())
            if pair[0][best] >= _FEW:
                hope = _shown((pair[0][best], pair[1][best]), trials, delta, -_CAUTIOUS / math.sqrt(min(trials)))
                yield Suspicion(event, forwards, float(promised[best]), float(hope))


def _shown(hits: tuple[Any, Any], trials: tuple[int, int], delta: float, lean: float) -> Any:
    """Return the epsilon that each event shows if both shares are by so much less telling than seen (or more, below 0).

    The arc sine of a share's root has the same error whatever the share is: 1/2 by the root of the runs.
    """
    each = lean / (2 * math.sqrt(2))  # both together lean as far as one alone by the whole
    p, q = (np.arcsin(np.sqrt((count + 0.375) / (size + 0.75))) for count, size in zip(hits, trials, strict=True))
    p, q = (np.sin(np.clip(angle, 1e-9, np.pi / 2)) ** 2 for angle in (p - each, q + each))
    return np.log(np.maximum(p - delta, 1e-18) / q)


def _different(ordered: list[Suspicion], pilot: tuple[Outcomes, Outcomes], most: int) -> list[Suspicion]:
    """Return the first few that do not say the same as one before; of two that do, the plainer one in that place."""
    kept: dict[bytes, Suspicion] = {}
    for place, each in enumerate(ordered):
        if len(kept) == most and place >= _SCANNED * most:
            break
        mark = bytes([each.forwards]) + b"".join(np.packbits(each.event.hits(seen)).tobytes() for seen in pilot)
        same = kept.get(mark)
        if len(kept) < most if same is None else each.event.wording < same.event.wording:
            kept[mark] = each
    return list(kept.values())


def _compared(scores: np.ndarray, relation: str, bound: float) -> np.ndarray:
    if relation == ">=":
        return np.asarray(scores >= bound)
    return np.asarray(scores <= bound if relation == "<=" else scores == bound)
