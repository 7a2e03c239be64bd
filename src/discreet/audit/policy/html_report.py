"""The report of a policy audit as one self-contained HTML page; all names are escaped."""

from collections.abc import Iterable
from pathlib import Path

from discreet.audit.policy.result import COVERAGE, PROCEDURE, Finding, PolicyAudit
from discreet.audit.result import confidence_text
from discreet.html_page import (
    REPORT_STYLE,
    ChartBar,
    bar_chart,
    html_cell,
    html_document,
    html_table,
    html_text,
    text_table,
    write_page,
)

_STYLE = f"""{REPORT_STYLE}
table {{ width: 100%; }}
th, td {{ overflow-wrap: anywhere; }}
th, td.number, td.bad {{ overflow-wrap: normal; }}
td.number, td.bad {{ white-space: nowrap; }}
code {{ font-size: .85rem; color: #445; }}
.verdict {{ padding: .7rem 1rem; border-left: .3rem solid #2c7a4b; background: #edf6f0; }}
.verdict.broken {{ border-color: #b5302c; background: #faeceb; }}
td.bad {{ color: #b5302c; font-weight: bold; }}
"""
_MAX_SHARE = 3.0  # bars are cut off at this multiple of the claim


def write_report(audit: PolicyAudit, path: str | Path) -> Path:
    """Write the audit as an HTML page and return its path.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     target = write_report(PolicyAudit("clinic", "patient", 100, 0.95, (), (), ()), f"{folder}/audit.html")
    ...     "Audit of the policy clinic" in target.read_text()
    True
    """
    return write_page(report_html(audit), path)


def report_html(audit: PolicyAudit) -> str:
    """Return the audit as a complete HTML page.

    >>> target = report_html(PolicyAudit("<b>clinic", "patient", 100, 0.95, (), (), ()))
    >>> "<b>" in target, "&lt;b&gt;clinic" in target
    (False, True)
    """
    return html_document(f"Audit of the policy {audit.policy}", _STYLE, fragment_html(audit))


def fragment_html(audit: PolicyAudit) -> str:
    """Return the audit as an HTML fragment, for example for a notebook."""
    kind = "verdict" if audit.holds else "verdict broken"
    return (
        f"<h1>Audit of the policy {html_text(audit.policy)}</h1>\n"
        f'<p class="{kind}">{html_text(audit.verdict)}</p>\n{_bullet_list(COVERAGE)}'
        f"{_findings_section(audit)}{_checks_section(audit)}{_refused_queries_section(audit)}{_procedure_section(audit)}"
    )


def _findings_section(audit: PolicyAudit) -> str:
    if not audit.findings:
        return ""
    introduction = (
        f"Each query was asked {audit.runs:,} times with one planted {audit.protects} in the data, and as often "
        "without. The answers prove a lower bound on the privacy loss; a bound above the claim refutes it. All bounds "
        f"hold simultaneously at a confidence of {confidence_text(audit.confidence)}. Cost used: the share of the "
        "query's cost that this placement of the unit uses, from the exact totals."
    )
    headers = ("query", "planted unit", "claim", "lower bound", "cost used", "verdict")
    rows = [
        [
            _cell(line[0]),
            _cell(finding.placement),
            *(_cell(text, "number") for text in line[1:4]),
            _verdict_cell(finding.holds),
        ]
        for finding, line in zip(audit.findings, audit.summary_rows(), strict=True)
    ]
    title = "Lower bounds relative to the claims (dashed line)"
    chart = bar_chart([_claim_bar(finding) for finding in audit.findings], title, line_at=1)
    figure = f"<figure>\n<figcaption>{title}</figcaption>\n{chart}</figure>\n"
    note = f"<p>{html_text(audit.note)}</p>\n" if audit.note else ""
    return f"<h2>Measurements</h2>\n<p>{html_text(introduction)}</p>\n{figure}{html_table(headers, rows)}{note}"


def _checks_section(audit: PolicyAudit) -> str:
    rows = [[_cell(check.name), _cell(check.coverage), _verdict_cell(check.holds)] for check in audit.checks]
    introduction = "<p>These checks involve no statistics.</p>\n"
    headers = ("claim", "coverage or violation", "verdict")
    return f"<h2>Deterministic checks</h2>\n{introduction}{html_table(headers, rows)}" if rows else ""


def _refused_queries_section(audit: PolicyAudit) -> str:
    rows = [(query.name, query.reason) for query in audit.refused_queries]
    title = "<h2>Queries that the policy refuses</h2>\n"
    return f"{title}{text_table(('query', 'refusal'), rows)}" if rows else ""


def _procedure_section(audit: PolicyAudit) -> str:
    rows = [
        [_cell(finding.name), html_cell(f"<code>{html_text(finding.sql)}</code>"), _cell(finding.event)]
        for finding in audit.findings
    ]
    table = html_table(("query", "SQL", "distinguishing event"), rows) if rows else ""
    return f"<h2>Method</h2>\n<p>{html_text(PROCEDURE)}</p>\n{table}"


def _bullet_list(sentences: Iterable[str]) -> str:
    return f"<ul>\n{''.join(f'<li>{html_text(sentence)}</li>' for sentence in sentences)}\n</ul>\n"


def _cell(text: str, kind: str = "") -> str:
    return html_cell(html_text(text), kind)


def _verdict_cell(holds: bool) -> str:
    return _cell("not refuted", "number") if holds else _cell("REFUTED", "bad")


def _claim_bar(finding: Finding) -> ChartBar:
    colour = "#5a7d9a" if finding.holds else "#b5302c"
    return ChartBar(finding.name, _share_of_claim(finding), finding.lower_bound_text, colour)


def _share_of_claim(finding: Finding) -> float:
    if finding.claim <= 0:
        return 0.0 if finding.holds else _MAX_SHARE
    return min(finding.lower_bound / finding.claim, _MAX_SHARE)
