"""The definitions of differential privacy, as code.

A pmf is a dictionary {outcome: probability}; `output(mechanism, value)` is the exact distribution of a mechanism.
Modules are imported lazily, when a name is first used: a query needs a few of them only.

    >>> from discreet import privacy
    >>> here, there = privacy.uniform_pmf(0, 5), privacy.uniform_pmf(1, 6)
    >>> privacy.max_divergence(here, there)     # uniform noise is not private
    inf
    >>> privacy.sensitivity.mean(0, 1, n=100)
    Fraction(1, 100)

    divergence          max_divergence, hockey_stick, renyi, privacy_loss, likelihood_ratio, posterior_bound
    probability         uniform_pmf
    noise_distribution  pmf, margin: the distribution of noise
    tail_enclosures     tail probabilities, between integers
    mechanism_output    output: the distribution of a mechanism on one input
    conversion          to_epsilon, for_group, for_substitution, cost_of: what a loss means in other terms
    calibration         laplace_for, gaussian_for, threshold_for: the mechanism for a cost
    selection           Exponential, PermuteAndFlip, probabilities: the mechanisms that choose
    sensitivity         count, histogram, sum, mean, median, variance
    gaussian            gaussian_delta, classic_gaussian_sigma, analytic_gaussian_sigma
    membership_game     threshold_game
    accounting          to_dp_event, composed_dp_event, declared_epsilon, declared_count
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__all__ = [
    "Exponential",
    "MechanismOutput",
    "PermuteAndFlip",
    "ThresholdGame",
    "analytic_gaussian_sigma",
    "classic_gaussian_sigma",
    "composed_dp_event",
    "cost_of",
    "declared_count",
    "declared_epsilon",
    "for_group",
    "for_substitution",
    "gaussian_delta",
    "gaussian_for",
    "hockey_stick",
    "laplace_for",
    "likelihood_ratio",
    "margin",
    "max_divergence",
    "output",
    "pmf",
    "posterior_bound",
    "privacy_loss",
    "probabilities",
    "renyi",
    "sensitivity",
    "threshold_for",
    "threshold_game",
    "to_dp_event",
    "to_epsilon",
    "uniform_pmf",
]

_EXPORTS = {
    "accounting": ("composed_dp_event", "declared_count", "declared_epsilon", "to_dp_event"),
    "calibration": ("gaussian_for", "laplace_for", "threshold_for"),
    "conversion": ("cost_of", "for_group", "for_substitution", "to_epsilon"),
    "divergence": ("hockey_stick", "likelihood_ratio", "max_divergence", "posterior_bound", "privacy_loss", "renyi"),
    "gaussian": ("analytic_gaussian_sigma", "classic_gaussian_sigma", "gaussian_delta"),
    "mechanism_output": ("MechanismOutput", "output"),
    "membership_game": ("ThresholdGame", "threshold_game"),
    "noise_distribution": ("margin", "pmf"),
    "probability": ("uniform_pmf",),
    "selection": ("Exponential", "PermuteAndFlip", "probabilities"),
}
_MODULE_OF = {name: module for module, exported in _EXPORTS.items() for name in exported}

if TYPE_CHECKING:
    from discreet.privacy import sensitivity
    from discreet.privacy.accounting import composed_dp_event, declared_count, declared_epsilon, to_dp_event
    from discreet.privacy.calibration import gaussian_for, laplace_for, threshold_for
    from discreet.privacy.conversion import cost_of, for_group, for_substitution, to_epsilon
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
    from discreet.privacy.noise_distribution import margin, pmf
    from discreet.privacy.probability import uniform_pmf
    from discreet.privacy.selection import Exponential, PermuteAndFlip, probabilities
else:

    def __getattr__(name: str) -> Any:
        if name == "sensitivity":
            return import_module("discreet.privacy.sensitivity")
        if name not in _MODULE_OF:
            raise AttributeError(f"module 'discreet.privacy' has no attribute {name!r}")
        value = getattr(import_module(f"discreet.privacy.{_MODULE_OF[name]}"), name)
        globals()[name] = value  # __getattr__ is not called for this name again
        return value


def __dir__() -> list[str]:
    return __all__
