"""An answer as a table whose noisy numbers have intervals: a point, its margin, and what clipping may have removed."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from discreet.answer.bias import Bias
from discreet.answer.model import Answer
from discreet.answer.text import (
    MAX_ROWS,
    DisplayColumn,
    bias_text,
    detail_sentences,
    display_columns,
    hidden_rows_note,
    is_number,
    long_cell_texts,
    summary_sentences,
)

_MAX_CHARTS = 3  # columns with intervals; more would be too narrow
_WIDTH = 1000  # of a chart's own units
_EMPTY_MARGIN = 0.02  # of the width, at both ends


@dataclass(frozen=True)
class IntervalMark:
    """Where an interval is drawn, from 0 to 1000: its bar from zero, its ends, its point, and the bias above it."""

    zero: float
    bar: tuple[float, float]
    low: float
    high: float
    point: float
    bias: float | None = None


@dataclass(frozen=True)
class ViewCell:
    """One cell: a text, whether it is unreliable, the bias in words, and the interval if its column has a chart."""

    text: str
    is_unreliable: bool = False
    bias: str = ""
    mark: IntervalMark | None = None


@dataclass(frozen=True)
class ViewColumn:
    """A column: its name, how it is aligned, and whether it has a chart."""

    name: str
    is_number: bool
    has_chart: bool


@dataclass(frozen=True)
class AnswerView:
    """An answer as a page shows it.

    >>> import pyarrow as pa
    >>> from discreet.answer.model import Cost
    >>> from discreet.kernel.loss import Loss
    >>> table, noise = pa.table({"ward": ["A"], "n": [10]}), {"n": "discrete Laplace, scale 1"}
    >>> view = AnswerView.of_answer(Answer(table, {"n": [3]}, noise, Cost(Loss(1)), None))
    >>> [cell.text for cell in view.rows[0]]
    ['A', '~10 ± 3']
    """

    columns: tuple[ViewColumn, ...]
    rows: tuple[tuple[ViewCell, ...], ...]
    notes: tuple[str, ...]
    summary: tuple[str, ...]
    details: tuple[str, ...]

    @classmethod
    def of_answer(cls, answer: Answer) -> "AnswerView":
        """Return the view of an answer."""
        shown = display_columns(answer)
        charts = _charts(answer)
        names = answer.table.column_names
        cells = [_cells(column, charts.get(name)) for name, column in zip(names, shown, strict=True)]
        notes = (hidden_rows_note(answer) or ("" if len(answer) else "(no rows)"), *long_cell_texts(answer))
        return cls(
            tuple(
                ViewColumn(column.name, column.right_aligned, name in charts)
                for name, column in zip(names, shown, strict=True)
            ),
            tuple(zip(*cells, strict=True)),
            tuple(filter(None, notes)),
            tuple(summary_sentences(answer, shown)),
            tuple(detail_sentences(answer)),
        )


def _charts(answer: Answer) -> dict[str, list[IntervalMark | None]]:
    """Return the intervals of the first noisy columns that have numbers."""
    charts: dict[str, list[IntervalMark | None]] = {}
    for name, margins in answer.margins.items():
        values = answer.table.column(name).slice(0, MAX_ROWS).to_pylist()
        if len(charts) < _MAX_CHARTS and any(map(is_number, values)):
            biases = answer.bias.get(name, [None] * len(answer))
            charts[name] = interval_marks(values, margins[:MAX_ROWS], biases[:MAX_ROWS])
    return charts


def interval_marks(
    values: Sequence[Any], margins: Sequence[float | None], biases: Sequence[Bias | None]
) -> list[IntervalMark | None]:
    """Return the intervals of one column on a common scale that has zero on it.

    >>> marks = interval_marks([10, 20, None], [5.0, 5.0, None], [None] * 3)
    >>> [mark and round(mark.point) for mark in marks]
    [404, 788, None]
    """
    ends = [
        (float(value), margin or 0.0, bias.magnitude if bias else 0.0)
        if is_number(value) and math.isfinite(value)
        else None
        for value, margin, bias in zip(values, margins, biases, strict=True)
    ]
    known = [each for each in ends if each]
    low = min([0.0, *(value - margin for value, margin, _ in known)])
    high = max([0.0, *(value + margin + bias for value, margin, bias in known)])
    span = (high - low) or 1.0

    def x(value: float) -> float:
        return round(_WIDTH * (_EMPTY_MARGIN + (1 - 2 * _EMPTY_MARGIN) * (value - low) / span), 2)

    return [_mark(each, x) if each else None for each in ends]


def _mark(ends: tuple[float, float, float], x: Any) -> IntervalMark:
    value, margin, bias = ends
    start = min(x(0), x(value))
    return IntervalMark(
        x(0),
        (start, round(abs(x(value) - x(0)), 2)),
        x(value - margin),
        x(value + margin),
        x(value),
        x(value + bias) if bias else None,
    )


def _cells(column: DisplayColumn, marks: list[IntervalMark | None] | None) -> list[ViewCell]:
    return [
        ViewCell(str(cell), cell.unreliable, bias_text(cell.bias) if cell.bias else "", mark)
        for cell, mark in zip(column.cells, marks or [None] * len(column.cells), strict=True)
    ]
