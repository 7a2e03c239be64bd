"""Reconstruct the people of a census block from its published tables: the most likely integer counts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.progress import track

TraitPair = tuple[str, str]
SUPPRESSED_COUNTS = (1, 2)  # the possible counts of a suppressed cell, by the published rule
_MAX_ALIKE = 3  # at most this many people with the same traits per block
_TIE_BREAK_WEIGHT = 1e-4  # with exact tables, the prior only decides among solutions that fit them
_RELATIVE_GAP = 0.02  # tolerance of the solver for noisy tables
_BLOCK_SIZE_VARIANCE = 25.0  # prior variance of the size of a block


@dataclass(frozen=True)
class BlockPrior:
    """The attacker's prior: the probability of each combination of traits, and the size of a block.

    `noise_scale` is the scale of the tables' noise, 0 for exact tables.

    >>> prior = BlockPrior(rates=np.array([0.5, 0.5]), expected_size=6, max_size=24, noise_scale=0)
    >>> prior.negative_log_rates.round(2).tolist()
    [-1.1, -1.1]
    """

    rates: np.ndarray
    expected_size: float
    max_size: int
    noise_scale: float

    @property
    def negative_log_rates(self) -> np.ndarray:
        """Minus the logarithm of the expected number of people with each combination."""
        return np.asarray(-np.log(self.expected_size * self.rates))


def reconstruct_blocks(published: dict[TraitPair, np.ndarray], sizes: dict[str, int], prior: BlockPrior) -> np.ndarray:
    """Return the most likely number of people with each combination of traits, blocks × combinations.

    NaN marks a suppressed cell of 1 or 2 people.

    >>> tables = {("sex", "married"): np.array([[[0.2, 1.9], [1.1, 0.0]]])}
    >>> prior = BlockPrior(np.full(4, 1 / 4), expected_size=3, max_size=10, noise_scale=0)
    >>> reconstruct_blocks(tables, {"sex": 2, "married": 2}, prior).tolist()
    [[0, 2, 1, 0]]
    """
    matrix = design_matrix(sizes, list(published))
    cell_values = np.concatenate(
        [np.asarray(table, float).reshape(len(table), -1) for table in published.values()], axis=1
    )
    reconstructed = np.zeros((len(cell_values), matrix.shape[1]), int)
    for counts, block_cells in zip(reconstructed, track(list(cell_values), "blocks"), strict=True):
        # A combination that falls into an empty cell of an exact table does not occur.
        possible = (
            np.flatnonzero(matrix.T @ (block_cells == 0) == 0) if prior.noise_scale == 0 else np.arange(matrix.shape[1])
        )
        counts[possible] = _most_likely_block(
            matrix[:, possible], block_cells, prior, prior.negative_log_rates[possible], len(published)
        )
    return reconstructed


def estimate_noise_scale(published: dict[TraitPair, np.ndarray]) -> float:
    """Estimate the scale of the tables' noise from negative counts: nearly all cells of a block are empty.

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
    """Return the integer counts with the highest posterior under Laplace noise, by integer linear programming.

    A cell that is off by one costs 1/noise; the k-th person with a combination costs its negative log rate plus log(k),
    as for a Poisson count. The objective is multiplied by the noise scale.
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
        raise RuntimeError(f"a block could not be reconstructed: {solution.message}")
    return np.asarray(np.rint(solution.x[:variable_count]).reshape(_MAX_ALIKE, -1).sum(axis=0), int)


def _size_bounds(low: np.ndarray, high: np.ndarray, prior: BlockPrior, tables: int) -> list[float]:
    """Return the minimum and maximum size of a block: each table counts everybody once."""
    # The mean of the tables' totals has this variance; the noisier it is, the more the prior size counts.
    noise_variance = 2 * prior.noise_scale**2 * len(low) / tables**2
    weight = _BLOCK_SIZE_VARIANCE / (_BLOCK_SIZE_VARIANCE + noise_variance)
    sizes = [weight * end.sum() / tables + (1 - weight) * prior.expected_size for end in (low, high)]
    return [float(np.clip(np.rint(size), 0, prior.max_size)) for size in sizes]


def design_matrix(sizes: dict[str, int], pairs: Sequence[TraitPair]) -> Any:
    """Return a sparse matrix, cells × combinations, of which combination of traits counts in which cell.

    >>> design_matrix({"sex": 2, "married": 2}, [("sex", "married")]).toarray().tolist()
    [[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]]
    """
    from scipy import sparse  # noqa: PLC0415 - an extra

    names, shape = list(sizes), tuple(sizes.values())
    trait_values = np.unravel_index(np.arange(np.prod(shape)), shape)
    parts = []
    for first, second in pairs:
        within = (trait_values[names.index(first)], trait_values[names.index(second)])
        row = np.ravel_multi_index(within, (sizes[first], sizes[second]))
        ones = (np.ones(len(row)), (row, np.arange(len(row))))
        parts.append(sparse.csr_array(ones, shape=(sizes[first] * sizes[second], len(row))))
    return sparse.vstack(parts, format="csr")
