"""The anonymity report as an HTML page without scripts or external content; all names and values are escaped."""

from pathlib import Path

from discreet.anonymity.metrics.risk import Risk
from discreet.anonymity.report.contents import MeasuredRelease, build_report
from discreet.anonymity.report.sections import RiskSection
from discreet.html_page import (
    REPORT_STYLE,
    ChartBar,
    bar_chart,
    html_document,
    html_text,
    text_table,
    write_page,
)

_STYLE = f"""{REPORT_STYLE}
td, th {{ text-align: right; white-space: nowrap; }}
th:first-child, td:first-child, th:last-child, td:last-child {{ text-align: left; }}
td:last-child {{ white-space: normal; color: #667; }}
.warning {{ padding: .7rem 1rem; border-left: .3rem solid #b5562c; background: #faf1ec; }}
"""


def write_report(result: Risk | MeasuredRelease, path: str | Path) -> Path:
    """Write the result of `measure` or `anonymise_and_measure` as an HTML page; return its path.

    >>> import tempfile, pyarrow as pa, discreet as dc
    >>> risk = dc.anonymity.measure(pa.table({"age": [3, 3, 4]}), "age")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     dc.anonymity.write_report(risk, f"{folder}/risk.html").stat().st_size > 1000
    True
    """
    return write_page(render_page(result), path)


def render_page(result: Risk | MeasuredRelease) -> str:
    """Return the report as an HTML page.

    >>> import pyarrow as pa
    >>> from discreet.anonymity.metrics.measurement import measure
    >>> page = render_page(measure(pa.table({"<b>age": [3, 3, 4]}), "<b>age"))
    >>> page.count("<h2>"), "<b>" in page, "&lt;b&gt;age" in page
    (3, False, True)
    """
    return html_document(build_report(result).title, _STYLE, render_fragment(result))


def render_fragment(result: Risk | MeasuredRelease) -> str:
    """Return the report as an HTML fragment, for example for a notebook."""
    report = build_report(result)
    sections = "".join(map(_render_section, report.sections))
    warning = f'<p class="warning">{html_text(report.not_protected)}</p>\n'
    return f"<h1>{html_text(report.title)}</h1>\n{warning}{sections}"


def _render_section(section: RiskSection) -> str:
    paragraphs = "".join(f"<p>{html_text(sentence)}</p>\n" for sentence in section.sentences)
    table = ""
    if section.table is not None:
        table = text_table(section.table.headers, section.table.rows)
    return f"<h2>{html_text(section.title)}</h2>\n{paragraphs}{table}{_render_figure(section)}"


def _render_figure(section: RiskSection) -> str:
    if not section.bars:
        return ""
    chart = bar_chart([ChartBar(bar.label, bar.share, bar.text) for bar in section.bars], section.caption)
    return f"<figure>\n<figcaption>{html_text(section.caption)}</figcaption>\n{chart}</figure>\n"
