"""The lone-cluster attack: a mixture component of a single person discloses that person's location."""

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

PLANTING_RADIUS = 0.5  # km in each direction: how well an attacker who plants rows knows the location in advance
_MIN_DISTANCE = 0.001  # km; bounds the log-ratio of distances


@dataclass(frozen=True)
class PlantedRows:
    """The attacker's assumed location of each lone person, within `PLANTING_RADIUS`, and the rows planted around it."""

    assumed_places: np.ndarray  # people × 2
    rows: np.ndarray  # people × rows × 2

    @property
    def rows_per_person(self) -> int:
        """The number of rows planted around each person."""
        return int(self.rows.shape[1])

    def nearest_means(self, mixture: MixtureParameters) -> np.ndarray:
        """Return the released mean nearest to the rows planted around each person."""
        distances = np.linalg.norm(mixture.means - self.rows.mean(axis=1)[:, None], axis=2)
        return np.asarray(mixture.means[distances.argmin(axis=1)])


def guess_places(mixture: MixtureParameters, planted: PlantedRows, people: float) -> list[np.ndarray]:
    """Return the attacker's guesses of each lone person's location.

    Without planted rows, these are the means of all components of about one person. With four planted rows, the nearest
    component consists of them and the person: the location is five times its mean minus the sum of the rows. If that is
    impossible, the attacker falls back to the assumed location.

    >>> means, covariances = np.array([[9.0, 9.0], [1.0, 1.0]]), np.array([np.eye(2)] * 2)
    >>> mixture = MixtureParameters(np.array([0.01, 0.99]), means, covariances)
    >>> guess_places(mixture, PlantedRows(np.array([[5.0, 5.0]]), np.empty((1, 0, 2))), people=100)
    [array([[9., 9.]])]
    """
    if not planted.rows_per_person:
        return [mixture.means[mixture.weights * people < 1.5]] * len(planted.rows)  # 1.5: between one person and two
    solved = (planted.rows_per_person + 1) * planted.nearest_means(mixture) - planted.rows.sum(axis=1)
    possible = (np.abs(solved - planted.assumed_places) <= PLANTING_RADIUS + _MIN_DISTANCE).all(axis=1)
    return list(np.where(possible[:, None], solved, planted.assumed_places)[:, None])


def membership_scores(mixture: MixtureParameters, planted: PlantedRows, places: np.ndarray) -> np.ndarray:
    """Return the membership score of each lone person, whose location is now known.

    The score is the log-density at the location. With planted rows, it also compares the mean of their component with
    its positions with and without the person: for noise of unknown scale in two dimensions, the likelihood of a mean at
    distance d is about proportional to 1/d², and the log-ratio is added.

    >>> mixture = MixtureParameters(np.array([1.0]), np.array([[1.0, 1.0]]), np.array([np.eye(2)]))
    >>> none = PlantedRows(np.zeros((2, 2)), np.empty((2, 0, 2)))
    >>> near, far = membership_scores(mixture, none, np.array([[1.0, 1.0], [5.0, 5.0]]))
    >>> bool(near > far)
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
    """One release: the members, the mixture, the planted rows, and the expected number of rows.

    The exact number of rows would disclose how many lone people are members; a private mixture does not release it.
    """

    is_member: np.ndarray
    mixture: MixtureParameters
    planted: PlantedRows
    expected_rows: float


def lone_cluster(  # noqa: PLR0913 - all but the first by name only
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
    """Infer which lone people are in the data, and where, from a Gaussian mixture fitted to all locations.

    `data` is a `City`, simulated by default; each lone person is a member with probability 1/2, together with `people`
    of the crowd. The release is scikit-learn's parameters ("nothing"), only components of at least five people
    ("easy"), or a private mixture at epsilon and `delta` ("curator"; delta is 1e-6 by default). A function as defence
    gets the array of locations and returns a fitted mixture. Except against "nothing", the attacker plants four rows
    (or `planted`) around the assumed location of each lone person: then a component of five is released, and four of
    the five are known. Success is the AUC of membership inference once the location is known; `details` has the share
    of members located within `radius` kilometres.

    >>> result = lone_cluster(random_state=0)
    >>> result.success > 0.9, result.details["located"] > 0.5
    (True, True)
    >>> lone_cluster(random_state=0, defence="easy", planted=0).details["located"]
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
        raise TypeError(f"data must be City(crowd, loners, side), not {type(data).__name__}")
    return data


def _check_sizes(city: City, components: int, people: int, radius: Number) -> float:
    """Return the radius, or raise if it is too large or there are too few people for the mixture."""
    checked_radius = float(as_positive(radius, "radius"))
    if checked_radius >= city.side:
        raise ValueError(f"radius must be above 0 and below the map's side of {city.side} km, not {radius}")
    if as_integer(people, "people", as_integer(components, "components", 1)) > len(city.crowd):
        raise ValueError(f"people must be at most {len(city.crowd)}, the size of the crowd, not {people}")
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
    """Draw the members of each play: everybody is a member in half of the plays, in an independent random order.

    The memberships within one play are independent, so members and non-members differ by adding or removing one row,
    which is what the private mixture's epsilon covers.
    """
    halves = np.arange(plays) % 2 == 0
    return list(np.array([rng.permutation(halves) for _ in range(loners)]).T)


def _draw_places(
    city: City, people: int, is_member: np.ndarray, rows_per_person: int, rng: np.random.Generator
) -> tuple[np.ndarray, PlantedRows]:
    """Return all locations of one play, and the planted rows among them."""
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
        metric="of pairs of a lone member and a lone non-member ranked correctly (AUC)",
        # The same people are members and non-members, drawn independently: membership adds or removes one row.
        evidence=ScoreEvidence(scores[is_member], scores[~is_member]),
        details={
            LOCATED_KEY: float(located[is_member].mean()),
            "located while not in the data": float(located[~is_member].mean()),
            "located means within, in m": radius * 1000,
            "median error, in km": median_miss if np.isfinite(median_miss) else None,  # None: no guess was made
            "median error without the release, in km": float(np.median(prior_miss_distances[is_member]))
            if rows
            else None,
            "components shown": float(np.mean([len(play.mixture.weights) for play in plays])),
            "rows planted for each": rows,
            "people of the crowd": people,
            "lone people": len(city.loners),
            "mixtures": len(plays),
        },
        # People far from the nearest other person count as rare; they are hit if they were located.
        exposure=exposure_by_rarity(
            city.isolation[member],
            located[is_member],
            labels=[
                f"lone person {person} in mixture {index}" for index, person in zip(mixture_index, member, strict=True)
            ],
            rarity_label="distance to others",
        ),
        delta=delta,
        draw=partial(draw_city_map, city=city, mixture=plays[0].mixture, is_member=is_member[0], is_located=located[0]),
    )


def _miss_distance(guessed_places: np.ndarray, place: np.ndarray) -> float:
    """Return the distance to the nearest guess, in kilometres; infinity without a guess."""
    return float(np.linalg.norm(guessed_places - place, axis=1).min()) if len(guessed_places) else float("inf")


ATTACK = Attack(
    run=lone_cluster,
    docs_page="clusters",
    summary="Infers whether a lone person is in the data, and where, from a Gaussian mixture fitted to all locations.",
    without_defence="weights, means and covariances from scikit-learn",
    with_easy_fix="only components of at least five people; the attacker plants four rows around each lone person",
    with_curator="a private Gaussian mixture; the attacker plants four rows around each lone person",
    built_in_data="a simulated city with 300 people and up to 12 lone people",
    data_files=(CHECKINS_FILE,),
    load=load,
)
