"""All combinations of levels, one level for each column, and the search for the best that is good enough."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

MOST_NODES = 20_000
_EQUAL = 1e-12  # losses this near are equal, for they are sums of floats in different orders


@dataclass(frozen=True)
class Verdict:
    """What a combination of levels comes to: whether it is good, and what is lost.

    `below` is what it and all combinations of lower levels lose at least on top of what their levels do, by rows that
    must be removed; infinite if none of them can be good.
    """

    levels: tuple[int, ...]
    is_good: bool
    loss: float
    discernibility: int
    below: float

    def is_better_than(self, other: "Verdict | None") -> bool:
        """Tell whether it loses less; or as much, and tells rows apart better; or else has lower first levels."""
        if other is None or self.loss < other.loss - _EQUAL:
            return True
        if self.loss > other.loss + _EQUAL:
            return False
        return (self.discernibility, self.levels) < (other.discernibility, other.levels)


Judge = Callable[[tuple[int, ...]], Verdict]


def nodes_of(losses: Sequence[np.ndarray]) -> int:
    """Return how many combinations there are."""
    return math.prod(len(each) for each in losses)


def best_of_all(losses: Sequence[np.ndarray], judge: Judge) -> Verdict | None:
    """Find the best good combination, given what each level of each column loses if no row is removed.

    Removing rows never makes the loss smaller than that; how much larger at least, each verdict tells for all
    combinations below it. Those that must lose more than a good one need not be judged.

    >>> def judge(levels):
    ...     is_good = sum(levels) >= 2
    ...     return Verdict(levels, is_good, (levels[0] + 2 * levels[1]) / 6, 0, 0 if is_good else math.inf)
    >>> best_of_all([np.array([0, 1, 2]) / 3, np.array([0, 1, 2]) * 2 / 3], judge).levels
    (2, 0)
    """
    nodes = np.stack(np.meshgrid(*(np.arange(len(each)) for each in losses), indexing="ij"), axis=-1)
    nodes = nodes.reshape(-1, len(losses))
    least = np.mean([each[nodes[:, place]] for place, each in enumerate(losses)], axis=0)
    order = np.argsort(least, kind="stable")
    nodes, least = nodes[order], least[order]
    more = np.zeros(len(nodes))
    is_open = np.ones(len(nodes), bool)
    best: Verdict | None = None
    while is_open.any():
        left = np.flatnonzero(is_open)
        place = left[len(left) * 3 // 4]  # a bad one rules out much below it, a good one much that loses more
        verdict = judge(tuple(nodes[place].tolist()))
        is_open[place] = False
        if verdict.below:
            is_below = (nodes <= nodes[place]).all(axis=1)
            more[is_below] = np.maximum(more[is_below], verdict.below)
        if verdict.is_good and verdict.is_better_than(best):
            best = verdict
        is_open &= (more < math.inf) & (least + more <= (math.inf if best is None else best.loss) + _EQUAL)
    return best


def greedy(losses: Sequence[np.ndarray], judge: Judge) -> Verdict | None:
    """Begin with the highest level of every column, and lower one as long as that is good: whichever then loses least.

    >>> def judge(levels):
    ...     return Verdict(levels, sum(levels) >= 2, (levels[0] + 2 * levels[1]) / 6, 0, 0)
    >>> greedy([np.arange(3), np.arange(3)], judge).levels
    (2, 0)
    """
    best = judge(tuple(len(each) - 1 for each in losses))
    if not best.is_good:
        return None
    while True:
        lower = [_lowered(best.levels, place) for place, level in enumerate(best.levels) if level]
        found = None
        for verdict in map(judge, lower):
            if verdict.is_good and verdict.is_better_than(found):
                found = verdict
        if found is None or not found.is_better_than(best):
            return best
        best = found


def _lowered(levels: tuple[int, ...], place: int) -> tuple[int, ...]:
    return (*levels[:place], levels[place] - 1, *levels[place + 1 :])
