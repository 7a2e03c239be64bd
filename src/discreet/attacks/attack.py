"""The frame of all attacks: their data, what each defence releases, the game, and one way to run it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial, update_wrapper
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from discreet.attacks.defences import (
    BUILT_IN_DEFENCES,
    CURATOR,
    EASY,
    NOTHING,
    OWN,
    Defence,
    DefenceChoice,
    parse_defence,
    promised_delta,
)
from discreet.attacks.evidence import BitEvidence, EventEvidence, GuessEvidence
from discreet.attacks.result import AttackEvidence, AttackResult, exposure_by_rarity
from discreet.attacks.validation import random_generator, require, require_type
from discreet.kernel.numbers import Number, as_integer

__all__ = [  # all that a module of an attack needs
    "CURATOR",
    "EASY",
    "NOTHING",
    "OWN",
    "Attack",
    "AttackResult",
    "BitEvidence",
    "DefenceChoice",
    "DefenceRelease",
    "EventEvidence",
    "Game",
    "GuessEvidence",
    "Number",
    "Source",
    "choice",
    "optional",
    "releases_in_order",
    "whole",
]

Check = Callable[[Any, str], Any]  # a value and its name -> the checked value


@dataclass(frozen=True)
class Source:
    """The data of an attack: the records it takes, how one is written, the built-in data, and a reader of real data."""

    records: type | tuple[type, ...]
    written: str
    simulate: Callable[[np.random.Generator], Any]
    built_in: str
    files: tuple[str, ...] = ()  # which `read` reads from a folder
    read: Callable[[Path], Any] | None = None


@dataclass(frozen=True)
class DefenceRelease:
    """What is released under one defence: a description, and a function of the game and of what it plays with."""

    description: str
    make: Callable[..., Any]


def releases_in_order(descriptions: Sequence[str], makers: Sequence[Callable[..., Any]]) -> dict[str, DefenceRelease]:
    """Return the releases without a defence, with the easy fix and of the curator."""
    return {
        kind: DefenceRelease(description, make)
        for kind, description, make in zip(BUILT_IN_DEFENCES, descriptions, makers, strict=True)
    }


@dataclass(frozen=True)
class Game:
    """One run of an attack: its checked arguments, its random generator, and what the defence releases."""

    attack: "Attack"
    data: Any
    defence: Defence
    delta: Fraction
    rng: np.random.Generator
    settings: Any  # by name

    @property
    def epsilon(self) -> Fraction:
        """The curator's epsilon."""
        return self.defence.curator_epsilon

    def release(self, *world: Any) -> Any:
        """Return what the defence releases of the world that the game plays with."""
        kind = self.defence.kind
        make = self.attack.own if kind == OWN else self.attack.releases[kind].make
        return make(self, *world)

    def result(  # noqa: PLR0913 - what a game may show
        self,
        metric: str,
        evidence: AttackEvidence,
        details: Mapping[str, Any],
        *,
        guessing: float | None = None,
        hit: Any = None,
        rarity: Any = None,
        rarity_label: str = "rare values",
        labels: Sequence[object] = (),
        delta: float | None = None,
        draw: Callable[[Any], None] | None = None,
    ) -> AttackResult:
        """Return what the game has shown: the evidence, further numbers, and who was hit, by rarity.

        A `delta` is given where the bound differs from the claimed one.
        """
        exposure = None
        if hit is not None:
            exposure = exposure_by_rarity(rarity, hit, labels=labels, rarity_label=rarity_label)
        allowed, name = float(self.delta) if delta is None else delta, self.attack.name
        return AttackResult(name, self.defence, metric, evidence, guessing, details, exposure, allowed, draw)

    def ask_user(self, *arguments: Any) -> Any:
        """Return what the user's own defence returns."""
        if self.defence.user_function is None:
            raise TypeError(f"the defence {self.defence.kind!r} is not a function")
        return self.defence.user_function(*arguments)


@dataclass(frozen=True)
class Attack:
    """One attack: its public function, its data, what each defence releases, and the game.

    `play` plays the game; `own` is what a user's function as defence releases. `settings` checks the arguments other
    than the common ones, and `comparison` are the settings with which all defences face the same game.
    """

    function: Callable[..., AttackResult]
    docs_page: str  # docs/attacks/<docs_page>.md
    summary: str  # one sentence: what the attack does
    data: Source
    releases: Mapping[str, DefenceRelease]  # for "nothing", "easy" and "curator"
    own: Callable[..., Any]
    play: Callable[[Game], AttackResult]
    settings: Mapping[str, Check] = field(default_factory=dict)
    default_delta: Number = 0  # the curator's
    comparison: Mapping[str, Any] = field(default_factory=dict)
    is_independent: bool = False  # whether the game is independent of data that were drawn with the same seed

    @property
    def name(self) -> str:
        """The attack's public name."""
        return self.function.__name__

    @property
    def load(self) -> Callable[[Path], Any] | None:
        """The reader of the attack's real data, from a folder."""
        return self.data.read

    def with_settings(self, **settings: Any) -> Callable[..., AttackResult]:
        """Return the attack with the settings for a comparison of all defences, and with these."""
        chosen = {**self.comparison, **settings}
        return update_wrapper(partial(self.function, **chosen), self.function) if chosen else self.function

    def run(
        self, data: Any, defence: DefenceChoice, epsilon: Number | None, random_state: int | None, **settings: Any
    ) -> AttackResult:
        """Check all arguments, play the game under the defence, and return its result."""
        rng, parsed = random_generator(random_state), parse_defence(defence, epsilon)
        delta = promised_delta(parsed, settings.pop("delta", None), self.default_delta)
        checked = SimpleNamespace(**{name: self.settings[name](value, name) for name, value in settings.items()})
        rng = rng.spawn(1)[0] if self.is_independent else rng
        record = self.data.simulate(rng) if data is None else require_type(data, self.data.records, self.data.written)
        return self.play(Game(self, record, parsed, delta, rng, checked))


def whole(minimum: int) -> Check:
    """Return a check for integers of at least `minimum`.

    >>> whole(1)(3, "targets")
    3
    """
    return lambda value, name: as_integer(value, name, minimum)


def choice(options: Iterable[str]) -> Check:
    """Return a check for one of these words.

    >>> choice(["linear", "tree"])("bush", "model")
    Traceback (most recent call last):
        ...
    ValueError: model must be one of 'linear', 'tree', not 'bush'
    """
    allowed = tuple(options)

    def check(value: Any, name: str) -> Any:
        require(value in allowed, f"{name} must be one of {', '.join(map(repr, allowed))}, not {value!r}")
        return value

    return check


def optional(check: Check) -> Check:
    """Return a check that also allows None.

    >>> optional(whole(2))(None, "plays") is None
    True
    """
    return lambda value, name: None if value is None else check(value, name)
