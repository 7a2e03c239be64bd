"""Advice in words, for the terminal and for the comments of a policy."""

import math
import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING

from discreet.advise.advice_plan import grouping_text
from discreet.answer.text import round_up, short_number
from discreet.policy.declarations import declared_bound
from discreet.policy.model import column_text
from discreet.policy.toml import decimal_text, inline_text, key_text, list_text
from discreet.pricing.remaining_budget import cost_in_budget

if TYPE_CHECKING:
    from discreet.advise.advice import Advice, BoundsAdvice, RangeAdvice

_SHOWN = 2.1  # the table of candidates extends by this factor beyond the chosen radii


def advice_text(advice: "Advice") -> str:
    """Return the report: bounds with candidates, ranges, and the cost."""
    lines: list[str] = []
    for table in advice.tables:
        if table in advice.plan.row_tables:
            lines += [f"{table}: every row is a unit of its own, so there are no contribution bounds to choose.", ""]
    for bounds in advice.bounds:
        lines += [f"{bounds.grouping.table}, {bounds_sentence(bounds)}", *_candidate_lines(bounds), ""]
    for each in advice.ranges:
        lines += [f"{each.target.table}.{each.target.column.name}: {range_sentence(each, advice.noun)}"]
        if each.chosen and each.chosen.bins:
            lines += [f"  bins for publishing: {_bins_text(each)}"]
    if any(each.chosen for each in advice.ranges):
        lines += ["", f"Shares of values: each {advice.noun} counts equally, however many rows they have."]
    return "\n".join([*lines, "", _cost_line(advice)])


def _cost_line(advice: "Advice") -> str:
    budget = advice.plan.policy.budget
    cost, paid = cost_in_budget(advice.cost, budget), cost_in_budget(advice.paid, budget)
    if advice.paid == advice.cost:
        return f"Cost: {cost}."
    if not (advice.paid.epsilon or advice.paid.rho):
        return f"No charge: all of it was paid before, and cost {cost}."
    return f"Charged {paid}: partly reused from earlier answers, full cost {cost}."


def bounds_sentence(advice: "BoundsAdvice") -> str:
    """Return the bounds of a grouping, with margin, forecast of the bias, and a warning if the choice was blind."""
    bounds, radius = advice.bounds, advice.radius(advice.bounds)
    if bounds.blind:
        automatic = advice.evidence.release.automatic
        guess = f"groups = {bounds.groups} and rows = {bounds.rows} would be a guess"
        instead = "the declared bounds stay" if automatic and automatic.declared else guess
        return (
            f"{grouping_text(advice.grouping)}: the histogram cannot tell, because it has too few units for its noise; "
            f"{instead}. Take the bounds from the meaning of the data, or give a larger epsilon."
        )
    return (
        f"{grouping_text(advice.grouping)}: groups = {bounds.groups}, rows = {bounds.rows}. A group's count then has a "
        f"margin of ± {round_up(float(advice.margin(radius)))} at the query's cost, and {_bias_text(advice, radius)} "
        "(forecast, not a bound)."
    )


def _bias_text(advice: "BoundsAdvice", radius: float) -> str:
    middle, high = (_two_digits(advice.bias_at(radius, probability)) for probability in (0.5, 0.9))
    return f"a clipping bias of about {middle} to {high}" if high != "0" else "no clipping bias"


def _candidate_lines(advice: "BoundsAdvice") -> Iterator[str]:
    """Yield the margin and the bias at some radii, with marks for the chosen one and that of the least error."""
    radii, middle = advice.bias(0.5)
    _, high = advice.bias(0.9)
    chosen, best = advice.radius(advice.bounds), advice.radius(advice.least_error)
    shown = [place for place, radius in enumerate(radii) if best / _SHOWN <= radius <= max(chosen, best) * _SHOWN]
    yield f"  {'radius':>10}  {'margin ±':>10}  {'clipping bias':>13}  {'at most about':>13}"
    for place in shown:
        marks = [
            text for value, text in ((chosen, "chosen"), (best, "least total error")) if _is_near(value, radii[place])
        ]
        cells = (radii[place], float(advice.margin(radii[place])), middle[place], high[place])
        numbers = [_two_digits(number).rjust(width) for number, width in zip(cells, (10, 10, 13, 13), strict=True)]
        yield f"  {'  '.join(numbers)}  {', '.join(marks)}".rstrip()


def _two_digits(number: float) -> str:
    return round_up(number) if number >= 0.5 else "0"


def _is_near(value: float, radius: float) -> bool:
    return abs(math.log2(value / radius)) < 0.25


def range_sentence(advice: "RangeAdvice", noun: str) -> str:
    """Return the range of a column with its uncertainty; or that the histogram cannot tell, and what to do then."""
    chosen = advice.chosen
    if chosen is None:
        return (
            f"the histogram cannot tell: it needs about {round_up(advice.units_needed)} units ({noun}s) with values "
            "at this cost, or its values cannot be read, such as 12,5 or 31.12.2026. "
            "Choose the range from the meaning of the column, or give a larger epsilon."
        )
    outside, at_most = percent(chosen.outside), percent(chosen.outside_at_most)
    parts = [
        f"between = {list_text(advice.ends)}; {outside} of the values seem to be outside, at most {at_most} (95 %)."
    ]
    if chosen.missing >= 0.005:
        parts.append(f"About {percent(chosen.missing)} are NULL.")
    if advice.rough:
        parts.append("The histogram is rough at this cost, so the range is wider than it may need to be.")
    if advice.beyond_grid:
        parts.append("Values reach beyond the grid of the histogram: check the range.")
    return " ".join(parts)


def _bins_text(advice: "RangeAdvice") -> str:
    assert advice.chosen is not None
    bins = advice.chosen.bins
    return f"{len(bins) - 1} from {', '.join(short_number(edge, 6) for edge in bins)}"


def percent(share: float) -> str:
    """Format a share as a percentage, with two digits.

    >>> percent(0.0123), percent(0.25), percent(0.0000123)
    ('1.2 %', '25 %', 'under 0.1 %')
    """
    return f"{100 * share:.2g} %" if share >= 0.001 else "under 0.1 %"


_WIDTH = 100


def policy_lines(advice: "Advice") -> str:
    """Return the lines for the policy; comments say how each number was chosen, and what was paid."""
    lines = [*_comment(_header(advice))]
    for table in advice.tables:
        lines += ["", f"[tables.{key_text(table)}]", *_bounds_lines(advice, table)]
        if any(each.target.table == table for each in advice.ranges):
            lines += ["", f"[tables.{key_text(table)}.columns]", *_column_lines(advice, table)]
    return "\n".join([*lines, *_bin_lines(advice), ""])


def _header(advice: "Advice") -> str:
    policy = advice.plan.policy
    cost = cost_in_budget(advice.cost, policy.budget)
    version = f", version {policy.data.version!r}" if policy.data.version else ""
    return (
        f"Chosen privately by `discreet advise` for {policy.data.name!r}{version}: every number follows from noisy "
        f"histograms, which cost {cost}. Ledger entries: {', '.join(advice.receipts)}."
    )


def _bounds_lines(advice: "Advice", table: str) -> Iterator[str]:
    if table in advice.plan.row_tables:
        yield from _comment("Every row is a unit of its own: groups and rows are 1.")
        return
    chosen = advice.table_bounds(table)
    if chosen is None:
        return
    yield from _comment(bounds_sentence(chosen))
    if not chosen.bounds.blind and chosen.least_error != chosen.bounds:
        pair = f"groups = {chosen.least_error.groups}, rows = {chosen.least_error.rows}"
        yield from _comment(f"Least total error, but margins that the bias may exceed: {pair}.")
    for other in advice.bounds:
        if other.grouping.table == table and other is not chosen:
            pair = f"groups={other.bounds.groups}, rows={other.bounds.rows}"
            yield from _comment(f"{grouping_text(other.grouping)}: ask with {pair}.")
    # A blind choice is a guess, which has to be uncommented by hand; without keys, nothing was learned about groups.
    mark = "# " if chosen.bounds.blind else ""
    if chosen.grouping.keys or declared_bound(advice.plan.policy.tables[table].groups) is None:
        yield f"{mark}groups = {chosen.bounds.groups}"
    yield f"{mark}rows = {chosen.bounds.rows}"


def _column_lines(advice: "Advice", table: str) -> Iterator[str]:
    for each in advice.ranges:
        if each.target.table == table:
            yield from _comment(range_sentence(each, advice.noun))
            yield f"{key_text(each.target.column.name)} = {column_text(each.column)}"


def _bin_lines(advice: "Advice") -> Iterator[str]:
    """Yield bins for publishing: widths, as a publication plan has them, and ends where most values are small."""
    for table in advice.tables:
        chosen = {
            key_text(each.target.column.name): each.chosen
            for each in advice.ranges
            if each.target.table == table and each.chosen and each.chosen.bins
        }
        if chosen:
            yield ""
            yield from _comment(f"Bins of {table} for a publication plan:")
            widths = {name: decimal_text(each.bin_width) for name, each in chosen.items()}
            yield f"# bins = {inline_text(widths)}"
        for name, each in chosen.items():
            if not each.has_equal_bins:
                ends = ", ".join(map(decimal_text, each.bins))
                yield f"# {name}: most values are small; in a query, WIDTH_BUCKET({name}, ARRAY[{ends}])"


def _comment(text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent="# ", subsequent_indent="# ", break_long_words=False)
