"""What remains of a budget, as a loss and in words."""

from collections.abc import Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import NamedTuple

from discreet import privacy
from discreet.answer.model import Cost
from discreet.kernel.loss import Budget, Loss
from discreet.privacy.conversion import conversion_delta

_ZERO = Fraction(0)


class BudgetLimit(NamedTuple):
    """A limit that a charge must stay within, its scope in words, and what is spent of it."""

    scope: str
    budget: Budget
    spent: Loss

    def covers(self, cost: Loss) -> bool:
        """Return whether the limit covers one more cost."""
        return self.budget.covers(self.spent + cost)

    @property
    def remaining(self) -> Loss:
        """What remains of the limit."""
        return remaining_budget(self.budget, self.spent)


class RemainingBudget(NamedTuple):
    """The most that one more query may cost: epsilon, the corresponding rho, and delta for partition selection.

    With a delta budget, epsilon is the largest whose rho is covered by the remaining budget, rounded down to three
    digits.
    """

    epsilon: Fraction
    rho: Fraction
    delta: Fraction

    def __repr__(self) -> str:
        return (
            f"RemainingBudget(epsilon={_decimal(self.epsilon)}, rho={_decimal(self.rho)}, delta={_decimal(self.delta)})"
        )


class BudgetStatus(NamedTuple):
    """A budget, the part of it that is spent, and what remains for one more query under all budgets that apply."""

    total: Budget
    spent: Loss
    remaining: RemainingBudget

    def __repr__(self) -> str:
        spent = {"epsilon": self.spent.epsilon, "rho": self.spent.rho, "delta": self.spent.delta}
        spent_text = ", ".join(f"{name}={_decimal(value)}" for name, value in spent.items() if value is not None)
        total = f"Budget(epsilon={_decimal(self.total.epsilon)}, delta={_decimal(self.total.delta)})"
        return f"BudgetStatus(total={total}, spent=Loss({spent_text}), remaining={self.remaining})"


def remaining_budget(budget: Budget, spent: Loss) -> Loss:
    """Return the remaining budget: an epsilon if the budget is pure, else a rho and a delta.

    >>> remaining_budget(Budget(1), Loss("3/4"))
    Loss(epsilon=1/4, rho=1/32)
    """
    if budget.rho is None:
        return Loss(_remaining_epsilon(budget, spent))
    return Loss(None, max(_ZERO, budget.rho - spent.rho), max(_ZERO, budget.discover - spent.delta))


def shortage_text(limits: Sequence[BudgetLimit], cost: Loss) -> str:
    """Return what a cost needs, and what remains of each limit.

    >>> shortage_text([BudgetLimit("in total", Budget(1), Loss("2/3"))], Loss("1/2"))
    'not enough budget left: this needs epsilon 0.5. Remaining: epsilon 0.333333 in total.'
    """
    return f"not enough budget left: this needs {_cost_text(limits[0].budget, cost)}. {remaining_text(limits)}"


def remaining_text(limits: Sequence[BudgetLimit]) -> str:
    """Return what remains of each limit, as a sentence."""
    return f"Remaining: {'; '.join(f'{_remaining_text(limit.budget, limit.spent)} {limit.scope}' for limit in limits)}."


def _remaining_epsilon(budget: Budget, spent: Loss) -> Fraction:
    pure = spent.epsilon is not None and not spent.delta
    return max(_ZERO, budget.epsilon - spent.epsilon) if pure else _ZERO  # type: ignore[operator]


def _cost_text(budget: Budget, cost: Loss) -> str:
    if budget.rho is None and cost.epsilon is not None:
        return f"epsilon {_decimal_text(cost.epsilon, ROUND_CEILING)}"
    delta = f" and delta {_decimal_text(cost.delta, ROUND_CEILING)}" if cost.delta else ""
    text = f"rho {_decimal_text(cost.rho, ROUND_CEILING)}{delta}"
    epsilon = None if budget.rho is None else cost_in_budget(Loss(None, cost.rho), budget).epsilon
    return text if epsilon is None else f"epsilon {_decimal_text(epsilon, ROUND_CEILING)} ({text})"


def _remaining_text(budget: Budget, spent: Loss) -> str:
    pure, rest = _remaining_epsilon(budget, spent), remaining_budget(budget, spent)
    if budget.rho is None:
        return f"epsilon {_decimal_text(pure, ROUND_FLOOR)}"
    text = f"rho {_decimal_text(rest.rho, ROUND_FLOOR)} with delta {_decimal_text(rest.delta, ROUND_FLOOR)}"
    return text + (f", or epsilon {_decimal_text(pure, ROUND_FLOOR)} without a delta," if pure else "")


def _decimal_text(part: Fraction, rounding: str) -> str:
    """Write a number as a decimal of six significant digits."""
    quotient = Context(prec=6, rounding=rounding).divide(Decimal(part.numerator), Decimal(part.denominator))
    return f"{float(quotient):.12g}"


def _decimal(number: Fraction) -> str:
    return f"{float(number):.6g}"


def cost_in_budget(loss: Loss, budget: Budget) -> Cost:
    """Return a cost with its epsilon at the budget's delta and its share of the budget."""
    if budget.rho is None:
        return Cost(loss, share=None if loss.epsilon is None else loss.epsilon / budget.epsilon)
    epsilon = privacy.to_epsilon(Loss(None, loss.rho), conversion_delta(budget))
    return Cost(loss, epsilon, conversion_delta(budget), loss.rho / budget.rho)
