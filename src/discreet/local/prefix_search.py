"""The server's search for frequent prefixes: extend the best of a level, and keep the best of the next."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from discreet.local.frequency_oracles.sketch_scheme import SketchScheme
from discreet.local.prefixes import ROOT_HASH, Prefixes, extend_hashes, write_bits, zero_words
from discreet.local.value_hashes import hash_to_position

KEPT_BITS = 8  # 2^8 prefixes are kept at each level
_MAX_CANDIDATES = 1 << 12  # at each level, before prefixes that only collide with frequent ones are removed
_BLOCK_SIZE = 1 << 16


class FrequentPrefixes(NamedTuple):
    """The most frequent prefixes of a level, in descending order, with their support and the number of reports.

    `tried` is the number of candidates at this level.
    """

    words: np.ndarray
    hashes: np.ndarray
    supports: np.ndarray
    people: np.ndarray
    tried: int


def search_prefixes(scheme: SketchScheme, prefixes: Prefixes, counts: np.ndarray, max_values: int) -> FrequentPrefixes:
    """Return the most frequent whole values."""
    zero = np.zeros(1, np.int64)
    best_prefixes = FrequentPrefixes(zero_words(1, prefixes.encoding.bits), np.array([ROOT_HASH]), zero, zero, 1)
    for number, (start, stop) in enumerate(prefixes.bit_ranges):
        level = _SketchLevel(scheme, number, *scheme.support_counts(counts, number))
        last = stop == prefixes.encoding.bits
        tried = len(best_prefixes.hashes) << (stop - start)
        parents, bits, hashes = level.best_continuations(best_prefixes.hashes, stop - start)
        selected, supports, people = level.select_without_collisions(hashes, max_values if last else 1 << KEPT_BITS)
        words = best_prefixes.words[parents[selected]]
        write_bits(words, start, stop, bits[selected])
        best_prefixes = FrequentPrefixes(words, hashes[selected], supports, people, max(tried, 1))
    return best_prefixes


@dataclass(frozen=True, eq=False)
class _SketchLevel:
    """The reports of one level: for each hash function, the support of each position, and the number of reports."""

    scheme: SketchScheme
    number: int
    tables: np.ndarray
    people: np.ndarray

    def positions(self, hashes: np.ndarray, row: int) -> np.ndarray:
        return hash_to_position(hashes, self.number * self.scheme.rows + row, self.scheme.bits)

    def best_continuations(self, parents: np.ndarray, bits: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the continuations by `bits` bits with the most support: their parents, bits and hashes."""
        bits_tried = np.arange(1 << bits, dtype=np.uint64)
        supports = np.empty((len(parents), 1 << bits), np.int64)
        step = max(1, _BLOCK_SIZE >> bits)
        for start in range(0, len(parents), step):
            hashes = extend_hashes(parents[start : start + step, None], bits_tried)
            supports[start : start + step] = sum(
                table[self.positions(hashes, row)] for row, table in enumerate(self.tables)
            )
        flat = supports.reshape(-1)
        best = (
            np.argpartition(flat, -_MAX_CANDIDATES)[-_MAX_CANDIDATES:]
            if len(flat) > _MAX_CANDIDATES
            else np.arange(len(flat))
        )
        parent, best_bits = best >> bits, (best & ((1 << bits) - 1)).astype(np.uint64)
        return parent, best_bits, extend_hashes(parents[parent], best_bits)

    def select_without_collisions(self, hashes: np.ndarray, keep: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the selected candidates, their support and number of reports, without rows that collide.

        A value that shares a position with a more frequent one in some row seems frequent too, so that row is ignored.
        """
        positions = np.stack([self.positions(hashes, row) for row in range(len(self.tables))], axis=1)
        supports = np.take_along_axis(self.tables.T, positions, axis=0)
        report_counts = np.broadcast_to(self.people, positions.shape).copy()
        other = float(self.scheme.rates[1])
        selected: list[int] = []
        is_candidate = np.ones(len(hashes), bool)
        scores = _support_scores(supports, report_counts, other)
        while len(selected) < keep and is_candidate.any():
            pick = int(np.where(is_candidate, scores, -np.inf).argmax())
            if scores[pick] <= 0:
                break
            selected.append(pick)
            is_candidate[pick] = False
            collides = (positions == positions[pick]) & is_candidate[:, None]
            supports[collides] = report_counts[collides] = 0
            changed = collides.any(axis=1)
            scores[changed] = _support_scores(supports[changed], report_counts[changed], other)
        return np.array(selected, np.int64), supports[selected].sum(axis=1), report_counts[selected].sum(axis=1)


def _support_scores(supports: np.ndarray, report_counts: np.ndarray, other: float) -> np.ndarray:
    """Return the excess of each support over its expectation by chance, divided by the square root of the reports."""
    people = report_counts.sum(axis=1)
    scores: np.ndarray = (supports.sum(axis=1) - other * people) / np.sqrt(np.maximum(people, 1))
    return scores
