"""Answers and explanations as HTML for notebooks. Keys are data: every text is escaped."""

from collections.abc import Iterable
from html import escape
from typing import TYPE_CHECKING

from discreet.answer_text import columns_shown, expected, legend, more_rows, paid, printable, spelled, would_cost

if TYPE_CHECKING:
    from discreet.answer import Answer, Explanation

_RIGHT, _LEFT = (f' style="text-align: {side}; padding: .15em .8em"' for side in ("right", "left"))


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
    below = [more_rows(answer) or ("" if len(answer) else "(no rows)"), *spelled(answer), legend(columns)]
    below += [*answer.touched, *paid(answer)]
    details = _folded("Bounds and notes", _paragraphs([*answer.bounded, *answer.notes]))
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{_paragraphs(below)}{details}"


def explanation_html(explanation: "Explanation") -> str:
    """Return an explanation as HTML."""
    sentences = [explanation.groups, *explanation.bounded, *explanation.notes]
    wrapped = f'<pre style="white-space: pre-wrap">{escape(explanation.sql)}</pre>'
    sql = _folded("What the engine runs", wrapped if explanation.sql else "")
    items = "".join(f"<li>{escape(printable(line))}</li>" for line in expected(explanation))
    return f"{_paragraphs(would_cost(explanation))}<ul>{items}</ul>{_paragraphs(sentences)}{sql}"


def _folded(title: str, html: str) -> str:
    return f"<details><summary>{title}</summary>{html}</details>" if html else ""


def _paragraphs(sentences: Iterable[str]) -> str:
    return "".join(f"<p>{escape(printable(sentence))}</p>" for sentence in sentences if sentence)
