"""Untrusted text on terminals and in HTML pages: printable, escaped, in tables and bar charts, without scripts."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

NO_EXTERNAL_CONTENT = "default-src 'none'; style-src 'unsafe-inline'"
INLINE_IMAGES_ONLY = f"{NO_EXTERNAL_CONTENT}; img-src data:"
REPORT_STYLE = """
body { margin: 0 auto; padding: 1.2rem 1rem 4rem; max-width: 60rem; background: #fff; color: #222;
  font: 1rem/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; line-height: 1.25; }
h2 { margin: 2rem 0 .5rem; font-size: 1.15rem; }
h1, h2, p, li { overflow-wrap: anywhere; }
p, li { max-width: 46rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem 1rem .3rem 0; border-bottom: 1px solid #d4d7dc; text-align: left; vertical-align: top; }
th { font-size: .9rem; }
figure { margin: 1rem 0; break-inside: avoid; }
figure svg { display: block; width: 100%; max-width: 48rem; height: auto; }
figcaption, small, .note { color: #667; font-size: .9rem; }
"""
_WIDTH, _LINE_HEIGHT, _BAR_HEIGHT = 760, 24, 14
_LABEL_WIDTH, _NUMBER_WIDTH = 300, 90  # pixels
_MAX_LABEL_LENGTH = 40  # characters


def make_printable(text: str) -> str:
    r"""Replace control characters, because names and values are untrusted input.

    >>> make_printable("age\x1b[31m")
    'age�[31m'
    """
    return text if text.isprintable() else "".join(letter if letter.isprintable() else "�" for letter in text)


def html_text(text: str) -> str:
    r"""Return a text for an HTML page, printable and escaped.

    >>> html_text("<b>\x1b")
    '&lt;b&gt;�'
    """
    return escape(make_printable(text))


def html_document(title: str, style: str, body: str, *, content_policy: str = NO_EXTERNAL_CONTENT) -> str:
    """Return an HTML document; the title is escaped here, while the body must be escaped already.

    >>> "<title>a &amp; b</title>" in html_document("a & b", "", "<p>c</p>")
    True
    """
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8"/>\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1"/>\n'
        f'<meta http-equiv="Content-Security-Policy" content="{content_policy}"/>\n'
        f"<title>{html_text(title)}</title>\n<style>{style}</style>\n</head>\n<body>\n{body}</body>\n</html>\n"
    )


def html_cell(content: str, kind: str = "") -> str:
    """Return a cell of a table with this content, which must be escaped already, and this class."""
    return f'<td class="{kind}">{content}</td>' if kind else f"<td>{content}</td>"


def html_table(headers: Sequence[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a table of cells; the headers are escaped here, and left out if all are empty.

    >>> html_table(["age"], [[html_cell("30")]]).replace(chr(10), "")
    '<table><thead><tr><th scope="col">age</th></tr></thead><tbody><tr><td>30</td></tr></tbody></table>'
    """
    names = "".join(f'<th scope="col">{html_text(name)}</th>' for name in headers)
    head = f"<thead><tr>{names}</tr></thead>\n" if any(headers) else ""
    body = "".join(f"<tr>{''.join(row)}</tr>\n" for row in rows)
    return f"<table>\n{head}<tbody>\n{body}</tbody></table>\n"


def text_table(headers: Sequence[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a table of texts, which are escaped here.

    >>> text_table((), [["<b>", "1"]]).replace(chr(10), "")
    '<table><tbody><tr><td>&lt;b&gt;</td><td>1</td></tr></tbody></table>'
    """
    return html_table(headers, ((html_cell(html_text(cell)) for cell in row) for row in rows))


def write_page(page: str, path: str | Path) -> Path:
    """Write a page and return its path."""
    target = Path(path)
    target.write_text(page, encoding="utf-8")
    return target


@dataclass(frozen=True)
class ChartBar:
    """A label, the length of the bar as a share, the text beside it, and its colour."""

    label: str
    share: float
    text: str
    colour: str = "#b5562c"


def bar_chart(bars: Sequence[ChartBar], title: str, *, line_at: float = 0.0) -> str:
    """Return a horizontal bar chart as inline SVG, with a dashed line at a share; the title is for screen readers.

    >>> bar_chart([ChartBar("age & sex", 0.5, "50 %")], "Unique rows").count("<rect")
    1
    """
    longest = max(1.1 * line_at, *(bar.share for bar in bars)) if line_at else 1.0
    unit, height = (_WIDTH - _LABEL_WIDTH - _NUMBER_WIDTH) / longest, _LINE_HEIGHT * len(bars) + 8
    line = _LABEL_WIDTH + line_at * unit
    shown = "".join(_draw_bar(bar, unit, _LINE_HEIGHT * row + 8, line) for row, bar in enumerate(bars))
    dashes = f'<line x1="{line:.1f}" x2="{line:.1f}" y1="0" y2="{height}" stroke="#222" stroke-dasharray="4 3"/>\n'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img" '
        f'aria-label="{html_text(title)}" font-family="system-ui, sans-serif" font-size="13" fill="currentColor">\n'
        f"<title>{html_text(title)}</title>\n{shown}{dashes if line_at else ''}</svg>\n"
    )


def _draw_bar(bar: ChartBar, unit: float, top: int, line: float) -> str:
    label = bar.label if len(bar.label) <= _MAX_LABEL_LENGTH else f"{bar.label[: _MAX_LABEL_LENGTH - 1]}…"
    width, middle = min(max(bar.share, 0.0) * unit, _WIDTH - _LABEL_WIDTH - _NUMBER_WIDTH), top + _BAR_HEIGHT - 3
    end = _LABEL_WIDTH + width
    text_x = max(end, line if line < end + _NUMBER_WIDTH else end) + 6  # keep numbers clear of the dashed line
    return (
        f'<text x="{_LABEL_WIDTH - 8}" y="{middle}" text-anchor="end">{html_text(label)}</text>'
        f'<rect x="{_LABEL_WIDTH}" y="{top}" width="{width:.1f}" height="{_BAR_HEIGHT}" fill="{bar.colour}"/>'
        f'<text x="{text_x:.1f}" y="{middle}">{html_text(bar.text)}</text>\n'
    )
