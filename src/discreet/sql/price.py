"""How a price becomes noise: it is shared among the totals so that the margins of what is shown come out smallest."""

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction

from discreet.kernel.calibration import gaussian_for
from discreet.kernel.earlier import Earlier
from discreet.kernel.errors import Refused
from discreet.kernel.exact import Number, positive, round_down
from discreet.kernel.loss import Budget, Loss
from discreet.kernel.mechanism import Gaussian, Laplace, laplace_for
from discreet.kernel.question import Discover
from discreet.kernel.release import Ask, threshold_of
from discreet.kernel.threshold import threshold_for
from discreet.kernel.topic import digest
from discreet.sql.choices import walks_of
from discreet.sql.intervals import Noise
from discreet.sql.plan import Part

Amounts = tuple[tuple[Fraction, ...], ...]  # for each total of each release, an epsilon or a rho
Kind = type[Laplace] | type[Gaussian]

DISCOVERY = Fraction(1, 100)  # of the delta set apart for discovering groups, for one question
_NO_NOISE = "epsilon: no noise fits so small or so large a price. Choose one between 1e-9 and 1000."
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
    return Loss(paid.epsilon, paid.rho, delta_for(budget, parts, delta))


def delta_for(budget: Budget, parts: tuple[Part, ...], delta: Fraction | None = None) -> Fraction:
    """Return what discovering groups takes of delta: a hundredth of what is set apart, unless a question says more."""
    if not discovering(parts):
        return Fraction(0)
    return budget.discover * DISCOVERY if delta is None else delta


def split(parts: tuple[Part, ...], price: Loss) -> tuple[Ask, ...]:
    """Return the questions with noise for which the price, all of it, pays."""
    kind = kind_of(price)
    delta = price.delta / max(1, discovering(parts))
    return tuple(
        ask_for(part, [noise_for(part, place, amount, kind) for place, amount in enumerate(each)], delta)
        for part, each in zip(parts, amounts_of(parts, price), strict=True)
    )


def kind_of(price: Loss) -> Kind:
    """Return which noise a price buys: Laplace for an epsilon, Gaussian for a rho."""
    return Gaussian if price.epsilon is None else Laplace


def discovering(parts: Iterable[Part]) -> int:
    """Return how many of the releases discover their groups."""
    return sum(isinstance(part.question.groups, Discover) for part in parts)


def amounts_of(parts: tuple[Part, ...], price: Loss) -> Amounts:
    """Return what each total of each release gets of a price: an epsilon, or a rho."""
    whole = price.rho if price.epsilon is None else price.epsilon
    return tuple(tuple(whole * share for share in shares) for shares in shares_of(parts, kind_of(price)))


def shares_of(parts: tuple[Part, ...], kind: Kind) -> Amounts:
    """Return every total's share of a price; what tells about the limits has a fixed one, and the others the rest.

    With the weight w of a total's squared margin, the sum of w·margin² is least when its share of a rho is proportional
    to the square root of w, and its share of an epsilon to the cube root.
    """
    reports = [part.report / len(parts) for part in parts]
    power = 1 / 3 if kind is Laplace else 1 / 2
    rest = iter(_shares([float(weight) ** power for part in parts for weight in part.weights], _names(parts)))
    found = []
    for part, report in zip(parts, reports, strict=True):
        shares = [(1 - sum(reports)) * next(rest) for _ in part.weights]
        found.append(tuple([*shares, report] if report else shares))
    return tuple(found)


def noise_for(part: Part, place: int, amount: Fraction, kind: Kind) -> Noise:
    """Return the noise that a total has for an epsilon (Laplace) or a rho (Gaussian)."""
    sensitivity = part.question.sensitivity_of(part.question.totals[place])
    try:
        return laplace_for(sensitivity, amount) if kind is Laplace else gaussian_for(sensitivity, rho=amount)
    except ValueError:  # of a mechanism: there is no such scale
        raise Refused(_NO_NOISE) from None


def ask_for(
    part: Part,
    noises: Sequence[Noise],
    delta: Fraction,
    earlier: tuple[Earlier | None, ...] = (),
    known: Iterable[int] = (),
) -> Ask:
    """Return a question with its noises; if it discovers groups, with the lowest threshold for a delta."""
    question, every = part.question, tuple(noises)
    cut = None
    if isinstance(question.groups, Discover):
        like = threshold_of(question, every[0], cut=1)
        try:
            cut = threshold_for(every[0], groups=like.groups, delta=delta, size=like.size, most=like.most).cut
        except ValueError:  # no such delta
            raise Refused(_NO_NOISE) from None
    return Ask(question, every, cut, walks_of(part, every), earlier, frozenset(known))


def _names(parts: tuple[Part, ...]) -> list[str]:
    """Return a name for each total that has a weight, whatever their order is."""
    about = [digest((part.question.relation, part.question.by)) for part in parts]
    return [
        digest((name, part.question.totals[place]))
        for name, part in zip(about, parts, strict=True)
        for place in range(len(part.weights))
    ]


def _shares(sizes: list[float], names: Sequence[str]) -> list[Fraction]:
    """Return shares in proportion to the sizes, as exact fractions whose sum is exactly 1.

    What rounding leaves goes to the largest, of equal ones to the first by name: the order does not matter.
    """
    whole = [max(1, int(size / math.fsum(sizes) * _FINE)) for size in sizes]
    largest = min(range(len(whole)), key=lambda place: (-whole[place], names[place]))
    whole[largest] += _FINE - sum(whole)
    return [Fraction(part, _FINE) for part in whole]


def largest_epsilon(budget: Budget, room: Loss) -> Fraction:
    """Return the largest epsilon, to three digits, that can be asked for within what is left."""
    if budget.rho is None:
        return room.epsilon or Fraction(0)
    if not room.rho:
        return Fraction(0)
    found = Loss(None, room.rho).to_epsilon(budget.conversion)
    if not float(found):
        return Fraction(0)  # so little is left that it converts to nothing
    for place in range(40):  # epsilon is about what rho converts to; a little less has a rho that fits
        epsilon = round_down(found * (1 - Fraction(place, 200)), max(0, 2 - math.floor(math.log10(float(found)))))
        if epsilon > 0 and budget.price(epsilon).rho <= room.rho:
            return epsilon
    return Fraction(0)
