"""Neighbouring data sets on which mechanisms fail, if they fail anywhere."""

from collections.abc import Callable, Iterable, Iterator
from itertools import cycle
from typing import Any

import numpy as np

from discreet.kernel.exact import whole

Pair = tuple[Any, Any]
Maker = Callable[[np.random.Generator], Pair]
Neighbours = Maker | Iterable[Pair | Maker]

_HUGE = 1e300
_WRONG = "neighbours must be a list of pairs (D, D2) or of functions that make them, not {}"


def pairs_of(neighbours: Any, rng: np.random.Generator) -> Iterator[Pair]:
    """Yield pairs: given ones once each, then those of makers in turns, for ever."""
    if not callable(neighbours) and (not isinstance(neighbours, Iterable) or isinstance(neighbours, str)):
        raise TypeError(_WRONG.format(type(neighbours).__name__))
    given: list[Any] = [neighbours] if callable(neighbours) else list(neighbours)
    makers = [each for each in given if callable(each)]
    for each in given:
        if not callable(each):
            if not isinstance(each, tuple) or len(each) != 2:
                raise TypeError(_WRONG.format(type(each).__name__))
            yield each
    for maker in cycle(makers):
        made = maker(rng)
        if not isinstance(made, tuple) or len(made) != 2:
            raise TypeError(f"neighbours: your function must return a pair (D, D2), not {type(made).__name__}")
        yield made


def nearby(low: float, high: float, *, rows: int = 10) -> list[Pair | Maker]:
    """Return neighbours of arrays of numbers within public bounds, the extreme ones first: the second lacks one row.

    Nobody and somebody; somebody at a bound, beyond it, at zero, huge, infinite or NaN, alone and among others, who
    are all the same, all at a bound, or random.

    >>> pairs = nearby(0, 10)
    >>> pairs[0]
    (array([0.]), array([], dtype=float64))
    """
    count = whole(rows, "rows", 1)
    if not low < high:
        raise ValueError(f"low must be below high, not {low} and {high}")
    middle = (low + high) / 2
    beyond = high + (high - low), low - (high - low)
    persons = [low, high, middle, 0.0, *beyond, _HUGE, -_HUGE, np.inf, -np.inf, np.nan, 5e-324]
    crowds = [[], [middle], [low] * count, [high] * count, [middle] * count, np.linspace(low, high, count).tolist()]
    found: list[Pair | Maker] = [
        (np.array([*crowd, person], float), np.array(crowd, float))
        for crowd in crowds
        for person in dict.fromkeys(map(float, persons))
    ]
    return [*found, *(_maker(person, (low, high), count) for person in (None, low, high, beyond[0], np.nan))]


def _maker(person: float | None, bounds: tuple[float, float], rows: int) -> Maker:
    def make(rng: np.random.Generator) -> Pair:
        crowd = rng.uniform(*bounds, rng.integers(0, rows + 1))
        own = rng.uniform(*bounds) if person is None else person
        return np.append(crowd, own), crowd

    return make
