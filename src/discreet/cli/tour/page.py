"""The tour as one self-contained HTML file."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from html import escape
from pathlib import Path

from rich.text import Text

import discreet
from discreet.html_page import INLINE_IMAGES_ONLY, html_document, write_page

_STYLE = """
:root { color-scheme: light dark; --ink: #222; --paper: #fff; --soft: #f3f4f6; --line: #d4d7dc;
  --good: #1a7f37; --warn: #9a5b00; --quiet: #667; --link: #3b6ea8; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e6ea; --paper: #15171a; --soft: #202429; --line: #3a4048;
  --good: #57c777; --warn: #e0a24a; --quiet: #99a; --link: #86b3e6; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.2rem 1rem 4rem; max-width: 50rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.55 system-ui, sans-serif; }
h1 { margin: 0; font-size: 1.8rem; }
h2 { margin: 2.4rem 0 .6rem; font-size: 1.2rem; line-height: 1.3; }
a { color: var(--link); }
nav ol { padding-left: 1.4rem; }
p, figcaption { max-width: 40rem; }
pre, .wide { overflow-x: auto; }
pre { padding: .6rem .8rem; background: var(--soft); border-radius: .3rem; font: .82rem/1.45 ui-monospace, monospace; }
pre.sql { white-space: pre-wrap; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .8rem .25rem 0; border-bottom: 1px solid var(--line); text-align: right; }
th { vertical-align: bottom; font-size: .9rem; }
th:first-child, td:first-child { text-align: left; }
figure { margin: 1rem 0; overflow-x: auto; }
figure svg { display: block; width: 100%; min-width: 34rem; height: auto; }
figcaption, footer { color: var(--quiet); font-size: .9rem; }
.good { color: var(--good); font-weight: 600; }
.warn { color: var(--warn); font-weight: 600; }
@media print { :root { --ink: #000; --paper: #fff; --soft: #f6f6f6; --good: #000; --warn: #000; --quiet: #444; }
  body { max-width: none; padding: 0; font-size: 10pt; } nav { display: none; }
  figure svg { min-width: 0; } h2 { break-after: avoid; }
  table, figure, pre { break-inside: avoid; } pre { white-space: pre-wrap; } }
"""


_CLASSES = {"green": "good", "yellow": "warn"}
Cell = str | Text


@dataclass
class Section:
    """A heading, and the HTML below it."""

    title: str
    html: list[str] = field(default_factory=list)


def write_tour(path: Path, sections: Sequence[Section], seconds: float) -> Path:
    """Write the sections as a page and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return write_page(_page_html(sections, seconds), path)


def _page_html(sections: Sequence[Section], seconds: float) -> str:
    contents = "".join(f'<li><a href="#s{n}">{escape(part.title)}</a></li>\n' for n, part in enumerate(sections, 1))
    body = "".join(
        f'<section>\n<h2 id="s{n}">{n}. {escape(part.title)}</h2>\n{"".join(part.html)}</section>\n'
        for n, part in enumerate(sections, 1)
    )
    when = f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
    head = "<h1>Discreet: the tour</h1>\n<p>Every number below was computed in one run, on simulated data.</p>"
    return html_document(
        "Discreet: the tour",
        _STYLE,
        f"<header>\n{head}\n</header>\n<nav>\n<ol>\n{contents}</ol>\n</nav>\n<main>\n{body}</main>\n"
        f"<footer><p>Discreet {escape(discreet.__version__)}, {when}, {seconds:.1f} seconds.</p></footer>\n",
        content_policy=INLINE_IMAGES_ONLY,
    )


def styled_html(piece: Cell) -> str:
    """Return a piece of a paragraph, or a cell, as escaped HTML."""
    if isinstance(piece, Text):
        return f'<span class="{_CLASSES[str(piece.style)]}">{escape(piece.plain)}</span>'
    return escape(piece)


def inline_svg(svg: str, prefix: str) -> str:
    """Prepare an SVG file for a page: prefix its ids, use the page's colours, and drop the metadata."""
    svg = svg[svg.index("<svg") :].strip()
    svg = re.sub(r"\s*<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'\bid="', f'id="{prefix}-', svg)
    svg = re.sub(r'(url\(#|href="#)', rf"\g<1>{prefix}-", svg)
    svg = re.sub(r'(<svg[^>]*?) width="[^"]*" height="[^"]*"|(<svg[^>]*?) height="[^"]*"', r"\1\2", svg, count=1)
    return svg.replace("#333333", "currentColor").replace("fill: #ffffff", "fill: none")
