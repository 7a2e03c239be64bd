"""Batches of rows for the partial sums of models: whole units, of a fitting size."""

from collections.abc import Iterable, Iterator

import numpy as np

from discreet.kernel.model_release import Batch, PartialSum

_BATCH_NUMBERS = 1 << 18  # numbers per batch, so that they stay in the processor's cache
_MAX_BATCH_ROWS, _MIN_BATCH_ROWS = 1 << 16, 1 << 11  # for wide rows, some thousand rows are worth the memory


def batch_rows(part: PartialSum) -> int:
    """Return the number of rows per batch at which a part is computed fast, with little memory."""
    rows = max(_BATCH_NUMBERS // part.width, min(_MIN_BATCH_ROWS, 32 * _BATCH_NUMBERS // part.width))
    return max(1, min(_MAX_BATCH_ROWS, rows))


def whole_units(batches: Iterable[Batch]) -> Iterator[Batch]:
    """Yield the rows of some batches with every unit in one batch; the rows of a unit must be consecutive.

    >>> batches = [(np.zeros((2, 1)), np.array([1, 2])), (np.ones((2, 1)), np.array([2, 3]))]
    >>> [units.tolist() for _, units in whole_units(batches)]
    [[1], [2, 2], [3]]
    """
    pending: tuple[np.ndarray, np.ndarray] | None = None
    for rows, units in batches:
        if units is None:
            yield rows, None
        elif len(rows):
            if pending is not None:
                rows, units = np.concatenate([pending[0], rows]), np.concatenate([pending[1], units])  # noqa: PLW2901
            others = np.flatnonzero(units != units[-1])
            last = int(others[-1]) + 1 if len(others) else 0  # where the last unit starts
            if last:
                yield rows[:last], units[:last]
            pending = rows[last:], units[last:]  # may continue in the next batch
    if pending is not None:
        yield pending
