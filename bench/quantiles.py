"""Quantiles: the exponential mechanism beside the tree of noisy counts, on the same grid and at the same cost.

Rank RMSE of the value with its margin and of a value alone at the same cost, coverage of the 95 % margin, its median
width in cells, and the CPU time of a draw.
"""

import math
import time
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from discreet.estimate.quantile_walk import QuantileTarget, QuantileWalk, tree_shape_for
from discreet.estimate.quantiles import quantile_selection
from discreet.kernel.expr import Column, Type
from discreet.kernel.grid import Grid
from discreet.kernel.histogram_tree import CellCounts, walk_noisy_tree
from discreet.kernel.loss import zcdp_rho
from discreet.kernel.mechanism import Sensitivity
from discreet.kernel.totals import HistogramTree
from discreet.privacy.calibration import gaussian_for, laplace_for

CELLS = 65_536
DELTA = Fraction(1, 10**7)
MEDIAN, THREE = (Fraction(1, 2),), (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4))
CASES = [
    (1_000, "0.1", "pure", MEDIAN),
    (10_000, "1", "pure", MEDIAN),
    (10_000, "1", "zCDP", MEDIAN),
    (10_000, "0.1", "zCDP", MEDIAN),
    (100_000, "0.1", "zCDP", MEDIAN),
    (10_000, "1", "zCDP", THREE),
    (10_000, "0.1", "zCDP", THREE),
    (1_000, "0.1", "pure", THREE),
    (10_000, "1", "pure", THREE),
]


class Measured(NamedTuple):
    """Rank RMSE, coverage and median width of a margin, over all draws and quantiles."""

    rmse: float
    coverage: float
    width: float


def simulated_cells(shape: str, size: int, seed: int = 1) -> np.ndarray:
    """Return the cells of simulated values."""
    rng = np.random.default_rng(seed)
    if shape == "lognormal":
        values = np.exp(rng.normal(10, 1, size)) / 500_000 * CELLS
    elif shape == "uniform":
        values = rng.random(size) * CELLS
    elif shape == "two lumps":
        values = np.where(rng.random(size) < 0.5, CELLS * 0.25, CELLS * 0.75) + rng.normal(0, 20, size)
    else:  # twenty values
        values = rng.integers(0, 20, size) * 3000 + 10
    return np.sort(np.clip(values, 0, CELLS - 1).astype(np.int64))


def cell_counts(cells: np.ndarray) -> CellCounts:
    """Return the counts of one group."""
    distinct, counts = np.unique(cells, return_counts=True)
    return CellCounts(np.zeros(len(distinct), np.int64), distinct, counts.astype(np.int64))


def selected(  # noqa: PLR0913, PLR0917 - a case, and the number of draws
    counts: CellCounts, levels: tuple[Fraction, ...], epsilon: str, kind: str, draws: int, selections: int = 2
) -> np.ndarray:
    """Return cells and widths of the exponential mechanism (draws × quantiles × 2) for an epsilon.

    With one selection per quantile instead of two, the cells are those of values without margins.
    """
    one, shares = Sensitivity(1, 1), selections * len(levels)
    if kind == "pure":
        scale = laplace_for(one, Fraction(epsilon) / (2 * shares)).scale
    else:
        scale = gaussian_for(one, rho=zcdp_rho(Fraction(epsilon), DELTA) / shares).scale
    return quantile_selection(levels, CELLS, scale).select(counts, CELLS, np.zeros(draws, np.int64))


def walked(counts: CellCounts, levels: tuple[Fraction, ...], epsilon: str, kind: str, draws: int) -> np.ndarray:
    """Return cells and widths from trees of noisy counts (draws × quantiles × 2) for an epsilon."""
    fan, depth = tree_shape_for(CELLS, 2 if kind == "pure" else 1)
    tree = HistogramTree(Column("x", Type.INTEGER), Grid(0, CELLS - 1, 1), fan, depth)
    levels_of_tree = Sensitivity(depth, 1)
    if kind == "pure":
        noise = laplace_for(levels_of_tree, epsilon)
    else:
        noise = gaussian_for(levels_of_tree, rho=zcdp_rho(Fraction(epsilon), DELTA))
    walk = QuantileWalk(tuple(map(QuantileTarget, levels)), noise, Fraction(1), fan, depth)
    found = []
    for _ in range(draws):
        ((ends,), _) = walk.locate(walk_noisy_tree(counts, tree, noise, np.zeros(1, np.int64), walk), 1)
        value, low, high = np.minimum(ends, CELLS - 1).T
        found.append(np.stack([value, np.maximum(value - low, high - value)], axis=1))
    return np.array(found)


def rank_errors(cells: np.ndarray, levels: tuple[Fraction, ...], values: np.ndarray) -> np.ndarray:
    """Return the distance of each quantile's rank from the ranks of the released cell (draws × quantiles)."""
    wanted = np.array([float(level) for level in levels]) * len(cells)
    below, upto = (np.searchsorted(cells, values, side) for side in ("left", "right"))
    return np.maximum(0, np.maximum(below - wanted, wanted - upto))


def measured(cells: np.ndarray, levels: tuple[Fraction, ...], found: np.ndarray) -> Measured:
    """Return the accuracy of released cells and widths."""
    truth = cells[[math.ceil(level * len(cells)) - 1 for level in levels]]
    values, widths = found[:, :, 0], found[:, :, 1]
    errors = rank_errors(cells, levels, values)
    covered = np.abs(values - truth) <= widths
    return Measured(float(np.sqrt(np.mean(errors**2))), float(covered.mean()), float(np.median(widths)))


def main(draws: str = "200") -> None:
    """Print the table."""
    number = int(draws)
    print(
        "shape      rows    eps kind quantiles | tree: RMSE cover width | selection: RMSE cover width | alone | ms/draw"
    )
    for shape in ("lognormal", "uniform", "two lumps", "twenty values"):
        for size, epsilon, kind, levels in CASES:
            cells = simulated_cells(shape, size)
            counts = cell_counts(cells)
            tree = measured(cells, levels, walked(counts, levels, epsilon, kind, number))
            start = time.process_time()
            found = selected(counts, levels, epsilon, kind, number)
            each = (time.process_time() - start) / (2 * number * len(levels)) * 1000
            with_margin = measured(cells, levels, found)
            alone = measured(cells, levels, selected(counts, levels, epsilon, kind, number, selections=1)).rmse
            print(
                f"{shape:13} {size:7,} {epsilon:>4} {kind} {len(levels)} | {tree.rmse:6.1f} {tree.coverage:.3f} "
                f"{tree.width:8.1f} | {with_margin.rmse:6.1f} {with_margin.coverage:.3f} {with_margin.width:8.1f} "
                f"| {alone:6.1f} | {each:.2f}",
                flush=True,
            )
