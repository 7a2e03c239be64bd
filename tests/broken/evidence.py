"""What convicts a mechanism. The same functions judge our own, which must pass, and the broken ones, which must not.

A law is a dictionary from outcomes to probabilities, with everything that matters listed.
"""

import math
from collections import Counter

import numpy as np
from scipy import stats


def max_divergence(p, q):
    """Return the worst log-ratio of two laws, in either direction; infinite if only one of them can say something."""
    worst = 0.0
    for outcome in p.keys() | q.keys():
        one, other = float(p.get(outcome, 0)), float(q.get(outcome, 0))
        if one != other:
            worst = max(worst, math.inf if not one or not other else abs(math.log(one / other)))
    return worst


def hockey_stick(p, q, epsilon):
    """Return the least delta, in either direction, for which two laws are (epsilon, delta)-close."""
    factor = math.exp(epsilon)
    outcomes = p.keys() | q.keys()
    return max(
        math.fsum(max(0.0, float(one.get(y, 0)) - factor * float(other.get(y, 0))) for y in outcomes)
        for one, other in ((p, q), (q, p))
    )


def renyi(p, q, order):
    """Return the Rényi divergence of p from q, where q has all that p has."""
    total = math.fsum(float(one) ** order * float(q[y]) ** (1 - order) for y, one in p.items() if one)
    return math.log(total) / (order - 1)


def shifted(pmf, value, low, high):
    """Return the law of value + noise on low … high."""
    return {y: pmf(y - value) for y in range(low, high + 1)}


def worst_of_additive(pmf, sensitivity, reach):
    """Return the max divergence of value + noise between 0 and each value within the sensitivity."""
    return max(worst_of_additive_by(pmf, shift, reach) for shift in range(-sensitivity, sensitivity + 1))


def worst_of_additive_by(pmf, shift, reach):
    """Return the max divergence of value + noise between 0 and this value."""
    return max_divergence(shifted(pmf, 0, -reach, reach), shifted(pmf, shift, -reach, reach))


def chi_square(samples, pmf, least=10):
    """Return the p-value of samples of integers against a law, with rare outcomes taken together."""
    counts, n = Counter(int(x) for x in np.ravel(samples)), int(np.size(samples))
    rare, seen, expected = n, [], []
    k = 0
    while n * pmf(k) >= least or n * pmf(-k) >= least:
        for x in {k, -k}:
            seen.append(counts[x])
            expected.append(n * pmf(x))
            rare -= counts[x]
        k += 1
    others = n - math.fsum(expected)
    if others > 1e-9 * n:
        seen.append(rare)
        expected.append(others)
    elif rare:
        return 0.0
    if len(seen) == 1:
        return 1.0
    seen, expected = np.array(seen, float), np.array(expected, float)
    return float(stats.chi2.sf(((seen - expected) ** 2 / expected).sum(), len(seen) - 1))


def chi_square_of_choices(chosen, probabilities):
    """Return the p-value of choices among so many candidates."""
    seen = np.bincount(chosen, minlength=len(probabilities))
    expected = len(chosen) * np.asarray(probabilities)
    return float(stats.chi2.sf(((seen - expected) ** 2 / expected).sum(), len(seen) - 1))


def moved_by_one_unit(total, rows):
    """Return how far a total moves when all rows of one unit are taken away: the worst unit of these."""
    units = {unit for unit, _ in rows}
    return max(abs(total(rows) - total([row for row in rows if row[0] != unit])) for unit in units)


def repeats(release, value, times=3):
    """Tell whether releases of the same vector ever agree as a whole."""
    seen = [tuple(np.ravel(release(value))) for _ in range(times)]
    return len(set(seen)) < len(seen)


def share_unreachable(outputs, value, reachable):
    """Return the share of outputs that a neighbour's value could never have given."""
    return sum(not reachable(y, value) for y in outputs) / len(outputs)


def bits_for_the_price(curator, secret, price):
    """Play an analyst who makes questions fail on purpose: return the right bits learned and what was paid.

    The question about bit i divides by zero if the bit is one. A failure is not an answer, yet it tells the bit.
    """
    learned = 0
    for i, bit in enumerate(secret):
        try:
            curator.ask(lambda rows, i=i: 1 // (1 - rows[i]), price)
            guess = 0
        except ZeroDivisionError:
            guess = 1
        except PermissionError:
            break
        learned += guess == bit
    return learned, curator.spent
