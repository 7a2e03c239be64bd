"""The threshold game: two neighbouring sets, one released mean, and a threshold between their means."""

import math
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from discreet.attacks.attack import (
    Attack,
    AttackResult,
    DefenceRelease,
    Game,
    GuessEvidence,
    Number,
    whole,
)
from discreet.attacks.data.numeric_data import TWO_SETS, TwoSets
from discreet.attacks.defences import CURATOR, EASY, NOTHING, Defence, DefenceChoice
from discreet.attacks.private_answers import ask_curator
from discreet.attacks.validation import finite_array
from discreet.plotting import BLUE, INK, ORANGE

_BIN_COUNT = 60
_EASY_FIX_EPSILON = Fraction(3)  # "a little noise": scale 1/(3n), which corresponds to epsilon 3
_SUMS_SQL = "SELECT game, SUM(value) AS total FROM data GROUP BY game ORDER BY game"


def threshold_game(
    data: TwoSets | None = None,
    *,
    defence: DefenceChoice = "nothing",
    epsilon: Number | None = None,
    random_state: int | None = None,
    plays: int = 2000,
) -> AttackResult:
    """Guess which of two neighbouring sets a mean was computed from, by comparing it with a threshold.

    `data` are `TwoSets` that differ in one person, by default 100 zeros and the same with a single 1. The release is
    the exact mean ("nothing"), the mean with Laplace noise of scale 1/(3n) ("easy"), or a private sum divided by n
    ("curator"). A function as defence gets the array of a set and returns one number.

    >>> threshold_game(random_state=0).success
    1.0
    >>> result = threshold_game(defence="easy", random_state=0)
    >>> result.success, str(result.implied)
    (0.8805, '2 (1.9 to 2.1)')
    """
    return ATTACK.run(data, defence, epsilon, random_state, plays=plays)


def _play(game: Game) -> AttackResult:
    sets, noise_epsilon = game.data, _noise_epsilon(game.defence)
    has_person = game.rng.integers(0, 2, game.settings.plays).astype(bool)
    released = game.release(has_person)
    is_right = guess_by_threshold(released, sets.threshold) == has_person
    return game.result(
        "of guesses correct",
        # The guarantee is for adding or removing a row, and here a row is substituted. A sum of numbers from 0 to 1
        # changes by at most 1 in both cases, so epsilon also bounds this game.
        GuessEvidence(int(is_right.sum()), is_right.size),
        _details(sets, has_person, released, noise_epsilon),
        draw=partial(draw_threshold_game, sets=sets, has_person=has_person, released=released, epsilon=noise_epsilon),
    )


def guess_by_threshold(released: np.ndarray, threshold: float) -> np.ndarray:
    """Return the adversary's guesses: the set with the person if the mean exceeds the threshold.

    >>> guess_by_threshold(np.array([0.0, 0.01]), 0.005).tolist()
    [False, True]
    """
    return np.asarray(released > threshold)


def _exact_means(game: Game, has_person: np.ndarray) -> np.ndarray:
    return np.asarray(np.where(has_person, *game.data.means[::-1]))


def _noisy_means(game: Game, has_person: np.ndarray) -> np.ndarray:
    noise = game.rng.laplace(0, _noise_scale(game.data, _EASY_FIX_EPSILON), len(has_person))
    return np.asarray(_exact_means(game, has_person) + noise)


def _private_means(game: Game, has_person: np.ndarray) -> np.ndarray:
    """Query all plays at once: each play has its own people, and so its own noise."""
    values = np.where(has_person[:, None], game.data.with_one, game.data.without)
    games = np.repeat(np.arange(len(has_person)), values.shape[1])
    table = pa.table({"game": games, "value": values.ravel()})
    answer = ask_curator(table, _SUMS_SQL, game.epsilon, {"game": (0, len(has_person) - 1), "value": (0, 1)})
    return np.asarray(answer["total"].to_numpy() / values.shape[1])  # n is public


def _user_means(game: Game, has_person: np.ndarray) -> np.ndarray:
    played = (game.data.with_one if coin else game.data.without for coin in has_person)
    return np.array([float(finite_array(game.ask_user(values.copy()), (), "the defence")) for values in played])


def _noise_epsilon(defence: Defence) -> Fraction | None:
    """Return the epsilon of the noise, if its distribution is known."""
    return {NOTHING: None, EASY: _EASY_FIX_EPSILON, CURATOR: defence.epsilon}.get(defence.kind)


def _noise_scale(sets: TwoSets, epsilon: Fraction) -> float:
    return 1 / (len(sets.without) * float(epsilon))


def _details(sets: TwoSets, has_person: np.ndarray, released: np.ndarray, epsilon: Fraction | None) -> dict[str, Any]:
    is_above = guess_by_threshold(released, sets.threshold)
    details: dict[str, Any] = {"threshold T": sets.threshold}
    for name, is_play in (("without the person", ~has_person), ("with the person", has_person)):
        details[f"above T {name}, observed"] = float(is_above[is_play].mean()) if is_play.any() else None
    if epsilon is not None:
        width = _noise_scale(sets, epsilon)
        tails = [_log_laplace_tail((sets.threshold - mean) / width) for mean in sets.means]
        details["above T without the person, in theory"], details["above T with the person, in theory"] = map(
            math.exp, tails
        )
        details["log-ratio at T, a lower bound on epsilon"] = max(tails) - min(tails)
        details["scale of the noise"] = width
    return details


def _log_laplace_tail(z: float) -> float:
    """Return the log-probability that Laplace noise of scale 1 exceeds z, without underflow."""
    return -math.log(2) - z if z >= 0 else math.log1p(-0.5 * math.exp(z))


def draw_threshold_game(
    axes: Any, *, sets: TwoSets, has_person: np.ndarray, released: np.ndarray, epsilon: Fraction | None
) -> None:
    """Draw the released means of both sets, the noise densities if known, and the threshold."""
    edges = _bin_edges(sets, released)
    both = (
        (~has_person, sets.means[0], BLUE, "without the person"),
        (has_person, sets.means[1], ORANGE, "with the person"),
    )
    for is_play, mean, colour, label in both:
        axes.hist(released[is_play], edges, density=True, color=colour, alpha=0.25, label=f"{label}, observed")
        if epsilon is not None:
            width = 1 / (sets.without.size * float(epsilon))
            grid = np.linspace(edges[0], edges[-1], 801)
            axes.plot(
                grid, np.exp(-np.abs(grid - mean) / width) / (2 * width), color=colour, label=f"{label}, in theory"
            )
    axes.axvline(sets.threshold, color=INK, ls="--", lw=1, label=f"threshold {sets.threshold:.3g}")
    axes.set(xlabel="released mean", ylabel="density", yticks=[], xlim=(edges[0], edges[-1]))


def _bin_edges(sets: TwoSets, released: np.ndarray) -> np.ndarray:
    """Return bin edges that cover the middle 99 %, symmetric around the threshold, which is an edge."""
    typical_distance = np.quantile(np.abs(released - sets.threshold), 0.99)
    half_width = max(float(typical_distance), abs(sets.means[1] - sets.means[0]) * 1.5)
    return sets.threshold + np.linspace(-half_width, half_width, _BIN_COUNT + 1)


ATTACK = Attack(
    function=threshold_game,
    docs_page="queries",
    summary="Guesses which of two neighbouring sets a mean was computed from.",
    data=TWO_SETS,
    releases={
        NOTHING: DefenceRelease("the exact mean", _exact_means),
        EASY: DefenceRelease("the mean with a little Laplace noise, of scale 1/(3n)", _noisy_means),
        CURATOR: DefenceRelease("a private sum, divided by n", _private_means),
    },
    own=_user_means,
    play=_play,
    settings={"plays": whole(2)},
)
