"""Releases as dp_accounting's events, and their numerical accounting.

A privacy-loss distribution (PLD) gives the smallest epsilon for a sequence of releases, but only if mechanisms,
scales and number were all fixed before the first answer. A ledger must not use it to admit the next question.

Our noise is discrete, and that is what is converted. Discrete Laplace noise moved by one *is* the worst pair of
all mechanisms with the same pure epsilon, so it stands for those too. Discrete Gaussian noise is up to some
percent worse in delta than continuous noise of its scale, and is replaced by slightly narrower noise that is
surely worse (`_narrower`).
"""

import math
from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from discreet.kernel.event import Event
from discreet.kernel.exact import Number, not_negative, positive
from discreet.kernel.loss import NOTHING, Loss, zcdp_epsilon
from discreet.kernel.mechanism import Gaussian, Laplace
from discreet.privacy.release import Known, Mechanism, Moves, Release, latest, of_event, of_mechanism, read

_INTERVAL, _COARSE = 1e-4, 1e-3  # of the losses' grid: a coarser one gives a larger epsilon, never a smaller
_LARGE = 5  # an epsilon from which on the coarser grid does
_ROUNDING = Fraction(1, 10**13)  # of a PLD's delta: its convolutions are off by up to 1e-14
_OFTEN = 100_000  # repeats beyond which a PLD is no better than rho, and slow
_FINE = Fraction(1, 10**11)  # a rho so small that the grid is too coarse for it
_FAR = 50  # an epsilon beyond which nobody needs it tight
_MANY = 10_000  # an l1 beyond which only its epsilon counts
_WIDE = 1000  # a scale beyond which Gaussian noise is as good as continuous
_GIVEN_UP = 2  # of the variance, by _narrower
_SLACK = 1e-15  # of epsilon for each coordinate, for the same


def to_dp_event(release: Event | Mechanism, sensitivity: Moves = None) -> Any:
    """Return a release as a `dp_accounting.DpEvent`, for neighbours by removal.

    An event of the ledger knows its own sensitivity. A delta becomes an event that reveals all with that
    probability; accountants that do not know it refuse it.

    >>> to_dp_event(Laplace(10), 1)
    DiscreteLaplaceDpEvent(noise_parameter=0.1, sensitivity=1)
    """
    known = of_event(release) if isinstance(release, Event) else of_mechanism(release, sensitivity)
    return _dp_event(known)


def composed_dp_event(releases: Iterable[Release]) -> Any:
    """Return several releases, events or pairs (mechanism, sensitivity), as one `ComposedDpEvent`; repeats are counted.

    >>> composed_dp_event([(Laplace(10), 1)] * 3).events[0].count
    3
    """
    library = _library()
    counted = Counter(map(read, latest(releases)))
    return library.ComposedDpEvent(
        [
            _dp_event(known) if times == 1 else library.SelfComposedDpEvent(_dp_event(known), times)
            for known, times in counted.items()
        ]
    )


def declared_epsilon(releases: Iterable[Release], delta: Number) -> float:
    """Return an epsilon, never too small, for which releases *fixed beforehand* are together (epsilon, delta)-DP.

    Invalid if any release, or their number, was chosen after seeing an answer: then add up `Loss` instead.

    >>> round(declared_epsilon([(Laplace(100), 1)] * 336, delta=1e-9), 2)
    1.0
    """
    found = _epsilon(Counter(map(read, latest(releases))), not_negative(delta, "delta"))
    shown = float(found)
    return shown if shown >= found else math.nextafter(shown, math.inf)


def declared_count(mechanism: Mechanism, sensitivity: Moves, epsilon: Number, delta: Number) -> int:
    """Return how many equal releases, their number *fixed beforehand*, fit into (epsilon, delta).

    >>> declared_count(Laplace(100), 1, epsilon=1, delta=1e-9)
    336
    """
    limit, allowed = positive(epsilon, "epsilon"), not_negative(delta, "delta")
    one = of_mechanism(mechanism, sensitivity)

    def fits(count: int) -> bool:
        return count * one.loss.delta <= allowed and _epsilon(Counter({one: count}), allowed) <= limit

    low, high = 0, 1
    while fits(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _epsilon(counted: Counter[Known], allowed: Fraction) -> Fraction:
    """Return the best of several valid epsilons: losses added up, and PLDs in two ways."""
    total = sum((_times(known.loss, count) for known, count in counted.items()), NOTHING)
    left = allowed - total.delta
    if left < 0:
        raise ValueError(f"delta must be at least the releases' own {float(total.delta):.3g}")
    if not left and total.epsilon is None:
        raise ValueError("delta must be above 0 and above the releases' own: they have no pure epsilon")
    added = total.to_epsilon(allowed)
    if left < 100 * _ROUNDING or added > _FAR:
        return added
    ways = (True,) if all(known.noise for known in counted) else (True, False)
    grid = {"value_discretization_interval": _INTERVAL if added < _LARGE else _COARSE}
    found = [_by_distributions(counted, left, grid, pure=pure) for pure in ways]
    return min([added, *(Fraction(epsilon) for epsilon in found if epsilon < math.inf)])


def _by_distributions(
    counted: Counter[Known], delta: Fraction, grid: dict[str, float], *, pure: bool
) -> Fraction | float:
    """Compose what has a PLD; add the rest by rho, at half of delta each.

    A release known only by its loss has a PLD by its epsilon (`pure`), or is left to the rest.
    """
    library = _distributions()
    composed, rest, inverse, slack = library.identity(**grid), Fraction(0), 0.0, 0.0
    for known, count in counted.items():
        single = _distribution(known, library, grid, pure=pure) if count <= _OFTEN else None
        if single is not None:
            composed = composed.compose(single if count == 1 else single.self_compose(count))
        elif isinstance(known.noise, Gaussian) and (multiplier := _narrower(known)):
            inverse += count / multiplier**2
            slack += count * _SLACK * min(known.l1, known.l2_squared)  # at most so many integers move
        else:
            rest += count * known.loss.rho
    if inverse:
        wide = library.from_gaussian_mechanism(1 / math.sqrt(inverse), **grid, use_connect_dots=True)
        composed = composed.compose(wide)
    part = delta / 2 if rest else delta
    found = composed.get_epsilon_for_delta(float(part - _ROUNDING))
    if found == math.inf:
        return math.inf
    return Fraction(float(found)) + Fraction(slack) + (zcdp_epsilon(rest, part) if rest else 0)


def _distribution(known: Known, library: Any, grid: dict[str, float], *, pure: bool) -> Any:
    """Return the PLD of one release, or None if it has none of its own."""
    settings = {**grid, "use_connect_dots": True}
    if known.loss.rho < _FINE:
        return None
    if isinstance(known.noise, Laplace) and known.l1 <= _MANY:
        # Log-concave noise: to move one integer by l1 is worse than to move several by l1 in all.
        return library.from_discrete_laplace_mechanism(float(1 / known.noise.scale), known.l1, **settings)
    if isinstance(known.noise, Gaussian):
        # Only where one integer moves: several do not turn into one, as they would with continuous noise.
        if known.l2_squared < known.l1**2 or known.noise.scale > _WIDE:
            return None
        return library.from_discrete_gaussian_mechanism(float(known.noise.scale), known.l1, **settings)
    if known.loss.epsilon is None or not (pure or known.noise):
        return None
    return library.from_discrete_laplace_mechanism(float(known.loss.epsilon), 1, **settings)


def _narrower(known: Known) -> float | None:
    """Return the noise multiplier of continuous Gaussian noise that is surely no better than the discrete.

    Continuous noise of variance s²-2 on integers, then discrete noise of variance 2 around the result, has within
    a factor 1 ± 4·exp(-4·pi²) the law of discrete noise of variance s² (Poisson's formula). The second step looks
    at nothing else, so in any number of coordinates the discrete noise loses at most what the first step does,
    and 6e-17 of epsilon for each coordinate that moves.
    """
    assert isinstance(known.noise, Gaussian)
    variance = known.noise.scale**2
    return math.sqrt((variance - _GIVEN_UP) / known.l2_squared) if variance >= 2 * _GIVEN_UP else None


def _dp_event(known: Known) -> Any:
    library = _library()
    event: Any = library.NoOpDpEvent()
    if isinstance(known.noise, Laplace):
        event = library.DiscreteLaplaceDpEvent(float(1 / known.noise.scale), known.l1)
    elif known.noise and (multiplier := _narrower(known)):
        event = library.GaussianDpEvent(multiplier)
    elif known.loss.epsilon:
        event = library.DiscreteLaplaceDpEvent(float(known.loss.epsilon), 1)
    elif known.loss.rho:
        event = library.ZCDpEvent(float(known.loss.rho))
    if not known.loss.delta:
        return event
    revealed = library.PoissonSampledDpEvent(float(known.loss.delta), library.NonPrivateDpEvent())
    return library.ComposedDpEvent([event, revealed])


def _times(loss: Loss, count: int) -> Loss:
    epsilon = None if loss.epsilon is None else count * loss.epsilon
    return Loss(epsilon, count * loss.rho, min(Fraction(1), count * loss.delta))


def _library() -> Any:
    try:
        from dp_accounting import dp_event  # noqa: PLC0415 - optional, and slow to import
    except ImportError:
        raise ImportError("accounting needs dp_accounting: pip install discreet[accounting]") from None
    return dp_event


def _distributions() -> Any:
    _library()
    from dp_accounting.pld import privacy_loss_distribution  # noqa: PLC0415 - as above

    return privacy_loss_distribution
