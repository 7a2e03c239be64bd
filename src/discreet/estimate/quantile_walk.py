"""Locate a quantile by walking down a tree of noisy counts, with a confidence interval.

Each target has three walkers: for the value and for both ends of its interval. They see only noisy counts, and noise
is drawn only for the nodes they visit. Before each step, the counts of a node's children and the estimate from above
are combined by their variances (a Kalman filter with three states: the rows before the node, in the node, and in
total).
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from discreet.estimate.intervals import Noise
from discreet.kernel.histogram_tree import NodeCounts, NodeQuery
from discreet.kernel.mechanism import Gaussian, Laplace

WALKERS = 3  # for the value, the lower end and the upper end
# Standard deviations from the value to an end. The margin is the wider side, and so covers at 95 %.
_INTERVAL_DEVIATIONS = {Laplace: 1.92, Gaussian: 1.85}
_SIDES = np.array([0.0, 1.0, -1.0])
_END_DEVIATIONS = 2.6  # standard deviations, so that an empty end of the range is rarely mistaken for rows


@dataclass(frozen=True)
class QuantileTarget:
    """The quantile to locate; levels 0 and 1 mean the most extreme value that the noise allows."""

    level: Fraction

    @property
    def end_sign(self) -> int:
        """1 for the minimum, -1 for the maximum, 0 otherwise."""
        return (self.level == 0) - (self.level == 1)


@dataclass(frozen=True)
class QuantileWalk:
    """A walk to several targets in a tree with noisy node counts; `step` is the number of rows per unit of noise."""

    targets: tuple[QuantileTarget, ...]
    noise: Noise
    step: Fraction
    fan: int
    depth: int

    def __call__(self, reveal: NodeQuery, groups: int) -> None:
        """Visit the nodes on the way to the targets."""
        self._walk(reveal, groups)

    def locate(self, looks: tuple[NodeCounts, ...], groups: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the cells of value, lower and upper end (groups × targets × 3), and the noisy rows per group."""
        if not groups:  # stored counts without groups have no shape
            return np.zeros((0, len(self.targets), WALKERS), np.int64), np.zeros(0)
        return self._walk(replay_walk(looks), groups)

    @property
    def noise_stddev(self) -> float:
        """The standard deviation of the noise of a node, in rows."""
        scale = float(self.noise.scale * self.step)
        return scale * math.sqrt(2) if isinstance(self.noise, Laplace) else scale

    @property
    def rows_set_aside(self) -> float:
        """The number of rows to skip at an extreme, because fewer are indistinguishable from noise."""
        return _END_DEVIATIONS * self.noise_stddev * math.sqrt(self.fan + self.depth)

    def _walk(self, reveal: NodeQuery, groups: int) -> tuple[np.ndarray, np.ndarray]:
        state = _WalkState(self, groups)
        for _ in range(self.depth):
            counts = reveal(state.nodes) * float(self.step)
            state.step_down(counts)
        size = len(self.targets)
        return state.nodes.reshape(groups, size, WALKERS), state.mean[:, 0, 2]


class _WalkState:
    """The nodes of the walkers, with mean and covariance of the rows before, in the node, and in total."""

    def __init__(self, walk: QuantileWalk, groups: int) -> None:
        walkers = WALKERS * len(walk.targets)
        self._walk = walk
        self._interval_deviations = _INTERVAL_DEVIATIONS[type(walk.noise)]
        self._sides = np.tile(_SIDES, len(walk.targets))
        self._levels = np.repeat([float(target.level) for target in walk.targets], WALKERS)
        self._rows_set_aside = np.repeat([target.end_sign * walk.rows_set_aside for target in walk.targets], WALKERS)
        self.nodes = np.zeros((groups, walkers), np.int64)
        self.mean = np.zeros((groups, walkers, 3))
        self._covariance = np.zeros((groups, walkers, 3, 3))
        self._first = True

    def step_down(self, counts: np.ndarray) -> None:
        """Update the estimates with the counts of the children, and move to the child that contains the target."""
        fan, variance = counts.shape[2], self._walk.noise_stddev**2
        observed = counts.sum(axis=2)
        self._kalman_update(observed, fan * variance)
        surplus = self.mean[:, :, 1] - observed
        right = np.arange(1, fan + 1) / fan
        below = self.mean[:, :, :1] + np.cumsum(counts, axis=2) + surplus[:, :, None] * right
        children = self._choose_children(below, variance, right)
        self._enter_children(children, counts, below, surplus, variance)

    def _kalman_update(self, observed: np.ndarray, variance: float) -> None:
        if self._first:
            self._first = False
            self.mean[:, :, 1:] = observed[:, :, None]
            self._covariance[:, :, 1:, 1:] = variance
            return
        column = self._covariance[:, :, :, 1].copy()
        gain = column / (column[:, :, 1:2] + variance)
        self.mean += gain * (observed - self.mean[:, :, 1])[:, :, None]
        self._covariance -= gain[:, :, :, None] * column[:, :, None, :]

    def _choose_children(self, below: np.ndarray, variance: float, right: np.ndarray) -> np.ndarray:
        """Return the child of each walker, from the number of edges that are estimated to lie before its target."""
        fan, levels = len(right), self._levels[None, :, None]
        gap = below - levels * self.mean[:, :, 2:] - self._rows_set_aside[None, :, None]
        parts = np.broadcast_arrays(np.ones(1), right[None, None, :], -levels)
        weights = np.stack([np.broadcast_to(part, gap.shape) for part in parts], axis=3)
        deviation = np.einsum("gwji,gwik,gwjk->gwj", weights, self._covariance, weights)
        deviation += variance * fan * right * (1 - right)
        gap += (self._interval_deviations * self._sides)[None, :, None] * np.sqrt(np.maximum(deviation, 0))
        before = gap <= 0
        number = before.sum(axis=2)
        first = np.where(before.all(axis=2), fan, np.argmin(before, axis=2))
        last = fan - np.argmax(before[:, :, ::-1], axis=2)
        last = np.where(before.any(axis=2), last, 0)
        # The ends are the farthest positions consistent with the noise; the value is in the middle.
        side = self._sides[None, :]
        return np.minimum(np.where(side > 0, first, np.where(side < 0, last, number)), fan - 1)

    def _enter_children(
        self, children: np.ndarray, counts: np.ndarray, below: np.ndarray, surplus: np.ndarray, variance: float
    ) -> None:
        fan = counts.shape[2]
        groups, walkers = np.indices(children.shape)
        left = children / fan
        self.mean[:, :, 0] = np.where(children > 0, below[groups, walkers, children - 1], self.mean[:, :, 0])
        self.mean[:, :, 1] = counts[groups, walkers, children] + surplus / fan
        move = np.zeros((*children.shape, 3, 3))
        move[:, :, 0, 0] = move[:, :, 2, 2] = 1.0
        move[:, :, 0, 1], move[:, :, 1, 1] = left, 1 / fan
        self._covariance = move @ self._covariance @ move.transpose(0, 1, 3, 2)
        self._covariance[:, :, 0, 0] += variance * fan * left * (1 - left)
        self._covariance[:, :, 1, 1] += variance * (1 - 1 / fan)
        self._covariance[:, :, 0, 1] -= variance * left
        self._covariance[:, :, 1, 0] -= variance * left
        self.nodes = self.nodes * fan + children


def tree_shape_for(cells: int, power: int) -> tuple[int, int]:
    """Return the branching factor and depth of the tree with the most accurate quantiles.

    The noise variance of a level grows as the number of levels to the `power` (1 for Gaussian noise, 2 for Laplace),
    and about a sixth of a node's children contribute to the error on each level.

    >>> tree_shape_for(65_536, power=1), tree_shape_for(111, power=2)
    ((5, 7), (11, 2))
    """
    shapes = [(_smallest_branching(cells, depth), depth) for depth in range(1, 21)]
    return min((shape for shape in shapes if shape[0] > 1 or shape[1] == 1), key=lambda s: s[0] * s[1] ** (1 + power))


def _smallest_branching(cells: int, depth: int) -> int:
    """Return the smallest branching factor for which a tree of this depth has enough leaves."""
    fan = max(1, int(cells ** (1 / depth)) - 1)
    while fan**depth < cells:
        fan += 1
    return fan


def replay_walk(levels: tuple[NodeCounts, ...]) -> NodeQuery:
    """Return a node query that answers from recorded levels; the walk must visit the same nodes."""
    remaining = iter(levels)

    def query_children(nodes: np.ndarray) -> np.ndarray:
        seen = next(remaining)
        if not np.array_equal(nodes, seen.nodes):
            raise ValueError("the walk visits other nodes than the recorded ones")
        return seen.counts

    return query_children
