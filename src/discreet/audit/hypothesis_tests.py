"""Lower bounds on epsilon and rho from how often an event occurs on two neighbouring data sets."""

import math
from typing import Any

import numpy as np

from discreet.audit.binomial import Proportion, clopper_pearson

_Q_STEPS = 64  # the other probability is tried in so many steps, each narrower than a fifth of its standard error
_COUNT_BINS = 192  # and the other number of hits is taken together in so many groups
_NUISANCE_ERROR_SHARE = 0.02  # this part of the error is for probabilities outside of what is tried


def epsilon_lower_bound(
    numerator: Proportion, denominator: Proportion, *, delta: float = 0.0, error: float = 0.05
) -> float:
    """Return an epsilon with p >= e^epsilon·q + delta, for the probabilities p of `numerator` and q of `denominator`.

    It is too large with a chance of at most `error`. Exact for both counts together, and so above what two intervals
    of Clopper and Pearson give, which must both be wrong in the same way.

    >>> round(epsilon_lower_bound(Proportion(52_500, 100_000), Proportion(47_500, 100_000)), 3)
    0.092
    >>> epsilon_lower_bound(Proportion(50, 100), Proportion(50, 100))
    0.0
    """
    test = _BergerBoosTest(numerator, denominator, delta, error)
    if not test.refutes(0.0):
        return 0.0
    low, high = test.bracket()
    while high - low > 1e-3 * test.standard_error + 1e-9:
        middle = (low + high) / 2
        low, high = (middle, high) if test.refutes(middle) else (low, middle)
    return low


def refutes_epsilon(
    numerator: Proportion, denominator: Proportion, epsilon: float, *, delta: float = 0.0, error: float = 0.05
) -> bool:
    """Tell whether so many hits refute p <= e^epsilon·q + delta, with a chance of at most `error` to be wrong.

    >>> refutes_epsilon(Proportion(80, 100), Proportion(10, 100), 1.0), refutes_epsilon(Proportion(80, 100), Proportion(10, 100), 3.0)
    (True, False)
    """
    return _BergerBoosTest(numerator, denominator, delta, error).refutes(epsilon)


class _BergerBoosTest:
    """The laws of both counts, for every step of the other probability.

    Refuted is what makes "as many more hits as were seen, or more" too improbable: K1 - e^epsilon·K2 at least as large
    as it was, for *every* q and p <= e^epsilon·q + delta that the counts leave possible (Berger and Boos 1994).
    The event grows with K1 and falls with K2. So within a step of q its chance is at most that for the largest p and
    the least q, and within a group of counts at most that for the least of them: nothing is rounded to our favour.
    """

    def __init__(self, numerator: Proportion, denominator: Proportion, delta: float, error: float) -> None:
        self.numerator, self.denominator, self.delta, self.error = numerator, denominator, delta, error
        outside_error = _NUISANCE_ERROR_SHARE * error
        bottom, top = (float(end) for end in clopper_pearson(denominator.hits, denominator.trials, outside_error / 3))
        self.p_upper = float(clopper_pearson(numerator.hits, numerator.trials, outside_error / 3)[1])
        self.q_grid = np.sin(np.linspace(math.asin(math.sqrt(bottom)), math.asin(math.sqrt(top)), _Q_STEPS + 1)) ** 2
        self.q_grid[-1] = top
        self.count_bins = self._count_bin_edges(bottom, top)
        tail_probabilities = _binomial_tail(self.count_bins, denominator.trials, self.q_grid[:-1])
        self.bin_masses = -np.diff(tail_probabilities, axis=1, append=0.0)
        self.standard_error = self._log_ratio_standard_error()

    def _count_bin_edges(self, bottom: float, top: float) -> np.ndarray:
        # Hits outside of these lie in the first or the last group; there must be next to none in the first.
        tail_width = math.sqrt(2 * math.log(1e3 / self.error))
        root = math.sqrt(self.denominator.trials)
        first = max(0.0, root * math.sqrt(bottom) - tail_width / 2) ** 2
        last = (root * math.sqrt(top) + tail_width / 2) ** 2
        inner = np.ceil(np.linspace(first, min(last, self.denominator.trials) + 1, _COUNT_BINS))
        return np.unique(np.concatenate([[0.0], inner]))

    def _log_ratio_standard_error(self) -> float:
        p, q = ((proportion.hits + 0.5) / (proportion.trials + 1) for proportion in (self.numerator, self.denominator))
        return math.sqrt((1 - p) / (p * self.numerator.trials) + (1 - q) / (q * self.denominator.trials))

    def bracket(self) -> tuple[float, float]:
        """Return one epsilon that is refuted and a larger one that is not."""
        deviations = math.sqrt(2 * math.log(1 / self.error))
        over, under = self.numerator.value - self.delta, max(self.denominator.value, 0.5 / self.denominator.trials)
        guess = math.log(max(over, 1e-300) / under) - 0.75 * deviations * self.standard_error
        low, width = 0.0, max(0.2 * deviations * self.standard_error, 1e-6)
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
        if self.numerator.value <= self.delta:
            return False
        factor = math.exp(min(epsilon, 300.0))
        p = np.minimum(self.p_upper, factor * self.q_grid[1:] + self.delta)
        min_hits = self.numerator.hits + factor * (self.count_bins - self.denominator.hits)
        min_hits = np.ceil(min_hits - 1e-9 * (1 + np.abs(min_hits)))
        tail_probabilities = _binomial_tail(min_hits, self.numerator.trials, p)
        worst_p_value = float((self.bin_masses * tail_probabilities).sum(axis=1).max())
        return worst_p_value + _NUISANCE_ERROR_SHARE * self.error <= self.error


def _binomial_tail(counts: np.ndarray, trials: int, probabilities: np.ndarray) -> Any:
    """Return P[hits >= count] for each share (rows) and each count (columns)."""
    from scipy.special import betainc  # noqa: PLC0415 - an extra

    clipped_counts = np.clip(counts, 1, trials)
    tail = betainc(clipped_counts, trials - clipped_counts + 1, probabilities[:, np.newaxis])
    return np.where(counts <= 0, 1.0, np.where(counts > trials, 0.0, tail))


_RENYI_ORDERS = 1 + np.geomspace(1e-3, 50, 60)  # of Rényi's divergence; the first is as good as Kullback and Leibler's


def rho_lower_bound(first: Proportion, second: Proportion, *, delta: float = 0.0, error: float = 0.05) -> float:
    """Return the least rho that one event allows, by how often it was seen on two neighbouring data sets.

    Too large with a chance of at most `error`. An event's probabilities p and q are farther apart than rho-zCDP allows
    if the divergence of order a of the two coins exceeds a·rho, for any a > 1 (no computation increases a divergence).
    With a delta of its own, a release may have the event with so much more probability.

    >>> round(rho_lower_bound(Proportion(6915, 10_000), Proportion(3085, 10_000)), 2)
    0.27
    >>> rho_lower_bound(Proportion(50, 100), Proportion(50, 100))
    0.0
    """
    return max(_one_sided_rho(first, second, delta, error), _one_sided_rho(second, first, delta, error))


def _one_sided_rho(numerator: Proportion, denominator: Proportion, delta: float, error: float) -> float:
    low = float(clopper_pearson(numerator.hits, numerator.trials, error / 4)[0]) - delta
    high = float(clopper_pearson(denominator.hits, denominator.trials, error / 4)[1]) / (1 - delta)
    if not low > high > 0:
        return 0.0
    with np.errstate(divide="ignore", over="ignore"):
        logs = np.logaddexp(
            _RENYI_ORDERS * np.log(low) + (1 - _RENYI_ORDERS) * np.log(high),
            _RENYI_ORDERS * np.log1p(-low) + (1 - _RENYI_ORDERS) * np.log1p(-high),
        )
    return max(0.0, float(np.max(logs / (_RENYI_ORDERS - 1) / _RENYI_ORDERS)))
