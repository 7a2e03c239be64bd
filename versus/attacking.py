"""The attacks and audits of every tool's outputs: tables of people, what a tool counts in them, and the verdict.

A table has one row per person and box; a person is in at most `groups` boxes. What protects a person is what the tool
adds to its counts; the attacker sees nothing else, and knows everything about everybody but the secret.
"""

import csv

import numpy as np

from discreet import audit

FOUND = 0.5


def differencing(path, sizes, seed=1):
    """Write towns in pairs of boxes, with and without one victim, and return (boxes, groups, secrets)."""
    draw = np.random.default_rng(seed)
    secrets = draw.integers(0, 2, (sizes["towns"], sizes["people"]))
    rows = [
        (town * sizes["people"] + person, 2 * town + box)
        for town, person in zip(*np.nonzero(secrets), strict=True)
        for box in (0, 1)
        if not (box and person == 0)
    ]
    _write(path, [(*row, 1.0) for row in rows])
    return 2 * sizes["towns"], 2, secrets[:, 0]


def subtract(counts, secrets):
    """Return how many secrets the difference of two counts gives away, of how many."""
    counts = np.asarray(counts, float).reshape(-1, 2)
    guesses = counts[:, 0] - counts[:, 1] > FOUND
    return int((guesses == secrets.astype(bool)).sum()), len(secrets)


def reconstruction(path, sizes, seed=2):
    """Write random subsets as boxes, and return (boxes, groups, secrets, subsets)."""
    draw = np.random.default_rng(seed)
    secrets = draw.integers(0, 2, sizes["people"])
    subsets = draw.integers(0, 2, (sizes["subsets"], sizes["people"]))
    boxes, people = np.nonzero(subsets * secrets)
    _write(path, [(person, box, 1.0) for box, person in zip(boxes, people, strict=True)])
    return sizes["subsets"], sizes["subsets"], secrets, subsets


def solve(counts, secrets, subsets):
    """Return how many secrets least squares on the counts of all subsets gives away, of how many."""
    solved, *_ = np.linalg.lstsq(subsets.astype(float), np.asarray(counts, float), rcond=None)
    return int(((solved > FOUND) == secrets.astype(bool)).sum()), len(secrets)


def boxes_of(path, values, boxes):
    """Write boxes that all hold people with these values; every person is in one box."""
    _write(
        path, [(box * len(values) + place, box, value) for box in range(boxes) for place, value in enumerate(values)]
    )
    return boxes


def proven(outputs, settings):
    """Return what the outputs on two neighbouring data sets prove about epsilon."""
    batch = audit.Batch(lambda values, runs: np.asarray(values[:runs]))
    runs = min(map(len, outputs))
    found = audit.measure(batch, *outputs, settings["claim"], runs, confidence=settings["confidence"], random_state=0)
    return {"proven": round(found.epsilon_low, 3), "refuted": not found.holds, "event": found.event}


def _write(path, rows):
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("person", "box", "value"))
        writer.writerows(rows)
