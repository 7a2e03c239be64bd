"""Private selection: the exponential mechanism and permute-and-flip, sampled exactly from the kernel's keystream."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from discreet.kernel.event import canonical_json
from discreet.kernel.loss import Loss
from discreet.kernel.mechanism import Sensitivity
from discreet.kernel.noise.keystream import RandomSource, thread_keystream
from discreet.kernel.noise.sampler import bernoulli_exp
from discreet.kernel.numbers import Number, as_fraction, as_positive, exp_bounds
from discreet.kernel.selection import QuantileSelection, RankTarget, choose_by_weight, uniform_integer

Utilities = Sequence[Number] | np.ndarray


@dataclass(frozen=True)
class Exponential:
    """Chooses candidate i with probability proportional to exp(utility_i/scale).

    >>> auction = Exponential(scale="6.04")
    >>> auction.choose(["4.00", "3.00", "3.01", "0"]) in range(4)
    True
    """

    scale: Fraction

    def __init__(self, scale: Number) -> None:
        object.__setattr__(self, "scale", as_positive(scale, "scale"))

    def loss(self, sensitivity: Number | Sensitivity) -> Loss:
        """Return the loss of a choice if one unit moves each utility by at most `sensitivity`.

        Claim: epsilon = 2·sensitivity/scale and rho = epsilon²/8.
        Proof: epsilon: McSherry and Talwar 2007. rho: the log-ratio of two outcomes' probabilities has a range of at
            most epsilon (it is within an interval of that length), and a bounded range of epsilon implies
            epsilon²/8 (Cesar and Rogers 2021, Lemma 3.2, after Dong et al. 2020).
        Needs: Exponential.choose, _utility_sensitivity.
        Checked by: test_a_selection_loses_at_most_its_epsilon, test_bounded_range_gives_an_eighth_of_the_square
        """
        epsilon = 2 * _utility_sensitivity(sensitivity) / self.scale
        return Loss(epsilon, epsilon * epsilon / 8)

    def choose(self, utilities: Utilities) -> int:
        """Return the index of the chosen candidate.

        Claim: index i has probability exp(u_i/scale)/sum(exp(u_j/scale)), exactly.
        Proof: it is chosen by the weights exp(-gap) of all candidates, which are enclosed between integers.
        Needs: choose_by_weight, _gaps, _exact_utilities, exp_bounds.
        Checked by: test_selections_have_the_exact_distribution, test_undecided_selections_are_continued
        """
        return self._choose(_exact_utilities(utilities), thread_keystream())

    def _choose(self, utilities: list[Fraction], source: RandomSource) -> int:
        gaps = _gaps(utilities, self.scale)
        return choose_by_weight([1] * len(gaps), lambda bits: [exp_bounds(gap, bits) for gap in gaps], source)

    def __str__(self) -> str:
        return canonical_json({"name": "exponential", "scale": str(self.scale)})


@dataclass(frozen=True)
class PermuteAndFlip:
    """Permute-and-flip: a higher expected utility than `Exponential` at the same epsilon; for pure budgets.

    >>> PermuteAndFlip(scale=20).loss(1).epsilon
    Fraction(1, 10)
    """

    scale: Fraction

    def __init__(self, scale: Number) -> None:
        object.__setattr__(self, "scale", as_positive(scale, "scale"))

    def loss(self, sensitivity: Number | Sensitivity) -> Loss:
        """Return the loss of a choice if one unit moves each utility by at most `sensitivity`.

        Claim: epsilon = 2·sensitivity/scale.
        Proof: McKenna and Sheldon 2020, Theorem 1. Its rho is hardly below epsilon²/2, so with a delta `Exponential` is
            the better choice.
        Needs: PermuteAndFlip.choose, _utility_sensitivity.
        Checked by: test_a_selection_loses_at_most_its_epsilon
        """
        return Loss(2 * _utility_sensitivity(sensitivity) / self.scale)

    def choose(self, utilities: Utilities) -> int:
        """Return the index of the chosen candidate.

        Claim: it is the first, in a uniformly random order, whose coin of probability exp((u_i - max)/scale) shows
            heads.
        Proof: a Fisher-Yates shuffle with exact uniform integers; exact coins. All coins are tossed, so that their
            number does not depend on the utilities; that of the best candidate always shows heads.
        Needs: uniform_integer, bernoulli_exp, _gaps, _exact_utilities.
        Checked by: test_selections_have_the_exact_distribution
        """
        return self._choose(_exact_utilities(utilities), thread_keystream())

    def _choose(self, utilities: list[Fraction], source: RandomSource) -> int:
        gaps = _gaps(utilities, self.scale)
        order = list(range(len(gaps)))
        for last in range(len(order) - 1, 0, -1):
            other = uniform_integer(source, last + 1)
            order[last], order[other] = order[other], order[last]
        heads = [bernoulli_exp(source, gap) for gap in gaps]
        return next(index for index in order if heads[index])

    def __str__(self) -> str:
        return canonical_json({"name": "permute-and-flip", "scale": str(self.scale)})


def read_quantile_selection(record: Mapping[str, Any]) -> QuantileSelection:
    """Return the quantile selection of a ledger record.

    >>> import json
    >>> mechanism = QuantileSelection(8, (RankTarget(Fraction(1, 2), offset=30),))
    >>> read_quantile_selection(json.loads(str(mechanism))) == mechanism
    True
    """
    targets = tuple(RankTarget(Fraction(level), int(offset)) for level, offset in record["targets"])
    return QuantileSelection(record["scale"], targets)


def probabilities(choice: Exponential | PermuteAndFlip, utilities: Utilities) -> list[float]:
    """Return the probability of each candidate.

    >>> [round(p, 3) for p in probabilities(Exponential(scale="6.04"), ["4.00", "3.00", "3.01", "0"])]
    [0.311, 0.264, 0.264, 0.161]
    >>> [round(p, 3) for p in probabilities(PermuteAndFlip(1), [0, 1])]
    [0.184, 0.816]
    """
    gaps = _gaps(_exact_utilities(utilities), choice.scale)
    weights = [math.exp(-float(min(gap, Fraction(1000)))) for gap in gaps]  # for gaps above 1,000 they are 0
    if isinstance(choice, Exponential):
        total = math.fsum(weights)
        return [weight / total for weight in weights]
    return [weight * _probability_none_before(weights[:i] + weights[i + 1 :]) for i, weight in enumerate(weights)]


def _probability_none_before(heads: list[float]) -> float:
    """Return the probability that no other candidate with heads comes first.

    Given the candidate's uniform position t in [0, 1], each other one precedes it with heads with probability t·h: the
    integral of prod(1 - t·h) over t, by Gauss-Legendre quadrature, exact for a polynomial of this degree.
    """
    nodes, weights = _gauss_legendre(len(heads) // 2 + 1)
    t = (nodes + 1) / 2
    return float(np.prod(1 - np.outer(heads, t), axis=0) @ weights / 2) if heads else 1.0


@lru_cache(maxsize=16)
def _gauss_legendre(nodes: int) -> tuple[np.ndarray, np.ndarray]:
    return np.polynomial.legendre.leggauss(nodes)


def _utility_sensitivity(sensitivity: Number | Sensitivity) -> Fraction:
    return Fraction(sensitivity.l1) if isinstance(sensitivity, Sensitivity) else as_positive(sensitivity, "sensitivity")


def _exact_utilities(utilities: Utilities) -> list[Fraction]:
    """Return exact utilities; a float means its exact binary value, not its shortest decimal."""
    if not isinstance(utilities, Sequence | np.ndarray) or isinstance(utilities, str | bytes):
        raise TypeError(f"utilities must be a list or an array of numbers, not {type(utilities).__name__}")
    exact = [_exact_utility(value) for value in utilities]
    if not exact:
        raise ValueError("utilities must not be empty")
    return exact


def _exact_utility(value: Any) -> Fraction:
    if isinstance(value, float | np.floating):
        if not math.isfinite(value):
            raise ValueError("utilities must be finite")
        return Fraction(float(value))
    try:
        return as_fraction(value, "utilities")
    except (TypeError, ValueError):  # their message would show the utility
        raise TypeError(f"utilities must be numbers, not {type(value).__name__}") from None


def _gaps(utilities: list[Fraction], scale: Fraction) -> list[Fraction]:
    """Return how far each utility is below the best, in units of the scale."""
    best = max(utilities)
    return [(best - utility) / scale for utility in utilities]
