"""What cells and different values mean, in plain Python: the part of the reference for totals that are no sums."""

from collections import defaultdict
from collections.abc import Hashable, Mapping
from hashlib import md5
from typing import Any

import numpy as np

from discreet.engines.evaluate import evaluate, finite, order
from discreet.kernel.expr import Type, Value
from discreet.kernel.grid import Grid
from discreet.kernel.question import WEIGHT_BITS, Cells, Question, Values
from discreet.kernel.tree import Tally

Groups = Mapping[tuple[Value, ...], Mapping[tuple[Hashable, ...], list[dict[str, Value]]]]


def tally(question: Question, total: Cells, groups: Groups, places: Mapping[tuple[Value, ...], int]) -> Tally:
    """Return the weight of every cell of every group."""
    held = {
        key: {unit: cells for unit, rows in units.items() if (cells := _cells(total, rows))}
        for key, units in groups.items()
    }
    spread = defaultdict[Hashable, int](int)
    for units in held.values():
        for unit in units:
            spread[unit] += 1
    found = defaultdict[tuple[int, int], int](int)
    for key, units in held.items():
        for unit, cells in units.items():
            for cell in cells:
                if key in places:
                    found[places[key], cell] += _weight(question, total, len(cells), spread[unit])
    columns = np.array([(group, cell, weight) for (group, cell), weight in found.items()], np.int64).reshape(-1, 3)
    return Tally(*(np.ascontiguousarray(columns[:, place]) for place in range(3)))


def _cells(total: Cells, rows: list[dict[str, Value]]) -> list[int]:
    """Return the cells of those of a unit's rows that are in one."""
    values: list[Any] = [value for row in rows if (value := finite(evaluate(total.expr, row))) is not None]
    if isinstance(total.places, Grid):
        return [total.places.index(float(value)) - total.places.offset - total.first for value in values]
    return [total.places.index(value) for value in values if value in total.places]


def _weight(question: Question, total: Cells, rows: int, groups: int) -> int:
    """Return what one of so many rows of a unit weighs, if the unit is in so many groups."""
    if not question.bounded:
        return 1
    full = 1 << question.bits(total)
    weight = question.rows * full // rows if rows > question.rows else full
    if question.scaled and groups > question.limit.groups:
        weight = weight * ((question.limit.groups << WEIGHT_BITS) // groups) >> WEIGHT_BITS
    return weight


def different(question: Question, total: Values, groups: Groups) -> dict[tuple[Value, ...], int]:
    """Return how many different values each group has, of those that a unit may count."""
    pairs = defaultdict[tuple[Hashable, ...], list[tuple[tuple[Value, ...], Value]]](list)
    for key, units in groups.items():
        for unit, rows in units.items():
            values = {value for row in rows if (value := finite(evaluate(total.expr, row))) is not None}
            pairs[unit] += [(key, value) for value in values]
    found = defaultdict[tuple[Value, ...], set[Value]](set)
    for unit, held in pairs.items():
        kept = _chosen(question, unit, held) if question.bounded and len(held) > question.rows else held
        for key, value in kept:
            found[key].add(value)
    return {key: len(values) for key, values in found.items()}


def _chosen(
    question: Question, unit: tuple[Hashable, ...], held: list[tuple[tuple[Value, ...], Value]]
) -> list[tuple[tuple[Value, ...], Value]]:
    """Return at most `rows` values of each group, by their hash, and of these as many as the limit allows in all."""
    kind = (question.relation.shape.unit or (Type.REAL,))[0]
    who = "" if kind in (Type.REAL, Type.TIMESTAMP) else _text(unit[0])
    numbered = []
    for key in {key for key, _ in held}:
        hashed = sorted((_hash(who, value), value) for each, value in held if each == key)
        order_of = [order(part) for part in key]
        numbered += [(place, digest, order_of, key, value) for place, (digest, value) in enumerate(hashed)]
    kept = sorted((each for each in numbered if each[0] < question.rows), key=lambda each: each[:3])
    return [(key, value) for *_, key, value in kept[: question.spread * question.rows]]


def _hash(who: str, value: Value) -> str:
    return md5(f"{who}/{_text(value)}".encode(), usedforsecurity=False).hexdigest()


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
