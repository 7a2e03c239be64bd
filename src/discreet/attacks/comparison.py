"""Compare one attack against no defence, the easy fix and the curator at several epsilons."""

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from discreet.attacks.defences import EASY
from discreet.attacks.progress import track
from discreet.attacks.registry import attack_named
from discreet.attacks.result import AttackResult, percent
from discreet.attacks.validation import random_generator
from discreet.kernel.numbers import Number, as_fraction

AttackFunction = Callable[..., AttackResult]


@dataclass(frozen=True)
class Comparison:
    """What one attack achieved against nothing, the easy fix, and the curator at several epsilons.

    >>> from discreet import attacks
    >>> made = attacks.compare(attacks.threshold_game, epsilons=["1/3", 3])
    >>> [result.defence for result in made.results]
    ['nothing', 'easy', 'curator', 'curator']
    """

    results: tuple[AttackResult, ...]

    def __str__(self) -> str:
        first, rows = self.results[0], [self.headers(), *self.rows()]
        widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        note = [self.note] if self.note else []
        return "\n".join([f"{first.attack}: what share {first.metric}", *lines, *note])

    @property
    def note(self) -> str | None:
        """Why the attack does better against the curator than against the easy fix, where it does."""
        easy = next((result for result in self.results if result.defence == EASY), None)
        if easy is None:
            return None
        above = [each for each in self.results if each.ceiling is not None and each.success > easy.success]
        if not above or not all(each.holds for each in above):
            return None
        successes = ", ".join(f"{percent(each.success)} at epsilon {each.epsilon}" for each in above)
        bounds = ", ".join(percent(each.ceiling or 0) for each in above)
        is_within_chance = all(each.evidence.interval()[0] <= easy.evidence.interval()[1] for each in above)
        difference = "The difference is within chance. " if is_within_chance else ""
        return (
            f"The curator ({successes}) stands above the easy fix ({percent(easy.success)}). {difference}The easy fix "
            f"promises nothing about other attacks; epsilon bounds every attack, this one at {bounds}."
        )

    def figure(self) -> Any:
        """Draw success against epsilon, with nothing, the easy fix, guessing, and what epsilon allows."""
        from discreet.attacks.plots import comparison_figure  # noqa: PLC0415 - matplotlib is an extra

        return comparison_figure(self)

    def headers(self) -> tuple[str, ...]:
        """Return what stands above the rows."""
        return "defence", "success", "at 95 %", self.results[0].evidence.baseline_name, "allowed", "epsilon implied"

    def rows(self) -> list[tuple[str, ...]]:
        """Return the comparison as rows of texts."""
        return [self._result_cells(result) for result in self.results]

    def _result_cells(self, result: AttackResult) -> tuple[str, ...]:
        name = result.defence if result.epsilon is None else f"{result.defence} at {result.epsilon}"
        baseline = percent(result.evidence.baseline)
        return name, percent(result.success), result.interval_text, baseline, result.ceiling_text, str(result.implied)


def compare(
    attack: str | AttackFunction, *, epsilons: Sequence[Number], data: Any = None, random_state: int | None = None
) -> Comparison:
    """Run an attack, or the one of this name, against nothing, the easy fix, and the curator at these epsilons.

    >>> from discreet import attacks
    >>> print(attacks.compare("threshold_game", epsilons=[1]).results[0].success)
    1.0
    """
    attack_function = attack_named(attack).run if isinstance(attack, str) else attack
    if not callable(attack_function):
        raise TypeError(f"attack must be a function or the name of one, not {type(attack).__name__}")
    if not isinstance(epsilons, Sequence) or isinstance(epsilons, str) or not epsilons:
        raise TypeError("epsilons must be a list of prices, such as [0.1, 1]")
    random_generator(random_state)  # refuse what is no seed before any work
    seed = secrets.randbelow(1 << 32) if random_state is None else random_state  # one for all: the same people
    defences: list[dict[str, Any]] = [{"defence": "nothing"}, {"defence": "easy"}]
    defences += [{"defence": "curator", "epsilon": as_fraction(epsilon, "epsilons")} for epsilon in epsilons]
    return Comparison(
        tuple(attack_function(data, **defence, random_state=seed) for defence in track(defences, "defences"))
    )
