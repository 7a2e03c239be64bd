"""The lines of advice for a policy, as TOML with comments."""

import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING

from discreet.advise.advice_plan import grouping_text
from discreet.advise.advice_text import bounds_sentence, range_sentence
from discreet.advise.value_cells import decimal_text
from discreet.policy.declarations import declared_bound
from discreet.policy.model import column_text
from discreet.policy.toml import inline_text, key_text
from discreet.pricing.remaining_budget import cost_in_budget

if TYPE_CHECKING:
    from discreet.advise.advice import Advice

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
