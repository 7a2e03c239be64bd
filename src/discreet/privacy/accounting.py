"""Releases as dp_accounting's events, and their numerical accounting.

A privacy-loss distribution (PLD) gives the smallest epsilon for a sequence of releases, but only if the mechanisms,
their scales and their number were all fixed before the first answer. A ledger must not use it to admit the next query.

The noise is discrete, and so is the conversion. Discrete Laplace noise shifted by one is the dominating pair of all
mechanisms with the same pure epsilon, so it represents those, too. The delta of discrete Gaussian noise is up to a few
percent larger than that of continuous noise of the same scale, so it is replaced by slightly narrower continuous noise,
which is provably worse (`_continuous_multiplier`).
"""

import math
from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from discreet.kernel.event import Event
from discreet.kernel.loss import ZERO_LOSS, Loss
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
from discreet.privacy.bisection import lowest_integer
from discreet.privacy.conversion import to_epsilon, zcdp_epsilon

_FINE_INTERVAL, _COARSE_INTERVAL = 1e-4, 1e-3  # of the grid of losses; a coarser grid never gives a smaller epsilon
_LARGE_EPSILON = 5  # from which the coarse grid suffices
_PLD_ROUNDING = Fraction(1, 10**13)  # of a PLD's delta, whose convolutions have errors of up to 1e-14
_MAX_REPEATS = 100_000  # beyond which a PLD is slow and no better than rho
_MIN_RHO = Fraction(1, 10**11)  # below which the grid is too coarse
_MAX_TIGHT_EPSILON = 50  # beyond which a tight epsilon has no use
_MAX_L1 = 10_000  # beyond which only the pure epsilon is used
_MAX_DISCRETE_SCALE = 1000  # beyond which Gaussian noise is treated as continuous
_VARIANCE_GIVEN_UP = 2  # by _continuous_multiplier
_EPSILON_SLACK = 1e-15  # per coordinate, by _continuous_multiplier


def to_dp_event(release: Event | Mechanism, sensitivity: SensitivityLike = None) -> Any:
    """Return a release as a `dp_accounting.DpEvent`, for the add/remove neighbouring relation.

    An event of the ledger has its own sensitivity. A delta becomes an event that reveals everything with that
    probability; accountants that do not support it refuse it.

    >>> to_dp_event(Laplace(10), 1)
    DiscreteLaplaceDpEvent(noise_parameter=0.1, sensitivity=1)
    """
    accounted = account_event(release) if isinstance(release, Event) else account_mechanism(release, sensitivity)
    return _dp_event(accounted)


def composed_dp_event(releases: Iterable[ReleaseLike]) -> Any:
    """Return releases (events or pairs (mechanism, sensitivity)) as one `ComposedDpEvent`, equal ones with a count.

    >>> composed_dp_event([(Laplace(10), 1)] * 3).events[0].count
    3
    """
    library = _dp_event_library()
    counted = Counter(map(account_release, without_refined(releases)))
    return library.ComposedDpEvent(
        [
            _dp_event(release) if count == 1 else library.SelfComposedDpEvent(_dp_event(release), count)
            for release, count in counted.items()
        ]
    )


def declared_epsilon(releases: Iterable[ReleaseLike], delta: Number) -> float:
    """Return an upper bound on the epsilon for which releases *fixed in advance* are together (epsilon, delta)-DP.

    It is invalid if a release, or the number of releases, was chosen after seeing an answer: then add up `Loss`.

    >>> round(declared_epsilon([(Laplace(100), 1)] * 336, delta=1e-9), 2)
    1.0
    """
    epsilon = _composed_epsilon(
        Counter(map(account_release, without_refined(releases))), as_nonnegative(delta, "delta")
    )
    rounded = float(epsilon)
    return rounded if rounded >= epsilon else math.nextafter(rounded, math.inf)


def declared_count(mechanism: Mechanism, sensitivity: SensitivityLike, epsilon: Number, delta: Number) -> int:
    """Return the largest number of equal releases, *fixed in advance*, that are together (epsilon, delta)-DP.

    >>> declared_count(Laplace(100), 1, epsilon=1, delta=1e-9)
    336
    """
    limit, allowed = as_positive(epsilon, "epsilon"), as_nonnegative(delta, "delta")
    single = account_mechanism(mechanism, sensitivity)

    def exceeds(count: int) -> bool:
        return count * single.loss.delta > allowed or _composed_epsilon(Counter({single: count}), allowed) > limit

    return lowest_integer(exceeds, 0, 1) - 1


def _composed_epsilon(counted: Counter[AccountedRelease], allowed: Fraction) -> Fraction:
    """Return the smallest of several valid epsilons: from the sum of losses, and from PLDs in two ways."""
    total = sum((_repeated_loss(release.loss, count) for release, count in counted.items()), ZERO_LOSS)
    remaining_delta = allowed - total.delta
    if remaining_delta < 0:
        raise ValueError(f"delta must be at least {float(total.delta):.3g}, the sum of the releases' own")
    if not remaining_delta and total.epsilon is None:
        raise ValueError("delta must be above the sum of the releases' own, because they have no pure epsilon")
    summed = to_epsilon(total, allowed)
    if remaining_delta < 100 * _PLD_ROUNDING or summed > _MAX_TIGHT_EPSILON:
        return summed
    pure_choices = (True,) if all(release.noise for release in counted) else (True, False)
    grid = {"value_discretization_interval": _FINE_INTERVAL if summed < _LARGE_EPSILON else _COARSE_INTERVAL}
    candidates = [_epsilon_by_pld(counted, remaining_delta, grid, pure=pure) for pure in pure_choices]
    return min([summed, *(Fraction(epsilon) for epsilon in candidates if epsilon < math.inf)])


def _epsilon_by_pld(
    counted: Counter[AccountedRelease], delta: Fraction, grid: dict[str, float], *, pure: bool
) -> Fraction | float:
    """Compose the releases that have a PLD, and add the others by rho, with half of delta for each.

    A release known only by its loss gets the PLD of its pure epsilon (`pure`), or is one of the others.
    """
    library = _pld_library()
    composed, rest_rho, inverse_variance, slack = library.identity(**grid), Fraction(0), 0.0, 0.0
    for release, count in counted.items():
        pld = _pld_of_release(release, library, grid, pure=pure) if count <= _MAX_REPEATS else None
        if pld is not None:
            composed = composed.compose(pld if count == 1 else pld.self_compose(count))
        elif isinstance(release.noise, Gaussian) and (multiplier := _continuous_multiplier(release)):
            inverse_variance += count / multiplier**2
            slack += (
                count * _EPSILON_SLACK * min(release.l1, release.l2_squared)
            )  # the number of integers that can change
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
    """Return the PLD of one release; None if it has none."""
    settings = {**grid, "use_connect_dots": True}
    if release.loss.rho < _MIN_RHO:
        return None
    if isinstance(release.noise, Laplace) and release.l1 <= _MAX_L1:
        # The noise is log-concave: moving one integer by l1 is worse than moving several by l1 in all.
        return library.from_discrete_laplace_mechanism(float(1 / release.noise.scale), release.l1, **settings)
    if isinstance(release.noise, Gaussian):
        # Only if a single integer moves: unlike with continuous noise, several do not reduce to one.
        if release.l2_squared < release.l1**2 or release.noise.scale > _MAX_DISCRETE_SCALE:
            return None
        return library.from_discrete_gaussian_mechanism(float(release.noise.scale), release.l1, **settings)
    if release.loss.epsilon is None or not (pure or release.noise):
        return None
    return library.from_discrete_laplace_mechanism(float(release.loss.epsilon), 1, **settings)


def _continuous_multiplier(release: AccountedRelease) -> float | None:
    """Return the noise multiplier of continuous Gaussian noise whose loss is at least that of the discrete noise.

    Continuous noise of variance s²-2 on integers, followed by discrete noise of variance 2 around the result, has the
    distribution of discrete noise of variance s² within a factor of 1 ± 4·exp(-4·pi²) (Poisson summation). The second
    step is post-processing, so in any number of coordinates the discrete noise loses at most what the first step does,
    plus 6e-17 of epsilon for each coordinate that moves.
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
        raise ImportError("accounting needs dp_accounting. Run: pip install 'discreet[accounting]'") from None
    return dp_event


def _pld_library() -> Any:
    _dp_event_library()
    from dp_accounting.pld import privacy_loss_distribution  # noqa: PLC0415 - as above

    return privacy_loss_distribution
