"""How one (epsilon, delta) is divided among releases that are fixed beforehand: linear, advanced or zCDP.

A part of the budget is a `Loss`: pure epsilon for Laplace noise; (epsilon, delta) or rho for Gaussian noise.
Every fraction is rounded towards more noise.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Literal

from discreet.kernel.calibration import gaussian_for
from discreet.kernel.exact import Number, log_up, not_negative, positive, round_down, share, sqrt_up
from discreet.kernel.loss import Loss, zcdp_epsilon, zcdp_rho
from discreet.kernel.mechanism import Gaussian, Laplace, Sensitivity, laplace_for
from discreet.kernel.purse import Noise

Kind = Literal["linear", "advanced", "zcdp"]
Law = type[Laplace] | type[Gaussian]
_DIGITS = 30  # of a root
_LESS = 1 - Fraction(1, 10**20)  # so that rounding a root up once more is paid for


def scales(epsilon: Number, delta: Number, releases: Sequence[Law], kind: Kind) -> tuple[Loss, ...]:
    """Return what each of the releases may cost, in their order, so that all together are (epsilon, delta)-DP.

    Claim: together(scales(epsilon, delta, releases, kind), delta, kind) <= epsilon, for releases whose number and
        noises are fixed beforehand; what each of them asks may depend on the answers of the earlier ones.
    Proof: linear: the sums are epsilon and delta. advanced: solved below for the bound of `together`, every root
        rounded up, and a little less. zcdp: the rho add up to at most zcdp_rho(epsilon, delta), and the pure part
        that Laplace noise gets costs half its square.
    Checked by: test_parts_add_up_to_the_budget_and_nearly_use_it

    >>> scales(1, 0, [Laplace] * 4, "linear")[0]
    Loss(epsilon=1/4, rho=1/32)
    """
    whole, slack = positive(epsilon, "epsilon"), not_negative(delta, "delta")
    if not releases:
        raise ValueError("releases must not be empty")
    if kind not in _DIVIDE:
        raise ValueError(f"composition must be one of {', '.join(_DIVIDE)}, not {kind!r}")
    if slack or kind != "linear" or Gaussian in releases:
        share(slack, "delta")  # only sums of pure epsilons do without one
    return _DIVIDE[kind](whole, slack, releases)


def _linear(epsilon: Fraction, delta: Fraction, releases: Sequence[Law]) -> tuple[Loss, ...]:
    each = epsilon / len(releases)
    return _equal(each, _each_delta(delta, releases), releases)


def _advanced(epsilon: Fraction, delta: Fraction, releases: Sequence[Law]) -> tuple[Loss, ...]:
    """Solve count·e²/2 + r·e = epsilon for e, with r² = 2·count·ln(1/slack); half of delta is the slack."""
    count = len(releases)
    slack = delta / 2 if Gaussian in releases else delta
    root = sqrt_up(2 * count * log_up(1 / slack), _DIGITS)
    each = _short(2 * epsilon / (root + sqrt_up(root * root + 2 * count * epsilon, _DIGITS)) * _LESS)
    if each <= epsilon / count:  # of few releases the plain sum is the better bound, also with all of delta
        return _linear(epsilon, delta, releases)
    return _equal(each, _each_delta(delta - slack, releases), releases)


def _zcdp(epsilon: Fraction, delta: Fraction, releases: Sequence[Law]) -> tuple[Loss, ...]:
    rho = _short(zcdp_rho(epsilon, delta) / len(releases))
    pure = _short(2 * rho / sqrt_up(2 * rho))  # at most the root of 2·rho
    return tuple(Loss(pure) if law is Laplace else Loss(None, rho) for law in releases)


_DIVIDE = {"linear": _linear, "advanced": _advanced, "zcdp": _zcdp}


def _equal(each: Fraction, delta: Fraction, releases: Sequence[Law]) -> tuple[Loss, ...]:
    return tuple(Loss(each) if law is Laplace else Loss(each, None, delta) for law in releases)


def _each_delta(delta: Fraction, releases: Sequence[Law]) -> Fraction:
    return delta / max(1, sum(law is Gaussian for law in releases))  # Laplace noise needs none


def _short(x: Fraction) -> Fraction:
    """Return x rounded down to about twenty significant digits."""
    zeros = max(0, len(str(x.denominator)) - len(str(x.numerator)))
    return round_down(x, 20 + zeros)


def together(parts: Sequence[Loss], delta: Number, kind: Kind) -> Fraction:
    """Return an epsilon for which releases of these losses are together (epsilon, delta)-DP.

    Claim: so they are, also when each release asks what the earlier answers suggest.
    Proof: linear: basic composition. zcdp: rho adds (Bun and Steinke 2016, Lemma 1.7) and is converted by
        zcdp_epsilon. advanced: each (e, d)-DP release is a function of one that, with probability d, tells all, and
        else a coin whose loss is ±e (Kairouz, Oh and Viswanath 2015, Theorem 3.5). Without such an accident, which
        costs the sum of the d, the losses add up to a sum of independent ±e of mean e·tanh(e/2) <= e²/2; by
        Hoeffding it exceeds that mean by sqrt(2·ln(1/slack)·sum(e²)) with a probability of at most the slack,
        which is what the accidents leave of delta. The plain sum holds too, so the smaller of both does.
    Checked by: test_parts_add_up_to_the_budget_and_nearly_use_it, test_advanced_bound_is_above_the_exact_delta
    """
    allowed = not_negative(delta, "delta")
    if kind == "zcdp":
        return zcdp_epsilon(sum((part.rho for part in parts), Fraction(0)), allowed)
    pure = [part.epsilon for part in parts if part.epsilon is not None]
    slack = allowed - sum(part.delta for part in parts)
    if len(pure) < len(parts) or slack < 0:
        raise ValueError("delta: these losses have no epsilon at so small a delta")
    if kind == "linear" or not slack:
        return sum(pure, Fraction(0))
    squares = sum((each * each for each in pure), Fraction(0))
    return min(sum(pure, Fraction(0)), squares / 2 + sqrt_up(2 * log_up(1 / slack) * squares, _DIGITS))


def mechanism(law: Law, part: Loss, sensitivity: Sensitivity) -> Noise:
    """Return the noise with which a release of this sensitivity costs at most its part.

    >>> mechanism(Laplace, Loss("1/4"), Sensitivity(groups=1, size=1)).scale
    Fraction(4, 1)
    """
    if law is Laplace:
        if part.epsilon is None or part.delta:
            raise ValueError("part: Laplace noise needs a pure epsilon")
        return laplace_for(sensitivity, part.epsilon)
    if part.epsilon is None:
        return gaussian_for(sensitivity, rho=part.rho)
    return gaussian_for(sensitivity, part.epsilon, part.delta)
