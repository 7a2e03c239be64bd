"""The HTML report of attacks: each with no defence, the easy fix and the curator, side by side.

The page is self-contained, runs no scripts and escapes all text.
"""

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from discreet.attacks.attack import Attack
from discreet.attacks.comparison import Comparison
from discreet.attacks.defences import CURATOR, EASY, NOTHING, epsilon_text
from discreet.attacks.result import AttackResult, percent
from discreet.html_page import INLINE_IMAGES_ONLY, html_document
from discreet.plotting import style

_STYLE = """
body { margin: 0 auto; padding: 1.2rem 1rem 4rem; max-width: 66rem; background: #fff; color: #222;
  font: 1rem/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; } h2 { margin: 2.4rem 0 .3rem; font-size: 1.25rem; } h3 { margin: 0; font-size: 1rem; }
p { max-width: 44rem; margin: .4rem 0; }
.side { display: grid; grid-template-columns: repeat(auto-fit, minmax(16rem, 1fr)); gap: 1rem; margin: 1rem 0; }
.card { padding: .8rem 1rem; border-top: .3rem solid #d55e00; background: #faf6f3; }
.card.easy { border-color: #e69f00; } .card.curator { border-color: #0072b2; background: #f2f6fb; }
.card p { font-size: .9rem; color: #555; }
.number { font-size: 1.7rem; font-weight: 600; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .9rem; }
th, td { padding: .25rem 1.2rem .25rem 0; border-bottom: 1px solid #d4d7dc; text-align: left; vertical-align: top; }
figure { margin: 1rem 0; } img { width: 100%; max-width: 62rem; height: auto; }
.note { color: #667; font-size: .9rem; }
summary { cursor: pointer; margin: .6rem 0; }
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
    target = Path(path)
    target.write_text(report_html(sections), encoding="utf-8")
    return target


def report_html(sections: Sequence[ReportSection]) -> str:
    """Return the report as a complete HTML page."""
    names = ", ".join(section.attack.name.replace("_", " ") for section in sections)
    title = (
        f"Attacks: {names}"
        if len(sections) <= _MAX_WITHOUT_SUMMARY
        else f"{len(sections)} attacks, with and without a defence"
    )
    body = f'<h1>{escape(title)}</h1>\n<p class="note">{_EXPLANATION}</p>\n{_summary_table(sections)}'
    return html_document(
        title, _STYLE, f"{body}{''.join(map(_section_html, sections))}", content_policy=INLINE_IMAGES_ONLY
    )


def _summary_table(sections: Sequence[ReportSection]) -> str:
    """Return a table of all attacks with links, or nothing if there are few."""
    if len(sections) <= _MAX_WITHOUT_SUMMARY:
        return ""
    head = "".join(f'<th scope="col">{word}</th>' for word in ("attack", "no defence", "the easy fix", "the curator"))
    rows = "".join(map(_summary_row, sections))
    return f"<table><thead><tr>{head}</tr></thead>\n<tbody>{rows}</tbody></table>\n"


def _summary_row(section: ReportSection) -> str:
    name, results = escape(section.attack.name), section.comparison.results
    cells = [f'<a href="#{name}">{name.replace("_", " ")}</a>']
    cells += [escape(percent(each.success)) for each in results if each.epsilon is None]
    private = (f"{percent(each.success)} at {each.epsilon}" for each in results if each.epsilon is not None)
    cells.append(escape(", ".join(private)))
    return f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>\n"


def _section_html(section: ReportSection) -> str:
    attack, results = section.attack, section.comparison.results
    cards = [
        _card(kind, title, attack.releases[kind].description, [each for each in results if each.defence == kind])
        for kind, title in _TITLES.items()
    ]
    return (
        f'<h2 id="{escape(attack.name)}">{escape(attack.name.replace("_", " "))}</h2>\n'
        f"<p>{escape(attack.summary)}</p>\n"
        f'<p class="note">Data: {escape(section.data_description)}</p>\n<div class="side">{"".join(cards)}</div>\n'
        f"{_note_paragraph(section.comparison)}"
        f"{_embedded_figure(section.comparison, 'Success and implied epsilon against the claimed epsilon')}"
        f"<details><summary>Each defence in detail</summary>\n{''.join(map(_details_table, results))}</details>\n"
    )


def _note_paragraph(comparison: Comparison) -> str:
    return f"<p>{escape(comparison.note)}</p>\n" if comparison.note else ""


def _card(kind: str, title: str, released: str, results: Sequence[AttackResult]) -> str:
    rows = "".join(map(_success_paragraph, results))
    return f'<div class="card {kind}"><h3>{title}</h3><p>{escape(released)}</p>{rows}</div>'


def _success_paragraph(result: AttackResult) -> str:
    baseline = f"{result.evidence.baseline_name} {percent(result.evidence.baseline)}"
    footnote = f"95 % interval {result.interval_text}; {baseline}; implied epsilon {result.implied}"
    if result.accuracy is not None:
        footnote += f"; accuracy of the model on members / non-members {result.accuracy_text}"
    footnote = footnote.replace(" %", "\u00a0%")
    return (
        f'<p><span class="number">{escape(percent(result.success))}</span> {escape(result.metric)}'
        f"{_promised_epsilon_text(result)}<br>{escape(footnote)}</p>"
    )


def _promised_epsilon_text(result: AttackResult) -> str:
    if result.epsilon is None:
        return ""
    refuted = "" if result.holds else " (the claim is refuted)"
    return escape(f" at {epsilon_text(result.epsilon)}, which allows {result.ceiling_text}{refuted}")


def _details_table(result: AttackResult) -> str:
    rows = "".join(
        f"<tr><td>{escape(name)}</td><td>{escape(value)}</td></tr>\n" for name, value in result.summary_rows()
    )
    return f"<table>{rows}</table>\n{_embedded_figure(result, f'{result.attack} against {result.against}')}"


def _embedded_figure(result: AttackResult | Comparison, caption: str) -> str:
    """Return the figure as an inline image, or a note if matplotlib is missing."""
    try:
        figure = result.figure()
    except ImportError:
        return '<p class="note">No figure: matplotlib is not installed; it comes with the extra “attacks”.</p>\n'
    source = base64.b64encode(_svg(figure)).decode()
    return f'<figure><img alt="{escape(caption)}" src="data:image/svg+xml;base64,{source}"></figure>\n'


def _svg(figure: Any) -> bytes:
    buffer = io.BytesIO()
    with style():
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    return buffer.getvalue()
