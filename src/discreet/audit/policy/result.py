"""The result of a policy audit."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from discreet.audit.arguments import parse_confidence
from discreet.audit.result import confidence_text
from discreet.kernel.numbers import as_integer, as_positive

_MIN_RUNS = 100  # fewer prove nothing
_MAX_EPSILON = 100  # of a question: beyond it nothing is promised that could be broken
COVERAGE = (
    "An audit can refute a promise, never prove it: what it did not find may still be there.",
    "It covers the questions, the planted units and the events listed here, on made-up data of the policy's shape.",
    "It does not cover other questions, the time that answers take, or who may read the files and the ledger.",
    "Nor does it know whether the policy names the right unit and the right bounds.",
)
NO_BOUND = "none above 0"
PROCEDURE = (
    "Every question is read, priced, paid for and released by the code that serves analysts: the curator's reader and "
    "prices, DuckDB on Parquet files, the kernel's noise, and ledgers in memory. The exact totals are read once for "
    "each data set, then released again and again with fresh noise."
)


def parse_arguments(runs: Any, epsilon: Any, confidence: Any) -> tuple[int, Fraction, float]:
    """Return how often to ask, for which price, and how sure to be; ValueError says what is wrong with them.

    >>> parse_arguments(2000, "1/2", 0.95)
    (2000, Fraction(1, 2), 0.95)
    """
    count, cost = as_integer(runs, "runs", _MIN_RUNS), as_positive(epsilon, "epsilon")
    if cost > _MAX_EPSILON:
        raise ValueError(f"epsilon must be at most {_MAX_EPSILON}, not {epsilon}")
    return count, cost, parse_confidence(confidence)


@dataclass(frozen=True)
class Finding:
    """What was measured about one question: the claim, and what its answers prove to be lost at least.

    `parameter` says of what: an epsilon (at a delta, if there is one), a rho, which is what budgets with a delta
    promise, or the delta with which a group is shown that only one unit has. `cost_used` is the share of the price that the
    planted unit uses up, by the exact totals.
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
        """Whether the claim still stands."""
        return self.lower_bound <= self.claim

    @property
    def claim_text(self) -> str:
        """The claim in short."""
        return f"{_symbol(self.parameter)} {format_short(self.claim)}" + (f" at δ {self.delta:g}" if self.delta else "")

    @property
    def lower_bound_text(self) -> str:
        """The lower bound in short."""
        return f"{_symbol(self.parameter)} ≥ {format_short(self.lower_bound)}" if self.lower_bound > 0 else NO_BOUND


@dataclass(frozen=True)
class CheckResult:
    """Something that needs no statistics: whether it holds, and what was seen."""

    name: str
    holds: bool
    coverage: str


@dataclass(frozen=True)
class RefusedQuery:
    """A question that the policy does not allow, with the refusal."""

    name: str
    reason: str


@dataclass(frozen=True)
class PolicyAudit:
    """What the audit of a policy found; `holds` unless a claim is broken.

    >>> refuted_claims = CheckResult("The ledger verifies", False, "row 3 was changed")
    >>> PolicyAudit("clinic", "patient", 100, 0.95, (), (refuted_claims,), ()).verdict
    '1 of 1 claims broken: The ledger verifies.'
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
        """Whether every claim still stands."""
        return not self.refuted_claims

    @property
    def refuted_claims(self) -> tuple[str, ...]:
        """The names of the claims that do not stand."""
        claims: Sequence[Finding | CheckResult] = (*self.findings, *self.checks)
        return tuple(claim.name for claim in claims if not claim.holds)

    @property
    def verdict(self) -> str:
        """One sentence on all of it."""
        count = len(self.findings) + len(self.checks)
        if self.holds:
            return f"Nothing was found against any of {count} claims ({confidence_text(self.confidence)} confidence)."
        return f"{len(self.refuted_claims)} of {count} claims broken: {'; '.join(self.refuted_claims)}."

    def summary_rows(self) -> list[tuple[str, ...]]:
        """Return the table of what was measured: audit, claim, lower bound, share of the price used, verdict."""
        return [
            (
                finding.name,
                finding.claim_text,
                finding.lower_bound_text,
                f"{100 * finding.cost_used:.0f} %" if finding.parameter != "delta" else "",
                "stands" if finding.holds else "BROKEN",
            )
            for finding in self.findings
        ]

    @property
    def note(self) -> str | None:
        """What "none above 0" means, where a line says it."""
        if all(finding.lower_bound > 0 for finding in self.findings):
            return None
        return f"{NO_BOUND}: no lower bound above 0 at this sample size ({self.runs:,} runs on either data set)."

    def __str__(self) -> str:
        rows = [" | ".join(line) for line in self.summary_rows()]
        rows += [f"{check.name}: {'yes' if check.holds else 'BROKEN'} ({check.coverage})" for check in self.checks]
        return "\n".join([*rows, *([self.note] if self.note else []), self.verdict])

    def _repr_html_(self) -> str:
        from discreet.audit.policy.html_report import fragment_html  # noqa: PLC0415 - the page shows what is defined here

        return fragment_html(self)


def format_short(number: float) -> str:
    """Write a number in a few digits.

    >>> format_short(0.99871), format_short(1e-9), format_short(math.inf)
    ('0.999', '1e-09', '∞')
    """
    return "∞" if number == math.inf else f"{number:.3g}"


def _symbol(parameter: str) -> str:
    return {"epsilon": "ε", "rho": "ρ", "delta": "δ"}[parameter]  # noqa: RUF001 - rho
