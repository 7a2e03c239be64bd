"""What two counts prove about a rho: the promise of budgets that have a delta."""

import numpy as np

from discreet.audit.counting import Share, limits

_ORDERS = 1 + np.geomspace(1e-3, 50, 60)  # of Rényi's divergence; the first is as good as Kullback and Leibler's


def least_rho(seen: Share, other: Share, *, delta: float = 0.0, error: float = 0.05) -> float:
    """Return the least rho that one event allows, by how often it was seen on two neighbouring data sets.

    Too large with a chance of at most `error`. An event's probabilities p and q are farther apart than rho-zCDP allows
    if the divergence of order a of the two coins exceeds a·rho, for any a > 1 (no computation increases a divergence).
    With a delta of its own, a release may have the event with so much more probability.

    >>> round(least_rho(Share(6915, 10_000), Share(3085, 10_000)), 2)
    0.27
    >>> least_rho(Share(50, 100), Share(50, 100))
    0.0
    """
    return max(_one_way(seen, other, delta, error), _one_way(other, seen, delta, error))


def _one_way(seen: Share, other: Share, delta: float, error: float) -> float:
    low = float(limits(seen.hits, seen.trials, error / 4)[0]) - delta
    high = float(limits(other.hits, other.trials, error / 4)[1]) / (1 - delta)
    if not low > high > 0:
        return 0.0
    with np.errstate(divide="ignore", over="ignore"):
        logs = np.logaddexp(
            _ORDERS * np.log(low) + (1 - _ORDERS) * np.log(high),
            _ORDERS * np.log1p(-low) + (1 - _ORDERS) * np.log1p(-high),
        )
    return max(0.0, float(np.max(logs / (_ORDERS - 1) / _ORDERS)))
