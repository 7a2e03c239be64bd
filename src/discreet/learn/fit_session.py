"""A fit in progress: its rows, the reserved budget, the noisy sums and a progress bar."""

import json
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NoReturn, Protocol, TypeVar

import numpy as np

from discreet.engines.row_sums import RowSource, sum_rows
from discreet.kernel.event import OWNER
from discreet.kernel.ledger import Ledger
from discreet.kernel.loss import Loss
from discreet.kernel.mechanism import Gaussian
from discreet.kernel.model_release import Combine, RowRule
from discreet.kernel.numbers import Number
from discreet.kernel.reservation import CLIP_RADIUS, Noise, reserve
from discreet.learn.fit_cost import REMOVAL, FitLoss, cost_of, is_substitution, noises_for
from discreet.progress import progress_bar

_MAX_VECTOR_SIZE = 1 << 18  # rounding so many numbers to the grid must not shrink a vector noticeably
_SHOW_AFTER_SECONDS = 1.0  # a shorter fit shows no progress bar


E = TypeVar("E")
PublicValues = tuple[Any, ...]


class PrivacyParameters(Protocol):
    """The privacy parameters of an estimator."""

    epsilon: Number
    delta: Number
    neighbours: str


@dataclass(frozen=True)
class FitSource:
    """The rows of a fit, the ledger to charge, and who asks."""

    rows: RowSource
    unit: str = "row"
    ledger: Ledger | None = None
    by: str = OWNER
    question: str = ""


def check_neighbours(source: FitSource, neighbours: str) -> None:
    """Raise ValueError if a ledger, which accounts for removal, would be charged for replacement."""
    if is_substitution(neighbours) and source.ledger is not None:
        raise ValueError(
            "neighbours: a ledger accounts for the removal of a unit; use neighbours='removal' with a ledger"
        )


class FitSession:
    """The noisy sums that a model may request, in the order in which their budget was reserved.

    >>> from discreet.learn.row_sources import array_rows
    >>> rows = array_rows(np.zeros((1000, 2)), (np.zeros(2), np.ones(2)))
    >>> session = open_session(FitSource(rows), name="Example", epsilon=10, shares=[1])
    >>> total = session.sum(_ones, (), size=1, radius=1)
    >>> bool(abs(total[0] - 1000) < 10), session.loss
    (True, Loss(epsilon=10, rho=50, for the removal of one row))
    """

    def __init__(  # noqa: PLR0913, PLR0917 - the data, the noise and its cost
        self,
        source: FitSource,
        noises: Sequence[Noise],
        cost: Loss,
        name: str,
        neighbours: str,
        delta: Number = 0,
    ) -> None:
        check_neighbours(source, neighbours)
        self._rows = source.rows
        self._reservation = reserve(
            noises,
            cost=cost,
            ledger=source.ledger,
            question=source.question or name,
            by=source.by,
            substitution=is_substitution(neighbours),
        )
        self.loss = FitLoss(cost, neighbours=neighbours, unit=source.unit, at_delta=delta)
        self._name, self._releases_done, self._releases = name, 0, len(noises)
        self._bar_from = time.monotonic() + _SHOW_AFTER_SECONDS

    def scale(self, radius: Number = 1) -> float:
        """Return the noise scale of the next release, for a sum of vectors clipped to this radius."""
        return float(self._reservation.next_noise.scale / CLIP_RADIUS * Fraction(radius))

    def sd(self, radius: Number = 1) -> float:
        """Return the noise standard deviation of the next release."""
        sd_per_scale = 1.0 if isinstance(self._reservation.next_noise, Gaussian) else 2**0.5
        return sd_per_scale * self.scale(radius)

    @property
    def is_gaussian(self) -> bool:
        """Whether the next release has Gaussian noise, with vectors clipped in l2, or Laplace noise and l1."""
        return isinstance(self._reservation.next_noise, Gaussian)

    def sum(
        self, rule: RowRule, public: PublicValues, *, size: int, radius: Number, combine: Combine = Combine.MEAN
    ) -> np.ndarray:
        """Return the noisy sum of `rule(rows, public)`, rows × size, over units, each clipped to the radius."""
        if size > _MAX_VECTOR_SIZE:
            raise ValueError(f"size must be at most {_MAX_VECTOR_SIZE}")
        return self._sum(rule, public, size=size, radius=radius, combine=combine)

    def histogram(self, rule: RowRule, public: PublicValues, *, cells: int) -> np.ndarray:
        """Return the noisy number of units per cell; a unit with rows in several cells is split over them."""
        return np.asarray(self.histograms(rule, public, tables=1, cells=cells)[0])

    def histograms(self, rule: RowRule, public: PublicValues, *, tables: int, cells: int) -> np.ndarray:
        """Return noisy numbers of units, tables × cells; `rule` returns a row's cell in each table.

        A cell outside of its table is not counted.
        """
        counts = self._sum(
            _cell_entries, (rule, tables, *public), size=tables * cells, radius=self.table_radius(tables)
        )
        return counts.reshape(tables, cells)

    def table_radius(self, tables: int) -> Fraction:
        """Return the radius at which a unit counts as one in each of so many tables of the next release."""
        # A unit has the same weight in every table, as many grid steps as the ball allows.
        weight = math.isqrt(CLIP_RADIUS**2 // tables) if self.is_gaussian else CLIP_RADIUS // tables
        return Fraction(CLIP_RADIUS, weight)

    def sparse_sum(  # noqa: PLR0913 - keyword-only
        self,
        rule: RowRule,
        public: PublicValues,
        *,
        size: int,
        radius: Number,
        combine: Combine = Combine.SUM,
        blocks: tuple[int, ...] = (),
    ) -> np.ndarray:
        """Return the noisy sum of sparse vectors; `rule` returns indices into blocks, by default equal, and numbers.

        The numbers of a unit's rows are added up or averaged, and its vector is clipped to the radius.
        """
        return self._sum(rule, public, size=size, radius=radius, combine=combine, blocks=blocks)

    def _sum(  # noqa: PLR0913 - keyword-only
        self,
        rule: RowRule,
        public: PublicValues,
        *,
        size: int,
        radius: Number,
        combine: Combine = Combine.MEAN,
        blocks: tuple[int, ...] = (),
    ) -> np.ndarray:
        with progress_bar(f"{self._name}: private sums", delay=self._bar_from - time.monotonic()) as show:
            show(self._releases_done, self._releases)
            self._releases_done += 1
            return sum_rows(
                self._rows,
                rule,
                public,
                size=size,
                radius=radius,
                reservation=self._reservation,
                combine=combine,
                blocks=blocks,
            )

    def stop(self, reason: str) -> NoReturn:
        """Abandon the fit for a reason that depends on released values only; the reason is recorded as the result."""
        self._reservation.settle(json.dumps({"stopped": reason}).encode())
        raise ValueError(reason)

    def finish(self, model: E) -> E:
        """Record the fitted attributes in the ledger, set `loss_` and `receipt_`, and return the model."""
        self._reservation.settle(json.dumps(fitted_attributes(model), sort_keys=True, default=str).encode())
        model.loss_ = self.loss  # type: ignore[attr-defined]
        if self._reservation.receipt is not None:
            model.receipt_ = self._reservation.receipt.id  # type: ignore[attr-defined]
        return model


def open_session(  # noqa: PLR0913 - the data and the privacy parameters
    source: FitSource,
    *,
    name: str,
    epsilon: Number,
    delta: Number = 0,
    shares: Sequence[Number],
    neighbours: str = REMOVAL,
) -> FitSession:
    """Reserve the budget of a fit, divided over its releases in proportion to the shares."""
    cost = cost_of(epsilon, delta)
    return FitSession(source, noises_for(cost, shares, neighbours), cost, name, neighbours, delta)


def open_model_session(model: PrivacyParameters, source: FitSource, shares: Sequence[Number]) -> FitSession:
    """Reserve the budget of a fit by the model's own privacy parameters."""
    return open_session(
        source,
        name=type(model).__name__,
        epsilon=model.epsilon,
        delta=model.delta,
        shares=shares,
        neighbours=model.neighbours,
    )


def fitted_attributes(model: Any) -> dict[str, Any]:
    """Return the fitted attributes of a model as plain data."""
    attributes = {name: value for name, value in vars(model).items() if name.endswith("_") and name[0] != "_"}
    return {name: _as_plain_data(value) for name, value in attributes.items()}


def _as_plain_data(value: Any) -> Any:
    if isinstance(value, list):
        return [_as_plain_data(item) for item in value]
    return value.tolist() if hasattr(value, "tolist") else value


def _ones(rows: np.ndarray, _: PublicValues) -> np.ndarray:
    return np.ones((len(rows), 1))


def _cell_entries(rows: np.ndarray, public: PublicValues) -> tuple[np.ndarray, np.ndarray]:
    """Return the cell of each row in each table, as given by another rule, with the number one."""
    rule, tables, *rule_public = public
    cells = np.reshape(rule(rows, tuple(rule_public)), (len(rows), tables))
    return cells, np.ones((len(rows), 1))
