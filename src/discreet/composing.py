"""From released totals to what a user gets: columns with margins, what follows from them, and the price in words."""

import re
from collections.abc import Mapping
from fractions import Fraction
from hashlib import sha256

import numpy as np
import pyarrow as pa

from discreet.answer import Answer, Column, Explanation, Price
from discreet.kernel.dialect import DUCKDB
from discreet.kernel.loss import Budget, Loss
from discreet.kernel.mechanism import Laplace
from discreet.kernel.question import Discover
from discreet.kernel.release import Ask, Noisy, Released
from discreet.kernel.render import render
from discreet.policy import Policy
from discreet.sql import after
from discreet.sql.after.values import Origin, reads
from discreet.sql.estimates import described
from discreet.sql.plan import Averaged, Counted, Measure, Part, Plan, Spread, assemble, parts_of, total_of

_CHOSEN = "Rows were chosen by noisy numbers, and those that are shown tend to look too large or too small for it."
_TRUNCATED = "A margin of 0 is that of a rounded number: integer / integer truncates; write 1.0 * a / b for a ratio."
_NEGATIVE = "A negative count is noise around a small one; it is shown as it is, because cutting it would bias sums."
_DEPENDS = {
    Averaged: "about {0:,.3g} divided by the number of values in a group, where that is large",
    Spread: "falls with the number of values in a group",
}


def answer(plan: Plan, asks: tuple[Ask, ...], released: Released, price: Loss, policy: Policy) -> Answer:
    """Return the answer that released totals make."""
    each = list(zip(plan.parts, asks, released.parts, strict=True))
    tables: dict[str, pa.Table] = {}
    margins: dict[tuple[str, str], np.ndarray] = {}
    for part, asked, noisy in each:
        tables[part.name], found = assemble(part, noisy.keys, noisy.values, asked.noises)
        margins |= {(part.name, name): widths for name, widths in found.items()}

    def redraw(times: int) -> Mapping[str, pa.Table]:
        return {part.name: _redrawn(part, asked, noisy, times) for part, asked, noisy in each}

    shown = after.margins(plan.after, tables, margins, redraw)
    return Answer(
        table=after.run(plan.after, tables),
        margins=shown,
        noise={name: _noise_of(plan, asks, name) for name in shown},
        price=_price(price, policy.budget),
        receipt=released.receipt,
        bounded=_bounded(plan, asks),
        notes=_notes(plan, tables, shown),
    )


def _notes(plan: Plan, tables: Mapping[str, pa.Table], margins: Mapping[str, list[float | None]]) -> tuple[str, ...]:
    """Return what a reader of the numbers should know."""
    chosen = re.search(r"\b(LIMIT|WHERE|QUALIFY)\b", plan.above) is not None and bool(margins)
    computed = [name for name, origin in _origins(plan).items() if isinstance(origin, after.RowWise)]
    truncated = any(margin == 0 for name in computed for margin in margins.get(name, ()))
    negative = any(_has_negative_counts(part, tables[part.name]) for part in plan.parts) and not chosen
    said = ((_CHOSEN, chosen), (_TRUNCATED, truncated), (_NEGATIVE, negative))
    return tuple(words for words, holds in said if holds)


def explanation(plan: Plan, asks: tuple[Ask, ...], price: Loss, policy: Policy) -> Explanation:
    """Return what a question would cost and how exact it would be."""
    return Explanation(
        price=_price(price, policy.budget),
        columns=tuple(_column(plan, asks, name) for name in _noisy_names(plan)),
        groups=" ".join(_groups(part, asked) for part, asked in zip(plan.parts, asks, strict=True)),
        bounded=tuple(dict.fromkeys(sentence for part in plan.parts for sentence in part.sentences)),
        sql=";\n".join(render(part.question, DUCKDB) for part in plan.parts),
    )


def _redrawn(part: Part, asked: Ask, noisy: Noisy, times: int) -> pa.Table:
    """Return a released table with fresh noise, so many times over: only to see how far results move."""
    # The same answer has the same margins, whenever it is shown.
    rng = np.random.default_rng(int.from_bytes(sha256(noisy.values.tobytes()).digest()[:8]))
    groups = len(noisy.keys)
    values = np.tile(noisy.values, (times, 1))
    for place, noise in enumerate(asked.noises):
        scale, size = float(noise.scale), len(values)
        drawn = rng.laplace(0, scale, size) if isinstance(noise, Laplace) else rng.normal(0, scale, size)
        values[:, place] += np.rint(drawn).astype(np.int64)
    table, _ = assemble(part, noisy.keys * times, values, asked.noises)
    table = table.append_column(after.DRAW, pa.array(np.repeat(np.arange(times), groups)))
    return table.append_column(after.ROW, pa.array(np.tile(np.arange(groups), times)))


def _price(price: Loss, budget: Budget) -> Price:
    if budget.rho is None:
        return Price(price, share=None if price.epsilon is None else price.epsilon / budget.epsilon)
    epsilon = Loss(None, price.rho).to_epsilon(budget.conversion)
    return Price(price, epsilon, budget.conversion, price.rho / budget.rho)


def _origins(plan: Plan) -> dict[str, Origin]:
    """Return what each column of the answer is made of."""
    return dict(zip(plan.after.names, plan.after.row_wise, strict=True))


def _noisy_names(plan: Plan) -> list[str]:
    return [name for name, origin in _origins(plan).items() if _reads(plan, origin)]


def _reads(plan: Plan, origin: Origin) -> list[tuple[Part, Measure]]:
    """Return the noisy columns that a column of the answer is made of."""
    wanted = reads([origin])
    return [(part, measure) for part in plan.parts for measure in part.measures if (part.name, measure.name) in wanted]


def _noise_of(plan: Plan, asks: tuple[Ask, ...], name: str) -> str:
    """Say which noise a column of the answer has."""
    found = _reads(plan, _origins(plan)[name])
    noises = dict(zip((part.name for part in plan.parts), (asked.noises for asked in asks), strict=True))
    said = [
        described(total_of(part, place, np.zeros((1, len(part.question.totals)), np.int64), noises[part.name]))
        for part, measure in found
        for place in parts_of(measure.recipe)
    ]
    return "; ".join(dict.fromkeys(said)) or "computed from noisy numbers"


def _column(plan: Plan, asks: tuple[Ask, ...], name: str) -> Column:
    origin = _origins(plan)[name]
    noise = _noise_of(plan, asks, name)
    if not isinstance(origin, after.Carried):
        return Column(name, noise, depends="follows from the numbers that it is computed from")
    ((part, measure),) = _reads(plan, origin)
    asked = asks[plan.parts.index(part)]
    zeros = np.zeros((1, len(part.question.totals)), np.int64)
    if type(measure.recipe) in _DEPENDS:
        steps = total_of(part, measure.recipe.total, zeros, asked.noises)
        reach = float(steps.noise.margin("0.95") * steps.step)
        return Column(name, noise, depends=_DEPENDS[type(measure.recipe)].format(reach))
    _, margins = assemble(part, [tuple(None for _ in part.keys)], zeros, asked.noises)
    return Column(name, noise, margin=float(margins[measure.name][0]))


def _groups(part: Part, asked: Ask) -> str:
    groups = part.question.groups
    if not isinstance(groups, Discover):
        return f"{groups.size:,} declared groups, all of them shown." if part.question.by else ""
    assert asked.cut is not None
    cut = Fraction(asked.cut, 1 << part.question.bits(part.question.totals[0]))
    return f"Groups are discovered: shown where the noisy number of units is at least {float(cut):,.4g}."


def _bounded(plan: Plan, asks: tuple[Ask, ...]) -> tuple[str, ...]:
    said = [sentence for part in plan.parts for sentence in part.sentences]
    found = [_groups(part, asked) for part, asked in zip(plan.parts, asks, strict=True) if asked.cut is not None]
    return tuple(dict.fromkeys([*said, *found]))


def _has_negative_counts(part: Part, table: pa.Table) -> bool:
    counts = [measure.name for measure in part.measures if isinstance(measure.recipe, Counted)]
    return any((table.column(name).to_numpy() < 0).any() for name in counts)
