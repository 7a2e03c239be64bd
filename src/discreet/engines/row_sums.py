"""How the rows of a fit are summed: where they are stored, or here, in batches of whole units."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from discreet.kernel.model_release import Batch, Combine, PartialSum, RowRule, SummableRows, noisy_sum
from discreet.kernel.numbers import Number
from discreet.kernel.reservation import Reservation

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


class RowSource(Protocol):
    """A source of rows that can be read several times."""

    @property
    def low(self) -> np.ndarray:
        """The declared lower bound of every column."""

    @property
    def high(self) -> np.ndarray:
        """The declared upper bound of every column."""

    @property
    def grouped(self) -> bool:
        """Whether a unit may have several rows; otherwise each row is its own unit."""

    def batches(self, size: int) -> Iterator[Batch]:
        """Yield rows, with ascending unit numbers if a unit may have several rows."""


@runtime_checkable
class RemoteRowSource(Protocol):
    """Rows that are summed where they are stored; only integers are returned."""

    def sum_units(self, part: PartialSum) -> np.ndarray:
        """Split the rows, clamped to the part's ranges, by whole units; return the sum of the part over all shares."""


def summable(rows: RowSource) -> SummableRows:
    """Return the rows of a source as the kernel sums them: where they are stored, or here."""

    def sum_here(part: PartialSum) -> np.ndarray:
        return part(whole_units(rows.batches(batch_rows(part))))

    return SummableRows(
        rows.low, rows.high, rows.grouped, rows.sum_units if isinstance(rows, RemoteRowSource) else sum_here
    )


@dataclass(frozen=True, eq=False)
class SumRequest:
    """One noisy sum that a model asks for: everything but the noise."""

    rows: RowSource
    rule: RowRule
    public: tuple[Any, ...]
    size: int
    radius: Number
    combine: Combine = Combine.MEAN
    blocks: tuple[int, ...] = ()

    def release(self, reservation: Reservation) -> np.ndarray:
        """Return the kernel's noisy sum, with the reservation's next noise."""
        return noisy_sum(
            summable(self.rows),
            self.rule,
            self.public,
            size=self.size,
            radius=self.radius,
            reservation=reservation,
            combine=self.combine,
            blocks=self.blocks,
        )


SumObserver = Callable[[SumRequest, Reservation], np.ndarray]
_OBSERVER: ContextVar[SumObserver | None] = ContextVar("observer of sums", default=None)


@contextmanager
def sums_observed_by(observer: SumObserver) -> Iterator[None]:
    """Let a function answer every noisy sum of the fits in this context, for audits: it observes or replays a fit."""
    token = _OBSERVER.set(observer)
    try:
        yield
    finally:
        _OBSERVER.reset(token)


def sum_rows(  # noqa: PLR0913 - as noisy_sum
    rows: RowSource,
    rule: RowRule,
    public: tuple[Any, ...],
    *,
    size: int,
    radius: Number,
    reservation: Reservation,
    combine: Combine = Combine.MEAN,
    blocks: tuple[int, ...] = (),
) -> np.ndarray:
    """Return the kernel's noisy sum over the rows of a source."""
    request = SumRequest(rows, rule, public, size, radius, combine, blocks)
    observer = _OBSERVER.get()
    return request.release(reservation) if observer is None else observer(request, reservation)
