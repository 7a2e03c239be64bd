"""Noisy counts in a tree of cells, drawn where somebody looks: from the root down, one level at a time."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from discreet.kernel.mechanism import Gaussian, Laplace
from discreet.kernel.totals import Cells

Reveal = Callable[[np.ndarray], np.ndarray]
Walk = Callable[[Reveal, int], None]  # given how to look and the number of groups; it chooses where


@dataclass(frozen=True, eq=False)
class Tally:
    """What an engine found of one total: the group, the cell and the weight of everything that is not zero."""

    groups: np.ndarray
    cells: np.ndarray
    weights: np.ndarray

    def __post_init__(self) -> None:
        for column in (self.groups, self.cells, self.weights):
            if type(column) is not np.ndarray or column.dtype != np.int64 or column.shape != self.groups.shape:
                raise TypeError("a tally is three columns of int64, of one length")


@dataclass(frozen=True, eq=False)
class Look:
    """One level as it was seen: some nodes of each group (groups × walkers), and their children's noisy weights."""

    nodes: np.ndarray
    counts: np.ndarray  # groups × walkers × fan


def reveal(tally: Tally, total: Cells, noise: Laplace | Gaussian, groups: np.ndarray, walk: Walk) -> tuple[Look, ...]:
    """Let a walk look at the noisy weights of the children of nodes that it chooses, level by level.

    Claim: what the walk and the caller see is a function of the tree in which every node of every group and level has
        independent noise, whose sensitivity is that of Question.sensitivity_of.
    Proof: noise that nobody looks at need not be drawn. A level is drawn once, in the order of the levels, with one
        draw for a node however often it is named: it cannot be averaged away. The walk has nothing but these numbers.
    Needs: Additive.perturb, Question.sensitivity_of.
    Checked by: test_a_node_has_one_noise_however_often_it_is_named, test_a_level_cannot_be_drawn_twice,
        test_the_law_of_a_tree_on_neighbours_stays_within_its_loss
    Seal: 2fdc4cda66ca
    """
    size, looks = total.fan**total.depth, list[Look]()
    codes = tally.groups * size + tally.cells
    order = np.argsort(codes)
    codes, below = codes[order], np.concatenate([[0], np.cumsum(tally.weights[order])])

    def look(nodes: np.ndarray) -> np.ndarray:
        level = len(looks)
        top = total.fan**level
        if level == total.depth or nodes.shape[:1] != groups.shape or nodes.ndim != 2 or nodes.dtype != np.int64:
            raise ValueError("nodes must be int64, a row for each group, and a level is seen once")
        if nodes.size and not 0 <= nodes.min() <= nodes.max() < top:
            raise ValueError(f"nodes of level {level} are from 0 to {top - 1}")
        asked, inverse = np.unique(np.arange(len(groups))[:, None] * top + nodes, return_inverse=True)
        first = groups[asked // top] * size + (asked % top) * (size // top)
        edges = first[:, None] + np.arange(total.fan + 1) * (size // top // total.fan)
        exact = np.diff(below[np.searchsorted(codes, edges)], axis=1)
        drawn = noise.perturb(np.ascontiguousarray(exact.reshape(-1))).reshape(exact.shape)
        counts = drawn[inverse.reshape(nodes.shape)]
        looks.append(Look(nodes.copy(), counts))
        return counts.copy()

    walk(look, len(groups))
    return tuple(looks)


def replay(looks: tuple[Look, ...]) -> Reveal:
    """Return what was seen, level by level, to a walk that goes the same way again."""
    left = iter(looks)

    def look(nodes: np.ndarray) -> np.ndarray:
        seen = next(left)
        if not np.array_equal(nodes, seen.nodes):
            raise ValueError("the walk goes another way than it did")
        return seen.counts

    return look
