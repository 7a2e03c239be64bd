"""Lower bounds on epsilon and rho from counts of an event, and confidence intervals of proportions."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.kernel.numbers import as_integer


@dataclass(frozen=True)
class Proportion:
    """Number of hits in a number of trials.

    >>> Proportion(3, 4).value
    0.75
    """

    hits: int
    trials: int

    def __post_init__(self) -> None:
        as_integer(self.trials, "trials", 1)
        if not 0 <= as_integer(self.hits, "hits", 0) <= self.trials:
            raise ValueError(f"hits must be between 0 and the number of trials, {self.trials}, not {self.hits}")

    @classmethod
    def from_outcomes(cls, outcomes: Any) -> "Proportion":
        """Return the proportion of trials that were hits.

        >>> Proportion.from_outcomes([True, False, True])
        Proportion(hits=2, trials=3)
        """
        flags = np.asarray(outcomes, bool)
        return cls(int(flags.sum()), flags.size)

    @property
    def value(self) -> float:
        """Observed proportion."""
        return self.hits / self.trials

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return the Clopper-Pearson confidence interval of the probability.

        >>> [round(end, 4) for end in Proportion(0, 100).interval()]
        [0.0, 0.0362]
        """
        low, high = clopper_pearson(self.hits, self.trials, (1 - confidence) / 2)
        return float(low), float(high)


def clopper_pearson(hits: Any, trials: Any, error: float) -> tuple[Any, Any]:
    """Return the exact one-sided confidence bounds of a binomial probability, each wrong with probability `error`.

    Arrays are accepted, too.

    >>> low, high = clopper_pearson(50, 100, 0.025)
    >>> round(float(low), 4), round(float(high), 4)
    (0.3983, 0.6017)
    """
    if not 0 < error < 0.5:
        raise ValueError(f"error must be between 0 and 0.5, not {error}")
    from scipy.special import betaincinv  # noqa: PLC0415 - an extra

    hit_counts, trial_counts = np.asarray(hits, float), np.asarray(trials, float)
    no_hits, all_hits = hit_counts <= 0, hit_counts >= trial_counts
    with np.errstate(invalid="ignore"):
        low = np.where(no_hits, 0.0, betaincinv(np.maximum(hit_counts, 1e-9), trial_counts - hit_counts + 1, error))
        high = np.where(
            all_hits, 1.0, betaincinv(hit_counts + 1, np.maximum(trial_counts - hit_counts, 1e-9), 1 - error)
        )
    return low, high


_Q_STEPS = 64  # steps of the nuisance probability q, each narrower than a fifth of its standard error
_COUNT_BINS = 192  # bins of the denominator's number of hits
_NUISANCE_ERROR_SHARE = 0.02  # share of the error probability for values of p and q outside of the grid


def epsilon_lower_bound(
    numerator: Proportion, denominator: Proportion, *, delta: float = 0.0, error: float = 0.05
) -> float:
    """Return a lower bound on the epsilon with p = e^epsilon·q + delta, for p of `numerator` and q of `denominator`.

    The bound is too large with probability at most `error`. It is exact for the joint distribution of both counts, and
    so better than the bound from two separate Clopper-Pearson intervals.

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
    """Return whether the counts refute p <= e^epsilon·q + delta, with an error probability of at most `error`.

    >>> [refutes_epsilon(Proportion(80, 100), Proportion(10, 100), epsilon) for epsilon in (1.0, 3.0)]
    [True, False]
    """
    return _BergerBoosTest(numerator, denominator, delta, error).refutes(epsilon)


class _BergerBoosTest:
    """The test of Berger and Boos (1994) of p <= e^epsilon·q + delta, with q as the nuisance parameter.

    An epsilon is refuted if the event that K1 - e^epsilon·K2 is at least as large as observed is too improbable for
    *every* q, and p <= e^epsilon·q + delta, within confidence bounds from the counts. The event increases with K1 and
    decreases with K2. So its probability within a step of q is at most that for the largest p and the smallest q, and
    within a bin of counts at most that for the smallest count: all rounding is conservative.
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
        # Counts outside of these edges are in the first or the last bin; the first must have almost no mass.
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
        """Return an epsilon that is refuted and a larger one that is not."""
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
    """Return P[hits >= count] for each probability (rows) and each count (columns)."""
    from scipy.special import betainc  # noqa: PLC0415 - an extra

    clipped_counts = np.clip(counts, 1, trials)
    tail = betainc(clipped_counts, trials - clipped_counts + 1, probabilities[:, np.newaxis])
    return np.where(counts <= 0, 1.0, np.where(counts > trials, 0.0, tail))


_RENYI_ORDERS = 1 + np.geomspace(
    1e-3, 50, 60
)  # of the Rényi divergence; the first is close to the Kullback-Leibler divergence


def rho_lower_bound(first: Proportion, second: Proportion, *, delta: float = 0.0, error: float = 0.05) -> float:
    """Return a lower bound on rho from the counts of one event on two neighbouring data sets.

    It is too large with probability at most `error`. Under rho-zCDP the Rényi divergence of order a between
    Bernoulli(p) and Bernoulli(q) is at most a·rho for every a > 1, where p and q are the event's probabilities
    (post-processing). A release with a `delta` may raise the probability of the event by this much in addition.

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
