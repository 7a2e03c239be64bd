"""What is known of a release, read from a mechanism or from an event of the ledger."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from discreet.kernel.choice import Exponential, PermuteAndFlip
from discreet.kernel.event import Event
from discreet.kernel.exact import Number, whole
from discreet.kernel.loss import NOTHING, Loss
from discreet.kernel.mechanism import Gaussian, Laplace, Sensitivity
from discreet.kernel.response import RandomizedResponse
from discreet.kernel.threshold import Threshold

Mechanism = Laplace | Gaussian | Threshold | RandomizedResponse | Exponential | PermuteAndFlip
Moves = Sensitivity | Number | None
Release = Event | tuple[Mechanism, Moves]

_ROUNDING = 1 + Fraction(1, 10**6)  # scales are rounded up, so a recorded loss may be this much larger


@dataclass(frozen=True)
class Known:
    """The loss of a release, and if it adds noise to integers, the noise and how far they move."""

    loss: Loss
    noise: Laplace | Gaussian | None = None
    l1: int = 0
    l2_squared: int = 0


def read(release: Release) -> Known:
    """Read an event, or a pair (mechanism, sensitivity)."""
    return of_event(release) if isinstance(release, Event) else of_mechanism(*release)


def of_mechanism(mechanism: Mechanism, sensitivity: Moves = None) -> Known:
    """Return what is known of a mechanism whose input moves by `sensitivity`."""
    if isinstance(mechanism, RandomizedResponse):
        return Known(mechanism.loss())
    if isinstance(mechanism, Threshold):
        moved = Sensitivity(mechanism.groups, mechanism.size)
        assert isinstance(mechanism.noise, Laplace | Gaussian)
        return Known(mechanism.loss(), mechanism.noise, moved.l1, moved.l2_squared)
    if sensitivity is None:
        raise ValueError("sensitivity is missing: how far can one unit move the input?")
    if isinstance(mechanism, Exponential | PermuteAndFlip):
        return Known(mechanism.loss(sensitivity))
    if isinstance(mechanism, Laplace | Gaussian):
        if not isinstance(sensitivity, Sensitivity):
            sensitivity = Sensitivity(groups=1, size=whole(sensitivity, "sensitivity", least=1))
        return Known(mechanism.loss(sensitivity), mechanism, sensitivity.l1, sensitivity.l2_squared)
    raise TypeError(f"mechanism must be one of Discreet's, not {type(mechanism).__name__}")


def of_event(event: Event) -> Known:
    """Return what is known of an event: its mechanism if that explains the recorded loss, else the loss alone.

    A draw that made an earlier one finer counts as a whole, although only the difference was charged: by itself it
    loses no less. Together with the earlier one it loses no more, so `latest` leaves that one out.
    """
    known = _described(json.loads(event.mechanism), json.loads(event.sensitivity))
    if event.loss is None:
        if known is None:
            raise ValueError("event: neither its mechanism nor its loss is known")
        return known
    if event.follows:
        return known or _whole(event)
    return known if known and _explains(known.loss, event.loss) else Known(event.loss)


def latest(releases: Iterable[Release]) -> list[Release]:
    """Leave out events that later ones among them made finer in every total: the later ones tell all of it."""
    listed = list(releases)
    finer = {pair for each in listed if isinstance(each, Event) for pair in each.follows}
    return [each for each in listed if not (isinstance(each, Event) and _totals(each) and _totals(each) <= finer)]


def _totals(event: Event) -> set[tuple[str, str]]:
    return {(topic, event.id) for part in event.topics for topic in part if topic}


def _whole(event: Event) -> Known:
    """Return the loss of several draws, some of them finer than earlier ones, each counted as a whole."""
    pairs = zip(json.loads(event.mechanism)["parts"], json.loads(event.sensitivity), strict=True)
    found = [_described(*pair) for pair in pairs]
    if None in found:
        raise ValueError("event: a part of its mechanism is not known")
    loss = sum((known.loss for known in found if known), NOTHING)
    return Known(loss + Loss(0, 0, event.loss.delta if event.loss else 0))


def _described(mechanism: Any, sensitivity: Any) -> Known | None:
    if not isinstance(mechanism, dict):
        return None
    try:
        if mechanism["name"] == "threshold":
            noise = _noise(json.loads(mechanism["noise"]))
            cut, groups, size, most = (int(mechanism[key]) for key in ("cut", "groups", "size", "most"))
            return of_mechanism(Threshold(noise, cut, groups, size, most))
        if mechanism["name"] == "randomized-response":
            return of_mechanism(RandomizedResponse(mechanism["truth"]))
        if mechanism["name"] in ("exponential", "permute-and-flip"):
            choice = Exponential if mechanism["name"] == "exponential" else PermuteAndFlip
            return of_mechanism(choice(mechanism["scale"]), sensitivity["l1"])
        if mechanism["name"] == "refined":
            mechanism = {"name": "laplace", "scale": mechanism["scale"]}
        moved = Sensitivity.of_norms(int(sensitivity["l1"]), int(sensitivity["l2_squared"]))
        return of_mechanism(_noise(mechanism), moved)
    except (KeyError, TypeError, ValueError):
        return None  # another kind of mechanism, or of record


def _noise(mechanism: dict[str, str]) -> Laplace | Gaussian:
    kinds: dict[str, type[Laplace | Gaussian]] = {"laplace": Laplace, "gaussian": Gaussian}
    return kinds[mechanism["name"]](mechanism["scale"])


def _explains(own: Loss, recorded: Loss) -> bool:
    """Tell whether a mechanism's own loss accounts for all that was charged."""
    epsilon = own.epsilon is None or recorded.epsilon is None or recorded.epsilon <= own.epsilon * _ROUNDING
    return epsilon and recorded.rho <= own.rho * _ROUNDING and recorded.delta <= own.delta * _ROUNDING
