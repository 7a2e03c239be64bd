"""A mean from numbers to which each person adds discrete Laplace or Gaussian noise."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, NoReturn

import numpy as np

from discreet.kernel.loss import zcdp_rho
from discreet.kernel.mechanism import Gaussian, Laplace
from discreet.kernel.numbers import Number
from discreet.local.domain import GRID_STEPS, Interval
from discreet.local.estimation import ROUNDING_ERROR
from discreet.local.oracle import Oracle, parse_epsilon
from discreet.number_arguments import as_probability

MAX_NOISE_SCALES = 100  # Laplace noise exceeds them with probability e^-100; reports within them fit in 64 bits
MAX_DEVIATIONS = 15  # Gaussian noise exceeds them with probability below e^-100
_HALF_BITS = 32


def NoisyMean(low: Number, high: Number, epsilon: Number, *, delta: Number | None = None) -> Oracle:  # noqa: N802 - a protocol's name
    """Return an oracle for a mean of numbers to which each person adds noise: simple, but the least accurate.

    The noise is Laplace; with a `delta` it is Gaussian, and a report is (epsilon, delta)-DP.

    >>> import discreet as dc
    >>> salaries = dc.local.NoisyMean(0, 200_000, epsilon=1)
    >>> mean, margin = salaries.estimate(salaries.perturb([30_000, 90_000] * 5_000))
    >>> abs(mean - 60_000) < 4 * margin
    True
    >>> dc.local.NoisyMean(0, 200_000, epsilon=1, delta="1e-6").loss().delta
    Fraction(1, 1000000)
    """
    exact_epsilon, _ = parse_epsilon(epsilon)
    interval = Interval.from_bounds(low, high)
    if delta is None:
        return Oracle(interval, exact_epsilon, LaplaceScheme(GRID_STEPS, exact_epsilon))
    exact_delta = as_probability(delta, "delta")
    return Oracle(interval, exact_epsilon, GaussianScheme(GRID_STEPS, exact_epsilon, exact_delta), exact_delta)


@dataclass(frozen=True)
class _NoisyStep:
    """A step from 0 to `steps`, with integer noise of which no more than `max_scales` scales are plausible."""

    steps: int
    epsilon: Fraction

    max_scales: ClassVar[int]
    max_count_per_report = 1 << _HALF_BITS
    dtype = np.dtype("<i8")

    @property
    def noise(self) -> Laplace | Gaussian:
        """The noise of one person."""
        raise NotImplementedError

    def check(self, reports: np.ndarray) -> None:
        """Raise ValueError if a report is implausibly far from the bounds."""
        beyond = math.ceil(self.max_scales * self.noise.scale)
        if len(reports) and (reports.min() < -beyond or reports.max() > self.steps + beyond):
            raise ValueError(
                f"reports: one is more than {beyond / self.steps:.3g} widths outside the bounds: no noise is so large"
            )

    def counts(self, reports: np.ndarray) -> np.ndarray:
        """Return the sums of the high and the low halves of the reports, which do not overflow 64 bits."""
        return np.array([np.sum(reports >> _HALF_BITS), np.sum(reports & ((1 << _HALF_BITS) - 1))], np.int64)

    def outcomes(self) -> NoReturn:
        """Raise ValueError: the noise is unbounded."""
        raise ValueError("noisy-mean has too many possible reports to list. Use pmf for the probability of one.")


@dataclass(frozen=True)
class LaplaceScheme(_NoisyStep):
    """A step from 0 to `steps`, with discrete Laplace noise of sensitivity `steps`."""

    name = "noisy-mean"
    max_scales = MAX_NOISE_SCALES

    @cached_property
    def noise(self) -> Laplace:
        """The noise of one person."""
        return Laplace(self.steps / self.epsilon)

    def perturb(self, codes: np.ndarray) -> np.ndarray:
        """Return a randomised report for each step.

        Claim: a report is at most exp(epsilon) times likelier under one step than under another.
        Proof: Laplace.loss at scale steps/epsilon, since another number changes the step by at most `steps`.
        Needs: Laplace.perturb, Laplace.loss.
        Checked by: test_local_noise_loses_exactly_epsilon, test_noisy_numbers_have_the_claimed_distribution
        """
        return self.noise.perturb(codes.astype(np.int64)).astype(self.dtype)

    def estimate(self, counts: np.ndarray, people: int, z: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the mean and its margin, in steps."""
        # The sum for few people has heavier tails than the normal distribution; the Cornish-Fisher expansion bounds it.
        tails = z**3 / (8 * people)
        margin = (z + tails) * laplace_standard_deviation(self.noise) / math.sqrt(people) + ROUNDING_ERROR
        return np.array([_mean_of(counts, people)]), np.array([margin])

    def probability(self, report: Any, code: int) -> Fraction:
        """Return the probability of a report, given the step; as a float, because it is not rational."""
        decay = 1 / self.noise.scale
        return Fraction(math.tanh(decay / 2) * math.exp(-abs(int(report) - code) * decay))


@dataclass(frozen=True)
class GaussianScheme(_NoisyStep):
    """A step from 0 to `steps`, with discrete Gaussian noise of sensitivity `steps`."""

    delta: Fraction

    max_scales = MAX_DEVIATIONS

    @property
    def name(self) -> str:
        """The name of the protocol, with its delta."""
        return f"noisy-mean, Gaussian with delta {self.delta}"

    @cached_property
    def noise(self) -> Gaussian:
        """The noise of one person: the least integer scale whose rho converts to (epsilon, delta).

        Claim: a release of sensitivity `steps` with this noise is (epsilon, delta)-DP.
        Proof: the scale is above steps/sqrt(2·rho), so Gaussian.loss gives less than rho, which zcdp_rho converts.
        Needs: Gaussian.loss, zcdp_rho.
        Checked by: test_gaussian_noise_at_home_is_private_at_its_delta_and_hardly_more
        """
        rho = zcdp_rho(self.epsilon, self.delta)
        return Gaussian(math.isqrt(math.floor(self.steps**2 / (2 * rho))) + 1)

    def perturb(self, codes: np.ndarray) -> np.ndarray:
        """Return a randomised report for each step.

        Claim: for any two steps, the distributions of a report are (epsilon, delta)-close.
        Proof: GaussianScheme.noise, since another number changes the step by at most `steps`.
        Needs: Gaussian.perturb, GaussianScheme.noise.
        Checked by: test_gaussian_noise_at_home_is_private_at_its_delta_and_hardly_more,
            test_noisy_numbers_have_the_claimed_distribution
        """
        return self.noise.perturb(codes.astype(np.int64)).astype(self.dtype)

    def estimate(self, counts: np.ndarray, people: int, z: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the mean and its margin, in steps; the noise has at most the variance scale²."""
        margin = z * float(self.noise.scale) / math.sqrt(people) + ROUNDING_ERROR
        return np.array([_mean_of(counts, people)]), np.array([margin])

    def probability(self, report: Any, code: int) -> Fraction:
        """Return the probability of a report, given the step; as a float, because it is not rational."""
        scale = float(self.noise.scale)
        # The sum over all integers, by Poisson summation; exact in floats, as an integer scale is at least 1.
        total = scale * math.sqrt(2 * math.pi) * (1 + 2 * math.exp(-2 * (math.pi * scale) ** 2))
        return Fraction(math.exp(-(((int(report) - code) / scale) ** 2) / 2) / total)


def _mean_of(half_sums: np.ndarray, people: int) -> float:
    return ((int(half_sums[0]) << _HALF_BITS) + int(half_sums[1])) / people


def laplace_standard_deviation(noise: Laplace) -> float:
    """Return the standard deviation of the discrete Laplace distribution: sqrt(2q)/(1-q) with q = exp(-1/scale).

    >>> round(laplace_standard_deviation(Laplace(100)), 3)
    141.421
    """
    return 1 / (math.sqrt(2) * math.sinh(1 / (2 * noise.scale)))
