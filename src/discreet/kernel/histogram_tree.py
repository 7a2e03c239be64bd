"""Noisy counts in a histogram tree, drawn level by level for the nodes that a walk visits."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from discreet.kernel.errors import require
from discreet.kernel.mechanism import Gaussian, Laplace
from discreet.kernel.totals import HistogramTree

NodeQuery = Callable[[np.ndarray], np.ndarray]
TreeWalk = Callable[[NodeQuery, int], None]  # gets the node query and the number of groups, and chooses the nodes


@dataclass(frozen=True, eq=False)
class CellCounts:
    """The non-zero cells of one histogram tree: group, cell and weight."""

    groups: np.ndarray
    cells: np.ndarray
    weights: np.ndarray

    def __post_init__(self) -> None:
        for column in (self.groups, self.cells, self.weights):
            if type(column) is not np.ndarray or column.dtype != np.int64 or column.shape != self.groups.shape:
                raise TypeError("groups, cells and weights must be int64 arrays of the same length")


@dataclass(frozen=True, eq=False)
class NodeCounts:
    """One visited level: nodes of each group (groups × walkers), and the noisy weights of their children."""

    nodes: np.ndarray
    counts: np.ndarray  # groups × walkers × branching


def walk_noisy_tree(
    cell_counts: CellCounts, tree: HistogramTree, noise: Laplace | Gaussian, groups: np.ndarray, walk: TreeWalk
) -> tuple[NodeCounts, ...]:
    """Run a walk that queries, level by level, the noisy weights of the children of nodes that it chooses.

    Claim: the walk and the caller see a function of the tree in which every node of every group and level has
        independent noise; the sensitivity of that tree is that of Question.sensitivity_of.
    Proof: noise that is never read need not be drawn. Each level is drawn once, in the order of the levels, with one
        draw per node however often it is named, so the noise cannot be averaged out. The walk gets only these numbers.
    Needs: Laplace.perturb, Gaussian.perturb, Question.sensitivity_of.
    Checked by: test_a_node_has_one_noise_however_often_it_is_named, test_a_level_cannot_be_drawn_twice,
        test_nodes_have_the_weights_of_the_cells_below_them, test_nodes_that_do_not_exist_are_refused,
        test_the_distribution_of_a_tree_on_neighbours_stays_within_its_loss
    """
    size, levels = tree.branching**tree.depth, list[NodeCounts]()
    codes = cell_counts.groups * size + cell_counts.cells
    order = np.argsort(codes)
    codes, cumulative = codes[order], np.concatenate([[0], np.cumsum(cell_counts.weights[order])])

    def query_children(nodes: np.ndarray) -> np.ndarray:
        level = len(levels)
        top = tree.branching**level
        require(
            level < tree.depth and nodes.shape[:1] == groups.shape and nodes.ndim == 2 and nodes.dtype == np.int64,
            "nodes must be int64 with one row per group, and each level can be queried only once",
        )
        require(
            not nodes.size or 0 <= nodes.min() <= nodes.max() < top,
            f"nodes of level {level} must be between 0 and {top - 1}",
        )
        distinct_nodes, inverse = np.unique(np.arange(len(groups))[:, None] * top + nodes, return_inverse=True)
        first = groups[distinct_nodes // top] * size + (distinct_nodes % top) * (size // top)
        edges = first[:, None] + np.arange(tree.branching + 1) * (size // top // tree.branching)
        exact = np.diff(cumulative[np.searchsorted(codes, edges)], axis=1)
        noisy = noise.perturb(np.ascontiguousarray(exact.reshape(-1))).reshape(exact.shape)
        counts = noisy[inverse.reshape(nodes.shape)]
        levels.append(NodeCounts(nodes.copy(), counts))
        return counts.copy()

    walk(query_children, len(groups))
    return tuple(levels)
