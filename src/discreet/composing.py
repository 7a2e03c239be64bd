"""From released totals to what a user gets: columns with margins, what follows from them, and the price in words."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from hashlib import sha256

import numpy as np
import pyarrow as pa

from discreet.answer import Answer, Column, Explanation, Price
from discreet.kernel.dialect import Dialect, quoted
from discreet.kernel.event import Receipt
from discreet.kernel.gather import selects
from discreet.kernel.loss import Budget, Loss
from discreet.kernel.mechanism import Laplace
from discreet.kernel.question import Discover
from discreet.kernel.release import Key
from discreet.policy import Policy
from discreet.pricing import Due, Piece, Table, by_size, kind_for, price_of_all
from discreet.sql import after
from discreet.sql.choices import blurred, choices, rank_margin, sentences
from discreet.sql.columns import noisy_names, origins, sources
from discreet.sql.estimates import Statistic, described
from discreet.sql.intervals import Noise
from discreet.sql.plan import (
    Averaged,
    Counted,
    Part,
    Plan,
    Quantile,
    Spread,
    Tabled,
    assemble,
    parts_of,
    total_of,
)
from discreet.sql.reports import touched

_FARTHEST = 2.0**61  # that a redraw moves a number
_CHOSEN = "Rows were chosen by noisy numbers, and those that are shown tend to look too large or too small for it."
_TRUNCATED = "A margin of 0 is that of a rounded number: integer / integer truncates; write 1.0 * a / b for a ratio."
_NEGATIVE = "A negative count is noise around a small one; it is shown as it is, because cutting it would bias sums."
_MISSING = "NULL stands where a group has too few values, as far as the noise lets tell, for this price."
_RANKED = "as far as values lie whose ranks differ by about {0:,.2g} rows from the one that is asked for"
_TABLED = "values whose counts differ by no more than the noise may change places"
_PIECES = "Groups that were shown in one of several draws only have the wider margins of that draw."
_DEPENDS = {
    "mean": "{0:,.3g} to {1:,.3g} divided by the number of values in a group, where that is large",
    "variance": "{0:,.3g} to {1:,.3g} divided by the number of values in a group, where that is large",
    "deviation": "{0:,.3g} to {1:,.3g} divided by the number of values in a group and by twice the deviation",
}


def answer(plan: Plan, tables: Sequence[Table], owed: Due, policy: Policy) -> Answer:
    """Return the answer that released totals make."""
    each = [(part, table, _placed(part, table)) for part, table in zip(plan.parts, tables, strict=True)]
    released: dict[str, pa.Table] = {}
    margins: dict[tuple[str, str], np.ndarray] = {}
    for part, table, rows in each:
        released[part.name], found = _assembled(part, table, rows)
        margins |= {(part.name, name): widths for name, widths in found.items()}

    def redraw(times: int) -> Mapping[str, pa.Table]:
        return {
            part.name: pa.concat_tables(map(partial(_redrawn, part, times), table.pieces, rows))
            for part, table, rows in each
        }

    found_table, shown = after.run_with_margins(plan.after, released, margins, redraw)
    noises = [[piece.noises for piece in table.pieces] for table in tables]
    return Answer(
        table=found_table,
        margins=shown,
        noise={name: _noise_of(plan, noises, name) for name in shown},
        price=price_shown(price_of_all(tables, kind_for(policy)), policy.budget),
        receipt=Receipt(max((table.newest for table in tables), key=lambda draw: draw.order).receipt),
        bounded=_bounded(plan, tables),
        touched=tuple(_reports(plan, tables, policy.data.protects)),
        notes=(
            *_notes(plan, released, shown),
            *owed.notes,
            *([_PIECES] if any(len(each) > 1 for each in noises) else []),
        ),
        paid=owed.loss,
    )


def _placed(part: Part, table: Table) -> list[np.ndarray]:
    """Return the place of each piece's rows in the whole table: sorted by the keys, as the analyst lists them."""
    sizes = [len(piece.noisy.keys) for piece in table.pieces]
    places = np.arange(sum(sizes))
    if len(sizes) > 1 or part.order != tuple(sorted(part.order)):
        keys = [key for piece in table.pieces for key in piece.noisy.keys]
        places[_sorted_rows(part, keys)] = np.arange(len(places))
    return np.split(places, np.cumsum(sizes)[:-1])


def _sorted_rows(part: Part, keys: Sequence[Key]) -> list[int] | np.ndarray:
    """Return the rows by their keys: in the order of declared values, or ascending with NULL last."""
    groups = part.question.groups
    if isinstance(groups, Discover):
        return sorted(range(len(keys)), key=lambda row: [(keys[row][at] is None, keys[row][at]) for at in part.order])
    # Declared keys are all there, and the last one changes fastest.
    return np.arange(len(keys)).reshape([len(domain) for domain in groups.domains]).transpose(part.order).ravel()


def _assembled(part: Part, table: Table, rows: Sequence[np.ndarray]) -> tuple[pa.Table, dict[str, np.ndarray]]:
    """Return the released table, and the margins of its measures in every row."""
    parts, widths = [], []
    for piece in table.pieces:
        noisy = piece.noisy
        chosen = choices(part, piece.noises, noisy.trees, len(noisy.keys))
        found, estimates = assemble(part, noisy.keys, noisy.values, piece.noises, chosen)
        parts.append(found)
        widths.append({name: each.margins for name, each in estimates.items()})
    order = np.argsort(np.concatenate(rows))
    if (order == np.arange(len(order))).all():
        return pa.concat_tables(parts), {name: np.concatenate([each[name] for each in widths]) for name in widths[0]}
    joined = {name: np.concatenate([each[name] for each in widths])[order] for name in widths[0]}
    return pa.concat_tables(parts).take(pa.array(order)), joined


def _reports(plan: Plan, tables: Sequence[Table], who: str) -> list[str]:
    """Say how many units the limits touched, once for each release that tells it."""
    largest = [max(table.pieces, key=lambda piece: len(piece.noisy.keys)) for table in tables]
    said = [
        touched(part, piece.noises, piece.noisy.values, who)
        for part, piece, table in zip(plan.parts, largest, tables, strict=True)
        if not table.untold
    ]
    return list(dict.fromkeys(words for words in said if words))


def _notes(plan: Plan, tables: Mapping[str, pa.Table], margins: Mapping[str, list[float | None]]) -> tuple[str, ...]:
    """Return what a reader of the numbers should know."""
    chosen = re.search(r"\b(LIMIT|WHERE|QUALIFY)\b", plan.above) is not None and bool(margins)
    computed = [
        name
        for name, origin in origins(plan).items()
        if isinstance(origin, after.RowWise)
        and not any(isinstance(measure.recipe, Quantile) for _, measure in sources(plan, origin))
    ]
    truncated = any(margin == 0 for name in computed for margin in margins.get(name, ()))
    negative = any(_has_negative_counts(part, tables[part.name]) for part in plan.parts) and not chosen
    missing = any(_has_nulls(part, tables[part.name]) for part in plan.parts)
    said = ((_CHOSEN, chosen), (_TRUNCATED, truncated), (_NEGATIVE, negative), (_MISSING, missing))
    return tuple(words for words, holds in said if holds)


def explanation(plan: Plan, owed: Due, policy: Policy, dialect: Dialect, too_dear: str = "") -> Explanation:
    """Return what a question would cost and how exact it would be, with the SQL for the tables that a policy shows."""
    shown = replace(dialect, source=quoted)
    return Explanation(
        price=price_shown(owed.price, policy.budget),
        columns=tuple(_column(plan, owed, name) for name in noisy_names(plan)),
        groups=" ".join(_groups(part, cuts) for part, cuts in zip(plan.parts, owed.cuts, strict=True)),
        bounded=tuple(dict.fromkeys(sentence for part in plan.parts for sentence in part.sentences)),
        sql=";\n".join(text for part in plan.parts for text in selects(part.question, shown).values()),
        notes=(*owed.notes, *([too_dear] if too_dear else [])),
        paid=owed.loss,
    )


def _redrawn(part: Part, times: int, piece: Piece, rows: np.ndarray) -> pa.Table:
    """Return rows of a released table with fresh noise, so many times over: only to see how far results move."""
    noisy, groups = piece.noisy, len(rows)
    # The same answer has the same margins, whenever it is shown.
    rng = np.random.default_rng(int.from_bytes(sha256(noisy.values.tobytes()).digest()[:8]))
    values = np.tile(noisy.values, (times, 1))
    for place, noise in enumerate(piece.noises):
        scale, size = float(noise.scale), len(values)
        drawn = rng.laplace(0, scale, size) if isinstance(noise, Laplace) else rng.normal(0, scale, size)
        values[:, place] += np.rint(np.clip(drawn, -_FARTHEST, _FARTHEST)).astype(np.int64)
    chosen = choices(part, piece.noises, noisy.trees, groups)
    moved = {name: blurred(estimate, times, rng) for name, estimate in chosen.items()}
    table, _ = assemble(part, noisy.keys * times, values, piece.noises, moved)
    table = table.append_column(after.DRAW, pa.array(np.repeat(np.arange(times), groups)))
    return table.append_column(after.ROW, pa.array(np.tile(rows, times)))


def price_shown(price: Loss, budget: Budget) -> Price:
    """Return a price with its epsilon and its share of a budget."""
    if budget.rho is None:
        return Price(price, share=None if price.epsilon is None else price.epsilon / budget.epsilon)
    epsilon = Loss(None, price.rho).to_epsilon(budget.conversion)
    return Price(price, epsilon, budget.conversion, price.rho / budget.rho)


def _noise_of(plan: Plan, noises: Sequence[Sequence[tuple[Noise, ...]]], name: str) -> str:
    """Say which noise a column of the answer has; `noises` are those of each part, and of each piece of it."""
    said = [
        described(total_of(part, place, np.zeros((1, len(part.question.totals)), np.int64), each))
        for part, measure in sources(plan, origins(plan)[name])
        for each in noises[plan.parts.index(part)]
        for place in parts_of(measure.recipe)
    ]
    return "; ".join(dict.fromkeys(said)) or "computed from noisy numbers"


def _column(plan: Plan, owed: Due, name: str) -> Column:
    origin = origins(plan)[name]
    noise = _noise_of(plan, [[each] for each in owed.noises], name)
    if not isinstance(origin, after.Carried):
        return Column(name, noise, depends="follows from the numbers that it is computed from")
    ((part, measure),) = sources(plan, origin)
    noises = owed.noises[plan.parts.index(part)]
    zeros = np.zeros((1, len(part.question.totals)), np.int64)
    if isinstance(measure.recipe, Quantile):
        rank = rank_margin(part, measure.recipe, noises[measure.recipe.total])
        return Column(name, noise, depends=_RANKED.format(rank))
    if isinstance(measure.recipe, Tabled):
        return Column(name, noise, depends=_TABLED)
    if isinstance(measure.recipe, Averaged | Spread):
        least, most = by_size(part, measure, noises)
        return Column(name, noise, depends=_DEPENDS[_statistic(measure.recipe)].format(least, most))
    alone = replace(part, measures=(measure,))  # beside it there may be values that only data can choose
    _, found = assemble(alone, [tuple(None for _ in part.keys)], zeros, noises)
    return Column(name, noise, margin=float(found[measure.name].margins[0]))


def _statistic(recipe: Averaged | Spread) -> str:
    if isinstance(recipe, Averaged):
        return "mean"
    return "variance" if recipe.statistic in (Statistic.VAR_POP, Statistic.VAR_SAMP) else "deviation"


def _groups(part: Part, cuts: Sequence[int]) -> str:
    groups = part.question.groups
    if not isinstance(groups, Discover):
        return f"{groups.size:,} declared groups, all of them shown." if part.question.by else ""
    worth = [Fraction(cut, 1 << part.question.bits(part.question.totals[0])) for cut in cuts]
    least = ", or in another draw ".join(f"{float(cut):,.4g}" for cut in worth)
    return f"Groups are discovered: shown where the noisy number of units is at least {least}."


def _bounded(plan: Plan, tables: Sequence[Table]) -> tuple[str, ...]:
    each = list(zip(plan.parts, tables, strict=True))
    said = [sentence for part in plan.parts for sentence in part.sentences]
    said += [words for part, table in each for words in sentences(part, table.pieces[0].noises)]
    found = [_groups(part, table.cuts) for part, table in each if table.cuts]
    return tuple(dict.fromkeys([*said, *found]))


def _has_nulls(part: Part, table: pa.Table) -> bool:
    """Tell whether a mean, a spread or a quantile could not be told of some group."""
    names = [measure.name for measure in part.measures if isinstance(measure.recipe, Averaged | Spread | Quantile)]
    return any(table.column(name).null_count for name in names)


def _has_negative_counts(part: Part, table: pa.Table) -> bool:
    counts = [measure.name for measure in part.measures if isinstance(measure.recipe, Counted)]
    return any((table.column(name).to_numpy() < 0).any() for name in counts)
