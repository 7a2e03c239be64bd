"""Reconstruct the people of a census block from its published tables: the most likely whole numbers."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.attacks.aggregates.blocks import TraitPair, design_matrix
from discreet.attacks.progress import track

SUPPRESSED_COUNTS = (1, 2)  # what an outsider knows of a cell that is not shown, by the published rule
_MAX_ALIKE = 3  # so many people with the same traits are looked for in a block
_TIE_BREAK_WEIGHT = 1e-4  # exact tables come first: what is likely decides only among the solutions that fit them
_RELATIVE_GAP = 0.02  # how near to the best solution is good enough for noisy tables
_BLOCK_SIZE_VARIANCE = 25.0  # the variance of the size of a block, as an outsider supposes it


@dataclass(frozen=True)
class BlockPrior:
    """What an outsider knows beforehand: how likely each combination of traits is, and how many people a block has.

    `noise_scale` is the scale of the tables' noise; 0 if they have none.

    >>> BlockPrior(rates=np.array([0.5, 0.5]), expected_size=6, max_size=24, noise_scale=0).price.round(2).tolist()
    [-1.1, -1.1]
    """

    rates: np.ndarray
    expected_size: float
    max_size: int
    noise_scale: float

    @property
    def negative_log_rates(self) -> np.ndarray:
        """How unlikely the first person of each combination is, as minus the logarithm of how many are expected."""
        return np.asarray(-np.log(self.expected_size * self.rates))


def reconstruct_blocks(published: dict[TraitPair, np.ndarray], sizes: dict[str, int], prior: BlockPrior) -> np.ndarray:
    """Return how many people of each combination of traits a block most likely has, a row for each block.

    It sees the tables, and knows what everybody knows. NaN stands for a hidden cell of 1 or 2 people.

    >>> block_cells = {("sex", "married"): np.array([[[0.2, 1.9], [1.1, 0.0]]])}
    >>> reconstruct_blocks(block_cells, {"sex": 2, "married": 2}, BlockPrior(np.full(4, 1 / 4), expected_size=3, max_size=10, noise_scale=0)).tolist()
    [[0, 2, 1, 0]]
    """
    matrix = design_matrix(sizes, list(published))
    cell_values = np.concatenate(
        [np.asarray(table, float).reshape(len(table), -1) for table in published.values()], axis=1
    )
    reconstructed = np.zeros((len(cell_values), matrix.shape[1]), int)
    for counts, block_cells in zip(reconstructed, track(list(cell_values), "blocks"), strict=True):
        # A combination that is in an empty cell of an exact table does not occur.
        possible = (
            np.flatnonzero(matrix.T @ (block_cells == 0) == 0) if prior.noise_scale == 0 else np.arange(matrix.shape[1])
        )
        counts[possible] = _most_likely_block(
            matrix[:, possible], block_cells, prior, prior.negative_log_rates[possible], len(published)
        )
    return reconstructed


def estimate_noise_scale(published: dict[TraitPair, np.ndarray]) -> float:
    """Return the scale of the noise that tables have, by their counts below 0: nearly all cells of a block are empty.

    >>> estimate_noise_scale({("sex", "married"): np.array([[[0, 2], [1, 0]]])})
    0.0
    >>> estimate_noise_scale({("sex", "married"): np.array([[[-3, 2], [1, 5]]])})
    1.5
    """
    below = np.concatenate([np.maximum(-np.nan_to_num(table), 0).ravel() for table in published.values()])
    return float(2 * below.mean())


def _most_likely_block(
    matrix: Any, block_cells: np.ndarray, prior: BlockPrior, person_costs: np.ndarray, tables: int
) -> np.ndarray:
    """Return the whole numbers with the highest likelihood under Laplace noise: a linear programme in integers.

    A cell that is off by one costs 1/noise, and the k-th person of a combination costs its price and log(k) more, as if
    their number had a Poisson law. Everything is multiplied by the noise.
    """
    from scipy import sparse  # noqa: PLC0415 - an extra
    from scipy.optimize import Bounds, LinearConstraint, milp  # noqa: PLC0415

    cells, variable_count = matrix.shape[0], matrix.shape[1] * _MAX_ALIKE
    low, high = (np.where(np.isnan(block_cells), end, block_cells) for end in SUPPRESSED_COUNTS)
    variable_costs = np.concatenate([person_costs + np.log(k) for k in range(1, _MAX_ALIKE + 1)])
    deviation, zeros = sparse.eye_array(cells), np.zeros(2 * cells)
    total_row = sparse.csr_array(np.concatenate([np.ones(variable_count), zeros])[None])
    solution: Any = milp(
        np.concatenate([max(prior.noise_scale, _TIE_BREAK_WEIGHT) * variable_costs, zeros + 1]),
        integrality=np.concatenate([np.ones(variable_count), zeros]),
        bounds=Bounds(0, np.concatenate([np.ones(variable_count), zeros + np.inf])),
        constraints=[
            LinearConstraint(sparse.hstack([*[matrix] * _MAX_ALIKE, deviation, -deviation], format="csr"), low, high),
            LinearConstraint(total_row, *_size_bounds(low, high, prior, tables)),
        ],
        options={"mip_rel_gap": _RELATIVE_GAP if prior.noise_scale else 0},
    )
    if solution.x is None:
        raise RuntimeError(f"a block could not be rebuilt: {solution.message}")
    return np.asarray(np.rint(solution.x[:variable_count]).reshape(_MAX_ALIKE, -1).sum(axis=0), int)


def _size_bounds(low: np.ndarray, high: np.ndarray, prior: BlockPrior, tables: int) -> list[float]:
    """Return the least and the most people of a block: each table counts everybody once."""
    # The mean of the tables' totals has this variance; what is usual is worth the more, the noisier they are.
    noise_variance = 2 * prior.noise_scale**2 * len(low) / tables**2
    weight = _BLOCK_SIZE_VARIANCE / (_BLOCK_SIZE_VARIANCE + noise_variance)
    sizes = [weight * end.sum() / tables + (1 - weight) * prior.expected_size for end in (low, high)]
    return [float(np.clip(np.rint(size), 0, prior.max_size)) for size in sizes]
