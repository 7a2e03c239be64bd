"""Division of one (epsilon, delta) among releases that are fixed beforehand: linear, advanced or zCDP composition.

Each release gets a `Loss`: pure epsilon for Laplace noise; (epsilon, delta) or rho for Gaussian noise. Every fraction
is rounded towards more noise.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Literal

from discreet.kernel.loss import Loss, zcdp_rho
from discreet.kernel.mechanism import Gaussian, Laplace, Sensitivity
from discreet.kernel.numbers import Number, as_nonnegative, as_positive, log_up, round_down
from discreet.kernel.reservation import Noise
from discreet.privacy.calibration import gaussian_for, laplace_for, sqrt_up
from discreet.privacy.conversion import zcdp_epsilon
from discreet.privacy.probability import as_probability

CompositionKind = Literal["linear", "advanced", "zcdp"]
MechanismType = type[Laplace] | type[Gaussian]
_ROOT_DIGITS = 30  # decimal digits of a root
_ROUNDING_MARGIN = 1 - Fraction(1, 10**20)  # covers rounding the root up in composed_epsilon


def split_budget(
    epsilon: Number, delta: Number, releases: Sequence[MechanismType], kind: CompositionKind
) -> tuple[Loss, ...]:
    """Return the loss of each release, in order, such that together they are (epsilon, delta)-DP.

    Claim: composed_epsilon(split_budget(epsilon, delta, releases, kind), delta, kind) <= epsilon, for releases whose
        number and noises are fixed beforehand; the query of each may depend on the earlier answers.
    Proof: linear: the sums are epsilon and delta. advanced: `_split_advanced` solves the bound of `composed_epsilon`
        for the epsilon of a release, with every root rounded up and a rounding margin. zcdp: the rhos add up to at
        most zcdp_rho(epsilon, delta), and a Laplace release with a pure epsilon has a rho of half its square.
    Checked by: test_parts_add_up_to_the_budget_and_nearly_use_it

    >>> split_budget(1, 0, [Laplace] * 4, "linear")[0]
    Loss(epsilon=1/4, rho=1/32)
    """
    total, slack = as_positive(epsilon, "epsilon"), as_nonnegative(delta, "delta")
    if not releases:
        raise ValueError("releases must not be empty")
    if kind not in _SPLITS:
        raise ValueError(f"composition must be one of {', '.join(_SPLITS)}, not {kind!r}")
    if slack or kind != "linear" or Gaussian in releases:
        as_probability(slack, "delta")  # only linear composition of pure losses needs no delta
    return _SPLITS[kind](total, slack, releases)


def _split_linear(epsilon: Fraction, delta: Fraction, releases: Sequence[MechanismType]) -> tuple[Loss, ...]:
    release_epsilon = epsilon / len(releases)
    return _equal_losses(release_epsilon, _delta_per_gaussian(delta, releases), releases)


def _split_advanced(epsilon: Fraction, delta: Fraction, releases: Sequence[MechanismType]) -> tuple[Loss, ...]:
    """Solve count·e²/2 + r·e = epsilon for e, with r² = 2·count·ln(1/slack); half of delta is the slack."""
    count = len(releases)
    slack = delta / 2 if Gaussian in releases else delta
    root = sqrt_up(2 * count * log_up(1 / slack), _ROOT_DIGITS)
    release_epsilon = _round_down_digits(
        2 * epsilon / (root + sqrt_up(root * root + 2 * count * epsilon, _ROOT_DIGITS)) * _ROUNDING_MARGIN
    )
    if (
        release_epsilon <= epsilon / count
    ):  # for few releases the plain sum is the better bound, and all of delta is available
        return _split_linear(epsilon, delta, releases)
    return _equal_losses(release_epsilon, _delta_per_gaussian(delta - slack, releases), releases)


def _split_zcdp(epsilon: Fraction, delta: Fraction, releases: Sequence[MechanismType]) -> tuple[Loss, ...]:
    rho = _round_down_digits(zcdp_rho(epsilon, delta) / len(releases))
    pure = _round_down_digits(2 * rho / sqrt_up(2 * rho))  # at most sqrt(2·rho)
    return tuple(Loss(pure) if release is Laplace else Loss(None, rho) for release in releases)


_SPLITS = {"linear": _split_linear, "advanced": _split_advanced, "zcdp": _split_zcdp}


def _equal_losses(epsilon: Fraction, delta: Fraction, releases: Sequence[MechanismType]) -> tuple[Loss, ...]:
    return tuple(Loss(epsilon) if release is Laplace else Loss(epsilon, None, delta) for release in releases)


def _delta_per_gaussian(delta: Fraction, releases: Sequence[MechanismType]) -> Fraction:
    return delta / max(1, sum(release is Gaussian for release in releases))  # Laplace releases need no delta


def _round_down_digits(x: Fraction) -> Fraction:
    """Return x rounded down to about twenty significant digits."""
    zeros = max(0, len(str(x.denominator)) - len(str(x.numerator)))
    return round_down(x, 20 + zeros)


def composed_epsilon(losses: Sequence[Loss], delta: Number, kind: CompositionKind) -> Fraction:
    """Return an epsilon such that releases with these losses are together (epsilon, delta)-DP.

    Claim: the releases are (epsilon, delta)-DP, also under adaptive composition.
    Proof: linear: basic composition. zcdp: rho adds (Bun and Steinke 2016, Lemma 1.7) and is converted by
        zcdp_epsilon. advanced: each (e, d)-DP release is a post-processing of one that discloses everything with
        probability d and is otherwise a coin whose privacy loss is ±e (Kairouz, Oh and Viswanath 2015, Theorem 3.5).
        No release discloses everything, except with probability at most the sum of the d. Then the losses add up to a
        sum of independent ±e with means e·tanh(e/2) <= e²/2; by Hoeffding's inequality it exceeds its mean by
        sqrt(2·ln(1/slack)·sum(e²)) with probability at most the slack, which is delta less the sum of the d. The plain
        sum is a bound too, so the smaller of the two is.
    Checked by: test_parts_add_up_to_the_budget_and_nearly_use_it, test_advanced_bound_is_above_the_exact_delta
    """
    allowed_delta = as_nonnegative(delta, "delta")
    if kind == "zcdp":
        return zcdp_epsilon(sum((loss.rho for loss in losses), Fraction(0)), allowed_delta)
    pure = [part.epsilon for part in losses if part.epsilon is not None]
    slack = allowed_delta - sum(part.delta for part in losses)
    if len(pure) < len(losses) or slack < 0:
        raise ValueError("delta is too small to compose these losses")
    if kind == "linear" or not slack:
        return sum(pure, Fraction(0))
    squares = sum((epsilon * epsilon for epsilon in pure), Fraction(0))
    return min(sum(pure, Fraction(0)), squares / 2 + sqrt_up(2 * log_up(1 / slack) * squares, _ROOT_DIGITS))


def mechanism_for(mechanism_type: MechanismType, loss: Loss, sensitivity: Sensitivity) -> Noise:
    """Return the noise with which a release of this sensitivity has at most this loss.

    >>> mechanism_for(Laplace, Loss("1/4"), Sensitivity(groups=1, size=1)).scale
    Fraction(4, 1)
    """
    if mechanism_type is Laplace:
        if loss.epsilon is None or loss.delta:
            raise ValueError("loss: Laplace noise needs a pure epsilon")
        return laplace_for(sensitivity, loss.epsilon)
    if loss.epsilon is None:
        return gaussian_for(sensitivity, rho=loss.rho)
    return gaussian_for(sensitivity, loss.epsilon, loss.delta)
