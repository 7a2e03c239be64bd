"""The attacks by their names: what each one shows, what its easy fix is, and which data it can run on."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from discreet.attacks.result import AttackResult


@dataclass(frozen=True)
class Attack:
    """One attack of the laboratory, and how to run it on other data than its own.

    `load` reads the attack's real data, named by `files`, from a folder.
    """

    run: Callable[..., AttackResult]
    topic: str  # the page of the course: docs/attacks/<topic>.md
    says: str  # one sentence: what the attack does
    nothing: str  # what is released without a defence
    easy: str  # the easy fix
    curator: str  # what the curator or the private estimator answers instead
    built_in: str  # what the data are that come with the attack
    files: tuple[str, ...] = ()
    load: Callable[[Path], Any] | None = None

    @property
    def name(self) -> str:
        """The attack's public name."""
        return self.run.__name__
