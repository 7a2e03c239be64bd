"""How far a statistic really moves: by trying, not by deriving."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from discreet.audit.chances import generator
from discreet.audit.nearby import Neighbours, pairs_of
from discreet.kernel.exact import whole


@dataclass(frozen=True)
class Moved:
    """The farthest that neighbours were seen to move a statistic: in l1 and in l2, and which neighbours did it.

    >>> moved = sensitivity(len, [([1, 2], [1]), ([1], [])])
    >>> moved.l1, moved.pairs
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
    neighbours: Neighbours,
    *,
    tries: int = 10_000,
    random_state: int | None = None,
) -> Moved:
    """Return the farthest that a statistic, a function from data to numbers, moves between neighbours.

    `neighbours` are as for `search`: pairs, or functions that make pairs from a random generator, which are called in
    turns, `tries` times. A bound that was derived by hand and is below what is found here is wrong.

    >>> import numpy as np
    >>> def moments(rows):             # of rows within [-1, 1]; somebody derived sqrt(2): "z and z² are at most 1"
    ...     return len(rows), np.sum(rows), np.sum(np.square(rows))
    >>> def one_more(rng):
    ...     rows = rng.choice([-1.0, 0.0, 1.0], 5)
    ...     return rows, rows[1:]
    >>> round(sensitivity(moments, one_more, random_state=0).l2 ** 2, 9)
    3.0
    """
    rng = generator(random_state)
    if not callable(statistic):
        raise TypeError(f"statistic must be a function from data to numbers, not {type(statistic).__name__}")
    best: dict[int, tuple[float, tuple[Any, Any]]] = {}
    tried = 0
    for pair in islice(pairs_of(neighbours, rng), whole(tries, "tries", 1)):
        tried += 1
        here, there = (_numbers(statistic(data)) for data in pair)
        if here.shape != there.shape:
            raise ValueError(f"statistic: its size must not depend on the data, but was {here.size} and {there.size}")
        moved = here - there
        for order in (1, 2):
            size = float(np.linalg.norm(moved, order))
            size = math.inf if math.isnan(size) else size  # NaN is beyond every bound
            if order not in best or size > best[order][0]:
                best[order] = size, pair
    if not best:
        raise ValueError("neighbours must not be empty")
    return Moved(best[1][0], best[2][0], best[1][1], best[2][1], tried)


def _numbers(value: Any) -> np.ndarray:
    try:
        return np.ravel(np.asarray(value, np.float64))
    except (TypeError, ValueError):
        raise TypeError(f"statistic must return numbers, not {value!r:.40}") from None
