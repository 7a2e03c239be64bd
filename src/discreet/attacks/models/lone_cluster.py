"""The lone cluster: a component of a single person gives away where this person is."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from discreet.attacks.defences import CURATOR, EASY, NOTHING, OWN, Defence, Shield, shield
from discreet.attacks.evidence import Found
from discreet.attacks.listing import Attack
from discreet.attacks.models import mixtures
from discreet.attacks.models.city import CHECKINS, City, city, load
from discreet.attacks.models.city_drawing import draw_map
from discreet.attacks.models.mixtures import FEWEST, Seen
from discreet.attacks.progress import track
from discreet.attacks.ranking import curve
from discreet.attacks.rarity import exposure
from discreet.attacks.result import AttackResult
from discreet.audit.counting import Share
from discreet.kernel.exact import Number, share, whole

_ABOUT = 0.5  # kilometres: so well the attacker who plants rows knows where to plant them


@dataclass(frozen=True)
class _Play:
    """One release: who is in, what is seen, the rows planted around each lone person, and how many rows one expects.

    The exact number of rows would tell how many lone people are in; it is not what a private mixture releases.
    """

    inside: np.ndarray
    seen: Seen
    planted: np.ndarray
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
    plays: int = 6,
    delta: Number = "1e-6",
) -> AttackResult:
    """Find the places of lone people in the parameters of a mixture that was fitted to everybody's places.

    `data` is a City, a made-up one unless given; each lone person is in the data by a coin, beside `people` of the
    crowd. Released are scikit-learn's parameters ("nothing"), those of components of at least five people ("easy"),
    the private mixture's ("curator"), or the mixture that a function of yours fits to an array of places. Against all
    but "nothing" the attacker plants four rows of their own around where they think that the person is, unless
    `planted` is another number: a component of five is shown, and the four are known.

    >>> lone_cluster(random_state=0).success > 0.5
    True
    >>> lone_cluster(random_state=0, defence="easy", planted=0).success
    0.0
    """
    known = city(random_state=random_state) if data is None else _checked(data)
    protected, loose = shield(defence, epsilon), share(delta, "delta")
    rows = _rows(planted, protected)
    _check_sizes(known, components, people, radius)
    rng = np.random.default_rng(random_state)
    played = []
    for inside in track(_coins(whole(plays, "plays", 2), len(known.loners), rng), "mixtures"):
        places, around = _draw(known, people, inside, rows, rng)
        seed = int(rng.integers(2**31))
        seen = _release(protected, places, (components, seed, known.side), loose)
        played.append(_Play(inside, seen, around, people + len(known.loners) * (rows + 0.5)))
    return _result(protected, known, played, (radius, people), 0.0 if protected.word != CURATOR else float(loose))


def guesses(seen: Seen, planted: np.ndarray, people: float) -> list[np.ndarray]:
    """Return the places that the attacker names for each lone person, from the released parameters alone.

    Without planted rows these are the means of all components of about one person, for everybody. With rows planted
    around somebody, the nearest component is theirs and this person's: five times its mean, less the four rows.

    >>> seen = Seen(np.array([0.01, 0.99]), np.array([[9.0, 9.0], [1.0, 1.0]]), np.array([np.eye(2)] * 2))
    >>> guesses(seen, np.empty((1, 0, 2)), people=100)
    [array([[9., 9.]])]
    """
    rows = planted.shape[1]
    if not rows:
        return [seen.means[seen.weights * people < 1.5]] * len(planted)  # halfway between one person and two
    nearest = np.linalg.norm(seen.means - planted.mean(axis=1)[:, None], axis=2).argmin(axis=1)
    return list(((rows + 1) * seen.means[nearest] - planted.sum(axis=1))[:, None])


def _checked(data: Any) -> City:
    if not isinstance(data, City):
        raise TypeError(f"data must be a City(crowd, loners, side), not {type(data).__name__}")
    return data


def _check_sizes(known: City, components: int, people: int, radius: float) -> None:
    if not 0 < radius < known.side:
        raise ValueError(f"radius must lie between 0 and the {known.side} km of the map, not {radius}")
    if whole(people, "people", whole(components, "components", 1)) > len(known.crowd):
        raise ValueError(f"people: {people} of the crowd are asked for, and it has {len(known.crowd)}")


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
) -> tuple[np.ndarray, np.ndarray]:
    """Return everybody's places in one play, and the planted ones among them, by the lone person."""
    crowd = known.crowd[rng.choice(len(known.crowd), people, replace=False)]
    shape = (len(known.loners), 1, 2)
    around = known.loners[:, None] + rng.uniform(-_ABOUT, _ABOUT, shape)
    around = around + rng.uniform(-_ABOUT, _ABOUT, (len(known.loners), rows, 2))
    planted = np.clip(around, 0, known.side)
    return np.concatenate([crowd, known.loners[inside], planted.reshape(-1, 2)]), planted


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
    named = [guesses(play.seen, play.planted, play.people) for play in played]
    missed = np.array([[_miss(each, place) for each, place in zip(row, known.loners, strict=True)] for row in named])
    located, inside = missed <= radius, np.array([play.inside for play in played])
    density = np.array([play.seen.log_density(known.loners) for play in played])
    mixture, member = np.nonzero(inside)
    typical = float(np.median(missed[inside]))
    return AttackResult(
        attack="lone_cluster",
        shield=protected,
        metric=f"of the lone people were located within {radius * 1000:.0f} m",
        evidence=Found(*(Share(int(part.sum()), part.size) for part in (located[inside], located[~inside]))),
        details={
            "median miss, in km": typical if np.isfinite(typical) else None,  # None: no place was named
            "told from absent ones by the density at their place (AUC)": curve(density[inside], density[~inside]).auc,
            "components shown": float(np.mean([len(play.seen.weights) for play in played])),
            "rows planted for each": int(played[0].planted.shape[1]),
            "people of the crowd": people,
            "lone people": len(known.loners),
            "mixtures": len(played),
        },
        # Rare is who is far from the nearest other person.
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
    says="Finds where a lone person is, in the parameters of a mixture that was fitted to everybody's places.",
    nothing="weights, means and covariances as scikit-learn finds them",
    easy="components of fewer than five people are left out",
    curator="the private mixture, dc.learn.GaussianMixture",
    built_in="a made-up city with 300 people and up to 12 lone ones",
    files=(CHECKINS,),
    load=load,
)
