"""From margins to a price: the least that makes each named column as exact as was asked for."""

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

from discreet.kernel.errors import Refused
from discreet.kernel.exact import Number, positive
from discreet.kernel.mechanism import Laplace
from discreet.pricing.combining import table_of
from discreet.pricing.draws import Known
from discreet.pricing.foresight import Foreseen
from discreet.pricing.owing import credit, noise_at
from discreet.sql.columns import noisy_names
from discreet.sql.plan import Plan
from discreet.sql.price import Amounts, shares_of

Margins = Number | Mapping[str, Number]
Place = tuple[int, int]  # a part, and a total in it
Priced = Mapping[Place, Fraction]

_DIGITS, _FINE = 4, 9  # of a price, and of what a single total gets of it
_CLOSE = 1 + 1e-6
_DEAREST = 10**7  # of an epsilon or a rho
_ZERO = Fraction(0)


def read_margins(plan: Plan, margin: Margins) -> dict[str, Fraction]:
    """Read a margin for the one noisy column of an answer, or margins of columns by name."""
    names = noisy_names(plan)
    if not names:
        raise Refused("margin: no column of this answer carries noise. Leave the margin out, and give epsilon.")
    if not isinstance(margin, Mapping):
        if len(names) > 1:
            raise Refused(f'margin: several columns carry noise ({", ".join(names)}). Name some: {{"{names[0]}": …}}.')
        margin = {names[0]: margin}
    unknown = [str(name) for name in margin if name not in names]
    if unknown or not margin:
        which = f"{unknown[0]!r} is no noisy column" if unknown else "no column is named"
        raise Refused(f"margin: {which}. The answer has {', '.join(names)}.")
    try:
        return {name: positive(wanted, "margin") for name, wanted in margin.items()}
    except (TypeError, ValueError) as error:
        raise Refused(f"{error}.") from None


def amounts_within(
    plan: Plan, known: Sequence[Known], columns: Sequence[Foreseen], margins: Mapping[str, Fraction]
) -> Amounts:
    """Return the least amounts with which every column has its margin, given what is known already.

    Columns of one total come first. What the others share with them is not raised without need, and totals in no named
    column, if nothing is known of them, get what they would get of a price that is shared as usual.
    """
    shares = {
        (n, p): share for n, part in enumerate(shares_of(plan.parts, known[0].kind)) for p, share in enumerate(part)
    }
    start = {place: _start(known[place[0]], place[1], columns, margins) for place in shares}
    amounts = dict(start)
    for column in sorted(columns, key=lambda each: len(each.places)):
        amounts |= _met(column, margins[column.name], known[column.number], amounts, shares)
    named = {(column.number, place) for column in columns for place in column.places}
    rate = sum((amounts[place] for place in named), _ZERO) / sum((shares[place] for place in named), _ZERO)
    amounts |= {place: rate * share for place, share in shares.items() if place not in named and not start[place]}
    return _rounded(known, start, amounts)


def margins_for(
    known: Sequence[Known], columns: Sequence[Foreseen], amounts: Amounts, room: Fraction
) -> dict[str, float]:
    """Return the margins that columns would have if no more than `room` were paid, shared in the same way."""
    needed = {(n, p): amount - credit(known[n], p) for n, part in enumerate(amounts) for p, amount in enumerate(part)}
    total = sum(need for (n, p), need in needed.items() if amounts[n][p] > _paid(known[n], p))
    factor = _down(room) / total if total else _ZERO
    found = {}
    for column in columns:
        each = known[column.number]
        got = {p: credit(each, p) + factor * needed[column.number, p] for p in column.places}
        noises = {p: noise_at(each, p, max(amount, _paid(each, p))) for p, amount in got.items() if amount}
        found[column.name] = column.margin(noises) if len(noises) == len(got) else math.inf
    return found


def _paid(known: Known, place: int) -> Fraction:
    return known.paid(place) if known.mixes else _ZERO


def _start(known: Known, place: int, columns: Sequence[Foreseen], margins: Mapping[str, Fraction]) -> Fraction:
    """Return what a total has already; what cannot be mixed is kept as a whole, if it is exact enough."""
    if known.mixes or not known.draws:
        return _paid(known, place)
    table = table_of(known)
    noises = dict(enumerate(table.pieces[0].noises))
    own = [column for column in columns if column.part is known.part]
    kept = all(column.reaches(noises, margins[column.name]) for column in own)
    return list(table.paid.values())[place] if kept else _ZERO


def _met(
    column: Foreseen,
    wanted: Fraction,
    known: Known,
    amounts: Mapping[Place, Fraction],
    shares: Mapping[Place, Fraction],
) -> dict[Place, Fraction]:
    """Return the amounts of a column's totals, raised together until its margin is reached."""
    places = [(column.number, place) for place in column.places]

    def at(scale: Fraction) -> dict[Place, Fraction]:
        return {place: max(amounts[place], scale * shares[place]) for place in places}

    def enough(scale: float) -> bool:
        got = at(Fraction(scale))
        if not all(got.values()):
            return False
        return column.reaches({place[1]: noise_at(known, place[1], amount) for place, amount in got.items()}, wanted)

    if not known.mixes and all(amounts[place] for place in places):
        return {}  # kept as it is
    if enough(0.0):
        return {}
    most = float(_DEAREST / max(shares[place] for place in places))
    scale = _least(enough, _guess(column, wanted, shares), most)
    if scale is None:
        raise Refused(
            f"margin: no price makes {column.name!r} as exact as ±{float(wanted):g}. Ask for a wider margin: explain() "
            "tells which one an epsilon gives."
        )
    return at(Fraction(scale))


def _guess(column: Foreseen, wanted: Fraction, shares: Priced) -> float:
    """Return about the right scale for a column of one total: it only says where to look first."""
    if len(column.places) > 1 or (steps := column.steps(wanted)) < 0:
        return 1.0
    (place,) = column.places
    moved = column.part.question.sensitivity_of(column.part.question.totals[place])
    if column.kind is Laplace:
        amount = moved.l1 * math.log(20) / (steps + 0.5)
    else:
        amount = moved.l2_squared * 1.96**2 / 2 / (steps + 0.5) ** 2
    return float(amount / shares[column.number, place])


def _least(enough: Callable[[float], bool], near: float, most: float) -> float | None:
    """Return the least number that is enough, to a millionth and not below; None if none up to `most` is."""
    low = high = min(near, most)
    step = 1.01
    while not enough(high):
        if high >= most:
            return None
        low, high, step = high, min(most, high * step), step**2
    step = 1.01
    while low == high:
        low, step = high / step, step**2
        if enough(low):
            high = low
    while high > low * _CLOSE:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _rounded(known: Sequence[Known], start: Priced, amounts: Priced) -> Amounts:
    """Return amounts whose price has few digits, rounded up; what that adds goes to the largest."""
    before = {place: credit(known[place[0]], place[1]) for place in amounts}
    needed = {
        place: rounded_up(amounts[place] - before[place], _FINE) for place in amounts if amounts[place] > start[place]
    }
    if needed:
        largest = max(needed, key=needed.__getitem__)
        total = sum(needed.values(), _ZERO)
        needed[largest] += rounded_up(total, _DIGITS) - total
    return tuple(
        tuple(before[n, p] + needed[n, p] if (n, p) in needed else amounts[n, p] for p in range(len(each.topics)))
        for n, each in enumerate(known)
    )


def rounded_up(number: Fraction, digits: int) -> Fraction:
    """Return a number above 0 with so many leading digits, not below it."""
    unit = _unit(number, digits)
    return math.ceil(number / unit) * unit


def _down(number: Fraction) -> Fraction:
    if not number:
        return _ZERO
    unit = _unit(number, _DIGITS)
    return math.floor(number / unit) * unit


def _unit(number: Fraction, digits: int) -> Fraction:
    """Return what the last of so many leading digits of a number is worth.

    >>> _unit(Fraction(123456), 4), _unit(Fraction("0.0123456"), 4)
    (Fraction(100, 1), Fraction(1, 100000))
    """
    power = math.floor(math.log10(number.numerator) - math.log10(number.denominator))
    power += (number >= Fraction(10) ** (power + 1)) - (number < Fraction(10) ** power)
    return Fraction(10) ** (power - digits + 1)
