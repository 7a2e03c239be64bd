"""The definitions of differential privacy, as code.

A pmf is a dictionary {outcome: probability}; `output(mechanism, value)` is the exact distribution of a mechanism.

    >>> from discreet import privacy
    >>> here, there = privacy.uniform_pmf(0, 5), privacy.uniform_pmf(1, 6)
    >>> privacy.max_divergence(here, there)     # uniform noise is not private
    inf
    >>> privacy.sensitivity.mean(0, 1, n=100)
    Fraction(1, 100)

    divergence        max_divergence, hockey_stick, renyi, privacy_loss, likelihood_ratio, posterior_bound
    pmf               uniform_pmf
    mechanism_output  output: the distribution of a mechanism on one input
    sensitivity       count, histogram, sum, mean, median, variance
    gaussian          gaussian_delta, classic_gaussian_sigma, analytic_gaussian_sigma
    membership_game   threshold_game
    accounting        to_dp_event, composed_dp_event, declared_epsilon, declared_count
"""

from discreet.privacy import sensitivity
from discreet.privacy.accounting import composed_dp_event, declared_count, declared_epsilon, to_dp_event
from discreet.privacy.divergence import (
    hockey_stick,
    likelihood_ratio,
    max_divergence,
    posterior_bound,
    privacy_loss,
    renyi,
)
from discreet.privacy.gaussian import analytic_gaussian_sigma, classic_gaussian_sigma, gaussian_delta
from discreet.privacy.mechanism_output import MechanismOutput, output
from discreet.privacy.membership_game import ThresholdGame, threshold_game
from discreet.privacy.pmf import uniform_pmf

__all__ = [
    "MechanismOutput",
    "ThresholdGame",
    "analytic_gaussian_sigma",
    "classic_gaussian_sigma",
    "composed_dp_event",
    "declared_count",
    "declared_epsilon",
    "gaussian_delta",
    "hockey_stick",
    "likelihood_ratio",
    "max_divergence",
    "output",
    "posterior_bound",
    "privacy_loss",
    "renyi",
    "sensitivity",
    "threshold_game",
    "to_dp_event",
    "uniform_pmf",
]
