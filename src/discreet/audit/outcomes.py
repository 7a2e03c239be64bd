"""What came out of many runs of a mechanism, whatever it was: numbers, texts, errors."""

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

_COUNTED = 2000  # outputs, to see which are frequent


@dataclass(frozen=True)
class Batch:
    """A mechanism that makes many runs at once: `run(data, runs)` returns an array or list with one entry for each.

    Only the values of its numbers count, not their types: an array has one type for all, which one NaN changes.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> noisy = Batch(lambda data, runs: sum(data) + rng.laplace(0, 1, runs))
    >>> noisy.run([1, 2], 3).shape
    (3,)
    """

    run: Callable[[Any, int], Any]

    def __post_init__(self) -> None:
        if not callable(self.run):
            raise TypeError(f"run must be a function of the data and the number of runs, not {self.run!r:.40}")


@dataclass(frozen=True)
class Raised:
    """The outcome of a run that ended in an error: its `kind` and its `text`. Events of your own are given it, too.

    >>> Raised("KeyError", "'income'").kind
    'KeyError'
    >>> print(Raised("KeyError", "'income'"))
    raised KeyError: 'income'
    """

    kind: str
    text: str

    def __str__(self) -> str:
        return f"raised {self.kind}: {self.text}" if self.text else f"raised {self.kind}"


@dataclass(frozen=True)
class Runs:
    """The outputs on both data sets as they came; `alone` if each was made by itself, so that its type tells too."""

    here: Any
    there: Any
    alone: bool

    def sides(self) -> tuple[Any, Any]:
        """Return the outputs on the one data set and on the other."""
        return self.here, self.there


@dataclass(frozen=True)
class Outcomes:
    """Runs on one data set: of what kind each was, and what it was.

    `numbers` has one row for each run that `has` some. What is said of a run depends on its own output alone.
    """

    kinds: np.ndarray
    names: tuple[str, ...]
    has: np.ndarray
    numbers: np.ndarray
    tokens: Sequence[Hashable] | None

    def __len__(self) -> int:
        return len(self.kinds)

    def part(self, start: int, stop: int | None = None) -> "Outcomes":
        """Return some of the runs, as they came."""
        chosen = slice(start, stop)
        before, has = int(np.count_nonzero(self.has[:start])), self.has[chosen]
        numbers = self.numbers[before : before + int(np.count_nonzero(has))]
        tokens = None if self.tokens is None else self.tokens[chosen]
        return Outcomes(self.kinds[chosen], self.names, has, numbers, tokens)

    def frequent(self, chosen: np.ndarray, most: int = 3) -> list[Any]:
        """Return the most frequent outputs among the chosen runs."""
        if self.tokens is None:
            rows = self.numbers[chosen[self.has]][:_COUNTED].tolist()
            found: list[Any] = [row[0] if len(row) == 1 else tuple(row) for row in rows]
        else:
            found = [self.tokens[place] for place in np.flatnonzero(chosen)[:_COUNTED]]
        return [output for output, _ in Counter(found).most_common(most)]


def run_both(mechanism: Any, data: tuple[Any, Any], runs: int, rng: np.random.Generator) -> Runs:
    """Run a mechanism so often on each of two data sets."""
    batch = _batch_of(mechanism)
    if batch is not None:
        here, there = (_checked(batch.run(each, runs), runs) for each in data)
        return Runs(here, there, alone=False)
    found: tuple[list[Any], list[Any]] = [], []
    # In a random order: what a mechanism remembers, or how warm the machine is, must not tell the data sets apart.
    for side in rng.permutation(np.repeat([0, 1], runs)):
        found[side].append(_run(mechanism, data[side]))
    return Runs(*found, alone=True)


def _batch_of(mechanism: Any) -> Batch | None:
    if isinstance(mechanism, Batch):
        return mechanism
    if isinstance(mechanism, type) and (hasattr(mechanism, "perturb") or hasattr(mechanism, "choose")):
        raise TypeError(
            f"mechanism must be an object of the class, such as {mechanism.__name__}(1), not the class itself"
        )
    if hasattr(mechanism, "perturb"):
        return Batch(lambda data, runs: mechanism.perturb(_repeated(data, runs)))
    if hasattr(mechanism, "choose"):
        return Batch(lambda data, runs: np.array([mechanism.choose(data) for _ in range(runs)]))
    if callable(mechanism):
        return None
    raise TypeError(
        "mechanism must be a function from data to an output, a Batch, or an object with perturb or choose, "
        f"not {type(mechanism).__name__}"
    )


def _repeated(data: Any, runs: int) -> np.ndarray:
    values = np.asarray(data)
    return np.ascontiguousarray(np.broadcast_to(values, (runs, *values.shape)))


def _checked(raw: Any, runs: int) -> Any:
    if not isinstance(raw, np.ndarray | list | tuple) or (isinstance(raw, np.ndarray) and not raw.ndim):
        raise TypeError(f"a Batch must return an array or a list, not {type(raw).__name__}")
    if len(raw) != runs:
        raise ValueError(f"a Batch must return one entry for each of the {runs} runs, not {len(raw)}")
    return raw


def _run(mechanism: Callable[[Any], Any], data: Any) -> Any:
    try:
        return mechanism(data)
    except Exception as error:  # noqa: BLE001 - to fail is an outcome as any other, and may tell the data sets apart
        return Raised(type(error).__name__, str(error))
