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
from discreet.kernel.randomized_response import RandomizedResponse
from discreet.kernel.selection import Exponential, PermuteAndFlip

Mechanism = Laplace | Gaussian | Threshold | RandomizedResponse | Exponential | PermuteAndFlip
SensitivityLike = Sensitivity | Number | None
ReleaseLike = Event | tuple[Mechanism, SensitivityLike]

_ROUNDING = 1 + Fraction(1, 10**6)  # scales are rounded up, so a recorded loss may be this much larger


@dataclass(frozen=True)
class AccountedRelease:
    """The loss of a release, and if it adds noise to integers, the noise and how far they move."""

    loss: Loss
    noise: Laplace | Gaussian | None = None
    l1: int = 0
    l2_squared: int = 0


def account_release(release: ReleaseLike) -> AccountedRelease:
    """Read an event, or a pair (mechanism, sensitivity)."""
    return account_event(release) if isinstance(release, Event) else account_mechanism(*release)


def account_mechanism(mechanism: Mechanism, sensitivity: SensitivityLike = None) -> AccountedRelease:
    """Return what is known of a mechanism whose input moves by `sensitivity`."""
    if isinstance(mechanism, RandomizedResponse):
        return AccountedRelease(mechanism.loss())
    if isinstance(mechanism, Threshold):
        threshold_sensitivity = Sensitivity(mechanism.groups, mechanism.size)
        assert isinstance(mechanism.noise, Laplace | Gaussian)
        return AccountedRelease(
            mechanism.loss(), mechanism.noise, threshold_sensitivity.l1, threshold_sensitivity.l2_squared
        )
    if sensitivity is None:
        raise ValueError("sensitivity is missing: how far can one unit move the input?")
    if isinstance(mechanism, Exponential | PermuteAndFlip):
        return AccountedRelease(mechanism.loss(sensitivity))
    if isinstance(mechanism, Laplace | Gaussian):
        if not isinstance(sensitivity, Sensitivity):
            sensitivity = Sensitivity(groups=1, size=as_integer(sensitivity, "sensitivity", minimum=1))
        return AccountedRelease(mechanism.loss(sensitivity), mechanism, sensitivity.l1, sensitivity.l2_squared)
    raise TypeError(f"mechanism must be one of Discreet's, not {type(mechanism).__name__}")


def account_event(event: Event) -> AccountedRelease:
    """Return what is known of an event: its mechanism if that explains the recorded loss, else the loss alone.

    A draw that made an earlier one finer counts as a whole, although only the difference was charged: by itself it
    loses no less. Together with the earlier one it loses no more, so `without_refined` leaves that one out.
    """
    release = _account_record(json.loads(event.mechanism), json.loads(event.sensitivity))
    if event.loss is None:
        if release is None:
            raise ValueError("event: neither its mechanism nor its loss is known")
        return release
    if event.follows:
        return release or _account_parts(event)
    return release if release and _explains(release.loss, event.loss) else AccountedRelease(event.loss)


def without_refined(releases: Iterable[ReleaseLike]) -> list[ReleaseLike]:
    """Leave out events that later ones among them made finer in every total: the later ones tell all of it."""
    listed = list(releases)
    refined = {pair for each in listed if isinstance(each, Event) for pair in each.follows}
    return [
        each
        for each in listed
        if not (isinstance(each, Event) and _drawn_totals(each) and _drawn_totals(each) <= refined)
    ]


def _drawn_totals(event: Event) -> set[tuple[str, str]]:
    return {(topic, event.id) for part in event.fingerprints for topic in part if topic}


def _account_parts(event: Event) -> AccountedRelease:
    """Return the loss of several draws, some of them finer than earlier ones, each counted as a whole."""
    pairs = zip(json.loads(event.mechanism)["parts"], json.loads(event.sensitivity), strict=True)
    parts = [_account_record(*pair) for pair in pairs]
    if None in parts:
        raise ValueError("event: a part of its mechanism is not known")
    loss = sum((known.loss for known in parts if known), ZERO_LOSS)
    return AccountedRelease(loss + Loss(0, 0, event.loss.delta if event.loss else 0))


def _account_record(mechanism: Any, sensitivity: Any) -> AccountedRelease | None:
    if not isinstance(mechanism, dict):
        return None
    try:
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
        return account_mechanism(_noise_of_record(mechanism), norms)
    except (KeyError, TypeError, ValueError):
        return None  # another kind of mechanism, or of record


def _noise_of_record(mechanism: dict[str, str]) -> Laplace | Gaussian:
    kinds: dict[str, type[Laplace | Gaussian]] = {"laplace": Laplace, "gaussian": Gaussian}
    return kinds[mechanism["name"]](mechanism["scale"])


def _explains(own: Loss, recorded: Loss) -> bool:
    """Tell whether a mechanism's own loss accounts for all that was charged."""
    epsilon = own.epsilon is None or recorded.epsilon is None or recorded.epsilon <= own.epsilon * _ROUNDING
    return epsilon and recorded.rho <= own.rho * _ROUNDING and recorded.delta <= own.delta * _ROUNDING
