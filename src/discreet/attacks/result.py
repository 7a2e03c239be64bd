"""The result of an attack: success, baseline, implied epsilon, and exposure by rarity."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np

from discreet.attacks.defences import Defence
from discreet.attacks.evidence import AttackEvidence, ImpliedEpsilon
from discreet.attacks.scores import RocCurve, ScoreEvidence
from discreet.audit.binomial import Proportion


@dataclass(frozen=True)
class ExposureByRarity:
    """Success in each tenth of the people, from the most common to the rarest, and the rarest who were hit.

    >>> import numpy as np
    >>> found = exposure_by_rarity(np.arange(100), np.arange(100) >= 90, labels=[f"row {i}" for i in range(100)])
    >>> found.deciles[-1].value, found.deciles[0].value
    (1.0, 0.0)
    >>> found.rarest_hit[0]
    'row 99'
    """

    rarity_label: str
    deciles: tuple[Proportion, ...]
    rarest_hit: tuple[str, ...]


def exposure_by_rarity(
    rarity: Any, hit: Any, *, labels: Sequence[object] | None = None, rarity_label: str = "rarity", max_labels: int = 5
) -> ExposureByRarity:
    """Return success by decile of rarity (a higher number: a rarer person); fewer than ten people, fewer parts."""
    rare, was_hit = np.asarray(rarity, float), np.asarray(hit, bool)
    if rare.shape != was_hit.shape or rare.ndim != 1 or not rare.size:
        raise ValueError("rarity and hit must have one entry for each person, and at least one")
    order = np.argsort(rare, kind="stable")
    parts = [part for part in np.array_split(order, 10) if part.size]
    rarest = [place for place in order[::-1] if was_hit[place]][:max_labels]
    names = [str(place if labels is None else labels[place]) for place in rarest]
    return ExposureByRarity(
        rarity_label, tuple(Proportion(int(was_hit[part].sum()), part.size) for part in parts), tuple(names)
    )


def format_gain(differences: np.ndarray) -> str:
    """Return the mean of what members were hit beyond strangers, and its interval at 95 %, as a text.

    Each entry is of one person who was both: pairs allow for hits that go together, and for those that exclude each
    other.

    >>> format_gain(np.array([1.0, 0.0, 0.0, 1.0]))
    '+0.500 (+0.010 to +0.990)'
    """
    mean, half_width = differences.mean(), 1.96 * differences.std() / np.sqrt(differences.size)
    return f"{mean:+.3f} ({mean - half_width:+.3f} to {mean + half_width:+.3f})"


@dataclass(frozen=True)
class AttackResult:
    """How well one attack did against one defence, beside guessing and beside what epsilon allows.

    `success` and `baseline` are what `metric` says: of the attack, and of somebody who guesses without the release.
    `evidence` has what members lose beyond equal strangers; `details` are further numbers by their names.

    >>> from discreet import attacks
    >>> result = attacks.threshold_game()
    >>> result.success, result.baseline
    (1.0, 0.5)
    """

    attack: str
    against: Defence
    metric: str
    evidence: AttackEvidence
    guessing: float | None = None  # where guessing is less than the attack's success with strangers
    details: Mapping[str, Any] = field(default_factory=dict)
    exposure: ExposureByRarity | None = None
    delta: float = 0.0
    draw: Callable[[Any], None] | None = field(default=None, repr=False, compare=False)

    @property
    def success(self) -> float:
        """What the attack reached with people who are in the data."""
        return self.evidence.success

    @property
    def baseline(self) -> float:
        """What guessing reaches."""
        return self.evidence.baseline if self.guessing is None else self.guessing

    @property
    def defence(self) -> str:
        """The defence's word: nothing, easy, curator or own."""
        return self.against.kind

    @property
    def epsilon(self) -> Any:
        """The epsilon that the defence promised, or None."""
        return self.against.epsilon

    @property
    def implied(self) -> ImpliedEpsilon:
        """The epsilon that the attack's success implies, with its interval: a private release promises more."""
        return self.evidence.implied(self.delta)

    @property
    def ceiling(self) -> float | None:
        """The most that the defence's epsilon allows any attack on the evidence; None if nothing was promised."""
        return None if self.epsilon is None else self.evidence.ceiling(float(self.epsilon), self.delta)

    @property
    def holds(self) -> bool | None:
        """Whether the promised epsilon is still standing after the attack; None if nothing was promised."""
        return None if self.epsilon is None else self.implied.low <= self.epsilon

    @property
    def curve(self) -> RocCurve | None:
        """Members found against strangers taken for members, where the attack gives scores."""
        return self.evidence.curve if isinstance(self.evidence, ScoreEvidence) else None

    def figure(self) -> Any:
        """Draw the attack: what it reached, what guessing reaches, what epsilon allows, and who is most exposed."""
        from discreet.attacks.plots import result_figure  # noqa: PLC0415 - matplotlib is an extra

        return result_figure(self)

    @property
    def interval_text(self) -> str:
        """The interval of the success at 95 %, as a text."""
        low, high = (100 * end for end in self.evidence.interval())
        return f"{low:.3g}-{high:.3g} %"

    @property
    def ceiling_text(self) -> str:
        """What epsilon allows, as a text, and whether the success lies above it by more than chance."""
        if self.ceiling is None:
            return ""
        if self.success <= self.ceiling:
            return percent(self.ceiling)
        is_chance = self.evidence.interval()[0] <= self.ceiling
        return f"{percent(self.ceiling)}, passed by chance" if is_chance else f"{percent(self.ceiling)}, passed"

    def __str__(self) -> str:
        return "\n".join(f"{name}: {value}" for name, value in self.summary_rows())

    def summary_rows(self) -> list[tuple[str, str]]:
        """Return what there is to say, as pairs of a name and a text."""
        success_text = f"{percent(self.success)} {self.metric} ({self.interval_text} at 95 %)"
        rows = [(f"{self.attack} against {self.against}", success_text)]
        rows.append((self.evidence.baseline_name, percent(self.evidence.baseline)))
        if self.guessing is not None:
            rows.append(("guessing", percent(self.guessing)))
        rows.append(("epsilon implied", str(self.implied)))
        if self.epsilon is not None:
            rows.append((f"epsilon {self.epsilon} allows", self.ceiling_text))
            rows.append((f"claim of epsilon {self.epsilon}", "not refuted" if self.holds else "refuted, at 95 %"))
        return [*rows, *self.detail_rows()]

    def detail_rows(self) -> list[tuple[str, str]]:
        """Return the details, and who is most exposed, as pairs of a name and a text."""
        rows = [(name, format_value(value)) for name, value in self.details.items()]
        if self.exposure is not None:
            decile_text = " ".join(f"{share.value:.0%}" for share in self.exposure.deciles)
            rows.append((f"by tenths of {self.exposure.rarity_label}, rarest last", decile_text))
            if self.exposure.rarest_hit:
                rows.append(("rarest who were hit", ", ".join(self.exposure.rarest_hit)))
        return rows

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{escape(name)}</td><td>{escape(value)}</td></tr>" for name, value in self.summary_rows()
        )
        return f"<table>{rows}</table>"


def percent(share: float) -> str:
    """Return a share as people read it.

    >>> percent(1), percent(0.5294), percent(0.0004), percent(0)
    ('100 %', '52.9 %', '0.04 %', '0 %')
    """
    return f"{100 * share:.1f}".removesuffix(".0") + " %" if share >= 0.01 or not share else f"{100 * share:.1g} %"


def format_value(value: Any) -> str:
    """Return a number as people read it: whole ones in full, others with three digits.

    >>> format_value(1234567), format_value(0.12345), format_value(1.0), format_value("text"), format_value(None)
    ('1,234,567', '0.123', '1', 'text', 'cannot be told')
    """
    if value is None:
        return "cannot be told"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(format_value, value))
    if isinstance(value, bool | str):
        return str(value)
    number = float(value)
    if number.is_integer() and abs(number) < 1e15:
        return f"{int(number):,}"
    if abs(number) < 1e-9:
        return "0"  # what is left of rounding
    return f"{number:.3g}" if abs(number) < 1000 else f"{number:,.0f}"
