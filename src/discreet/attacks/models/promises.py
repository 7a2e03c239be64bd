"""The delta of a defence's promise."""

from fractions import Fraction

from discreet.attacks.defences import CURATOR, OWN, Shield
from discreet.kernel.exact import Number, not_negative


def delta_of(protected: Shield, given: Number | None, usual: str) -> Fraction:
    """Return the delta that a defence promises: the given one, or the curator's usual one; without a promise, 0.

    >>> from discreet.attacks.defences import shield
    >>> delta_of(shield("curator", 1), None, "1e-5"), delta_of(shield(list, 1), None, "1e-5")
    (Fraction(1, 100000), Fraction(0, 1))
    >>> delta_of(shield(list, 1), "1/100", "1e-5"), delta_of(shield("nothing"), "1/100", "1e-5")
    (Fraction(1, 100), Fraction(0, 1))
    """
    delta = None if given is None else not_negative(given, "delta")
    if delta is not None and delta >= 1:
        raise ValueError(f"delta must be below 1, not {given}: a promise with more says nothing")
    if protected.word == CURATOR:
        return Fraction(usual) if delta is None else delta
    return delta if delta is not None and protected.word == OWN else Fraction(0)
