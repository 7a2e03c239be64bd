"""How a price becomes noise: it is shared among the totals so that the margins of what is shown come out smallest."""

import math
from collections.abc import Iterator
from fractions import Fraction

from discreet.kernel.calibration import gaussian_for
from discreet.kernel.errors import Refused
from discreet.kernel.exact import Number, positive, round_down
from discreet.kernel.loss import Budget, Loss
from discreet.kernel.mechanism import Gaussian, Laplace, laplace_for
from discreet.kernel.question import Discover
from discreet.kernel.release import Ask, threshold_of
from discreet.kernel.threshold import threshold_for
from discreet.sql.plan import Part

DISCOVERY = Fraction(1, 100)  # of the delta set apart for discovering groups, for one question
_FINE = 1 << 30  # shares are whole numbers of this part of the price


def price_of(
    budget: Budget,
    parts: tuple[Part, ...],
    *,
    epsilon: Number | None,
    rho: Number | None = None,
    delta: Fraction | None = None,
) -> Loss:
    """Return what a question costs that asks for an epsilon, or a rho; discovering groups takes its part of delta."""
    if epsilon is not None and rho is not None:
        raise Refused("epsilon: give epsilon or rho, not both.")
    if epsilon is None and rho is None:
        raise Refused('epsilon: say what the answer may cost, such as epsilon="1/10"; there is no default.')
    if rho is not None and budget.rho is None:
        raise Refused("rho: the budget is pure, so prices are in epsilon. Give epsilon instead.")
    try:
        paid = Loss(None, positive(rho, "rho")) if rho is not None else budget.price(epsilon)  # type: ignore[arg-type]
    except (TypeError, ValueError) as error:
        raise Refused(f"{error}.") from None
    discovers = any(isinstance(part.question.groups, Discover) for part in parts)
    if not discovers:
        return paid
    return Loss(paid.epsilon, paid.rho, budget.discover * DISCOVERY if delta is None else delta)


def split(parts: tuple[Part, ...], price: Loss) -> tuple[Ask, ...]:
    """Return the questions with noise for which the price, all of it, pays.

    With the weight w of a total's squared margin, the sum of w·margin² is least when its share of a rho is proportional
    to the square root of w, and its share of an epsilon to the cube root.
    """
    weights = [weight for part in parts for weight in part.weights]
    shares = iter(_shares([float(weight) ** (1 / 3 if price.epsilon is not None else 1 / 2) for weight in weights]))
    discovering = sum(isinstance(part.question.groups, Discover) for part in parts)
    try:
        return tuple(_asked(part, price, shares, price.delta / max(1, discovering)) for part in parts)
    except ValueError:  # of a mechanism: no such scale, or no such delta
        raise Refused(
            "epsilon: no noise fits so small or so large a price. Choose one between 1e-9 and 1000."
        ) from None


def _asked(part: Part, price: Loss, shares: Iterator[Fraction], delta: Fraction) -> Ask:
    question = part.question
    noises = tuple(_noise(part, place, price, next(shares)) for place in range(len(question.totals)))
    if not isinstance(question.groups, Discover):
        return Ask(question, noises)
    like = threshold_of(question, noises[0], cut=1)
    found = threshold_for(noises[0], groups=like.groups, delta=delta, size=like.size, most=like.most)
    return Ask(question, noises, found.cut)


def _noise(part: Part, place: int, price: Loss, share: Fraction) -> Laplace | Gaussian:
    sensitivity = part.question.sensitivity_of(part.question.totals[place])
    if price.epsilon is not None:
        return laplace_for(sensitivity, price.epsilon * share)
    return gaussian_for(sensitivity, rho=price.rho * share)


def _shares(sizes: list[float]) -> list[Fraction]:
    """Return shares in proportion to the sizes, as exact fractions whose sum is exactly 1."""
    whole = [max(1, int(size / sum(sizes) * _FINE)) for size in sizes]
    largest = whole.index(max(whole))
    whole[largest] += _FINE - sum(whole)
    return [Fraction(part, _FINE) for part in whole]


def largest_epsilon(budget: Budget, room: Loss) -> Fraction:
    """Return the largest epsilon, to three digits, that can be asked for within what is left."""
    if budget.rho is None:
        return room.epsilon or Fraction(0)
    if not room.rho:
        return Fraction(0)
    found = Loss(None, room.rho).to_epsilon(budget.conversion)
    for place in range(40):  # epsilon is about what rho converts to; a little less has a rho that fits
        epsilon = round_down(found * (1 - Fraction(place, 200)), max(0, 2 - math.floor(math.log10(float(found)))))
        if epsilon > 0 and budget.price(epsilon).rho <= room.rho:
            return epsilon
    return Fraction(0)
