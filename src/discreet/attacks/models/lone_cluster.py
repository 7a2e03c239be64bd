"""The lone cluster: a mixture component of a single person discloses where this person is."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from discreet.attacks.defences import CURATOR, EASY, NOTHING, OWN, Defence, DefenceChoice, parse_defence, promised_delta
from discreet.attacks.models import city_mixtures
from discreet.attacks.models.city_mixtures import (
    CHECKINS_FILE,
    MIN_COMPONENT_SIZE,
    City,
    MixtureParameters,
    load,
    simulate_city,
)
from discreet.attacks.models.plots import LOCATED_KEY, draw_city_map
from discreet.attacks.progress import track
from discreet.attacks.registry import Attack
from discreet.attacks.result import AttackResult, exposure_by_rarity
from discreet.attacks.scores import ScoreEvidence
from discreet.attacks.validation import random_generator
from discreet.kernel.numbers import Number, as_integer, as_positive

PLANTING_RADIUS = 0.5  # kilometres, in each direction: so well the attacker who plants rows knows where to plant them
_MIN_DISTANCE = 0.001  # no distance says more than this one


@dataclass(frozen=True)
class PlantedRows:
    """What the attacker put in: where they think that each lone person is, within `PLANTING_RADIUS`, and rows around it."""

    assumed_places: np.ndarray  # people × 2
    rows: np.ndarray  # people × rows × 2

    @property
    def rows_per_person(self) -> int:
        """How many rows are around each person."""
        return int(self.rows.shape[1])

    def nearest_means(self, mixture: MixtureParameters) -> np.ndarray:
        """Return the mean that is nearest to the planted rows of each person."""
        distances = np.linalg.norm(mixture.means - self.rows.mean(axis=1)[:, None], axis=2)
        return np.asarray(mixture.means[distances.argmin(axis=1)])


def guess_places(mixture: MixtureParameters, planted: PlantedRows, people: float) -> list[np.ndarray]:
    """Return the places that the attacker names for each lone person.

    Without planted rows these are the means of all components of about one person, for everybody. With rows planted
    around somebody, the nearest component is theirs and this person's: five times its mean, less the four rows. Where
    that is not where the person can be, the attacker names the place that they thought of beforehand.

    >>> mixture = MixtureParameters(np.array([0.01, 0.99]), np.array([[9.0, 9.0], [1.0, 1.0]]), np.array([np.eye(2)] * 2))
    >>> guess_places(mixture, PlantedRows(np.array([[5.0, 5.0]]), np.empty((1, 0, 2))), people=100)
    [array([[9., 9.]])]
    """
    if not planted.rows_per_person:
        return [mixture.means[mixture.weights * people < 1.5]] * len(planted.rows)  # halfway between one person and two
    solved = (planted.rows_per_person + 1) * planted.nearest_means(mixture) - planted.rows.sum(axis=1)
    possible = (np.abs(solved - planted.assumed_places) <= PLANTING_RADIUS + _MIN_DISTANCE).all(axis=1)
    return list(np.where(possible[:, None], solved, planted.assumed_places)[:, None])


def membership_scores(mixture: MixtureParameters, planted: PlantedRows, places: np.ndarray) -> np.ndarray:
    """Return how strongly each person, whose place is known now, is taken to be in the data.

    The density at the place tells, and with planted rows it also tells whether the mean of their component is nearer
    to where it is with the person than to where it is without. If noise may be of any size, a mean at the distance d
    is about as likely as 1/d² in two dimensions; the ratio's logarithm is what is added.

    >>> mixture = MixtureParameters(np.array([1.0]), np.array([[1.0, 1.0]]), np.array([np.eye(2)]))
    >>> none = PlantedRows(np.zeros((2, 2)), np.empty((2, 0, 2)))
    >>> near, distances = membership_scores(mixture, none, np.array([[1.0, 1.0], [5.0, 5.0]]))
    >>> bool(near > distances)
    True
    """
    density = mixture.log_density(places)
    if not planted.rows_per_person:
        return density
    mean, total = planted.nearest_means(mixture), planted.rows.sum(axis=1)
    distance_with, distance_without = (
        np.linalg.norm(mean - expected, axis=1) + _MIN_DISTANCE
        for expected in ((total + places) / (planted.rows_per_person + 1), total / planted.rows_per_person)
    )
    return np.asarray(density + 2 * np.log(distance_without / distance_with))


_DEFAULT_PLAYS, _DEFAULT_PRIVATE_PLAYS = 8, 4  # mixtures; private ones take longer


@dataclass(frozen=True)
class _MixturePlay:
    """One release: who is in, what is seen, the rows planted around each lone person, and how many rows one expects.

    The exact number of rows would tell how many lone people are in; it is not what a private mixture releases.
    """

    is_member: np.ndarray
    mixture: MixtureParameters
    planted: PlantedRows
    expected_rows: float


def lone_cluster(  # noqa: PLR0913 - each has a name and a default
    data: City | None = None,
    *,
    defence: DefenceChoice = "nothing",
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

    `data` is a City, a made-up one unless given; each lone person is in the data by a coin, beside `expected_rows` of the
    crowd. Released are scikit-learn's parameters ("nothing"), those of components of at least five people ("easy"),
    the private mixture's at epsilon and `delta` (1e-6 unless given; "curator"), or the mixture that a function of
    yours fits to an array of places. Against all but "nothing" the attacker plants four rows of their own around where
    they think that the person is, unless `planted` is another number: a component of five is shown, and the four are
    known. Success is how well those who are in are told from those who are not, once their place is known; `details`
    say who was located within the `radius`, in kilometres.

    >>> scores = lone_cluster(random_state=0)
    >>> scores.success > 0.9, scores.details["is_located"] > 0.5
    (True, True)
    >>> lone_cluster(random_state=0, defence="with_easy_fix", planted=0).details["is_located"]
    0.0
    """
    rng = random_generator(random_state)
    known_city = simulate_city(random_state=random_state) if data is None else _checked_city(data)
    parsed_defence = parse_defence(defence, epsilon)
    exact_delta = promised_delta(parsed_defence, delta, "1e-6")
    rows_per_person = _planted_count(planted, parsed_defence)
    checked_radius = _check_sizes(known_city, components, people, radius)
    all_plays = []
    for is_member in track(_draw_members(_play_count(plays, parsed_defence), len(known_city.loners), rng), "mixtures"):
        places, planted_rows = _draw_places(known_city, people, is_member, rows_per_person, rng)
        seed = int(rng.integers(2**31))
        mixture = _release_mixture(parsed_defence, places, (components, seed, known_city.side), exact_delta)
        all_plays.append(
            _MixturePlay(is_member, mixture, planted_rows, people + len(known_city.loners) * (rows_per_person + 0.5))
        )
    return _result(parsed_defence, known_city, all_plays, (checked_radius, people), float(exact_delta))


def _checked_city(data: Any) -> City:
    if not isinstance(data, City):
        raise TypeError(f"data must be a City(crowd, loners, side), not {type(data).__name__}")
    return data


def _check_sizes(city: City, components: int, people: int, radius: Number) -> float:
    """Stop if there are too few people for the mixture, and return the radius."""
    checked_radius = float(as_positive(radius, "radius"))
    if checked_radius >= city.side:
        raise ValueError(f"radius must lie between 0 and the {city.side} km of the map, not {radius}")
    if as_integer(people, "people", as_integer(components, "components", 1)) > len(city.crowd):
        raise ValueError(f"people: {people} of the crowd are asked for, and it has {len(city.crowd)}")
    return checked_radius


def _play_count(plays: int | None, defence: Defence) -> int:
    if plays is None:
        return _DEFAULT_PRIVATE_PLAYS if defence.kind == CURATOR else _DEFAULT_PLAYS
    return as_integer(plays, "plays", 2)


def _planted_count(planted: int | None, defence: Defence) -> int:
    if planted is None:
        return 0 if defence.kind == NOTHING else MIN_COMPONENT_SIZE - 1
    return as_integer(planted, "planted", 0)


def _draw_members(plays: int, loners: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Draw who is in each play: everybody in half of the plays, in an order of their own.

    Whether somebody is in says nothing about anybody else in the same play. So in and out differ by one person's
    removal, which is what the private mixture's epsilon is for.
    """
    halves = np.arange(plays) % 2 == 0
    return list(np.array([rng.permutation(halves) for _ in range(loners)]).T)


def _draw_places(
    city: City, people: int, is_member: np.ndarray, rows_per_person: int, rng: np.random.Generator
) -> tuple[np.ndarray, PlantedRows]:
    """Return everybody's places in one play, and what was planted among them."""
    crowd = city.crowd[rng.choice(len(city.crowd), people, replace=False)]
    assumed_places = city.loners + rng.uniform(-PLANTING_RADIUS, PLANTING_RADIUS, city.loners.shape)
    around = assumed_places[:, None] + rng.uniform(
        -PLANTING_RADIUS, PLANTING_RADIUS, (len(city.loners), rows_per_person, 2)
    )
    planted = np.clip(around, 0, city.side)
    return np.concatenate([crowd, city.loners[is_member], planted.reshape(-1, 2)]), PlantedRows(assumed_places, planted)


def _release_mixture(
    defence: Defence, places: np.ndarray, settings: tuple[int, int, float], delta: Any
) -> MixtureParameters:
    components, seed, side = settings
    if defence.kind == CURATOR:
        return city_mixtures.private_mixture(places, components, side, defence.curator_epsilon, delta)
    if defence.kind == OWN and defence.user_function is not None:
        return city_mixtures.user_mixture(defence.user_function, places)
    mixture = city_mixtures.exact_mixture(places, components, seed)
    return city_mixtures.drop_small_components(mixture, len(places)) if defence.kind == EASY else mixture


def _result(
    defence: Defence, city: City, plays: list[_MixturePlay], sizes: tuple[float, int], delta: float
) -> AttackResult:
    radius, people = sizes
    is_member, rows = np.array([play.is_member for play in plays]), plays[0].planted.rows_per_person
    guessed_places = [guess_places(play.mixture, play.planted, play.expected_rows) for play in plays]
    miss_distances = np.array(
        [[_miss_distance(each, place) for each, place in zip(row, city.loners, strict=True)] for row in guessed_places]
    )
    prior_miss_distances = np.array(
        [np.linalg.norm(play.planted.assumed_places - city.loners, axis=1) for play in plays]
    )
    located = miss_distances <= radius
    scores = np.array([membership_scores(play.mixture, play.planted, city.loners) for play in plays])
    mixture_index, member = np.nonzero(is_member)
    median_miss = float(np.median(miss_distances[is_member]))
    return AttackResult(
        attack="lone_cluster",
        against=defence,
        metric="of pairs of a lone person in the data and one who is not were told apart",
        # The same people are in and out, each by a coin of their own: the removal of one row, which epsilon is for.
        evidence=ScoreEvidence(scores[is_member], scores[~is_member]),
        details={
            LOCATED_KEY: float(located[is_member].mean()),
            "located while not in the data": float(located[~is_member].mean()),
            "located means within, in m": radius * 1000,
            "median miss, in km": median_miss if np.isfinite(median_miss) else None,  # None: no place was named
            "median miss without the release, in km": float(np.median(prior_miss_distances[is_member]))
            if rows
            else None,
            "components shown": float(np.mean([len(play.mixture.weights) for play in plays])),
            "rows planted for each": rows,
            "people of the crowd": people,
            "lone people": len(city.loners),
            "mixtures": len(plays),
        },
        # Rare is who is far from the nearest other person; hit is who was located.
        exposure=exposure_by_rarity(
            city.isolation[member],
            located[is_member],
            labels=[f"lone person {person} in mixture {at}" for at, person in zip(mixture_index, member, strict=True)],
            rarity_label="distance to others",
        ),
        delta=delta,
        draw=partial(draw_city_map, city=city, mixture=plays[0].mixture, is_member=is_member[0], is_located=located[0]),
    )


def _miss_distance(guessed_places: np.ndarray, place: np.ndarray) -> float:
    """Return how far the nearest named place is, in kilometres; infinity if none was named."""
    return float(np.linalg.norm(guessed_places - place, axis=1).min()) if len(guessed_places) else float("inf")


ATTACK = Attack(
    run=lone_cluster,
    docs_page="clusters",
    summary="Tells whether a lone person is in the data, and where, from a mixture that was fitted to everybody's places.",
    without_defence="weights, means and covariances as scikit-learn finds them",
    with_easy_fix="components of fewer than five people are left out",
    with_curator="the private mixture; as against the easy fix, the attacker plants four rows around each lone person",
    built_in_data="a made-up city with 300 people and up to 12 lone ones",
    data_files=(CHECKINS_FILE,),
    load=load,
)
