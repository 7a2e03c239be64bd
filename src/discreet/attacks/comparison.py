"""Compare one attack against no defence, the easy fix and the curator at several epsilons."""

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from discreet.attacks.defences import EASY, epsilon_text
from discreet.attacks.registry import attack_named
from discreet.attacks.result import MODEL, AttackResult, percent
from discreet.attacks.validation import random_generator
from discreet.kernel.numbers import Number, as_fraction
from discreet.progress import track

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
    def has_accuracy(self) -> bool:
        """Whether models are attacked, whose accuracy is known with every defence."""
        return all(result.accuracy is not None for result in self.results)

    @property
    def note(self) -> str | None:
        """Explanations: models that differ in more than privacy, and an attack that the easy fix happens to hinder."""
        return " ".join(filter(None, (self._note_on_models, self._note_on_the_easy_fix))) or None

    @property
    def _note_on_models(self) -> str | None:
        models = {result.details.get(MODEL) for result in self.results}
        kinds = dict.fromkeys(str(model).removeprefix("private ") for model in models - {None})
        if len(kinds) < 2:
            return None
        return (
            f"The defences differ in the kind of model as well as in privacy ({', '.join(sorted(kinds))}): choose a "
            "target that has a private counterpart."
        )

    @property
    def _note_on_the_easy_fix(self) -> str | None:
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
        headers = ("defence", "success", "95 % interval", baseline_name, "upper bound", "implied epsilon")
        return (*headers, "accuracy, members / non-members") if self.has_accuracy else headers

    def rows(self) -> list[tuple[str, ...]]:
        """Return the comparison as rows of formatted cells."""
        return [self._result_cells(result) for result in self.results]

    def _result_cells(self, result: AttackResult) -> tuple[str, ...]:
        name = result.defence if result.epsilon is None else f"{result.defence} at {float(result.epsilon):.4g}"
        baseline = percent(result.evidence.baseline)
        success = percent(result.success), result.interval_text
        cells = (name, *success, baseline, result.ceiling_text, str(result.implied))
        return (*cells, result.accuracy_text) if self.has_accuracy else cells


def compare(
    attack: str | AttackFunction, *, epsilons: Sequence[Number], data: Any = None, random_state: int | None = None
) -> Comparison:
    """Run an attack, given as a function or by name, against no defence, the easy fix, and the curator.

    By name, an attack on models faces the same kind of model with and without privacy.

    >>> from discreet import attacks
    >>> print(attacks.compare("threshold_game", epsilons=[1]).results[0].success)
    1.0
    """
    attack_function = attack_named(attack).with_settings() if isinstance(attack, str) else attack
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
