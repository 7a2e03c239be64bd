"""How much likelier one thing surely is than another, by how often both were seen."""

import math
from typing import Any

import numpy as np

from discreet.audit.counting import Share, limits

_CELLS = 64  # the other probability is tried in so many steps, each narrower than a fifth of its standard error
_BINS = 192  # and the other number of hits is taken together in so many groups
_SET_APART = 0.02  # this part of the error is for probabilities outside of what is tried


def least_epsilon(seen: Share, other: Share, *, delta: float = 0.0, error: float = 0.05) -> float:
    """Return an epsilon with p >= e^epsilon·q + delta, for the probabilities p of `seen` and q of `other`.

    It is too large with a chance of at most `error`. Exact for both counts together, and so above what two intervals
    of Clopper and Pearson give, which must both be wrong in the same way.

    >>> round(least_epsilon(Share(52_500, 100_000), Share(47_500, 100_000)), 3)
    0.092
    >>> least_epsilon(Share(50, 100), Share(50, 100))
    0.0
    """
    table = _Table(seen, other, delta, error)
    if not table.refutes(0.0):
        return 0.0
    low, high = table.bracket()
    while high - low > 1e-3 * table.spread + 1e-9:
        middle = (low + high) / 2
        low, high = (middle, high) if table.refutes(middle) else (low, middle)
    return low


def refutes(seen: Share, other: Share, epsilon: float, *, delta: float = 0.0, error: float = 0.05) -> bool:
    """Tell whether so many hits refute p <= e^epsilon·q + delta, with a chance of at most `error` to be wrong.

    >>> refutes(Share(80, 100), Share(10, 100), 1.0), refutes(Share(80, 100), Share(10, 100), 3.0)
    (True, False)
    """
    return _Table(seen, other, delta, error).refutes(epsilon)


class _Table:
    """The laws of both counts, for every step of the other probability.

    Refuted is what makes "as many more hits as were seen, or more" too improbable: K1 - e^epsilon·K2 at least as large
    as it was, for *every* q and p <= e^epsilon·q + delta that the counts leave possible (Berger and Boos 1994).
    The event grows with K1 and falls with K2. So within a step of q its chance is at most that for the largest p and
    the least q, and within a group of counts at most that for the least of them: nothing is rounded to our favour.
    """

    def __init__(self, seen: Share, other: Share, delta: float, error: float) -> None:
        self.seen, self.other, self.delta, self.error = seen, other, delta, error
        apart = _SET_APART * error
        bottom, top = (float(end) for end in limits(other.hits, other.trials, apart / 3))
        self.most = float(limits(seen.hits, seen.trials, apart / 3)[1])
        self.steps = np.sin(np.linspace(math.asin(math.sqrt(bottom)), math.asin(math.sqrt(top)), _CELLS + 1)) ** 2
        self.steps[-1] = top
        self.counts = self._groups(bottom, top)
        reached = _at_least(self.counts, other.trials, self.steps[:-1])
        self.masses = -np.diff(reached, axis=1, append=0.0)
        self.spread = self._spread()

    def _groups(self, bottom: float, top: float) -> np.ndarray:
        # Hits outside of these lie in the first or the last group; there must be next to none in the first.
        far = math.sqrt(2 * math.log(1e3 / self.error))
        root = math.sqrt(self.other.trials)
        first = max(0.0, root * math.sqrt(bottom) - far / 2) ** 2
        last = (root * math.sqrt(top) + far / 2) ** 2
        inner = np.ceil(np.linspace(first, min(last, self.other.trials) + 1, _BINS))
        return np.unique(np.concatenate([[0.0], inner]))

    def _spread(self) -> float:
        p, q = ((share.hits + 0.5) / (share.trials + 1) for share in (self.seen, self.other))
        return math.sqrt((1 - p) / (p * self.seen.trials) + (1 - q) / (q * self.other.trials))

    def bracket(self) -> tuple[float, float]:
        """Return one epsilon that is refuted and a larger one that is not."""
        deviations = math.sqrt(2 * math.log(1 / self.error))
        over, under = self.seen.value - self.delta, max(self.other.value, 0.5 / self.other.trials)
        guess = math.log(max(over, 1e-300) / under) - 0.75 * deviations * self.spread
        low, width = 0.0, max(0.2 * deviations * self.spread, 1e-6)
        high = max(guess, width)
        while self.refutes(high):
            low, high, width = high, high + width, 2 * width
        while low == 0.0 and high > 2 * width:
            below = high - width
            if self.refutes(below):
                return below, high
            high, width = below, 2 * width
        return low, high

    def refutes(self, epsilon: float) -> bool:
        if self.seen.value <= self.delta:
            return False
        rise = math.exp(min(epsilon, 300.0))
        p = np.minimum(self.most, rise * self.steps[1:] + self.delta)
        needed = self.seen.hits + rise * (self.counts - self.other.hits)
        needed = np.ceil(needed - 1e-9 * (1 + np.abs(needed)))
        chances = _at_least(needed, self.seen.trials, p)
        worst = float((self.masses * chances).sum(axis=1).max())
        return worst + _SET_APART * self.error <= self.error


def _at_least(counts: np.ndarray, trials: int, shares: np.ndarray) -> Any:
    """Return P[hits >= count] for each share (rows) and each count (columns)."""
    from scipy.special import betainc  # noqa: PLC0415 - an extra

    inside = np.clip(counts, 1, trials)
    found = betainc(inside, trials - inside + 1, shares[:, np.newaxis])
    return np.where(counts <= 0, 1.0, np.where(counts > trials, 0.0, found))
