"""A fit under way: the rows, the noise that was paid for, and how far it has come."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NoReturn, Protocol, TypeVar

import numpy as np

from discreet.kernel.event import OWNER
from discreet.kernel.exact import Number
from discreet.kernel.ledger import Ledger
from discreet.kernel.loss import Loss
from discreet.kernel.mechanism import Gaussian
from discreet.kernel.purse import STEPS, Noise, pay
from discreet.kernel.rowwise import Rule
from discreet.kernel.summing import Combine, Rows, noisy_histograms, noisy_sparse_sum, noisy_sum
from discreet.learn.losses import REMOVAL, FitLoss, noises_for, price_of, replaces
from discreet.learn.progress import Bar

E = TypeVar("E")
Public = tuple[Any, ...]


class Priced(Protocol):
    """The settings of every estimator that say what a fit may cost."""

    epsilon: Number
    delta: Number
    neighbours: str


@dataclass(frozen=True)
class Source:
    """Where a fit's rows come from, who pays, and in whose name."""

    rows: Rows
    unit: str = "row"
    ledger: Ledger | None = None
    by: str = OWNER
    question: str = ""


def check_neighbours(source: Source, neighbours: str) -> None:
    """Stop if a ledger, which counts what the removal of a unit tells, were charged for anything else."""
    if replaces(neighbours) and source.ledger is not None:
        raise ValueError("neighbours: a ledger counts what the removal of a unit tells; use 'removal' with it")


class Session:
    """What a model sees of the data: noisy sums of its rules, one after the other, as many as were paid for.

    >>> from discreet.learn.rows import array_rows
    >>> rows = array_rows(np.zeros((1000, 2)), (np.zeros(2), np.ones(2)))
    >>> session = begin(Source(rows), name="Example", epsilon=10, shares=[1])
    >>> total = session.sum(_ones, (), size=1, radius=1)
    >>> bool(abs(total[0] - 1000) < 10), session.loss
    (True, Loss(epsilon=10, rho=50, for the removal of one row))
    """

    def __init__(  # noqa: PLR0913, PLR0917 - what is bought, from whom, for what
        self,
        source: Source,
        noises: Sequence[Noise],
        price: Loss,
        name: str,
        neighbours: str,
        delta: Number = 0,
    ) -> None:
        check_neighbours(source, neighbours)
        self._rows = source.rows
        self._purse = pay(
            noises,
            price=price,
            ledger=source.ledger,
            question=source.question or name,
            by=source.by,
            replacing=replaces(neighbours),
        )
        self.loss = FitLoss(price, neighbours=neighbours, unit=source.unit, at=delta)
        self._bar = Bar(name, len(noises))

    def scale(self, radius: Number = 1) -> float:
        """Return the scale of the next draw's noise, for a sum of vectors of this radius."""
        return float(self._purse.next.scale / STEPS * Fraction(radius))

    def sd(self, radius: Number = 1) -> float:
        """Return the standard deviation of the next draw's noise."""
        spread = 1.0 if isinstance(self._purse.next, Gaussian) else 2**0.5
        return spread * self.scale(radius)

    @property
    def is_gaussian(self) -> bool:
        """Whether the next draw has Gaussian noise, and so vectors are kept in an l2 ball; else l1."""
        return isinstance(self._purse.next, Gaussian)

    def sum(
        self, rule: Rule, public: Public, *, size: int, radius: Number, combine: Combine = Combine.MEAN
    ) -> np.ndarray:
        """Return the noisy sum of what `rule(rows, public)` gives for each unit, kept within the radius."""
        with self._bar:
            return noisy_sum(self._rows, rule, public, size=size, radius=radius, purse=self._purse, combine=combine)

    def histogram(self, rule: Rule, public: Public, *, cells: int) -> np.ndarray:
        """Return the noisy number of units in each cell; a unit in several is spread over them."""
        return np.asarray(self.histograms(rule, public, tables=1, cells=cells)[0])

    def histograms(self, rule: Rule, public: Public, *, tables: int, cells: int) -> np.ndarray:
        """Return noisy numbers of units, tables × cells; `rule` gives a row's cell in each table."""
        with self._bar:
            return noisy_histograms(self._rows, rule, public, tables=tables, cells=cells, purse=self._purse)

    def sparse_sum(self, rule: Rule, public: Public, *, size: int, radius: Number) -> np.ndarray:
        """Return the noisy sum of long vectors, of which a row has a few numbers; a unit's rows are added up."""
        with self._bar:
            return noisy_sparse_sum(self._rows, rule, public, size=size, radius=radius, purse=self._purse)

    def stop(self, reason: str) -> NoReturn:
        """Give up on a fit for a reason that depends on released numbers alone: it is put on record as the result."""
        self._purse.settle(json.dumps({"stopped": reason}).encode())
        raise ValueError(reason)

    def finish(self, model: E) -> E:
        """Put what was learned on record, with its loss, and return the model."""
        self._purse.settle(json.dumps(learned(model), sort_keys=True, default=str).encode())
        model.loss_ = self.loss  # type: ignore[attr-defined]
        if self._purse.receipt is not None:
            model.receipt_ = self._purse.receipt.id  # type: ignore[attr-defined]
        return model


def begin(  # noqa: PLR0913 - what is learned from what, at which price
    source: Source,
    *,
    name: str,
    epsilon: Number,
    delta: Number = 0,
    shares: Sequence[Number],
    neighbours: str = REMOVAL,
) -> Session:
    """Pay for a fit whose price is divided over its draws in proportion to the shares."""
    price = price_of(epsilon, delta)
    return Session(source, noises_for(price, shares, neighbours), price, name, neighbours, delta)


def begin_fit(model: Priced, source: Source, shares: Sequence[Number]) -> Session:
    """Pay for a model's fit as its own settings say."""
    return begin(
        source,
        name=type(model).__name__,
        epsilon=model.epsilon,
        delta=model.delta,
        shares=shares,
        neighbours=model.neighbours,
    )


def learned(model: Any) -> dict[str, Any]:
    """Return what a fitted model shows, as plain data."""
    shown = {name: value for name, value in vars(model).items() if name.endswith("_") and name[0] != "_"}
    return {name: value.tolist() if hasattr(value, "tolist") else value for name, value in shown.items()}


def _ones(rows: np.ndarray, _: Public) -> np.ndarray:
    return np.ones((len(rows), 1))
