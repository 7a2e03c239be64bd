"""Partition selection: show a group only if its noisy number of units reaches a threshold."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

import numpy as np

from discreet.kernel.event import canonical_json
from discreet.kernel.loss import Loss
from discreet.kernel.mechanism import AdditiveMechanism, Gaussian, Laplace, Sensitivity
from discreet.kernel.numbers import Number, as_integer, as_probability, power_down, round_up

_PRECISION_BITS = 256
_MAX_UNBLOCKED = 256  # if a unit may be in more groups, delta is bounded for blocks of k
_WIDE_SCALE = 100  # from this scale on, floats give the starting point of the search


@dataclass(frozen=True)
class Threshold:
    """Shows a group if its noisy weight in units is at least `cut`.

    A unit in k groups has the weight size·min(1, groups/k) in each, rounded down; k is at most `most`.

    >>> from discreet.kernel.mechanism import Laplace
    >>> f"{float(Threshold(Laplace(1), cut=20, groups=1).loss().delta):.1e}"
    '4.1e-09'
    """

    noise: AdditiveMechanism
    cut: int
    groups: int
    size: int = 1
    most: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.noise, Laplace | Gaussian):
            raise TypeError(f"noise must be a Laplace or Gaussian mechanism, not {type(self.noise).__name__}")
        object.__setattr__(self, "cut", as_integer(self.cut, "cut", minimum=1))
        object.__setattr__(self, "groups", as_integer(self.groups, "groups", minimum=1))
        object.__setattr__(self, "size", as_integer(self.size, "size", minimum=1))
        object.__setattr__(self, "most", as_integer(self.most or self.groups, "most", minimum=self.groups))

    def loss(self) -> Loss:
        """Return the loss of showing the groups that pass, with their noisy weights.

        Claim: the loss of the noise for (groups, size), and delta = max over k of 1 - (1 - P[Z >= cut - w_k])^k, where
            w_k = floor(size·min(1, groups/k)), k = 1 … most, rounded up.
        Proof: a unit in k groups moves k totals by at most w_k each, which is at most groups·size in l1 and
            groups·size² in squared l2. Remove the unit: groups that contain other units stay, and for them the loss of
            the noise holds, because the threshold is post-processing. At most k groups contained this unit alone: they
            can be shown only with it, each with probability P[Z >= cut - w_k], independently. If k can be above 256,
            blocks of k are bounded by the largest weight and the largest k of the block together. A block whose
            last·P[Z >= cut - size] is not above the maximum so far is skipped: it cannot exceed it.
        Needs: AdditiveMechanism.loss, tail_bounds.
        Checked by: test_threshold_delta_is_the_chance_that_a_lone_unit_shows,
            test_scaled_units_cost_no_more_than_the_worst_k
        Seal: e446ea2fbbb5
        """
        pure = self.noise.loss(Sensitivity(self.groups, self.size))
        return Loss(pure.epsilon, pure.rho, self._delta())

    def _delta(self) -> Fraction:
        return _worst_block(self)[0]

    def _block_probability(self, block: tuple[int, int]) -> Fraction:
        """Return an upper bound, over a block of k, of the probability that any group of a single unit is shown."""
        first, last = block
        weight = min(self.size, self.size * self.groups // first)
        one = 1 << _PRECISION_BITS
        return round_up(
            Fraction(one - power_down(max(0, one - self._pass_probability(weight)), last, _PRECISION_BITS), one), 40
        )

    def _pass_probability(self, weight: int) -> int:
        """Return an upper bound of the probability that a group of this weight is shown, times 2^_PRECISION_BITS."""
        return self.noise.tail_bounds(self.cut - weight, _PRECISION_BITS)[1]

    def passes(self, noisy: np.ndarray) -> np.ndarray:
        """Return which groups are shown, given their noisy weights."""
        return np.asarray(noisy) >= self.cut

    def __str__(self) -> str:
        return canonical_json(
            {
                "name": "threshold",
                "noise": str(self.noise),
                "cut": str(self.cut),
                "groups": str(self.groups),
                "size": str(self.size),
                "most": str(self.most),
            }
        )


def threshold_for(noise: AdditiveMechanism, *, groups: int, delta: Number, size: int = 1, most: int = 0) -> Threshold:
    """Return the threshold with the lowest cut whose delta is at most the given one.

    Claim: threshold_for(…, delta=d).loss().delta <= d, and at the next lower cut it is not.
    Proof: delta decreases in the cut. The lowest cut for the worst k so far is the result if delta at that cut, over
        all k, is small enough; else another k is the worst, and the search continues from there.
    Needs: Threshold.loss.
    Checked by: test_threshold_for_finds_the_lowest_cut
    Seal: ade0c3663060

    >>> from discreet.kernel.mechanism import Laplace
    >>> threshold_for(Laplace(1), groups=1, delta="1e-9").cut
    22
    """
    allowed = as_probability(delta, "delta")
    value, worst = 0, (groups, groups)
    while True:
        candidate = Threshold(noise, 1, groups, size, most)
        value = _bisect_lowest(
            lambda c: replace(candidate, cut=c)._block_probability(worst) <= allowed,  # noqa: B023, SLF001
            value,
            _approximate_cut(candidate, worst, allowed),
        )
        candidate = replace(candidate, cut=value)
        delta_there, worst = _worst_block(candidate)
        if delta_there <= allowed:
            return candidate


def _bisect_lowest(fits: Callable[[int], bool], low: int, guess: int) -> int:
    """Return the lowest integer above `low` that fits, if all larger ones fit; the search begins at `guess`."""
    step, high = 1, max(low + 1, guess)
    while not fits(high):
        low, high, step = high, high + step, 2 * step
    step = 1
    while high - low > 1:
        middle = max(high - step, (low + high) // 2) if step else (low + high) // 2
        low, high, step = (low, middle, 2 * step) if fits(middle) else (middle, high, 0)
    return high


def _approximate_cut(threshold: Threshold, block: tuple[int, int], allowed: Fraction) -> int:
    """Return about the cut at which a block's probability is allowed, in floats: only a starting point."""
    scale, (first, last) = float(threshold.noise.scale), block
    if scale < _WIDE_SCALE:
        return 1
    weight = min(threshold.size, threshold.size * threshold.groups // first)
    target = -math.expm1(math.log1p(-float(allowed)) / last)  # per group
    if isinstance(threshold.noise, Laplace):
        return max(1, weight + round(-scale * math.log(target * (1 + math.exp(-1 / scale)))))
    low, high = -10.0, 40.0
    while high - low > 1e-15 * max(1.0, abs(high)):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if math.erfc(middle / math.sqrt(2)) / 2 > target else (low, middle)
    return max(1, weight + round(high * scale + 0.5))


@lru_cache(maxsize=256)
def _worst_block(threshold: Threshold) -> tuple[Fraction, tuple[int, int]]:
    """Return delta and the block of k that attains it."""
    top = threshold._pass_probability(threshold.size)  # noqa: SLF001
    worst = (Fraction(-1), (threshold.groups, threshold.groups))
    for block in reversed(_blocks(threshold.groups, threshold.most)):
        if Fraction(block[1] * top, 1 << _PRECISION_BITS) > worst[0]:
            worst = max(worst, (threshold._block_probability(block), block))  # noqa: SLF001
    return min(Fraction(1), worst[0]), worst[1]


def _blocks(groups: int, most: int) -> list[tuple[int, int]]:
    """Return ranges that cover k = groups … most; a smaller k has the same weight and a lower probability."""
    blocks, first = [], groups
    while first <= most:
        last = first if most <= _MAX_UNBLOCKED else min(most, first + first // 16)
        blocks.append((first, last))
        first = last + 1
    return blocks
