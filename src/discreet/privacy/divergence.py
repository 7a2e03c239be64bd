"""Divergences between distributions of outcomes, which define differential privacy.

p and q are pmfs {outcome: probability}, or two outputs of one mechanism (see `output`), whose distributions are exact
and not truncated. All divergences are directed, of p from q. A mechanism is private if both directions are small.
"""

import math
from collections import defaultdict
from collections.abc import Hashable
from fractions import Fraction
from typing import Any

from discreet.kernel.mechanism import Gaussian, Laplace
from discreet.kernel.numbers import Number, as_fraction, as_nonnegative
from discreet.privacy import mechanism_output
from discreet.privacy.gaussian import discrete_gaussian_delta, log_theta_ratio
from discreet.privacy.mechanism_output import MechanismOutput
from discreet.privacy.probability import Pmf, Probability, log_ratio, total_probability, validate_pmf

Distribution = Pmf | MechanismOutput


def max_divergence(p: Distribution, q: Distribution) -> float | Fraction:
    """Return the least epsilon with p(S) <= exp(epsilon)·q(S) for every set S of outcomes: ln of the largest ratio.

    The ratio of a set never exceeds that of its worst outcome, so single outcomes suffice.

    >>> from discreet.kernel.mechanism import Laplace
    >>> max_divergence(mechanism_output.output(Laplace(10), 0), mechanism_output.output(Laplace(10), 1))
    Fraction(1, 10)
    """
    if isinstance(p, MechanismOutput) and isinstance(q, MechanismOutput):
        distances = mechanism_output.shifts(p, q)
        if isinstance(p.mechanism, Laplace):
            return sum(distances) / p.mechanism.scale
        if isinstance(p.mechanism, Gaussian):
            return math.inf if distances else 0.0
    return max(loss for loss, _ in _losses(p, q))


def hockey_stick(p: Distribution, q: Distribution, epsilon: Number) -> float:
    """Return the least delta with p(S) <= exp(epsilon)·q(S) + delta for every set S of outcomes.

    >>> hockey_stick({"yes": 0.75, "no": 0.25}, {"yes": 0.25, "no": 0.75}, epsilon=0)
    0.5
    """
    limit = as_nonnegative(epsilon, "epsilon")
    if isinstance(p, MechanismOutput) and isinstance(q, MechanismOutput) and isinstance(p.mechanism, Gaussian):
        return discrete_gaussian_delta(p.mechanism, mechanism_output.single_shift(mechanism_output.shifts(p, q)), limit)
    # p - exp(epsilon)·q = p·(1 - exp(epsilon - loss)); a loss of exactly epsilon contributes exactly 0.
    excess = [(loss - (limit if isinstance(loss, Fraction) else float(limit)), c) for loss, c in _losses(p, q)]
    return math.fsum(chance * -math.expm1(-above) for above, chance in excess if above > 0)


def renyi(p: Distribution, q: Distribution, alpha: Number) -> float:
    """Return the Rényi divergence of order alpha; order 1 is the Kullback-Leibler divergence, infinity the maximum.

    >>> from discreet.kernel.mechanism import Gaussian
    >>> renyi(mechanism_output.output(Gaussian(10), 0), mechanism_output.output(Gaussian(10), 1), alpha=2)
    0.01
    """
    if alpha == math.inf:
        return float(max_divergence(p, q))
    order = as_fraction(alpha, "alpha")
    if order < 1:
        raise ValueError(f"alpha must be at least 1, not {alpha}")
    if isinstance(p, MechanismOutput) and isinstance(q, MechanismOutput) and isinstance(p.mechanism, Gaussian):
        return math.fsum(_gaussian_renyi(p.mechanism, d, order) for d in mechanism_output.shifts(p, q))
    listed = [(float(loss), float(chance)) for loss, chance in _losses(p, q)]
    if order == 1:
        return max(0.0, math.fsum(chance * loss for loss, chance in listed))
    if math.inf in (loss for loss, _ in listed):
        return math.inf
    power = float(order - 1)
    top = max(0.0, power * max(loss for loss, _ in listed))
    # ln of the sum of chance·exp(power·loss): near 1, or relative to the largest exponent.
    if top < 30:
        rest = math.fsum(chance * math.expm1(power * loss) for loss, chance in listed)
        return max(0.0, math.log1p(rest) / power)
    return (top + math.log(math.fsum(c * math.exp(power * loss - top) for loss, c in listed))) / power


def _gaussian_renyi(mechanism: Gaussian, d: int, order: Fraction) -> float:
    """Return order·d²/(2·scale²), by completing the square, and slightly less if (order-1)·d is not an integer."""
    main = order * d * d / (2 * mechanism.scale**2)
    return float(main) + (log_theta_ratio(mechanism.scale, (order - 1) * d) / float(order - 1) if order > 1 else 0)


def privacy_loss(p: Distribution, q: Distribution) -> dict[float | Fraction, Probability]:
    """Return the distribution of the privacy loss ln(p/q) for outcomes drawn from p, as a pmf {loss: probability}.

    Losses of float probabilities are rounded to 12 decimals, so that equal ones are merged; others are not rounded.

    >>> privacy_loss({0: Fraction(1, 2), 1: Fraction(1, 2)}, {0: Fraction(1)})
    {-0.6931471805599453: Fraction(1, 2), inf: Fraction(1, 2)}
    """
    gathered: dict[float | Fraction, list[Probability]] = defaultdict(list)
    for loss, chance in _losses(p, q):
        if isinstance(loss, float) and isinstance(chance, float) and loss < math.inf:
            gathered[round(loss, 12) + 0.0].append(chance)
        else:
            gathered[loss].append(chance)
    return {loss: total_probability(chances) for loss, chances in sorted(gathered.items())}


def likelihood_ratio(p: Distribution, q: Distribution, outcomes: Any) -> float | Fraction:
    """Return p(S)/q(S) for one outcome, or for a set, list or range of outcomes.

    >>> likelihood_ratio({0: Fraction(3, 4), 1: Fraction(1, 4)}, {0: Fraction(1, 4), 1: Fraction(3, 4)}, 0)
    Fraction(3, 1)
    """
    first, second = _checked_pair(p, q)
    several = isinstance(outcomes, set | frozenset | list | range)
    if isinstance(first, MechanismOutput) and isinstance(second, MechanismOutput) and not several:
        return mechanism_output.point_ratio(first, second, outcomes)
    selected = list(dict.fromkeys(outcomes)) if several else [outcomes]
    above, below = (
        total_probability([_probability(distribution, outcome) for outcome in selected])
        for distribution in (first, second)
    )
    if not above and not below:
        raise ValueError(mechanism_output.IMPOSSIBLE_OUTCOMES)
    return above / below if below else math.inf


def posterior_bound(prior: Number, epsilon: Number) -> float:
    """Return the largest posterior belief of an observer of an epsilon-DP release whose prior belief is `prior`.

    >>> round(posterior_bound(0.5, epsilon=0.1), 5)
    0.52498
    """
    belief = as_fraction(prior, "prior")
    if not 0 <= belief <= 1:
        raise ValueError(f"prior must be between 0 and 1, not {prior}")
    decay = 0.0 if epsilon == math.inf else math.exp(-as_nonnegative(epsilon, "epsilon"))
    if not belief:
        return 0.0
    return float(belief) / (float(belief) + float(1 - belief) * decay)


def _checked_pair(p: Distribution, q: Distribution) -> tuple[Distribution, Distribution]:
    if isinstance(p, MechanismOutput) and isinstance(q, MechanismOutput):
        mechanism_output.shifts(p, q)
        return p, q
    if isinstance(p, MechanismOutput) or isinstance(q, MechanismOutput):
        raise TypeError("p and q must be two pmfs or two outputs, not one of each")
    return validate_pmf(p, "p"), validate_pmf(q, "q")


def _losses(p: Distribution, q: Distribution) -> mechanism_output.Losses:
    first, second = _checked_pair(p, q)
    if isinstance(first, MechanismOutput) and isinstance(second, MechanismOutput):
        return mechanism_output.losses(first, second)
    assert not isinstance(first, MechanismOutput)
    assert not isinstance(second, MechanismOutput)
    return [(log_ratio(chance, second.get(k, 0.0)), chance) for k, chance in first.items() if chance]


def _probability(distribution: Distribution, outcome: Hashable) -> Probability:
    return (
        distribution.probability(outcome)
        if isinstance(distribution, MechanismOutput)
        else distribution.get(outcome, Fraction(0))
    )
