"""The HTML report of attacks: each with no defence, the easy fix and the curator, side by side.

The page is self-contained, runs no scripts and escapes all text.
"""

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from discreet.attacks.attack import Attack
from discreet.attacks.comparison import Comparison
from discreet.attacks.defences import CURATOR, EASY, NOTHING, epsilon_text
from discreet.attacks.result import AttackResult, percent
from discreet.html_page import (
    INLINE_IMAGES_ONLY,
    REPORT_STYLE,
    html_cell,
    html_document,
    html_table,
    html_text,
    text_table,
    write_page,
)
from discreet.plotting import style

_STYLE = f"""{REPORT_STYLE}
h3 {{ margin: 0; font-size: 1rem; }}
.side {{ display: grid; grid-template-columns: repeat(auto-fit, minmax(16rem, 1fr)); gap: 1rem; margin: 1rem 0; }}
.card {{ padding: .8rem 1rem; border-top: .3rem solid #d55e00; background: #faf6f3; }}
.card.easy {{ border-color: #e69f00; }} .card.curator {{ border-color: #0072b2; background: #f2f6fb; }}
.card p {{ font-size: .9rem; color: #555; }}
.number {{ font-size: 1.7rem; font-weight: 600; }}
img {{ width: 100%; max-width: 62rem; height: auto; }}
summary {{ cursor: pointer; margin: .6rem 0; }}
"""
_EXPLANATION = (
    "“Guessing” is the success of somebody who does not see the release. “Non-members” are comparable people who are "
    "not in the data: the attack's success on them comes from facts about the population and not from their own data. "
    "“Implied epsilon” is a lower bound on epsilon that follows from the attack's success, with its 95 % interval."
)
_TITLES = {NOTHING: "No defence", EASY: "The easy fix", CURATOR: "The curator"}
_MAX_WITHOUT_SUMMARY = 3  # a report of more attacks begins with a table of them


@dataclass(frozen=True)
class ReportSection:
    """One attack, the data it ran on, and its results."""

    attack: Attack
    data_description: str
    comparison: Comparison


def write_report(sections: Sequence[ReportSection], path: str | Path) -> Path:
    """Write the report as one HTML file and return its path."""
    return write_page(report_html(sections), path)


def report_html(sections: Sequence[ReportSection]) -> str:
    """Return the report as a complete HTML page."""
    names = ", ".join(section.attack.name.replace("_", " ") for section in sections)
    title = (
        f"Attacks: {names}"
        if len(sections) <= _MAX_WITHOUT_SUMMARY
        else f"{len(sections)} attacks, with and without a defence"
    )
    body = f'<h1>{html_text(title)}</h1>\n<p class="note">{_EXPLANATION}</p>\n{_summary_table(sections)}'
    return html_document(
        title, _STYLE, f"{body}{''.join(map(_section_html, sections))}", content_policy=INLINE_IMAGES_ONLY
    )


def _summary_table(sections: Sequence[ReportSection]) -> str:
    """Return a table of all attacks with links, or nothing if there are few."""
    if len(sections) <= _MAX_WITHOUT_SUMMARY:
        return ""
    return html_table(("attack", "no defence", "the easy fix", "the curator"), map(_summary_row, sections))


def _summary_row(section: ReportSection) -> list[str]:
    name, results = html_text(section.attack.name), section.comparison.results
    cells = [f'<a href="#{name}">{name.replace("_", " ")}</a>']
    cells += [html_text(percent(each.success)) for each in results if each.epsilon is None]
    private = (f"{percent(each.success)} at {each.epsilon}" for each in results if each.epsilon is not None)
    cells.append(html_text(", ".join(private)))
    return list(map(html_cell, cells))


def _section_html(section: ReportSection) -> str:
    attack, results = section.attack, section.comparison.results
    note = f"<p>{html_text(section.comparison.note)}</p>\n" if section.comparison.note else ""
    cards = [
        _card(kind, title, attack.releases[kind].description, [each for each in results if each.defence == kind])
        for kind, title in _TITLES.items()
    ]
    return (
        f'<h2 id="{html_text(attack.name)}">{html_text(attack.name.replace("_", " "))}</h2>\n'
        f"<p>{html_text(attack.summary)}</p>\n"
        f'<p class="note">Data: {html_text(section.data_description)}</p>\n<div class="side">{"".join(cards)}</div>\n'
        f"{note}"
        f"{_embedded_figure(section.comparison, 'Success and implied epsilon against the claimed epsilon')}"
        f"<details><summary>Each defence in detail</summary>\n{''.join(map(_details_table, results))}</details>\n"
    )


def _card(kind: str, title: str, released: str, results: Sequence[AttackResult]) -> str:
    rows = "".join(map(_success_paragraph, results))
    return f'<div class="card {kind}"><h3>{title}</h3><p>{html_text(released)}</p>{rows}</div>'


def _success_paragraph(result: AttackResult) -> str:
    baseline = f"{result.evidence.baseline_name} {percent(result.evidence.baseline)}"
    footnote = f"95 % interval {result.interval_text}; {baseline}; implied epsilon {result.implied}"
    if result.accuracy is not None:
        footnote += f"; accuracy of the model on members / non-members {result.accuracy_text}"
    footnote = footnote.replace(" %", "\u00a0%")
    return (
        f'<p><span class="number">{html_text(percent(result.success))}</span> {html_text(result.metric)}'
        f"{_promised_epsilon_text(result)}<br>{html_text(footnote)}</p>"
    )


def _promised_epsilon_text(result: AttackResult) -> str:
    if result.epsilon is None:
        return ""
    refuted = "" if result.holds else " (the claim is refuted)"
    return html_text(f" at {epsilon_text(result.epsilon)}, which allows {result.ceiling_text}{refuted}")


def _details_table(result: AttackResult) -> str:
    caption = f"{result.attack} against {result.against}"
    return text_table((), result.summary_rows()) + _embedded_figure(result, caption)


def _embedded_figure(result: AttackResult | Comparison, caption: str) -> str:
    """Return the figure as an inline image, or a note if matplotlib is missing."""
    try:
        figure = result.figure()
    except ImportError:
        return '<p class="note">No figure: matplotlib is not installed; it comes with the extra “attacks”.</p>\n'
    source = base64.b64encode(_svg(figure)).decode()
    return f'<figure><img alt="{html_text(caption)}" src="data:image/svg+xml;base64,{source}"></figure>\n'


def _svg(figure: Any) -> bytes:
    buffer = io.BytesIO()
    with style():
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    return buffer.getvalue()
