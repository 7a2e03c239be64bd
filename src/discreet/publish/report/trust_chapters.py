"""Chapters on trust: who has to be trusted, what evidence there is, and the hashes by which a copy is checked."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from discreet.publish.manifest import LedgerPoint, text_digest
from discreet.publish.record import ReleaseRecord
from discreet.publish.report.content import Chapter, ContentTable

_TRUST = (
    ("Owner and process", "trusted", "They hold the raw data and choose unit, bounds and budget (central model)."),
    ("Machine and its administrators", "trusted", "Whoever reads its memory, files or backups reads the data."),
    ("Engine", "trusted", "It computes exact totals, which never leave the process without noise."),
    ("Analysts", "not trusted", "Many, colluding, adaptive; they may know every row but one, and may plant rows."),
    ("Readers of the release", "not trusted", "Any knowledge from elsewhere, any computing power, at any time later."),
    (
        "Randomness",
        "assumed",
        "AES-256 in counter mode, seeded by the operating system, is taken to be random.",
    ),
)


@dataclass(frozen=True)
class AuditEvidence:
    """The result of an audit of the policy on dummy data: the verdict, and each claim with its lower bound."""

    verdict: str
    holds: bool
    runs: int
    confidence: str
    rows: tuple[tuple[str, ...], ...]
    checks: tuple[tuple[str, str], ...]
    coverage: tuple[str, ...]


def threat_chapter() -> Chapter:
    """Return whom the guarantee protects from, and who has to be trusted."""
    return Chapter(
        "threats",
        "Threat model",
        (
            (
                "The protection is about what is released: numbers, tables, synthetic rows, refusals and their order. "
                "It is not about who can read the raw data, nor about how long a computation takes."
            ),
        ),
        (ContentTable(("Who or what", "Trust", "Why"), _TRUST),),
        facts={"model": "central", "trust": [dict(zip(("who", "trust", "why"), row, strict=True)) for row in _TRUST]},
    )


def evidence_chapter(version: str, audit: AuditEvidence | None) -> Chapter:
    """Return what supports the guarantee: the software's own evidence, and an audit of this policy."""
    sentences = [
        (
            f"Made with Discreet {version}. Its kernel has a proof beside each claim and tests that check it; both are "
            "in its documentation."
        ),
    ]
    if audit is None:
        sentences.append("This policy was not audited for this report: `discreet report POLICY DIR --audit` does so.")
        return Chapter("evidence", "Evidence", tuple(sentences), facts={"version": version, "audit": None})
    sentences.append(f"Audit of this policy on dummy data, {audit.runs:,} runs of each query: {audit.verdict}")
    tables = (
        ContentTable(("Query", "Claim", "Lower bound", "Cost used", "Verdict"), audit.rows, "Measured lower bounds"),
        ContentTable(("Check", "Verdict"), audit.checks, "Checks without statistics"),
    )
    return Chapter(
        "evidence",
        "Evidence",
        tuple(sentences),
        tuple(table for table in tables if table.rows),
        audit.coverage,
        {"version": version, "audit": vars(audit)},
    )


def hashes_chapter(policy_text: str, record: ReleaseRecord | None, ledger: LedgerPoint | None) -> Chapter:
    """Return the hashes of policy, plan, ledger and released files; never one of the data."""
    rows = [("Policy", text_digest(policy_text))]
    rows += [("Plan", text_digest(record.plan_text))] if record else []
    rows += [(f"Ledger up to row {ledger.row}", ledger.hash)] if ledger else []
    rows += list(record.files) if record else []
    facts: Mapping[str, Any] = {
        "policy": text_digest(policy_text),
        "plan": text_digest(record.plan_text) if record else None,
        "ledger": vars(ledger) if ledger else None,
        "files": dict(record.files) if record else {},
    }
    return Chapter(
        "hashes",
        "Hashes",
        (
            (
                "SHA-256. `discreet report --verify DIR` recomputes those of all files of a release from its "
                "manifest.json: one changed byte fails. A row of the ledger depends on all rows before it."
            ),
        ),
        (ContentTable(("What", "SHA-256"), tuple(rows)),),
        ("There is no hash, size or date of the data: it would disclose whether the data changed.",),
        facts,
    )
