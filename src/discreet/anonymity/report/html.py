"""The anonymity report as an HTML page without scripts or external content; all names and values are escaped."""

from html import escape
from pathlib import Path

from discreet.anonymity.metrics.risk import Risk
from discreet.anonymity.report.bar_chart import ChartBar, draw_bars
from discreet.anonymity.report.contents import MeasuredRelease, build_report, make_printable
from discreet.anonymity.report.sections import ReportTable, RiskSection
from discreet.html_page import html_document

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


def write_report(result: Risk | MeasuredRelease, path: str | Path) -> Path:
    """Write the result of `measure` or `anonymise_and_measure` as an HTML page; return its path.

    >>> import tempfile, pyarrow as pa, discreet as dc
    >>> risk = dc.anonymity.measure(pa.table({"age": [3, 3, 4]}), "age")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     dc.anonymity.write_report(risk, f"{folder}/risk.html").stat().st_size > 1000
    True
    """
    report_path = Path(path)
    report_path.write_text(render_page(result), encoding="utf-8")
    return report_path


def render_page(result: Risk | MeasuredRelease) -> str:
    """Return the report as an HTML page.

    >>> import pyarrow as pa
    >>> from discreet.anonymity.metrics.measurement import measure
    >>> page = render_page(measure(pa.table({"<b>age": [3, 3, 4]}), "<b>age"))
    >>> page.count("<h2>"), "<b>" in page, "&lt;b&gt;age" in page
    (3, False, True)
    """
    return html_document(make_printable(build_report(result).title), _STYLE, render_fragment(result))


def render_fragment(result: Risk | MeasuredRelease) -> str:
    """Return the report as an HTML fragment, for example for a notebook."""
    report = build_report(result)
    sections = "".join(map(_render_section, report.sections))
    warning = f'<p class="warning">{_escape_text(report.not_protected)}</p>\n'
    return f"<h1>{_escape_text(report.title)}</h1>\n{warning}{sections}"


def _render_section(section: RiskSection) -> str:
    paragraphs = "".join(f"<p>{_escape_text(sentence)}</p>\n" for sentence in section.sentences)
    table = "" if section.table is None else _render_table(section.table)
    return f"<h2>{_escape_text(section.title)}</h2>\n{paragraphs}{table}{_render_figure(section)}"


def _render_table(table: ReportTable) -> str:
    names = "".join(f'<th scope="col">{_escape_text(header)}</th>' for header in table.headers)
    head = f"<thead><tr>{names}</tr></thead>\n" if any(table.headers) else ""
    rows = "".join(f"<tr>{''.join(f'<td>{_escape_text(cell)}</td>' for cell in row)}</tr>\n" for row in table.rows)
    return f"<table>\n{head}<tbody>\n{rows}</tbody>\n</table>\n"


def _render_figure(section: RiskSection) -> str:
    if not section.bars:
        return ""
    chart = draw_bars(
        [ChartBar(make_printable(bar.label), bar.share, bar.text) for bar in section.bars], section.caption
    )
    return f"<figure>\n<figcaption>{_escape_text(section.caption)}</figcaption>\n{chart}</figure>\n"


def _escape_text(text: str) -> str:
    return escape(make_printable(text))
