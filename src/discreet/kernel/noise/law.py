"""The laws of our noise: integers x with probability proportional to w(|x|) = exp(-alpha·|x| - beta·x²).

With alpha = 1/b, beta = 0 this is the discrete Laplace law, with alpha = 0, beta = 1/(2·sigma²) the discrete
Gaussian. Their distribution functions are computed here, to as many bits as are asked for.
"""

from collections.abc import Callable
from fractions import Fraction
from itertools import accumulate
from typing import NamedTuple

from discreet.kernel.exact import exp_bounds
from discreet.kernel.noise.inversion import Boundaries


class Tails(NamedTuple):
    """Weights of {k, k+1, …} and of everything, in units of 2^-precision, and how wrong they may be."""

    weights: list[int]
    all: int
    error: int


class Law(NamedTuple):
    """w(k) = exp(-alpha·k - beta·k²)."""

    alpha: Fraction
    beta: Fraction

    def both_sides(self, bits: int) -> Boundaries:
        """Return floor(F·2^bits) of the law on all integers.

        Claim: these are the exact floors of the distribution function.
        Proof: _floors has those of R(k) = P[X >= k]. By symmetry F(-k) = R(k) and F(k-1) = 1 - R(k), whose floor is
            2^bits - 1 - floor(R(k)·2^bits), for R(k)·2^bits is not an integer.
        Needs: _floors.
        Checked by: test_boundaries_agree_with_an_independent_computation
        Seal: 9fe6729e7386
        """
        floors = _floors(bits, lambda precision: self.tails_of_both_sides(bits, precision))
        return Boundaries(-len(floors), floors[::-1] + _from_above(floors, bits))

    def one_side(self, bits: int) -> Boundaries:
        """Return floor(F·2^bits) of the law on 0, 1, 2, …: the exact floors, as in both_sides."""
        return Boundaries(
            0, _from_above(_floors(bits, lambda precision: self._tails_of_one_side(bits, precision)), bits)
        )

    def digits(self, count: int, bits: int) -> Boundaries:
        """Return floor(F·2^bits) of a geometric law (beta = 0) on 0 … count-1: the exact floors, as in both_sides."""
        return Boundaries(
            0, _from_above(_floors(bits, lambda precision: self._tails_of_digits(count, precision)), bits)
        )

    def tails_of_both_sides(self, bits: int, precision: int) -> Tails:
        """Return the weights of {k, k+1, …}, down to 2^-bits, against that of all integers."""
        tails = self._tails_of_one_side(bits, precision)
        if self.beta:
            return tails._replace(all=tails.all + tails.weights[1], error=2 * tails.error)
        return tails._replace(all=tails.all + tails.weights[1])  # R(k) = q^k / (1+q)

    def _tails_of_one_side(self, bits: int, precision: int) -> Tails:
        if not self.beta:
            # A geometric tail is its first weight times 1/(1-q), which cancels: R(k) = q^k.
            listed = self._weights(precision, least=1 << (precision - bits - 1))
            return Tails(listed, listed[0], _short(listed))
        listed = self._weights(precision, least=1 << (precision - bits - 40))
        # What comes after the list falls at least as fast as its first step.
        one = 1 << precision
        slowest = exp_bounds(self.alpha + self.beta, precision)[1]
        beyond = ((listed[-1] + _short(listed)) << precision) // (one - slowest) + 1
        tails = list(accumulate(reversed(listed)))[::-1]
        return Tails(tails, tails[0], len(listed) * _short(listed) + beyond)

    def _tails_of_digits(self, count: int, precision: int) -> Tails:
        listed = self._weights(precision, count=count)
        last = listed[count]
        return Tails([weight - last for weight in listed[:count]], listed[0] - last, _short(listed))

    def _weights(self, precision: int, *, least: int = -1, count: int = 0) -> list[int]:
        """Return w(0), w(1), … rounded down, at least `count` after the first and until they pass `least`.

        w(k+1) = w(k)·s(k) and s(k+1) = s(k)·g. exp_bounds is short by at most 2 units, so s(k) is short by
        at most 3·k + 2 and w(k) by at most the sum of 3·i + 4 over i < k, which is below 2·(k+2)² (_short).
        """
        one = 1 << precision
        ratio = exp_bounds(self.alpha + self.beta, precision)[0]
        fall = exp_bounds(2 * self.beta, precision)[0] if self.beta else one
        weight, listed = one, [one]
        while len(listed) <= count or weight > least >= 0:
            weight = weight * ratio >> precision
            listed.append(weight)
            if self.beta:
                ratio = ratio * fall >> precision
        listed.append(weight * ratio >> precision)
        return listed


def _short(listed: list[int]) -> int:
    return 2 * (len(listed) + 2) ** 2


def _from_above(floors: list[int], bits: int) -> list[int]:
    top = (1 << bits) - 1
    return [top - floor for floor in floors]


def _floors(bits: int, tails_at: Callable[[int], Tails]) -> list[int]:
    """Return floor(R(k)·2^bits) for k = 1, 2, … to the end or to the first that is 0.

    Claim: these are the exact floors, and no R(k)·2^bits is an integer.
    Proof: R(k) = weights[k]/all, both within `error` of the truth, so R(k)·2^(2p) is within 4·error·inverse + all
        of weights[k]·inverse. A floor is used only if both ends have the same one; else the guard bits are doubled.
        At the lower end 0 is safe, for R(k) itself is never 0.
    Needs: exp_bounds.
    Checked by: test_boundaries_agree_with_an_independent_computation
    Seal: 771c5def7dca
    """
    guard = 64
    while True:
        precision = bits + guard
        tails = tails_at(precision)
        inverse = (1 << 2 * precision) // tails.all
        slack = 4 * tails.error * (inverse + 1) + tails.all
        shift = 2 * precision - bits
        values = [weight * inverse for weight in tails.weights[1:]]
        floors = [value >> shift for value in values]
        if floors[-1] == 0:
            floors = floors[: floors.index(0) + 1]
        rests = [value & ((1 << shift) - 1) for value in values[: len(floors)]]
        if max(rests) + slack < 1 << shift and min(rests[:-1] if floors[-1] == 0 else rests, default=slack) >= slack:
            return floors
        guard *= 2
