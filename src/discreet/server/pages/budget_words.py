"""Budgets in words: what is left, how many more questions like one, and what all of it means for one person."""

import math
from dataclasses import dataclass
from fractions import Fraction

from discreet.answer.text import short_number
from discreet.kernel.loss import ZERO_LOSS, Budget, Loss
from discreet.pricing.remaining_budget import BudgetStatus
from discreet.publish.report.odds import at_most, budget_pair, guess_participation, loss_pairs

_MANY = 10_000


@dataclass(frozen=True)
class BudgetView:
    """A budget as a page shows it: parts of it in percent, and amounts in words.

    >>> from discreet.pricing.remaining_budget import RemainingBudget
    >>> status = BudgetStatus(Budget(2), Loss("1/2"), RemainingBudget(Fraction(3, 2), Fraction(9, 8), Fraction(0)))
    >>> view = BudgetView.of_status(status)
    >>> view.spent_percent, view.spent, view.left
    (25.0, 'epsilon 0.5', 'epsilon 1.5')
    """

    total: str
    spent: str
    left: str
    spent_percent: float
    odds_now: str  # from what is spent
    odds_at_most: str  # once all is spent

    @classmethod
    def of_status(cls, status: BudgetStatus) -> "BudgetView":
        """Return the view of a budget."""
        total, spent, remaining = status
        return cls(
            total=budget_text(total),
            spent=spent_text(total, spent),
            left=f"epsilon {short_number(remaining.epsilon)}",
            spent_percent=round(float(100 * share_spent(total, spent)), 2),
            odds_now=odds_of(spent),
            odds_at_most=odds_of_budget(total),
        )


def budget_text(budget: Budget) -> str:
    """Write a budget.

    >>> budget_text(Budget(1)), budget_text(Budget(1, "1e-6"))
    ('epsilon 1', 'epsilon 1, delta 1e-6')
    """
    return f"epsilon {short_number(budget.epsilon)}" + (f", delta {short_number(budget.delta)}" if budget.delta else "")


def spent_text(budget: Budget, spent: Loss) -> str:
    """Write what is spent of a budget: an epsilon, or a share of its rho.

    >>> spent_text(Budget(1), Loss("1/4")), spent_text(Budget(1, "1e-6"), ZERO_LOSS)
    ('epsilon 0.25', '0 %')
    """
    if budget.rho is None:
        return f"epsilon {short_number(spent.epsilon or Fraction(0))}"
    return f"{short_number(100 * share_spent(budget, spent), digits=3)} %"


def share_spent(budget: Budget, spent: Loss) -> Fraction:
    """Return the share of a budget that is spent.

    >>> share_spent(Budget(2), Loss("1/2"))
    Fraction(1, 4)
    """
    if budget.rho is None:
        return min(Fraction(1), (spent.epsilon or Fraction(0)) / budget.epsilon)
    share = spent.rho / budget.rho
    if budget.discover:
        share = max(share, spent.delta / budget.discover)
    return min(Fraction(1), share)


def questions_left(status: BudgetStatus, cost: Loss) -> int:
    """Return how many more questions of this cost fit into what remains.

    >>> from discreet.pricing.remaining_budget import RemainingBudget
    >>> status = BudgetStatus(Budget(1), ZERO_LOSS, RemainingBudget(Fraction(1), Fraction(1, 2), Fraction(0)))
    >>> questions_left(status, Loss("1/10")), questions_left(status, ZERO_LOSS)
    (10, 10000)
    """
    remaining, counts = status.remaining, [_MANY]
    if status.total.rho is not None:
        counts += [remaining.rho // cost.rho] if cost.rho else []
        counts += [remaining.delta // cost.delta] if cost.delta else []
    elif cost.epsilon:
        counts.append(remaining.epsilon // cost.epsilon)
    elif cost.epsilon is None:
        counts.append(0)
    return math.floor(min(counts))


def more_text(count: int) -> str:
    """Write how many more questions fit.

    >>> more_text(14), more_text(1), more_text(0)
    ('about 14 more like this', 'about 1 more like this', 'no more like this')
    """
    if count >= _MANY:
        return "more than 10,000 more like this"
    return f"about {count:,} more like this" if count else "no more like this"


def odds_of_budget(budget: Budget) -> str:
    """Write how often outsiders can be right, at most, whatever is asked within a budget.

    >>> odds_of_budget(Budget(1))
    'in at most 74 of 100 cases'
    """
    return at_most(guess_participation([budget_pair(budget)]))


def odds_of(loss: Loss) -> str:
    """Write how often outsiders can be right, at most, about whether one person is in the data.

    >>> odds_of(Loss(1)), odds_of(ZERO_LOSS)
    ('in at most 74 of 100 cases', 'in at most 50 of 100 cases')
    """
    return at_most(0.5 if loss == ZERO_LOSS else guess_participation(loss_pairs(loss)))
