"""What every class of a released table must satisfy: k, and l and t for each sensitive column."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from discreet.anonymity.coding.cells import Cells
from discreet.anonymity.coding.classes import Classes
from discreet.anonymity.coding.tallies import tally


@dataclass(frozen=True, eq=False)
class Check:
    """A sensitive column's codes, how often each occurs in the table, and which classes are good enough in it.

    `merges` if two classes that pass always pass as one.
    """

    codes: np.ndarray
    totals: np.ndarray
    passes: Callable[[Cells], np.ndarray]
    merges: bool = True


@dataclass(frozen=True, eq=False)
class Targets:
    """The smallest size of a class, and what else each must pass."""

    k: int
    checks: tuple[Check, ...] = ()


def passing(targets: Targets, classes: Classes, rows: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Tell which classes of some rows pass all checks; a row stands for as many as its weight.

    >>> pairs = Check(np.array([0, 1, 0]), np.array([3, 1]), lambda cells: np.diff(np.append(cells.starts, 3)) > 1)
    >>> classes = Classes(np.array([0, 0, 1]), np.array([2, 2]))
    >>> passing(Targets(2, (pairs,)), classes, np.arange(3), weights=np.array([1, 1, 2])).tolist()
    [True, False]
    """
    found = np.ones(len(classes.sizes), bool)
    for check in targets.checks:
        cells = tally(classes, check.codes[rows], check.totals, weights)
        found &= check.passes(_beside_all_others(cells))[: len(found)]
    return found


def _beside_all_others(cells: Cells) -> Cells:
    """Add the rows in none of the classes as one class more: closeness compares with the whole table."""
    others = cells.totals - np.bincount(cells.values, cells.counts, len(cells.totals)).astype(np.int64)
    values = np.flatnonzero(others)
    if not len(values):
        return cells
    return replace(
        cells,
        classes=np.append(cells.classes, np.full(len(values), len(cells.sizes))),
        values=np.append(cells.values, values),
        counts=np.append(cells.counts, others[values]),
        starts=np.append(cells.starts, len(cells.values)),
        sizes=np.append(cells.sizes, others.sum()),
    )
