"""Artificial points whose pairs of columns follow noisy tables: post-processing."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from discreet.learn.mixture.marginals import MarginalTables, denoise

_GIBBS_SWEEPS = 3
_EFFECTIVE_COLUMNS = 2.5  # the other columns are not independent: together they are as informative as this many


class PlacedPoints(NamedTuple):
    """Points in the unit cube, (n, d), and their positions in cells, in which clusters of all scales look alike."""

    points: np.ndarray
    positions: np.ndarray


def artificial_points(tables: MarginalTables, count: int, rng: np.random.Generator) -> PlacedPoints:
    """Return points whose marginals follow the tables as far as these exceed the noise."""
    d = tables.n_columns
    masses = denoise(tables, np.ones_like(tables.counts)) + 1e-9
    masses /= masses.sum(axis=1, keepdims=True)
    cells = (
        rng.choice(tables.side, (count, 1), p=masses[0])
        if d == 1
        else _gibbs_sample(_pair_tables(tables, masses), d, count, rng)
    )
    positions = cells + rng.random((count, d))
    lines = zip(positions.T, tables.edges, strict=True)
    points = [np.interp(line, np.arange(tables.side + 1), edges) for line, edges in lines]
    return PlacedPoints(np.column_stack(points), positions)


def _pair_tables(tables: MarginalTables, masses: np.ndarray) -> dict[tuple[int, int], np.ndarray]:
    """Return the table of each ordered pair of columns."""
    square = masses.reshape(-1, tables.side, tables.side)
    forward = dict(zip(tables.marginals, square, strict=True))
    return {
        (i, j): forward[i, j] if (i, j) in forward else forward[j, i].T for i, j in _ordered_pairs(tables.marginals)
    }


def _ordered_pairs(marginals: Sequence[tuple[int, ...]]) -> list[tuple[int, int]]:
    return [(i, j) for i, j in marginals] + [(j, i) for i, j in marginals]


def _gibbs_sample(
    pair_tables: dict[tuple[int, int], np.ndarray], d: int, count: int, rng: np.random.Generator
) -> np.ndarray:
    """Return cells, (count, d), by Gibbs sampling: each column given the others, by its pair tables."""
    partners = {j: [i for i, other in pair_tables if other == j] for j in range(d)}
    column_shares = np.array([np.mean([pair_tables[j, i].sum(axis=1) for i in partners[j]], axis=0) for j in range(d)])
    log_ratios = {
        (i, j): np.log(pair_tables[i, j] / np.outer(column_shares[i], column_shares[j]) + 1e-6) for i, j in pair_tables
    }
    cells = np.zeros((count, d), np.int64)
    sampled_columns: set[int] = set()
    for sweep in range(_GIBBS_SWEEPS):
        for j in rng.permutation(d):
            conditions = [i for i in partners[j] if i in sampled_columns and i != j]
            logs = np.tile(np.log(column_shares[j]), (count, 1))
            for i in conditions:
                logs += min(1.0, _EFFECTIVE_COLUMNS / len(conditions)) * log_ratios[i, j][cells[:, i]]
            cumulative = np.exp(logs - logs.max(axis=1, keepdims=True)).cumsum(axis=1)
            sampled_cells = (cumulative < rng.random((count, 1)) * cumulative[:, -1:]).sum(axis=1)
            cells[:, j] = np.minimum(sampled_cells, column_shares.shape[1] - 1)
            sampled_columns.add(int(j))
        if d == 2 and sweep == 0:
            break  # a single pair is sampled exactly
    return cells
