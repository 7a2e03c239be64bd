"""Randomized response: each bit is flipped with a known probability before it is collected."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from discreet.kernel.event import canonical_json
from discreet.kernel.loss import Loss
from discreet.kernel.noise.inverse_transform import Boundaries, InverseTransformSampler
from discreet.kernel.noise.keystream import thread_keystream
from discreet.kernel.numbers import Number, log_up, round_up
from discreet.local.estimation import z_score
from discreet.privacy.probability import as_probability


@dataclass(frozen=True)
class RandomizedResponse:
    """Reports the true bit with probability `truth`, and otherwise the result of a fair coin.

    >>> RandomizedResponse("1/2").loss()
    Loss(epsilon=1098612288669/1000000000000, rho=1098612288669/2000000000000)
    """

    truth: Fraction

    def __init__(self, truth: Number) -> None:
        object.__setattr__(self, "truth", as_probability(truth, "truth"))

    @property
    def flip(self) -> Fraction:
        """The probability that a bit is reported as its opposite."""
        return (1 - self.truth) / 2

    def loss(self) -> Loss:
        """Return the loss of one report.

        Claim: epsilon = ln((1+truth)/(1-truth)) and rho = epsilon·truth, rounded up.
        Proof: the ratio of the two probabilities of a report is ((1+truth)/2)/((1-truth)/2). The report's zCDP
            is epsilon·tanh(epsilon/2), attained in the limit of order 1, and tanh(epsilon/2) = truth.
        Needs: RandomizedResponse.perturb, log_up, round_up.
        Checked by: test_coin_flips_lose_the_logarithm_of_three, test_response_rho_bounds_every_renyi_divergence
        """
        epsilon = round_up(log_up((1 + self.truth) / (1 - self.truth)))
        return Loss(epsilon, epsilon * self.truth)

    def perturb(self, bits: np.ndarray) -> np.ndarray:
        """Return reports for an array of bits (0 and 1, or booleans), of the same type and shape.

        Claim: each bit is flipped with probability (1-truth)/2, exactly and independently.
        Proof: inverse transform sampling of a distribution on {0, 1} whose only boundary is the fraction 1 - flip.
        Needs: InverseTransformSampler.draw.
        Checked by: test_randomized_response_has_the_exact_distribution
        """
        values = np.asarray(bits)
        _check_bits(values, "bits")
        flips = _flip_sampler(self.flip).draw(thread_keystream(), values.size).reshape(values.shape)
        reports: np.ndarray = values ^ flips.astype(values.dtype)
        return reports

    def pmf(self, report: int, bit: int) -> Fraction:
        """Return the probability of a report, given the bit."""
        _check_bits(np.asarray([report, bit]), "report and bit")
        return 1 - self.flip if bool(report) == bool(bit) else self.flip

    def estimate(self, reports: np.ndarray, *, confidence: Number = 0.95) -> tuple[float, float]:
        """Return an unbiased estimate of the share of ones, and its margin.

        >>> RandomizedResponse("1/2").estimate(np.array([0, 1, 1, 1]))[0]
        1.0
        """
        values = np.asarray(reports)
        if not values.size:
            raise ValueError("reports must not be empty")
        _check_bits(values, "reports")
        flip, truth = float(self.flip), float(self.truth)
        ones = int(np.count_nonzero(values))
        # The number of ones has the variance n·flip·(1-flip), whatever the true bits are; plus one because it is an
        # integer, and the skewness of rare flips (Cornish-Fisher) for confidence levels above 95 %.
        z = z_score(confidence)
        margin = z * math.sqrt(values.size * flip * (1 - flip)) + max(1.0, (z**2 + 2) / 6)
        return (ones / values.size - flip) / truth, margin / (values.size * truth)

    def __str__(self) -> str:
        return canonical_json({"name": "randomized-response", "truth": str(self.truth)})


def _check_bits(values: np.ndarray, name: str) -> None:
    if values.dtype.kind not in "biu":
        raise TypeError(f"{name} must be booleans or integers, not {values.dtype}")
    if values.dtype.kind != "b" and not np.isin(values, (0, 1)).all():
        raise ValueError(f"{name} must be 0 or 1")


@lru_cache(maxsize=64)
def _flip_sampler(flip: Fraction) -> InverseTransformSampler:
    return InverseTransformSampler(lambda bits: Boundaries(0, [math.floor((1 - flip) * (1 << bits))]))
