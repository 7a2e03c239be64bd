"""The result of a policy audit."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from discreet.audit.arguments import parse_confidence
from discreet.audit.result import confidence_text
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
        from discreet.audit.policy.html_report import fragment_html  # noqa: PLC0415 - circular import

        return fragment_html(self)


def format_short(number: float) -> str:
    """Format a number with three significant digits.

    >>> format_short(0.99871), format_short(1e-9), format_short(math.inf)
    ('0.999', '1e-09', '∞')
    """
    return "∞" if number == math.inf else f"{number:.3g}"


def _symbol(parameter: str) -> str:
    return {"epsilon": "ε", "rho": "ρ", "delta": "δ"}[parameter]  # noqa: RUF001 - rho
