"""The result of a policy audit, as text and as one self-contained HTML page on which all names are escaped."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

from discreet.audit.arguments import parse_confidence
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
from discreet.kernel.numbers import as_integer, as_positive

_MIN_RUNS = 100  # fewer runs prove nothing
_MAX_EPSILON = 100  # of one query; a larger claim cannot be refuted
COVERAGE = (
    "An audit can refute a guarantee, but never prove it: a leak that it did not find may still exist.",
    "It covers the queries, planted units and events listed here, on dummy data that fits the policy.",
    "It does not cover other queries, timing, or access to the files and the ledger.",
    "It cannot judge whether the policy declares the right unit and the right bounds.",
)
NO_BOUND = "none above 0"
PROCEDURE = (
    "Every query is parsed, planned, charged and released by the code that serves analysts, with DuckDB on Parquet "
    "files, the kernel's noise, and ledgers in memory. The exact totals are read once for each database, then released "
    "repeatedly with fresh noise."
)


def parse_arguments(runs: Any, epsilon: Any, confidence: Any) -> tuple[int, Fraction, float]:
    """Return the number of runs, epsilon and the confidence level; ValueError if one of them is invalid.

    >>> parse_arguments(2000, "1/2", 0.95)
    (2000, Fraction(1, 2), 0.95)
    """
    count, cost = as_integer(runs, "runs", _MIN_RUNS), as_positive(epsilon, "epsilon")
    if cost > _MAX_EPSILON:
        raise ValueError(f"epsilon must be at most {_MAX_EPSILON}, not {epsilon}")
    return count, cost, parse_confidence(confidence)


@dataclass(frozen=True)
class Finding:
    """A claim about one query, and the lower bound that its answers prove.

    `parameter` is epsilon (at a delta, if there is one), rho (in budgets with a delta), or delta: the probability that
    a group which only one unit has is released. `cost_used` is the share of the cost that the planted unit uses,
    computed from the exact totals.
    """

    name: str
    sql: str
    placement: str
    parameter: Literal["epsilon", "rho", "delta"]
    claim: float
    delta: float
    lower_bound: float
    cost_used: float
    event: str

    @property
    def holds(self) -> bool:
        """Whether the claim is not refuted."""
        return self.lower_bound <= self.claim

    @property
    def claim_text(self) -> str:
        """The claim as a short text."""
        return f"{_symbol(self.parameter)} {format_short(self.claim)}" + (f" at δ {self.delta:g}" if self.delta else "")

    @property
    def lower_bound_text(self) -> str:
        """The lower bound as a short text."""
        return f"{_symbol(self.parameter)} ≥ {format_short(self.lower_bound)}" if self.lower_bound > 0 else NO_BOUND


@dataclass(frozen=True)
class CheckResult:
    """A deterministic check: whether it holds, and what it covered or which violations it found."""

    name: str
    holds: bool
    coverage: str


@dataclass(frozen=True)
class RefusedQuery:
    """A query that the policy does not allow, with the refusal."""

    name: str
    reason: str


@dataclass(frozen=True)
class PolicyAudit:
    """The result of a policy audit; `holds` unless a claim is refuted.

    >>> check = CheckResult("The ledger verifies", False, "row 3 was changed")
    >>> PolicyAudit("clinic", "patient", 100, 0.95, (), (check,), ()).verdict
    '1 of 1 claims refuted: The ledger verifies.'
    """

    policy: str
    protects: str
    runs: int
    confidence: float
    findings: tuple[Finding, ...]
    checks: tuple[CheckResult, ...]
    refused_queries: tuple[RefusedQuery, ...]

    @property
    def holds(self) -> bool:
        """Whether no claim is refuted."""
        return not self.refuted_claims

    @property
    def refuted_claims(self) -> tuple[str, ...]:
        """Names of the refuted claims."""
        claims: Sequence[Finding | CheckResult] = (*self.findings, *self.checks)
        return tuple(claim.name for claim in claims if not claim.holds)

    @property
    def verdict(self) -> str:
        """The verdict in one sentence."""
        count = len(self.findings) + len(self.checks)
        if self.holds:
            return f"None of {count} claims was refuted (confidence {confidence_text(self.confidence)})."
        return f"{len(self.refuted_claims)} of {count} claims refuted: {'; '.join(self.refuted_claims)}."

    def summary_rows(self) -> list[tuple[str, ...]]:
        """Return one row per finding: name, claim, lower bound, share of the cost used, verdict."""
        return [
            (
                finding.name,
                finding.claim_text,
                finding.lower_bound_text,
                f"{100 * finding.cost_used:.0f} %" if finding.parameter != "delta" else "",
                "not refuted" if finding.holds else "REFUTED",
            )
            for finding in self.findings
        ]

    @property
    def note(self) -> str | None:
        """Explanation of "none above 0", if a finding has no lower bound."""
        if all(finding.lower_bound > 0 for finding in self.findings):
            return None
        return f"{NO_BOUND}: the sample size ({self.runs:,} runs on each database) proves no lower bound above 0."

    def __str__(self) -> str:
        rows = [" | ".join(line) for line in self.summary_rows()]
        rows += [f"{check.name}: {'passed' if check.holds else 'FAILED'} ({check.coverage})" for check in self.checks]
        return "\n".join([*rows, *([self.note] if self.note else []), self.verdict])

    def _repr_html_(self) -> str:
        from discreet.audit.policy.result import fragment_html  # noqa: PLC0415 - circular import

        return fragment_html(self)


def format_short(number: float) -> str:
    """Format a number with three significant digits.

    >>> format_short(0.99871), format_short(1e-9), format_short(math.inf)
    ('0.999', '1e-09', '∞')
    """
    return "∞" if number == math.inf else f"{number:.3g}"


def _symbol(parameter: str) -> str:
    return {"epsilon": "ε", "rho": "ρ", "delta": "δ"}[parameter]  # noqa: RUF001 - rho


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
