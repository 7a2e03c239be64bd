"""Answers and explanations as HTML for notebooks. Keys are data, so all text is escaped."""

from collections.abc import Iterable
from html import escape
from typing import TYPE_CHECKING

from discreet.answer.text import (
    Cell,
    bias_text,
    cost_forecast_sentences,
    detail_sentences,
    display_columns,
    error_forecast_sentences,
    escape_unprintable,
    hidden_rows_note,
    long_cell_texts,
    summary_sentences,
)

if TYPE_CHECKING:
    from discreet.answer.model import Answer, Explanation

_RIGHT_ALIGNED, _LEFT_ALIGNED = (f' style="text-align: {side}; padding: .15em .8em"' for side in ("right", "left"))


def answer_html(answer: "Answer") -> str:
    """Return an answer as an HTML table with its three lines, and the details folded."""
    columns = display_columns(answer)
    cell_styles = [_RIGHT_ALIGNED if column.right_aligned else _LEFT_ALIGNED for column in columns]
    header = "".join(
        f"<th{cell_style}>{escape(column.name)}</th>" for column, cell_style in zip(columns, cell_styles, strict=True)
    )
    rows = [
        "".join(
            f"<td{side}{_bias_title(cell)}>{escape(str(cell))}</td>"
            for cell, side in zip(row, cell_styles, strict=True)
        )
        for row in zip(*(column.cells for column in columns), strict=True)
    ]
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    footer = [
        hidden_rows_note(answer) or ("" if len(answer) else "(no rows)"),
        *long_cell_texts(answer),
        *summary_sentences(answer, columns),
    ]
    details = _collapsible("Details", _paragraphs(detail_sentences(answer)))
    return f"<table><thead><tr>{header}</tr></thead><tbody>{body}</tbody></table>{_paragraphs(footer)}{details}"


def explanation_html(explanation: "Explanation") -> str:
    """Return an explanation as HTML."""
    sentences = [explanation.groups, *explanation.bounds, *explanation.notes]
    sql_block = f'<pre style="white-space: pre-wrap">{escape(explanation.sql)}</pre>'
    sql = _collapsible("What the engine runs", sql_block if explanation.sql else "")
    items = "".join(f"<li>{escape(escape_unprintable(line))}</li>" for line in error_forecast_sentences(explanation))
    return f"{_paragraphs(cost_forecast_sentences(explanation))}<ul>{items}</ul>{_paragraphs(sentences)}{sql}"


def _bias_title(cell: Cell) -> str:
    """Return the attribute that shows the clipping bias of a number when the pointer is over it."""
    return f' title="clipping bias: {bias_text(cell.bias)}"' if cell.bias else ""


def _collapsible(title: str, html: str) -> str:
    return f"<details><summary>{title}</summary>{html}</details>" if html else ""


def _paragraphs(sentences: Iterable[str]) -> str:
    return "".join(f"<p>{escape(escape_unprintable(sentence))}</p>" for sentence in sentences if sentence)
