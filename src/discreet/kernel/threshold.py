"""Discovering groups: a group is shown only if its noisy number of units passes a cut."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from discreet.kernel.event import canonical
from discreet.kernel.exact import Number, power_down, round_up, share, whole
from discreet.kernel.loss import Loss
from discreet.kernel.mechanism import Additive, Gaussian, Laplace, Sensitivity

_BITS = 256
_ONE_BY_ONE = 256  # beyond so many groups to a unit, numbers of groups are taken in blocks


@dataclass(frozen=True)
class Threshold:
    """Shows a group if its weight in units, with noise, is at least `cut`.

    A unit in k groups has the weight size·min(1, groups/k) in each, rounded down, and is in at most `most` of them.

    >>> from discreet.kernel.mechanism import Laplace
    >>> f"{float(Threshold(Laplace(1), cut=20, groups=1).loss().delta):.1e}"
    '4.1e-09'
    """

    noise: Additive
    cut: int
    groups: int
    size: int = 1
    most: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.noise, Laplace | Gaussian):
            raise TypeError(f"noise must be a Laplace or Gaussian mechanism, not {type(self.noise).__name__}")
        object.__setattr__(self, "cut", whole(self.cut, "cut", least=1))
        object.__setattr__(self, "groups", whole(self.groups, "groups", least=1))
        object.__setattr__(self, "size", whole(self.size, "size", least=1))
        object.__setattr__(self, "most", whole(self.most or self.groups, "most", least=self.groups))

    def loss(self) -> Loss:
        """Return what it costs to show the groups that pass, with their noisy weights.

        Claim: the loss of the noise for (groups, size), and delta = max over k of 1 - (1 - P[Z >= cut - w_k])^k, where
            w_k = floor(size·min(1, groups/k)), k = 1 … most, rounded up.
        Proof: a unit in k groups moves k totals by at most w_k each, which is at most groups·size in l1 and
            groups·size² in squared l2. Take the unit away: groups of others stay, and for them the noise's own
            loss holds, passing being post-processing. At most k groups were this unit's alone: they can be shown
            only with it, each with probability P[Z >= cut - w_k], independently. Beyond 256 groups, k runs in
            blocks, with the largest weight and the largest k of the block together: an upper bound.
        Needs: Additive.loss, tail_bounds.
        Checked by: test_threshold_delta_is_the_chance_that_a_lone_unit_shows,
            test_scaled_units_cost_no_more_than_the_worst_k
        Seal: 268320321d77
        """
        pure = self.noise.loss(Sensitivity(self.groups, self.size))
        return Loss(pure.epsilon, pure.rho, self._delta())

    def _delta(self) -> Fraction:
        return min(Fraction(1), max(self._shown(block) for block in _blocks(self.groups, self.most)))

    def _shown(self, block: tuple[int, int]) -> Fraction:
        """Return an upper bound, over a block of k, of the chance that any of a lone unit's k groups shows."""
        first, last = block
        weight = min(self.size, self.size * self.groups // first)
        chance = self.noise.tail_bounds(self.cut - weight, _BITS)[1]
        one = 1 << _BITS
        return round_up(Fraction(one - power_down(max(0, one - chance), last, _BITS), one), 40)

    def passes(self, noisy: np.ndarray) -> np.ndarray:
        """Tell which groups are shown, from their noisy weights."""
        return np.asarray(noisy) >= self.cut

    def __str__(self) -> str:
        return canonical(
            {
                "name": "threshold",
                "noise": str(self.noise),
                "cut": str(self.cut),
                "groups": str(self.groups),
                "size": str(self.size),
                "most": str(self.most),
            }
        )


def threshold_for(noise: Additive, *, groups: int, delta: Number, size: int = 1, most: int = 0) -> Threshold:
    """Return the lowest cut whose delta is at most the one given.

    Claim: threshold_for(…, delta=d).loss().delta <= d, and at the next lower cut it is not.
    Proof: delta falls as the cut rises. The cut found for the k that was worst so far is the answer if delta at
        that cut, over all k, is small enough; else another k is the worst, and the search goes on from there.
    Needs: Threshold.loss.
    Checked by: test_threshold_for_finds_the_lowest_cut
    Seal: d3402179f911

    >>> from discreet.kernel.mechanism import Laplace
    >>> threshold_for(Laplace(1), groups=1, delta="1e-9").cut
    22
    """
    allowed = share(delta, "delta")
    low, worst = 0, (groups, groups)
    while True:
        cut = _lowest(lambda c: Threshold(noise, c, groups, size, most)._shown(worst) <= allowed, low)  # noqa: B023, SLF001
        found = Threshold(noise, cut, groups, size, most)
        if found._delta() <= allowed:  # noqa: SLF001
            return found
        low, worst = cut, max(_blocks(groups, found.most), key=found._shown)  # noqa: SLF001


def _lowest(fits: Callable[[int], bool], low: int) -> int:
    """Return the lowest integer above `low` that fits, if all above it fit too."""
    step = 1
    while not fits(low + step):
        low, step = low + step, 2 * step
    high = low + step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high


def _blocks(groups: int, most: int) -> list[tuple[int, int]]:
    """Return ranges that cover groups … most; fewer than `groups` groups show less, at the same weight."""
    blocks, first = [], groups
    while first <= most:
        last = first if first < _ONE_BY_ONE else min(most, first + first // 256)
        blocks.append((first, last))
        first = last + 1
    return blocks
