"""What a number of hits says about a probability, for certain up to a stated chance of error."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.kernel.exact import whole


@dataclass(frozen=True)
class Share:
    """How often something was seen: hits of so many trials.

    >>> Share(3, 4).value
    0.75
    """

    hits: int
    trials: int

    def __post_init__(self) -> None:
        whole(self.trials, "trials", 1)
        if not 0 <= whole(self.hits, "hits", 0) <= self.trials:
            raise ValueError(f"hits must lie between 0 and the {self.trials} trials, not {self.hits}")

    @classmethod
    def of(cls, happened: Any) -> "Share":
        """Return how often it happened, given whether it did in each trial.

        >>> Share.of([True, False, True])
        Share(hits=2, trials=3)
        """
        each = np.asarray(happened, bool)
        return cls(int(each.sum()), each.size)

    @property
    def value(self) -> float:
        """The share that was seen."""
        return self.hits / self.trials

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return the ends between which the probability lies at this confidence (Clopper and Pearson).

        >>> [round(end, 4) for end in Share(0, 100).interval()]
        [0.0, 0.0362]
        """
        low, high = limits(self.hits, self.trials, (1 - confidence) / 2)
        return float(low), float(high)


def limits(hits: Any, trials: Any, error: float) -> tuple[Any, Any]:
    """Return the lowest and the highest probability that so many hits leave possible, each wrong with chance `error`.

    Exact: by the binomial law's own tails. Takes arrays, too.

    >>> low, high = limits(50, 100, 0.025)
    >>> round(float(low), 4), round(float(high), 4)
    (0.3983, 0.6017)
    """
    if not 0 < error < 0.5:
        raise ValueError(f"error must lie between 0 and 1/2, not {error}")
    from scipy.special import betaincinv  # noqa: PLC0415 - an extra

    seen, tried = np.asarray(hits, float), np.asarray(trials, float)
    none, all_ = seen <= 0, seen >= tried
    with np.errstate(invalid="ignore"):
        low = np.where(none, 0.0, betaincinv(np.maximum(seen, 1e-9), tried - seen + 1, error))
        high = np.where(all_, 1.0, betaincinv(seen + 1, np.maximum(tried - seen, 1e-9), 1 - error))
    return low, high
