"""What came out of many runs of a mechanism, whatever it was: numbers, texts, errors."""

import math
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

_NUMBERS = Real, Decimal, np.bool_
_LOOKED_AT = 1000  # outputs, to see how many numbers most have


@dataclass(frozen=True)
class Batch:
    """A mechanism that makes many runs at once: `run(data, runs)` returns an array or list with one entry for each.

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
    """The outcome of a run that ended in an error."""

    kind: str
    text: str


@dataclass(frozen=True)
class Outcomes:
    """Runs on one data set: of what kind each was, its numbers (NaN in the rows of other kinds), and what it was."""

    kinds: np.ndarray
    names: tuple[str, ...]
    numbers: np.ndarray
    tokens: Sequence[Hashable] | None

    def __len__(self) -> int:
        return len(self.kinds)

    def part(self, start: int, stop: int | None = None) -> "Outcomes":
        """Return some of the runs, as they came."""
        chosen = slice(start, stop)
        tokens = None if self.tokens is None else self.tokens[chosen]
        return Outcomes(self.kinds[chosen], self.names, self.numbers[chosen], tokens)


def run_both(
    mechanism: Any, data: tuple[Any, Any], runs: int, rng: np.random.Generator
) -> tuple[Outcomes, Outcomes, Any]:
    """Run a mechanism so often on each of two data sets; return both outcomes and all outputs as they were."""
    batch = _batch_of(mechanism)
    raw: list[Any]
    if batch is not None:
        raw = [_checked(batch.run(each, runs), runs) for each in data]
    else:
        raw = [[], []]
        # In a random order: what a mechanism remembers, or how warm the machine is, must not tell the data sets apart.
        for side in rng.permutation(np.repeat([0, 1], runs)):
            raw[side].append(_run(mechanism, data[side]))
    width = _width(raw)
    first, second = (read(each, width) for each in raw)
    return first, second, raw


def _batch_of(mechanism: Any) -> Batch | None:
    if isinstance(mechanism, Batch):
        return mechanism
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
    if not isinstance(raw, np.ndarray | list | tuple):
        raise TypeError(f"a Batch must return an array or a list, not {type(raw).__name__}")
    if len(raw) != runs:
        raise ValueError(f"a Batch must return one entry for each of the {runs} runs, not {len(raw)}")
    return raw


def _run(mechanism: Callable[[Any], Any], data: Any) -> Any:
    try:
        return mechanism(data)
    except Exception as error:  # noqa: BLE001 - to fail is an outcome as any other, and may tell the data sets apart
        return Raised(type(error).__name__, str(error))


def _is_table(raw: Any) -> bool:
    return isinstance(raw, np.ndarray) and raw.dtype.kind in "biuf"


def _width(raw: list[Any]) -> int:
    """Return how many numbers most outputs have."""
    found: Counter[int] = Counter()
    for each in raw:
        if _is_table(each):
            found[math.prod(each.shape[1:])] += len(each)
        else:
            found.update(len(row) for row in map(_row, each[:_LOOKED_AT]) if row is not None)
    return found.most_common(1)[0][0] if found else 0


def read(raw: Any, width: int) -> Outcomes:
    """Return outputs as outcomes with so many numbers each."""
    return _from_table(raw, width) if _is_table(raw) else _from_list(list(raw), width)


def _from_table(raw: np.ndarray, width: int) -> Outcomes:
    table = raw.reshape(len(raw), math.prod(raw.shape[1:]))
    table = table.astype(np.int64 if table.dtype.kind in "bi" else np.float64, copy=False)
    noun = _noun(raw.dtype.kind, table.shape[1], is_scalar=raw.ndim == 1)
    if table.shape[1] != width:
        return Outcomes(np.zeros(len(raw), np.int8), (noun,), np.full((len(raw), width), np.nan), None)
    if table.dtype.kind == "i":
        return Outcomes(np.zeros(len(raw), np.int8), (noun,), table, None)
    # 0 finite, 1 with an infinity, 2 with a NaN
    kinds = np.where(np.isnan(table).any(axis=1), 2, np.where(np.isinf(table).any(axis=1), 1, 0)).astype(np.int8)
    return Outcomes(kinds, (noun, f"{noun}, infinite", f"{noun}, NaN"), table, None)


def _from_list(raw: list[Any], width: int) -> Outcomes:
    rows = [_row(each) for each in raw]
    names = [_kind(each, row) for each, row in zip(raw, rows, strict=True)]
    known = {name: place for place, name in enumerate(dict.fromkeys(names))}
    kinds = np.array([known[name] for name in names], np.int32)
    lacking = (math.nan,) * width
    filled = [row if row is not None and len(row) == width else lacking for row in rows]
    return Outcomes(kinds, tuple(known), _table(filled, width), [_token(each) for each in raw])


def _table(rows: list[tuple[Any, ...]], width: int) -> np.ndarray:
    if not width:
        return np.empty((len(rows), 0))
    if all(isinstance(x, int | np.integer) and -(1 << 63) <= x < 1 << 63 for row in rows for x in row):
        return np.array(rows, np.int64)
    return np.array([[_float(x) for x in row] for row in rows], np.float64)


def _float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _row(output: Any) -> tuple[Any, ...] | None:
    """Return an output's numbers, or None if it has others things than numbers."""
    if isinstance(output, _NUMBERS):
        return (output,)
    if isinstance(output, np.ndarray) and output.dtype.kind in "biuf":
        return tuple(output.ravel().tolist())
    if isinstance(output, list | tuple) and output and all(isinstance(x, _NUMBERS) for x in output):
        return tuple(output)
    return None


def _kind(output: Any, row: tuple[Any, ...] | None) -> str:
    if isinstance(output, Raised):
        return f"raised {output.kind}"
    if row is None:
        return "nothing" if output is None else type(output).__name__
    is_scalar = isinstance(output, _NUMBERS)
    letter = "b" if isinstance(output, bool | np.bool_) else "i" if isinstance(output, int | np.integer) else "f"
    noun = _noun(letter, len(row), is_scalar=is_scalar)
    if any(x != x for x in row):  # noqa: PLR0124 - NaN of any type
        return f"{noun}, NaN"
    return f"{noun}, infinite" if any(math.isinf(_float(x)) for x in row) else noun


def _noun(letter: str, width: int, *, is_scalar: bool) -> str:
    if not is_scalar:
        return f"{width} numbers"
    return {"b": "a truth value", "i": "an integer", "u": "an integer"}.get(letter, "a number")


def _token(output: Any) -> Hashable:
    try:
        hash(output)
        is_nan = bool(output != output)  # noqa: PLR0124 - NaN is not equal to itself
    except (TypeError, ValueError):  # no hash, or no truth value
        return repr(output)
    return "NaN" if is_nan else output
