"""The threshold game: two sets that differ in one person, one mean, and a threshold between the two."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

import discreet as dc
from discreet.attacks.checking import generator, numbers
from discreet.attacks.defences import CURATOR, EASY, NOTHING, OWN, Defence, Shield, shield
from discreet.attacks.evidence import Guesses
from discreet.attacks.listing import Attack
from discreet.attacks.queries.threshold_drawing import draw_game
from discreet.attacks.result import AttackResult
from discreet.kernel.exact import Number, whole

_EASY = Fraction(3)  # "a little noise": of width 1/(3n), which is epsilon 3
_SUMS = "SELECT game, SUM(value) AS total FROM data GROUP BY game ORDER BY game"


@dataclass(frozen=True)
class TwoSets:
    """Two sets of numbers from 0 to 1 that differ in one place: a coin decides whose mean is released.

    >>> sets = TwoSets(without=[0, 0, 0], with_one=[1, 0, 0])
    >>> sets.threshold
    0.16666666666666666
    """

    without: Any
    with_one: Any

    def __post_init__(self) -> None:
        for name in ("without", "with_one"):
            values = _array(getattr(self, name))
            if values.ndim != 1 or not values.size or not ((values >= 0) & (values <= 1)).all():
                raise ValueError(f"{name} must be a list of numbers from 0 to 1, and have at least one")
            object.__setattr__(self, name, values)
        if self.without.size != self.with_one.size or np.count_nonzero(self.without != self.with_one) != 1:
            raise ValueError("without and with_one must be of one size and differ in exactly one place")
        if self.means[0] > self.means[1]:
            raise ValueError("with_one must have the larger number where the two differ: name them the other way round")

    @property
    def means(self) -> tuple[float, float]:
        """The two means."""
        return float(self.without.mean()), float(self.with_one.mean())

    @property
    def threshold(self) -> float:
        """The threshold that the adversary picks: halfway between the means."""
        return sum(self.means) / 2


def threshold_game(
    data: TwoSets | None = None,
    *,
    defence: Defence = "nothing",
    epsilon: Number | None = None,
    random_state: int | None = None,
    plays: int = 2000,
) -> AttackResult:
    """Guess which of two sets a mean was computed from, by whether it lies above a threshold.

    `data` are two sets that differ in one person, 100 zeros and the same with a 1 unless given. Released are the exact
    mean ("nothing"), the mean with Laplace noise of width 1/(3n) ("easy"), a private sum over n ("curator"), or what a
    function of yours makes of the array of a set's numbers: one number.

    >>> threshold_game(random_state=0).success
    1.0
    >>> result = threshold_game(defence="easy", random_state=0)
    >>> result.success, str(result.implied)
    (0.8805, '2 (1.9 to 2.1)')
    """
    sets = _default() if data is None else _checked(data)
    protected = shield(defence, epsilon)
    rng = generator(random_state)
    coins = rng.integers(0, 2, whole(plays, "plays", 2)).astype(bool)
    seen = _release(protected, sets, coins, rng)
    return AttackResult(
        attack="threshold_game",
        shield=protected,
        metric="of the guesses were right",
        # The promise is for the removal of a row, and here a row is replaced. But a sum of numbers from 0 to 1 moves by
        # at most 1 in both cases, so epsilon bounds this game, too.
        evidence=Guesses(int((above(seen, sets.threshold) == coins).sum()), len(coins)),
        details=_details(sets, coins, seen, _scale(protected)),
        draw=partial(draw_game, sets=sets, coins=coins, seen=seen, scale=_scale(protected)),
    )


def above(seen: np.ndarray, threshold: float) -> np.ndarray:
    """Return the adversary's guesses: the set with the person, wherever the mean lies above the threshold.

    >>> above(np.array([0.0, 0.01]), 0.005).tolist()
    [False, True]
    """
    return np.asarray(seen > threshold)


def _array(values: Any) -> np.ndarray:
    """Return numbers as an array; what has no numbers is an array of nothing."""
    try:
        return np.array(values, float)
    except (TypeError, ValueError):
        return np.array([])


def _default() -> TwoSets:
    return TwoSets(np.zeros(100), np.eye(1, 100)[0])


def _checked(data: Any) -> TwoSets:
    if not isinstance(data, TwoSets):
        raise TypeError(f"data must be TwoSets(without, with_one), not {type(data).__name__}")
    return data


def _release(protected: Shield, sets: TwoSets, coins: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return what the outsider sees in each play."""
    if protected.word == CURATOR:
        return _private_means(sets, coins, protected.price)
    if protected.word == OWN and protected.make is not None:
        return np.array([_own(protected.make, sets.with_one if coin else sets.without) for coin in coins], float)
    exact = np.where(coins, *sets.means[::-1])
    return exact if protected.word == NOTHING else exact + rng.laplace(0, _width(sets, _EASY), len(coins))


def _own(make: Callable[..., Any], values: np.ndarray) -> float:
    return float(numbers(make(values.copy()), (), "the defence"))


def _private_means(sets: TwoSets, coins: np.ndarray, epsilon: Fraction) -> np.ndarray:
    """Ask the curator for all plays at once: each has people, and so noise, of its own."""
    values = np.where(coins[:, None], sets.with_one, sets.without)
    games = np.repeat(np.arange(len(coins)), values.shape[1])
    table = pa.table({"game": games, "value": values.ravel()})
    columns = {"game": (0, len(coins) - 1), "value": (0, 1)}
    with dc.open(table, unit="row", budget=epsilon, columns=columns, groups=1, rows=1, ledger=":memory:") as curator:
        answer = curator.ask(_SUMS, epsilon=epsilon)
    return np.asarray(answer.table["total"].to_numpy() / values.shape[1])  # how many there are is public


def _scale(protected: Shield) -> Fraction | None:
    """Return the epsilon of the noise, if its law is known."""
    return {NOTHING: None, EASY: _EASY, CURATOR: protected.epsilon}.get(protected.word)


def _width(sets: TwoSets, epsilon: Fraction) -> float:
    return 1 / (len(sets.without) * float(epsilon))


def _details(sets: TwoSets, coins: np.ndarray, seen: np.ndarray, epsilon: Fraction | None) -> dict[str, Any]:
    over = above(seen, sets.threshold)
    told: dict[str, Any] = {"threshold T": sets.threshold}
    for name, played in (("without the person", ~coins), ("with the person", coins)):
        told[f"above T {name}, seen"] = float(over[played].mean()) if played.any() else None
    if epsilon is not None:
        width = _width(sets, epsilon)
        tails = [_log_tail((sets.threshold - mean) / width) for mean in sets.means]
        told["above T without the person, by the law"], told["above T with the person, by the law"] = map(
            math.exp, tails
        )
        told["log-ratio at T, which epsilon is at least"] = max(tails) - min(tails)
        told["width of the noise"] = width
    return told


def _log_tail(z: float) -> float:
    """Return the logarithm of the chance that Laplace noise of width 1 exceeds z; the chance may be as good as 0."""
    return -math.log(2) - z if z >= 0 else math.log1p(-0.5 * math.exp(z))


ATTACK = Attack(
    run=threshold_game,
    topic="queries",
    says="Guesses which of two sets that differ in one person a mean was computed from.",
    nothing="the exact mean",
    easy="the mean with a little noise, of width 1/(3n)",
    curator="a private sum, divided by n",
    built_in="100 zeros, and the same with one 1: the lecture's S and S'",
)
