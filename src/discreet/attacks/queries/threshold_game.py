"""The threshold game: two neighbouring sets, one released mean, and a threshold between their means."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

import discreet as dc
from discreet.attacks.defences import CURATOR, EASY, NOTHING, OWN, Defence, DefenceChoice, parse_defence
from discreet.attacks.evidence import GuessEvidence
from discreet.attacks.registry import Attack
from discreet.attacks.result import AttackResult
from discreet.attacks.validation import finite_array, random_generator
from discreet.kernel.numbers import Number, as_integer
from discreet.plotting import BLUE, INK, ORANGE

_BIN_COUNT = 60


def draw_threshold_game(
    axes: Any, *, sets: "TwoSets", has_person: np.ndarray, released: np.ndarray, epsilon: Fraction | None
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


def _bin_edges(sets: "TwoSets", released: np.ndarray) -> np.ndarray:
    """Return bin edges that cover the middle 99 %, symmetric around the threshold, which is an edge."""
    typical_distance = np.quantile(np.abs(released - sets.threshold), 0.99)
    half_width = max(float(typical_distance), abs(sets.means[1] - sets.means[0]) * 1.5)
    return sets.threshold + np.linspace(-half_width, half_width, _BIN_COUNT + 1)


_EASY_FIX_EPSILON = Fraction(3)  # "a little noise": scale 1/(3n), which corresponds to epsilon 3
_SUMS_SQL = "SELECT game, SUM(value) AS total FROM data GROUP BY game ORDER BY game"


@dataclass(frozen=True)
class TwoSets:
    """Two sets of numbers from 0 to 1 that differ in one element; a coin decides whose mean is released.

    >>> sets = TwoSets(without=[0, 0, 0], with_one=[1, 0, 0])
    >>> sets.threshold
    0.16666666666666666
    """

    without: Any
    with_one: Any

    def __post_init__(self) -> None:
        for name in ("without", "with_one"):
            values = _float_array(getattr(self, name))
            if values.ndim != 1 or not values.size or not ((values >= 0) & (values <= 1)).all():
                raise ValueError(f"{name} must be a non-empty list of numbers from 0 to 1")
            object.__setattr__(self, name, values)
        if self.without.size != self.with_one.size or np.count_nonzero(self.without != self.with_one) != 1:
            raise ValueError("without and with_one must have the same size and differ in exactly one element")
        if self.means[0] > self.means[1]:
            raise ValueError("with_one must have the larger number where the two differ: swap them")

    @property
    def means(self) -> tuple[float, float]:
        """The two means."""
        return float(self.without.mean()), float(self.with_one.mean())

    @property
    def threshold(self) -> float:
        """The adversary's threshold: halfway between the means."""
        return sum(self.means) / 2


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
    sets = _default_sets() if data is None else _checked_sets(data)
    parsed_defence = parse_defence(defence, epsilon)
    rng = random_generator(random_state)
    has_person = rng.integers(0, 2, as_integer(plays, "plays", 2)).astype(bool)
    released = _released_means(parsed_defence, sets, has_person, rng)
    return AttackResult(
        attack="threshold_game",
        against=parsed_defence,
        metric="of guesses correct",
        # The guarantee is for adding or removing a row, and here a row is substituted. A sum of numbers from 0 to 1
        # changes by at most 1 in both cases, so epsilon also bounds this game.
        evidence=GuessEvidence(
            int((guess_by_threshold(released, sets.threshold) == has_person).sum()), len(has_person)
        ),
        details=_details(sets, has_person, released, _noise_epsilon(parsed_defence)),
        draw=partial(
            draw_threshold_game,
            sets=sets,
            has_person=has_person,
            released=released,
            epsilon=_noise_epsilon(parsed_defence),
        ),
    )


def guess_by_threshold(released: np.ndarray, threshold: float) -> np.ndarray:
    """Return the adversary's guesses: the set with the person if the mean exceeds the threshold.

    >>> guess_by_threshold(np.array([0.0, 0.01]), 0.005).tolist()
    [False, True]
    """
    return np.asarray(released > threshold)


def _float_array(values: Any) -> np.ndarray:
    """Return a float array, empty if the values are not numbers."""
    try:
        return np.array(values, float)
    except (TypeError, ValueError):
        return np.array([])


def _default_sets() -> TwoSets:
    return TwoSets(np.zeros(100), np.eye(1, 100)[0])


def _checked_sets(data: Any) -> TwoSets:
    if not isinstance(data, TwoSets):
        raise TypeError(f"data must be TwoSets(without, with_one), not {type(data).__name__}")
    return data


def _released_means(defence: Defence, sets: TwoSets, has_person: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return the released mean of each play."""
    if defence.kind == CURATOR:
        return _private_means(sets, has_person, defence.curator_epsilon)
    if defence.kind == OWN and defence.user_function is not None:
        return np.array(
            [_user_release(defence.user_function, sets.with_one if coin else sets.without) for coin in has_person],
            float,
        )
    exact = np.where(has_person, *sets.means[::-1])
    return (
        exact
        if defence.kind == NOTHING
        else exact + rng.laplace(0, _noise_scale(sets, _EASY_FIX_EPSILON), len(has_person))
    )


def _user_release(user_function: Callable[..., Any], values: np.ndarray) -> float:
    return float(finite_array(user_function(values.copy()), (), "the defence"))


def _private_means(sets: TwoSets, has_person: np.ndarray, epsilon: Fraction) -> np.ndarray:
    """Query all plays at once: each play has its own people, and so its own noise."""
    values = np.where(has_person[:, None], sets.with_one, sets.without)
    games = np.repeat(np.arange(len(has_person)), values.shape[1])
    table = pa.table({"game": games, "value": values.ravel()})
    columns = {"game": (0, len(has_person) - 1), "value": (0, 1)}
    with dc.open(table, unit="row", budget=epsilon, columns=columns, groups=1, rows=1, ledger=":memory:") as curator:
        answer = curator.ask(_SUMS_SQL, epsilon=epsilon)
    return np.asarray(answer.table["total"].to_numpy() / values.shape[1])  # n is public


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


ATTACK = Attack(
    run=threshold_game,
    docs_page="queries",
    summary="Guesses which of two neighbouring sets a mean was computed from.",
    without_defence="the exact mean",
    with_easy_fix="the mean with a little Laplace noise, of scale 1/(3n)",
    with_curator="a private sum, divided by n",
    built_in_data="100 zeros, and the same with a single 1: the lecture's S and S'",
)
