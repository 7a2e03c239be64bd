"""Answer and Explanation: the table, its margins of error, the clipping bias and the privacy cost."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]

from discreet.answer.frames import FrameKind, as_frame, as_pandas, as_polars
from discreet.answer.html import answer_html, explanation_html
from discreet.answer.plot import answer_figure
from discreet.answer.text import answer_text, explanation_text, is_reliable, short_number
from discreet.kernel.event import Receipt
from discreet.kernel.loss import Loss

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped, unused-ignore]
    import polars as pl
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Cost:
    """What a question costs; without a pure epsilon also the one that it alone has at the budget's delta.

    >>> print(Cost(Loss("1/10"), share=Fraction(1, 40)))
    epsilon 0.1 (rho 0.005), 2.5 % of the budget
    """

    loss: Loss
    epsilon: Fraction | None = None
    delta: Fraction = Fraction(0)
    share: Fraction | None = None

    def __str__(self) -> str:
        rho, delta_text = (
            short_number(self.loss.rho),
            f" and delta {short_number(self.loss.delta)}" if self.loss.delta else "",
        )
        if self.loss.epsilon is not None:
            text = f"epsilon {short_number(self.loss.epsilon)}{delta_text} (rho {rho})"
        elif self.epsilon is not None:
            text = f"epsilon {short_number(self.epsilon)} at delta {short_number(self.delta)} (rho {rho}{delta_text})"
        else:
            text = f"rho {rho}{delta_text}"
        return text if self.share is None else f"{text}, {short_number(100 * self.share, digits=3)} % of the budget"


@dataclass(frozen=True, repr=False, eq=False)
class Answer:
    """A private answer: a table, how far the noise can have moved its numbers, what was bounded, and the price.

    `margins` and `noise` name the noisy columns only. A margin holds at 95 %, for each number by itself; it is None
    where none is known. `cost` is what the numbers have cost; `paid` is what was charged this time, which is less, or
    nothing, if they were asked for before. `bounds` says what was bounded, `clipping` how many units that concerns.

    >>> answer = Answer(
    ...     pa.table({"city": ["Bonn", "Trier"], "n": [1731, 40]}),
    ...     margins={"n": [30, 30]},
    ...     noise={"n": "discrete Laplace, scale 10"},
    ...     cost=Cost(Loss("1/10"), share=Fraction(1, 40)),
    ...     receipt=Receipt("5e1f"),
    ... )
    >>> answer
    city            n
    Bonn   1,731 ± 30
    Trier    ~40 ± 30
    <BLANKLINE>
    ± is what the noise can have changed, at 95 %; ~ marks margins above a quarter.
    Price: epsilon 0.1 (rho 0.005), 2.5 % of the budget; ledger 5e1f.
    """

    table: pa.Table
    margins: dict[str, list[float | None]]
    noise: dict[str, str]
    cost: Cost
    receipt: Receipt
    bounds: tuple[str, ...] = ()
    clipping: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    frame_kind: FrameKind = FrameKind.ARROW
    paid: Loss | None = None

    def __post_init__(self) -> None:
        if self.paid is None:
            object.__setattr__(self, "paid", self.cost.loss)
        names, rows = self.table.column_names, self.table.num_rows
        if len(set(names)) != len(names):
            raise ValueError("table: two columns have the same name; give each its own alias")
        if not set(self.margins) <= set(names) or set(self.margins) != set(self.noise):
            raise ValueError("margins and noise must name the same columns of the table")
        margins = {name: _finite_or_none(column) for name, column in self.margins.items()}
        if any(len(column) != rows for column in margins.values()):
            raise ValueError(f"margins must have one entry for each of the {rows} rows")
        object.__setattr__(self, "margins", margins)

    @property
    def loss(self) -> Loss:
        """What this answer tells about one unit, at most."""
        return self.cost.loss

    @property
    def share(self) -> Fraction | None:
        """The part of the budget that it took, if known."""
        return self.cost.share

    @property
    def reliable(self) -> dict[str, list[bool | None]]:
        """Whether a margin is at most a quarter of its value; None without a value or a margin."""
        return {
            name: [
                is_reliable(value, margin)
                for value, margin in zip(self.table.column(name).to_pylist(), column, strict=True)
            ]
            for name, column in self.margins.items()
        }

    @property
    def value(self) -> Any:
        """The one number of an answer of one row and one column."""
        return self._single_cell().column(0)[0].as_py()

    @property
    def margin(self) -> float | None:
        """The margin of the one number of an answer of one row and one column."""
        return self.margins.get(self._single_cell().column_names[0], [None])[0]

    def _single_cell(self) -> pa.Table:
        if self.table.shape != (1, 1):
            rows, columns = self.table.shape
            raise ValueError(f"value and margin are for one row and one column; here are {rows} and {columns}")
        return self.table

    def to_arrow(self) -> pa.Table:
        """Return the table; its columns are those of the SELECT list."""
        return self.table

    @property
    def frame(self) -> Any:
        """The table as the curator got its own: of pandas or polars if it was opened with those, else of Arrow."""
        return as_frame(self.table, self.frame_kind)

    def with_frame_kind(self, frame_kind: FrameKind) -> Self:
        """Return the same answer with a frame of another kind."""
        return replace(self, frame_kind=frame_kind)

    def to_pandas(self) -> "pd.DataFrame":
        """Return a pandas frame; whole numbers and booleans have pandas' nullable types, so that NULL stays NULL."""
        return as_pandas(self.table)

    def to_polars(self) -> "pl.DataFrame":
        """Return a polars frame."""
        return as_polars(self.table)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Let every library that reads Arrow read the answer."""
        return self.table.__arrow_c_stream__(requested_schema)

    def with_margins(self) -> pa.Table:
        """Return the table with the margins of a noisy column n in a column n_margin after it."""
        columns: dict[str, Any] = {}
        for name in self.table.column_names:
            columns[name] = self.table.column(name)
            if name in self.margins:
                columns[_unused_name(f"{name}_margin", self.table.column_names)] = pa.array(
                    self.margins[name], pa.float64()
                )
        return pa.table(columns)

    def plot(self) -> "Figure":
        """Return a matplotlib figure: a line over times and numbers, else bars; with 95 % margins as error bars.

        A second key has the colours, each noisy column a panel. Of many groups the largest are drawn. A margin that is
        much wider than the others is cut with an arrow. NULL is a category of its own.
        """
        return answer_figure(self)

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return zip(*(column.to_pylist() for column in self.table.columns), strict=True)

    def __repr__(self) -> str:
        return answer_text(self)

    def _repr_html_(self) -> str:
        return answer_html(self)


@dataclass(frozen=True)
class ExplainedColumn:
    """What a noisy column would be: its noise, and its margin or what that depends on.

    >>> ExplainedColumn("n", noise="discrete Laplace, scale 10", margin=30).margin
    30
    """

    name: str
    noise: str
    margin: float | None = None
    margin_depends_on: str = ""


@dataclass(frozen=True, repr=False)
class Explanation:
    """What a question would cost and how exact it would be. Nothing of the data was read for it.

    >>> Explanation(
    ...     cost=Cost(Loss("1/10")),
    ...     columns=(ExplainedColumn("n", noise="discrete Laplace, scale 10", margin=30),),
    ...     groups="3 declared groups, all of them shown.",
    ... )
    Would cost epsilon 0.1 (rho 0.005). No data was read.
    <BLANKLINE>
    n: ± 30 at 95 %; discrete Laplace, scale 10.
    <BLANKLINE>
    3 declared groups, all of them shown.
    """

    cost: Cost
    columns: tuple[ExplainedColumn, ...]
    groups: str = ""
    bounds: tuple[str, ...] = ()
    sql: str = ""
    notes: tuple[str, ...] = ()
    paid: Loss | None = None

    def __post_init__(self) -> None:
        if self.paid is None:
            object.__setattr__(self, "paid", self.cost.loss)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON; exact numbers are texts such as 1/10."""
        loss, cost = self.cost.loss, self.cost
        epsilon = cost.epsilon if loss.epsilon is None else loss.epsilon
        return {
            "price": {
                "epsilon": _fraction_text(epsilon),
                "rho": str(loss.rho),
                "delta": str(loss.delta),
                "at_delta": str(cost.delta) if loss.epsilon is None else "0",
                "share": _fraction_text(cost.share),
            },
            "paid": _loss_to_dict(self.paid),
            "columns": [
                {
                    "name": column.name,
                    "noise": column.noise,
                    "margin": column.margin,
                    "depends": column.margin_depends_on,
                }
                for column in self.columns
            ],
            "groups": self.groups,
            "bounded": list(self.bounds),
            "sql": self.sql,
            "notes": list(self.notes),
        }

    def __repr__(self) -> str:
        return explanation_text(self)

    def _repr_html_(self) -> str:
        return explanation_html(self)


def _loss_to_dict(loss: Loss | None) -> dict[str, str | None]:
    return (
        {}
        if loss is None
        else {"epsilon": _fraction_text(loss.epsilon), "rho": str(loss.rho), "delta": str(loss.delta)}
    )


def _finite_or_none(margins: Any) -> list[float | None]:
    """Read margins from a list or an array; what is not finite is None."""
    numbers = np.asarray(margins, np.float64)
    return [
        number if is_finite else None for number, is_finite in zip(numbers.tolist(), np.isfinite(numbers), strict=True)
    ]


def _unused_name(name: str, taken: list[str]) -> str:
    candidates = (name if not i else f"{name}_{i}" for i in range(len(taken) + 1))
    return next(candidate for candidate in candidates if candidate not in taken)


def _fraction_text(number: Fraction | None) -> str | None:
    return None if number is None else str(number)
