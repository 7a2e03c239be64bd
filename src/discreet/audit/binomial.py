"""Binomial proportions and their exact confidence intervals."""

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
