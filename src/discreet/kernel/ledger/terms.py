"""The terms set by the owner: the budget of the data set, the limits of analysts, and the check of a cost."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

from discreet.kernel.errors import PolicyError, Refused
from discreet.kernel.event import OWNER, bounded_text, canonical_json
from discreet.kernel.loss import ZERO_LOSS, Budget, Loss
from discreet.kernel.numbers import check_type, round_up

_MAX_PLACES = 100  # decimal places of a recorded loss, so that sums of arbitrary fractions stay short
_ZERO = Fraction(0)
_NOT_PURE_HINT = (
    ": it is pure, but this loss has a delta or no epsilon. Use a pure mechanism such as Laplace, or a budget with a "
    "delta"
)


@dataclass(frozen=True)
class DatasetTerms:
    """A data set of a population: its limit, None for that of the population alone, and its own unit declaration."""

    limit: Budget | None = None
    unit_declaration: str = ""


@dataclass(frozen=True)
class Terms:
    """The name of the account, its budget, the limits of analysts, and the declaration of the privacy unit.

    An account belongs to one data set, or to a population with several `datasets`. `analysts` is None if anyone may
    ask. `unit_declaration` is the owner's text; it is compared when a data set is opened again.
    """

    name: str
    budget: Budget
    analysts: Mapping[str, Budget] | None
    unit_declaration: str = ""
    datasets: Mapping[str, DatasetTerms] | None = None

    def __post_init__(self) -> None:
        bounded_text(self.name, "name", max_length=200)
        if self.unit_declaration:
            bounded_text(self.unit_declaration, "unit_declaration", max_length=1_000_000)
        check_type(Budget, self.budget, "budget")
        if self.analysts is not None and not isinstance(self.analysts, Mapping):
            raise TypeError(f"analysts must be a mapping from names to budgets, not {type(self.analysts).__name__}")
        for who, limit in (self.analysts or {}).items():
            bounded_text(who, "analysts: the name", max_length=200)
            check_type(Budget, limit, f"analysts[{who!r}]")
            if who == OWNER:
                raise ValueError(f"analysts must not include {OWNER!r}: the owner has no separate limit")
        for dataset, member in (self.datasets or {}).items():
            bounded_text(dataset, "datasets: the name", max_length=200)
            check_type(DatasetTerms, member, f"datasets[{dataset!r}]")


class OverBudget(Refused):
    """A charge that exceeds the remaining budget."""


def round_for_ledger(loss: Loss) -> Loss:
    """Return the loss as recorded in the ledger: exact, or rounded up if its fractions are too long.

    Claim: no bound of the result is below the same bound of the loss.
    Proof: each part is left unchanged or rounded up.
    Needs: round_up, Loss.of_bounds.
    Checked by: test_long_fractions_are_rounded_up_and_stay_short
    """
    epsilon = None if loss.epsilon is None else _round_long_up(loss.epsilon)
    return Loss.of_bounds(epsilon, _round_long_up(loss.rho), _round_long_up(loss.delta))


def check_analyst(terms: Terms, by: str) -> None:
    """Refuse an analyst who is not listed, if there is a list; the owner always has access."""
    if terms.analysts is not None and by != OWNER and by not in terms.analysts:
        raise Refused(f"by: {by!r} has no access to {terms.name!r}. The owner must add them under [budget.analysts].")


def check_cost(terms: Terms, by: str, dataset: str, cost: Loss, spent: Callable[..., Loss]) -> None:
    """Refuse a cost that exceeds what remains of the total budget, of the analyst's limit or of the data set's.

    Claim: if nothing is raised, the budget covers everything spent so far plus this cost, and so do the limits of the
        analyst and of the data set; a loss of an unknown data set counts for each of them.
    Proof: covers() is checked for the recorded sums, which are not below the true sums.
    Needs: Budget.covers, round_for_ledger; `spent` is Chain.spent, so spent() is everything that was spent.
    Checked by: test_a_hundred_hundredths_fit_and_the_next_is_refused, test_analysts_have_limits_under_a_total,
        test_three_limits_hold_over_all_interleavings_of_data_sets, test_lost_charges_count_for_every_data_set
    """
    check_analyst(terms, by)
    if dataset not in ({"": None} if terms.datasets is None else terms.datasets):
        raise PolicyError(f"name: {dataset!r} is not a data set of {terms.name!r}.")
    limits = [("in total", terms.budget, spent())]
    if terms.analysts is not None and by != OWNER:
        limits.append((f"for {by}", terms.analysts[by], spent("by", by)))
    if terms.datasets and (limit := terms.datasets[dataset].limit):
        limits.append((f"in {dataset}", limit, spent("in", dataset) + spent("in", "")))
    for scope, budget, before in limits:
        if not budget.covers(round_for_ledger(before + cost)):
            not_pure = budget.rho is None and (cost.epsilon is None or cost.delta)
            raise OverBudget(f"not enough budget left {scope}{_NOT_PURE_HINT if not_pure else ''}.")


def join_terms(terms: Terms, dataset: str, member: DatasetTerms) -> Terms:
    """Return the terms after a data set has joined the population.

    Claim: joining widens nothing: the budget, the limits of analysts, the privacy unit of the population, and the other
        data sets with their limits are unchanged.
    Proof: only `datasets` is replaced, by itself and a data set that is not in it.
    Needs: Terms.
    Checked by: test_joining_changes_nothing_else, test_a_forged_join_that_widens_the_terms_is_found
    """
    if terms.datasets is None or dataset in terms.datasets:
        problem = "belongs to one data set only" if terms.datasets is None else f"already has a data set {dataset!r}"
        raise PolicyError(f"name: the ledger of {terms.name!r} {problem}.")
    return replace(terms, datasets={**terms.datasets, dataset: member})


def check_delta_split(old: Budget, new: Budget, spent: Loss) -> None:
    """Raise PolicyError if delta, or its share for partition selection, changes after the first charge.

    A pure budget may get a delta if the new budget covers the loss already spent; a delta cannot be removed.
    """
    if spent != ZERO_LOSS and old.delta and (old.delta, old.discover) != (new.delta, new.discover):
        raise PolicyError(
            "budget: delta and its share for partition selection cannot change after the first charge, because a split "
            "chosen after seeing answers would add up the failure probabilities of both. Change only epsilon."
        )
    if new.rho is not None and old.rho is None and spent.rho > new.rho:
        raise PolicyError(
            "budget: the loss already spent from the pure budget exceeds a budget with this delta, and a delta cannot "
            "be removed later. Leave out delta, raise epsilon, or start a new data set under another name."
        )


def terms_text(terms: Terms) -> str:
    """Write terms as canonical JSON."""
    analysts = None if terms.analysts is None else {who: _budget_data(each) for who, each in terms.analysts.items()}
    members = (terms.datasets or {}).items()
    datasets = {name: [each.limit and _budget_data(each.limit), each.unit_declaration] for name, each in members}
    own = {"budget": _budget_data(terms.budget), "analysts": analysts, "datasets": terms.datasets and datasets}
    return canonical_json(vars(terms) | own)


@lru_cache(maxsize=64)
def read_terms(text: str) -> Terms:
    """Parse the output of terms_text."""
    data = json.loads(text)
    analysts = data["analysts"] and {who: _read_budget(limit) for who, limit in data["analysts"].items()}
    members = (data["datasets"] or {}).items()
    datasets = {name: DatasetTerms(limit and _read_budget(limit), text) for name, (limit, text) in members}
    own = {"budget": _read_budget(data["budget"]), "analysts": analysts, "datasets": data["datasets"] and datasets}
    return Terms(**data | own)


def loss_text(loss: Loss) -> str:
    """Write a loss as three exact fractions: epsilon (or -), rho, delta.

    >>> loss_text(Loss("1/100"))
    '1/100 1/20000 0'
    """
    return f"{'-' if loss.epsilon is None else loss.epsilon} {loss.rho} {loss.delta}"


def read_loss(text: str) -> Loss:
    """Parse the output of loss_text."""
    epsilon, rho, delta = text.split(" ")
    return Loss.of_bounds(None if epsilon == "-" else Fraction(epsilon), Fraction(rho), Fraction(delta))


def shortfall(now: Loss, then: Loss) -> Loss:
    """Return the loss to add to `now` so that it is at least `then`."""
    if now.includes(then):
        return ZERO_LOSS
    both_pure = now.epsilon is not None and then.epsilon is not None
    epsilon = max(_ZERO, then.epsilon - now.epsilon) if both_pure else None  # type: ignore[operator]
    return Loss.of_bounds(epsilon, max(_ZERO, then.rho - now.rho), max(_ZERO, then.delta - now.delta))


def _round_long_up(part: Fraction) -> Fraction:
    return part if part.denominator <= 10**_MAX_PLACES else round_up(part, _MAX_PLACES)


def _budget_data(budget: Budget) -> dict[str, str | None]:
    share = budget.discover / budget.delta if budget.delta else _ZERO
    rho = None if budget.rho is None else str(budget.rho)
    return {"epsilon": str(budget.epsilon), "delta": str(budget.delta), "discover": str(share), "rho": rho}


def _read_budget(data: Mapping[str, str]) -> Budget:
    budget = Budget(Fraction(data["epsilon"]), Fraction(data["delta"]), discover=Fraction(data["discover"]))
    if budget.rho is not None:
        # The limit is fixed when the budget is created; recomputing it could differ, because floats choose the order.
        object.__setattr__(budget, "rho", Fraction(data["rho"]))
    return budget
