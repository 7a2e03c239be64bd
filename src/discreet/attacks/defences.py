"""Defences: nothing, the easy fix, the curator, or a function of the user's."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from discreet.attacks.validation import require
from discreet.kernel.numbers import Number, as_fraction, as_positive

DefenceChoice = Literal["nothing", "easy", "curator"] | Callable[..., Any]

NOTHING, EASY, CURATOR, OWN = "nothing", "easy", "curator", "own"
BUILT_IN_DEFENCES = (NOTHING, EASY, CURATOR)


@dataclass(frozen=True)
class Defence:
    """A defence: its kind, its epsilon if it claims one, and the user's function if there is one.

    >>> parse_defence("curator", epsilon="1/10").epsilon
    Fraction(1, 10)
    >>> parse_defence(lambda data: data).kind
    'own'
    """

    kind: str
    epsilon: Fraction | None = None
    user_function: Callable[..., Any] | None = None

    @property
    def curator_epsilon(self) -> Fraction:
        """The curator's epsilon."""
        if self.epsilon is None:
            raise TypeError(f"the defence {self.kind!r} has no epsilon")
        return self.epsilon

    def __str__(self) -> str:
        return self.kind if self.epsilon is None else f"{self.kind}, {epsilon_text(self.epsilon)}"


def epsilon_text(epsilon: Fraction) -> str:
    """Write an epsilon as a decimal.

    >>> epsilon_text(Fraction(1, 10)), epsilon_text(Fraction(1, 3))
    ('epsilon 0.1', 'epsilon 0.3333')
    """
    return f"epsilon {float(epsilon):.4g}"


def parse_defence(defence: DefenceChoice, epsilon: Number | None = None) -> Defence:
    """Validate a defence and its epsilon: the curator needs one, "nothing" and "easy" take none.

    >>> parse_defence("curator")
    Traceback (most recent call last):
        ...
    TypeError: defence="curator" needs an epsilon, such as epsilon=1
    """
    if callable(defence):
        return Defence(OWN, None if epsilon is None else as_positive(epsilon, "epsilon"), defence)
    require(
        defence in BUILT_IN_DEFENCES, f'defence must be "nothing", "easy", "curator" or a function, not {defence!r}'
    )
    if defence == CURATOR:
        if epsilon is None:
            raise TypeError('defence="curator" needs an epsilon, such as epsilon=1')
        return Defence(CURATOR, as_positive(epsilon, "epsilon"))
    if epsilon is not None:
        raise TypeError(f'defence="{defence}" takes no epsilon: leave it out, or use defence="curator"')
    return Defence(defence)


def promised_delta(defence: Defence, requested: Number | None, default: Number = 0) -> Fraction:
    """Return the delta that a defence claims together with its epsilon; `default` is the curator's.

    Without an epsilon the delta is 0, so that one `delta` can be passed for all defences of a comparison.

    >>> curator = parse_defence("curator", 1)
    >>> promised_delta(curator, None, "1e-5"), promised_delta(curator, "1e-6", "1e-5")
    (Fraction(1, 100000), Fraction(1, 1000000))
    >>> promised_delta(parse_defence(list, 1), None, "1e-5"), promised_delta(parse_defence("nothing"), "1e-6")
    (Fraction(0, 1), Fraction(0, 1))
    """
    fallback = default if defence.kind == CURATOR else 0
    delta = as_fraction(fallback if requested is None else requested, "delta")
    require(0 <= delta < 1, f"delta must be at least 0 and below 1, not {requested}")
    if defence.epsilon is not None:
        return delta
    if delta and defence.kind == OWN:
        raise TypeError("delta needs an epsilon: leave it out, or give the epsilon that the defence claims")
    return Fraction(0)
