"""The result of an attack: success, baseline, implied epsilon, and exposure by rarity."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from discreet.attacks.defences import Defence, epsilon_text
from discreet.attacks.evidence import (
    BitEvidence,
    EventEvidence,
    GuessEvidence,
    ImpliedEpsilon,
)
from discreet.attacks.scores import RocCurve, ScoreEvidence
from discreet.attacks.validation import require
from discreet.audit.hypothesis_tests import Proportion
from discreet.html_page import text_table

AttackEvidence = GuessEvidence | BitEvidence | EventEvidence | ScoreEvidence
# Details of attacks on models.
MODEL, ACCURACY_ON_MEMBERS, ACCURACY_ON_NON_MEMBERS = "model", "accuracy on members", "accuracy on non-members"


@dataclass(frozen=True)
class ExposureByRarity:
    """Success rate in each decile of rarity, most common people first, and the rarest people who were hit.

    >>> import numpy as np
    >>> exposure = exposure_by_rarity(np.arange(100), np.arange(100) >= 90, labels=[f"row {i}" for i in range(100)])
    >>> exposure.deciles[-1].value, exposure.deciles[0].value
    (1.0, 0.0)
    >>> exposure.rarest_hit[0]
    'row 99'
    """

    rarity_label: str
    deciles: tuple[Proportion, ...]
    rarest_hit: tuple[str, ...]


def exposure_by_rarity(
    rarity: Any,
    hit: Any,
    *,
    labels: Sequence[object] | None = None,
    rarity_label: str = "rare values",
    max_labels: int = 5,
) -> ExposureByRarity:
    """Return success by decile of rarity (higher means rarer); fewer than ten people give fewer groups."""
    rare, was_hit = np.asarray(rarity, float), np.asarray(hit, bool)
    require(
        rare.shape == was_hit.shape and rare.ndim == 1 and rare.size,
        "rarity and hit must have one entry per person, and at least one",
    )
    order = np.argsort(rare, kind="stable")
    parts = [part for part in np.array_split(order, 10) if part.size]
    rarest = [index for index in order[::-1] if was_hit[index]][:max_labels]
    names = [str(index if labels is None else labels[index]) for index in rarest]
    return ExposureByRarity(
        rarity_label, tuple(Proportion(int(was_hit[part].sum()), part.size) for part in parts), tuple(names)
    )


def format_gain(differences: np.ndarray) -> str:
    """Format the mean difference between members and non-members with its 95 % confidence interval.

    Each entry is one person's success as a member minus their success as a non-member: pairing accounts for the
    correlation between the two.

    >>> format_gain(np.array([1.0, 0.0, 0.0, 1.0]))
    '+0.500 (+0.010 to +0.990)'
    """
    mean, half_width = differences.mean(), 1.96 * differences.std() / np.sqrt(differences.size)
    return f"{mean:+.3f} ({mean - half_width:+.3f} to {mean + half_width:+.3f})"


@dataclass(frozen=True)
class AttackResult:
    """The result of one attack against one defence: its success, the baseline, and the bound from epsilon.

    `metric` is what `success` and `baseline` measure; the baseline is guessing without the release, or the same
    attack on non-members. `evidence` compares members with non-members; `details` holds further numbers by name.

    >>> from discreet import attacks
    >>> result = attacks.threshold_game()
    >>> result.success, result.baseline
    (1.0, 0.5)
    """

    attack: str
    against: Defence
    metric: str
    evidence: AttackEvidence
    guessing: float | None = None  # where guessing differs from the attack's success on non-members
    details: Mapping[str, Any] = field(default_factory=dict)
    exposure: ExposureByRarity | None = None
    delta: float = 0.0
    draw: Callable[[Any], None] | None = field(default=None, repr=False, compare=False)

    @property
    def success(self) -> float:
        """The attack's success on people who are in the data."""
        return self.evidence.success

    @property
    def baseline(self) -> float:
        """The success of guessing."""
        return self.evidence.baseline if self.guessing is None else self.guessing

    @property
    def defence(self) -> str:
        """The kind of defence: nothing, easy, curator or own."""
        return self.against.kind

    @property
    def epsilon(self) -> Any:
        """The epsilon that the defence claims, or None."""
        return self.against.epsilon

    @property
    def implied(self) -> ImpliedEpsilon:
        """The epsilon implied by the attack's success, with its interval: a lower bound on the true epsilon."""
        return self.evidence.implied(self.delta)

    @property
    def ceiling(self) -> float | None:
        """The highest success that the claimed epsilon allows any attack; None without a claim."""
        return None if self.epsilon is None else self.evidence.ceiling(float(self.epsilon), self.delta)

    @property
    def holds(self) -> bool | None:
        """Whether the attack is consistent with the claimed epsilon; None without a claim."""
        return None if self.epsilon is None else self.implied.low <= self.epsilon

    @property
    def curve(self) -> RocCurve | None:
        """The ROC curve, if the attack produces scores."""
        return self.evidence.curve if isinstance(self.evidence, ScoreEvidence) else None

    @property
    def accuracy(self) -> tuple[float, float] | None:
        """The accuracy of the model under attack on members and on non-members; None if no model is attacked."""
        if ACCURACY_ON_MEMBERS not in self.details:
            return None
        return self.details[ACCURACY_ON_MEMBERS], self.details[ACCURACY_ON_NON_MEMBERS]

    @property
    def accuracy_text(self) -> str:
        """The accuracy of the model on members and non-members, formatted; empty without a model."""
        return "" if self.accuracy is None else " / ".join(map(percent, self.accuracy))

    def figure(self) -> Any:
        """Draw success, baseline, the bound from epsilon, and exposure by rarity."""
        from discreet.attacks.plots import result_figure  # noqa: PLC0415 - matplotlib is an extra

        return result_figure(self)

    @property
    def interval_text(self) -> str:
        """The 95 % confidence interval of the success, formatted."""
        low, high = (100 * end for end in self.evidence.interval())
        return f"{low:.3g}-{high:.3g} %"

    @property
    def ceiling_text(self) -> str:
        """The bound from epsilon, formatted, and whether the success exceeds it by more than chance."""
        if self.ceiling is None:
            return ""
        if self.success <= self.ceiling:
            return percent(self.ceiling)
        is_chance = self.evidence.interval()[0] <= self.ceiling
        return f"{percent(self.ceiling)}, exceeded by chance" if is_chance else f"{percent(self.ceiling)}, exceeded"

    def __str__(self) -> str:
        return "\n".join(f"{name}: {value}" for name, value in self.summary_rows())

    def summary_rows(self) -> list[tuple[str, str]]:
        """Return the summary and the details as pairs of a label and a formatted value."""
        success_text = f"{percent(self.success)} {self.metric} (95 % interval {self.interval_text})"
        rows = [(f"{self.attack} against {self.against}", success_text)]
        rows.append((self.evidence.baseline_name, percent(self.evidence.baseline)))
        if self.guessing is not None:
            rows.append(("guessing", percent(self.guessing)))
        rows.append(("implied epsilon", str(self.implied)))
        if self.epsilon is not None:
            rows.append((f"{epsilon_text(self.epsilon)} allows", self.ceiling_text))
            rows.append((f"claim of {epsilon_text(self.epsilon)}", "not refuted" if self.holds else "refuted at 95 %"))
        return [*rows, *self.detail_rows()]

    def detail_rows(self) -> list[tuple[str, str]]:
        """Return the details and the exposure as pairs of a label and a formatted value."""
        rows = [(name, format_value(value)) for name, value in self.details.items()]
        if self.exposure is not None:
            decile_text = " ".join(f"{share.value:.0%}" for share in self.exposure.deciles)
            rows.append((f"success by decile of rarity ({self.exposure.rarity_label}), rarest last", decile_text))
            if self.exposure.rarest_hit:
                rows.append(("rarest people hit", ", ".join(self.exposure.rarest_hit)))
        return rows

    def _repr_html_(self) -> str:
        return text_table((), self.summary_rows())


def percent(share: float) -> str:
    """Format a share as a percentage.

    >>> percent(1), percent(0.5294), percent(0.0004), percent(0)
    ('100 %', '52.9 %', '0.04 %', '0 %')
    """
    return f"{100 * share:.1f}".removesuffix(".0") + " %" if share >= 0.01 or not share else f"{100 * share:.1g} %"


def format_value(value: Any) -> str:
    """Format a value for a report: integers in full, other numbers with three significant digits.

    >>> format_value(1234567), format_value(0.12345), format_value(1.0), format_value("text"), format_value(None)
    ('1,234,567', '0.123', '1', 'text', 'not available')
    """
    if value is None:
        return "not available"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(format_value, value))
    if isinstance(value, bool | str):
        return str(value)
    number = float(value)
    if number.is_integer() and abs(number) < 1e15:
        return f"{int(number):,}"
    if abs(number) < 1e-9:
        return "0"  # a rounding error
    return f"{number:.3g}" if abs(number) < 1000 else f"{number:,.0f}"
