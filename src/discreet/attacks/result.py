"""What an attack achieved, in one shape for all of them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from html import escape
from typing import Any

from discreet.attacks.defences import Shield
from discreet.attacks.implied import Evidence, Implied
from discreet.attacks.ranking import Curve
from discreet.attacks.rarity import Exposure
from discreet.attacks.scores import Scores


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
    shield: Shield
    metric: str
    evidence: Evidence
    guessing: float | None = None  # where guessing is less than the attack's success with strangers
    details: Mapping[str, Any] = field(default_factory=dict)
    exposure: Exposure | None = None
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
        return self.shield.word

    @property
    def epsilon(self) -> Any:
        """The epsilon that the defence promised, or None."""
        return self.shield.epsilon

    @property
    def implied(self) -> Implied:
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
    def curve(self) -> Curve | None:
        """Members found against strangers taken for members, where the attack gives scores."""
        return self.evidence.curve if isinstance(self.evidence, Scores) else None

    def figure(self) -> Any:
        """Draw the attack: what it reached, what guessing reaches, what epsilon allows, and who is most exposed."""
        from discreet.attacks.drawing import figure_of  # noqa: PLC0415 - matplotlib is an extra

        return figure_of(self)

    @property
    def ends(self) -> str:
        """The interval of the success at 95 %, as a text."""
        low, high = (100 * end for end in self.evidence.interval())
        return f"{low:.3g}-{high:.3g} %"

    @property
    def allowed(self) -> str:
        """What epsilon allows, as a text, and whether the success lies above it by more than chance."""
        if self.ceiling is None:
            return ""
        if self.success <= self.ceiling:
            return percent(self.ceiling)
        is_chance = self.evidence.interval()[0] <= self.ceiling
        return f"{percent(self.ceiling)}, passed by chance" if is_chance else f"{percent(self.ceiling)}, passed"

    def __str__(self) -> str:
        return "\n".join(f"{name}: {value}" for name, value in self.lines())

    def lines(self) -> list[tuple[str, str]]:
        """Return what there is to say, as pairs of a name and a text."""
        reached = f"{percent(self.success)} {self.metric} ({self.ends} at 95 %)"
        said = [(f"{self.attack} against {self.shield}", reached)]
        said.append((self.evidence.beside, percent(self.evidence.baseline)))
        if self.guessing is not None:
            said.append(("guessing", percent(self.guessing)))
        said.append(("epsilon implied", str(self.implied)))
        if self.epsilon is not None:
            said.append((f"epsilon {self.epsilon} allows", self.allowed))
            said.append((f"claim of epsilon {self.epsilon}", "not refuted" if self.holds else "refuted, at 95 %"))
        return [*said, *self.further()]

    def further(self) -> list[tuple[str, str]]:
        """Return the details, and who is most exposed, as pairs of a name and a text."""
        said = [(name, shown(value)) for name, value in self.details.items()]
        if self.exposure is not None:
            tenths = " ".join(f"{share.value:.0%}" for share in self.exposure.deciles)
            said.append((f"by tenths of {self.exposure.by}, rarest last", tenths))
            if self.exposure.rarest_hit:
                said.append(("rarest who were hit", ", ".join(self.exposure.rarest_hit)))
        return said

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr><td>{escape(name)}</td><td>{escape(value)}</td></tr>" for name, value in self.lines())
        return f"<table>{rows}</table>"


def percent(share: float) -> str:
    """Return a share as people read it.

    >>> percent(1), percent(0.5294), percent(0.0004), percent(0)
    ('100 %', '52.9 %', '0.04 %', '0 %')
    """
    return f"{100 * share:.1f}".removesuffix(".0") + " %" if share >= 0.01 or not share else f"{100 * share:.1g} %"


def shown(value: Any) -> str:
    """Return a number as people read it: whole ones in full, others with three digits.

    >>> shown(1234567), shown(0.12345), shown(1.0), shown("text"), shown(None)
    ('1,234,567', '0.123', '1', 'text', 'cannot be told')
    """
    if value is None:
        return "cannot be told"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(shown, value))
    if isinstance(value, bool | str):
        return str(value)
    number = float(value)
    if number.is_integer() and abs(number) < 1e15:
        return f"{int(number):,}"
    if abs(number) < 1e-9:
        return "0"  # what is left of rounding
    return f"{number:.3g}" if abs(number) < 1000 else f"{number:,.0f}"
