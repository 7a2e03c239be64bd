"""A report as plain text, for a terminal."""

import textwrap
from collections.abc import Iterator, Sequence

from discreet.html_page import make_printable
from discreet.publish.report.content import QUERIES, Chapter, ContentTable

_LONGEST = 400  # characters of a cell


def report_text(title: str, chapters: Sequence[Chapter], width: int = 100) -> str:
    """Return the chapters as lines of at most `width` characters, unless a word is longer.

    >>> print(report_text("Report on clinic", [Chapter("a", "In short", ("Nothing was charged.",))]), end="")
    Report on clinic
    <BLANKLINE>
    IN SHORT
    Nothing was charged.
    """
    lines = [make_printable(title)]
    for chapter in chapters:
        lines += ["", make_printable(chapter.title).upper(), *_chapter_lines(chapter, width)]
    return "".join(f"{line}\n" for line in lines)


def _chapter_lines(chapter: Chapter, width: int) -> Iterator[str]:
    for sentence in chapter.sentences:
        yield from _wrapped(sentence, width)
    for table in chapter.tables:
        yield ""
        yield from _table_lines(table, width)
    if chapter.notes:
        yield ""
    for note in chapter.notes:
        yield from _wrapped(note, width)


def _table_lines(table: ContentTable, width: int) -> Iterator[str]:
    """Yield one paragraph per row: its first cell, then the others with their headers."""
    if table.caption:
        yield from _wrapped(f"{table.caption}:", width)
    for first, *others in table.rows:
        cells = [
            f"{name}: {_shortened(cell) if name in QUERIES else cell}" if name else cell
            for name, cell in zip(table.headers[1:], others, strict=True)
            if cell
        ]
        yield from _wrapped(f"{first}: {'; '.join(cells)}", width, "  ")


def _shortened(text: str) -> str:
    """Return a text, such as a query, of which report.json has all."""
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _wrapped(text: str, width: int, indent: str = "") -> Iterator[str]:
    printable = make_printable(" ".join(text.split()))
    yield from textwrap.wrap(
        printable,
        width,
        initial_indent=indent,
        subsequent_indent=f"{indent}  " if indent else "",
        break_long_words=False,
    ) or [indent]
