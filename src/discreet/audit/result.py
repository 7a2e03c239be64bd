"""The result of an audit."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.audit.hypothesis_tests import Proportion
from discreet.html_page import text_table

_HIGH_CONFIDENCE = 0.999


@dataclass(frozen=True)
class FeatureSamples:
    """For plots: values of the distinguishing feature on each data set, and the bound of the event.

    The relation is "yes" for a yes-or-no property, whose values are 1 and 0.
    """

    name: str
    on_d: np.ndarray
    on_d2: np.ndarray
    relation: str
    bound: float


@dataclass(frozen=True)
class CanaryGuesses:
    """For plots: the number of correct guesses, and how many are allowed without refuting each of some claims."""

    correct: int
    guesses: int
    allowed: Mapping[str, int]


@dataclass(frozen=True)
class AuditResult:
    """A lower bound `epsilon_low` on a mechanism's epsilon, at this delta and confidence.

    A claim below it is refuted. A claim above it may be true: an audit can find a leak, never prove its absence.
    `notes` are pairs of a label and a text.

    >>> from discreet import audit
    >>> result = audit.exact({"yes": 0.75, "no": 0.25}, {"yes": 0.25, "no": 0.75}, claim=1)
    >>> result.holds, round(result.epsilon_low, 4)
    (False, 1.0986)
    """

    epsilon_low: float
    claim: Fraction | None
    runs: int
    delta: float
    confidence: float
    event: str
    direction: str
    counts: tuple[Proportion, Proportion] | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[tuple[str, str], ...] = ()
    plot_data: FeatureSamples | CanaryGuesses | None = field(default=None, repr=False, compare=False)

    @property
    def holds(self) -> bool:
        """Whether the claim is not refuted; True if there is no claim."""
        return self.claim is None or self.epsilon_low <= float(self.claim)

    @property
    def verdict(self) -> str:
        """The verdict on the claim in a few words."""
        if self.claim is None:
            return "no claim"
        return "not refuted" if self.holds else "refuted"

    def figure(self) -> Any:
        """Draw the outcomes on both data sets with the distinguishing event, and the claim beside the lower bound."""
        from discreet.audit.plot import plot_audit  # noqa: PLC0415 - matplotlib is an extra

        return plot_audit(self)

    def summary_rows(self) -> list[tuple[str, str]]:
        """Return the result as pairs of a label and a text."""
        rows = [("claimed epsilon", _format_epsilon(self.claim)), ("lower bound", self._lower_bound_text)]
        if self.delta:
            rows.append(("delta", f"{self.delta:g}"))
        rows += [("verdict", self.verdict), ("distinguishing event", self.event), ("which is", self.direction)]
        if self.counts is not None:
            rows.append(
                (
                    "occurred in",
                    " and ".join(f"{proportion.hits:,} of {proportion.trials:,}" for proportion in self.counts),
                )
            )
        return [*rows, *self.notes, ("confidence", confidence_text(self.confidence)), *self._false_alarm_note()]

    @property
    def _lower_bound_text(self) -> str:
        if self.epsilon_low > 0 or not self.runs:  # 0 runs: an exact audit
            return _format_epsilon(self.epsilon_low)
        return "none above 0 at this sample size"

    def _false_alarm_note(self) -> list[tuple[str, str]]:
        """Warn about false alarms if the confidence is not high."""
        if self.holds or self.confidence >= _HIGH_CONFIDENCE:
            return []
        one_in, level = round(1 / (1 - self.confidence)), confidence_text(self.confidence)
        alarm = f"at {level} confidence, up to 1 in {one_in:,} audits of a sound mechanism refute its claim"
        return [("note", f"{alarm}; repeat with confidence=1 - 1e-6 before you conclude that there is a bug")]

    def __str__(self) -> str:
        return "\n".join(f"{name}: {value}" for name, value in self.summary_rows())

    def _repr_html_(self) -> str:
        return text_table((), self.summary_rows())


def confidence_text(confidence: float) -> str:
    """Format a confidence level.

    >>> confidence_text(0.95), confidence_text(1 - 1e-9), confidence_text(1)
    ('95 %', '1 - 1e-09', '100 % (exact)')
    """
    if confidence >= 1:
        return "100 % (exact)"
    return f"{100 * confidence:.4g} %" if confidence <= 0.999 else f"1 - {1 - confidence:.1g}"


def _format_epsilon(epsilon: Any) -> str:
    if epsilon is None:
        return "none"
    return "∞" if epsilon == math.inf else f"{float(epsilon):.4g}"
