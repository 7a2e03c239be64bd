"""Mechanisms for audits, each wrong in one place only. All claim epsilon 1 and are made for rows within [0, 10].

`rng` is the chance of the test, so that every run of the tests is the same.
"""

import numpy as np

LOW, HIGH, EPSILON = 0.0, 10.0, 1.0


def sound_sum(rng):
    """The one that is right: NaN is left out, the others are clipped, the noise is an integer of an exact law."""

    def release(rows):
        total = int(np.rint(np.clip(np.nan_to_num(rows, nan=LOW), LOW, HIGH)).sum())
        q = np.exp(-EPSILON / HIGH)
        return total + int(rng.geometric(1 - q) - rng.geometric(1 - q))

    return release


def silent_when_empty(rng):
    """Nobody, no noise."""
    sound = sound_sum(rng)
    return lambda rows: sound(rows) if len(rows) else 0


def exact_at_the_bound(rng):
    """Whoever is exactly at the upper bound was counted apart, and without noise."""
    sound = sound_sum(rng)
    return lambda rows: (sound(rows), int((rows == HIGH).sum() > 0))


def spoiled_by_nan(rng):
    """One NaN makes a NaN of the sum."""
    sound = sound_sum(rng)
    return lambda rows: np.nan if np.isnan(rows).any() else sound(rows)


def spoiled_by_the_huge(rng):
    """Adds before it clips: somebody far beyond the bounds moves the whole."""
    sound = sound_sum(rng)

    def release(rows):
        with np.errstate(all="ignore"):
            mean = np.nan_to_num(rows, posinf=HIGH, neginf=LOW).mean() if len(rows) else 0.0
        return sound(rows) + (1000 if mean > HIGH else 0)

    return release


def half_noise(rng):
    """A scale of sensitivity / (2·epsilon)."""
    return lambda value: int(value) + int(rng.geometric(1 - np.exp(-2.0)) - rng.geometric(1 - np.exp(-2.0)))


class ChecksRunsCharges:
    """Looks whether the budget would do, runs, and charges for what has come back: a question that fails is free."""

    def __init__(self, rows, budget, rng):
        self.rows, self.left, self.rng = rows, budget, rng

    def ask(self, of_row, epsilon):
        if epsilon > self.left:
            raise PermissionError("the budget is used up")
        total = sum(min(1, max(0, of_row(row))) for row in self.rows)
        self.left -= epsilon
        return total + int(self.rng.geometric(1 - np.exp(-epsilon)) - self.rng.geometric(1 - np.exp(-epsilon)))


def window_leak(rng):
    """COUNT(*) of rows with x = MAX(x) OVER (): each row is counted once, but one person decides about all of them."""

    def release(rows):
        count = int((rows == rows.max()).sum()) if len(rows) else 0
        return count + int(rng.geometric(1 - np.exp(-EPSILON)) - rng.geometric(1 - np.exp(-EPSILON)))

    return release
