"""How publications are scored, by the formulas of the protocol; no tool's code and no results here.

A published table is {key: (value, low, high)}; low and high are None where the tool prints no interval.
"""

import math

from scipy import stats

ALPHA = 0.05
TOLERANCE = 0.5  # visits
PARTS = (  # a total, and the table whose cells add up to it along the given key
    ("visits", "visits_by_ward", ()),
    ("visits", "visits_by_month", ()),
    ("visits_by_ward", "visits_by_ward_and_month", (0,)),
    ("visits_by_month", "visits_by_ward_and_month", (1,)),
)


def error(published, truth):
    """Return the root mean squared error over all true cells in % of their mean; an unpublished cell counts as 0."""
    squared = [(published.get(key, (0.0,))[0] - true) ** 2 for key, true in truth.items()]
    return 100 * math.sqrt(sum(squared) / len(squared)) / _mean(truth)


def intervals(published, truth):
    """Return coverage, mean width and mean interval score of the printed intervals, or None where none is printed."""
    cells = [(*published[key][1:], true) for key, true in truth.items() if key in published]
    cells = [cell for cell in cells if cell[0] is not None]
    if not cells:
        return None
    unit = 100 / _mean(truth)
    return {
        "coverage": sum(low <= true <= high for low, high, true in cells) / len(cells),
        "width": unit * sum(high - low for low, high, _ in cells) / len(cells),
        "interval_score": unit * sum(interval_score(low, high, true) for low, high, true in cells) / len(cells),
        "cells": len(cells),
    }


def interval_score(low, high, true):
    """Return the interval score of Gneiting and Raftery: the width, and 2/alpha times the distance of a miss."""
    return (high - low) + 2 / ALPHA * (max(low - true, 0) + max(true - high, 0))


def largest_gap(publication):
    """Return the largest difference between a total and the sum of its parts; None where tables are missing."""
    gaps = []
    for total, parts, places in PARTS:
        if not publication.get(total) or not publication.get(parts):
            return None
        sums = {}
        for key, (value, *_) in publication[parts].items():
            kept = tuple(key[place] for place in places)
            sums[kept] = sums.get(kept, 0.0) + value
        gaps += [abs(value - sums.get(key, 0.0)) for key, (value, *_) in publication[total].items()]
    return max(gaps)


def mean_interval(values):
    """Return a mean with its 95 % interval over independent publications (Student's t)."""
    count, mean = len(values), sum(values) / len(values)
    if count < 2:
        return mean, -math.inf, math.inf
    deviation = math.sqrt(sum((value - mean) ** 2 for value in values) / (count - 1))
    half = float(stats.t.ppf(1 - ALPHA / 2, count - 1)) * deviation / math.sqrt(count)
    return mean, mean - half, mean + half


def share_interval(hits, trials):
    """Return a share with its 95 % interval (Clopper and Pearson)."""
    low = float(stats.beta.ppf(ALPHA / 2, hits, trials - hits + 1)) if hits else 0.0
    high = float(stats.beta.ppf(1 - ALPHA / 2, hits + 1, trials - hits)) if hits < trials else 1.0
    return hits / trials, low, high


def _mean(truth):
    return sum(truth.values()) / len(truth)
