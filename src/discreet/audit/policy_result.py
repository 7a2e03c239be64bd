"""What the audit of a policy found."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from discreet.audit.claims import level
from discreet.audit.result import confidence_text
from discreet.kernel.exact import positive, whole

_LEAST_RUNS = 100  # fewer prove nothing
_DEAREST = 100  # of a question: beyond it nothing is promised that could be broken
COVERS = (
    "An audit can refute a promise, never prove it: what it did not find may still be there.",
    "It covers the questions, the planted units and the events listed here, on made-up data of the policy's shape.",
    "It does not cover other questions, the time that answers take, or who may read the files and the ledger.",
    "Nor does it know whether the policy names the right unit and the right bounds.",
)
NO_BOUND = "none above 0"
PATH = (
    "Every question is read, priced, paid for and released by the code that serves analysts: the curator's reader and "
    "prices, DuckDB on Parquet files, the kernel's noise, and ledgers in memory. The exact totals are read once for "
    "each data set, then released again and again with fresh noise."
)


def read_numbers(runs: Any, epsilon: Any, confidence: Any) -> tuple[int, Fraction, float]:
    """Return how often to ask, for which price, and how sure to be; ValueError says what is wrong with them.

    >>> read_numbers(2000, "1/2", 0.95)
    (2000, Fraction(1, 2), 0.95)
    """
    count, price = whole(runs, "runs", _LEAST_RUNS), positive(epsilon, "epsilon")
    if price > _DEAREST:
        raise ValueError(f"epsilon must be at most {_DEAREST}, not {epsilon}")
    return count, price, level(confidence)


@dataclass(frozen=True)
class Finding:
    """What was measured about one question: the claim, and what its answers prove to be lost at least.

    `measures` says of what: an epsilon (at a delta, if there is one), a rho, which is what budgets with a delta
    promise, or the delta with which a group is shown that only one unit has. `used` is the share of the price that the
    planted unit uses up, by the exact totals.
    """

    name: str
    sql: str
    place: str
    measures: Literal["epsilon", "rho", "delta"]
    claim: float
    delta: float
    low: float
    used: float
    event: str

    @property
    def holds(self) -> bool:
        """Whether the claim still stands."""
        return self.low <= self.claim

    @property
    def claim_text(self) -> str:
        """The claim in short."""
        return f"{_symbol(self.measures)} {short(self.claim)}" + (f" at δ {self.delta:g}" if self.delta else "")

    @property
    def low_text(self) -> str:
        """The lower bound in short."""
        return f"{_symbol(self.measures)} ≥ {short(self.low)}" if self.low > 0 else NO_BOUND


@dataclass(frozen=True)
class Check:
    """Something that needs no statistics: whether it holds, and what was seen."""

    name: str
    holds: bool
    seen: str


@dataclass(frozen=True)
class Unasked:
    """A question that the policy does not allow, with the refusal."""

    name: str
    reason: str


@dataclass(frozen=True)
class PolicyAudit:
    """What the audit of a policy found; `holds` unless a claim is broken.

    >>> broken = Check("The ledger verifies", False, "row 3 was changed")
    >>> PolicyAudit("clinic", "patient", 100, 0.95, (), (broken,), ()).verdict
    '1 of 1 claims broken: The ledger verifies.'
    """

    policy: str
    protects: str
    runs: int
    confidence: float
    findings: tuple[Finding, ...]
    checks: tuple[Check, ...]
    unasked: tuple[Unasked, ...]

    @property
    def holds(self) -> bool:
        """Whether every claim still stands."""
        return not self.broken

    @property
    def broken(self) -> tuple[str, ...]:
        """The names of the claims that do not stand."""
        every: Sequence[Finding | Check] = (*self.findings, *self.checks)
        return tuple(each.name for each in every if not each.holds)

    @property
    def verdict(self) -> str:
        """One sentence on all of it."""
        count = len(self.findings) + len(self.checks)
        if self.holds:
            return f"Nothing was found against any of {count} claims ({confidence_text(self.confidence)} confidence)."
        return f"{len(self.broken)} of {count} claims broken: {'; '.join(self.broken)}."

    def lines(self) -> list[tuple[str, ...]]:
        """Return the table of what was measured: audit, claim, lower bound, share of the price used, verdict."""
        return [
            (
                each.name,
                each.claim_text,
                each.low_text,
                f"{100 * each.used:.0f} %" if each.measures != "delta" else "",
                "stands" if each.holds else "BROKEN",
            )
            for each in self.findings
        ]

    @property
    def note(self) -> str | None:
        """What "none above 0" means, where a line says it."""
        if all(each.low > 0 for each in self.findings):
            return None
        return f"{NO_BOUND}: no lower bound above 0 at this sample size ({self.runs:,} runs on either data set)."

    def __str__(self) -> str:
        rows = [" | ".join(line) for line in self.lines()]
        rows += [f"{check.name}: {'yes' if check.holds else 'BROKEN'} ({check.seen})" for check in self.checks]
        return "\n".join([*rows, *([self.note] if self.note else []), self.verdict])

    def _repr_html_(self) -> str:
        from discreet.audit.policy_page import fragment  # noqa: PLC0415 - the page shows what is defined here

        return fragment(self)


def short(number: float) -> str:
    """Write a number in a few digits.

    >>> short(0.99871), short(1e-9), short(math.inf)
    ('0.999', '1e-09', '∞')
    """
    return "∞" if number == math.inf else f"{number:.3g}"


def _symbol(measures: str) -> str:
    return {"epsilon": "ε", "rho": "ρ", "delta": "δ"}[measures]  # noqa: RUF001 - rho
