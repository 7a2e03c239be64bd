"""Additive mechanisms: a scale of noise and a sensitivity determine the loss."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol, overload

import numpy as np

from discreet.kernel import noise
from discreet.kernel.event import canonical_json
from discreet.kernel.loss import Loss
from discreet.kernel.noise.tail_bounds import gaussian_tail_bounds
from discreet.kernel.numbers import Number, as_integer, as_positive, as_probability, check_type, exp_bounds, power_down

_INT64 = np.iinfo(np.int64)
_CHUNK = 30_000  # values at a time, so that they stay in the processor's cache
_MAX_SCALE = 10**100  # a larger scale is surely a mistake, and would overflow the floats of the samplers
_POOLED_LENGTH = 32  # up to this length noise comes from the pool, in a time independent of its values


@dataclass(frozen=True)
class Sensitivity:
    """The sensitivity of a vector of integer totals: groups·size in l1, groups·size² in squared l2.

    >>> Sensitivity(groups=5, size=20).l1, Sensitivity(groups=5, size=20).l2_squared
    (100, 2000)
    """

    groups: int
    size: int
    norms: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "groups", as_integer(self.groups, "groups", minimum=1))
        object.__setattr__(self, "size", as_integer(self.size, "size", minimum=1))
        if self.norms is not None:
            l1, l2_squared = self.norms
            norms = as_integer(l1, "norms", minimum=1), as_integer(l2_squared, "norms", minimum=1)
            object.__setattr__(self, "norms", norms)

    @classmethod
    def of_norms(cls, l1: int, l2_squared: int) -> "Sensitivity":
        """Return a sensitivity with these norms.

        >>> Sensitivity.of_norms(l1=7, l2_squared=3).l2_squared
        3
        """
        l1, l2_squared = as_integer(l1, "l1", minimum=1), as_integer(l2_squared, "l2_squared", minimum=1)
        # A vector of integers has l1 <= l2² <= l1².
        l1 = min(l1, l2_squared)
        return cls(1, l1, norms=(l1, min(l2_squared, l1 * l1)))

    @property
    def l1(self) -> int:
        """The l1 sensitivity: the maximum sum of absolute changes."""
        return self.norms[0] if self.norms else self.groups * self.size

    @property
    def l2_squared(self) -> int:
        """The squared l2 sensitivity: the maximum sum of squared changes."""
        return self.norms[1] if self.norms else self.groups * self.size**2

    def __str__(self) -> str:
        """Return the canonical JSON that the ledger stores."""
        return canonical_json({"l1": str(self.l1), "l2_squared": str(self.l2_squared)})


class AdditiveMechanism(Protocol):
    """The common interface of additive mechanisms."""

    @property
    def scale(self) -> Fraction:
        """The scale of the noise, in steps."""

    def loss(self, sensitivity: Sensitivity) -> Loss:
        """Return the loss of a release."""

    def tail_bounds(self, k: int, bits: int) -> tuple[int, int]:
        """Enclose P[noise >= k]·2^bits."""


@dataclass(frozen=True)
class Laplace:
    """Adds discrete Laplace noise: P[k] ∝ exp(-|k|/scale).

    >>> count = Laplace(10).perturb(1000)
    >>> Laplace(10).loss(Sensitivity(groups=1, size=1))
    Loss(epsilon=1/10, rho=1/200)
    """

    scale: Fraction

    def __init__(self, scale: Number) -> None:
        object.__setattr__(self, "scale", _checked_scale(scale))

    def loss(self, sensitivity: Sensitivity) -> Loss:
        """Return the loss of a release.

        Claim: epsilon = l1/scale, and it is attained.
        Proof: P[x+Z = y]/P[x'+Z = y] = exp((|y-x'| - |y-x|)/scale) in each coordinate, whose product is at most
            exp(|x-x'|_1/scale), with equality for y far enough on x's side.
        Needs: perturb adds independent noise of this distribution.
        Checked by: test_a_count_loses_exactly_epsilon, test_laplace_loss_is_the_worst_log_ratio
        Seal: 7ceadfe98f79
        """
        return Loss(check_type(Sensitivity, sensitivity, "sensitivity").l1 / self.scale)

    @overload
    def perturb(self, values: int | np.integer) -> int: ...
    @overload
    def perturb(self, values: np.ndarray) -> np.ndarray: ...
    def perturb(self, values: int | np.integer | np.ndarray) -> int | np.ndarray:
        """Return the values with fresh noise on each; int64 gives int64, an int gives an int.

        Claim: noise of this distribution, independent for every value, is added, and is never truncated. Before that,
            nothing but the type and the shape of an array is examined.
        Proof: Sampler.draw, or draws made in advance for a short vector; the sum is formed before it is saturated to
            int64. A Python integer outside int64 is not a valid value and is refused.
        Needs: Sampler.draw.
        Checked by: test_noise_is_never_cut_and_sums_are_fitted_afterwards,
            test_chi_square_accepts_the_law_and_rejects_its_neighbours
        Seal: 634ef1b71156
        """
        return _add_noise(values, noise.laplace_sampler(self.scale.numerator, self.scale.denominator))

    def pmf(self, k: int) -> float:
        """Return the probability that the noise is k.

        >>> round(Laplace(1).pmf(0), 4)
        0.4621
        """
        b = float(self.scale)
        return math.tanh(1 / (2 * b)) * math.exp(-_clamped_abs(k) / b)

    def tail_bounds(self, k: int, bits: int) -> tuple[int, int]:
        """Enclose P[noise >= k]·2^bits, which is q^k/(1+q) for k >= 1 and q = exp(-1/scale).

        Claim: low <= P[noise >= k]·2^bits <= high.
        Proof: the geometric series; the quotient of the enclosures, rounded outwards.
        Needs: exp_bounds.
        Checked by: test_tails_of_the_laplace_noise_enclose_the_sum
        Seal: a80f3dd0c82c
        """
        if k <= 0:
            low, high = self.tail_bounds(1 - k, bits)
            return (1 << bits) - high, (1 << bits) - low
        q_low, q_high = exp_bounds(1 / self.scale, bits)
        low, high = exp_bounds(k / self.scale, bits)
        one = 1 << bits
        return (low << bits) // (one + q_high), -((-high << bits) // (one + q_low))

    def margin(self, confidence: Number, count: int = 1) -> int:
        """Return the least m such that `count` draws are all within ±m with at least this probability.

        >>> Laplace(1).margin(0.95, count=10_000)
        12
        """
        return _simultaneous_margin(self, confidence, count)

    def __str__(self) -> str:
        return canonical_json({"name": "laplace", "scale": str(self.scale)})


@dataclass(frozen=True)
class Gaussian:
    """Adds discrete Gaussian noise: P[k] ∝ exp(-k²/(2·scale²)).

    >>> count = Gaussian(10).perturb(1000)
    >>> Gaussian(10).loss(Sensitivity(groups=1, size=1))
    Loss(rho=1/200)
    """

    scale: Fraction

    def __init__(self, scale: Number) -> None:
        object.__setattr__(self, "scale", _checked_scale(scale))

    def loss(self, sensitivity: Sensitivity) -> Loss:
        """Return the loss of a release.

        Claim: rho = l2²/(2·scale²), and it is attained.
        Proof: Canonne, Kamath and Steinke 2020, Proposition 5 in each coordinate; rho adds over coordinates.
        Needs: perturb adds independent noise of this distribution.
        Checked by: test_gaussian_loss_bounds_every_renyi_divergence
        Seal: be3ef9fca425
        """
        l2_squared = check_type(Sensitivity, sensitivity, "sensitivity").l2_squared
        return Loss(None, l2_squared / (2 * self.scale * self.scale))

    @overload
    def perturb(self, values: int | np.integer) -> int: ...
    @overload
    def perturb(self, values: np.ndarray) -> np.ndarray: ...
    def perturb(self, values: int | np.integer | np.ndarray) -> int | np.ndarray:
        """Return the values with fresh noise on each; int64 gives int64, an int gives an int.

        Claim: noise of this distribution, independent for every value, is added, and is never truncated. Before that,
            nothing but the type and the shape of an array is examined.
        Proof: Sampler.draw, or draws made in advance for a short vector; the sum is formed before it is saturated to
            int64. A Python integer outside int64 is not a valid value and is refused.
        Needs: Sampler.draw.
        Checked by: test_noise_is_never_cut_and_sums_are_fitted_afterwards,
            test_chi_square_accepts_the_law_and_rejects_its_neighbours
        Seal: 913d04215b82
        """
        return _add_noise(values, noise.gaussian_sampler(self.scale.numerator, self.scale.denominator))

    def pmf(self, k: int) -> float:
        """Return the probability that the noise is k.

        >>> round(Gaussian(1).pmf(0), 4)
        0.3989
        """
        sigma = float(self.scale)
        # The sum over all integers: directly if few terms matter, else by Poisson summation.
        if sigma < 2:
            norm = 1 + 2 * sum(math.exp(-((j / sigma) ** 2) / 2) for j in range(1, 80))
        else:
            norm = sigma * math.sqrt(2 * math.pi) * (1 + 2 * math.exp(-2 * (math.pi * sigma) ** 2))
        ratio = _clamped_abs(k) / sigma
        return math.exp(-ratio * ratio / 2) / norm

    def tail_bounds(self, k: int, bits: int) -> tuple[int, int]:
        """Enclose P[noise >= k]·2^bits."""
        return gaussian_tail_bounds(self.scale, k, bits)

    def margin(self, confidence: Number, count: int = 1) -> int:
        """Return the least m such that `count` draws are all within ±m with at least this probability.

        >>> Gaussian(10).margin(0.95)
        20
        """
        return _simultaneous_margin(self, confidence, count)

    def __str__(self) -> str:
        return canonical_json({"name": "gaussian", "scale": str(self.scale)})


def _clamped_abs(k: int) -> int:
    return min(abs(as_integer(k, "k", minimum=-_MAX_SCALE)), _MAX_SCALE)  # beyond it, every probability is 0 as a float


def _checked_scale(value: Number) -> Fraction:
    scale = as_positive(value, "scale")
    if not Fraction(1, _MAX_SCALE) <= scale <= _MAX_SCALE:
        raise ValueError("scale must be between 10^-100 and 10^100")
    return scale


def _add_noise(values: int | np.integer | np.ndarray, sampler: noise.Sampler) -> int | np.ndarray:
    if isinstance(values, np.ndarray):
        # Decided by the type alone: no value is examined before its noise is added. A subclass may define addition
        # differently: a masked array would leave masked values unchanged.
        if type(values) is not np.ndarray:
            raise TypeError(f"values must be a plain array, not a {type(values).__name__}; fill and convert it first")
        if values.dtype.kind != "i":
            raise TypeError(
                f"values must be an array of signed integers, not of {values.dtype}: divide by a step, round, and "
                "use .astype(np.int64)"
            )
        flat = values.astype(np.int64, copy=False).reshape(-1)
        noisy = np.empty_like(flat)
        for start in range(0, flat.size, _CHUNK):
            part = flat[start : start + _CHUNK]
            noisy[start : start + _CHUNK] = add_saturating(part, draw_noise(sampler, part.size))
        return noisy.reshape(values.shape)
    # The messages name the type, never the value.
    if isinstance(values, bool) or not isinstance(values, int | np.integer):
        raise TypeError(
            f"values must be an int or an array of signed integers, not {type(values).__name__}: use np.array(…)"
        )
    if not _INT64.min <= values <= _INT64.max:
        raise ValueError("values must lie within int64")
    return _add_one(np.array([values], np.int64), sampler.draw_one())


def draw_noise(sampler: noise.Sampler, count: int) -> np.ndarray:
    """Return `count` draws, from the pool if they are few."""
    if count > _POOLED_LENGTH:
        return sampler.draw(count)
    return np.concatenate([sampler.draw_one() for _ in range(count)])


def _add_one(value: np.ndarray, drawn: np.ndarray) -> int:
    """Return value + noise as a Python integer, which is created from the sum only."""
    total = value + drawn
    exact = total.dtype == object or not (((value ^ total) & (drawn ^ total)) < 0).item()
    return int(total.tolist()[0] if exact else value.item() + drawn.item())


def add_saturating(values: np.ndarray, drawn: np.ndarray) -> np.ndarray:
    """Return values + noise, computed as in unbounded integers and then clamped to int64.

    Clamping a *noisy* value is post-processing. A sum has wrapped around exactly if both summands have the opposite
    sign; it is replaced by the end of int64 that it passed.
    """
    if drawn.dtype == object:
        return np.array(np.clip(values.astype(object) + drawn, _INT64.min, _INT64.max), np.int64)
    total: np.ndarray = values + drawn
    signs = values ^ total
    signs &= drawn ^ total
    wrapped = np.flatnonzero(signs < 0)
    total[wrapped] = np.where(drawn[wrapped] < 0, _INT64.min, _INT64.max)
    return total


def _simultaneous_margin(mechanism: AdditiveMechanism, confidence: Number, count: int) -> int:
    """Return the least m with P[|noise| <= m]^count >= confidence.

    The probability is enclosed between integers, so the result is exact; where the enclosure for a very wide Gaussian
    cannot distinguish two neighbouring m, it is the larger.
    """
    level = as_probability(confidence, "confidence")
    draws = as_integer(count, "count", minimum=1)
    bits = 128 + (draws * math.ceil(1 / (1 - level))).bit_length()  # enough for the probability of being outside

    def is_sufficient(m: int) -> bool:
        outside = 2 * mechanism.tail_bounds(m + 1, bits)[1]
        inside = max(0, (1 << bits) - outside)
        return Fraction(power_down(inside, draws, bits), 1 << bits) >= level

    high = 1
    while not is_sufficient(high):
        high *= 2
    low = -1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_sufficient(middle) else (middle, high)
    return high


def laplace_for(sensitivity: Sensitivity, epsilon: Number) -> Laplace:
    """Return the Laplace mechanism that costs exactly epsilon.

    Claim: laplace_for(s, e).loss(s).epsilon == e.
    Proof: scale = l1/epsilon, as fractions.
    Needs: Laplace.loss.
    Checked by: test_calibration_spends_what_was_asked
    Seal: 16a4f02a1fd5

    >>> laplace_for(Sensitivity(groups=1, size=1), "1/10").scale
    Fraction(10, 1)
    """
    return Laplace(check_type(Sensitivity, sensitivity, "sensitivity").l1 / as_positive(epsilon, "epsilon"))
