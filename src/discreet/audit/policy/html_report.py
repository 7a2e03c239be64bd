"""The report of a policy audit as one self-contained HTML page; all names are escaped."""

from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from discreet.anonymity.report.contents import make_printable
from discreet.audit.policy.result import COVERAGE, PROCEDURE, Finding, PolicyAudit
from discreet.audit.result import confidence_text
from discreet.html_page import html_document

_STYLE = """
body { margin: 0 auto; padding: 1.2rem 1rem 4rem; max-width: 60rem; background: #fff; color: #222;
  font: 1rem/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; line-height: 1.25; overflow-wrap: anywhere; }
h2 { margin: 2rem 0 .5rem; font-size: 1.15rem; }
p, li { max-width: 46rem; overflow-wrap: anywhere; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; width: 100%; }
th, td { padding: .3rem 1rem .3rem 0; border-bottom: 1px solid #d4d7dc; text-align: left; vertical-align: top;
  overflow-wrap: anywhere; }
th { font-size: .9rem; overflow-wrap: normal; }
td.number, td.bad { white-space: nowrap; overflow-wrap: normal; }
code { font-size: .85rem; color: #445; }
figure { margin: 1rem 0; }
figure svg { display: block; width: 100%; height: auto; }
figcaption, small { color: #667; font-size: .9rem; }
.verdict { padding: .7rem 1rem; border-left: .3rem solid #2c7a4b; background: #edf6f0; }
.verdict.broken { border-color: #b5302c; background: #faeceb; }
td.bad { color: #b5302c; font-weight: bold; }
"""
_WIDTH, _LINE_HEIGHT, _BAR_HEIGHT = 760, 24, 14
_LABEL_WIDTH, _NUMBER_WIDTH = 300, 90  # pixels reserved for labels and numbers
_MAX_LABEL_LENGTH = 40  # characters
_MAX_SHARE = 3.0  # bars are cut off at this multiple of the claim


def write_report(audit: PolicyAudit, path: str | Path) -> Path:
    """Write the audit as an HTML page and return its path.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     target = write_report(PolicyAudit("clinic", "patient", 100, 0.95, (), (), ()), f"{folder}/audit.html")
    ...     "Audit of the policy clinic" in target.read_text()
    True
    """
    target = Path(path)
    target.write_text(report_html(audit), encoding="utf-8")
    return target


def report_html(audit: PolicyAudit) -> str:
    """Return the audit as a complete HTML page.

    >>> target = report_html(PolicyAudit("<b>clinic", "patient", 100, 0.95, (), (), ()))
    >>> "<b>" in target, "&lt;b&gt;clinic" in target
    (False, True)
    """
    return html_document(make_printable(f"Audit of the policy {audit.policy}"), _STYLE, fragment_html(audit))


def fragment_html(audit: PolicyAudit) -> str:
    """Return the audit as an HTML fragment, for example for a notebook."""
    kind = "verdict" if audit.holds else "verdict broken"
    return (
        f"<h1>Audit of the policy {_escape(audit.policy)}</h1>\n"
        f'<p class="{kind}">{_escape(audit.verdict)}</p>\n{_bullet_list(COVERAGE)}'
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
    figure = f"<figure>\n<figcaption>{title}</figcaption>\n{_bar_chart(audit.findings, title)}</figure>\n"
    note = f"<p>{_escape(audit.note)}</p>\n" if audit.note else ""
    return f"<h2>Measurements</h2>\n<p>{_escape(introduction)}</p>\n{figure}{_html_table(headers, rows)}{note}"


def _checks_section(audit: PolicyAudit) -> str:
    rows = [[_cell(check.name), _cell(check.coverage), _verdict_cell(check.holds)] for check in audit.checks]
    introduction = "<p>These checks involve no statistics.</p>\n"
    headers = ("claim", "coverage or violation", "verdict")
    return f"<h2>Deterministic checks</h2>\n{introduction}{_html_table(headers, rows)}" if rows else ""


def _refused_queries_section(audit: PolicyAudit) -> str:
    rows = [[_cell(query.name), _cell(query.reason)] for query in audit.refused_queries]
    title = "<h2>Queries that the policy refuses</h2>\n"
    return f"{title}{_html_table(('query', 'refusal'), rows)}" if rows else ""


def _procedure_section(audit: PolicyAudit) -> str:
    rows = [
        [_cell(finding.name), f"<td><code>{_escape(finding.sql)}</code></td>", _cell(finding.event)]
        for finding in audit.findings
    ]
    table = _html_table(("query", "SQL", "distinguishing event"), rows) if rows else ""
    return f"<h2>Method</h2>\n<p>{_escape(PROCEDURE)}</p>\n{table}"


def _bullet_list(sentences: Iterable[str]) -> str:
    return f"<ul>\n{''.join(f'<li>{_escape(sentence)}</li>' for sentence in sentences)}\n</ul>\n"


def _html_table(headers: Sequence[str], rows: Iterable[Iterable[str]]) -> str:
    names = "".join(f'<th scope="col">{_escape(name)}</th>' for name in headers)
    body = "".join(f"<tr>{''.join(row)}</tr>\n" for row in rows)
    return f"<table>\n<thead><tr>{names}</tr></thead>\n<tbody>\n{body}</tbody>\n</table>\n"


def _cell(text: str, kind: str = "") -> str:
    return f"<td{f' class={chr(34)}{kind}{chr(34)}' if kind else ''}>{_escape(text)}</td>"


def _verdict_cell(holds: bool) -> str:
    return _cell("not refuted", "number") if holds else _cell("REFUTED", "bad")


def _bar_chart(findings: Sequence[Finding], title: str) -> str:
    """Draw a bar for each lower bound, with a line at the claim."""
    shares = [_share_of_claim(finding) for finding in findings]
    unit = (_WIDTH - _LABEL_WIDTH - _NUMBER_WIDTH) / max(1.1, *shares)
    height = _LINE_HEIGHT * len(findings) + 8
    claim = _LABEL_WIDTH + unit
    bars = "".join(
        _bar(finding, share, unit, _LINE_HEIGHT * row + 8)
        for row, (finding, share) in enumerate(zip(findings, shares, strict=True))
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img" '
        f'aria-label="{escape(title)}" font-family="system-ui, sans-serif" font-size="13" fill="currentColor">\n'
        f"<title>{escape(title)}</title>\n{bars}"
        f'<line x1="{claim:.1f}" x2="{claim:.1f}" y1="0" y2="{height}" stroke="#222" stroke-dasharray="4 3"/>\n</svg>\n'
    )


def _bar(finding: Finding, share: float, unit: float, top: int) -> str:
    label = make_printable(finding.name)
    label = label if len(label) <= _MAX_LABEL_LENGTH else f"{label[: _MAX_LABEL_LENGTH - 1]}…"
    end = _LABEL_WIDTH + max(share * unit, 1)
    # Keep numbers clear of the dashed line.
    text_x = max(end, _LABEL_WIDTH + unit if end + _NUMBER_WIDTH > _LABEL_WIDTH + unit else end) + 6
    colour = "#5a7d9a" if finding.holds else "#b5302c"
    return (
        f'<text x="{_LABEL_WIDTH - 8}" y="{top + _BAR_HEIGHT - 3}" text-anchor="end">{escape(label)}</text>'
        f'<rect x="{_LABEL_WIDTH}" y="{top}" width="{end - _LABEL_WIDTH:.1f}" height="{_BAR_HEIGHT}" fill="{colour}"/>'
        f'<text x="{text_x:.1f}" y="{top + _BAR_HEIGHT - 3}">{escape(finding.lower_bound_text)}</text>\n'
    )


def _share_of_claim(finding: Finding) -> float:
    if finding.claim <= 0:
        return 0.0 if finding.holds else _MAX_SHARE
    return min(finding.lower_bound / finding.claim, _MAX_SHARE)


def _escape(text: str) -> str:
    return escape(make_printable(text))
