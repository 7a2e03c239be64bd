"""The audit of a policy as HTML: one page that fetches nothing and runs nothing. Names are data: all are escaped."""

from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from discreet.anonymity.showing.report import clean
from discreet.anonymity.showing.shell import whole_page
from discreet.audit.policy_result import COVERS, PATH, Finding, PolicyAudit
from discreet.audit.result import confidence_text

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
_WIDTH, _LINE, _BAR = 760, 24, 14
_LABELS, _NUMBERS = 300, 90  # what labels and numbers may take of the width
_LONGEST = 40  # characters of a label that fit
_FARTHEST = 3.0  # a bar ends at so many times its claim


def write_page(audit: PolicyAudit, path: str | Path) -> Path:
    """Write the audit as a page for people to read; return its path.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     made = write_page(PolicyAudit("clinic", "patient", 100, 0.95, (), (), ()), f"{folder}/audit.html")
    ...     "Audit of the policy clinic" in made.read_text()
    True
    """
    made = Path(path)
    made.write_text(page(audit), encoding="utf-8")
    return made


def page(audit: PolicyAudit) -> str:
    """Return the audit as a whole page.

    >>> made = page(PolicyAudit("<b>clinic", "patient", 100, 0.95, (), (), ()))
    >>> "<b>" in made, "&lt;b&gt;clinic" in made
    (False, True)
    """
    return whole_page(clean(f"Audit of the policy {audit.policy}"), _STYLE, fragment(audit))


def fragment(audit: PolicyAudit) -> str:
    """Return the audit for a place inside a page, such as a notebook."""
    kind = "verdict" if audit.holds else "verdict broken"
    return (
        f"<h1>Audit of the policy {_shown(audit.policy)}</h1>\n"
        f'<p class="{kind}">{_shown(audit.verdict)}</p>\n{_list(COVERS)}'
        f"{_measured(audit)}{_checked(audit)}{_not_asked(audit)}{_details(audit)}"
    )


def _measured(audit: PolicyAudit) -> str:
    if not audit.findings:
        return ""
    said = (
        f"Each question was asked {audit.runs:,} times with one planted {audit.protects} in the data, and as often "
        f"without. What the answers prove to be lost is a lower bound; one above its claim breaks it. All bounds hold "
        f"together at {confidence_text(audit.confidence)} confidence. Price used: the share of the question's price "
        "that the planted unit's place takes, by the exact totals."
    )
    head = ("question", "the planted unit", "claim", "lower bound", "price used", "")
    rows = [
        [_cell(line[0]), _cell(each.place), *(_cell(text, "number") for text in line[1:4]), _verdict(each.holds)]
        for each, line in zip(audit.findings, audit.lines(), strict=True)
    ]
    title = "Lower bounds, as shares of their claims"
    figure = f"<figure>\n<figcaption>{title}</figcaption>\n{_bars(audit.findings, title)}</figure>\n"
    note = f"<p>{_shown(audit.note)}</p>\n" if audit.note else ""
    return f"<h2>What was measured</h2>\n<p>{_shown(said)}</p>\n{figure}{_table(head, rows)}{note}"


def _checked(audit: PolicyAudit) -> str:
    rows = [[_cell(check.name), _cell(check.seen), _verdict(check.holds)] for check in audit.checks]
    said = "<p>These need no statistics.</p>\n"
    return f"<h2>What was checked</h2>\n{said}{_table(('claim', 'seen', ''), rows)}" if rows else ""


def _not_asked(audit: PolicyAudit) -> str:
    rows = [[_cell(each.name), _cell(each.reason)] for each in audit.unasked]
    title = "<h2>What the policy does not allow</h2>\n"
    return f"{title}{_table(('question', 'refusal'), rows)}" if rows else ""


def _details(audit: PolicyAudit) -> str:
    rows = [
        [_cell(each.name), f"<td><code>{_shown(each.sql)}</code></td>", _cell(each.event)] for each in audit.findings
    ]
    table = _table(("question", "SQL", "telling event"), rows) if rows else ""
    return f"<h2>How it was done</h2>\n<p>{_shown(PATH)}</p>\n{table}"


def _list(sentences: Iterable[str]) -> str:
    return f"<ul>\n{''.join(f'<li>{_shown(each)}</li>' for each in sentences)}\n</ul>\n"


def _table(head: Sequence[str], rows: Iterable[Iterable[str]]) -> str:
    names = "".join(f'<th scope="col">{_shown(name)}</th>' for name in head)
    body = "".join(f"<tr>{''.join(row)}</tr>\n" for row in rows)
    return f"<table>\n<thead><tr>{names}</tr></thead>\n<tbody>\n{body}</tbody>\n</table>\n"


def _cell(text: str, kind: str = "") -> str:
    return f"<td{f' class={chr(34)}{kind}{chr(34)}' if kind else ''}>{_shown(text)}</td>"


def _verdict(holds: bool) -> str:
    return _cell("stands", "number") if holds else _cell("BROKEN", "bad")


def _bars(findings: Sequence[Finding], title: str) -> str:
    """Draw a bar for each finding, as long as its lower bound, with a line where the claim is."""
    shares = [_share(each) for each in findings]
    unit = (_WIDTH - _LABELS - _NUMBERS) / max(1.1, *shares)
    height = _LINE * len(findings) + 8
    claim = _LABELS + unit
    inside = "".join(
        _bar(each, share, unit, _LINE * place + 8)
        for place, (each, share) in enumerate(zip(findings, shares, strict=True))
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img" '
        f'aria-label="{escape(title)}" font-family="system-ui, sans-serif" font-size="13" fill="currentColor">\n'
        f"<title>{escape(title)}</title>\n{inside}"
        f'<line x1="{claim:.1f}" x2="{claim:.1f}" y1="0" y2="{height}" stroke="#222" stroke-dasharray="4 3"/>\n</svg>\n'
    )


def _bar(finding: Finding, share: float, unit: float, top: int) -> str:
    label = clean(finding.name)
    label = label if len(label) <= _LONGEST else f"{label[: _LONGEST - 1]}…"
    end = _LABELS + max(share * unit, 1)
    # Beside the line of the claim, numbers would be crossed out.
    place = max(end, _LABELS + unit if end + _NUMBERS > _LABELS + unit else end) + 6
    colour = "#5a7d9a" if finding.holds else "#b5302c"
    return (
        f'<text x="{_LABELS - 8}" y="{top + _BAR - 3}" text-anchor="end">{escape(label)}</text>'
        f'<rect x="{_LABELS}" y="{top}" width="{end - _LABELS:.1f}" height="{_BAR}" fill="{colour}"/>'
        f'<text x="{place:.1f}" y="{top + _BAR - 3}">{escape(finding.low_text)}</text>\n'
    )


def _share(finding: Finding) -> float:
    if finding.claim <= 0:
        return 0.0 if finding.holds else _FARTHEST
    return min(finding.low / finding.claim, _FARTHEST)


def _shown(text: str) -> str:
    return escape(clean(text))
