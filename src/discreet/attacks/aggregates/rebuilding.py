"""The people of a block from its published tables: the likeliest whole numbers."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.attacks.aggregates.blocks import Pair, design
from discreet.attacks.progress import track

HIDDEN = (1, 2)  # what an outsider knows of a cell that is not shown, by the published rule
_ALIKE = 3  # so many people with the same traits are looked for in a block
_TIE = 1e-4  # exact tables come first: what is likely decides only among the solutions that fit them
_GAP = 0.02  # how near to the best solution is good enough for noisy tables
_SIZES_VARY = 25.0  # the variance of the size of a block, as an outsider supposes it


@dataclass(frozen=True)
class Knowledge:
    """What an outsider knows beforehand: how likely each combination of traits is, and how many people a block has.

    `noise` is the scale of the tables' noise; 0 if they have none.

    >>> Knowledge(rates=np.array([0.5, 0.5]), usual=6, most=24, noise=0).price.round(2).tolist()
    [-1.1, -1.1]
    """

    rates: np.ndarray
    usual: float
    most: int
    noise: float

    @property
    def price(self) -> np.ndarray:
        """How unlikely the first person of each combination is, as minus the logarithm of how many are expected."""
        return np.asarray(-np.log(self.usual * self.rates))


def rebuild(published: dict[Pair, np.ndarray], sizes: dict[str, int], known: Knowledge) -> np.ndarray:
    """Return how many people of each combination of traits a block most likely has, a row for each block.

    It sees the tables, and knows what everybody knows. NaN stands for a hidden cell of 1 or 2 people.

    >>> seen = {("sex", "married"): np.array([[[0.2, 1.9], [1.1, 0.0]]])}
    >>> rebuild(seen, {"sex": 2, "married": 2}, Knowledge(np.full(4, 1 / 4), usual=3, most=10, noise=0)).tolist()
    [[0, 2, 1, 0]]
    """
    matrix = design(sizes, list(published))
    shown = np.concatenate([np.asarray(table, float).reshape(len(table), -1) for table in published.values()], axis=1)
    found = np.zeros((len(shown), matrix.shape[1]), int)
    for counts, seen in zip(found, track(list(shown), "blocks"), strict=True):
        # A combination that is in an empty cell of an exact table does not occur.
        possible = np.flatnonzero(matrix.T @ (seen == 0) == 0) if known.noise == 0 else np.arange(matrix.shape[1])
        counts[possible] = _likeliest(matrix[:, possible], seen, known, known.price[possible], len(published))
    return found


def noise_in(published: dict[Pair, np.ndarray]) -> float:
    """Return the scale of the noise that tables have, by their counts below 0: nearly all cells of a block are empty.

    >>> noise_in({("sex", "married"): np.array([[[0, 2], [1, 0]]])})
    0.0
    >>> noise_in({("sex", "married"): np.array([[[-3, 2], [1, 5]]])})
    1.5
    """
    below = np.concatenate([np.maximum(-np.nan_to_num(table), 0).ravel() for table in published.values()])
    return float(2 * below.mean())


def _likeliest(matrix: Any, seen: np.ndarray, known: Knowledge, price: np.ndarray, tables: int) -> np.ndarray:
    """Return the whole numbers with the highest likelihood under Laplace noise: a linear programme in integers.

    A cell that is off by one costs 1/noise, and the k-th person of a combination costs its price and log(k) more, as if
    their number had a Poisson law. Everything is multiplied by the noise.
    """
    from scipy import sparse  # noqa: PLC0415 - an extra
    from scipy.optimize import Bounds, LinearConstraint, milp  # noqa: PLC0415

    cells, places = matrix.shape[0], matrix.shape[1] * _ALIKE
    low, high = (np.where(np.isnan(seen), end, seen) for end in HIDDEN)
    each = np.concatenate([price + np.log(k) for k in range(1, _ALIKE + 1)])
    off, nobody = sparse.eye_array(cells), np.zeros(2 * cells)
    everybody = sparse.csr_array(np.concatenate([np.ones(places), nobody])[None])
    found: Any = milp(
        np.concatenate([max(known.noise, _TIE) * each, nobody + 1]),
        integrality=np.concatenate([np.ones(places), nobody]),
        bounds=Bounds(0, np.concatenate([np.ones(places), nobody + np.inf])),
        constraints=[
            LinearConstraint(sparse.hstack([*[matrix] * _ALIKE, off, -off], format="csr"), low, high),
            LinearConstraint(everybody, *_total(low, high, known, tables)),
        ],
        options={"mip_rel_gap": _GAP if known.noise else 0},
    )
    if found.x is None:
        raise RuntimeError(f"a block could not be rebuilt: {found.message}")
    return np.asarray(np.rint(found.x[:places]).reshape(_ALIKE, -1).sum(axis=0), int)


def _total(low: np.ndarray, high: np.ndarray, known: Knowledge, tables: int) -> list[float]:
    """Return the least and the most people of a block: each table counts everybody once."""
    # The mean of the tables' totals has this variance; what is usual is worth the more, the noisier they are.
    doubt = 2 * known.noise**2 * len(low) / tables**2
    weight = _SIZES_VARY / (_SIZES_VARY + doubt)
    sizes = [weight * end.sum() / tables + (1 - weight) * known.usual for end in (low, high)]
    return [float(np.clip(np.rint(size), 0, known.most)) for size in sizes]
