"""Additive mechanisms: a scale of noise and a sensitivity determine the loss."""

from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

import numpy as np

from discreet.kernel import noise
from discreet.kernel.errors import require
from discreet.kernel.event import canonical_json
from discreet.kernel.loss import Loss
from discreet.kernel.noise.tail_bounds import gaussian_tail_up, laplace_tail_up
from discreet.kernel.numbers import Number, as_integer, as_positive, check_type

_INT64 = np.iinfo(np.int64)
_CHUNK = 30_000  # values at a time, so that they stay in the processor's cache
_MAX_SCALE = 10**100  # a larger scale is surely a mistake, and would overflow the floats of the samplers
_POOLED_LENGTH = 32  # up to this length noise comes from the pool, in a time independent of its values
_Values = TypeVar("_Values", int, np.ndarray)


@dataclass(frozen=True, init=False)
class Sensitivity:
    """The sensitivity of a vector of integer totals: groups·size in l1, groups·size² in squared l2.

    >>> Sensitivity(groups=5, size=20)
    Sensitivity(l1=100, l2_squared=2000)
    """

    l1: int
    l2_squared: int

    def __init__(self, groups: int, size: int) -> None:
        count, each = as_integer(groups, "groups", minimum=1), as_integer(size, "size", minimum=1)
        object.__setattr__(self, "l1", count * each)
        object.__setattr__(self, "l2_squared", count * each**2)

    @classmethod
    def of_norms(cls, l1: int, l2_squared: int) -> "Sensitivity":
        """Return a sensitivity with these norms; a vector of integers has l1 <= l2² <= l1².

        >>> Sensitivity.of_norms(l1=7, l2_squared=3).l2_squared
        3
        """
        square = as_integer(l2_squared, "l2_squared", minimum=1)
        sensitivity = cls(1, min(as_integer(l1, "l1", minimum=1), square))
        object.__setattr__(sensitivity, "l2_squared", min(square, sensitivity.l2_squared))
        return sensitivity

    def __str__(self) -> str:
        """Return the canonical JSON that the ledger stores."""
        return canonical_json({"l1": str(self.l1), "l2_squared": str(self.l2_squared)})


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
        Needs: Laplace.perturb, Sensitivity.
        Checked by: test_a_count_loses_exactly_epsilon, test_laplace_loss_is_the_worst_log_ratio
        """
        return Loss(check_type(Sensitivity, sensitivity, "sensitivity").l1 / self.scale)

    def perturb(self, values: _Values) -> _Values:
        """Return the values with fresh noise on each; int64 gives int64, an int gives an int.

        Claim: independent noise with P[k] ∝ exp(-|k|/scale) is added to every value, as add_noise claims.
        Proof: the sampler of this scale.
        Needs: add_noise, laplace_sampler.
        Checked by: test_noise_is_never_truncated_and_sums_are_clamped_afterwards,
            test_chi_square_accepts_the_distribution_and_rejects_nearby_ones
        """
        return add_noise(values, noise.laplace_sampler(self.scale.numerator, self.scale.denominator))

    def tail_up(self, k: int, bits: int) -> int:
        """Return an upper bound of P[noise >= k]·2^bits."""
        return laplace_tail_up(self.scale, k, bits)

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
        Needs: Gaussian.perturb, Sensitivity.
        Checked by: test_gaussian_loss_bounds_every_renyi_divergence
        """
        l2_squared = check_type(Sensitivity, sensitivity, "sensitivity").l2_squared
        return Loss(None, l2_squared / (2 * self.scale * self.scale))

    def perturb(self, values: _Values) -> _Values:
        """Return the values with fresh noise on each; int64 gives int64, an int gives an int.

        Claim: independent noise with P[k] ∝ exp(-k²/(2·scale²)) is added to every value, as add_noise claims.
        Proof: the sampler of this scale.
        Needs: add_noise, gaussian_sampler.
        Checked by: test_noise_is_never_truncated_and_sums_are_clamped_afterwards,
            test_chi_square_accepts_the_distribution_and_rejects_nearby_ones
        """
        return add_noise(values, noise.gaussian_sampler(self.scale.numerator, self.scale.denominator))

    def tail_up(self, k: int, bits: int) -> int:
        """Return an upper bound of P[noise >= k]·2^bits."""
        return gaussian_tail_up(self.scale, k, bits)

    def __str__(self) -> str:
        return canonical_json({"name": "gaussian", "scale": str(self.scale)})


def _checked_scale(value: Number) -> Fraction:
    scale = as_positive(value, "scale")
    require(Fraction(1, _MAX_SCALE) <= scale <= _MAX_SCALE, "scale must be between 10^-100 and 10^100")
    return scale


def add_noise(values: _Values, sampler: noise.Sampler) -> _Values:
    """Return the values with a fresh draw added to each; int64 gives int64, an int gives an int.

    Claim: an independent draw of the sampler is added to every value and is never truncated. Before that, nothing but
        the type and the shape of an array is examined.
    Proof: Sampler.draw, or draws made in advance for a short vector; the sum is formed before it is saturated to
        int64. A Python integer outside int64 is not a valid value and is refused.
    Needs: Sampler.draw, Sampler.draw_one, draw_noise, add_saturating, _add_one.
    Checked by: test_noise_is_never_truncated_and_sums_are_clamped_afterwards
    """
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
    require(_INT64.min <= values <= _INT64.max, "values must lie within int64")
    return _add_one(np.array([values], np.int64), sampler.draw_one())


def draw_noise(sampler: noise.Sampler, count: int) -> np.ndarray:
    """Return `count` draws, from the pool if they are few."""
    few = 0 < count <= _POOLED_LENGTH
    return np.concatenate([sampler.draw_one() for _ in range(count)]) if few else sampler.draw(count)


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
