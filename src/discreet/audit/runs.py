"""Run a mechanism many times on two data sets; an exception is an outcome, too."""

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

_MAX_COUNTED = 2000  # outputs, to find the most frequent


@dataclass(frozen=True)
class Batch:
    """A mechanism that performs many runs at once: `run(data, runs)` returns an array or list with one entry per run.

    Only the values of numbers count, not their types: an array has one type for all entries, which one NaN changes.

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
class ErrorOutcome:
    """The outcome of a run that raised an exception: its class name and its text. Your own events receive it, too.

    >>> ErrorOutcome("KeyError", "'income'").kind
    'KeyError'
    >>> print(ErrorOutcome("KeyError", "'income'"))
    raised KeyError: 'income'
    """

    kind: str
    text: str

    def __str__(self) -> str:
        return f"raised {self.kind}: {self.text}" if self.text else f"raised {self.kind}"


@dataclass(frozen=True)
class Runs:
    """The outputs on both data sets; `one_by_one` if they come from separate calls, so that their types count, too."""

    on_d: Any
    on_d2: Any
    one_by_one: bool

    def on_both(self) -> tuple[Any, Any]:
        """Return the outputs on D and on D2."""
        return self.on_d, self.on_d2


@dataclass(frozen=True)
class Outcomes:
    """Encoded runs on one data set: the kind of each output, its numbers, and a token for the whole output.

    `numbers` has one row for each run with `has_numbers`. The encoding of a run depends only on its own output.
    """

    kinds: np.ndarray
    kind_names: tuple[str, ...]
    has_numbers: np.ndarray
    numbers: np.ndarray
    tokens: Sequence[Hashable] | None

    def __len__(self) -> int:
        return len(self.kinds)

    def subset(self, start: int, stop: int | None = None) -> "Outcomes":
        """Return a range of the runs."""
        selection = slice(start, stop)
        offset, has_numbers = int(np.count_nonzero(self.has_numbers[:start])), self.has_numbers[selection]
        numbers = self.numbers[offset : offset + int(np.count_nonzero(has_numbers))]
        tokens = None if self.tokens is None else self.tokens[selection]
        return Outcomes(self.kinds[selection], self.kind_names, has_numbers, numbers, tokens)

    def most_frequent(self, mask: np.ndarray, limit: int = 3) -> list[Any]:
        """Return the most frequent outputs among the selected runs."""
        if self.tokens is None:
            rows = self.numbers[mask[self.has_numbers]][:_MAX_COUNTED].tolist()
            outputs: list[Any] = [row[0] if len(row) == 1 else tuple(row) for row in rows]
        else:
            outputs = [self.tokens[index] for index in np.flatnonzero(mask)[:_MAX_COUNTED]]
        return [output for output, _ in Counter(outputs).most_common(limit)]


def run_on_both(mechanism: Any, data: tuple[Any, Any], runs: int, rng: np.random.Generator) -> Runs:
    """Run a mechanism `runs` times on each of two data sets."""
    batch = _as_batch(mechanism)
    if batch is not None:
        here, there = (_check_batch_output(batch.run(dataset, runs), runs) for dataset in data)
        return Runs(here, there, one_by_one=False)
    outputs: tuple[list[Any], list[Any]] = [], []
    # In random order, so that a mechanism's state or drift over time does not distinguish the data sets.
    for side in rng.permutation(np.repeat([0, 1], runs)):
        outputs[side].append(_run_once(mechanism, data[side]))
    return Runs(*outputs, one_by_one=True)


def _as_batch(mechanism: Any) -> Batch | None:
    if isinstance(mechanism, Batch):
        return mechanism
    if isinstance(mechanism, type) and (hasattr(mechanism, "perturb") or hasattr(mechanism, "choose")):
        raise TypeError(f"mechanism must be an instance, such as {mechanism.__name__}(1), not the class itself")
    if hasattr(mechanism, "perturb"):
        return Batch(lambda data, runs: mechanism.perturb(_repeat_data(data, runs)))
    if hasattr(mechanism, "choose"):
        return Batch(lambda data, runs: np.array([mechanism.choose(data) for _ in range(runs)]))
    if callable(mechanism):
        return None
    raise TypeError(
        "mechanism must be a function from data to an output, a Batch, or an object with perturb or choose, "
        f"not {type(mechanism).__name__}"
    )


def _repeat_data(data: Any, runs: int) -> np.ndarray:
    values = np.asarray(data)
    return np.ascontiguousarray(np.broadcast_to(values, (runs, *values.shape)))


def _check_batch_output(outputs: Any, runs: int) -> Any:
    if not isinstance(outputs, np.ndarray | list | tuple) or (isinstance(outputs, np.ndarray) and not outputs.ndim):
        raise TypeError(f"a Batch must return an array or a list, not {type(outputs).__name__}")
    if len(outputs) != runs:
        raise ValueError(f"a Batch must return {runs} entries, one per run, not {len(outputs)}")
    return outputs


def _run_once(mechanism: Callable[[Any], Any], data: Any) -> Any:
    try:
        return mechanism(data)
    except Exception as error:  # noqa: BLE001 - an exception is an outcome and may distinguish the data sets
        return ErrorOutcome(type(error).__name__, str(error))


_MAX_ERROR_KINDS = 3


def describe_errors(runs: Runs) -> list[str]:
    """Describe the exceptions: class, an example of their text, and the numbers of runs on both data sets.

    >>> describe_errors(Runs([ErrorOutcome("KeyError", "'income'"), 1], [1, 2], one_by_one=True))
    ["raised KeyError: 'income' in 1 of 2 and 0 of 2 runs"]
    """
    errors = [_error_outcomes(side) for side in runs.on_both()]
    counts = [Counter(error.kind for error in side) for side in errors]
    descriptions = []
    for kind, _ in (counts[0] + counts[1]).most_common(_MAX_ERROR_KINDS):
        texts = list(dict.fromkeys(error.text for side in errors for error in side if error.kind == kind))
        more = f" (and {_other_count(len(texts) - 1, 'text')})" if len(texts) > 1 else ""
        counts_text = " and ".join(
            f"{count[kind]:,} of {len(side):,}" for count, side in zip(counts, runs.on_both(), strict=True)
        )
        descriptions.append(f"{_shorten_error(ErrorOutcome(kind, texts[0]))}{more} in {counts_text} runs")
    rest = len(counts[0] + counts[1]) - len(descriptions)
    return [*descriptions, f"raised errors of {_other_count(rest, 'kind')}"] if rest > 0 else descriptions


def all_failed(runs: Runs) -> bool:
    """Return whether every run on both data sets raised an exception."""
    return all(len(_error_outcomes(side)) == len(side) for side in runs.on_both())


def check_any_succeeded(runs: Runs) -> None:
    """Refuse to audit if every run failed."""
    if all_failed(runs):
        raise ValueError(
            f"mechanism: every run on both data sets {_shorten_error(runs.on_d[0])}. Nothing was audited. "
            "First make sure that a single call with D and with D2 works."
        )


def _error_outcomes(side: Any) -> list[ErrorOutcome]:
    if isinstance(side, np.ndarray) and side.dtype.kind != "O":
        return []  # arrays of numbers contain no exceptions
    return [output for output in side if isinstance(output, ErrorOutcome)]


def _shorten_error(error: ErrorOutcome) -> str:
    text = " ".join(str(error).split())
    return text if len(text) <= 120 else f"{text[:119]}…"


def _other_count(count: int, noun: str) -> str:
    return f"{count:,} other {noun}{'s' if count > 1 else ''}"
