"""What measure() must find, once more from the definitions, with dictionaries and loops over small tables."""

import math
from collections import Counter, defaultdict
from itertools import combinations

import numpy as np


def classes(rows, quasi):
    """Return the positions of the rows of each class."""
    found = defaultdict(list)
    for place, row in enumerate(rows):
        found[tuple(row[name] for name in quasi)].append(place)
    return list(found.values())


def alone(rows, quasi):
    """Return how many rows are alone by each subset of the columns."""
    subsets = [subset for size in range(1, len(quasi) + 1) for subset in combinations(quasi, size)]
    return {subset: sum(len(each) == 1 for each in classes(rows, subset)) for subset in subsets}


def exposure(rows, quasi, sensitive, distance):
    """Return every measure of a sensitive column, at its worst class; `distance` is that of two distributions."""
    groups = [Counter(rows[place][sensitive] for place in group) for group in classes(rows, quasi)]
    table = Counter(row[sensitive] for row in rows)
    least = min(len(group) for group in groups)
    gains = [
        (count / group.total() - table[value] / len(rows)) / (table[value] / len(rows))
        for group in groups
        for value, count in group.items()
    ]
    limits = [-math.log(table[value] / len(rows)) for group in groups for value in group]
    return {
        "l": least,
        "entropy_l": min(math.exp(-sum(p * math.log(p) for p in shares(group).values())) for group in groups),
        "c": max(_recursive(group, least) for group in groups),
        "alpha": max(max(shares(group).values()) for group in groups),
        "beta": max(gains),
        "enhanced_beta": max(gains) if all(g <= m + 1e-12 for g, m in zip(gains, limits, strict=True)) else math.inf,
        "delta": max(abs(math.log(1 + gain)) for gain in gains),
        "t": max(distance(shares(group), shares(table)) for group in groups),
        "exposed": sorted(
            place
            for group in classes(rows, quasi)
            for place in group
            if len({rows[each][sensitive] for each in group}) == 1
        ),
    }


def shares(counts):
    return {value: count / sum(counts.values()) for value, count in counts.items()}


def equal(mine, table):
    return sum(abs(mine.get(value, 0) - table[value]) for value in table) / 2


def ordered(mine, table):
    """Return the distance on a line; null is 1 from everything, and the rest moves in proportion."""
    off = abs(mine.get(None, 0) - table.get(None, 0))
    kept = min(1 - mine.get(None, 0), 1 - table.get(None, 0))
    values = sorted(value for value in table if value is not None)
    if kept == 0 or len(values) < 2:
        return off
    moved, total = 0.0, 0.0
    for value in values:
        moved += mine.get(value, 0) / (1 - mine.get(None, 0)) - table[value] / (1 - table.get(None, 0))
        total += abs(moved)
    return off + kept * total / (len(values) - 1)


def least_work(mine, table, apart):
    """Return the earth mover's distance by linear programming: the definition itself."""
    from scipy.optimize import linprog

    values = list(table)
    many = len(values)
    cost = [apart(a, b) for a in values for b in values]
    leaving = [[1.0 if i == k else 0.0 for i in range(many) for j in range(many)] for k in range(many)]
    coming = [[1.0 if j == k else 0.0 for i in range(many) for j in range(many)] for k in range(many)]
    totals = [mine.get(value, 0) for value in values] + [table[value] for value in values]
    return linprog(cost, A_eq=np.array(leaving + coming), b_eq=totals).fun


def _recursive(group, least):
    counts = sorted(group.values(), reverse=True)
    return counts[0] / sum(counts[least - 1 :])
