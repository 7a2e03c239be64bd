"""Compare one attack against no defence, the easy fix and the curator at several epsilons."""

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from discreet.attacks.defences import EASY, epsilon_text
from discreet.attacks.progress import track
from discreet.attacks.registry import attack_named
from discreet.attacks.result import AttackResult, percent
from discreet.attacks.validation import random_generator
from discreet.kernel.numbers import Number, as_fraction

AttackFunction = Callable[..., AttackResult]


@dataclass(frozen=True)
class Comparison:
    """The results of one attack against no defence, the easy fix, and the curator at several epsilons.

    >>> from discreet import attacks
    >>> comparison = attacks.compare(attacks.threshold_game, epsilons=["1/3", 3])
    >>> [result.defence for result in comparison.results]
    ['nothing', 'easy', 'curator', 'curator']
    """

    results: tuple[AttackResult, ...]

    def __str__(self) -> str:
        first, rows = self.results[0], [self.headers(), *self.rows()]
        widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        note = [self.note] if self.note else []
        return "\n".join([f"{first.attack}: share {first.metric}", *lines, *note])

    @property
    def note(self) -> str | None:
        """An explanation, if the attack does better against the curator than against the easy fix."""
        easy = next((result for result in self.results if result.defence == EASY), None)
        if easy is None:
            return None
        above = [each for each in self.results if each.ceiling is not None and each.success > easy.success]
        if not above or not all(each.holds for each in above):
            return None
        successes = ", ".join(f"{percent(each.success)} at {epsilon_text(each.epsilon)}" for each in above)
        bounds = ", ".join(percent(each.ceiling or 0) for each in above)
        is_within_chance = all(each.evidence.interval()[0] <= easy.evidence.interval()[1] for each in above)
        difference = "The difference may be due to chance. " if is_within_chance else ""
        return (
            f"The attack does better against the curator ({successes}) than against the easy fix "
            f"({percent(easy.success)}). {difference}The easy fix guarantees nothing against other attacks; epsilon "
            f"bounds every attack, this one at {bounds}."
        )

    def figure(self) -> Any:
        """Draw success against epsilon, with no defence, the easy fix, the baseline, and the bound from epsilon."""
        from discreet.attacks.plots import comparison_figure  # noqa: PLC0415 - matplotlib is an extra

        return comparison_figure(self)

    def headers(self) -> tuple[str, ...]:
        """Return the column headers."""
        baseline_name = self.results[0].evidence.baseline_name
        return "defence", "success", "95 % interval", baseline_name, "upper bound", "implied epsilon"

    def rows(self) -> list[tuple[str, ...]]:
        """Return the comparison as rows of formatted cells."""
        return [self._result_cells(result) for result in self.results]

    def _result_cells(self, result: AttackResult) -> tuple[str, ...]:
        name = result.defence if result.epsilon is None else f"{result.defence} at {float(result.epsilon):.4g}"
        baseline = percent(result.evidence.baseline)
        return name, percent(result.success), result.interval_text, baseline, result.ceiling_text, str(result.implied)


def compare(
    attack: str | AttackFunction, *, epsilons: Sequence[Number], data: Any = None, random_state: int | None = None
) -> Comparison:
    """Run an attack, given as a function or by name, against no defence, the easy fix, and the curator.

    >>> from discreet import attacks
    >>> print(attacks.compare("threshold_game", epsilons=[1]).results[0].success)
    1.0
    """
    attack_function = attack_named(attack).run if isinstance(attack, str) else attack
    if not callable(attack_function):
        raise TypeError(f"attack must be a function or the name of an attack, not {type(attack).__name__}")
    if not isinstance(epsilons, Sequence) or isinstance(epsilons, str) or not epsilons:
        raise TypeError("epsilons must be a list of numbers, such as [0.1, 1]")
    random_generator(random_state)  # reject an invalid seed before any work
    seed = secrets.randbelow(1 << 32) if random_state is None else random_state  # all defences face the same people
    defences: list[dict[str, Any]] = [{"defence": "nothing"}, {"defence": "easy"}]
    defences += [{"defence": "curator", "epsilon": as_fraction(epsilon, "epsilons")} for epsilon in epsilons]
    return Comparison(
        tuple(attack_function(data, **defence, random_state=seed) for defence in track(defences, "defences"))
    )
