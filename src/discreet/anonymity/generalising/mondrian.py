"""Mondrian (LeFevre, DeWitt and Ramakrishnan 2006): cut the table in two, and each part again, while all are good.

All parts of a round are cut at once, so that a table needs some twenty passes over numpy arrays and no loop over its
parts. A part is cut along the few axes that gain most by themselves, and the best cut stays: the one after which the
two parts lose least along all axes together. Rows that are equal in all quasi-identifying columns stay together.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from discreet.anonymity.coding.classes import Classes
from discreet.anonymity.coding.tallies import tally
from discreet.anonymity.generalising.axes import Axis
from discreet.anonymity.generalising.cuts import Run, Subset, cut
from discreet.anonymity.generalising.spreads import Spread, spread_of
from discreet.anonymity.generalising.targets import Targets, passing

_TRIED = 3  # axes for each part; more of them improve little


@dataclass(frozen=True, eq=False)
class _Parts:
    """The rows of the first part, those of the second, and so on; which part each is in, and what each part loses.

    A part has as many rows here as its length, and they stand for as many of the table as its size.
    """

    rows: np.ndarray
    weights: np.ndarray
    spread: Spread
    lengths: np.ndarray
    of: Classes
    losses: np.ndarray


@dataclass(frozen=True, eq=False)
class _Halves:
    """All left halves of some parts and then all right ones: the places of their rows, their lengths and sizes."""

    places: np.ndarray
    lengths: np.ndarray
    sizes: np.ndarray


@dataclass(frozen=True, eq=False)
class _Choice:
    """What cutting each part gains (0: it is not cut), what all left and all right halves lose, which rows go right."""

    gain: np.ndarray
    losses: np.ndarray
    right: np.ndarray


def partition(axes: Sequence[Axis], targets: Targets, weights: np.ndarray) -> Classes:
    """Put rows into classes that satisfy the targets, provided that all together do.

    Every row stands for as many equal ones as its weight.

    >>> from discreet.anonymity.generalising.axes import Line
    >>> ages = Axis(np.array([0, 3, 1, 2]), np.array([2, 1, 1, 1]), Line(np.array([0, 0.1, 0.9, 1])))
    >>> found = partition([ages], Targets(2), weights=np.array([2, 1, 1, 1]))
    >>> found.ids.tolist(), found.sizes.tolist()
    ([0, 1, 0, 1], [3, 2])
    """
    parts = _whole(axes, weights)
    ids, sizes = np.empty_like(parts.rows), []
    known = 0
    while len(parts.rows):
        choice = _choice(parts, axes, targets)
        halves = _in_halves(parts, choice.right)
        # A half of fewer than 2k rows cannot be cut again, and one whose rows are all equal need not be.
        is_final = np.tile(choice.gain == 0, 2) | (halves.sizes < 2 * targets.k) | (choice.losses == 0)
        is_done = np.repeat(is_final, halves.lengths)
        ended = np.flatnonzero(is_final & (halves.sizes > 0))
        numbers = np.arange(known, known + len(ended))
        ids[parts.rows[halves.places[is_done]]] = np.repeat(numbers, halves.lengths[ended])
        sizes.append(halves.sizes[ended])
        known += len(ended)
        parts = _left(parts, halves, choice, ~is_final)
    return Classes(ids, np.concatenate(sizes))


def _whole(axes: Sequence[Axis], weights: np.ndarray) -> _Parts:
    rows = np.arange(len(weights))
    spread = spread_of(axes)
    one = Classes(np.zeros_like(rows), np.array([weights.sum()]))
    return _Parts(rows, weights, spread, np.array([len(rows)]), one, spread.losses(rows, np.array([0])))


def _left(parts: _Parts, halves: _Halves, choice: _Choice, stays: np.ndarray) -> _Parts:
    """Make parts of the halves that can be cut again."""
    places = halves.places[np.repeat(stays, halves.lengths)]
    lengths = halves.lengths[stays]
    return _Parts(
        rows=parts.rows[places],
        weights=parts.weights[places],
        spread=parts.spread.taken(places),
        lengths=lengths,
        of=Classes(np.repeat(np.arange(len(lengths)), lengths), halves.sizes[stays]),
        losses=choice.losses[stays],
    )


def _choice(parts: _Parts, axes: Sequence[Axis], targets: Targets) -> _Choice:
    """Choose for every part the best of its first cuts, or else the first that is good."""
    cuts = [
        cut(axis.shape, tally(parts.of, codes, axis.totals, parts.weights), targets.k)
        for axis, codes in zip(axes, parts.spread.codes, strict=True)
    ]
    gains = np.stack([each.gain for each in cuts])
    order = np.argsort(-gains, axis=0, kind="stable")
    many = len(parts.lengths)
    best = _Choice(np.zeros(many), np.zeros(2 * many), np.zeros(len(parts.rows), bool))
    for turn, axis in enumerate(order):
        is_tried = (gains[axis, np.arange(many)] > 0) & ((best.gain == 0) | (turn < _TRIED))
        if not is_tried.any():
            break
        tried = _tried(parts, _sides(parts, cuts, np.where(is_tried, axis, -1)), is_tried, targets)
        is_better = tried.gain > best.gain
        best = _Choice(
            np.where(is_better, tried.gain, best.gain),
            np.where(np.tile(is_better, 2), tried.losses, best.losses),
            np.where(is_better[parts.of.ids], tried.right, best.right),
        )
    return best


def _tried(parts: _Parts, right: np.ndarray, is_tried: np.ndarray, targets: Targets) -> _Choice:
    """Cut some parts in two, and see what that gains along all axes; nothing where a half is not good."""
    halves = _in_halves(parts, right)
    twice = np.tile(is_tried, 2)
    places = halves.places if is_tried.all() else halves.places[np.repeat(twice, halves.lengths)]
    lengths, sizes = halves.lengths[twice], halves.sizes[twice]
    lost = parts.spread.losses(places, np.cumsum(lengths) - lengths)
    gained = parts.of.sizes[is_tried] * parts.losses[is_tried] - (sizes * lost).reshape(2, -1).sum(axis=0)
    if targets.checks:
        groups = Classes(np.repeat(np.arange(len(sizes)), lengths), sizes)
        is_good = passing(targets, groups, parts.rows[places], parts.weights[places])
        gained[~is_good.reshape(2, -1).all(axis=0)] = 0
    gain, losses = np.zeros(len(is_tried)), np.zeros(len(twice))
    gain[is_tried], losses[twice] = gained, lost
    return _Choice(gain, losses, right)


def _sides(parts: _Parts, cuts: Sequence[Run | Subset], axis: np.ndarray) -> np.ndarray:
    """Tell which rows go right, if each part is cut along its axis; those of a part with the axis -1 stay left."""
    right = np.zeros(len(parts.rows), bool)
    chosen = axis.astype(np.int16)[parts.of.ids]
    for place, (each, codes) in enumerate(zip(cuts, parts.spread.codes, strict=True)):
        mine = np.flatnonzero(chosen == place)
        if len(mine):
            right[mine] = each.goes_right(parts.of.ids[mine], codes[mine])
    return right


def _in_halves(parts: _Parts, right: np.ndarray) -> _Halves:
    starts = np.cumsum(parts.lengths) - parts.lengths
    rights = np.add.reduceat(right, starts, dtype=np.int64)
    sizes = np.add.reduceat(np.where(right, parts.weights, 0), starts)
    return _Halves(
        np.concatenate([np.flatnonzero(~right), np.flatnonzero(right)]),
        np.concatenate([parts.lengths - rights, rights]),
        np.concatenate([parts.of.sizes - sizes, sizes]),
    )
