"""What a mechanism may say about one input, as an exact law: no cut tails, no sampling."""

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.kernel.choice import Exponential, PermuteAndFlip
from discreet.kernel.exact import fraction, whole
from discreet.kernel.mechanism import Gaussian, Laplace
from discreet.kernel.response import RandomizedResponse
from discreet.privacy.pmf import Probability, log_ratio

Mechanism = Laplace | Gaussian | RandomizedResponse | Exponential | PermuteAndFlip
Losses = list[tuple[float | Fraction, Probability]]

_LEAST = -(1 << 200)
_LONGEST = 1_000_000  # losses in a list
IMPOSSIBLE = "outcomes must have a positive probability under p or q"


@dataclass(frozen=True)
class Output:
    """A mechanism on one input: integers (Laplace, Gaussian), bits, or the utilities of candidates."""

    mechanism: Mechanism
    value: tuple[Fraction, ...]

    def probability(self, outcome: Any) -> Probability:
        """Return the probability of one outcome: as many integers as the input has, or a candidate's index.

        >>> output(RandomizedResponse("1/2"), 1).probability(1)
        Fraction(3, 4)
        """
        if isinstance(self.mechanism, Exponential | PermuteAndFlip):
            chances = self.mechanism.probabilities(self.value)
            index = whole(outcome, "outcome")
            return chances[index] if index < len(chances) else 0.0
        parts = _integers(outcome, "outcome")
        if len(parts) != len(self.value):
            raise ValueError(f"outcome must have {len(self.value)} coordinates, not {len(parts)}")
        found: Probability = Fraction(1)
        for part, value in zip(parts, self.value, strict=True):
            found *= self._one(int(part), int(value))
        return found

    def _one(self, outcome: int, value: int) -> Probability:
        if isinstance(self.mechanism, RandomizedResponse):
            return self.mechanism.pmf(outcome, value) if outcome in (0, 1) else Fraction(0)
        assert isinstance(self.mechanism, Laplace | Gaussian)
        return self.mechanism.pmf(outcome - value)


def output(mechanism: Mechanism, value: Any) -> Output:
    """Return the law of what a mechanism says about a value: an integer or several, or utilities.

    >>> output(Laplace(10), 3).probability(3) == Laplace(10).pmf(0)
    True
    """
    if isinstance(mechanism, Laplace | Gaussian):
        return Output(mechanism, _integers(value, "value"))
    if isinstance(mechanism, RandomizedResponse):
        bits = _integers(np.asarray(value).astype(np.int64) if _is_bool(value) else value, "value")
        if not set(bits) <= {0, 1}:
            raise ValueError("value must be a bit, 0 or 1, or several")
        return Output(mechanism, bits)
    if isinstance(mechanism, Exponential | PermuteAndFlip):
        return Output(mechanism, tuple(_utility(u) for u in value))
    raise TypeError(f"mechanism must be one of Discreet's, not {type(mechanism).__name__}")


def _is_bool(value: Any) -> bool:
    return bool(np.asarray(value).dtype.kind == "b")


def _utility(value: Any) -> Fraction:
    # A float utility is the binary number that it is, as in the mechanism itself.
    if isinstance(value, float | np.floating) and math.isfinite(value):
        return Fraction(float(value))
    return fraction(value, "value")


def _integers(value: Any, name: str) -> tuple[Fraction, ...]:
    listed = value.ravel().tolist() if isinstance(value, np.ndarray) else value
    parts = tuple(listed) if isinstance(listed, tuple | list) else (listed,)
    if not parts:
        raise ValueError(f"{name} must not be empty")
    return tuple(Fraction(whole(part, name, least=_LEAST)) for part in parts)


def shifts(p: Output, q: Output) -> list[int]:
    """Return how far each coordinate that differs has moved; two outputs of one mechanism are compared."""
    if p.mechanism != q.mechanism:
        raise ValueError("q must be an output of the same mechanism as p; for two laws, pass two pmfs")
    if len(p.value) != len(q.value):
        raise ValueError(f"q must have {len(p.value)} coordinates as p has, not {len(q.value)}")
    return [abs(int(y - x)) for x, y in zip(p.value, q.value, strict=True) if x != y]


def losses(p: Output, q: Output) -> Losses:
    """List the privacy losses ln(p/q) with their probabilities under p: all of them, except of a Gaussian."""
    moved = shifts(p, q)
    mechanism = p.mechanism
    if isinstance(mechanism, Laplace):
        return [(m / mechanism.scale, chance) for m, chance in _laplace_losses(mechanism, moved).items()]
    if isinstance(mechanism, Gaussian):
        return _gaussian_losses(mechanism, one_shift(moved))
    if isinstance(mechanism, RandomizedResponse):
        return _response_losses(mechanism, len(moved))
    chances = list(zip(mechanism.probabilities(p.value), mechanism.probabilities(q.value), strict=True))
    if not all(a and b for a, b in chances):
        raise ValueError("value: utilities some 700 scales apart are beyond what floats can compare")
    return [(log_ratio(a, b), a) for a, b in chances]


def point_ratio(p: Output, q: Output, outcome: Any) -> float | Fraction:
    """Return p/q at one outcome: of additive noise also where both are too small for a float."""
    if not isinstance(p.mechanism, Laplace | Gaussian):
        above, below = p.probability(outcome), q.probability(outcome)
        if not above and not below:
            raise ValueError(IMPOSSIBLE)
        return above / below if below else math.inf
    parts = _integers(outcome, "outcome")
    if len(parts) != len(p.value):
        raise ValueError(f"outcome must have {len(p.value)} coordinates, not {len(parts)}")
    power = 1 if isinstance(p.mechanism, Laplace) else 2
    near = sum(abs(k - x) ** power for k, x in zip(parts, p.value, strict=True))
    far = sum(abs(k - y) ** power for k, y in zip(parts, q.value, strict=True))
    loss = (far - near) / (power * p.mechanism.scale**power)
    return math.exp(loss) if loss < 709 else math.inf


def one_shift(moved: list[int]) -> int:
    """Return the only shift; the Gaussian law of several has no list of losses here."""
    if len(moved) > 1:
        raise ValueError("value: a Gaussian's loss is computed for one differing coordinate; use renyi for more")
    return moved[0] if moved else 0


def _laplace_losses(mechanism: Laplace, moved: list[int]) -> Mapping[int, float]:
    """Return the law of the loss times the scale, an integer.

    Against noise moved by d, the noise j loses |j-d| - |j|: d for j <= 0, -d for j >= d, d-2j in between.
    The losses of independent coordinates add.
    """
    if sum(moved) > _LONGEST:
        raise ValueError(f"value: the inputs differ by more than {_LONGEST}; use max_divergence")
    fall = math.exp(-1 / float(mechanism.scale))
    law: dict[int, float] = {0: 1.0}
    for d in moved:
        end = 1 / (1 + fall)
        one = {d: end, -d: end * fall**d}
        one |= {d - 2 * j: mechanism.pmf(j) for j in range(1, d)}
        both: dict[int, float] = defaultdict(float)
        for a, chance in law.items():
            for b, other in one.items():
                both[a + b] += chance * other
        law = both
    return law


def _response_losses(mechanism: RandomizedResponse, moved: int) -> Losses:
    flip = mechanism.flip
    epsilon = log_ratio(1 - flip, flip)
    return [
        ((moved - 2 * j) * epsilon, math.comb(moved, j) * flip**j * (1 - flip) ** (moved - j)) for j in range(moved + 1)
    ]


def _gaussian_losses(mechanism: Gaussian, d: int) -> Losses:
    """List the losses of all noise down to the smallest positive float."""
    reach = math.ceil(38 * mechanism.scale)  # exp(-38²/2) is below 1e-313
    if reach > _LONGEST:
        raise ValueError("value: the scale is too large for a list of losses; use hockey_stick or renyi")
    variance = mechanism.scale**2
    return [(Fraction(d * (d - 2 * k)) / (2 * variance), mechanism.pmf(k)) for k in range(-reach, reach + 1)]
