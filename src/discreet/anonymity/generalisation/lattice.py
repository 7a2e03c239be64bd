"""The generalisation lattice, whose nodes have one level for each column, and the search for the best feasible node."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

MAX_NODES = 20_000
_TOLERANCE = 1e-12  # losses are sums of floats in different orders


@dataclass(frozen=True)
class NodeEvaluation:
    """The feasibility and loss of a node.

    `added_loss_below` is a lower bound on the loss from suppressed rows at this node and all nodes below it, on top of
    the loss of their levels; infinite if none of them can be feasible.
    """

    levels: tuple[int, ...]
    is_feasible: bool
    loss: float
    discernibility: int
    added_loss_below: float

    def is_better_than(self, other: "NodeEvaluation | None") -> bool:
        """Return whether this node has the smaller loss; ties are broken by discernibility, then by levels."""
        if other is None or self.loss < other.loss - _TOLERANCE:
            return True
        if self.loss > other.loss + _TOLERANCE:
            return False
        return (self.discernibility, self.levels) < (other.discernibility, other.levels)


NodeEvaluator = Callable[[tuple[int, ...]], NodeEvaluation]


def count_nodes(losses: Sequence[np.ndarray]) -> int:
    """Return the number of nodes."""
    return math.prod(len(level_losses) for level_losses in losses)


def find_optimal_node(losses: Sequence[np.ndarray], evaluate: NodeEvaluator) -> NodeEvaluation | None:
    """Return the best feasible node, given the loss of each level of each column without suppression.

    Branch and bound: the loss without suppression is a lower bound on the loss of a node, and each evaluation raises
    the bounds of all nodes below it. Nodes whose bound exceeds the best loss are not evaluated.

    >>> def evaluate(levels):
    ...     is_feasible, loss = sum(levels) >= 2, (levels[0] + 2 * levels[1]) / 6
    ...     return NodeEvaluation(levels, is_feasible, loss, 0, 0 if is_feasible else math.inf)
    >>> find_optimal_node([np.array([0, 1, 2]) / 3, np.array([0, 1, 2]) * 2 / 3], evaluate).levels
    (2, 0)
    """
    nodes = np.stack(np.meshgrid(*(np.arange(len(level_losses)) for level_losses in losses), indexing="ij"), axis=-1)
    nodes = nodes.reshape(-1, len(losses))
    min_loss = np.mean([level_losses[nodes[:, column]] for column, level_losses in enumerate(losses)], axis=0)
    order = np.argsort(min_loss, kind="stable")
    nodes, min_loss = nodes[order], min_loss[order]
    added_loss = np.zeros(len(nodes))
    is_open = np.ones(len(nodes), bool)
    best: NodeEvaluation | None = None
    while is_open.any():
        open_nodes = np.flatnonzero(is_open)
        # If this node is infeasible, it excludes many nodes below it; if it is feasible, many with a larger loss.
        index = open_nodes[len(open_nodes) * 3 // 4]
        evaluation = evaluate(tuple(nodes[index].tolist()))
        is_open[index] = False
        if evaluation.added_loss_below:
            is_below = (nodes <= nodes[index]).all(axis=1)
            added_loss[is_below] = np.maximum(added_loss[is_below], evaluation.added_loss_below)
        if evaluation.is_feasible and evaluation.is_better_than(best):
            best = evaluation
        is_open &= (added_loss < math.inf) & (
            min_loss + added_loss <= (math.inf if best is None else best.loss) + _TOLERANCE
        )
    return best


def find_node_greedily(losses: Sequence[np.ndarray], evaluate: NodeEvaluator) -> NodeEvaluation | None:
    """Start at the highest levels, and lower the level with the smallest resulting loss while the node stays feasible.

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
