"""Answer and Explanation: the table, its margins of error, the clipping bias and the privacy cost."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]

from discreet.answer.bias import Bias
from discreet.answer.frames import FrameKind, as_frame, as_pandas, as_polars
from discreet.answer.html import answer_html, explanation_html
from discreet.answer.margins import CellDifference, cell_difference
from discreet.answer.plot import answer_figure
from discreet.answer.text import answer_text, details_text, explanation_text, is_reliable, short_number
from discreet.kernel.event import Receipt
from discreet.kernel.loss import ZERO_LOSS, Loss

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped, unused-ignore]
    import polars as pl
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Cost:
    """The privacy cost of an answer, and its share of the budget of the analyst who asks.

    In a budget with a delta the loss is a rho; `epsilon` is what that rho alone amounts to at `delta`.

    >>> print(Cost(Loss("1/10"), share=Fraction(1, 40)))
    epsilon 0.1 (2.5 % of the budget)
    """

    loss: Loss
    epsilon: Fraction | None = None
    delta: Fraction = Fraction(0)
    share: Fraction | None = None

    def __str__(self) -> str:
        if self.loss == ZERO_LOSS:
            return "none (no private data was read)"
        own_delta = f" plus delta {short_number(self.loss.delta)} for partition selection" if self.loss.delta else ""
        if self.loss.epsilon is not None:
            text = f"epsilon {short_number(self.loss.epsilon)}{own_delta}"
        elif self.epsilon is not None:
            text = f"epsilon {short_number(self.epsilon)} at delta {short_number(self.delta)}{own_delta}"
        else:
            text = f"rho {short_number(self.loss.rho)}{own_delta}"
        if self.share is None:
            return text
        whole = "the budget's rho" if self.share_of == "rho" else "the budget"
        return f"{text} ({short_number(100 * self.share, digits=3)} % of {whole})"

    @property
    def share_of(self) -> str | None:
        """The number of the budget that `share` is a share of, in which costs add up: "epsilon" or "rho"."""
        if self.share is None:
            return None
        return "epsilon" if self.epsilon is None else "rho"


@dataclass(frozen=True, repr=False, eq=False)
class Answer:
    """A private answer: a table, the margin of error of every noisy number, and the privacy cost.

    `margins` and `noise` have an entry for each noisy column. A margin is the 95 % margin of error from privacy noise
    of one number; None if it is unknown. `cost` is the cost of the answer; `paid` is what was charged now: less, or
    nothing, if earlier answers were reused. `remaining` is the epsilon that the analyst can still spend. `bias` has an
    entry for each noisy column that clipping may make too low: the bias of each number, None where clipping cannot
    matter. `left_out` says which rows and groups may be missing (not whether there are any), `clipping` states the bias
    and automatic bounds as text, `bounds` lists the contribution bounds; `details()` has all of it. `origin`
    names the published table that the answer is computed from, if it is free for that reason. The answer to a query
    that reads no private data has no noisy column, costs nothing and has no `receipt`.

    If the policy declares a sample, `noise_margins` and `sampling_margins` have the parts of each margin; a part from
    sampling is None if it is unknown, and the margin is that of the noise alone. The sampling errors of the rows of a
    column in `uncorrelated_sampling` are uncorrelated. Noise is independent in every row, except in the columns of
    `correlated_noise`, which combine rows or tables.

    >>> answer = Answer(
    ...     pa.table({"city": ["Bonn", "Trier"], "n": [1731, 40]}),
    ...     margins={"n": [30, 30]},
    ...     noise={"n": "discrete Laplace, scale 10"},
    ...     cost=Cost(Loss("1/10"), share=Fraction(1, 40)),
    ...     receipt=Receipt("5e1f"),
    ...     remaining=Fraction(39, 10),
    ... )
    >>> answer
    city            n
    Bonn   1,731 ± 30
    Trier    ~40 ± 30
    <BLANKLINE>
    ± is the 95 % margin of error from privacy noise; ~ unreliable: the margin
    exceeds 25 % of the value.
    Cost: epsilon 0.1 (2.5 % of the budget); epsilon 3.9 remains.
    >>> print(answer.details())
    Noise of n: discrete Laplace, scale 10.
    Privacy cost: epsilon 0.1, rho 0.005. Ledger entry: 5e1f.
    """

    table: pa.Table
    margins: dict[str, list[float | None]]
    noise: dict[str, str]
    cost: Cost
    receipt: Receipt | None
    bounds: tuple[str, ...] = ()
    bias: dict[str, list[Bias | None]] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()
    clipping: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    origin: str = ""
    frame_kind: FrameKind = FrameKind.ARROW
    paid: Loss | None = None
    remaining: Fraction | None = None
    noise_margins: dict[str, list[float | None]] = field(default_factory=dict)
    sampling_margins: dict[str, list[float | None]] = field(default_factory=dict)
    uncorrelated_sampling: frozenset[str] = frozenset()
    correlated_noise: frozenset[str] = frozenset()

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
        if not set(self.bias) <= set(margins) or any(len(column) != rows for column in self.bias.values()):
            raise ValueError(f"bias must name noisy columns, with one entry for each of the {rows} rows")
        if self.sampling_margins.keys() != self.noise_margins.keys() or not self.noise_margins.keys() <= set(margins):
            raise ValueError("noise_margins and sampling_margins must name the same noisy columns")

    @property
    def loss(self) -> Loss:
        """The privacy loss of this answer."""
        return self.cost.loss

    @property
    def share(self) -> Fraction | None:
        """The share of the analyst's budget, if it is known."""
        return self.cost.share

    @property
    def reliable(self) -> dict[str, list[bool | None]]:
        """Whether margin and clipping bias are at most 25 % of each value; None without a value or a margin."""
        return {
            name: [
                is_reliable(value, margin, bias)
                for value, margin, bias in zip(
                    self.table.column(name).to_pylist(), column, self._bias_of(name), strict=True
                )
            ]
            for name, column in self.margins.items()
        }

    def _bias_of(self, name: str) -> list[Bias | None]:
        return self.bias.get(name, [None] * len(self))

    @property
    def value(self) -> Any:
        """The number, if the answer has one row and one column."""
        return self._single_cell().column(0)[0].as_py()

    @property
    def margin(self) -> float | None:
        """The margin of error of `value`."""
        return self.margins.get(self._single_cell().column_names[0], [None])[0]

    def _single_cell(self) -> pa.Table:
        if self.table.shape != (1, 1):
            rows, columns = self.table.shape
            raise ValueError(
                f"value and margin need an answer of one row and one column; this one has {rows} and {columns}"
            )
        return self.table

    def to_arrow(self) -> pa.Table:
        """Return the table, with `to_dict()` as JSON in the schema metadata, under the key `discreet`."""
        return self._with_metadata(self.table)

    def _with_metadata(self, table: pa.Table) -> pa.Table:
        return table.replace_schema_metadata({"discreet": json.dumps(self.to_dict())})

    def to_dict(self) -> dict[str, Any]:
        """Return all but the table and its margins, for JSON; `exact` repeats cost and budget as fractions.

        If the policy declares a sample, the parts of the margins are there too.
        """
        return {
            **_with_exact(
                cost=_cost_to_dict(self.cost),
                loss=_loss_to_dict(self.cost.loss),
                paid=_loss_to_dict(self.paid),
                remaining=self.remaining,
            ),
            "receipt": self.receipt.id if self.receipt else None,
            "noise": self.noise,
            "noise_margins": self.noise_margins,
            "sampling_margins": self.sampling_margins,
            "uncorrelated_sampling": sorted(self.uncorrelated_sampling),
            "correlated_noise": sorted(self.correlated_noise),
            "bias": {name: [bias.to_dict() if bias else None for bias in column] for name, column in self.bias.items()},
            "left_out": list(self.left_out),
            "clipping": list(self.clipping),
            "bounds": list(self.bounds),
            "notes": list(self.notes),
            "origin": self.origin,
        }

    def details(self) -> str:
        """Return the noise, the contribution bounds, the notes, the exact cost and the ledger entry as text."""
        return details_text(self)

    @property
    def frame(self) -> Any:
        """The table as a frame of the library that the curator's data came in: pandas, polars or Arrow."""
        return as_frame(self.table, self.frame_kind)

    def with_frame_kind(self, frame_kind: FrameKind) -> Self:
        """Return the same answer with another kind of `frame`."""
        return replace(self, frame_kind=frame_kind)

    def to_pandas(self) -> "pd.DataFrame":
        """Return a pandas frame; integers and booleans have pandas' nullable types, so that NULL stays NULL."""
        return as_pandas(self.table)

    def to_polars(self) -> "pl.DataFrame":
        """Return a polars frame."""
        return as_polars(self.table)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Export the table to any library that reads Arrow."""
        return self.table.__arrow_c_stream__(requested_schema)

    def with_margins(self) -> pa.Table:
        """Return the table with a column n_margin after each noisy column n, and the metadata of `to_arrow`.

        If the policy declares a sample, n_noise_margin and n_sampling_margin follow. If clipping may make the number
        too low, so do n_bias, the estimate of this bias (NULL if there is none), and n_bias_low, its lower bound.
        """
        return self._table_with_margins

    @cached_property
    def _table_with_margins(self) -> pa.Table:
        parts: dict[str, dict[str, list[float | None]]] = {
            "margin": self.margins,
            "noise_margin": self.noise_margins,
            "sampling_margin": self.sampling_margins,
            "bias": {name: [bias.estimate if bias else None for bias in column] for name, column in self.bias.items()},
            "bias_low": {name: [bias.low if bias else None for bias in column] for name, column in self.bias.items()},
        }
        columns: dict[str, Any] = {}
        for name in self.table.column_names:
            columns[name] = self.table.column(name)
            for suffix, numbers in parts.items():
                if name in numbers:
                    new_name = _unused_name(f"{name}_{suffix}", [*self.table.column_names, *columns])
                    columns[new_name] = pa.array(numbers[name], pa.float64())
        return self._with_metadata(pa.table(columns))

    def differs(self, row_a: int, row_b: int, column: str | None = None) -> CellDifference:
        """Test whether two rows differ in a noisy column, given their margins; true if they do, at the 95 % level.

        Rows are numbered from 0. The column may be left out if only one is noisy.
        """
        return cell_difference(self, row_a, row_b, column)

    def plot(self) -> "Figure":
        """Return a matplotlib figure: lines over times and numbers, otherwise bars, with 95 % margins as error bars.

        Each noisy column has a panel, and a second key is shown by colour. Of many groups the largest are drawn. An
        error bar that is much longer than the others is truncated with an arrow. NULL is a separate category.
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
    """The noise of a column of a planned answer, and its margin of error or what the margin depends on.

    >>> ExplainedColumn("n", noise="discrete Laplace, scale 10", margin=30).margin
    30
    """

    name: str
    noise: str
    margin: float | None = None
    margin_depends_on: str = ""


@dataclass(frozen=True, repr=False)
class Explanation:
    """The cost of a query and the accuracy of its answer, forecast without reading private data.

    >>> Explanation(
    ...     cost=Cost(Loss("1/10")),
    ...     columns=(ExplainedColumn("n", noise="discrete Laplace, scale 10", margin=30),),
    ...     groups="3 declared groups, all of them shown.",
    ... )
    Would cost epsilon 0.1. No data was read.
    <BLANKLINE>
    n: ± 30 (95 %); discrete Laplace, scale 10.
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
        """Return the explanation for JSON; `exact` repeats the cost as fractions."""
        return {
            **_with_exact(
                cost=_cost_to_dict(self.cost), loss=_loss_to_dict(self.cost.loss), paid=_loss_to_dict(self.paid)
            ),
            "columns": [
                {
                    "name": column.name,
                    "noise": column.noise,
                    "margin": column.margin,
                    "margin_depends_on": column.margin_depends_on,
                }
                for column in self.columns
            ],
            "groups": self.groups,
            "bounds": list(self.bounds),
            "sql": self.sql,
            "notes": list(self.notes),
        }

    def details(self) -> str:
        """Return the explanation with the SQL that the engine would run."""
        return explanation_text(self, details=True)

    def __repr__(self) -> str:
        return explanation_text(self)

    def _repr_html_(self) -> str:
        return explanation_html(self)


def _cost_to_dict(cost: Cost) -> dict[str, Any]:
    loss = cost.loss
    return {
        "epsilon": cost.epsilon if loss.epsilon is None else loss.epsilon,
        "rho": loss.rho,
        "delta": loss.delta,
        "at_delta": cost.delta if loss.epsilon is None else Fraction(0),
        "share": cost.share,
        "share_of": cost.share_of,
    }


def _loss_to_dict(loss: Loss | None) -> dict[str, Any]:
    return {} if loss is None else {"epsilon": loss.epsilon, "rho": loss.rho, "delta": loss.delta}


def _with_exact(**entries: Any) -> dict[str, Any]:
    """Return the entries with fractions as decimals, and once more under `exact`, with fractions as texts.

    >>> _with_exact(paid={"epsilon": Fraction(1, 3), "delta": Fraction(0)})
    {'paid': {'epsilon': 0.3333333333333333, 'delta': 0.0}, 'exact': {'paid': {'epsilon': '1/3', 'delta': '0'}}}
    """
    return {**_convert_fractions(entries, float), "exact": _convert_fractions(entries, str)}


def _convert_fractions(entry: Any, convert: Callable[[Fraction], Any]) -> Any:
    if isinstance(entry, dict):
        return {name: _convert_fractions(each, convert) for name, each in entry.items()}
    return convert(entry) if isinstance(entry, Fraction) else entry


def _finite_or_none(margins: Any) -> list[float | None]:
    """Return margins as floats; None where they are not finite."""
    numbers = np.asarray(margins, np.float64)
    return [
        number if is_finite else None for number, is_finite in zip(numbers.tolist(), np.isfinite(numbers), strict=True)
    ]


def _unused_name(name: str, taken: list[str]) -> str:
    candidates = (name if not i else f"{name}_{i}" for i in range(len(taken) + 1))
    return next(candidate for candidate in candidates if candidate not in taken)
