"""Calibration: the noise for a cost, and the lowest threshold for a delta."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction

from discreet.kernel.loss import Loss, zcdp_rho
from discreet.kernel.mechanism import Gaussian, Laplace, Sensitivity
from discreet.kernel.numbers import Number, as_positive, check_type, round_up
from discreet.kernel.partition_selection import Threshold, worst_block
from discreet.kernel.reservation import CLIP_RADIUS, Noise, clipped_sum_sensitivity
from discreet.number_arguments import as_probability
from discreet.privacy.bisection import lowest_float, lowest_integer
from discreet.privacy.conversion import exp_up
from discreet.privacy.tail_enclosures import normal_tail_bounds, tail_bounds

_SUM_BELOW_SIGMA = 60  # sigma up to which the discrete distribution is summed
_SMOOTHING_SCALES = [Fraction(n, 10) for n in range(6, 21)]
_WIDE_SCALE = 100  # from this scale on, floats give the starting point of the search for a threshold


def laplace_for(sensitivity: Sensitivity, epsilon: Number) -> Laplace:
    """Return the Laplace mechanism that costs exactly epsilon.

    Claim: laplace_for(s, e).loss(s).epsilon == e.
    Proof: scale = l1/epsilon, as fractions.
    Needs: Laplace.loss.
    Checked by: test_calibration_spends_what_was_requested

    >>> laplace_for(Sensitivity(groups=1, size=1), "1/10").scale
    Fraction(10, 1)
    """
    return Laplace(check_type(Sensitivity, sensitivity, "sensitivity").l1 / as_positive(epsilon, "epsilon"))


def gaussian_for(
    sensitivity: Sensitivity,
    epsilon: Number | None = None,
    delta: Number | None = None,
    *,
    rho: Number | None = None,
) -> Gaussian:
    """Return the Gaussian mechanism with the least noise for a rho, or for an epsilon and a delta.

    Claim: one release costs at most rho, or is (epsilon, delta)-DP.
    Proof: rho: Gaussian.loss, with sigma = sqrt(l2²/(2·rho)) rounded up. (epsilon, delta): the least of three scales
        that each suffice: _scale_by_summation, _scales_by_smoothing, and the one whose rho converts to (epsilon,
        delta).
    Needs: Gaussian.loss, _scale_by_summation, _scales_by_smoothing, zcdp_rho, sqrt_up.
    Checked by: test_calibration_spends_what_was_requested,
        test_calibrated_gaussian_is_private_and_near_the_analytic_one

    >>> gaussian_for(Sensitivity(groups=1, size=1), rho="1/200").scale
    Fraction(10, 1)
    """
    check_type(Sensitivity, sensitivity, "sensitivity")
    if rho is not None:
        if epsilon is not None or delta is not None:
            raise ValueError("rho: give either rho, or epsilon and delta, not both")
        return Gaussian(_scale_for_rho(sensitivity, as_positive(rho, "rho")))
    if epsilon is None or delta is None:
        raise ValueError("delta: give both epsilon and delta, or rho")
    e, d = as_positive(epsilon, "epsilon"), as_probability(delta, "delta")
    scales = [_scale_for_rho(sensitivity, zcdp_rho(e, d)), *_scales_by_smoothing(sensitivity, e, d)]
    if sensitivity.l1 == 1:
        scales += _scale_by_summation(e, d, min(scales))
    return Gaussian(min(scales))


def _scale_for_rho(sensitivity: Sensitivity, rho: Fraction) -> Fraction:
    return sqrt_up(sensitivity.l2_squared / (2 * rho))


def _scale_by_summation(epsilon: Fraction, delta: Fraction, sufficient: Fraction) -> list[Fraction]:
    """Return the least scale for a count of sensitivity 1, from the discrete distribution itself.

    Claim: X + Z is (epsilon, delta)-DP for neighbours that differ by one.
    Proof: Canonne, Kamath and Steinke 2020, Theorem 7: the least delta is P[Z > t - 1/2] - e^epsilon·P[Z > t + 1/2]
        with t = epsilon·sigma²; the first is bounded from above, the second from below.
    Needs: tail_bounds, exp_up.
    Checked by: test_calibrated_gaussian_is_private_and_near_the_analytic_one
    """
    if sufficient > _SUM_BELOW_SIGMA:
        return []
    bits = 128 + delta.denominator.bit_length()

    def is_private(sigma: Fraction) -> bool:
        first = math.floor(epsilon * sigma * sigma - Fraction(1, 2)) + 1
        high = tail_bounds(Gaussian(sigma), first, bits)[1]
        low = tail_bounds(Gaussian(sigma), first + 1, bits)[0]
        return high - _exp_down(epsilon) * low <= delta * (1 << bits)

    return [_bisect_least(is_private, sufficient / 2, sufficient)]


def _scales_by_smoothing(sensitivity: Sensitivity, epsilon: Fraction, delta: Fraction) -> list[Fraction]:
    """Return scales for vectors, from the analytic calibration of continuous noise plus a small correction.

    Claim: the discrete Gaussian of these scales is (epsilon, delta)-DP for this sensitivity.
    Proof: add continuous noise N(0, s1²) to each total, then round y at random to an integer z with probability
        proportional to exp(-(z-y)²/(2·s²)). That is post-processing of the continuous mechanism, whose
        least delta is known (Balle and Wang 2018, Theorem 8). By Poisson summation the rounding's normaliser is
        s·sqrt(2·pi) up to a factor 1±h, h = 2·exp(-2·pi²·s²)·1.001 for s >= 0.6, so the result has, up to such a
        factor in each coordinate, the probabilities of the discrete Gaussian with sigma² = s1² + s² (whose own
        normaliser is the same for both neighbours). At most l1 coordinates differ between neighbours, because they
        move by integers; the others cancel. Hence epsilon grows by at most l1·3·h and delta by a factor
        (1+h)^l1 <= 1/(1 - l1·h).
    Needs: normal_tail_bounds, exp_up, sqrt_up, _continuous_sigma.
    Checked by: test_calibrated_gaussian_is_private_and_near_the_analytic_one
    """
    scales = []
    for s in _SMOOTHING_SCALES:
        h = exp_up(Fraction("-19.7392") * s * s) * Fraction("2.002")  # 2·pi² = 19.73920880…
        slack = sensitivity.l1 * h
        if slack < epsilon / 100 and slack < Fraction(1, 100):
            first = _continuous_sigma(sensitivity, epsilon - 3 * slack, delta * (1 - slack))
            scales.append(sqrt_up(first * first + s * s))
    return scales


def _continuous_sigma(sensitivity: Sensitivity, epsilon: Fraction, delta: Fraction) -> Fraction:
    """Return the least sigma, rounded up, of continuous noise that is (epsilon, delta)-DP."""
    root = sqrt_up(Fraction(sensitivity.l2_squared))
    e, d = float(epsilon), float(delta)

    def approximate_delta(ratio: float) -> float:  # delta for sigma = ratio·l2, in floats
        a, b = (e * ratio - 0.5 / ratio) / math.sqrt(2), (e * ratio + 0.5 / ratio) / math.sqrt(2)
        return (math.erfc(a) - math.exp(min(e, 700.0)) * math.erfc(b)) / 2

    approximate_ratio = lowest_float(lambda ratio: approximate_delta(ratio) <= d, 1e-9, 1.0, 1e-12)
    bits = 128 + delta.denominator.bit_length()

    def is_private(ratio: Fraction) -> bool:
        first = normal_tail_bounds(epsilon * ratio - 1 / (2 * ratio), bits)[1]
        second = normal_tail_bounds(epsilon * ratio + 1 / (2 * ratio), bits)[0]
        return first - _exp_down(epsilon) * second <= delta * (1 << bits)

    step = Fraction(1, 10**10)
    ratio = round_up(Fraction(approximate_ratio), 14) * (1 + step)
    while not is_private(ratio):  # the floats were off by more than 10^-10
        step *= 2
        ratio *= 1 + step
    return root * ratio


def sqrt_up(x: Fraction, digits: int = 12) -> Fraction:
    """Return the square root of x > 0, rounded up to `digits` significant decimal digits."""
    # The root has about half as many digits as x; scale so that the integer root has `digits` of them.
    size = (len(str(x.numerator)) - len(str(x.denominator))) // 2
    unit = Fraction(10) ** (size - digits)
    target = x / (unit * unit)
    root = math.isqrt(math.ceil(target))
    while root * root < target:
        root += 1
    return root * unit


def _exp_down(x: Fraction) -> Fraction:
    return 1 / exp_up(-x)


def _bisect_least(holds: Callable[[Fraction], bool], low: Fraction, high: Fraction) -> Fraction:
    """Return the least number between low and high at which `holds` is true, as it is at high; to about 10^-6."""
    while high - low > high / 10**6:
        digits = 9 + max(
            0, len(str(high.denominator)) - len(str(high.numerator))
        )  # significant ones, even of a very small number
        middle = round_up((low + high) / 2, digits)
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def threshold_for(noise: Laplace | Gaussian, *, groups: int, delta: Number, size: int = 1, most: int = 0) -> Threshold:
    """Return the threshold with the lowest cut whose delta is at most the given one.

    Claim: threshold_for(…, delta=d).loss().delta <= d, and at the next lower cut it is not.
    Proof: delta decreases in the cut. The lowest cut for the worst k so far is the result if delta at that cut, over
        all k, is small enough; else another k is the worst, and the search continues from there.
    Needs: Threshold.loss, Threshold.block_delta, worst_block.
    Checked by: test_threshold_for_finds_the_lowest_threshold

    >>> threshold_for(Laplace(1), groups=1, delta="1e-9").cut
    22
    """
    allowed = as_probability(delta, "delta")
    threshold, block = Threshold(noise, 1, groups, size, most), (groups, groups)
    lowest = 0
    while True:
        lowest = lowest_integer(
            lambda cut: replace(threshold, cut=cut).block_delta(block) <= allowed,  # noqa: B023 - called at once
            lowest,
            _approximate_cut(threshold, block, allowed),
        )
        threshold = replace(threshold, cut=lowest)
        delta_there, block = worst_block(threshold)
        if delta_there <= allowed:
            return threshold


def _approximate_cut(threshold: Threshold, block: tuple[int, int], allowed: Fraction) -> int:
    """Return about the cut at which a block's probability is allowed, in floats: only a starting point."""
    scale, (first, last) = float(threshold.noise.scale), block
    if scale < _WIDE_SCALE:
        return 1
    weight = threshold.weight_in(first)
    target = -math.expm1(math.log1p(-float(allowed)) / last)  # per group
    if isinstance(threshold.noise, Laplace):
        return max(1, weight + round(-scale * math.log(target * (1 + math.exp(-1 / scale)))))
    deviations = lowest_float(lambda x: math.erfc(x / math.sqrt(2)) / 2 <= target, -10.0, 40.0, 1e-15)
    return max(1, weight + round(deviations * scale + 0.5))


def reserved_noises(cost: Loss, shares: Sequence[Number], *, substitution: bool = False) -> list[Noise]:
    """Return the noise of each draw of a reservation, with a cost divided in proportion to the shares."""
    weights = [as_positive(share, "shares") for share in shares]
    total = sum(weights, Fraction(0))
    if cost.epsilon is not None:
        sensitivity = clipped_sum_sensitivity(Laplace(CLIP_RADIUS), substitution=substitution)
        return [laplace_for(sensitivity, cost.epsilon * part / total) for part in weights]
    sensitivity = clipped_sum_sensitivity(Gaussian(CLIP_RADIUS), substitution=substitution)
    return [gaussian_for(sensitivity, rho=cost.rho * part / total) for part in weights]
