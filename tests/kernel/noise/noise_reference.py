"""What the noise is compared with: other computations of its laws, other samplers, and sources that play a script."""

import math
from fractions import Fraction

import mpmath
import numpy as np
from scipy import stats

SURELY = 1e-13  # several such p-values, and the error of chi-square itself, still fail a right sampler less than 1e-9


class Script:
    """A source that hands out the bytes it was given, in order, and nothing else."""

    def __init__(self, *parts):
        self.data = bytearray(b"".join(bytes(part) for part in parts))
        self.asked = []

    def bytes(self, count):
        self.asked.append(count)
        if count > len(self.data):
            raise EndOfScriptError(count)
        out = self.data[:count]
        del self.data[:count]
        return out


class EndOfScriptError(Exception):
    """More random bytes were asked for than the script has."""


def uint16s(values):
    return np.asarray(values, np.uint16).tobytes()


def uint64s(values):
    return np.asarray(values, np.uint64).tobytes()


# Distribution functions, by mpmath.


def weights(alpha, beta, bits):
    """Return exp(-alpha·k - beta·k²) for k = 0, 1, … until far below 2^-bits, as mpmath numbers."""
    listed = []
    with mpmath.workprec(bits + 300):
        a, b = mpmath.mpf(alpha.numerator) / alpha.denominator, mpmath.mpf(beta.numerator) / beta.denominator
        least = mpmath.mpf(2) ** -(bits + 200)
        while not listed or listed[-1] > least:
            k = len(listed)
            listed.append(mpmath.exp(-a * k - b * k * k))
    return listed


def tails(alpha, beta, bits):
    """Return the weights of {k, k+1, …}."""
    with mpmath.workprec(bits + 300):
        listed = weights(alpha, beta, bits)
        total = mpmath.mpf(0)
        if not beta:
            total = listed[-1] * mpmath.exp(-mpmath.mpf(alpha.numerator) / alpha.denominator)
            total /= 1 - mpmath.exp(-mpmath.mpf(alpha.numerator) / alpha.denominator)
        out = []
        for weight in reversed(listed):
            total += weight
            out.append(total)
    return out[::-1]


def floors(alpha, beta, bits, kind):
    """Return {s: floor(F(s)·2^bits)} for the law on "both" sides, on "one" side, or on so many digits."""
    with mpmath.workprec(bits + 300):
        if isinstance(kind, int):
            q = mpmath.exp(-mpmath.mpf(alpha.numerator) / alpha.denominator)
            cdf = ((1 - q**k) / (1 - q**kind) for k in range(1, kind))
            return {s: int(mpmath.floor(mpmath.ldexp(value, bits))) for s, value in enumerate(cdf)}
        above = tails(alpha, beta, bits)
        everything = above[0] + (above[1] if kind == "both" else 0)
        scaled = [mpmath.ldexp(tail / everything, bits) for tail in above]
        found = {k - 1: (1 << bits) - int(mpmath.ceil(scaled[k])) for k in range(1, len(above))}
        if kind == "both":
            found |= {-k: int(mpmath.floor(scaled[k])) for k in range(1, len(above))}
    return found


def symbol_of(known, word):
    """Return the symbol of a word that equals none of these floors: the first s with word < floor(F(s)·2^bits)."""
    assert word not in known.values()
    return min(s for s, floor in known.items() if word < floor)


# Statistics. A law is a function of floats: P[X <= k], for arrays.


def laplace_cdf(scale):
    def cdf(k):
        k = np.floor(np.asarray(k, float))
        far = np.exp(-np.where(k < 0, -k, k + 1) / scale) / (1 + math.exp(-1 / scale))
        return np.where(k < 0, far, 1 - far)

    return cdf


def gaussian_cdf(scale):
    if scale > 2000:
        # The midpoint rule: the next term is smaller by 1/(24·scale²).
        return lambda k: stats.norm.cdf((np.floor(np.asarray(k, float)) + 0.5) / scale)
    reach = math.ceil(40 * scale) + 2
    weight = np.exp(-((np.arange(-reach, reach + 1) / scale) ** 2) / 2)
    total = np.cumsum(weight) / math.fsum(weight)
    return lambda k: total[np.clip(np.floor(np.asarray(k, float)).astype(np.int64), -reach, reach) + reach]


CDF = {"laplace": laplace_cdf, "gaussian": gaussian_cdf}


def edges_of(cdf, scale, bins=100):
    """Return ends of bins, between integers, that hold at least a few thousandths of the law each."""
    reach = 25 * scale + 5
    grid = np.arange(-math.ceil(reach), math.ceil(reach) + 1) if scale < 2000 else np.linspace(-reach, reach, 200_001)
    grid = np.floor(grid)
    chances = cdf(grid)
    kept, last = [], 0.0
    for k, chance in zip(grid, chances, strict=True):
        if chance - last >= 0.3 / bins and 1 - chance >= 0.3 / bins:
            kept.append(k)
            last = chance
    return np.array(kept) + 0.5


def counts_of(sample, edges):
    return np.bincount(np.searchsorted(edges, np.asarray(sample, float)), minlength=len(edges) + 1)


def chi_square(counts, chances):
    """Return the p-value of so many counts under these probabilities."""
    expected = counts.sum() * chances
    statistic = ((counts - expected) ** 2 / expected).sum()
    return float(stats.chi2.sf(statistic, len(counts) - 1))


def p_value(sample, cdf, edges):
    """Return the p-value of a sample under a law."""
    chances = np.diff(np.concatenate(([0.0], cdf(edges), [1.0])))
    return chi_square(counts_of(sample, edges), chances)


def p_value_of_two(first, second, edges):
    """Return the p-value of two samples having one law."""
    table = np.array([counts_of(first, edges), counts_of(second, edges)])
    table = table[:, table.sum(0) > 0]
    return float(stats.chi2_contingency(table, correction=False).pvalue)


# The rejection sampler of Canonne, Kamath and Steinke (2020), on fractions. `chance(p)` is true with probability p.


def heads_of(chance, gamma):
    """Algorithm 1: heads with probability exp(-gamma)."""
    while gamma > 1:
        if not heads_of(chance, Fraction(1)):
            return False
        gamma -= 1
    k = 1
    while chance(gamma / k):
        k += 1
    return k % 2 == 1


def laplace_attempt(chance, heads, scale):
    """Algorithm 2, once round: P[x] proportional to exp(-|x|/scale), scale = t/s; None if it has to begin again."""
    t, s = scale.numerator, scale.denominator
    u = next((u for u in range(t) if chance(Fraction(1, t - u))), 0)  # uniform on 0 … t-1
    if not heads(chance, Fraction(u, t)):
        return None
    v = 0
    while heads(chance, Fraction(1)):
        v += 1
    y = (u + t * v) // s
    if chance(Fraction(1, 2)):
        return -y or None  # zero has one sign
    return y


def gaussian_attempt(chance, heads, laplace, sigma):
    """Algorithm 3, once round: P[x] proportional to exp(-x²/(2·sigma²)); None if it has to begin again."""
    t = math.floor(sigma) + 1
    y = laplace(chance, Fraction(t))
    return y if heads(chance, (abs(y) - sigma * sigma / t) ** 2 / (2 * sigma * sigma)) else None


def rejection_laplace(chance, scale):
    while (found := laplace_attempt(chance, heads_of, scale)) is None:
        pass
    return found


def rejection_gaussian(chance, sigma):
    while (found := gaussian_attempt(chance, heads_of, rejection_laplace, sigma)) is None:
        pass
    return found
