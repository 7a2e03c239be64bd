"""The discrete Laplace and Gaussian distributions: exact floors of their distribution functions.

With alpha = 1/b and beta = 0 this is the discrete Laplace distribution, with alpha = 0 and beta = 1/(2·sigma²) the
discrete Gaussian. The distribution functions are computed to any number of bits.
"""

from collections.abc import Callable
from fractions import Fraction
from itertools import accumulate
from typing import NamedTuple

from discreet.kernel.noise.inverse_transform import Boundaries
from discreet.kernel.numbers import exp_bounds


class TailWeights(NamedTuple):
    """Weights of {k, k+1, …} and their total, in units of 2^-precision, and their maximum error."""

    weights: list[int]
    total: int
    error: int


class NoiseDistribution(NamedTuple):
    """The distribution with weights w(k) = exp(-alpha·k - beta·k²)."""

    alpha: Fraction
    beta: Fraction

    def two_sided_tail_floors(self, bits: int) -> list[int]:
        """Return floor(P[X >= k]·2^bits) of the distribution on all integers, for k = 1, 2, … up to the first 0."""
        return _tail_floors(bits, lambda precision: self._two_sided_tails(bits, precision))

    def two_sided_cdf(self, bits: int) -> Boundaries:
        """Return floor(F·2^bits) of the distribution on all integers.

        Claim: these are the exact floors of the distribution function.
        Proof: _tail_floors gives those of R(k) = P[X >= k]. By symmetry F(-k) = R(k) and F(k-1) = 1 - R(k), whose floor
            is 2^bits - 1 - floor(R(k)·2^bits), because R(k)·2^bits is not an integer.
        Needs: NoiseDistribution.two_sided_tail_floors, _tail_floors, _complement_floors.
        Checked by: test_boundaries_agree_with_an_independent_computation
        """
        floors = self.two_sided_tail_floors(bits)
        return Boundaries(-len(floors), floors[::-1] + _complement_floors(floors, bits))

    def one_sided_cdf(self, bits: int) -> Boundaries:
        """Return floor(F·2^bits) of the distribution on 0, 1, 2, …; exact, as for two_sided_cdf."""
        floors = _tail_floors(bits, lambda precision: self._one_sided_tails(bits, precision))
        return Boundaries(0, _complement_floors(floors, bits))

    def digit_cdf(self, count: int, bits: int) -> Boundaries:
        """Return floor(F·2^bits) of a geometric distribution (beta = 0) on 0 … count-1; exact, as for two_sided_cdf."""
        floors = _tail_floors(bits, lambda precision: self._digit_tails(count, precision))
        return Boundaries(0, _complement_floors(floors, bits))

    def _two_sided_tails(self, bits: int, precision: int) -> TailWeights:
        """Return the weights of {k, k+1, …}, down to 2^-bits, and the weight of all integers."""
        tails = self._one_sided_tails(bits, precision)
        return tails._replace(total=tails.total + tails.weights[1], error=2 * tails.error)

    def _one_sided_tails(self, bits: int, precision: int) -> TailWeights:
        weights = self._weights(precision, minimum=1 << (precision - bits - 40))
        # The weights after the list decrease at least as fast as its first step.
        one = 1 << precision
        max_ratio = exp_bounds(self.alpha + self.beta, precision)[1]
        beyond = ((weights[-1] + _rounding_error(weights)) << precision) // (one - max_ratio) + 1
        tails = list(accumulate(reversed(weights)))[::-1]
        return TailWeights(tails, tails[0], len(weights) * _rounding_error(weights) + beyond)

    def _digit_tails(self, count: int, precision: int) -> TailWeights:
        weights = self._weights(precision, count=count)
        last = weights[count]
        return TailWeights([weight - last for weight in weights[:count]], weights[0] - last, _rounding_error(weights))

    def _weights(self, precision: int, *, minimum: int = -1, count: int = 0) -> list[int]:
        """Return w(0), w(1), … rounded down: at least `count` after the first, and until they fall below `minimum`.

        w(k+1) = w(k)·s(k) and s(k+1) = s(k)·g. exp_bounds is low by at most 2 units, so s(k) is low by at most 3·k + 2
        and w(k) by at most the sum of 3·i + 4 over i < k, which is below 2·(k+2)² (_rounding_error).
        """
        one = 1 << precision
        ratio = exp_bounds(self.alpha + self.beta, precision)[0]
        ratio_decay = exp_bounds(2 * self.beta, precision)[0] if self.beta else one
        weight, weights = one, [one]
        while len(weights) <= count or weight > minimum >= 0:
            weight = weight * ratio >> precision
            weights.append(weight)
            if self.beta:
                ratio = ratio * ratio_decay >> precision
        weights.append(weight * ratio >> precision)
        return weights


def _rounding_error(weights: list[int]) -> int:
    return 2 * (len(weights) + 2) ** 2


def _complement_floors(floors: list[int], bits: int) -> list[int]:
    top = (1 << bits) - 1
    return [top - floor for floor in floors]


def _tail_floors(bits: int, tails_at: Callable[[int], TailWeights]) -> list[int]:
    """Return floor(R(k)·2^bits) for k = 1, 2, … up to the first that is 0, or to the end.

    Claim: these are the exact floors, and no R(k)·2^bits is an integer.
    Proof: R(k) = weights[k]/total, both within `error` of the true values, so R(k)·2^(2p) is within
        4·error·inverse + total of weights[k]·inverse. A floor is used only if both ends of this interval have the same
        one; else the guard bits are doubled. At the lower end 0 is safe, because R(k) is never 0.
    Needs: NoiseDistribution._one_sided_tails, NoiseDistribution._two_sided_tails, NoiseDistribution._digit_tails.
    Checked by: test_boundaries_agree_with_an_independent_computation,
        test_a_floor_within_the_error_of_a_boundary_is_decided_by_more_bits
    """
    guard = 64
    while True:
        precision = bits + guard
        tails = tails_at(precision)
        inverse = (1 << 2 * precision) // tails.total
        slack = 4 * tails.error * (inverse + 1) + tails.total
        shift = 2 * precision - bits
        values = [weight * inverse for weight in tails.weights[1:]]
        floors = [value >> shift for value in values]
        if floors[-1] == 0:
            floors = floors[: floors.index(0) + 1]
        remainders = [value & ((1 << shift) - 1) for value in values[: len(floors)]]
        if (
            max(remainders) + slack < 1 << shift
            and min(remainders[:-1] if floors[-1] == 0 else remainders, default=slack) >= slack
        ):
            return floors
        guard *= 2
