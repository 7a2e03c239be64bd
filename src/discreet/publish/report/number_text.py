"""Numbers as texts, rounded so that bounds remain bounds."""

import re
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction

from discreet.kernel.loss import Budget, Loss
from discreet.policy.guarantee import pluralise
from discreet.pricing.remaining_budget import cost_in_budget

_DIGITS = 4


def rounded_up(value: Fraction) -> str:
    """Write a number with four significant digits, rounded up.

    >>> rounded_up(Fraction(1, 3)), rounded_up(Fraction(5)), rounded_up(Fraction(1, 10**9))
    ('0.3334', '5', '1e-9')
    """
    return _decimal_text(value, ROUND_CEILING)


def rounded_down(value: Fraction) -> str:
    """Write a number with four significant digits, rounded down.

    >>> rounded_down(Fraction(2, 3))
    '0.6666'
    """
    return _decimal_text(value, ROUND_FLOOR)


def _decimal_text(value: Fraction, rounding: str) -> str:
    if value.denominator == 1 and abs(value) < 10**6:
        return str(value)
    quotient = Context(prec=_DIGITS, rounding=rounding).divide(Decimal(value.numerator), Decimal(value.denominator))
    return re.sub(r"e([+-])0*(\d)", r"e\1\2", f"{float(quotient):.12g}")


def loss_text(loss: Loss) -> str:
    """Write a cost: its pure epsilon, or its rho, and a delta of its own.

    >>> loss_text(Loss("1/10")), loss_text(Loss(None, "1/200", "1e-10"))
    ('epsilon 0.1', 'rho 0.005, delta 1e-10')
    """
    main = f"rho {rounded_up(loss.rho)}" if loss.epsilon is None else f"epsilon {rounded_up(loss.epsilon)}"
    return main + (f", delta {rounded_up(loss.delta)}" if loss.delta else "")


def cost_text(loss: Loss, budget: Budget) -> str:
    """Write a cost as an epsilon at the delta by which a budget converts rho, with the rho in which costs add up.

    >>> cost_text(Loss(None, "1/200"), Budget(1, "1e-6")), cost_text(Loss("1/10"), Budget(1))
    ('epsilon 0.43 at delta 1e-6 (rho 0.005)', 'epsilon 0.1')
    """
    cost = cost_in_budget(loss, budget)
    if loss.epsilon is not None or cost.epsilon is None:
        return loss_text(loss)
    return f"epsilon {rounded_up(cost.epsilon)} at delta {rounded_up(cost.delta)} ({loss_text(loss)})"


def percent_text(share: float) -> str:
    """Write a share as a percentage.

    >>> percent_text(0.8251)
    '82.5 %'
    """
    return f"{100 * share:.3g} %"


def time_text(time: str) -> str:
    """Write an ISO time to the minute.

    >>> time_text("2026-11-18T12:00:05.123+00:00")
    '2026-11-18 12:00 UTC'
    """
    return f"{time[:16].replace('T', ' ')} UTC" if time.endswith(("+00:00", "Z")) else time


def counted_noun(count: int, noun: str) -> str:
    """Write a number with its noun.

    >>> counted_noun(1, "charge"), counted_noun(1200, "charge")
    ('1 charge', '1,200 charges')
    """
    return f"{count:,} {noun if count == 1 else pluralise(noun)}"
