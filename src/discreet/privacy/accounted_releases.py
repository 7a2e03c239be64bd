"""The loss and noise of a release, read from a mechanism or from a ledger event."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from discreet.kernel.event import Event
from discreet.kernel.loss import ZERO_LOSS, Loss
from discreet.kernel.mechanism import Gaussian, Laplace, Sensitivity
from discreet.kernel.numbers import Number, as_integer
from discreet.kernel.partition_selection import Threshold
from discreet.kernel.selection import QuantileSelection
from discreet.local.randomized_response import RandomizedResponse
from discreet.privacy.selection import Exponential, PermuteAndFlip, read_quantile_selection

Mechanism = Laplace | Gaussian | Threshold | RandomizedResponse | Exponential | PermuteAndFlip | QuantileSelection
SensitivityLike = Sensitivity | Number | None
ReleaseLike = Event | tuple[Mechanism, SensitivityLike]

_ROUNDING = 1 + Fraction(1, 10**6)  # scales are rounded up, so a recorded loss may be this much larger


@dataclass(frozen=True)
class AccountedRelease:
    """The loss of a release; if it adds noise to integers, also the noise and its l1 and squared l2 sensitivity."""

    loss: Loss
    noise: Laplace | Gaussian | None = None
    l1: int = 0
    l2_squared: int = 0


def account_release(release: ReleaseLike) -> AccountedRelease:
    """Account for an event, or for a pair (mechanism, sensitivity)."""
    return account_event(release) if isinstance(release, Event) else account_mechanism(*release)


def account_mechanism(mechanism: Mechanism, sensitivity: SensitivityLike = None) -> AccountedRelease:
    """Account for a mechanism whose input has the given sensitivity."""
    if isinstance(mechanism, RandomizedResponse):
        return AccountedRelease(mechanism.loss())
    if isinstance(mechanism, Threshold):
        threshold_sensitivity = mechanism.sensitivity
        assert isinstance(mechanism.noise, Laplace | Gaussian)
        return AccountedRelease(
            mechanism.loss(), mechanism.noise, threshold_sensitivity.l1, threshold_sensitivity.l2_squared
        )
    if sensitivity is None:
        raise ValueError("sensitivity is missing: give the largest change of the input due to one unit")
    if isinstance(mechanism, Exponential | PermuteAndFlip):
        return AccountedRelease(mechanism.loss(sensitivity))
    if isinstance(mechanism, Laplace | Gaussian | QuantileSelection):
        if not isinstance(sensitivity, Sensitivity):
            sensitivity = Sensitivity(groups=1, size=as_integer(sensitivity, "sensitivity", minimum=1))
        if isinstance(mechanism, QuantileSelection):
            return AccountedRelease(mechanism.loss(sensitivity))
        return AccountedRelease(mechanism.loss(sensitivity), mechanism, sensitivity.l1, sensitivity.l2_squared)
    raise TypeError(f"mechanism must be one of Discreet's, not {type(mechanism).__name__}")


def account_event(event: Event) -> AccountedRelease:
    """Account for an event: by its mechanism if that explains the recorded loss, else by the loss alone.

    A draw that refines an earlier one has its full loss, although only the difference was charged. Both draws together
    lose no more than the refined one alone, so `without_refined` leaves the earlier one out.
    """
    release = _account_record(json.loads(event.mechanism), json.loads(event.sensitivity))
    if event.loss is None:
        if release is None:
            raise ValueError("event: it has no loss, and its mechanism is unknown")
        return release
    if event.follows:
        return release or _account_parts(event)
    return release if release and _explains(release.loss, event.loss) else AccountedRelease(event.loss)


def without_refined(releases: Iterable[ReleaseLike]) -> list[ReleaseLike]:
    """Leave out events of which every total is refined by a later event, whose loss covers both."""
    listed = list(releases)
    refined = {pair for release in listed if isinstance(release, Event) for pair in release.follows}
    return [
        release
        for release in listed
        if not (isinstance(release, Event) and _drawn_totals(release) and _drawn_totals(release) <= refined)
    ]


def _drawn_totals(event: Event) -> set[tuple[str, str]]:
    return {(fingerprint, event.id) for part in event.fingerprints for fingerprint in part if fingerprint}


def _account_parts(event: Event) -> AccountedRelease:
    """Return the loss of several draws, some of which refine earlier ones, each with its full loss."""
    pairs = zip(json.loads(event.mechanism)["parts"], json.loads(event.sensitivity), strict=True)
    parts = [_account_record(*pair) for pair in pairs]
    if None in parts:
        raise ValueError("event: a part of its mechanism is unknown")
    loss = sum((part.loss for part in parts if part), ZERO_LOSS)
    return AccountedRelease(loss + Loss(0, 0, event.loss.delta if event.loss else 0))


def _account_record(mechanism: Any, sensitivity: Any) -> AccountedRelease | None:
    if not isinstance(mechanism, dict):
        return None
    try:
        if mechanism["name"] == "partition selection":
            (only,) = mechanism["rounds"]  # that of several rounds is known by its loss alone
            mechanism = json.loads(only)
        if mechanism["name"] == "threshold":
            noise = _noise_of_record(json.loads(mechanism["noise"]))
            threshold, groups, size, most = (int(mechanism[key]) for key in ("cut", "groups", "size", "most"))
            return account_mechanism(Threshold(noise, threshold, groups, size, most))
        if mechanism["name"] == "randomized-response":
            return account_mechanism(RandomizedResponse(mechanism["truth"]))
        if mechanism["name"] in ("exponential", "permute-and-flip"):
            choice = Exponential if mechanism["name"] == "exponential" else PermuteAndFlip
            return account_mechanism(choice(mechanism["scale"]), sensitivity["l1"])
        if mechanism["name"] == "refined":
            mechanism = {"name": "laplace", "scale": mechanism["scale"]}
        norms = Sensitivity.of_norms(int(sensitivity["l1"]), int(sensitivity["l2_squared"]))
        is_selection = mechanism["name"] == "quantiles"
        return account_mechanism(
            read_quantile_selection(mechanism) if is_selection else _noise_of_record(mechanism), norms
        )
    except (KeyError, TypeError, ValueError):
        return None  # an unknown mechanism, or a record without its parameters


def _noise_of_record(mechanism: dict[str, str]) -> Laplace | Gaussian:
    kinds: dict[str, type[Laplace | Gaussian]] = {"laplace": Laplace, "gaussian": Gaussian}
    return kinds[mechanism["name"]](mechanism["scale"])


def _explains(own: Loss, recorded: Loss) -> bool:
    """Whether a mechanism's own loss covers the recorded one."""
    epsilon = own.epsilon is None or recorded.epsilon is None or recorded.epsilon <= own.epsilon * _ROUNDING
    return epsilon and recorded.rho <= own.rho * _ROUNDING and recorded.delta <= own.delta * _ROUNDING
