"""The anonymity report, rendered in the terminal and as an HTML page without scripts; all names are escaped."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from discreet.anonymity.metrics.risk import Risk
from discreet.anonymity.report.sections import (
    RiskSection,
    attribute_sections,
    class_section,
    linkage_section,
    loss_sections,
    uniqueness_before_section,
    uniqueness_section,
)
from discreet.html_page import (
    REPORT_STYLE,
    ChartBar,
    bar_chart,
    html_document,
    html_text,
    text_table,
    write_page,
)

if TYPE_CHECKING:
    from discreet.anonymity.generalisation.anonymisation import AnonymisationResult


def describe_recoding(result: "AnonymisationResult") -> Iterator[str]:
    """Yield sentences on the released rows, the levels and the hierarchies."""
    yield f"{result.after.rows:,} of {result.before.rows:,} rows were released, {result.suppressed:,} suppressed."
    levels = ", ".join(f"{name} {level}" for name, level in (result.levels or {}).items())
    if levels:
        yield f"Generalisation levels: {levels} ({result.optimality})."
    yield from describe_hierarchies(result)


def describe_hierarchies(result: "AnonymisationResult") -> Iterator[str]:
    """Yield sentences on which columns have a hierarchy, and what that means for the others."""
    has_levels = result.levels is not None
    listed = ", ".join(f"{name} ({tree})" for name, tree in result.hierarchies.items())
    if listed:
        restriction = "" if has_levels else "; only its labels are used, so ranges or sets might lose less information"
        yield f"Generalised by a hierarchy: {listed}{restriction}."
    columns_without = [name for name in result.before.quasi if name not in result.hierarchies]
    if has_levels and columns_without:
        yield f"No hierarchy for {', '.join(columns_without)}: the column is either kept or replaced by '*'."


@dataclass(frozen=True)
class AnonymityReport:
    """A title, the sections, and the attacks that remain possible."""

    title: str
    sections: tuple[RiskSection, ...]
    not_protected: str


def build_report(result: "Risk | AnonymisationResult") -> AnonymityReport:
    """Return the report on a measured table, or on a table and its release.

    >>> import pyarrow as pa
    >>> from discreet.anonymity.metrics.measurement import measure
    >>> table = pa.table({"age": ["3*", "3*", "4*"], "ill": ["flu", "flu", "no"]})
    >>> report = build_report(measure(table, "age", "ill"))
    >>> report.title
    '3 rows, quasi-identifiers: age'
    >>> [section.title for section in report.sections]
    ['Equivalence classes', 'Attribute disclosure: ill', 'Identity disclosure', 'Uniqueness']
    >>> report.sections[1].sentences
    ('ill has a single value in 2 classes: rows 1-3.',)
    """
    if isinstance(result, Risk):
        first_risk, sections = (
            result,
            [*_risk_sections({"": result}), uniqueness_section(result), *loss_sections(result)],
        )
    else:
        first_risk, risks = result.before, {"before": result.before, "after": result.after}
        recoding_section = RiskSection(f"Generalisation ({result.method})", tuple(describe_recoding(result)))
        sections = [
            recoding_section,
            *_risk_sections(risks),
            uniqueness_before_section(result.before, result.after),
            *loss_sections(result.after),
        ]
    return AnonymityReport(
        f"{first_risk.rows:,} rows, quasi-identifiers: {', '.join(first_risk.quasi)}",
        tuple(sections),
        result.not_protected,
    )


def _risk_sections(risks: Mapping[str, Risk]) -> Iterator[RiskSection]:
    yield class_section(risks)
    yield from attribute_sections(risks)
    yield linkage_section(risks)


_STYLE = f"""{REPORT_STYLE}
td, th {{ text-align: right; white-space: nowrap; }}
th:first-child, td:first-child, th:last-child, td:last-child {{ text-align: left; }}
td:last-child {{ white-space: normal; color: #667; }}
.warning {{ padding: .7rem 1rem; border-left: .3rem solid #b5562c; background: #faf1ec; }}
"""


def write_report(result: "Risk | AnonymisationResult", path: str | Path) -> Path:
    """Write the result of `measure` or `anonymise_and_measure` as an HTML page; return its path.

    >>> import tempfile, pyarrow as pa, discreet as dc
    >>> risk = dc.anonymity.measure(pa.table({"age": [3, 3, 4]}), "age")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     dc.anonymity.write_report(risk, f"{folder}/risk.html").stat().st_size > 1000
    True
    """
    return write_page(render_page(result), path)


def render_page(result: "Risk | AnonymisationResult") -> str:
    """Return the report as an HTML page.

    >>> import pyarrow as pa
    >>> from discreet.anonymity.metrics.measurement import measure
    >>> page = render_page(measure(pa.table({"<b>age": [3, 3, 4]}), "<b>age"))
    >>> page.count("<h2>"), "<b>" in page, "&lt;b&gt;age" in page
    (3, False, True)
    """
    return html_document(build_report(result).title, _STYLE, render_fragment(result))


def render_fragment(result: "Risk | AnonymisationResult") -> str:
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
