"""From short prefixes to long ones: of all that could follow the best of a level, the best are kept."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from discreet.local.marks import sorted_into
from discreet.local.prefixes import ROOT, Prefixes, blank, extended, put
from discreet.local.schemes.sketched import Sketched

KEPT = 8  # bits: so many prefixes, 2^8, are kept of each level
_SUSPECTS = 1 << 12  # the best of a level, among which those are found out that only met another's people
_TOGETHER = 1 << 16


class Kept(NamedTuple):
    """The best prefixes of a level, the best first; how many reports support each, of how many; how many were tried."""

    words: np.ndarray
    marks: np.ndarray
    supports: np.ndarray
    people: np.ndarray
    tried: int


def walked(scheme: Sketched, prefixes: Prefixes, counts: np.ndarray, most: int) -> Kept:
    """Return the best whole values."""
    none = np.zeros(1, np.int64)
    kept = Kept(blank(1, prefixes.written.bits), np.array([ROOT]), none, none, 1)
    for number, (start, stop) in enumerate(prefixes.spans):
        level = _Level(scheme, number, *scheme.supports(counts, number))
        last = stop == prefixes.written.bits
        tried = len(kept.marks) << (stop - start)
        parents, bits, marks = level.best(kept.marks, stop - start)
        chosen, supports, people = level.alone(marks, most if last else 1 << KEPT)
        words = kept.words[parents[chosen]]
        put(words, start, stop, bits[chosen])
        kept = Kept(words, marks[chosen], supports, people, max(tried, 1))
    return kept


@dataclass(frozen=True, eq=False)
class _Level:
    """What the reports of one level say: for each function, how many support each place, and how many there are."""

    scheme: Sketched
    number: int
    tables: np.ndarray
    people: np.ndarray

    def places(self, marks: np.ndarray, row: int) -> np.ndarray:
        return sorted_into(marks, self.number * self.scheme.rows + row, self.scheme.bits)

    def best(self, parents: np.ndarray, bits: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the most supported continuations by so many bits: which parent's, which bits, and their marks."""
        bits_tried = np.arange(1 << bits, dtype=np.uint64)
        supports = np.empty((len(parents), 1 << bits), np.int64)
        step = max(1, _TOGETHER >> bits)
        for start in range(0, len(parents), step):
            marks = extended(parents[start : start + step, None], bits_tried)
            supports[start : start + step] = sum(
                table[self.places(marks, row)] for row, table in enumerate(self.tables)
            )
        flat = supports.reshape(-1)
        best = np.argpartition(flat, -_SUSPECTS)[-_SUSPECTS:] if len(flat) > _SUSPECTS else np.arange(len(flat))
        parent, bits_found = best >> bits, (best & ((1 << bits) - 1)).astype(np.uint64)
        return parent, bits_found, extended(parents[parent], bits_found)

    def alone(self, marks: np.ndarray, keep: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return which are kept, and what supports them where no better one was sorted into the same place.

        Whoever meets a frequent value in one row seems frequent, too: that row is no witness for them.
        """
        places = np.stack([self.places(marks, row) for row in range(len(self.tables))], axis=1)
        supports = np.take_along_axis(self.tables.T, places, axis=0)
        asked = np.broadcast_to(self.people, places.shape).copy()
        other = float(self.scheme.rates[1])
        chosen: list[int] = []
        left = np.ones(len(marks), bool)
        scores = _scores(supports, asked, other)
        while len(chosen) < keep and left.any():
            pick = int(np.where(left, scores, -np.inf).argmax())
            if scores[pick] <= 0:
                break
            chosen.append(pick)
            left[pick] = False
            met = (places == places[pick]) & left[:, None]
            supports[met] = asked[met] = 0
            changed = met.any(axis=1)
            scores[changed] = _scores(supports[changed], asked[changed], other)
        return np.array(chosen, np.int64), supports[chosen].sum(axis=1), asked[chosen].sum(axis=1)


def _scores(supports: np.ndarray, asked: np.ndarray, other: float) -> np.ndarray:
    """Return how far each is above chance, as a multiple of the same deviation for all."""
    people = asked.sum(axis=1)
    scores: np.ndarray = (supports.sum(axis=1) - other * people) / np.sqrt(np.maximum(people, 1))
    return scores
