"""A cache of exact totals, for questions on the same relation, groups and contribution bounds.

Totals stay within the process, as the data do, and are evicted when there are too many. What is cached depends on
earlier questions alone and not on their results: otherwise a group with one person in it, never released, would
affect how long a later answer takes.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace

import numpy as np

from discreet.kernel.histogram_tree import CellCounts
from discreet.kernel.question import GroupKey, PublicGroups, Question, SelectedGroups
from discreet.kernel.release import EngineTotals
from discreet.kernel.totals import HistogramTree, Total

_ASSUMED_GROUPS = 400_000  # with partition selection, where the number of groups is private


@dataclass(frozen=True, eq=False)
class _CachedTotal:
    """The values of one total, by group."""

    keys: list[GroupKey]
    values: np.ndarray
    cell_counts: CellCounts | None
    byte_size: int


class TotalsCache:
    """Exact totals by relation, groups, bounds and total; the least recently used are evicted first."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._bytes_used = 0
        self._entries: OrderedDict[Hashable, _CachedTotal] = OrderedDict()

    def totals(self, question: Question, compute: Callable[[Question], EngineTotals]) -> EngineTotals:
        """Return the totals of a question, computing those that are not cached.

        Claim: it returns what `compute` would return for the question, and what is cached afterwards depends on the
            questions so far alone, not on their results.
        Proof: a key holds all of the question that a total depends on: the relation, the keys, the groups, the bounds
            and the total. _combine aligns totals by group, and one without a group is 0 there. Entries are stored,
            ordered and evicted by their keys and by _estimated_bytes, which reads the question and not the data.
        Needs: Question, EngineTotals, _combine, _estimated_bytes. The data does not change while the engine is open:
            the engines check it before they ask the cache.
        Checked by: test_cached_totals_equal_those_of_the_reference,
            test_another_question_is_computed_again, test_cache_eviction_does_not_depend_on_the_data
        """
        if isinstance(question.groups, SelectedGroups) and question.groups.shown:  # a later round is not repeated
            return compute(question)
        query_key = (question.relation, question.by, question.groups, question.bounds)
        keys = [(query_key, total) for total in question.totals]
        missing = [key for key in dict.fromkeys(keys) if key not in self._entries]
        fresh: dict[Hashable, _CachedTotal] = {}
        if missing:
            keys_to_compute = list(
                dict.fromkeys([keys[0], *missing] if isinstance(question.groups, SelectedGroups) else missing)
            )
            computed = compute(replace(question, totals=tuple(total for _, total in keys_to_compute)))
            fresh = {
                name: _cached_total(computed, index, _estimated_bytes(question, name[1]))
                for index, name in enumerate(keys_to_compute)
            }
        entries = [fresh.get(name) or self._entries[name] for name in keys]
        for name in keys:
            self._store(name, fresh.get(name))
        return _combine(question, entries)

    def _store(self, key: Hashable, fresh: _CachedTotal | None) -> None:
        if fresh is not None and fresh.byte_size <= self._max_bytes // 2:
            self._bytes_used += fresh.byte_size - (self._entries[key].byte_size if key in self._entries else 0)
            self._entries[key] = fresh
        if key in self._entries:
            self._entries.move_to_end(key)
        while self._bytes_used > self._max_bytes:
            self._bytes_used -= self._entries.popitem(last=False)[1].byte_size


def _estimated_bytes(question: Question, total: Total) -> int:
    """Estimate the size of a total in bytes from public information.

    The number of groups before partition selection is private; if it exceeds the assumed number, more memory is used.
    """
    rows = question.relation.shape.max_rows
    groups = min(question.groups.key_count if isinstance(question.groups, PublicGroups) else _ASSUMED_GROUPS, rows)
    cells = min(groups * total.cell_count, rows) if isinstance(total, HistogramTree) else 0
    return 200 + 108 * groups + 24 * cells


def _cached_total(totals: EngineTotals, index: int, byte_size: int) -> _CachedTotal:
    return _CachedTotal(
        totals.keys, np.ascontiguousarray(totals.values[:, index]), totals.cell_counts.get(index), byte_size
    )


def _combine(question: Question, entries: list[_CachedTotal]) -> EngineTotals:
    """Combine totals that were computed at different times, possibly with different groups."""
    keys = entries[0].keys
    if all(entry.keys is keys for entry in entries):
        values = np.stack([part.values for part in entries], axis=1)
        return EngineTotals(
            keys,
            values,
            {index: part.cell_counts for index, part in enumerate(entries) if part.cell_counts is not None},
        )
    index_by_key: dict[GroupKey, int] = {}
    rows = [
        np.array([index_by_key.setdefault(key, len(index_by_key)) for key in part.keys], np.int64) for part in entries
    ]
    values = np.zeros((len(index_by_key), len(entries)), np.int64)
    cell_counts = {}
    for at, (part, row) in enumerate(zip(entries, rows, strict=True)):
        values[row, at] = part.values
        if part.cell_counts is not None:
            assert isinstance(question.totals[at], HistogramTree)
            cell_counts[at] = replace(part.cell_counts, groups=row[part.cell_counts.groups])
    return EngineTotals(list(index_by_key), values, cell_counts)
