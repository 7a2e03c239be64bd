"""The lone cluster: a component of a single person gives away where this person is."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from discreet.attacks.checking import generator
from discreet.attacks.defences import CURATOR, EASY, NOTHING, OWN, Defence, Shield, delta_of, shield
from discreet.attacks.listing import Attack
from discreet.attacks.models import mixtures
from discreet.attacks.models.city import CHECKINS, City, city, load
from discreet.attacks.models.city_drawing import LOCATED, draw_map
from discreet.attacks.models.locating import REACH, Planted, guesses, presence
from discreet.attacks.models.mixtures import FEWEST, Seen
from discreet.attacks.progress import track
from discreet.attacks.rarity import exposure
from discreet.attacks.result import AttackResult
from discreet.attacks.scores import Scores
from discreet.kernel.exact import Number, positive, whole

_PLAYS, _PRIVATE_PLAYS = 8, 4  # mixtures; private ones take longer


@dataclass(frozen=True)
class _Play:
    """One release: who is in, what is seen, the rows planted around each lone person, and how many rows one expects.

    The exact number of rows would tell how many lone people are in; it is not what a private mixture releases.
    """

    inside: np.ndarray
    seen: Seen
    planted: Planted
    people: float


def lone_cluster(  # noqa: PLR0913 - each has a name and a default
    data: City | None = None,
    *,
    defence: Defence = "nothing",
    epsilon: Number | None = None,
    random_state: int | None = None,
    components: int = 25,
    people: int = 300,
    planted: int | None = None,
    radius: float = 0.05,
    plays: int | None = None,
    delta: Number | None = None,
) -> AttackResult:
    """Tell which lone people are in the data, and where they are, from a mixture that was fitted to all places.

    `data` is a City, a made-up one unless given; each lone person is in the data by a coin, beside `people` of the
    crowd. Released are scikit-learn's parameters ("nothing"), those of components of at least five people ("easy"),
    the private mixture's at epsilon and `delta` (1e-6 unless given; "curator"), or the mixture that a function of
    yours fits to an array of places. Against all but "nothing" the attacker plants four rows of their own around where
    they think that the person is, unless `planted` is another number: a component of five is shown, and the four are
    known. Success is how well those who are in are told from those who are not, once their place is known; `details`
    say who was located within the `radius`, in kilometres.

    >>> told = lone_cluster(random_state=0)
    >>> told.success > 0.9, told.details["located"] > 0.5
    (True, True)
    >>> lone_cluster(random_state=0, defence="easy", planted=0).details["located"]
    0.0
    """
    rng = generator(random_state)
    known = city(random_state=random_state) if data is None else _checked(data)
    protected = shield(defence, epsilon)
    loose = delta_of(protected, delta, "1e-6")
    rows = _rows(planted, protected)
    within = _check_sizes(known, components, people, radius)
    played = []
    for inside in track(_coins(_number_of(plays, protected), len(known.loners), rng), "mixtures"):
        places, around = _draw(known, people, inside, rows, rng)
        seed = int(rng.integers(2**31))
        seen = _release(protected, places, (components, seed, known.side), loose)
        played.append(_Play(inside, seen, around, people + len(known.loners) * (rows + 0.5)))
    return _result(protected, known, played, (within, people), float(loose))


def _checked(data: Any) -> City:
    if not isinstance(data, City):
        raise TypeError(f"data must be a City(crowd, loners, side), not {type(data).__name__}")
    return data


def _check_sizes(known: City, components: int, people: int, radius: Number) -> float:
    """Stop if there are too few people for the mixture, and return the radius."""
    within = float(positive(radius, "radius"))
    if within >= known.side:
        raise ValueError(f"radius must lie between 0 and the {known.side} km of the map, not {radius}")
    if whole(people, "people", whole(components, "components", 1)) > len(known.crowd):
        raise ValueError(f"people: {people} of the crowd are asked for, and it has {len(known.crowd)}")
    return within


def _number_of(plays: int | None, protected: Shield) -> int:
    if plays is None:
        return _PRIVATE_PLAYS if protected.word == CURATOR else _PLAYS
    return whole(plays, "plays", 2)


def _rows(planted: int | None, protected: Shield) -> int:
    if planted is None:
        return 0 if protected.word == NOTHING else FEWEST - 1
    return whole(planted, "planted", 0)


def _coins(plays: int, loners: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Draw who is in each play: everybody in half of the plays, in an order of their own.

    Whether somebody is in says nothing about anybody else in the same play. So in and out differ by one person's
    removal, which is what the private mixture's epsilon is for.
    """
    halves = np.arange(plays) % 2 == 0
    return list(np.array([rng.permutation(halves) for _ in range(loners)]).T)


def _draw(
    known: City, people: int, inside: np.ndarray, rows: int, rng: np.random.Generator
) -> tuple[np.ndarray, Planted]:
    """Return everybody's places in one play, and what was planted among them."""
    crowd = known.crowd[rng.choice(len(known.crowd), people, replace=False)]
    about = known.loners + rng.uniform(-REACH, REACH, known.loners.shape)
    around = about[:, None] + rng.uniform(-REACH, REACH, (len(known.loners), rows, 2))
    planted = np.clip(around, 0, known.side)
    return np.concatenate([crowd, known.loners[inside], planted.reshape(-1, 2)]), Planted(about, planted)


def _release(protected: Shield, places: np.ndarray, how: tuple[int, int, float], delta: Any) -> Seen:
    components, seed, side = how
    if protected.word == CURATOR:
        return mixtures.private(places, components, side, protected.price, delta)
    if protected.word == OWN and protected.make is not None:
        return mixtures.own(protected.make, places)
    seen = mixtures.exact(places, components, seed)
    return mixtures.without_small(seen, len(places)) if protected.word == EASY else seen


def _result(
    protected: Shield, known: City, played: list[_Play], sizes: tuple[float, int], delta: float
) -> AttackResult:
    radius, people = sizes
    inside, rows = np.array([play.inside for play in played]), played[0].planted.count
    named = [guesses(play.seen, play.planted, play.people) for play in played]
    missed = np.array([[_miss(each, place) for each, place in zip(row, known.loners, strict=True)] for row in named])
    thought = np.array([np.linalg.norm(play.planted.about - known.loners, axis=1) for play in played])
    located = missed <= radius
    told = np.array([presence(play.seen, play.planted, known.loners) for play in played])
    mixture, member = np.nonzero(inside)
    typical = float(np.median(missed[inside]))
    return AttackResult(
        attack="lone_cluster",
        shield=protected,
        metric="of pairs of a lone person in the data and one who is not were told apart",
        # The same people are in and out, each by a coin of their own: the removal of one row, which epsilon is for.
        evidence=Scores(told[inside], told[~inside]),
        details={
            LOCATED: float(located[inside].mean()),
            "located while not in the data": float(located[~inside].mean()),
            "located means within, in m": radius * 1000,
            "median miss, in km": typical if np.isfinite(typical) else None,  # None: no place was named
            "median miss without the release, in km": float(np.median(thought[inside])) if rows else None,
            "components shown": float(np.mean([len(play.seen.weights) for play in played])),
            "rows planted for each": rows,
            "people of the crowd": people,
            "lone people": len(known.loners),
            "mixtures": len(played),
        },
        # Rare is who is far from the nearest other person; hit is who was located.
        exposure=exposure(
            known.apart[member],
            located[inside],
            labels=[f"lone person {person} in mixture {at}" for at, person in zip(mixture, member, strict=True)],
            by="distance to others",
        ),
        delta=delta,
        draw=partial(draw_map, known=known, seen=played[0].seen, inside=inside[0], located=located[0]),
    )


def _miss(named: np.ndarray, place: np.ndarray) -> float:
    """Return how far the nearest named place is, in kilometres; infinity if none was named."""
    return float(np.linalg.norm(named - place, axis=1).min()) if len(named) else float("inf")


ATTACK = Attack(
    run=lone_cluster,
    topic="clusters",
    says="Tells whether a lone person is in the data, and where, from a mixture that was fitted to everybody's places.",
    nothing="weights, means and covariances as scikit-learn finds them",
    easy="components of fewer than five people are left out",
    curator="the private mixture; as against the easy fix, the attacker plants four rows around each lone person",
    built_in="a made-up city with 300 people and up to 12 lone ones",
    files=(CHECKINS,),
    load=load,
)
