"""What was asked for, in whatever way it was said: an epsilon, a rho, or margins; and what of it fits in a budget."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from discreet.kernel.errors import Refused
from discreet.kernel.exact import Number
from discreet.kernel.loss import NOTHING, Loss
from discreet.kernel.mechanism import Gaussian, Laplace
from discreet.policy import Policy
from discreet.pricing.accuracy import Margins, amounts_within, margins_for, read_margins, rounded_up
from discreet.pricing.draws import Known
from discreet.pricing.foresight import Foreseen, foresee
from discreet.pricing.owing import credit
from discreet.sql.plan import Part, Plan
from discreet.sql.price import Amounts, Kind, amounts_of, delta_for, discovering, largest_epsilon, price_of

Recall = Callable[[tuple[Part, ...]], tuple[Known, ...]]


@dataclass(frozen=True)
class Offer:
    """What somebody is ready to pay: an epsilon or a rho; or how exact the answer must be, which decides it."""

    epsilon: Number | None = None
    rho: Number | None = None
    margin: Margins | None = None


@dataclass(frozen=True, eq=False)
class Wanted:
    """What each total is to have in all, and the delta of each release that discovers groups.

    `known` is what is known already, and `columns` are those whose margins decided.
    """

    amounts: Amounts
    delta: Fraction
    known: tuple[Known, ...]
    columns: tuple[Foreseen, ...] = ()


def kind_for(policy: Policy) -> Kind:
    """Return the noise of a budget."""
    return Laplace if policy.budget.rho is None else Gaussian


def state_of(policy: Policy) -> str:
    """Return the owner's name for the state of the data, with what else decides what a stored time means."""
    return f"{policy.data.version} {policy.data.timezone}"


def offered(plan: Plan, offer: Offer, by: str, policy: Policy) -> Loss | dict[str, Fraction]:
    """Return the price that was offered, beside the query or in it, or the margins that will decide it."""
    given = [name for name in ("epsilon", "rho", "margin") if getattr(offer, name) is not None]
    given += ["OPTIONS"] if plan.options.epsilon is not None else []
    given += ["WITHIN"] if plan.within is not None else []
    if len(given) > 1:
        raise Refused(f"{given[-1]}: the price is given twice, also by {given[0]}. Leave out one of them.")
    margin = offer.margin if plan.within is None else plan.within
    if margin is not None:
        return read_margins(plan, margin)
    analyst = policy.spending.analysts.get(by)
    written = plan.options.epsilon or (analyst.each if analyst and not given else None)
    epsilon = offer.epsilon if written is None else written
    return price_of(policy.budget, plan.parts, epsilon=epsilon, rho=offer.rho, delta=plan.options.delta)


def in_words(offer: Loss | dict[str, Fraction]) -> object:
    """Return an offer as the ledger keeps it."""
    if isinstance(offer, dict):
        return {name: str(margin) for name, margin in offer.items()}
    return str(offer.rho if offer.epsilon is None else offer.epsilon)


def wanted(plan: Plan, offer: Loss | dict[str, Fraction], policy: Policy, recall: Recall) -> Wanted:
    """Return what an offer asks for, given what is known already."""
    known, parts = recall(plan.parts), plan.parts
    delta = delta_for(policy.budget, parts, plan.options.delta) / max(1, discovering(parts))
    if isinstance(offer, Loss):
        return Wanted(amounts_of(parts, offer), delta, known)
    columns = tuple(foresee(plan, known, name, recall) for name in offer)
    return Wanted(amounts_within(plan, known, columns, offer), delta, known, columns)


def too_dear(want: Wanted, room: Loss | None, policy: Policy) -> str:
    """Say that a price does not fit, and what would; nothing if there is no such room."""
    if room is None:
        return ""
    pure = room.epsilon if policy.budget.rho is None else None
    fits = what_fits(want, NOTHING, room, policy) if pure is None and not want.columns else ""
    return "It does not fit in what is left." + (
        f" The largest epsilon that fits is {float(pure):g}." if pure else fits
    )


def what_fits(want: Wanted, price: Loss, room: Loss, policy: Policy) -> str:
    """Say, beside a refusal, what could be had for what is left."""
    known = want.known
    if want.columns:
        amount = price.rho if price.epsilon is None else price.epsilon
        left = (room.rho if price.epsilon is None else room.epsilon) or Fraction(0)
        name = "rho" if price.epsilon is None else "epsilon"
        said = f" So small a margin costs {name} {float(amount):.4g}."
        return said + " ".join(_smallest(want, known, left))
    if policy.budget.rho is None:
        return ""
    again = sum((credit(each, place) for each in known for place in range(len(each.topics))), Fraction(0))
    most = largest_epsilon(policy.budget, Loss(None, room.rho + again, room.delta))
    return f" The largest epsilon that fits is {float(most):g}."


def _smallest(want: Wanted, known: Sequence[Known], left: Fraction) -> Iterator[str]:
    found = margins_for(known, want.columns, want.amounts, left)
    fits = {name: margin for name, margin in found.items() if math.isfinite(margin)}
    if len(fits) == len(found):
        named = ", ".join(f"{name} ±{_short(margin)}" for name, margin in fits.items())
        yield f" The smallest margin that fits is {named}."


def _short(margin: float) -> str:
    return f"{float(rounded_up(Fraction(margin), 4)) if margin else 0:.10g}"
