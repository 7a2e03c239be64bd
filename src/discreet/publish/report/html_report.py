"""A report as one HTML page: no scripts, nothing from elsewhere, light and dark, printable. All text is escaped."""

from collections.abc import Sequence
from html import escape

from discreet.html_page import html_document, html_text
from discreet.publish.report.content import OWNER_MUST_STATE, QUERIES, Chapter, ContentTable

_STYLE = """
:root { color-scheme: light dark; --page: #fff; --text: #1d2126; --quiet: #5a6472; --line: #d4d7dc; --lead: #eef3fb;
  --edge: #2a5fb0; --open: #8a4b00; --open-page: #fdf3e1; }
@media (prefers-color-scheme: dark) { :root { --page: #15181c; --text: #e4e7eb; --quiet: #a3adba; --line: #3a414b;
  --lead: #1c2634; --edge: #7fa9e8; --open: #f0b968; --open-page: #33270f; } }
body { margin: 0 auto; padding: 1.2rem 1rem 4rem; max-width: 62rem; background: var(--page); color: var(--text);
  font: 1rem/1.5 system-ui, sans-serif; }
h1 { margin: 0 0 .2rem; font-size: 1.6rem; line-height: 1.25; }
h1, h2, p, td, th, li { overflow-wrap: anywhere; }
h2 { margin: 2.2rem 0 .5rem; padding-bottom: .2rem; border-bottom: 2px solid var(--line); font-size: 1.2rem; }
p { max-width: 46rem; margin: .5rem 0; }
.lead { max-width: none; padding: .9rem 1.1rem; border-left: .3rem solid var(--edge); background: var(--lead); }
.lead p:first-child { font-size: 1.15rem; }
.lead p { max-width: 50rem; }
.quiet, .notes { color: var(--quiet); font-size: .92rem; }
.notes { padding-left: 1.2rem; max-width: 46rem; }
nav ul { display: flex; flex-wrap: wrap; gap: .2rem 1.1rem; margin: .8rem 0; padding: 0; list-style: none;
  font-size: .92rem; }
a { color: var(--edge); }
table { border-collapse: collapse; width: 100%; margin: .8rem 0; font-size: .92rem;
  font-variant-numeric: tabular-nums; }
caption { padding: .3rem 0; text-align: left; color: var(--quiet); }
table.narrow { width: auto; min-width: 20rem; }
th, td { padding: .3rem .9rem .3rem 0; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
th { font-weight: 600; overflow-wrap: normal; }
thead th { color: var(--quiet); }
@media (min-width: 40.01rem) { td, th { min-width: 4.5rem; } }
.number { text-align: right; white-space: nowrap; }
td.code { font: .82rem/1.45 ui-monospace, monospace; }
mark { padding: 0 .25rem; background: var(--open-page); color: var(--open); font-weight: 600; }
@media (max-width: 40rem) {
  thead { position: absolute; left: -999rem; }
  tr { display: block; padding: .5rem 0; border-bottom: 1px solid var(--line); }
  td, tbody th { display: block; padding: .1rem 0; border: 0; }
  td[data-name]::before { content: attr(data-name) ": "; color: var(--quiet); font: .85rem/1.4 system-ui, sans-serif; }
  td:empty { display: none; }
  .number { text-align: left; white-space: normal; }
}
@media print {
  html { font-size: 10pt; }
  :root { --page: #fff; --text: #000; --quiet: #444; --line: #bbb; --lead: #fff; --edge: #333; --open: #000;
    --open-page: #fff; }
  body { max-width: none; padding: 0; }
  nav { display: none; }
  h2, caption { break-after: avoid; }
  tr { break-inside: avoid; }
  thead { display: table-header-group; }
}
"""
_CODE = QUERIES | {"SHA-256"}  # columns of texts that are read letter by letter

_FOLDED = 100  # characters of a query that are shown at first


def report_page(title: str, subtitle: str, chapters: Sequence[Chapter]) -> str:
    """Return the chapters as a complete HTML page; the first one is the lead.

    >>> page = report_page("<b>clinic", "", [Chapter("a", "In short", ("1 < 2",))])
    >>> "&lt;b&gt;clinic" in page, "1 &lt; 2" in page, "<script" in page
    (True, True, False)
    """
    links = "".join(f'<li><a href="#{escape(each.id)}">{_text(each.title)}</a></li>' for each in chapters)
    body = (
        f'<header>\n<h1>{_text(title)}</h1>\n<p class="quiet">{_text(subtitle)}</p>\n</header>\n'
        f'<nav aria-label="Chapters"><ul>{links}</ul></nav>\n<main>\n'
        f"{''.join(_chapter(each, lead=not number) for number, each in enumerate(chapters))}</main>\n"
    )
    return html_document(title, _STYLE, body)


def _chapter(chapter: Chapter, *, lead: bool) -> str:
    sentences = "".join(f"<p>{_text(sentence)}</p>\n" for sentence in chapter.sentences)
    items = "".join(f"<li>{_text(note)}</li>\n" for note in chapter.notes)
    notes = f'<ul class="notes">{items}</ul>' if items else ""
    begin = f'<div class="lead">{sentences}</div>\n' if lead else sentences
    return (
        f'<section id="{escape(chapter.id)}">\n<h2>{_text(chapter.title)}</h2>\n'
        f"{begin}{''.join(map(_table, chapter.tables))}{notes}</section>\n"
    )


def _table(table: ContentTable) -> str:
    head = "".join(f'<th scope="col"{_class(name, table)}>{_text(name)}</th>' for name in table.headers)
    rows = "".join(f"<tr>{_row(row, table)}</tr>\n" for row in table.rows)
    caption = f"<caption>{_text(table.caption)}</caption>" if table.caption else ""
    shown = f"<thead><tr>{head}</tr></thead>\n" if any(table.headers) else ""
    narrow = ' class="narrow"' if table.numbers.issuperset(table.headers[1:]) else ""
    return f"<table{narrow}>{caption}{shown}<tbody>\n{rows}</tbody></table>\n"


def _row(row: tuple[str, ...], table: ContentTable) -> str:
    first, *others = zip(table.headers, row, strict=True)
    label = f'<th scope="row"{_class(first[0], table)}>{_text(first[1])}</th>'
    cells = [f"<td{_name(name)}{_class(name, table)}>{_cell(name, cell)}</td>" for name, cell in others]
    return label + "".join(cells)


def _cell(name: str, text: str) -> str:
    """Return the content of a cell; a long query is folded."""
    if name not in QUERIES or len(text) <= _FOLDED:
        return _text(text)
    return f"<details><summary>{_text(text[:_FOLDED])}…</summary>{_text(text)}</details>"


def _name(name: str) -> str:
    return f' data-name="{html_text(name)}"' if name else ""


def _class(name: str, table: ContentTable) -> str:
    if name in table.numbers:
        return ' class="number"'
    return ' class="code"' if name in _CODE else ""


def _text(text: str) -> str:
    """Escape a text, and mark what is left to the owner; lines of a query become blanks."""
    escaped = html_text(" ".join(text.split()))
    return escaped.replace(OWNER_MUST_STATE, f"<mark>{OWNER_MUST_STATE}</mark>")
