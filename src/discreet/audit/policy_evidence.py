"""What the noisy totals of an answer tell about the planted unit, and how far it moved the exact ones.

The audit knows everything but whether the unit is there: both exact answers, and the law of the noise. What it
computes from a release is what an adversary who knows all the others would compute.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from discreet.kernel.mechanism import Gaussian, Laplace
from discreet.kernel.question import Cells, Question, Touched
from discreet.kernel.release import Ask, Key, Noisy, Totals

_CERTAIN = 1000.0  # the log-likelihood of a group that nobody but the planted unit has


@dataclass(frozen=True)
class Move:
    """How far a unit moved one total over all groups, and how far it may: in l1, and in squared l2."""

    l1: float
    l2_squared: float
    allowed_l1: int
    allowed_l2_squared: int

    @property
    def share(self) -> float:
        """Which part of what is allowed was used up; above 1 the noise is too small."""
        return max(self.l1 / self.allowed_l1, math.sqrt(self.l2_squared / self.allowed_l2_squared))


@dataclass(frozen=True)
class _Change:
    """One number of an answer that the unit changed: where it is, what it is without the unit, and by how much."""

    part: int
    total: int
    key: Key
    cell: tuple[int, int] | None  # of a tree: the level and the place there
    without: int
    moved: int


@dataclass(frozen=True)
class Evidence:
    """Judges releases of one question; made by `evidence`."""

    asks: tuple[Ask, ...]
    changes: tuple[_Change, ...]
    own: frozenset[tuple[int, Key]]  # groups that are there only with the unit

    def moves(self) -> list[Move]:
        """Return how far the unit moved each total."""
        found = []
        for part, ask in enumerate(self.asks):
            for place, total in enumerate(ask.question.totals):
                changed = [each.moved for each in self.changes if (each.part, each.total) == (part, place)]
                allowed = ask.question.sensitivity_of(total)
                l1, l2 = float(sum(map(abs, changed))), float(sum(each * each for each in changed))
                found.append(Move(l1, l2, allowed.l1, allowed.l2_squared))
        return found

    def used(self) -> float:
        """Return how much of the price the unit's place uses up: epsilon with Laplace noise, rho with Gaussian."""
        return sum(_loss(self.asks[each.part].noises[each.total], each.moved) for each in self.changes)

    def judge(self, runs: Iterable[tuple[Noisy, ...]]) -> np.ndarray:
        """Return three numbers for each run that may tell of the unit.

        How much the run speaks for the unit, if the noise is as it should be; the number that the unit changes most;
        and how far that is from the same number of another group, which would tell if groups shared their noise.
        """
        first = max(self.changes, key=self._visibility, default=None)
        found = []
        for parts in runs:
            speaks = sum(self._term(change, parts) for change in self.changes) + _CERTAIN * self.owns(parts)
            found.append((speaks, *((0, 0) if first is None else self._closely(first, parts))))
        return np.array(found, float)

    def _closely(self, first: _Change, parts: tuple[Noisy, ...]) -> tuple[int, int]:
        """Return one number of a release, less what it is without the unit, and less the same of another group."""
        seen = _seen(first, parts, self.asks[first.part])
        if seen is None:
            return 0, 0
        noisy = parts[first.part]
        changed = {each.key for each in self.changes if (each.part, each.total) == (first.part, first.total)}
        row = next((row for row, key in enumerate(noisy.keys) if key not in changed), None)
        other = seen if row is None or first.cell is not None else int(noisy.values[row, first.total])
        return seen - first.without, seen - other

    def owns(self, parts: tuple[Noisy, ...]) -> bool:
        """Tell whether a release shows a group that nobody but the planted unit has."""
        return bool(self.own) and any((part, key) in self.own for part, noisy in enumerate(parts) for key in noisy.keys)

    def _visibility(self, change: _Change) -> float:
        return abs(change.moved) / float(self.asks[change.part].noises[change.total].scale)

    def _term(self, change: _Change, parts: tuple[Noisy, ...]) -> float:
        """Return the log-likelihood ratio of one number, given the unit or not."""
        ask = self.asks[change.part]
        seen = _seen(change, parts, ask)
        if seen is None:
            return 0.0
        noise, off, moved = ask.noises[change.total], float(seen - change.without), float(change.moved)
        if isinstance(noise, Laplace):
            return (abs(off) - abs(off - moved)) / float(noise.scale)
        return (2 * off * moved - moved * moved) / (2 * float(noise.scale) ** 2)


def evidence(asks: tuple[Ask, ...], present: Sequence[Totals], absent: Sequence[Totals]) -> Evidence:
    """Compare the exact totals of a question with the unit and without."""
    changes: list[_Change] = []
    own: set[tuple[int, Key]] = set()
    for part, (ask, with_unit, without) in enumerate(zip(asks, present, absent, strict=True)):
        changes += _plain(part, ask.question, with_unit, without)
        for place, total in enumerate(ask.question.totals):
            if isinstance(total, Cells):
                changes += _tree(part, place, total, with_unit, without)
        if ask.cut is not None:
            own |= {(part, key) for key in set(with_unit.keys) - set(without.keys)}
    return Evidence(asks, tuple(changes), frozenset(own))


def _loss(noise: Laplace | Gaussian, moved: int) -> float:
    ratio = abs(moved) / float(noise.scale)
    return ratio if isinstance(noise, Laplace) else ratio * ratio / 2


def _plain(part: int, question: Question, present: Totals, absent: Totals) -> list[_Change]:
    before, after = (dict(zip(each.keys, each.values.tolist(), strict=True)) for each in (absent, present))
    keys = sorted({*before, *after}, key=str)
    found = []
    for place, total in enumerate(question.totals):
        if isinstance(total, Cells):
            continue
        # The number of units that the limits touch is one number, repeated in every group.
        pairs = [(key, [rows[key][place] if key in rows else 0 for rows in (before, after)]) for key in keys]
        if isinstance(total, Touched):
            highest = [max((values[side] for _, values in pairs), default=0) for side in (0, 1)]
            pairs = [(key, highest) for key in keys[:1]]
        found += [_Change(part, place, key, None, a, b - a) for key, (a, b) in pairs if a != b]
    return found


def _tree(part: int, place: int, total: Cells, present: Totals, absent: Totals) -> list[_Change]:
    sides = [_cells(each, place) for each in (absent, present)]
    found = []
    for level in range(total.depth):
        width = total.fan ** (total.depth - level - 1)
        before, after = (_gathered(side, width) for side in sides)
        for key, cell in sorted({*before, *after}, key=str):
            a, b = before.get((key, cell), 0), after.get((key, cell), 0)
            if a != b:
                found.append(_Change(part, place, key, (level, cell), a, b - a))
    return found


def _cells(found: Totals, place: int) -> list[tuple[Key, int, int]]:
    tally = found.tallies.get(place)
    if tally is None:
        return []
    columns = (tally.groups.tolist(), tally.cells.tolist(), tally.weights.tolist())
    return [(found.keys[group], cell, weight) for group, cell, weight in zip(*columns, strict=True)]


def _gathered(cells: list[tuple[Key, int, int]], width: int) -> dict[tuple[Key, int], int]:
    found: dict[tuple[Key, int], int] = {}
    for key, cell, weight in cells:
        found[key, cell // width] = found.get((key, cell // width), 0) + weight
    return found


def _seen(change: _Change, parts: tuple[Noisy, ...], ask: Ask) -> int | None:
    """Return a number as it was released; of a group that stays hidden, the threshold; None if nobody looked at it."""
    noisy, total = parts[change.part], ask.question.totals[change.total]
    if isinstance(total, Touched):
        return int(noisy.values[0, change.total]) if len(noisy.values) else None
    try:
        row = noisy.keys.index(change.key)
    except ValueError:
        return ask.cut if change.total == 0 else None
    if change.cell is None or not isinstance(total, Cells):
        return int(noisy.values[row, change.total])
    trees = [place for place, each in enumerate(ask.question.totals) if isinstance(each, Cells)]
    level, cell = change.cell
    looks = noisy.trees[trees.index(change.total)]
    if level >= len(looks):
        return None
    walkers = np.flatnonzero(looks[level].nodes[row] == cell // total.fan)
    return int(looks[level].counts[row, walkers[0], cell % total.fan]) if len(walkers) else None
