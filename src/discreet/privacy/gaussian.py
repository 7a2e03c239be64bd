"""The exact delta of the Gaussian mechanism, and the textbook formula, which is not always private."""

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from discreet.kernel.mechanism import Gaussian
from discreet.kernel.numbers import Number, as_nonnegative, as_positive
from discreet.number_arguments import as_probability
from discreet.privacy.bisection import lowest_float
from discreet.privacy.noise_distribution import pmf

_BLOCK = 1 << 18
_MAX_SCALE = 1_000_000


def discrete_gaussian_delta(mechanism: Gaussian, shift: int, epsilon: Fraction) -> float:
    """Return the least delta of discrete Gaussian noise against the same noise shifted by `shift`.

    The loss of noise k is shift·(shift-2k)/(2·scale²), which exceeds epsilon below a certain k, computed in fractions.
    Every term p·(1 - exp(epsilon - loss)) is positive, so there is no cancellation; the sum ends where a term is below
    exp(-80) of the largest.
    """
    if not shift:
        return 0.0
    if mechanism.scale > _MAX_SCALE:
        raise ValueError(f"scale must be at most {_MAX_SCALE}; use gaussian_delta for larger scales")
    variance = mechanism.scale**2
    last = math.ceil(Fraction(shift, 2) - epsilon * variance / shift) - 1
    excess = Fraction(shift * (shift - 2 * last)) / (2 * variance) - epsilon  # above 0, at most shift/scale²
    first = min(last, 0) - math.ceil(13 * mechanism.scale)
    s, step, peak = float(mechanism.scale), float(shift / variance), pmf(mechanism, 0)
    return peak * math.fsum(_excesses(first, last, s, (float(excess), step)))


def _excesses(first: int, last: int, s: float, excess_line: tuple[float, float]) -> Iterator[float]:
    start, step = excess_line
    for low in range(first, last + 1, _BLOCK):
        k = np.arange(low, min(low + _BLOCK, last + 1), dtype=np.float64)
        yield float(np.sum(np.exp(-((k / s) ** 2) / 2) * -np.expm1(-start - (last - k) * step)))


def log_theta_ratio(scale: Fraction, offset: Fraction) -> float:
    """Return ln of the ratio of sum(exp(-(k-offset)²/(2·scale²))) over all integers k to the same sum with offset 0."""
    s, c = float(scale), float(offset % 1)
    if not c:
        return 0.0
    if s < 1:
        reach = range(-40, 41)
        shifted = math.fsum(math.exp(-(((k - c) / s) ** 2) / 2) for k in reach)
        return math.log(shifted / math.fsum(math.exp(-((k / s) ** 2) / 2) for k in reach))
    waves = [2 * math.exp(-2 * (math.pi * s * j) ** 2) for j in (1, 2, 3)]  # Poisson summation
    change = math.fsum(w * (math.cos(2 * math.pi * c * j) - 1) for j, w in enumerate(waves, 1))
    return math.log1p(change / (1 + math.fsum(waves)))


def gaussian_delta(sigma: Number, epsilon: Number, sensitivity: Number = 1) -> float:
    """Return the least delta for which continuous Gaussian noise is (epsilon, delta)-DP.

    Balle and Wang 2018, Theorem 5, with Mills ratios to reduce cancellation.

    >>> round(gaussian_delta(sigma=1, epsilon=1), 4)
    0.1269
    """
    ratio = float(as_positive(sigma, "sigma") / as_positive(sensitivity, "sensitivity"))
    near = float(as_nonnegative(epsilon, "epsilon")) * ratio - 1 / (2 * ratio)
    density = math.exp(-near * near / 2) / math.sqrt(2 * math.pi)
    far = _mills_ratio(near + 1 / ratio)  # exp(epsilon) times the density there is the density at `near`
    return _tail(near) - density * far if near < 0 else density * (_mills_ratio(near) - far)


def _tail(x: float) -> float:
    return math.erfc(x / math.sqrt(2)) / 2


def _mills_ratio(x: float) -> float:
    """Return P[N >= x] divided by the density at x."""
    if x < 20:
        return _tail(x) * math.sqrt(2 * math.pi) * math.exp(x * x / 2)
    denominator = x
    for k in range(40, 0, -1):  # Laplace's continued fraction
        denominator = x + k / denominator
    return 1 / denominator


def classic_gaussian_sigma(sensitivity: Number, epsilon: Number, delta: Number) -> float:
    """Return sigma by the textbook formula, which is private only for epsilon up to about 1.

    >>> sigma = classic_gaussian_sigma(1, epsilon=10, delta=1e-9)
    >>> gaussian_delta(sigma, epsilon=10) > 1e-9
    True
    """
    width = float(as_positive(sensitivity, "sensitivity"))
    slack = float(as_probability(delta, "delta"))
    return width * math.sqrt(2 * math.log(1.25 / slack)) / float(as_positive(epsilon, "epsilon"))


def analytic_gaussian_sigma(sensitivity: Number, epsilon: Number, delta: Number) -> float:
    """Return the least sigma for which continuous Gaussian noise is (epsilon, delta)-DP.

    >>> round(analytic_gaussian_sigma(1, epsilon=1, delta=1e-9), 2)
    5.5
    """
    width, slack = float(as_positive(sensitivity, "sensitivity")), float(as_probability(delta, "delta"))
    as_positive(epsilon, "epsilon")
    return width * lowest_float(lambda sigma: gaussian_delta(sigma, epsilon) <= slack, 0.0, 1.0, 1e-14)
