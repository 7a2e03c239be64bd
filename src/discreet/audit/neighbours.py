"""Edge cases of neighbouring data sets, and the largest change of a statistic between neighbours."""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import cycle, islice
from typing import Any

import numpy as np

from discreet.audit.arguments import random_generator
from discreet.kernel.numbers import as_integer

DatasetPair = tuple[Any, Any]
PairGenerator = Callable[[np.random.Generator], DatasetPair]
NeighbourSource = PairGenerator | Iterable[DatasetPair | PairGenerator]

_HUGE = 1e300
_BAD_NEIGHBOURS = "neighbours must be a list of pairs (D, D2) or of functions that return them, not {}"


def generate_pairs(neighbours: Any, rng: np.random.Generator) -> Iterator[DatasetPair]:
    """Yield the given pairs once each, then pairs from the functions in turn, without end."""
    if not callable(neighbours) and (not isinstance(neighbours, Iterable) or isinstance(neighbours, str)):
        raise TypeError(_BAD_NEIGHBOURS.format(type(neighbours).__name__))
    sources: list[Any] = [neighbours] if callable(neighbours) else list(neighbours)
    generators = [source for source in sources if callable(source)]
    for source in sources:
        if not callable(source):
            if not isinstance(source, tuple) or len(source) != 2:
                raise TypeError(_BAD_NEIGHBOURS.format(type(source).__name__))
            yield source
    for generator in cycle(generators):
        pair = generator(rng)
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise TypeError(f"neighbours: the function must return a pair (D, D2), not {type(pair).__name__}")
        yield pair


def edge_case_neighbours(low: float, high: float, *, rows: int = 10) -> list[DatasetPair | PairGenerator]:
    """Return pairs of arrays of numbers with public bounds, extreme ones first; the second array lacks the last row.

    That row is at a bound, beyond it, zero, huge, infinite or NaN, alone or among others, which are all equal, all at a
    bound, evenly spaced, or random.

    >>> pairs = edge_case_neighbours(0, 10)
    >>> pairs[0]
    (array([0.]), array([], dtype=float64))
    """
    count = as_integer(rows, "rows", 1)
    if not low < high:
        raise ValueError(f"low must be below high, not {low} and {high}")
    middle = (low + high) / 2
    beyond = high + (high - low), low - (high - low)
    persons = [low, high, middle, 0.0, *beyond, _HUGE, -_HUGE, np.inf, -np.inf, np.nan, 5e-324]
    crowds = [[], [middle], [low] * count, [high] * count, [middle] * count, np.linspace(low, high, count).tolist()]
    pairs: list[DatasetPair | PairGenerator] = [
        (np.array([*crowd, person], float), np.array(crowd, float))
        for crowd in crowds
        for person in dict.fromkeys(map(float, persons))
    ]
    return [*pairs, *(_random_pairs(person, (low, high), count) for person in (None, low, high, beyond[0], np.nan))]


def _random_pairs(person: float | None, bounds: tuple[float, float], rows: int) -> PairGenerator:
    def generate(rng: np.random.Generator) -> DatasetPair:
        crowd = rng.uniform(*bounds, rng.integers(0, rows + 1))
        value = rng.uniform(*bounds) if person is None else person
        return np.append(crowd, value), crowd

    return generate


@dataclass(frozen=True)
class EmpiricalSensitivity:
    """The largest observed changes of a statistic in l1 and in l2, and the neighbours that caused them.

    >>> difference = sensitivity(len, [([1, 2], [1]), ([1], [])])
    >>> difference.l1, difference.pairs
    (1.0, 2)
    """

    l1: float
    l2: float
    worst_l1: tuple[Any, Any]
    worst_l2: tuple[Any, Any]
    pairs: int

    def __str__(self) -> str:
        return f"l1 at least {self.l1:.6g}, l2 at least {self.l2:.6g} (tried {self.pairs:,} pairs)"


def sensitivity(
    statistic: Callable[[Any], Any],
    neighbours: NeighbourSource,
    *,
    tries: int = 10_000,
    random_state: int | None = None,
) -> EmpiricalSensitivity:
    """Return the largest change of a statistic, a function from data to numbers, between neighbours.

    `neighbours` are as for `search`: pairs, or functions that make pairs from a random generator, which are called in
    turn, `tries` times. A derived sensitivity bound that is below this result is wrong.

    >>> import numpy as np
    >>> def moments(rows):             # of rows within [-1, 1]; sqrt(2) would be wrong: the count changes as well
    ...     return len(rows), np.sum(rows), np.sum(np.square(rows))
    >>> def one_more(rng):
    ...     rows = rng.choice([-1.0, 0.0, 1.0], 5)
    ...     return rows, rows[1:]
    >>> round(sensitivity(moments, one_more, random_state=0).l2 ** 2, 9)
    3.0
    """
    rng = random_generator(random_state)
    if not callable(statistic):
        raise TypeError(f"statistic must be a function from data to numbers, not {type(statistic).__name__}")
    best: dict[int, tuple[float, tuple[Any, Any]]] = {}
    pair_count = 0
    for pair in islice(generate_pairs(neighbours, rng), as_integer(tries, "tries", 1)):
        pair_count += 1
        here, there = (_as_vector(statistic(data)) for data in pair)
        if here.shape != there.shape:
            raise ValueError(
                f"statistic: the number of values must not depend on the data; it was {here.size} and {there.size}"
            )
        difference = here - there
        for order in (1, 2):
            size = float(np.linalg.norm(difference, order))
            size = math.inf if math.isnan(size) else size  # NaN exceeds every bound
            if order not in best or size > best[order][0]:
                best[order] = size, pair
    if not best:
        raise ValueError("neighbours must not be empty")
    return EmpiricalSensitivity(best[1][0], best[2][0], best[1][1], best[2][1], pair_count)


def _as_vector(value: Any) -> np.ndarray:
    try:
        return np.ravel(np.asarray(value, np.float64))
    except (TypeError, ValueError):
        raise TypeError(f"statistic must return numbers, not {value!r:.40}") from None
