"""The generalisation lattice, one level for each column, and the search for its best feasible node."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

MAX_NODES = 20_000
_TOLERANCE = 1e-12  # losses this near are equal, for they are sums of floats in different orders


@dataclass(frozen=True)
class NodeEvaluation:
    """What a combination of levels comes to: whether it is good, and what is lost.

    `added_loss_below` is what it and all combinations of lower levels lose at least on top of what their levels do, by rows that
    must be removed; infinite if none of them can be good.
    """

    levels: tuple[int, ...]
    is_feasible: bool
    loss: float
    discernibility: int
    added_loss_below: float

    def is_better_than(self, other: "NodeEvaluation | None") -> bool:
        """Tell whether it loses less; or as much, and tells rows apart better; or else has lower first levels."""
        if other is None or self.loss < other.loss - _TOLERANCE:
            return True
        if self.loss > other.loss + _TOLERANCE:
            return False
        return (self.discernibility, self.levels) < (other.discernibility, other.levels)


NodeEvaluator = Callable[[tuple[int, ...]], NodeEvaluation]


def count_nodes(losses: Sequence[np.ndarray]) -> int:
    """Return how many combinations there are."""
    return math.prod(len(level_losses) for level_losses in losses)


def find_optimal_node(losses: Sequence[np.ndarray], evaluate: NodeEvaluator) -> NodeEvaluation | None:
    """Find the best good combination, given what each level of each column loses if no row is removed.

    Removing rows never makes the loss smaller than that; how much larger at least, each verdict tells for all
    combinations below it. Those that must lose more than a good one need not be judged.

    >>> def evaluate(levels):
    ...     is_feasible = sum(levels) >= 2
    ...     return NodeEvaluation(levels, is_feasible, (levels[0] + 2 * levels[1]) / 6, 0, 0 if is_feasible else math.inf)
    >>> find_optimal_node([np.array([0, 1, 2]) / 3, np.array([0, 1, 2]) * 2 / 3], evaluate).levels
    (2, 0)
    """
    nodes = np.stack(np.meshgrid(*(np.arange(len(level_losses)) for level_losses in losses), indexing="ij"), axis=-1)
    nodes = nodes.reshape(-1, len(losses))
    min_loss = np.mean([each[nodes[:, node]] for node, each in enumerate(losses)], axis=0)
    order = np.argsort(min_loss, kind="stable")
    nodes, min_loss = nodes[order], min_loss[order]
    added_loss = np.zeros(len(nodes))
    is_open = np.ones(len(nodes), bool)
    best: NodeEvaluation | None = None
    while is_open.any():
        open_nodes = np.flatnonzero(is_open)
        place = open_nodes[
            len(open_nodes) * 3 // 4
        ]  # a bad one rules out much below it, a good one much that loses more
        evaluation = evaluate(tuple(nodes[place].tolist()))
        is_open[place] = False
        if evaluation.added_loss_below:
            is_below = (nodes <= nodes[place]).all(axis=1)
            added_loss[is_below] = np.maximum(added_loss[is_below], evaluation.added_loss_below)
        if evaluation.is_feasible and evaluation.is_better_than(best):
            best = evaluation
        is_open &= (added_loss < math.inf) & (
            min_loss + added_loss <= (math.inf if best is None else best.loss) + _TOLERANCE
        )
    return best


def find_node_greedily(losses: Sequence[np.ndarray], evaluate: NodeEvaluator) -> NodeEvaluation | None:
    """Begin with the highest level of every column, and lower one as long as that is good: whichever then loses least.

    >>> def evaluate(levels):
    ...     return NodeEvaluation(levels, sum(levels) >= 2, (levels[0] + 2 * levels[1]) / 6, 0, 0)
    >>> find_node_greedily([np.arange(3), np.arange(3)], evaluate).levels
    (2, 0)
    """
    best = evaluate(tuple(len(level_losses) - 1 for level_losses in losses))
    if not best.is_feasible:
        return None
    while True:
        lower_nodes = [_lower_one_level(best.levels, column) for column, level in enumerate(best.levels) if level]
        best_lower = None
        for evaluation in map(evaluate, lower_nodes):
            if evaluation.is_feasible and evaluation.is_better_than(best_lower):
                best_lower = evaluation
        if best_lower is None or not best_lower.is_better_than(best):
            return best
        best = best_lower


def _lower_one_level(levels: tuple[int, ...], column: int) -> tuple[int, ...]:
    return (*levels[:column], levels[column] - 1, *levels[column + 1 :])
