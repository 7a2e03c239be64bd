"""Answers and explanations as HTML for notebooks. Keys are data: every text is escaped."""

from collections.abc import Iterable
from html import escape
from typing import TYPE_CHECKING

from discreet.answer_text import columns_shown, expected, legend, more_rows, paid, printable, spelled, would_cost

if TYPE_CHECKING:
    from discreet.answer import Answer, Explanation

_RIGHT, _LEFT = ' style="text-align: right"', ' style="text-align: left"'


def answer_html(answer: "Answer") -> str:
    """Return an answer as an HTML table and what is below it."""
    columns = columns_shown(answer)
    sides = [_RIGHT if column.right else _LEFT for column in columns]
    head = "".join(f"<th{side}>{escape(column.name)}</th>" for column, side in zip(columns, sides, strict=True))
    rows = [
        "".join(f"<td{side}>{escape(str(cell))}</td>" for cell, side in zip(row, sides, strict=True))
        for row in zip(*(column.cells for column in columns), strict=True)
    ]
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    below = [more_rows(answer), *spelled(answer), legend(columns), *answer.touched, *paid(answer)]
    below += [*answer.bounded, *answer.notes]
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{_paragraphs(below)}"


def explanation_html(explanation: "Explanation") -> str:
    """Return an explanation as HTML."""
    sentences = [explanation.groups, *explanation.bounded, *explanation.notes]
    sql = f"<pre>{escape(explanation.sql)}</pre>" if explanation.sql else ""
    items = "".join(f"<li>{escape(printable(line))}</li>" for line in expected(explanation))
    return f"{_paragraphs(would_cost(explanation))}<ul>{items}</ul>{_paragraphs(sentences)}{sql}"


def _paragraphs(sentences: Iterable[str]) -> str:
    return "".join(f"<p>{escape(printable(sentence))}</p>" for sentence in sentences if sentence)
