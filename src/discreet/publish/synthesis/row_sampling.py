"""Draws rows from a graphical model, clique by clique, by systematic draws: with little randomness of their own."""

import math

import numpy as np

from discreet.publish.synthesis.graphical_model import GraphicalModel


def sample_rows(model: GraphicalModel, count: int, generator: np.random.Generator) -> np.ndarray:
    """Return a row of codes for each of `count` synthetic rows.

    Rows that agree in a clique's separator are spread over its other columns by systematic draws: each cell gets
    its expected share of them, rounded up or down.
    """
    rows = np.zeros((count, len(model.sizes)), dtype=np.int64)
    for clique, separator, conditional in zip(
        model.tree.cliques, model.tree.separators, model.conditionals, strict=True
    ):
        others = tuple(column for column in clique if column not in separator)
        sizes = [model.sizes[column] for column in (*separator, *others)]
        groups = _cell_numbers(rows[:, list(separator)], sizes[: len(separator)])
        n_groups = math.prod(sizes[: len(separator)])
        shares = conditional.transpose([clique.index(column) for column in (*separator, *others)])
        drawn = _systematic_draws(shares.reshape(n_groups, -1), np.bincount(groups, minlength=n_groups), generator)
        order = np.lexsort((generator.random(count), groups))
        rows[order[:, np.newaxis], list(others)] = np.stack(np.unravel_index(drawn, sizes[len(separator) :]), axis=1)
    return rows


def _cell_numbers(codes: np.ndarray, sizes: list[int]) -> np.ndarray:
    if not sizes:
        return np.zeros(len(codes), dtype=np.int64)
    return np.asarray(np.ravel_multi_index(tuple(codes.T), sizes))


def _systematic_draws(shares: np.ndarray, counts: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """Return a cell for each row, group by group: of `counts` rows in a group, a cell gets its share up to one row."""
    present = np.flatnonzero(counts)
    ends = np.cumsum(shares[present], axis=1)
    ends *= counts[present, np.newaxis] / ends[:, -1:]
    ticks = np.floor(ends + generator.random((len(present), 1))).astype(np.int64)
    ticks = np.minimum(ticks, counts[present, np.newaxis])  # the offset is below one: only rounding errors are
    ticks[:, -1] = counts[present]  # corrected
    cells = np.tile(np.arange(shares.shape[1]), len(present))
    return np.repeat(cells, np.diff(ticks, axis=1, prepend=0).ravel())
