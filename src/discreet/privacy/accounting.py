"""Releases as dp_accounting's events, and their numerical accounting.

A privacy-loss distribution (PLD) gives the smallest epsilon for a sequence of releases, but only if mechanisms,
scales and number were all fixed before the first answer. A ledger must not use it to admit the next question.

Our noise is discrete, and that is what is converted. Discrete Laplace noise moved by one *is* the worst pair of
all mechanisms with the same pure epsilon, so it stands for those too. Discrete Gaussian noise is up to some
percent worse in delta than continuous noise of its scale, and is replaced by slightly narrower noise that is
surely worse (`_continuous_multiplier`).
"""

import math
from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from discreet.kernel.event import Event
from discreet.kernel.loss import ZERO_LOSS, Loss, zcdp_epsilon
from discreet.kernel.mechanism import Gaussian, Laplace
from discreet.kernel.numbers import Number, as_nonnegative, as_positive
from discreet.privacy.accounted_releases import (
    AccountedRelease,
    Mechanism,
    ReleaseLike,
    SensitivityLike,
    account_event,
    account_mechanism,
    account_release,
    without_refined,
)

_FINE_INTERVAL, _COARSE_INTERVAL = (
    1e-4,
    1e-3,
)  # of the losses' grid: a coarser one gives a larger epsilon, never a smaller
_LARGE_EPSILON = 5  # an epsilon from which on the coarser grid does
_PLD_ROUNDING = Fraction(1, 10**13)  # of a PLD's delta: its convolutions are off by up to 1e-14
_MAX_REPEATS = 100_000  # repeats beyond which a PLD is no better than rho, and slow
_MIN_RHO = Fraction(1, 10**11)  # a rho so small that the grid is too coarse for it
_MAX_TIGHT_EPSILON = 50  # an epsilon beyond which nobody needs it tight
_MAX_L1 = 10_000  # an l1 beyond which only its epsilon counts
_MAX_DISCRETE_SCALE = 1000  # a scale beyond which Gaussian noise is as good as continuous
_VARIANCE_GIVEN_UP = 2  # of the variance, by _narrower
_EPSILON_SLACK = 1e-15  # of epsilon for each coordinate, for the same


def to_dp_event(release: Event | Mechanism, sensitivity: SensitivityLike = None) -> Any:
    """Return a release as a `dp_accounting.DpEvent`, for neighbours by removal.

    An event of the ledger knows its own sensitivity. A delta becomes an event that reveals all with that
    probability; accountants that do not know it refuse it.

    >>> to_dp_event(Laplace(10), 1)
    DiscreteLaplaceDpEvent(noise_parameter=0.1, sensitivity=1)
    """
    accounted = account_event(release) if isinstance(release, Event) else account_mechanism(release, sensitivity)
    return _dp_event(accounted)


def composed_dp_event(releases: Iterable[ReleaseLike]) -> Any:
    """Return several releases, events or pairs (mechanism, sensitivity), as one `ComposedDpEvent`; repeats are counted.

    >>> composed_dp_event([(Laplace(10), 1)] * 3).events[0].count
    3
    """
    library = _dp_event_library()
    counted = Counter(map(account_release, without_refined(releases)))
    return library.ComposedDpEvent(
        [
            _dp_event(known) if times == 1 else library.SelfComposedDpEvent(_dp_event(known), times)
            for known, times in counted.items()
        ]
    )


def declared_epsilon(releases: Iterable[ReleaseLike], delta: Number) -> float:
    """Return an epsilon, never too small, for which releases *fixed beforehand* are together (epsilon, delta)-DP.

    Invalid if any release, or their number, was chosen after seeing an answer: then add up `Loss` instead.

    >>> round(declared_epsilon([(Laplace(100), 1)] * 336, delta=1e-9), 2)
    1.0
    """
    epsilon = _composed_epsilon(
        Counter(map(account_release, without_refined(releases))), as_nonnegative(delta, "delta")
    )
    rounded = float(epsilon)
    return rounded if rounded >= epsilon else math.nextafter(rounded, math.inf)


def declared_count(mechanism: Mechanism, sensitivity: SensitivityLike, epsilon: Number, delta: Number) -> int:
    """Return how many equal releases, their number *fixed beforehand*, fit into (epsilon, delta).

    >>> declared_count(Laplace(100), 1, epsilon=1, delta=1e-9)
    336
    """
    limit, allowed = as_positive(epsilon, "epsilon"), as_nonnegative(delta, "delta")
    single = account_mechanism(mechanism, sensitivity)

    def fits(count: int) -> bool:
        return count * single.loss.delta <= allowed and _composed_epsilon(Counter({single: count}), allowed) <= limit

    low, high = 0, 1
    while fits(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _composed_epsilon(counted: Counter[AccountedRelease], allowed: Fraction) -> Fraction:
    """Return the best of several valid epsilons: losses added up, and PLDs in two ways."""
    total = sum((_repeated_loss(known.loss, count) for known, count in counted.items()), ZERO_LOSS)
    remaining_delta = allowed - total.delta
    if remaining_delta < 0:
        raise ValueError(f"delta must be at least the releases' own {float(total.delta):.3g}")
    if not remaining_delta and total.epsilon is None:
        raise ValueError("delta must be above 0 and above the releases' own: they have no pure epsilon")
    summed = total.to_epsilon(allowed)
    if remaining_delta < 100 * _PLD_ROUNDING or summed > _MAX_TIGHT_EPSILON:
        return summed
    pure_choices = (True,) if all(known.noise for known in counted) else (True, False)
    grid = {"value_discretization_interval": _FINE_INTERVAL if summed < _LARGE_EPSILON else _COARSE_INTERVAL}
    candidates = [_epsilon_by_pld(counted, remaining_delta, grid, pure=pure) for pure in pure_choices]
    return min([summed, *(Fraction(epsilon) for epsilon in candidates if epsilon < math.inf)])


def _epsilon_by_pld(
    counted: Counter[AccountedRelease], delta: Fraction, grid: dict[str, float], *, pure: bool
) -> Fraction | float:
    """Compose what has a PLD; add the rest by rho, at half of delta each.

    A release known only by its loss has a PLD by its epsilon (`pure`), or is left to the rest.
    """
    library = _pld_library()
    composed, rest_rho, inverse_variance, slack = library.identity(**grid), Fraction(0), 0.0, 0.0
    for release, count in counted.items():
        pld = _pld_of_release(release, library, grid, pure=pure) if count <= _MAX_REPEATS else None
        if pld is not None:
            composed = composed.compose(pld if count == 1 else pld.self_compose(count))
        elif isinstance(release.noise, Gaussian) and (multiplier := _continuous_multiplier(release)):
            inverse_variance += count / multiplier**2
            slack += count * _EPSILON_SLACK * min(release.l1, release.l2_squared)  # at most so many integers move
        else:
            rest_rho += count * release.loss.rho
    if inverse_variance:
        gaussian_pld = library.from_gaussian_mechanism(1 / math.sqrt(inverse_variance), **grid, use_connect_dots=True)
        composed = composed.compose(gaussian_pld)
    delta_share = delta / 2 if rest_rho else delta
    epsilon = composed.get_epsilon_for_delta(float(delta_share - _PLD_ROUNDING))
    if epsilon == math.inf:
        return math.inf
    return Fraction(float(epsilon)) + Fraction(slack) + (zcdp_epsilon(rest_rho, delta_share) if rest_rho else 0)


def _pld_of_release(release: AccountedRelease, library: Any, grid: dict[str, float], *, pure: bool) -> Any:
    """Return the PLD of one release, or None if it has none of its own."""
    settings = {**grid, "use_connect_dots": True}
    if release.loss.rho < _MIN_RHO:
        return None
    if isinstance(release.noise, Laplace) and release.l1 <= _MAX_L1:
        # Log-concave noise: to move one integer by l1 is worse than to move several by l1 in all.
        return library.from_discrete_laplace_mechanism(float(1 / release.noise.scale), release.l1, **settings)
    if isinstance(release.noise, Gaussian):
        # Only where one integer moves: several do not turn into one, as they would with continuous noise.
        if release.l2_squared < release.l1**2 or release.noise.scale > _MAX_DISCRETE_SCALE:
            return None
        return library.from_discrete_gaussian_mechanism(float(release.noise.scale), release.l1, **settings)
    if release.loss.epsilon is None or not (pure or release.noise):
        return None
    return library.from_discrete_laplace_mechanism(float(release.loss.epsilon), 1, **settings)


def _continuous_multiplier(release: AccountedRelease) -> float | None:
    """Return the noise multiplier of continuous Gaussian noise that is surely no better than the discrete.

    Continuous noise of variance s²-2 on integers, then discrete noise of variance 2 around the result, has within
    a factor 1 ± 4·exp(-4·pi²) the law of discrete noise of variance s² (Poisson's formula). The second step looks
    at nothing else, so in any number of coordinates the discrete noise loses at most what the first step does,
    and 6e-17 of epsilon for each coordinate that moves.
    """
    assert isinstance(release.noise, Gaussian)
    variance = release.noise.scale**2
    return (
        math.sqrt((variance - _VARIANCE_GIVEN_UP) / release.l2_squared) if variance >= 2 * _VARIANCE_GIVEN_UP else None
    )


def _dp_event(release: AccountedRelease) -> Any:
    library = _dp_event_library()
    event: Any = library.NoOpDpEvent()
    if isinstance(release.noise, Laplace):
        event = library.DiscreteLaplaceDpEvent(float(1 / release.noise.scale), release.l1)
    elif release.noise and (multiplier := _continuous_multiplier(release)):
        event = library.GaussianDpEvent(multiplier)
    elif release.loss.epsilon:
        event = library.DiscreteLaplaceDpEvent(float(release.loss.epsilon), 1)
    elif release.loss.rho:
        event = library.ZCDpEvent(float(release.loss.rho))
    if not release.loss.delta:
        return event
    revealed = library.PoissonSampledDpEvent(float(release.loss.delta), library.NonPrivateDpEvent())
    return library.ComposedDpEvent([event, revealed])


def _repeated_loss(loss: Loss, count: int) -> Loss:
    epsilon = None if loss.epsilon is None else count * loss.epsilon
    return Loss(epsilon, count * loss.rho, min(Fraction(1), count * loss.delta))


def _dp_event_library() -> Any:
    try:
        from dp_accounting import dp_event  # noqa: PLC0415 - optional, and slow to import
    except ImportError:
        raise ImportError("accounting needs dp_accounting: pip install discreet[accounting]") from None
    return dp_event


def _pld_library() -> Any:
    _dp_event_library()
    from dp_accounting.pld import privacy_loss_distribution  # noqa: PLC0415 - as above

    return privacy_loss_distribution
