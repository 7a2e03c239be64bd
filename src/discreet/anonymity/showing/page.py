"""The report as HTML: one page that fetches nothing and runs nothing. Names and values are data: all are escaped."""

from html import escape
from pathlib import Path

from discreet.anonymity.measuring.risk import Risk
from discreet.anonymity.showing.how import Released
from discreet.anonymity.showing.parts import Grid, Part
from discreet.anonymity.showing.pictures import Bar, bars
from discreet.anonymity.showing.report import clean, report
from discreet.anonymity.showing.shell import whole_page

_STYLE = """
body { margin: 0 auto; padding: 1.2rem 1rem 4rem; max-width: 50rem; background: #fff; color: #222;
  font: 1rem/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; line-height: 1.25; overflow-wrap: anywhere; }
h2 { margin: 2rem 0 .5rem; font-size: 1.15rem; overflow-wrap: anywhere; }
p { max-width: 42rem; overflow-wrap: anywhere; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem 1.2rem .25rem 0; border-bottom: 1px solid #d4d7dc; text-align: right; white-space: nowrap; }
th { font-size: .9rem; }
th:first-child, td:first-child, th:last-child, td:last-child { text-align: left; }
td:last-child { white-space: normal; }
td:last-child, figcaption { color: #667; }
figure { margin: 1rem 0; break-inside: avoid; }
figure svg { display: block; width: 100%; max-width: 42rem; height: auto; }
figcaption { font-size: .9rem; }
.warning { padding: .7rem 1rem; border-left: .3rem solid #b5562c; background: #faf1ec; }
"""


def write_report(result: Risk | Released, path: str | Path) -> Path:
    """Write what `measure` or `attempt` found as a page for people to read; return its path.

    >>> import tempfile, pyarrow as pa, discreet as dc
    >>> risk = dc.anonymity.measure(pa.table({"age": [3, 3, 4]}), "age")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     dc.anonymity.write_report(risk, f"{folder}/risk.html").stat().st_size > 1000
    True
    """
    made = Path(path)
    made.write_text(page(result), encoding="utf-8")
    return made


def page(result: Risk | Released) -> str:
    """Return the report as a whole page.

    >>> import pyarrow as pa
    >>> from discreet.anonymity.measuring.measuring import measure
    >>> made = page(measure(pa.table({"<b>age": [3, 3, 4]}), "<b>age"))
    >>> made.count("<h2>"), "<b>" in made, "&lt;b&gt;age" in made
    (3, False, True)
    """
    return whole_page(clean(report(result).title), _STYLE, fragment(result))


def fragment(result: Risk | Released) -> str:
    """Return the report for a place inside a page, such as a notebook."""
    made = report(result)
    parts = "".join(map(_part, made.parts))
    warning = f'<p class="warning">{_shown(made.not_protected)}</p>\n'
    return f"<h1>{_shown(made.title)}</h1>\n{warning}{parts}"


def _part(part: Part) -> str:
    said = "".join(f"<p>{_shown(sentence)}</p>\n" for sentence in part.sentences)
    table = "" if part.grid is None else _table(part.grid)
    return f"<h2>{_shown(part.title)}</h2>\n{said}{table}{_figure(part)}"


def _table(grid: Grid) -> str:
    names = "".join(f'<th scope="col">{_shown(header)}</th>' for header in grid.headers)
    head = f"<thead><tr>{names}</tr></thead>\n" if any(grid.headers) else ""
    rows = "".join(f"<tr>{''.join(f'<td>{_shown(cell)}</td>' for cell in row)}</tr>\n" for row in grid.rows)
    return f"<table>\n{head}<tbody>\n{rows}</tbody>\n</table>\n"


def _figure(part: Part) -> str:
    if not part.bars:
        return ""
    drawn = bars([Bar(clean(bar.label), bar.share, bar.number) for bar in part.bars], part.caption)
    return f"<figure>\n<figcaption>{_shown(part.caption)}</figcaption>\n{drawn}</figure>\n"


def _shown(text: str) -> str:
    return escape(clean(text))
