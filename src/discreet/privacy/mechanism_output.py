"""The exact output distribution of a mechanism on one input, without truncation or sampling."""

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.kernel.mechanism import Gaussian, Laplace
from discreet.kernel.numbers import as_fraction, as_integer
from discreet.local.randomized_response import RandomizedResponse
from discreet.privacy.noise_distribution import pmf
from discreet.privacy.probability import Probability, log_ratio
from discreet.privacy.selection import Exponential, PermuteAndFlip, probabilities

Mechanism = Laplace | Gaussian | RandomizedResponse | Exponential | PermuteAndFlip
Losses = list[tuple[float | Fraction, Probability]]

_MIN_INTEGER = -(1 << 200)
_MAX_LOSSES = 1_000_000
IMPOSSIBLE_OUTCOMES = "outcomes must have a positive probability under p or q"


@dataclass(frozen=True)
class MechanismOutput:
    """The output of a mechanism on one input: integers (Laplace, Gaussian), bits, or utilities of candidates."""

    mechanism: Mechanism
    value: tuple[Fraction, ...]

    def probability(self, outcome: Any) -> Probability:
        """Return the probability of one outcome: integers, one per coordinate of the input, or a candidate's index.

        >>> output(RandomizedResponse("1/2"), 1).probability(1)
        Fraction(3, 4)
        """
        if isinstance(self.mechanism, Exponential | PermuteAndFlip):
            chances = probabilities(self.mechanism, self.value)
            index = as_integer(outcome, "outcome")
            return chances[index] if index < len(chances) else 0.0
        parts = _integers(outcome, "outcome")
        if len(parts) != len(self.value):
            raise ValueError(f"outcome must have {len(self.value)} coordinates, not {len(parts)}")
        probability: Probability = Fraction(1)
        for part, value in zip(parts, self.value, strict=True):
            probability *= self._coordinate_probability(int(part), int(value))
        return probability

    def _coordinate_probability(self, outcome: int, value: int) -> Probability:
        if isinstance(self.mechanism, RandomizedResponse):
            return self.mechanism.pmf(outcome, value) if outcome in (0, 1) else Fraction(0)
        assert isinstance(self.mechanism, Laplace | Gaussian)
        return pmf(self.mechanism, outcome - value)


def output(mechanism: Mechanism, value: Any) -> MechanismOutput:
    """Return the output distribution of a mechanism on a value: one or more integers or bits, or utilities.

    >>> output(Laplace(10), 3).probability(3) == pmf(Laplace(10), 0)
    True
    """
    if isinstance(mechanism, Laplace | Gaussian):
        return MechanismOutput(mechanism, _integers(value, "value"))
    if isinstance(mechanism, RandomizedResponse):
        bits = _integers(np.asarray(value).astype(np.int64) if _is_bool(value) else value, "value")
        if not set(bits) <= {0, 1}:
            raise ValueError("value must be one or more bits (0 or 1)")
        return MechanismOutput(mechanism, bits)
    if isinstance(mechanism, Exponential | PermuteAndFlip):
        return MechanismOutput(mechanism, tuple(_exact_utility(u) for u in value))
    raise TypeError(f"mechanism must be one of Discreet's, not {type(mechanism).__name__}")


def _is_bool(value: Any) -> bool:
    return bool(np.asarray(value).dtype.kind == "b")


def _exact_utility(value: Any) -> Fraction:
    # A float utility is its exact binary value, as in the mechanism itself.
    if isinstance(value, float | np.floating) and math.isfinite(value):
        return Fraction(float(value))
    return as_fraction(value, "value")


def _integers(value: Any, name: str) -> tuple[Fraction, ...]:
    listed = value.ravel().tolist() if isinstance(value, np.ndarray) else value
    parts = tuple(listed) if isinstance(listed, tuple | list) else (listed,)
    if not parts:
        raise ValueError(f"{name} must not be empty")
    return tuple(Fraction(as_integer(part, name, minimum=_MIN_INTEGER)) for part in parts)


def shifts(p: MechanismOutput, q: MechanismOutput) -> list[int]:
    """Return the distances of the inputs of two outputs of one mechanism, in the coordinates that differ."""
    if p.mechanism != q.mechanism:
        raise ValueError("q must be an output of the same mechanism as p; to compare two mechanisms, pass two pmfs")
    if len(p.value) != len(q.value):
        raise ValueError(f"q must have {len(p.value)} coordinates, as p does, not {len(q.value)}")
    return [abs(int(y - x)) for x, y in zip(p.value, q.value, strict=True) if x != y]


def losses(p: MechanismOutput, q: MechanismOutput) -> Losses:
    """Return the privacy losses ln(p/q) with their probabilities under p; for a Gaussian, without negligible tails."""
    distances = shifts(p, q)
    mechanism = p.mechanism
    if isinstance(mechanism, Laplace):
        return [(m / mechanism.scale, chance) for m, chance in _laplace_losses(mechanism, distances).items()]
    if isinstance(mechanism, Gaussian):
        return _gaussian_losses(mechanism, single_shift(distances))
    if isinstance(mechanism, RandomizedResponse):
        return _response_losses(mechanism, len(distances))
    chances = list(zip(probabilities(mechanism, p.value), probabilities(mechanism, q.value), strict=True))
    if not all(a and b for a, b in chances):
        raise ValueError("value: utilities that differ by some 700 scales exceed the range of floats")
    return [(log_ratio(a, b), a) for a, b in chances]


def point_ratio(p: MechanismOutput, q: MechanismOutput, outcome: Any) -> float | Fraction:
    """Return p/q at one outcome; for additive noise, even where both underflow a float."""
    if not isinstance(p.mechanism, Laplace | Gaussian):
        above, below = p.probability(outcome), q.probability(outcome)
        if not above and not below:
            raise ValueError(IMPOSSIBLE_OUTCOMES)
        return above / below if below else math.inf
    parts = _integers(outcome, "outcome")
    if len(parts) != len(p.value):
        raise ValueError(f"outcome must have {len(p.value)} coordinates, not {len(parts)}")
    power = 1 if isinstance(p.mechanism, Laplace) else 2
    distance_from_p = sum(abs(k - x) ** power for k, x in zip(parts, p.value, strict=True))
    distance_from_q = sum(abs(k - y) ** power for k, y in zip(parts, q.value, strict=True))
    loss = (distance_from_q - distance_from_p) / (power * p.mechanism.scale**power)
    return math.exp(loss) if loss < 709 else math.inf


def single_shift(distances: list[int]) -> int:
    """Return the only shift; for several, the losses of a Gaussian are not supported."""
    if len(distances) > 1:
        raise ValueError("value: for Gaussian noise, only one coordinate may differ; use renyi for more")
    return distances[0] if distances else 0


def _laplace_losses(mechanism: Laplace, distances: list[int]) -> Mapping[int, float]:
    """Return the distribution of the loss times the scale, which is an integer.

    Against noise shifted by d, the noise j loses |j-d| - |j|: d for j <= 0, -d for j >= d, d-2j in between.
    The losses of independent coordinates add up.
    """
    if sum(distances) > _MAX_LOSSES:
        raise ValueError(f"value: the inputs differ by more than {_MAX_LOSSES}; use max_divergence")
    decay = math.exp(-1 / float(mechanism.scale))
    distribution: dict[int, float] = {0: 1.0}
    for d in distances:
        end = 1 / (1 + decay)
        single = {d: end, -d: end * decay**d}
        single |= {d - 2 * j: pmf(mechanism, j) for j in range(1, d)}
        combined: dict[int, float] = defaultdict(float)
        for a, chance in distribution.items():
            for b, other in single.items():
                combined[a + b] += chance * other
        distribution = combined
    return distribution


def _response_losses(mechanism: RandomizedResponse, differing: int) -> Losses:
    flip = mechanism.flip
    epsilon = log_ratio(1 - flip, flip)
    return [
        ((differing - 2 * j) * epsilon, math.comb(differing, j) * flip**j * (1 - flip) ** (differing - j))
        for j in range(differing + 1)
    ]


def _gaussian_losses(mechanism: Gaussian, d: int) -> Losses:
    """Return the losses of all noise values whose probability does not underflow a float."""
    reach = math.ceil(38 * mechanism.scale)  # exp(-38²/2) is below 1e-313
    if reach > _MAX_LOSSES:
        raise ValueError("value: the scale is too large for a list of losses; use hockey_stick or renyi")
    variance = mechanism.scale**2
    return [(Fraction(d * (d - 2 * k)) / (2 * variance), pmf(mechanism, k)) for k in range(-reach, reach + 1)]
