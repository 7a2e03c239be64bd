"""Partition selection: show a group only if its noisy number of units reaches a threshold."""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from discreet.kernel.event import canonical_json
from discreet.kernel.loss import Loss
from discreet.kernel.mechanism import Gaussian, Laplace, Sensitivity
from discreet.kernel.numbers import as_integer, power_down, round_up

_PRECISION_BITS = 256
_MAX_UNBLOCKED = 256  # if a unit may be in more groups, delta is bounded for blocks of k


@dataclass(frozen=True)
class Threshold:
    """Shows a group if its noisy weight in units is at least `cut`.

    A unit in k groups has the weight size·min(1, groups/k) in each, rounded down; k is at most `most`.

    >>> from discreet.kernel.mechanism import Laplace
    >>> f"{float(Threshold(Laplace(1), cut=20, groups=1).loss().delta):.1e}"
    '4.1e-09'
    """

    noise: Laplace | Gaussian
    cut: int
    groups: int
    size: int = 1
    most: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.noise, Laplace | Gaussian):
            raise TypeError(f"noise must be a Laplace or Gaussian mechanism, not {type(self.noise).__name__}")
        for name in ("cut", "groups", "size"):
            object.__setattr__(self, name, as_integer(getattr(self, name), name, minimum=1))
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
        Needs: worst_block, Threshold.block_delta, Laplace.loss, Gaussian.loss, laplace_tail_up,
            gaussian_tail_up, power_down, round_up.
        Checked by: test_threshold_delta_is_the_probability_that_a_lone_unit_is_shown,
            test_scaled_units_cost_no_more_than_the_worst_k
        """
        pure = self.noise.loss(Sensitivity(self.groups, self.size))
        return Loss(pure.epsilon, pure.rho, worst_block(self)[0])

    def weight_in(self, k: int) -> int:
        """Return the weight of a unit in each of its k groups."""
        return min(self.size, self.size * self.groups // k)

    def block_delta(self, block: tuple[int, int]) -> Fraction:
        """Return an upper bound, over a block of k, of the probability that any group of a single unit is shown."""
        first, last = block
        one = 1 << _PRECISION_BITS
        hidden = max(0, one - self._pass_probability(self.weight_in(first)))
        return round_up(Fraction(one - power_down(hidden, last, _PRECISION_BITS), one), 40)

    def _pass_probability(self, weight: int) -> int:
        """Return an upper bound of the probability that a group of this weight is shown, times 2^_PRECISION_BITS."""
        return self.noise.tail_up(self.cut - weight, _PRECISION_BITS)

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


@lru_cache(maxsize=256)
def worst_block(threshold: Threshold) -> tuple[Fraction, tuple[int, int]]:
    """Return delta and the block of k that attains it."""
    top = threshold._pass_probability(threshold.size)  # noqa: SLF001
    worst = (Fraction(-1), (threshold.groups, threshold.groups))
    for block in reversed(_blocks(threshold.groups, threshold.most)):
        if Fraction(block[1] * top, 1 << _PRECISION_BITS) > worst[0]:
            worst = max(worst, (threshold.block_delta(block), block))
    return min(Fraction(1), worst[0]), worst[1]


def _blocks(groups: int, most: int) -> list[tuple[int, int]]:
    """Return ranges that cover k = groups … most; a smaller k has the same weight and a lower probability."""
    blocks, first = [], groups
    while first <= most:
        last = first if most <= _MAX_UNBLOCKED else min(most, first + first // 16)
        blocks.append((first, last))
        first = last + 1
    return blocks
