"""What an audit found."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from html import escape
from typing import Any

import numpy as np

from discreet.audit.binomial import Proportion

_HIGH_CONFIDENCE = 0.999


@dataclass(frozen=True)
class FeatureSamples:
    """For a picture: the telling number of some runs on each data set, and where the event begins or ends.

    The relation is "yes" where the number answers a question, by 1 for yes and 0 for no.
    """

    name: str
    on_d: np.ndarray
    on_d2: np.ndarray
    relation: str
    bound: float


@dataclass(frozen=True)
class CanaryGuesses:
    """For a picture: how many guesses were right, and up to how many may be without refuting each of some claims."""

    correct: int
    guesses: int
    allowed: Mapping[str, int]


@dataclass(frozen=True)
class AuditResult:
    """What an audit proved: the mechanism's epsilon is at least `epsilon_low`, for this delta, at this confidence.

    A claim below it is refuted. A claim above it may be true: an audit can find a leak, never its absence. `notes` are
    pairs of a name and a text: what else one must know to read the result.

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
        """Whether the claim is still standing: True if nothing was claimed."""
        return self.claim is None or self.epsilon_low <= float(self.claim)

    @property
    def verdict(self) -> str:
        """One sentence."""
        if self.claim is None:
            return "nothing was claimed"
        return "not refuted" if self.holds else "refuted"

    def figure(self) -> Any:
        """Draw what was seen on both data sets with the telling event, and the claim beside what was proved."""
        from discreet.audit.plot import plot_audit  # noqa: PLC0415 - matplotlib is an extra

        return plot_audit(self)

    def summary_rows(self) -> list[tuple[str, str]]:
        """Return what there is to say, as pairs of a name and a text."""
        rows = [("claimed epsilon", _format_epsilon(self.claim)), ("proved", self._lower_bound_text)]
        if self.delta:
            rows.append(("delta", f"{self.delta:g}"))
        rows += [("verdict", self.verdict), ("telling event", self.event), ("which is", self.direction)]
        if self.counts is not None:
            rows.append(
                ("seen in", " and ".join(f"{proportion.hits:,} of {proportion.trials:,}" for proportion in self.counts))
            )
        return [*rows, *self.notes, ("confidence", confidence_text(self.confidence)), *self._false_alarm_note()]

    @property
    def _lower_bound_text(self) -> str:
        if self.epsilon_low > 0 or not self.runs:  # without runs it is exact
            return f"at least {_format_epsilon(self.epsilon_low)}"
        return "no lower bound above 0 at this sample size"

    def _false_alarm_note(self) -> list[tuple[str, str]]:
        """Say how often sound mechanisms are refuted, where that is often."""
        if self.holds or self.confidence >= _HIGH_CONFIDENCE:
            return []
        one_in, level = round(1 / (1 - self.confidence)), confidence_text(self.confidence)
        alarm = f"at {level}, 1 in {one_in:,} sound mechanisms would look like this"
        return [("mind", f"{alarm}: repeat with confidence=1 - 1e-6 before accusing")]

    def __str__(self) -> str:
        return "\n".join(f"{name}: {value}" for name, value in self.summary_rows())

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{escape(name)}</td><td>{escape(value)}</td></tr>" for name, value in self.summary_rows()
        )
        return f"<table>{rows}</table>"


def confidence_text(confidence: float) -> str:
    """Return a confidence as people read it.

    >>> confidence_text(0.95), confidence_text(1 - 1e-9), confidence_text(1)
    ('95 %', 'all but 1e-09', 'certain')
    """
    if confidence >= 1:
        return "certain"
    return f"{100 * confidence:.4g} %" if confidence <= 0.999 else f"all but {1 - confidence:.1g}"


def _format_epsilon(epsilon: Any) -> str:
    if epsilon is None:
        return "none"
    return "∞" if epsilon == math.inf else f"{float(epsilon):.4g}"
