"""A report page: what leaks without a defence, with the easy fix and with the curator, side by side.

One page that fetches nothing and runs nothing; what is in it is escaped.
"""

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from discreet.anonymity.showing.shell import OWN_IMAGES, whole_page
from discreet.attacks.comparing import Comparison
from discreet.attacks.defences import CURATOR, EASY, NOTHING
from discreet.attacks.listing import Attack
from discreet.attacks.result import AttackResult, percent
from discreet.figures import style

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
_SMALL = (
    "“Guessing” is what somebody reaches who does not see the release. “Strangers” are equal people who are not in the "
    "data: what the attack reaches with them is a fact about people and not about a person. “Epsilon implied” is what "
    "the attack's success proves: no release with a smaller epsilon could have lost so much; with its interval at 95 %."
)
_MANY = 3  # attacks, from which on a page begins with a table of them


@dataclass(frozen=True)
class Chapter:
    """One attack, the data that it ran on, and what it reached."""

    attack: Attack
    data: str
    comparison: Comparison


def write_page(chapters: Sequence[Chapter], path: str | Path) -> Path:
    """Write the report of these attacks as one page; return its path."""
    made = Path(path)
    made.write_text(page(chapters), encoding="utf-8")
    return made


def page(chapters: Sequence[Chapter]) -> str:
    """Return the report as a whole page."""
    names = ", ".join(chapter.attack.name.replace("_", " ") for chapter in chapters)
    title = f"Attacks: {names}" if len(chapters) <= _MANY else f"{len(chapters)} attacks, with and without a defence"
    body = f'<h1>{escape(title)}</h1>\n<p class="note">{_SMALL}</p>\n{_summary(chapters)}'
    return whole_page(title, _STYLE, f"{body}{''.join(map(_chapter, chapters))}", allowed=OWN_IMAGES)


def _summary(chapters: Sequence[Chapter]) -> str:
    """Return a table of all attacks with links, if there are many."""
    if len(chapters) <= _MANY:
        return ""
    head = "".join(f'<th scope="col">{word}</th>' for word in ("attack", "nothing", "the easy fix", "the curator"))
    rows = "".join(map(_summary_row, chapters))
    return f"<table><thead><tr>{head}</tr></thead>\n<tbody>{rows}</tbody></table>\n"


def _summary_row(chapter: Chapter) -> str:
    name, results = escape(chapter.attack.name), chapter.comparison.results
    cells = [f'<a href="#{name}">{name.replace("_", " ")}</a>']
    cells += [escape(percent(each.success)) for each in results if each.epsilon is None]
    private = (f"{percent(each.success)} at {each.epsilon}" for each in results if each.epsilon is not None)
    cells.append(escape(", ".join(private)))
    return f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>\n"


def _chapter(chapter: Chapter) -> str:
    attack, results = chapter.attack, chapter.comparison.results
    cards = [
        _card(NOTHING, "Nothing", attack.nothing, [each for each in results if each.defence == NOTHING]),
        _card(EASY, "The easy fix", attack.easy, [each for each in results if each.defence == EASY]),
        _card(CURATOR, "The curator", attack.curator, [each for each in results if each.defence == CURATOR]),
    ]
    return (
        f'<h2 id="{escape(attack.name)}">{escape(attack.name.replace("_", " "))}</h2>\n<p>{escape(attack.says)}</p>\n'
        f'<p class="note">Data: {escape(chapter.data)}</p>\n<div class="side">{"".join(cards)}</div>\n'
        f"{_note(chapter.comparison)}"
        f"{_picture(chapter.comparison, 'Success, and the epsilon it implies, against the epsilon promised')}"
        f"<details><summary>Each defence in detail</summary>\n{''.join(map(_detail, results))}</details>\n"
    )


def _note(comparison: Comparison) -> str:
    return f"<p>{escape(comparison.note)}</p>\n" if comparison.note else ""


def _card(word: str, title: str, released: str, results: Sequence[AttackResult]) -> str:
    rows = "".join(map(_reached, results))
    return f'<div class="card {word}"><h3>{title}</h3><p>{escape(released)}</p>{rows}</div>'


def _reached(result: AttackResult) -> str:
    beside = f"{result.evidence.beside} {percent(result.evidence.baseline)}"
    below = f"{result.ends} at 95 %; {beside}; epsilon implied {result.implied}".replace(" %", "\u00a0%")
    return (
        f'<p><span class="number">{escape(percent(result.success))}</span> {escape(result.metric)}'
        f"{_promised(result)}<br>{escape(below)}</p>"
    )


def _promised(result: AttackResult) -> str:
    if result.epsilon is None:
        return ""
    refuted = "" if result.holds else " (the claim is refuted)"
    return escape(f" at epsilon {result.epsilon}, which allows {result.allowed}{refuted}")


def _detail(result: AttackResult) -> str:
    rows = "".join(f"<tr><td>{escape(name)}</td><td>{escape(value)}</td></tr>\n" for name, value in result.lines())
    return f"<table>{rows}</table>\n{_picture(result, f'{result.attack} against {result.shield}')}"


def _picture(thing: AttackResult | Comparison, caption: str) -> str:
    """Draw it as an image inside the page; without matplotlib the numbers must do."""
    try:
        figure = thing.figure()
    except ImportError:
        return '<p class="note">No picture: matplotlib comes with the extra “attacks”.</p>\n'
    source = base64.b64encode(_svg(figure)).decode()
    return f'<figure><img alt="{escape(caption)}" src="data:image/svg+xml;base64,{source}"></figure>\n'


def _svg(figure: Any) -> bytes:
    drawn = io.BytesIO()
    with style():
        figure.savefig(drawn, format="svg", metadata={"Date": None})
    return drawn.getvalue()
