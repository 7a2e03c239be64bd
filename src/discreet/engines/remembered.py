"""Exact totals that were computed before: another question about the same bounded pairs costs the engine nothing.

They stay in the process, as the data do, and are let go when there are too many. What is remembered depends on earlier
questions alone, and not on what they found: else a group that one person owns, shown to nobody, would decide how long a
later answer takes.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace

import numpy as np

from discreet.kernel.question import Cells, Discover, Public, Question, Total
from discreet.kernel.release import Key, Totals
from discreet.kernel.tree import Tally

_DISCOVERED = 400_000  # groups


@dataclass(frozen=True, eq=False)
class _Known:
    """One total of every group that was found with it."""

    keys: list[Key]
    values: np.ndarray
    tally: Tally | None
    size: int


class Remembered:
    """Totals by what they are of; those that were not used for longest go first."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._size = 0
        self._known: OrderedDict[Hashable, _Known] = OrderedDict()

    def totals(self, question: Question, compute: Callable[[Question], Totals]) -> Totals:
        """Return the totals of a question, and compute those that are not known."""
        base = (question.relation, question.by, question.groups, question.limit)
        # To discover groups, the first total counts who has a say, which other counts of units do not.
        discovers = isinstance(question.groups, Discover)
        names = [(base, total, discovers and place == 0) for place, total in enumerate(question.totals)]
        missing = [name for name in dict.fromkeys(names) if name not in self._known]
        fresh: dict[Hashable, _Known] = {}
        if missing:
            asked = list(dict.fromkeys([names[0], *missing] if discovers else missing))
            found = compute(replace(question, totals=tuple(total for _, total, _ in asked)))
            fresh = {name: _part(found, place, _size(question, name[1])) for place, name in enumerate(asked)}
        parts = [fresh.get(name) or self._known[name] for name in names]
        for name in names:
            self._keep(name, fresh.get(name))
        return _together(question, parts)

    def _keep(self, name: Hashable, fresh: _Known | None) -> None:
        if fresh is not None and fresh.size <= self._most // 2:
            self._size += fresh.size - (self._known[name].size if name in self._known else 0)
            self._known[name] = fresh
        if name in self._known:
            self._known.move_to_end(name)
        while self._size > self._most:
            self._size -= self._known.popitem(last=False)[1].size


def _size(question: Question, total: Total) -> int:
    """Return about how many bytes a total is taken to have, from what is public.

    How many groups there are to be discovered is not: with more than are supposed here, more memory is used.
    """
    rows = question.relation.shape.rows
    groups = min(question.groups.size if isinstance(question.groups, Public) else _DISCOVERED, rows)
    cells = min(groups * total.size, rows) if isinstance(total, Cells) else 0
    return 200 + 108 * groups + 24 * cells


def _part(found: Totals, place: int, size: int) -> _Known:
    return _Known(found.keys, np.ascontiguousarray(found.values[:, place]), found.tallies.get(place), size)


def _together(question: Question, parts: list[_Known]) -> Totals:
    """Put totals side by side that were computed at different times, perhaps with different groups."""
    keys = parts[0].keys
    if all(part.keys is keys for part in parts):
        values = np.stack([part.values for part in parts], axis=1)
        return Totals(keys, values, {at: part.tally for at, part in enumerate(parts) if part.tally is not None})
    places: dict[Key, int] = {}
    rows = [np.array([places.setdefault(key, len(places)) for key in part.keys], np.int64) for part in parts]
    values = np.zeros((len(places), len(parts)), np.int64)
    tallies = {}
    for at, (part, row) in enumerate(zip(parts, rows, strict=True)):
        values[row, at] = part.values
        if part.tally is not None:
            assert isinstance(question.totals[at], Cells)
            tallies[at] = replace(part.tally, groups=row[part.tally.groups])
    return Totals(list(places), values, tallies)
