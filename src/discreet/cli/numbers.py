"""Exact numbers, written for reading."""

from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction

_SHORT = 5  # characters of a fraction that is still read at a glance


def number(value: Fraction) -> str:
    """Write a fraction as it is if it is short, and with four digits otherwise; the ledger itself has it exactly.

    >>> number(Fraction(1, 10)), number(Fraction(3)), number(Fraction(123457, 1000000))
    ('1/10', '3', '0.1235')
    """
    return str(value) if len(str(value)) <= _SHORT else f"{float(value):.4g}"


def number_below(value: Fraction) -> str:
    """Write what is left or may be asked for: shortened, it is a little less, so that it can be typed and is granted.

    >>> number_below(Fraction(1, 2)), number_below(Fraction(87659, 100000))
    ('1/2', '0.8765')
    """
    if len(str(value)) <= _SHORT:
        return str(value)
    less = Context(prec=4, rounding=ROUND_FLOOR).divide(Decimal(value.numerator), Decimal(value.denominator))
    return f"{less:g}"
