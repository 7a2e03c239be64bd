"""The lone-cluster attack: a mixture component of a single person discloses that person's location."""

from dataclasses import dataclass
from functools import partial

import numpy as np

from discreet.attacks.attack import (
    CURATOR,
    NOTHING,
    Attack,
    AttackResult,
    DefenceChoice,
    Game,
    optional,
    whole,
)
from discreet.attacks.data.city import CITY, City
from discreet.attacks.models.city_mixtures import MIN_COMPONENT_SIZE, RELEASES, MixtureParameters, user_mixture
from discreet.attacks.models.plots import LOCATED_KEY, draw_city_map
from discreet.attacks.scores import ScoreEvidence
from discreet.attacks.validation import require
from discreet.kernel.numbers import Number, as_positive
from discreet.progress import track

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
    crowd_size: int

    @property
    def expected_rows(self) -> float:
        """The number of rows, of which each lone person contributes one by a coin."""
        return self.crowd_size + len(self.planted.rows) * (self.planted.rows_per_person + 0.5)


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
    return ATTACK.run(
        data,
        defence,
        epsilon,
        random_state,
        components=components,
        people=people,
        planted=planted,
        radius=radius,
        plays=plays,
        delta=delta,
    )


def _play(game: Game) -> AttackResult:
    city, settings, kind = game.data, game.settings, game.defence.kind
    _check_sizes(city, settings.components, settings.people, float(settings.radius))
    rows = settings.planted if settings.planted is not None else 0 if kind == NOTHING else MIN_COMPONENT_SIZE - 1
    count = settings.plays or (_DEFAULT_PRIVATE_PLAYS if kind == CURATOR else _DEFAULT_PLAYS)
    plays = []
    for is_member in track(_draw_members(count, len(city.loners), game.rng), "mixtures"):
        places, planted = _draw_places(city, settings.people, is_member, rows, game.rng)
        mixture = game.release(places, int(game.rng.integers(2**31)))
        plays.append(_MixturePlay(is_member, mixture, planted, settings.people))
    return _result(game, plays, float(settings.radius))


def _check_sizes(city: City, components: int, people: int, radius: float) -> None:
    require(radius < city.side, f"radius must be above 0 and below the map's side of {city.side} km, not {radius:g}")
    require(
        components <= people <= len(city.crowd),
        f"people must be at least {components}, the number of components, and at most {len(city.crowd)}, the size "
        f"of the crowd, not {people}",
    )


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


def _result(game: Game, plays: list[_MixturePlay], radius: float) -> AttackResult:
    city = game.data
    is_member, rows = np.array([play.is_member for play in plays]), plays[0].planted.rows_per_person
    misses = np.array([_miss_distances(play, city) for play in plays])
    assumed = np.array([np.linalg.norm(play.planted.assumed_places - city.loners, axis=1) for play in plays])
    located, median_miss = misses <= radius, float(np.median(misses[is_member]))
    scores = np.array([membership_scores(play.mixture, play.planted, city.loners) for play in plays])
    mixture_index, member = np.nonzero(is_member)
    return game.result(
        "of pairs of a lone member and a lone non-member ranked correctly (AUC)",
        # The same people are members and non-members, drawn independently: membership adds or removes one row.
        ScoreEvidence(scores[is_member], scores[~is_member]),
        {
            LOCATED_KEY: float(located[is_member].mean()),
            "located while not in the data": float(located[~is_member].mean()),
            "located means within, in m": radius * 1000,
            "median error, in km": median_miss if np.isfinite(median_miss) else None,  # None: no guess was made
            "median error without the release, in km": float(np.median(assumed[is_member])) if rows else None,
            "components shown": float(np.mean([len(play.mixture.weights) for play in plays])),
            "rows planted for each": rows,
            "people of the crowd": plays[0].crowd_size,
            "lone people": len(city.loners),
            "mixtures": len(plays),
        },
        hit=located[is_member],
        rarity=city.isolation[member],
        rarity_label="distance to others",
        labels=[f"lone person {each} in mixture {index}" for index, each in zip(mixture_index, member, strict=True)],
        draw=partial(draw_city_map, city=city, mixture=plays[0].mixture, is_member=is_member[0], is_located=located[0]),
    )


def _miss_distances(play: _MixturePlay, city: City) -> list[float]:
    """Return each lone person's distance to the nearest guess, in kilometres; infinity without a guess."""
    guesses = guess_places(play.mixture, play.planted, play.expected_rows)
    return [
        float(np.linalg.norm(each - place, axis=1).min()) if len(each) else float("inf")
        for each, place in zip(guesses, city.loners, strict=True)
    ]


ATTACK = Attack(
    function=lone_cluster,
    docs_page="clusters",
    summary="Infers whether a lone person is in the data, and where, from a Gaussian mixture fitted to all locations.",
    data=CITY,
    releases=RELEASES,
    own=user_mixture,
    play=_play,
    settings={
        "components": whole(1),
        "people": whole(1),
        "planted": optional(whole(0)),
        "radius": as_positive,
        "plays": optional(whole(2)),
    },
    default_delta="1e-6",
)
