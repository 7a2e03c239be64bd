"""What a user asks of a released table, checked and made into targets."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np

from discreet.anonymity.coding.cells import Cells
from discreet.anonymity.coding.columns import Column
from discreet.anonymity.coding.inputs import Inputs
from discreet.anonymity.generalising.targets import Check, Targets
from discreet.anonymity.labels.tree import Tree
from discreet.anonymity.measuring.closeness import equal_distances, hierarchical_distances, ordered_distances
from discreet.anonymity.measuring.diversity import distinct, entropies, recursive

_DIGITS = 12  # as `measure` rounds, so that it finds what was asked for
_DISTINCT, _ENTROPY, _RECURSIVE = DIVERSITIES = ("distinct", "entropy", "recursive")
_Passes = Callable[[Cells], np.ndarray]


@dataclass(frozen=True)
class Goals:
    """The k, l and t that every class must reach; `diversity` tells how l is counted, recursively with `c`."""

    k: int
    l: float | None = None  # noqa: E741 - what everybody calls it
    t: float | None = None
    diversity: str = _DISTINCT
    c: float | None = None


def targets_of(goals: Goals, given: Inputs, trees: Mapping[str, Tree]) -> Targets:
    """Check what is asked for against the table, and make it targets."""
    _check_k(goals.k, given.rows.count)
    _check_diversity(goals)
    _check_share(goals.t)
    for name, goal in (("l", goals.l), ("t", goals.t)):
        if goal is not None and not given.sensitive:
            raise ValueError(f"{name}: it is about sensitive columns, and none is named. Give sensitive='...'.")
    checks = []
    for column in given.sensitive:
        totals = np.bincount(column.codes, minlength=len(column.values))
        if goals.l is not None:
            if goals.l > len(totals):
                words = f"{column.name[:60]!r} has {len(totals)} different values, fewer than l = {goals.l}"
                raise ValueError(f"l: {words}. Ask for a smaller l.")
            checks.append(Check(column.codes, totals, _diverse(goals), merges=True))
        if goals.t is not None:
            checks.append(_close(goals.t, column, totals, trees.get(column.name)))
    return Targets(int(goals.k), tuple(checks))


def _check_k(k: Any, rows: int) -> None:
    if isinstance(k, bool) or not isinstance(k, Integral):
        raise TypeError(f"k: must be a whole number, not a {type(k).__name__}.")
    if int(k) < 1:
        raise ValueError(f"k: must be at least 1, not {k}.")
    if int(k) > rows:
        raise ValueError(f"k: the table has {rows} rows, fewer than k = {k}. Ask for a smaller k.")


def _check_diversity(goals: Goals) -> None:
    if goals.diversity not in DIVERSITIES:
        raise ValueError(f"diversity: write {', '.join(map(repr, DIVERSITIES))}, not {str(goals.diversity)[:60]!r}.")
    if goals.l is None:
        if goals.diversity != _DISTINCT or goals.c is not None:
            raise ValueError(f"l: give it too, such as l=2, for {goals.diversity} diversity says how it is counted.")
        return
    _check_number(goals.l, "l")
    if goals.l < 1 or (goals.diversity != _ENTROPY and goals.l != int(goals.l)):
        raise ValueError(f"l: must be a whole number of at least 1, not {goals.l}.")
    if (goals.c is not None) != (goals.diversity == _RECURSIVE):
        raise ValueError("c: recursive diversity needs it, such as c=3, and nothing else does.")
    if goals.c is not None:
        _check_number(goals.c, "c")
        if goals.c <= 0:
            raise ValueError(f"c: must be above 0, not {goals.c}.")


def _check_share(t: Any) -> None:
    if t is None:
        return
    _check_number(t, "t")
    if not 0 < t <= 1:
        raise ValueError(f"t: must be above 0 and at most 1, not {t}.")


def _check_number(number: Any, argument: str) -> None:
    if isinstance(number, bool) or not isinstance(number, Real) or not math.isfinite(number):
        raise TypeError(f"{argument}: must be a number, not {str(number)[:60]!r}.")


def _diverse(goals: Goals) -> _Passes:
    least, c = float(goals.l or 1), goals.c
    if goals.diversity == _ENTROPY:
        return lambda cells: np.round(np.exp(entropies(cells)), _DIGITS) >= least
    if c is not None:
        return lambda cells: recursive(cells, int(least)) < float(c)
    return lambda cells: distinct(cells) >= least


def _close(t: float, column: Column, totals: np.ndarray, tree: Tree | None) -> Check:
    if tree is not None:
        levels = list(tree.codes[1:])
        return Check(column.codes, totals, lambda cells: _within(t, hierarchical_distances(cells, levels)), merges=True)
    if column.ordered:
        # The distance of null from numbers is no metric: two close classes may be less close together.
        null = column.null
        return Check(
            column.codes, totals, lambda cells: _within(t, ordered_distances(cells, null)), merges=null is None
        )
    return Check(column.codes, totals, lambda cells: _within(t, equal_distances(cells)), merges=True)


def _within(t: float, distances: np.ndarray) -> np.ndarray:
    return np.asarray(np.round(distances, _DIGITS) <= t)
