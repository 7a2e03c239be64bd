"""From margins to a cost: the smallest that gives each named column the requested margin."""

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

from discreet.estimate.planned_release import QueryPlan, noisy_columns
from discreet.kernel.errors import Refused
from discreet.kernel.mechanism import Laplace
from discreet.kernel.numbers import Number, as_positive
from discreet.policy.declarations import declared_name
from discreet.pricing.allocation import Allocation, cost_shares
from discreet.pricing.combined_release import combine_draws
from discreet.pricing.error_forecast import ColumnForecast
from discreet.pricing.release_history import ReleaseHistory
from discreet.pricing.release_plan import noise_at_cost, reusable_cost

Margins = Number | Mapping[str, Number]
TotalKey = tuple[int, int]  # indices of a release and of a total in it
AmountsByTotal = Mapping[TotalKey, Fraction]

_COST_DIGITS, _AMOUNT_DIGITS = 4, 9  # significant digits of a cost, and of the amount for a single total
_TOLERANCE = 1 + 1e-6
_MAX_COST = 10**7  # an epsilon or a rho
_ZERO = Fraction(0)


def read_margins(plan: QueryPlan, margin: Margins) -> dict[str, Fraction]:
    """Return the margins by column; a single number is for the only noisy column."""
    names = noisy_columns(plan)
    if not names:
        raise Refused("margin: no column of this answer is noisy. Give epsilon instead of a margin.")
    if not isinstance(margin, Mapping):
        if len(names) > 1:
            raise Refused(
                f'margin: several columns are noisy ({", ".join(names)}). Name the column: {{"{names[0]}": …}}.'
            )
        margin = {names[0]: margin}
    margin = {name if name in names else declared_name(names, str(name)) or name: margin[name] for name in margin}
    unknown = [str(name) for name in margin if name not in names]
    if unknown or not margin:
        which = f"{unknown[0]!r} is not a noisy column" if unknown else "no column is named"
        raise Refused(f"margin: {which}. The noisy columns are {', '.join(names)}.")
    try:
        return {name: as_positive(target, "margin") for name, target in margin.items()}
    except (TypeError, ValueError) as error:
        raise Refused(f"{error}.") from None


def allocation_for_margins(
    plan: QueryPlan,
    histories: Sequence[ReleaseHistory],
    forecasts: Sequence[ColumnForecast],
    margins: Mapping[str, Fraction],
) -> Allocation:
    """Return the smallest amounts that give every column its margin, given earlier releases.

    Columns with one total come first, so that totals they share with others are not raised unnecessarily. Totals that
    no named column uses get their usual share of the cost, unless they were released before.
    """
    shares = {
        (n, p): share
        for n, release_shares in enumerate(cost_shares(plan.releases, histories[0].noise_type))
        for p, share in enumerate(release_shares)
    }
    initial = {key: _initial_amount(histories[key[0]], key[1], forecasts, margins) for key in shares}
    amounts = dict(initial)
    for forecast in sorted(forecasts, key=lambda each: len(each.total_indices)):
        amounts |= _amounts_for_margin(
            forecast, margins[forecast.name], histories[forecast.release_index], amounts, shares
        )
    named = {(column.release_index, place) for column in forecasts for place in column.total_indices}
    rate = sum((amounts[place] for place in named), _ZERO) / sum((shares[place] for place in named), _ZERO)
    amounts |= {place: rate * share for place, share in shares.items() if place not in named and not initial[place]}
    return _rounded_allocation(histories, initial, amounts)


def margins_within(
    histories: Sequence[ReleaseHistory],
    forecasts: Sequence[ColumnForecast],
    allocation: Allocation,
    remaining: Fraction,
) -> dict[str, float]:
    """Return the margins of the columns for a cost of at most `remaining`, allocated in the same proportions."""
    needed = {
        (n, p): amount - reusable_cost(histories[n], p)
        for n, amounts in enumerate(allocation)
        for p, amount in enumerate(amounts)
    }
    total = sum(need for (n, p), need in needed.items() if allocation[n][p] > _cost_so_far(histories[n], p))
    factor = _round_down_digits(remaining) / total if total else _ZERO
    margins = {}
    for forecast in forecasts:
        history = histories[forecast.release_index]
        affordable = {
            p: reusable_cost(history, p) + factor * needed[forecast.release_index, p] for p in forecast.total_indices
        }
        noises = {
            p: noise_at_cost(history, p, max(amount, _cost_so_far(history, p)))
            for p, amount in affordable.items()
            if amount
        }
        margins[forecast.name] = forecast.margin(noises) if len(noises) == len(affordable) else math.inf
    return margins


def _cost_so_far(history: ReleaseHistory, index: int) -> Fraction:
    return history.cost_of(index) if history.combinable else _ZERO


def _initial_amount(
    history: ReleaseHistory, index: int, forecasts: Sequence[ColumnForecast], margins: Mapping[str, Fraction]
) -> Fraction:
    """Return the amount already spent on a total; a release that cannot be combined counts only if accurate enough."""
    if history.combinable or not history.draws:
        return _cost_so_far(history, index)
    combined = combine_draws(history)
    noises = dict(enumerate(combined.pieces[0].noises))
    own_forecasts = [forecast for forecast in forecasts if forecast.release is history.release]
    accurate_enough = all(column.meets(noises, margins[column.name]) for column in own_forecasts)
    return list(combined.costs.values())[index] if accurate_enough else _ZERO


def _amounts_for_margin(
    forecast: ColumnForecast,
    target: Fraction,
    history: ReleaseHistory,
    amounts: Mapping[TotalKey, Fraction],
    shares: Mapping[TotalKey, Fraction],
) -> dict[TotalKey, Fraction]:
    """Return the amounts of a column's totals, scaled up together until its margin is reached."""
    keys = [(forecast.release_index, key) for key in forecast.total_indices]

    def scaled_amounts(scale: Fraction) -> dict[TotalKey, Fraction]:
        return {place: max(amounts[place], scale * shares[place]) for place in keys}

    def is_enough(scale: float) -> bool:
        scaled = scaled_amounts(Fraction(scale))
        if not all(scaled.values()):
            return False
        return forecast.meets(
            {place[1]: noise_at_cost(history, place[1], amount) for place, amount in scaled.items()}, target
        )

    if not history.combinable and all(amounts[place] for place in keys):
        return {}  # nothing to raise
    if is_enough(0.0):
        return {}
    most = float(_MAX_COST / max(shares[place] for place in keys))
    scale = _smallest_sufficient(is_enough, _initial_scale(forecast, target, shares), most)
    if scale is None:
        raise Refused(
            f"margin: no epsilon gives {forecast.name!r} a margin of ±{float(target):g}. Ask for a wider margin; "
            "explain() shows the margin for a given epsilon."
        )
    return scaled_amounts(Fraction(scale))


def _initial_scale(forecast: ColumnForecast, target: Fraction, shares: AmountsByTotal) -> float:
    """Return an initial guess of the scale for a column with one total."""
    if len(forecast.total_indices) > 1 or (steps := forecast.margin_in_steps(target)) < 0:
        return 1.0
    (index,) = forecast.total_indices
    sensitivity = forecast.release.question.sensitivity_of(forecast.release.question.totals[index])
    if forecast.noise_type is Laplace:
        amount = sensitivity.l1 * math.log(20) / (steps + 0.5)
    else:
        amount = sensitivity.l2_squared * 1.96**2 / 2 / (steps + 0.5) ** 2
    return float(amount / shares[forecast.release_index, index])


def _smallest_sufficient(is_enough: Callable[[float], bool], guess: float, largest: float) -> float | None:
    """Return the smallest sufficient number, rounded up by at most 1e-6; None if `largest` is not sufficient."""
    low = high = min(guess, largest)
    step = 1.01
    while not is_enough(high):
        if high >= largest:
            return None
        low, high, step = high, min(largest, high * step), step**2
    step = 1.01
    while low == high:
        low, step = high / step, step**2
        if is_enough(low):
            high = low
    while high > low * _TOLERANCE:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high


def _rounded_allocation(
    histories: Sequence[ReleaseHistory], initial: AmountsByTotal, amounts: AmountsByTotal
) -> Allocation:
    """Round the cost up to a few digits, and add the difference to the largest amount."""
    reusable = {key: reusable_cost(histories[key[0]], key[1]) for key in amounts}
    needed = {
        place: round_up_digits(amounts[place] - reusable[place], _AMOUNT_DIGITS)
        for place in amounts
        if amounts[place] > initial[place]
    }
    if needed:
        largest = max(needed, key=needed.__getitem__)
        total = sum(needed.values(), _ZERO)
        needed[largest] += round_up_digits(total, _COST_DIGITS) - total
    return tuple(
        tuple(
            reusable[n, p] + needed[n, p] if (n, p) in needed else amounts[n, p]
            for p in range(len(history.fingerprints))
        )
        for n, history in enumerate(histories)
    )


def round_up_digits(number: Fraction, digits: int) -> Fraction:
    """Round a positive number up to this many significant digits."""
    unit = _last_digit_unit(number, digits)
    return math.ceil(number / unit) * unit


def _round_down_digits(number: Fraction) -> Fraction:
    if not number:
        return _ZERO
    unit = _last_digit_unit(number, _COST_DIGITS)
    return math.floor(number / unit) * unit


def _last_digit_unit(number: Fraction, digits: int) -> Fraction:
    """Return the unit of the last of `digits` significant digits of a number.

    >>> _last_digit_unit(Fraction(123456), 4), _last_digit_unit(Fraction("0.0123456"), 4)
    (Fraction(100, 1), Fraction(1, 100000))
    """
    power = math.floor(math.log10(number.numerator) - math.log10(number.denominator))
    power += (number >= Fraction(10) ** (power + 1)) - (number < Fraction(10) ** power)
    return Fraction(10) ** (power - digits + 1)
