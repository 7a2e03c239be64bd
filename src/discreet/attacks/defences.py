"""What stands between the data and an outsider, in one word: nothing, the easy fix, or the curator."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from discreet.kernel.exact import Number, fraction

Defence = Literal["nothing", "easy", "curator"] | Callable[..., Any]

NOTHING, EASY, CURATOR, OWN = "nothing", "easy", "curator", "own"
WORDS = (NOTHING, EASY, CURATOR)


@dataclass(frozen=True)
class Shield:
    """A defence as an attack meets it: its word, its epsilon if it has one, or a function of the user's own.

    >>> shield("curator", epsilon="1/10").epsilon
    Fraction(1, 10)
    >>> shield(lambda data: data).word
    'own'
    """

    word: str
    epsilon: Fraction | None = None
    make: Callable[..., Any] | None = None

    @property
    def price(self) -> Fraction:
        """The epsilon of the curator; other defences have none."""
        if self.epsilon is None:
            raise TypeError(f"the defence {self.word!r} has no epsilon")
        return self.epsilon

    def __str__(self) -> str:
        return self.word if self.epsilon is None else f"{self.word}, epsilon {self.epsilon}"


def shield(defence: Defence, epsilon: Number | None = None) -> Shield:
    """Check a defence and its epsilon: the curator has one, the other two words have none.

    >>> shield("curator")
    Traceback (most recent call last):
        ...
    TypeError: defence="curator" needs an epsilon, such as epsilon=1
    """
    if callable(defence):
        return Shield(OWN, None if epsilon is None else _positive(epsilon), defence)
    if defence not in WORDS:
        raise ValueError(f'defence must be "nothing", "easy", "curator" or a function of yours, not {defence!r}')
    if defence == CURATOR:
        if epsilon is None:
            raise TypeError('defence="curator" needs an epsilon, such as epsilon=1')
        return Shield(CURATOR, _positive(epsilon))
    if epsilon is not None:
        raise TypeError(f'defence="{defence}" promises no epsilon: leave it out, or say defence="curator"')
    return Shield(defence)


def delta_of(protected: Shield, given: Number | None, default: Number = 0) -> Fraction:
    """Return the delta that a defence promises beside its epsilon; `default` is the curator's.

    Without an epsilon the delta is 0: one delta can be given for all the defences that are compared.

    >>> delta_of(shield("curator", 1), None, "1e-5"), delta_of(shield("curator", 1), "1e-6", "1e-5")
    (Fraction(1, 100000), Fraction(1, 1000000))
    >>> delta_of(shield(list, 1), None, "1e-5"), delta_of(shield("nothing"), "1e-6")
    (Fraction(0, 1), Fraction(0, 1))
    """
    usual = default if protected.word == CURATOR else 0
    delta = fraction(usual if given is None else given, "delta")
    if not 0 <= delta < 1:
        raise ValueError(f"delta must be at least 0 and below 1, not {given}")
    if protected.epsilon is not None:
        return delta
    if delta and protected.word == OWN:
        raise TypeError("delta needs an epsilon: leave it out, or give the epsilon that the defence promises")
    return Fraction(0)


def _positive(epsilon: Number) -> Fraction:
    exact = fraction(epsilon, "epsilon")
    if exact <= 0:
        raise ValueError(f"epsilon must be above 0, not {epsilon}")
    return exact
