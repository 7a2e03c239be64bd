"""Full-domain generalisation: one level of the hierarchy for each column, the same in all rows; some rows may go."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from discreet.anonymity.coding.classes import Classes, classes_of
from discreet.anonymity.generalising.lattice import MOST_NODES, Verdict, best_of_all, greedy, nodes_of
from discreet.anonymity.generalising.targets import Targets, passing
from discreet.anonymity.labels.tree import Tree


@dataclass(frozen=True, eq=False)
class Generalised:
    """The level of each column, the rows that stay, and how the levels were found."""

    levels: tuple[int, ...]
    kept: np.ndarray
    found: str


@dataclass(frozen=True, eq=False)
class _Table:
    """Rows as codes, column by column, their trees, and how many rows each stands for."""

    codes: tuple[np.ndarray, ...]
    trees: tuple[Tree, ...]
    weights: np.ndarray

    @property
    def count(self) -> int:
        return int(self.weights.sum())

    def lost(self, levels: Sequence[int]) -> np.ndarray:
        """Return what each row loses on these levels."""
        columns = zip(self.trees, levels, self.codes, strict=True)
        return np.asarray(sum(tree.losses[level][codes] for tree, level, codes in columns) / len(levels))


def generalise(
    codes: Sequence[np.ndarray], trees: Sequence[Tree], targets: Targets, weights: np.ndarray, most_removed: int
) -> Generalised | None:
    """Find the levels that lose least if the classes that miss a target are removed, at most so many rows.

    What is lost is the mean over rows and columns of the trees' losses, 1 for a removed row. Of levels that lose the
    same those with the smallest discernibility win. All combinations of levels are searched, up to 20,000 of them;
    beyond that levels are lowered one by one from the top. Classes that are too small are removed first, then those
    that miss l, or t against what is left, until no more do. Every row stands for as many equal ones as its weight.

    >>> ages = Tree((("28", "31", "37"), ("<30", "30-39"), ("*",)), np.array([[0, 1, 2], [0, 1, 1], [0, 0, 0]]),
    ...     np.array([[0, 0, 0], [0, 2 / 3, 2 / 3], [1, 1, 1]]))
    >>> generalise([np.arange(3)], [ages], Targets(2), np.array([2, 1, 2]), most_removed=0).levels
    (1,)
    """
    table = _Table(tuple(codes), tuple(trees), weights)
    losses = [tree.losses[:, each] @ weights / table.count for tree, each in zip(trees, codes, strict=True)]
    count = nodes_of(losses)
    search = best_of_all if count <= MOST_NODES else greedy
    best = search(losses, lambda levels: _verdict(table, levels, targets, most_removed))
    if best is None:
        return None
    classes = _classes(table, best.levels)
    kept = _kept(classes, targets, weights, most_removed)[classes.ids]
    how = "the best" if search is best_of_all else "found by lowering one level at a time, perhaps not the best,"
    return Generalised(best.levels, kept, f"{how} of {count:,} combinations of levels")


def _classes(table: _Table, levels: Sequence[int]) -> Classes:
    """Return the classes of the rows if each column is on a level."""
    columns = zip(table.trees, levels, table.codes, strict=True)
    ids = classes_of([tree.codes[level][codes] for tree, level, codes in columns]).ids
    return Classes(ids, np.bincount(ids, table.weights).astype(np.int64))


def _verdict(table: _Table, levels: tuple[int, ...], targets: Targets, most_removed: int) -> Verdict:
    classes = _classes(table, levels)
    kept = _kept(classes, targets, table.weights, most_removed)
    removed = table.count - int(classes.sizes[kept].sum())
    lost = table.lost(levels)
    # A row of a too small class is in a too small one on all lower levels, and would lose no more there if it stayed.
    is_small = (classes.sizes < targets.k)[classes.ids]
    below = float((is_small * table.weights) @ (1 - lost)) / table.count
    return Verdict(
        levels,
        is_good=removed <= most_removed,
        loss=(float(lost @ (kept[classes.ids] * table.weights)) + removed) / table.count,
        discernibility=int((classes.sizes[kept] ** 2).sum()) + removed * table.count,
        below=math.inf if _is_hopeless(classes, kept, targets, most_removed) else below,
    )


def _is_hopeless(classes: Classes, kept: np.ndarray, targets: Targets, most_removed: int) -> bool:
    """Tell whether lower levels must fail too: the rows of too small classes become only more.

    If nothing may be removed, all other failures stay as well: from good classes only good ones can be merged.
    """
    if classes.sizes[classes.sizes < targets.k].sum() > most_removed:
        return True
    return most_removed == 0 and not kept.all() and all(check.merges for check in targets.checks)


def _kept(classes: Classes, targets: Targets, weights: np.ndarray, most_removed: int) -> np.ndarray:
    """Tell which classes stay; more than may go are missing if that many miss a target."""
    kept = classes.sizes >= targets.k
    least = max(int(classes.sizes.sum()) - most_removed, 1)
    while targets.checks and classes.sizes[kept].sum() >= least:
        rows = np.flatnonzero(kept[classes.ids])
        left = Classes((np.cumsum(kept) - 1)[classes.ids[rows]], classes.sizes[kept])
        is_good = passing(_among(targets, rows, weights[rows]), left, rows, weights[rows])
        if is_good.all():
            break
        kept[np.flatnonzero(kept)[~is_good]] = False
    return kept


def _among(targets: Targets, rows: np.ndarray, weights: np.ndarray) -> Targets:
    """Compare with the rows that stay instead of the whole table."""
    checks = [
        replace(check, totals=np.bincount(check.codes[rows], weights, len(check.totals)).astype(np.int64))
        for check in targets.checks
    ]
    return replace(targets, checks=tuple(checks))
