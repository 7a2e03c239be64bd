"""What the owner allows: the budget of the data set and the limits of analysts, and when a price fits."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from discreet.kernel.errors import PolicyError, Refused
from discreet.kernel.event import OWNER, bounded_text, canonical_json
from discreet.kernel.loss import ZERO_LOSS, Budget, Loss
from discreet.kernel.numbers import round_down, round_up

_MAX_PLACES = 100  # decimal places of a recorded loss: sums of arbitrary fractions would grow without end
_ZERO = Fraction(0)


@dataclass(frozen=True)
class Terms:
    """The data set's name, its budget, the analysts who may ask (None: any name, under the total), and the promise.

    The promise says who is protected, in the owner's own text; whoever opens the data set again can compare.
    """

    name: str
    budget: Budget
    analysts: Mapping[str, Budget] | None
    unit_declaration: str = ""

    def __post_init__(self) -> None:
        bounded_text(self.name, "name", max_length=200)
        if self.unit_declaration:
            bounded_text(self.unit_declaration, "unit_declaration", max_length=1_000_000)
        if self.analysts is not None and not isinstance(self.analysts, Mapping):
            raise TypeError(f"analysts must map names to budgets, not be a {type(self.analysts).__name__}")
        for who, limit in {"": self.budget, **(self.analysts or {})}.items():
            if not isinstance(limit, Budget):
                raise TypeError(f"{f'analysts[{who!r}]' if who else 'budget'} must be a Budget, not {limit!r}")
        for who in self.analysts or {}:
            bounded_text(who, "analysts: a name", max_length=200)
            if who == OWNER:
                raise ValueError(f"analysts must not list {OWNER!r}: the owner has only the total")


def round_for_ledger(loss: Loss) -> Loss:
    """Return the loss as the ledger writes it: exact, or rounded up if its fractions are too long.

    Claim: no bound of the result is below that of the loss.
    Proof: each part is kept or rounded up.
    Needs: round_up, Loss.of_bounds.
    Checked by: test_long_fractions_are_rounded_up_and_stay_short
    Seal: 1098329c3c54
    """
    epsilon = None if loss.epsilon is None else _round_long_up(loss.epsilon)
    return Loss.of_bounds(epsilon, _round_long_up(loss.rho), _round_long_up(loss.delta))


def check_analyst(terms: Terms, by: str) -> None:
    """Refuse a name that is not listed, if there is a list; the owner is always admitted."""
    if terms.analysts is not None and by != OWNER and by not in terms.analysts:
        raise Refused(f"by: {by!r} may not ask about {terms.name!r}. The owner can list the name as an analyst.")


def check_cost(terms: Terms, by: str, cost: Loss, spent: Loss, spent_by: Loss) -> None:
    """Refuse a price that does not fit in the total, or in the analyst's own limit.

    Claim: if nothing is raised, the budget covers everything spent so far and this price.
    Proof: covers() is asked for the recorded sum, which is not below the sum.
    Needs: Budget.covers, recorded; that `spent` is the whole of what was spent.
    Checked by: test_a_hundred_hundredths_fit_and_the_next_is_refused, test_analysts_have_limits_under_a_total
    Seal: e40f229117dd
    """
    check_analyst(terms, by)
    limits = [("in all", terms.budget, spent)]
    if terms.analysts is not None and by != OWNER:
        limits.append((f"for {by}", terms.analysts[by], spent_by))
    if not all(budget.covers(round_for_ledger(before + cost)) for _, budget, before in limits):
        if any(budget.rho is None for _, budget, _ in limits) and (cost.epsilon is None or cost.delta):
            what = "has a delta" if cost.delta else "has no epsilon"
            raise Refused(
                f"loss: this loss {what}, and the budget is pure. Use a mechanism with an epsilon, such as Laplace, or "
                "give the budget a delta."
            )
        remaining = "; ".join(f"{scope} {_remaining_text(budget, before)}" for scope, budget, before in limits)
        raise Refused(f"budget: the price does not fit. What still fits: {remaining}.")


def check_delta_split(old: Budget, new: Budget, spent: Loss) -> None:
    """Stop an owner who moves delta, or the part set apart for discovery, after the first charge.

    A pure budget may get a delta if what was spent fits in it: there is no way back.
    """
    if spent == ZERO_LOSS:
        return
    if old.delta and (old.delta, old.discover) != (new.delta, new.discover):
        raise PolicyError(
            "budget: delta, and its part for discovery, are fixed once something is charged, because a split chosen "
            "after answers were seen would add up the failures of both. Keep them, and change epsilon only."
        )
    if new.rho is not None and old.rho is None and spent.rho > new.rho:
        raise PolicyError(
            "budget: what was spent of the pure budget does not fit in one with this delta, and there would be no way "
            "back. Leave out the delta, raise epsilon, or begin a data set of another name."
        )


def remaining_budget(budget: Budget, spent: Loss) -> Loss:
    """Return the largest loss that still fits: an epsilon in a pure budget, else a rho and a delta.

    >>> remaining_budget(Budget(1), Loss("3/4"))
    Loss(epsilon=1/4, rho=1/32)
    """
    if budget.rho is None:
        return Loss(_remaining_epsilon(budget, spent))
    return Loss(None, max(_ZERO, budget.rho - spent.rho), max(_ZERO, budget.discover - spent.delta))


def terms_text(terms: Terms) -> str:
    """Write terms as canonical JSON."""
    analysts = terms.analysts
    data = {
        "name": terms.name,
        "budget": _budget_data(terms.budget),
        "analysts": None if analysts is None else {who: _budget_data(limit) for who, limit in analysts.items()},
        "promise": terms.unit_declaration,
    }
    return canonical_json(data)


@lru_cache(maxsize=64)
def read_terms(text: str) -> Terms:
    """Read what terms_text wrote."""
    data = json.loads(text)
    analysts = data["analysts"]
    return Terms(
        data["name"],
        _read_budget(data["budget"]),
        None if analysts is None else {who: _read_budget(limit) for who, limit in analysts.items()},
        data["promise"],
    )


def loss_text(loss: Loss) -> str:
    """Write a loss as three exact fractions: epsilon (or -), rho, delta.

    >>> loss_text(Loss("1/100"))
    '1/100 1/20000 0'
    """
    return f"{'-' if loss.epsilon is None else loss.epsilon} {loss.rho} {loss.delta}"


def read_loss(text: str) -> Loss:
    """Read what loss_text wrote."""
    epsilon, rho, delta = text.split(" ")
    return Loss.of_bounds(None if epsilon == "-" else Fraction(epsilon), Fraction(rho), Fraction(delta))


def is_at_least(new: Loss, old: Loss) -> bool:
    """Tell whether no part of the new loss is below the old; an unknown epsilon is above every other."""
    if old.epsilon is None or new.epsilon is None:
        return new.epsilon is None and new.rho >= old.rho and new.delta >= old.delta
    return new.epsilon >= old.epsilon and new.rho >= old.rho and new.delta >= old.delta


def shortfall(now: Loss, then: Loss) -> Loss:
    """Return what brings `now` up to `then` when it is added."""
    if is_at_least(now, then):
        return ZERO_LOSS
    both_pure = now.epsilon is not None and then.epsilon is not None
    epsilon = max(_ZERO, then.epsilon - now.epsilon) if both_pure else None  # type: ignore[operator]
    return Loss.of_bounds(epsilon, max(_ZERO, then.rho - now.rho), max(_ZERO, then.delta - now.delta))


def _round_long_up(part: Fraction) -> Fraction:
    return part if part.denominator <= 10**_MAX_PLACES else round_up(part, _MAX_PLACES)


def _remaining_epsilon(budget: Budget, spent: Loss) -> Fraction:
    pure = spent.epsilon is not None and not spent.delta
    return max(_ZERO, budget.epsilon - spent.epsilon) if pure else _ZERO  # type: ignore[operator]


def _remaining_text(budget: Budget, spent: Loss) -> str:
    pure, rest = _remaining_epsilon(budget, spent), remaining_budget(budget, spent)
    if budget.rho is None:
        return f"epsilon {_short_decimal(pure)}"
    fits = f"rho {_short_decimal(rest.rho)} with delta {_short_decimal(rest.delta)}"
    return fits + (f", or epsilon {_short_decimal(pure)} without a delta" if pure else "")


def _short_decimal(part: Fraction) -> str:
    """Write a short fraction as it is, and a long one as a decimal, rounded down to six digits."""
    if part.denominator <= 10**6:
        return str(part)
    zeros = max(0, len(str(part.denominator)) - len(str(part.numerator)))
    return f"{float(round_down(part, zeros + 6)):.6g}"


def _budget_data(budget: Budget) -> dict[str, str | None]:
    share = budget.discover / budget.delta if budget.delta else _ZERO
    rho = None if budget.rho is None else str(budget.rho)
    return {"epsilon": str(budget.epsilon), "delta": str(budget.delta), "discover": str(share), "rho": rho}


def _read_budget(data: Mapping[str, str]) -> Budget:
    budget = Budget(Fraction(data["epsilon"]), Fraction(data["delta"]), discover=Fraction(data["discover"]))
    if budget.rho is not None:
        # The limit was fixed when the budget was made; the floats that chose it may differ on this machine.
        object.__setattr__(budget, "rho", Fraction(data["rho"]))
    return budget
